//! What is wrong with the configuration: where it stands, which key, and what to do.

use std::fmt;
use std::path::PathBuf;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    File {
        path: PathBuf,
        /// From 1.
        line: usize,
    },
    Variable(String),
    Flag(&'static str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub origin: Origin,
    /// `ports.amqp`; empty when no key is at fault.
    pub key: String,
    pub what: String,
    pub fix: Option<String>,
}

impl Problem {
    pub fn new(origin: Origin, key: impl Into<String>, what: impl Into<String>) -> Self {
        Problem { origin, key: key.into(), what: what.into(), fix: None }
    }

    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line } => write!(f, "{}:{line}", path.display()),
            Origin::Variable(name) => write!(f, "environment variable {name}"),
            Origin::Flag(name) => write!(f, "{name}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.origin)?;
        if !self.key.is_empty() {
            write!(f, "{} ", self.key)?;
        }
        f.write_str(&self.what)?;
        match &self.fix {
            Some(fix) => write!(f, "\n  {fix}"),
            None => Ok(()),
        }
    }
}

/// The candidate a mistyped `word` most likely meant: at most a third of its letters away.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two words, a swap of neighbours counting as one (optimal string alignment).
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (at, row) in rows.iter_mut().enumerate() {
        row[0] = at;
    }
    for (at, cell) in rows[0].iter_mut().enumerate() {
        *cell = at;
    }
    for i in 1..=left.len() {
        for j in 1..=right.len() {
            let same = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(rows[i - 1][j - 1] + same);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_finds_what_was_meant_and_nonsense_finds_nothing() {
        let ports = ["amqp", "amqps", "bus", "control"];
        assert_eq!(nearest("amqpp", ports), Some("amqp"));
        assert_eq!(nearest("contorl", ports), Some("control"));
        assert_eq!(nearest("elephant", ports), None);
    }
}
