//! A change: one step from what is to what should be, small enough to be undone.

use super::catalog::{Entry, EntryKey};
use super::topology::{BindingSpec, DEFAULT_SPACE, DestinationKind, ExchangeSpec, QueueSpec};
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
    Update,
    Delete,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Thing {
    Exchange(ExchangeSpec),
    Queue(QueueSpec),
    Binding(BindingSpec),
    /// A space itself, a user, a policy, …
    Entry(Box<EntryChange>),
}

/// An entry of the catalogue as it was and as it is to be; at least one of them is there.
#[derive(Clone, Debug, PartialEq)]
pub struct EntryChange {
    pub key: EntryKey,
    pub was: Option<Entry>,
    pub is: Option<Entry>,
}

impl Change {
    pub fn create(space: &Arc<str>, thing: Thing) -> Self {
        Change { space: space.clone(), verb: Verb::Create, thing }
    }

    pub fn delete(space: &Arc<str>, thing: Thing) -> Self {
        Change { space: space.clone(), verb: Verb::Delete, thing }
    }

    /// Makes an entry of the catalogue be `is` instead of `was`. Entries of no space are told under the default one.
    pub fn entry(was: Option<Entry>, is: Option<Entry>) -> Option<Self> {
        let key = is.as_ref().or(was.as_ref())?.key();
        let verb = match (&was, &is) {
            (None, _) => Verb::Create,
            (Some(_), Some(_)) => Verb::Update,
            (Some(_), None) => Verb::Delete,
        };
        let space = key.space().unwrap_or(DEFAULT_SPACE).into();
        Some(Change { space, verb, thing: Thing::Entry(Box::new(EntryChange { key, was, is })) })
    }

    /// What takes it back. A deleted queue comes back without the messages it held, so only empty ones are deleted by a plan.
    pub fn inverse(&self) -> Self {
        let verb = match self.verb {
            Verb::Create => Verb::Delete,
            Verb::Delete => Verb::Create,
            Verb::Update => Verb::Update,
        };
        let thing = match &self.thing {
            Thing::Entry(change) => {
                let EntryChange { key, was, is } = (**change).clone();
                Thing::Entry(Box::new(EntryChange { key, was: is, is: was }))
            }
            other => other.clone(),
        };
        Change { space: self.space.clone(), verb, thing }
    }

    pub fn kind(&self) -> &'static str {
        match &self.thing {
            Thing::Entry(change) => change.key.kind(),
            Thing::Exchange(_) => "exchange",
            Thing::Queue(_) => "queue",
            Thing::Binding(_) => "binding",
        }
    }

    /// What people call it: `worker.orders`, `reactor.call > greeter with greeter.#`.
    pub fn name(&self) -> String {
        match &self.thing {
            Thing::Entry(change) => change.key.name(),
            Thing::Exchange(spec) => spec.name.clone(),
            Thing::Queue(spec) => spec.name.clone(),
            Thing::Binding(spec) => format!("{} > {} with {}", spec.source, spec.destination, spec.routing_key),
        }
    }

    /// The queue that its name names, unless the change takes the queue away.
    pub fn queue(&self) -> Option<&str> {
        match &self.thing {
            Thing::Queue(spec) => Some(spec.name.as_str()).filter(|_| self.verb != Verb::Delete),
            Thing::Binding(spec) => Some(spec.destination.as_str()).filter(|_| spec.destination_kind == DestinationKind::Queue),
            Thing::Exchange(_) | Thing::Entry(_) => None,
        }
    }
}

impl Verb {
    /// In the past, for happenings.
    pub fn done(self) -> &'static str {
        match self {
            Verb::Create => "created",
            Verb::Update => "changed",
            Verb::Delete => "deleted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(thing: Thing) -> Change {
        Change::create(&"/".into(), thing)
    }

    #[test]
    fn a_change_says_which_queue_it_concerns_while_there_is_one() {
        let queue = Thing::Queue(QueueSpec {
            name: "jobs of the night".to_owned(),
            durable: true,
            exclusive: false,
            auto_delete: false,
            arguments: Default::default(),
        });
        assert_eq!(change(queue.clone()).queue(), Some("jobs of the night"));
        assert_eq!(change(queue).inverse().queue(), None, "it is gone");
        let binding = |destination_kind| {
            Thing::Binding(BindingSpec {
                source: "reactor.event".to_owned(),
                destination: "audit".to_owned(),
                destination_kind,
                routing_key: "#".to_owned(),
                arguments: Default::default(),
            })
        };
        assert_eq!(change(binding(DestinationKind::Queue)).queue(), Some("audit"));
        assert_eq!(change(binding(DestinationKind::Exchange)).queue(), None);
    }
}
