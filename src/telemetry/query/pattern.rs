//! Text tests of the query language: case never matters, `*` stands for anything, `/…/` is a regular expression.

use memchr::memchr2_iter;
use regex::{Regex, RegexBuilder};
use std::borrow::Cow;

/// Compiled size of one regular expression at most, in bytes; larger ones are refused.
const REGEX_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct Pattern {
    kind: Kind,
    /// The literal's value, for attributes that are numbers.
    number: Option<f64>,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Lower-cased parts around the stars: `a*b` is `["a", "b"]`.
    Parts(Vec<String>),
    Regex(Regex),
}

impl Pattern {
    /// A bare word: `*` is a wildcard.
    pub fn word(text: &str) -> Self {
        let parts = text.split('*').map(str::to_lowercase).collect();
        Pattern { kind: Kind::Parts(parts), number: text.parse().ok() }
    }

    /// A quoted text: every character stands for itself.
    pub fn phrase(text: &str) -> Self {
        Pattern { kind: Kind::Parts(vec![text.to_lowercase()]), number: text.parse().ok() }
    }

    pub fn regex(text: &str) -> Result<Self, String> {
        let regex = RegexBuilder::new(text).case_insensitive(true).size_limit(REGEX_BYTES_MAX).build();
        match regex {
            Ok(regex) => Ok(Pattern { kind: Kind::Regex(regex), number: None }),
            Err(regex::Error::CompiledTooBig(_)) => Err("the expression is too large".into()),
            Err(error) => Err(error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").into()),
        }
    }

    /// Only stars: true of anything that exists.
    pub fn is_anything(&self) -> bool {
        matches!(&self.kind, Kind::Parts(parts) if parts.len() > 1 && parts.iter().all(String::is_empty))
    }

    pub fn number(&self) -> Option<f64> {
        self.number
    }

    /// The text if it has no wildcard, in lower case.
    pub fn literal(&self) -> Option<&str> {
        match &self.kind {
            Kind::Parts(parts) if parts.len() == 1 => Some(&parts[0]),
            Kind::Parts(_) | Kind::Regex(_) => None,
        }
    }

    /// Somewhere in `text`.
    pub fn is_in(&self, text: &str) -> bool {
        match &self.kind {
            Kind::Regex(regex) => regex.is_match(text),
            Kind::Parts(parts) => {
                let text = comparable(text, parts);
                let mut rest = &*text;
                parts.iter().all(|part| find(rest, part).map(|at| rest = &rest[at + part.len()..]).is_some())
            }
        }
    }

    /// The whole of `text`.
    pub fn is_all_of(&self, text: &str) -> bool {
        let parts = match &self.kind {
            Kind::Regex(regex) => return regex.is_match(text),
            Kind::Parts(parts) => parts,
        };
        let text = comparable(text, parts);
        let (first, last) = (&parts[0], &parts[parts.len() - 1]);
        if parts.len() == 1 {
            return text.eq_ignore_ascii_case(first);
        }
        if text.len() < first.len() + last.len() || !starts(&text, first) || !ends(&text, last) {
            return false;
        }
        let mut rest = &text[first.len()..text.len() - last.len()];
        parts[1..parts.len() - 1].iter().all(|part| find(rest, part).map(|at| rest = &rest[at + part.len()..]).is_some())
    }
}

/// Lower-cases `text` only where comparing ASCII letters would not do.
fn comparable<'a>(text: &'a str, parts: &[String]) -> Cow<'a, str> {
    if parts.iter().all(|part| part.is_ascii()) { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
}

fn starts(text: &str, lower: &str) -> bool {
    text.is_char_boundary(lower.len()) && text.as_bytes()[..lower.len()].eq_ignore_ascii_case(lower.as_bytes())
}

fn ends(text: &str, lower: &str) -> bool {
    let start = text.len() - lower.len();
    text.is_char_boundary(start) && text.as_bytes()[start..].eq_ignore_ascii_case(lower.as_bytes())
}

/// Where `lower` begins in `text`, ASCII case aside.
fn find(text: &str, lower: &str) -> Option<usize> {
    let (text, lower) = (text.as_bytes(), lower.as_bytes());
    let Some(first) = lower.first() else { return Some(0) };
    memchr2_iter(*first, first.to_ascii_uppercase(), text)
        .find(|at| text.get(*at..at + lower.len()).is_some_and(|window| window.eq_ignore_ascii_case(lower)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_anywhere_whatever_their_case() {
        assert!(Pattern::word("STOCK").is_in("no stock left"));
        assert!(Pattern::word("no*left").is_in("well, no stock left now"));
        assert!(!Pattern::word("left*no").is_in("no stock left"));
        assert!(Pattern::word("ÉTÉ").is_in("un été chaud"));
        assert!(Pattern::phrase("a*b").is_in("x a*b y") && !Pattern::phrase("a*b").is_in("a-b"));
        assert!(Pattern::regex("sto[ck]+ l").expect("valid").is_in("No Stock Left"));
    }

    #[test]
    fn a_field_must_match_as_a_whole_unless_stars_open_it() {
        for (pattern, text, expected) in [
            ("orders", "Orders", true),
            ("orders", "orders-1", false),
            ("orders*", "orders-1", true),
            ("*-1", "orders-1", true),
            ("o*s*1", "orders-1", true),
            ("aa*aa", "aaa", false),
            ("*", "", true),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(Pattern::word(pattern).is_all_of(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_huge_expression_is_refused() {
        assert!(Pattern::regex("(a{1000}){1000}").is_err());
        assert!(Pattern::regex("a(").expect_err("open").contains("unclosed group"));
    }
}
