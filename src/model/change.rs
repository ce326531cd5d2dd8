//! A change: one step from what is to what should be, small enough to be undone.

use super::topology::{BindingSpec, ExchangeSpec, QueueSpec};
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub space: Arc<str>,
    pub verb: Verb,
    pub thing: Thing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verb {
    Create,
    Delete,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Thing {
    /// The space itself.
    Space,
    Exchange(ExchangeSpec),
    Queue(QueueSpec),
    Binding(BindingSpec),
}

impl Change {
    pub fn create(space: &Arc<str>, thing: Thing) -> Self {
        Change { space: space.clone(), verb: Verb::Create, thing }
    }

    pub fn delete(space: &Arc<str>, thing: Thing) -> Self {
        Change { space: space.clone(), verb: Verb::Delete, thing }
    }

    /// What takes it back. A deleted queue comes back without the messages it held, so only empty ones are deleted by a plan.
    pub fn inverse(&self) -> Self {
        let verb = match self.verb {
            Verb::Create => Verb::Delete,
            Verb::Delete => Verb::Create,
        };
        Change { space: self.space.clone(), verb, thing: self.thing.clone() }
    }

    pub fn kind(&self) -> &'static str {
        match self.thing {
            Thing::Space => "space",
            Thing::Exchange(_) => "exchange",
            Thing::Queue(_) => "queue",
            Thing::Binding(_) => "binding",
        }
    }

    /// What people call it: `worker.orders`, `reactor.call > greeter with greeter.#`.
    pub fn name(&self) -> String {
        match &self.thing {
            Thing::Space => self.space.to_string(),
            Thing::Exchange(spec) => spec.name.clone(),
            Thing::Queue(spec) => spec.name.clone(),
            Thing::Binding(spec) => format!("{} > {} with {}", spec.source, spec.destination, spec.routing_key),
        }
    }
}

impl Verb {
    /// In the past, for happenings.
    pub fn done(self) -> &'static str {
        match self {
            Verb::Create => "created",
            Verb::Delete => "deleted",
        }
    }
}
