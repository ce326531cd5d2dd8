//! Headers exchanges: the message's headers against a binding's arguments, by `x-match`.
//!
//! Values compare as RabbitMQ 3.13 compares them: the text `'1'` is not the number `1`, and integers of any width are numbers. Void in
//! a binding asks only for presence. Keys that begin with `x-` count only under `all-with-x` and `any-with-x`. No `x-match` is `all`;
//! of nothing, `all` is true and `any` is false.

use super::super::refused::Refused;
use super::{Bound, Found};
use crate::model::table::{Field, Table};
use crate::wire::amqp::{RawField, RawTable};
use smallvec::SmallVec;

#[derive(Debug, Default)]
pub(in crate::broker) struct Headers(Vec<Rule>);

/// A message's headers, still on the wire.
type Given<'a> = SmallVec<[(&'a str, RawField<'a>); 16]>;

#[derive(Debug)]
struct Rule {
    any: bool,
    wanted: Vec<(String, Field)>,
    bound: Bound,
}

const X_MATCH: &str = "x-match";

pub(super) fn check(arguments: &Table) -> Result<(), Refused> {
    mode(arguments).map(drop)
}

/// (any, with keys that begin with `x-`)
fn mode(arguments: &Table) -> Result<(bool, bool), Refused> {
    match arguments.get(X_MATCH) {
        None => Ok((false, false)),
        Some(field) => match field.as_str() {
            Some("all") => Ok((false, false)),
            Some("any") => Ok((true, false)),
            Some("all-with-x") => Ok((false, true)),
            Some("any-with-x") => Ok((true, true)),
            Some(other) => Err(Refused::Precondition(format!(
                "Invalid x-match field value <<\"{other}\">>; expected all, any, all-with-x, or any-with-x"
            ))),
            None => {
                let (value, kind) = field.spelled();
                let text = format!("Invalid x-match field type {kind} (value {value}); expected longstr");
                Err(Refused::Precondition(text))
            }
        },
    }
}

impl Headers {
    pub fn insert(&mut self, arguments: &Table, bound: Bound) {
        let (any, with_x) = mode(arguments).unwrap_or_default();
        let counts = |name: &str| name != X_MATCH && (with_x || !name.starts_with("x-"));
        let wanted =
            arguments.iter().filter(|(name, _)| counts(name)).map(|(name, field)| (name.into(), field.clone())).collect();
        self.0.push(Rule { any, wanted, bound });
    }

    pub fn remove(&mut self, id: u64) {
        self.0.retain(|rule| rule.bound.id != id);
    }

    pub fn route(&self, headers: RawTable<'_>, found: &mut Found) {
        let headers: Given<'_> = headers.iter().collect();
        found.add_all(self.0.iter().filter(|rule| rule.matches(&headers)).map(|rule| &rule.bound));
    }
}

impl Rule {
    fn matches(&self, headers: &Given<'_>) -> bool {
        // Of two headers of one name the later counts.
        let given = |name: &str| headers.iter().rev().find(|(given, _)| *given == name).map(|(_, field)| *field);
        let has =
            |(name, wanted): &(String, Field)| given(name).is_some_and(|field| *wanted == Field::Void || is_equal(field, wanted));
        if self.any { self.wanted.iter().any(has) } else { self.wanted.iter().all(has) }
    }
}

fn is_equal(given: RawField<'_>, wanted: &Field) -> bool {
    if let (Some(given), Some(wanted)) = (given.as_integer(), wanted.as_integer()) {
        return given == wanted;
    }
    match (given, wanted) {
        (RawField::Text(given) | RawField::Bytes(given), Field::Text(wanted) | Field::Bytes(wanted)) => *given == **wanted,
        (RawField::F32(given), Field::F64(wanted)) => f64::from(given) == *wanted,
        (RawField::F64(given), Field::F32(wanted)) => given == f64::from(*wanted),
        (given, wanted) => given.to_field() == *wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Routes;
    use super::super::testing::{bound, names, queue};
    use super::*;

    /// Arguments of the binding, headers of the message, whether they match.
    type Case<'a> = (&'a [(&'static str, Field)], &'a [(&'static str, Field)], bool);
    use crate::model::topology::ExchangeKind;
    use crate::wire::amqp::{Properties, PropertyList, table};

    fn table_of(pairs: &[(&str, Field)]) -> Table {
        Table(pairs.iter().map(|(name, field)| ((*name).to_owned(), field.clone())).collect())
    }

    fn matched(binding: &[(&str, Field)], headers: &[(&str, Field)]) -> bool {
        let mut routes = Routes::new(ExchangeKind::Headers, &Table::new());
        let arguments = table_of(binding);
        routes.check("", &arguments).expect("a good binding");
        routes.insert("", &arguments, bound(1, &queue("q")));
        let encoded = table::encoded(&table_of(headers));
        let list = PropertyList { headers: RawTable::check(&encoded).ok(), ..PropertyList::default() };
        names(&routes, "ignored", Properties::check(&list.to_bytes()).expect("good")) == "q"
    }

    #[test]
    fn x_match_decides_how_headers_are_compared() {
        let (one, text, void) = (Field::I32(1), Field::text("1"), Field::Void);
        let mode = |mode: &'static str| ("x-match", Field::text(mode));
        let cases: &[Case<'_>] = &[
            (&[("a", one.clone())], &[("a", one.clone())], true),
            (&[("a", one.clone())], &[("a", text.clone())], false),
            (&[("a", one.clone())], &[("a", Field::I64(1))], true),
            (&[("a", one.clone())], &[("a", Field::F64(1.0))], false),
            (&[("a", one.clone())], &[("a", Field::Bool(true))], false),
            (&[("a", text.clone())], &[("a", Field::Bytes("1".into()))], true),
            (&[("a", one.clone())], &[("a", text.clone()), ("a", one.clone())], true),
            (&[("a", one.clone())], &[("a", one.clone()), ("a", text.clone())], false),
            (&[mode("any")], &[], false),
            (&[("a", void.clone())], &[("a", text.clone())], true),
            (&[("a", void)], &[], false),
            (&[], &[], true),
            (&[mode("any")], &[("a", one.clone())], false),
            (&[mode("any"), ("a", one.clone()), ("b", one.clone())], &[("b", one.clone())], true),
            (&[mode("all"), ("a", one.clone()), ("b", one.clone())], &[("b", one.clone())], false),
            (&[mode("all"), ("x-a", one.clone())], &[], true),
            (&[mode("all-with-x"), ("x-a", one.clone())], &[], false),
            (&[mode("any-with-x"), ("x-a", one.clone())], &[("x-a", one.clone())], true),
            (&[mode("any"), ("x-a", one.clone())], &[("x-a", one)], false),
        ];
        for (binding, headers, expected) in cases {
            assert_eq!(matched(binding, headers), *expected, "{binding:?} against {headers:?}");
        }
    }

    #[test]
    fn an_unknown_x_match_is_refused() {
        let bad = table_of(&[("x-match", Field::text("some"))]);
        let text = "Invalid x-match field value <<\"some\">>; expected all, any, all-with-x, or any-with-x";
        assert_eq!(check(&bad).unwrap_err().text(), text);
        let text = "Invalid x-match field type bool (value true); expected longstr";
        assert_eq!(check(&table_of(&[("x-match", Field::Bool(true))])).unwrap_err().text(), text);
    }
}
