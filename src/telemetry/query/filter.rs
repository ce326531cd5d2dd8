//! A compiled query over rows of one kind, and the tests on values that all kinds share.

use super::QueryError;
use super::lang::{Comparison, Expr, Field, Test};
use super::pattern::Pattern;
use crate::kernel::size;
use crate::telemetry::store::pack::{List, Packed};

/// `T` is one test on a row; what it tests is known to whoever compiled it.
#[derive(Clone, Debug)]
pub enum Filter<T> {
    All,
    And(Vec<Filter<T>>),
    Or(Vec<Filter<T>>),
    Not(Box<Filter<T>>),
    Is(T),
}

/// What the tree's leaves are before they are compiled.
pub enum Leaf {
    Text(Pattern),
    Field(Field),
}

impl<T> Filter<T> {
    pub fn compile(expr: Expr, leaf: &dyn Fn(Leaf) -> Result<T, QueryError>) -> Result<Self, QueryError> {
        let list = |parts: Vec<Expr>| parts.into_iter().map(|part| Filter::compile(part, leaf)).collect::<Result<Vec<_>, _>>();
        Ok(match expr {
            Expr::All => Filter::All,
            Expr::And(parts) => Filter::And(list(parts)?),
            Expr::Or(parts) => Filter::Or(list(parts)?),
            Expr::Not(inner) => Filter::Not(Box::new(Filter::compile(*inner, leaf)?)),
            Expr::Text(pattern) => Filter::Is(leaf(Leaf::Text(pattern))?),
            Expr::Field(field) => Filter::Is(leaf(Leaf::Field(field))?),
        })
    }

    /// Also requires `test`.
    pub fn and(self, test: T) -> Self {
        match self {
            Filter::All => Filter::Is(test),
            Filter::And(mut parts) => {
                parts.insert(0, Filter::Is(test));
                Filter::And(parts)
            }
            other => Filter::And(vec![Filter::Is(test), other]),
        }
    }

    pub fn is_all(&self) -> bool {
        matches!(self, Filter::All)
    }

    pub fn matches(&self, holds: &dyn Fn(&T) -> bool) -> bool {
        match self {
            Filter::All => true,
            Filter::And(parts) => parts.iter().all(|part| part.matches(holds)),
            Filter::Or(parts) => parts.iter().any(|part| part.matches(holds)),
            Filter::Not(inner) => !inner.matches(holds),
            Filter::Is(test) => holds(test),
        }
    }
}

/// A test on an attribute, or on any text or number.
#[derive(Clone, Debug)]
pub enum ValueTest {
    Exists,
    Is(Pattern),
    Number(Comparison, f64),
    Text(Comparison, String),
}

impl ValueTest {
    pub fn new(test: Test) -> Self {
        match test {
            Test::Exists => ValueTest::Exists,
            Test::Is(pattern) => ValueTest::Is(pattern),
            Test::Compare(comparison, operand) => match operand.parse() {
                Ok(number) => ValueTest::Number(comparison, number),
                Err(_) => ValueTest::Text(comparison, operand),
            },
        }
    }

    pub fn holds(&self, value: Packed<'_>) -> bool {
        match value {
            Packed::Null | Packed::Bytes(_) => false,
            Packed::Text(text) => self.holds_of_text(text),
            Packed::Int(number) => self.holds_of_number(number as f64, &|| number.to_string()),
            Packed::Double(number) => self.holds_of_number(number, &|| number.to_string()),
            Packed::Bool(value) => self.holds_of_text(if value { "true" } else { "false" }),
            Packed::Array(list) => list.values().any(|item| self.holds(item)),
            Packed::Map(list) => list.pairs().any(|(_, item)| self.holds(item)),
        }
    }

    pub fn holds_of_text(&self, text: &str) -> bool {
        match self {
            ValueTest::Exists => true,
            ValueTest::Is(pattern) => pattern.is_all_of(text),
            ValueTest::Number(comparison, number) => text.parse().is_ok_and(|value: f64| comparison.holds(value, *number)),
            ValueTest::Text(comparison, operand) => comparison.holds(text, operand.as_str()),
        }
    }

    pub fn holds_of_number(&self, value: f64, written: &dyn Fn() -> String) -> bool {
        match self {
            ValueTest::Exists => true,
            ValueTest::Is(pattern) => match pattern.number() {
                Some(number) => number == value,
                None if pattern.literal().is_some() => false,
                None => pattern.is_all_of(&written()),
            },
            ValueTest::Number(comparison, number) => comparison.holds(value, *number),
            ValueTest::Text(_, _) => false,
        }
    }
}

/// Whether any text inside the value contains the pattern.
pub fn contains(value: Packed<'_>, pattern: &Pattern) -> bool {
    match value {
        Packed::Text(text) => pattern.is_in(text),
        Packed::Array(list) => list.values().any(|item| contains(item, pattern)),
        Packed::Map(list) => contains_any(list, pattern),
        Packed::Int(number) => pattern.is_in(&number.to_string()),
        Packed::Null | Packed::Bool(_) | Packed::Double(_) | Packed::Bytes(_) => false,
    }
}

pub fn contains_any(list: List<'_>, pattern: &Pattern) -> bool {
    list.pairs().any(|(_, value)| contains(value, pattern))
}

/// A test on a whole number such as a count of spans.
pub fn number_test(field: &Field) -> Result<ValueTest, QueryError> {
    let test = ValueTest::new(field.test.clone());
    let understood = match &test {
        ValueTest::Exists | ValueTest::Number(_, _) => true,
        ValueTest::Is(pattern) => pattern.number().is_some(),
        ValueTest::Text(_, _) => false,
    };
    if understood {
        Ok(test)
    } else {
        Err(field.error(format!("{} is a number", field.name), format!("Write {}>10", field.name)))
    }
}

/// A test on a duration, in nanoseconds: `100ms`, `1.5s`, or milliseconds without a unit.
pub fn duration_test(field: &Field) -> Result<(Comparison, f64), QueryError> {
    let Test::Compare(comparison, operand) = &field.test else {
        return Err(field.error(format!("{} needs a comparison", field.name), format!("Write {}>100ms", field.name)));
    };
    let nanos = parse_nanos(operand)
        .ok_or_else(|| field.error(format!("{operand} is not a duration"), format!("Write {}>100ms", field.name)))?;
    Ok((*comparison, nanos))
}

fn parse_nanos(text: &str) -> Option<f64> {
    if let Some(duration) = size::parse_duration(text) {
        return Some(duration.as_nanos() as f64);
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..unit_at].parse().ok()?;
    let factor = match text[unit_at..].trim() {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "" | "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        _ => return None,
    };
    Some(number * factor)
}

/// A test on a text that is also true of a part: names of roots, bodies, paths.
pub fn holds_of_part(test: &Test, text: &str) -> bool {
    match test {
        Test::Exists => !text.is_empty(),
        Test::Is(pattern) => pattern.is_in(text),
        Test::Compare(comparison, operand) => comparison.holds(text, operand.as_str()),
    }
}

/// A test on a text that must match as a whole, unless wildcards open it.
pub fn holds_of_whole(test: &Test, text: &str) -> bool {
    match test {
        Test::Exists => !text.is_empty(),
        Test::Is(pattern) => pattern.is_all_of(text),
        Test::Compare(comparison, operand) => comparison.holds(text, operand.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_with_and_without_fractions_and_units() {
        for (text, nanos) in
            [("100ms", Some(1e8)), ("1.5s", Some(1.5e9)), ("250", Some(2.5e8)), ("3µs", Some(3e3)), ("x", None), ("5 cups", None)]
        {
            assert_eq!(parse_nanos(text), nanos, "{text}");
        }
    }

    #[test]
    fn numbers_compare_as_numbers_even_where_they_were_sent_as_text() {
        let test = ValueTest::new(Test::Compare(Comparison::GreaterOrEqual, "500".into()));
        assert!(test.holds(Packed::Int(503)) && test.holds(Packed::Text("1000")) && !test.holds(Packed::Text("x")));
        assert!(ValueTest::Is(Pattern::word("200")).holds(Packed::Double(200.0)));
        assert!(ValueTest::Is(Pattern::word("20*")).holds(Packed::Int(204)));
        assert!(ValueTest::Is(Pattern::word("TRUE")).holds(Packed::Bool(true)));
    }
}
