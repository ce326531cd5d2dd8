//! Regular expressions as RabbitMQ's users write them (PCRE): permissions and policies are written for its dialect, look-around
//! and all (`^(?!amq\.).*` is the best known policy). A match looks anywhere in the name unless the pattern is anchored.
//!
//! Backtracking is bounded: a pattern that would search a name for longer runs away, which is not matching it. Who asks one pattern
//! about many names asks through [`Repeated`], which bounds all those searches together.

use fancy_regex::{Regex, RegexBuilder};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Longest pattern, in bytes; longer ones are refused.
pub const PATTERN_BYTES_MAX: usize = 4_096;
/// Times that one match may turn back.
pub const STEPS_MAX: usize = 20_000;
/// Names on which a [`Repeated`] pattern may run away before it is asked about no other.
pub const RUNAWAYS_MAX: u32 = 8;
/// Memory of one compiled pattern, in bytes.
const COMPILED_BYTES_MAX: usize = 1 << 20;

#[derive(Clone)]
pub struct Pattern {
    text: Box<str>,
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// `.*` and the like: no engine needed.
    Everything,
    /// `^$`, or nothing at all.
    OnlyEmpty,
    Regex(Arc<Compiled>),
}

struct Compiled {
    regex: Regex,
    /// Whether it was said in the log that it ran away.
    is_told: AtomicBool,
}

/// The search took more than [`STEPS_MAX`] steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RanAway;

impl Pattern {
    /// The error is what is wrong with it, in words.
    pub fn new(text: &str) -> Result<Self, String> {
        Pattern::build(text, |_| {})
    }

    /// One to which upper and lower case are the same.
    pub fn caseless(text: &str) -> Result<Self, String> {
        Pattern::build(text, |builder| _ = builder.case_insensitive(true))
    }

    fn build(text: &str, set: impl FnOnce(&mut RegexBuilder)) -> Result<Self, String> {
        if text.len() > PATTERN_BYTES_MAX {
            return Err(format!("the pattern has {} bytes, more than {PATTERN_BYTES_MAX}", text.len()));
        }
        let form = match text {
            ".*" | "^.*" | ".*$" | "^.*$" => Form::Everything,
            "^$" => Form::OnlyEmpty,
            other => {
                let mut builder = RegexBuilder::new(&with_literal_braces(other));
                builder.backtrack_limit(STEPS_MAX);
                builder.delegate_size_limit(COMPILED_BYTES_MAX);
                builder.delegate_dfa_size_limit(COMPILED_BYTES_MAX);
                set(&mut builder);
                let regex = builder.build().map_err(|error| error.to_string())?;
                Form::Regex(Arc::new(Compiled { regex, is_told: AtomicBool::new(false) }))
            }
        };
        Ok(Pattern { text: text.into(), form })
    }

    /// As RabbitMQ reads a permission: an empty one allows nothing but the empty name.
    pub fn permission(text: &str) -> Result<Self, String> {
        Pattern::new(if text.is_empty() { "^$" } else { text })
    }

    /// Where it runs away it does not match; the first time, the log says so.
    pub fn is_match(&self, name: &str) -> bool {
        self.try_match(name).unwrap_or_else(|RanAway| {
            if let Form::Regex(compiled) = &self.form
                && !compiled.is_told.swap(true, Ordering::Relaxed)
            {
                let (pattern, next) = (self.as_str(), "write it without a repetition inside a repetition");
                tracing::warn!(pattern, name, next, "a pattern ran away on a name, which counts as not matching");
            }
            false
        })
    }

    pub fn try_match(&self, name: &str) -> Result<bool, RanAway> {
        match &self.form {
            Form::Everything => Ok(true),
            Form::OnlyEmpty => Ok(name.is_empty()),
            Form::Regex(compiled) => compiled.regex.is_match(name).map_err(|_| RanAway),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// A pattern asked about many names.
#[derive(Debug)]
pub struct Repeated {
    pattern: Pattern,
    runaways: AtomicU32,
}

/// On how many names the pattern has run away so far. At [`RUNAWAYS_MAX`] it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Runaways(pub u32);

impl Repeated {
    pub fn new(pattern: Pattern) -> Self {
        Repeated { pattern, runaways: AtomicU32::new(0) }
    }

    /// The error comes once a name that it runs away on; a pattern given up matches nothing.
    pub fn try_match(&self, name: &str) -> Result<bool, Runaways> {
        if self.runaways.load(Ordering::Relaxed) >= RUNAWAYS_MAX {
            return Ok(false);
        }
        self.pattern.try_match(name).map_err(|RanAway| Runaways(self.runaways.fetch_add(1, Ordering::Relaxed) + 1))
    }
}

/// PCRE takes a brace that begins no repetition as itself (`{vhost}`); the engine here would refuse it.
fn with_literal_braces(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut in_class) = (text, false);
    while let Some(first) = rest.chars().next() {
        let mut step = first.len_utf8();
        match first {
            '\\' => {
                step += rest[1..].chars().next().map_or(0, char::len_utf8);
                // `\p{L}`, `\x{41}`: the braces belong to the escape.
                if matches!(rest[1..].chars().next(), Some('p' | 'P' | 'x' | 'u' | 'k'))
                    && rest[step..].starts_with('{')
                    && let Some(end) = rest[step..].find('}')
                {
                    step += end + 1;
                }
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '{' if !in_class && !begins_repetition(rest) => out.push('\\'),
            _ => {}
        }
        out.push_str(&rest[..step]);
        rest = &rest[step..];
    }
    out
}

/// `{2}`, `{2,}` or `{2,5}`.
fn begins_repetition(text: &str) -> bool {
    let Some(inner) = text[1..].split_once('}').map(|(inner, _)| inner) else { return false };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inner.split_once(',') {
        None => is_number(inner),
        Some((low, high)) => is_number(low) && (high.is_empty() || is_number(high)),
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}/", self.text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap_or_else(|wrong| panic!("{pattern}: {wrong}")).is_match(name)
    }

    #[test]
    fn patterns_of_rabbitmq_installations_mean_what_they_mean_there() {
        for (pattern, good, bad) in [
            (".*", "anything", None),
            ("^$", "", Some("x")),
            ("^(?!amq\\.).*", "orders", Some("amq.gen-1")),
            ("^(amq\\.gen.*|amq\\.default)$", "amq.gen-x", Some("amq.topic")),
            ("orders", "my.orders.eu", Some("order")),
            ("^a{2,3}$", "aa", Some("a")),
            ("^x-{vhost}$", "x-{vhost}", Some("x-")),
            ("^[{}]$", "{", Some("x")),
            ("^\\x{41}$", "A", Some("B")),
        ] {
            assert!(matches(pattern, good), "{pattern} {good}");
            assert!(bad.is_none_or(|bad| !matches(pattern, bad)), "{pattern} {bad:?}");
        }
    }

    #[test]
    fn an_empty_permission_allows_only_the_empty_name() {
        let pattern = Pattern::permission("").expect("a pattern");
        assert!(pattern.is_match("") && !pattern.is_match("x"));
    }

    #[test]
    fn what_is_no_pattern_is_said_and_what_runs_away_does_not_match() {
        assert!(Pattern::new("(").is_err());
        assert!(Pattern::new("[").is_err());
        assert!(Pattern::new(&"a".repeat(PATTERN_BYTES_MAX + 1)).is_err());
        assert!(!matches(RUNAWAY, &("a".repeat(200) + "b")));
    }

    const RUNAWAY: &str = r"^(a|aa)+(?!x)$";

    #[test]
    fn a_pattern_asked_about_many_names_is_given_up_after_a_few_runaways() {
        let pattern = Repeated::new(Pattern::new(RUNAWAY).expect("a pattern"));
        let long = "a".repeat(200) + "b";
        let told: Vec<_> = (0..20).filter_map(|_| pattern.try_match(&long).err()).collect();
        assert_eq!(told, (1..=RUNAWAYS_MAX).map(Runaways).collect::<Vec<_>>());
        assert_eq!(pattern.try_match("short"), Ok(false));
    }

    #[test]
    fn case_counts_unless_it_is_asked_not_to() {
        let caseless = Pattern::caseless("^(?!amq).*Q$").expect("a pattern");
        assert!(caseless.is_match("my.q") && !caseless.is_match("AMQ.q") && !matches("Q$", "q"));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_panic(text in ".{0,60}", name in ".{0,60}") {
            if let Ok(pattern) = Pattern::new(&text) {
                pattern.is_match(&name);
            }
        }
    }
}
