//! Headers exchanges: the message's headers against a binding's arguments, by `x-match`.
//!
//! Values compare with their type (`'1'` is not `1`); void in a binding asks only for presence. Keys that begin with `x-` count only
//! under `all-with-x` and `any-with-x`. No `x-match` is `all`; of nothing, `all` is true and `any` is false.

use super::super::refused::Refused;
use super::{Bound, Found};
use crate::model::table::{Field, Table};
use crate::wire::amqp::RawTable;

#[derive(Debug, Default)]
pub(in crate::broker) struct Headers(Vec<Rule>);

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
                "Invalid x-match field value '{other}'; expected all, any, all-with-x, or any-with-x"
            ))),
            None => Err(Refused::Precondition("Invalid x-match field type; expected longstr".into())),
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
        let headers = headers.to_table();
        found.extend(self.0.iter().filter(|rule| rule.matches(&headers)).map(|rule| rule.bound.queue.clone()));
    }
}

impl Rule {
    fn matches(&self, headers: &Table) -> bool {
        let has =
            |(name, wanted): &(String, Field)| headers.get(name).is_some_and(|field| *wanted == Field::Void || field == wanted);
        if self.any { self.wanted.iter().any(has) } else { self.wanted.iter().all(has) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{names, queue};
    use super::super::{Bound, Routes};
    use super::*;

    /// Arguments of the binding, headers of the message, whether they match.
    type Case<'a> = (&'a [(&'static str, Field)], &'a [(&'static str, Field)], bool);
    use crate::model::topology::ExchangeKind;
    use crate::wire::amqp::table;

    fn table_of(pairs: &[(&str, Field)]) -> Table {
        Table(pairs.iter().map(|(name, field)| ((*name).to_owned(), field.clone())).collect())
    }

    fn matched(binding: &[(&str, Field)], headers: &[(&str, Field)]) -> bool {
        let mut routes = Routes::new(ExchangeKind::Headers);
        let arguments = table_of(binding);
        routes.check("", &arguments).expect("a good binding");
        routes.insert("", &arguments, Bound { id: 1, queue: queue("q") });
        let encoded = table::encoded(&table_of(headers));
        names(&routes, "ignored", Some(RawTable::check(&encoded).expect("good"))) == "q"
    }

    #[test]
    fn x_match_decides_how_headers_are_compared() {
        let (one, text, void) = (Field::I32(1), Field::text("1"), Field::Void);
        let mode = |mode: &'static str| ("x-match", Field::text(mode));
        let cases: &[Case<'_>] = &[
            (&[("a", one.clone())], &[("a", one.clone())], true),
            (&[("a", one.clone())], &[("a", text.clone())], false),
            (&[("a", one.clone())], &[("a", Field::I64(1))], false),
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
        assert!(check(&bad).unwrap_err().text().starts_with("Invalid x-match field value 'some'"));
        assert!(check(&table_of(&[("x-match", Field::Bool(true))])).is_err());
    }
}
