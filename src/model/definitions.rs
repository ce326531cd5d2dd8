//! What should exist: spaces with their exchanges, queues and bindings, and the catalogue of everything else. Only durable things
//! are definitions; transient, exclusive and auto-delete ones live in the broker alone.

use super::catalog::Catalog;
use super::table::{Field, Table};
use super::topology::{BindingSpec, ExchangeSpec, QueueSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Definitions {
    /// Users, permissions, policies, parameters, and what is said of spaces.
    pub catalog: Catalog,
    pub spaces: BTreeMap<Arc<str>, SpaceDefinitions>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpaceDefinitions {
    pub exchanges: Vec<ExchangeSpec>,
    pub queues: Vec<QueueSpec>,
    pub bindings: Vec<BindingSpec>,
}

/// Whether two argument tables mean the same: order does not count, nor the width an integer was written in.
pub fn same_arguments(left: &Table, right: &Table) -> bool {
    let has_all = |these: &Table, those: &Table| {
        these.iter().all(|(key, value)| those.get(key).is_some_and(|other| same_field(value, other)))
    };
    has_all(left, right) && has_all(right, left)
}

fn same_field(left: &Field, right: &Field) -> bool {
    match (left, right) {
        (Field::Table(left), Field::Table(right)) => same_arguments(left, right),
        (Field::Array(left), Field::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same_field(left, right))
        }
        _ => match (left.as_integer(), right.as_integer()) {
            (Some(left), Some(right)) => left == right,
            _ => left == right,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_compared_by_meaning() {
        let narrow = Table::new().with("x-max-length", Field::I32(5)).with("x-queue-type", Field::text("classic"));
        let wide = Table::new().with("x-queue-type", Field::text("classic")).with("x-max-length", Field::I64(5));
        assert!(same_arguments(&narrow, &wide));
        assert!(!same_arguments(&narrow, &Table::new()));
        assert!(!same_arguments(&Table::new(), &narrow));
        assert!(!same_arguments(
            &narrow,
            &Table::new().with("x-max-length", Field::I32(6)).with("x-queue-type", Field::text("classic"))
        ));
    }
}
