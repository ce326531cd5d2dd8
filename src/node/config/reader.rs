//! Reads TOML tables with their lines kept: typed getters that collect problems instead of stopping at the first, and expand
//! `${VAR}` in strings.

use super::problem::{Origin, Problem, nearest};
use super::settings::Raw;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;
use toml_edit::{Item, TableLike, Value};

/// A file as read, before anything is made of it.
#[derive(Clone, Debug)]
pub struct FileText {
    pub path: PathBuf,
    pub text: String,
}

/// What reading a file shares: where lines are, what variables say, what was wrong so far.
pub struct Reading<'a> {
    pub file: &'a FileText,
    pub variables: &'a BTreeMap<String, String>,
    pub problems: Vec<Problem>,
}

impl Reading<'_> {
    pub fn origin(&self, span: Option<Range<usize>>) -> Origin {
        let offset = span.map_or(0, |span| span.start).min(self.file.text.len());
        let line = self.file.text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count() + 1;
        Origin::File { path: self.file.path.clone(), line }
    }

    pub fn problem(&mut self, span: Option<Range<usize>>, key: &str, what: impl Into<String>, fix: impl Into<String>) {
        let origin = self.origin(span);
        self.problems.push(Problem::new(origin, key, what).fix(fix));
    }

    /// `text` with `${VAR}` and `${VAR:-default}` replaced; `$${` stands for a literal `${`.
    pub fn expand(&mut self, text: &str, span: Option<Range<usize>>, key: &str) -> String {
        match expand(text, self.variables) {
            Ok(expanded) => expanded,
            Err(Unexpanded::Unset(name)) => {
                let fix = format!("Set {name}, or give a default: ${{{name}:-value}}.");
                self.problem(span, key, format!("uses ${{{name}}}, which is not set"), fix);
                String::new()
            }
            Err(Unexpanded::Open) => {
                self.problem(span, key, "has a ${ without its }", "Close it, or write $${ for the characters themselves.");
                String::new()
            }
        }
    }

    /// A leaf as a raw setting value.
    pub fn raw(&mut self, item: &Item, key: &str) -> Raw {
        self.leaf(item, key, Variables::Expanded)
    }

    fn leaf(&mut self, item: &Item, key: &str, mode: Variables) -> Raw {
        let text_of = |reading: &mut Self, text: &str, span| match mode {
            Variables::Expanded => reading.expand(text, span, key),
            Variables::Verbatim => text.to_owned(),
        };
        match item.as_value() {
            Some(Value::String(text)) => Raw::Text(text_of(self, text.value(), item.span())),
            Some(Value::Integer(number)) => Raw::Integer(*number.value()),
            Some(Value::Boolean(flag)) => Raw::Bool(*flag.value()),
            Some(Value::Array(items)) => {
                let mut words = Vec::new();
                for value in items {
                    match value.as_str() {
                        Some(word) => words.push(text_of(self, word, value.span())),
                        None => return Raw::Other("a list of other things than text"),
                    }
                }
                Raw::List(words)
            }
            Some(Value::Float(_)) => Raw::Other("a fraction"),
            Some(Value::Datetime(_)) => Raw::Other("a date"),
            Some(Value::InlineTable(_)) | None => Raw::Other("a table"),
        }
    }
}

/// Whether `${VAR}` is replaced while reading, or left for whoever uses the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variables {
    Expanded,
    Verbatim,
}

enum Unexpanded {
    Unset(String),
    Open,
}

fn expand(text: &str, variables: &BTreeMap<String, String>) -> Result<String, Unexpanded> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        if rest[..at].ends_with('$') {
            out.push_str(&rest[..at - 1]);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        let inner = &rest[at + 2..];
        let end = inner.find('}').ok_or(Unexpanded::Open)?;
        let (name, default) = match inner[..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&inner[..end], None),
        };
        match (variables.get(name).filter(|value| default.is_none() || !value.is_empty()), default) {
            (Some(value), _) => out.push_str(value),
            (None, Some(default)) => out.push_str(default),
            (None, None) => return Err(Unexpanded::Unset(name.to_owned())),
        }
        rest = &inner[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// One table being read key by key; [`TableReader::finish`] refuses what nobody asked for.
pub struct TableReader<'t> {
    table: &'t dyn TableLike,
    /// `services.greeter`.
    path: String,
    span: Option<Range<usize>>,
    known: Vec<&'static str>,
}

impl<'t> TableReader<'t> {
    /// The table at `item`, or a problem.
    pub fn open(reading: &mut Reading<'_>, item: &'t Item, path: impl Into<String>) -> Option<Self> {
        let path = path.into();
        match item.as_table_like() {
            Some(table) => Some(TableReader { table, path, span: item.span(), known: Vec::new() }),
            None => {
                let section = format!("Write it as a section: [{path}].");
                reading.problem(item.span(), &path, "must be a table", section);
                None
            }
        }
    }

    pub fn path_of(&self, key: &str) -> String {
        format!("{}.{key}", self.path)
    }

    /// The item under `key`, remembered as known.
    pub fn item(&mut self, key: &'static str) -> Option<&'t Item> {
        self.known.push(key);
        self.table.get(key).filter(|item| !item.is_none())
    }

    pub fn text(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<String> {
        let item = self.item(key)?;
        match reading.raw(item, &self.path_of(key)) {
            Raw::Text(text) => Some(text),
            other => self.wrong(reading, item, key, "must be text in quotes", &other),
        }
    }

    pub fn flag(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<bool> {
        let item = self.item(key)?;
        match reading.raw(item, &self.path_of(key)) {
            Raw::Bool(flag) => Some(flag),
            other => self.wrong(reading, item, key, "must be true or false", &other),
        }
    }

    /// A whole number from `low` to `high`.
    pub fn count(&mut self, reading: &mut Reading<'_>, key: &'static str, bounds: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let item = self.item(key)?;
        let raw = reading.raw(item, &self.path_of(key));
        match &raw {
            Raw::Integer(number) if u64::try_from(*number).is_ok_and(|number| bounds.contains(&number)) => {
                Some(number.unsigned_abs())
            }
            other => {
                let must = format!("must be a whole number from {} to {}", bounds.start(), bounds.end());
                self.wrong(reading, item, key, &must, other)
            }
        }
    }

    pub fn duration(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<Duration> {
        let item = self.item(key)?;
        let raw = reading.raw(item, &self.path_of(key));
        match &raw {
            Raw::Text(text) if crate::kernel::size::parse_duration(text).is_some() => crate::kernel::size::parse_duration(text),
            other => self.wrong(reading, item, key, "must be a duration such as \"500ms\", \"10s\" or \"2m\"", other),
        }
    }

    /// A list of texts.
    pub fn words(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<Vec<String>> {
        let item = self.item(key)?;
        match reading.raw(item, &self.path_of(key)) {
            Raw::List(words) => Some(words),
            other => self.wrong(reading, item, key, "must be a list of texts", &other),
        }
    }

    /// The value under `key` as it came, for keys that take several types; `${VAR}` is left as written.
    pub fn verbatim(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<(Raw, &'t Item)> {
        let item = self.item(key)?;
        Some((reading.leaf(item, &self.path_of(key), Variables::Verbatim), item))
    }

    /// A table of texts, such as an environment; numbers and flags are written out, `${VAR}` is left as written.
    pub fn map(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<BTreeMap<String, String>> {
        let item = self.item(key)?;
        let path = self.path_of(key);
        let Some(table) = item.as_table_like() else {
            let raw = reading.raw(item, &path);
            return self.wrong(reading, item, key, "must be a table of texts", &raw);
        };
        let mut map = BTreeMap::new();
        for (name, value) in table.iter() {
            let path = format!("{path}.{name}");
            let text = match reading.leaf(value, &path, Variables::Verbatim) {
                Raw::Text(text) => text,
                Raw::Integer(number) => number.to_string(),
                Raw::Bool(flag) => flag.to_string(),
                other => {
                    reading.problem(value.span(), &path, format!("must be text, not {}", other.shown()), "Put it in quotes.");
                    continue;
                }
            };
            map.insert(name.to_owned(), text);
        }
        Some(map)
    }

    /// The table under `key`, to be read in its turn.
    pub fn table(&mut self, reading: &mut Reading<'_>, key: &'static str) -> Option<TableReader<'t>> {
        let item = self.item(key)?;
        TableReader::open(reading, item, self.path_of(key))
    }

    /// Reports what is wrong with `key`.
    pub fn refuse(&self, reading: &mut Reading<'_>, key: &'static str, what: impl Into<String>, fix: impl Into<String>) {
        let span = self.table.get(key).and_then(Item::span).or_else(|| self.span.clone());
        reading.problem(span, &self.path_of(key), what, fix);
    }

    pub fn wrong<T>(&self, reading: &mut Reading<'_>, item: &Item, key: &str, must: &str, found: &Raw) -> Option<T> {
        let origin = reading.origin(item.span());
        reading.problems.push(Problem::new(origin, self.path_of(key), format!("{must}, not {}", found.shown())));
        None
    }

    /// Reports every key that was not read.
    pub fn finish(self, reading: &mut Reading<'_>) {
        for (name, item) in self.table.iter() {
            if self.known.contains(&name) {
                continue;
            }
            let span = self.table.key(name).and_then(toml_edit::Key::span).or_else(|| item.span());
            let path = self.path_of(name);
            reading.problem(span, &path, "is not a known key", meant(name, &self.known));
        }
    }
}

/// The next step for an unknown key.
pub fn meant(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(candidate) => format!("Did you mean {candidate}?"),
        None => {
            let mut known = known.to_vec();
            known.sort_unstable();
            known.dedup();
            format!("Known here: {}.", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_expand_with_defaults_and_escapes() {
        let variables = BTreeMap::from([("A".to_owned(), "1".to_owned()), ("EMPTY".to_owned(), String::new())]);
        let good = |text| expand(text, &variables).ok();
        assert_eq!(good("x${A}y${A}"), Some("x1y1".into()));
        assert_eq!(good("${B:-two}"), Some("two".into()));
        assert_eq!(good("${EMPTY:-two}"), Some("two".into()));
        assert_eq!(good("${EMPTY}"), Some(String::new()));
        assert_eq!(good("$${A} $5"), Some("${A} $5".into()));
        assert_eq!(good("${B}"), None);
        assert_eq!(good("${A"), None);
    }
}
