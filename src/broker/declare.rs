//! Declaring and deleting queues: what RabbitMQ checks, in its words. Exchanges and bindings are `exchanges`'s.

use super::config::ConnectionId;
use super::effects::Effects;
use super::queue::{self, Consumer, InUse, Queue, QueueSettings};
use super::refused::Refused;
use super::reply::{Address, REPLY_QUEUE};
use super::tap::INTERNAL_USER;
use super::topology::reserved_prefix;
use super::vhost::{Actor, Vhost};
use crate::kernel::limit;
use crate::kernel::rng;
use crate::model::identity::Action;
use crate::model::policy::QueueKind;
use crate::model::table::Field;
use crate::model::topology::{QUEUE_TYPE, QueueSpec};
use std::sync::Arc;

/// What a declaration of a queue answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declared {
    pub name: Arc<str>,
    pub created: bool,
    pub ready: u64,
    pub consumers: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteRule {
    pub if_unused: bool,
    pub if_empty: bool,
}

/// A queue that is to be.
struct New<'a> {
    spec: QueueSpec,
    settings: &'a QueueSettings,
    owner: Option<ConnectionId>,
}

impl Vhost {
    /// Creates, or checks that what exists is equivalent. An empty name asks for a generated one.
    pub fn declare_queue(&self, spec: &QueueSpec, actor: Actor<'_>) -> Result<Declared, Refused> {
        let space = self.name();
        let generated = spec.name.is_empty();
        let name = if generated { format!("amq.gen-{}", rng::token::<16>()) } else { spec.name.clone() };
        actor.must(Action::Configure, "queue", &name, space)?;
        let (queue, kind) = loop {
            if let Some(queue) = self.find_queue(&name) {
                self.must_own(&queue, actor)?;
                self.shared.counts.queues_declared.add(1);
                must_be_equivalent_queue(&queue.spec, spec, space)?;
                return Ok(self.declared(&queue, false));
            }
            if let Some(prefix) = reserved_prefix(&name).filter(|_| !generated) {
                return Err(Refused::AccessRefused(format!("queue name '{name}' contains reserved prefix '{prefix}*'")));
            }
            let settings = check_queue(&name, spec, actor, space)?;
            let owner = actor.connection.filter(|_| spec.exclusive);
            let new = New { spec: QueueSpec { name: name.clone(), ..spec.clone() }, settings: &settings, owner };
            if let Some(queue) = self.add_queue(new)? {
                break (queue, settings.kind);
            }
        };
        self.note_rules(&queue);
        self.shared.counts.queues_declared.add(1);
        self.shared.counts.queues_created.add(1);
        self.changed();
        self.shared.announce("queue.created", || {
            let of = &queue.spec;
            self.event_of(&queue.name, &actor.principal.user)
                .with("type", Field::text(format!("rabbit_{}_queue", kind.as_str())))
                .with("durable", Field::Bool(of.durable))
                .with("auto_delete", Field::Bool(of.auto_delete))
                .with("exclusive", Field::Bool(of.exclusive))
                .with("arguments", Field::Table(of.arguments.clone()))
        });
        Ok(self.declared(&queue, true))
    }

    /// `None` if there is one of that name by now, or other policies hold: it is to be declared again.
    fn add_queue(&self, new: New<'_>) -> Result<Option<Arc<Queue>>, Refused> {
        let New { spec, settings, owner } = new;
        let (space, name) = (self.name(), spec.name.clone());
        // Asked without the lock, under which everybody would wait for a slow pattern.
        let policies = self.policies();
        let policy = policies.of_queue(&name, settings.kind);
        let mut topology = self.topology_mut();
        if topology.queues.contains_key(name.as_str()) || !self.still_rule(&policies) {
            return Ok(None);
        }
        if topology.queues.len() >= limit::QUEUES_MAX {
            let text =
                format!("cannot declare queue '{name}': queue limit in vhost '{space}' ({}) is reached", limit::QUEUES_MAX);
            return Err(Refused::Precondition(text));
        }
        self.admits_queue(&name, topology.queues.len())?;
        let mut effects = Effects::new(self.shared.clock.now());
        let queue = Queue::new(spec, owner, effects.now);
        queue.rule(&queue::Declared { settings, vhost: self.me.clone() }, policy, &mut effects);
        queue.be_seen_by(&self.taps);
        topology.queues.insert(queue.name.clone(), queue.clone());
        drop(topology);
        effects.run_quietly(&self.shared);
        Ok(Some(queue))
    }

    /// Asks for a queue without creating it.
    pub fn declare_queue_passively(&self, name: &str, actor: Actor<'_>) -> Result<Declared, Refused> {
        if Address::is_address(name) || name == REPLY_QUEUE {
            let alive = name == REPLY_QUEUE || self.replies.find(name).is_some();
            let declared = || Declared { name: name.into(), created: false, ready: 0, consumers: 1 };
            return alive.then(declared).ok_or_else(|| self.no_queue(name));
        }
        Ok(self.declared(&self.queue_for(name, actor)?, false))
    }

    fn declared(&self, queue: &Arc<Queue>, created: bool) -> Declared {
        let mut effects = Effects::new(self.shared.clock.now());
        queue.declared_again(&mut effects);
        effects.run_quietly(&self.shared);
        Declared { name: queue.name.clone(), created, ready: queue.ready_count(), consumers: queue.consumer_count().into() }
    }

    /// Messages that went with it; `None` if there was none, which is no error.
    pub fn delete_queue(&self, name: &str, rule: DeleteRule, actor: Actor<'_>) -> Result<Option<u64>, Refused> {
        let space = self.name();
        actor.must(Action::Configure, "queue", name, space)?;
        let Some(queue) = self.find_queue(name) else { return Ok(None) };
        self.must_own(&queue, actor)?;
        let mut effects = Effects::new(self.shared.clock.now());
        let closed = queue.close(rule.if_unused, rule.if_empty, &mut effects);
        let (count, consumers) = closed.map_err(|in_use| {
            let why = if in_use == InUse::Consumed { "in use" } else { "not empty" };
            Refused::Precondition(format!("queue '{name}' in vhost '{space}' {why}"))
        })?;
        self.forget_queue(&queue, consumers, &actor.principal.user, &mut effects);
        effects.run(&self.shared);
        Ok(Some(count))
    }

    /// Deletes a queue because its time has come: auto-delete, or its connection closed.
    pub(super) fn end_queue(&self, queue: &Arc<Queue>, if_unused: bool, effects: &mut Effects) {
        if let Ok((_, consumers)) = queue.close(if_unused, false, effects) {
            self.forget_queue(queue, consumers, INTERNAL_USER, effects);
        }
    }

    /// Takes a closed queue out of the topology and tells its consumers; whoever listens hears once that `user` deleted it.
    fn forget_queue(&self, queue: &Arc<Queue>, consumers: Vec<Consumer>, user: &str, effects: &mut Effects) {
        let removed = self.topology_mut().remove_queue(queue);
        if let Some(removed) = removed {
            self.shared.counts.queues_deleted.add(1);
            self.removed(&removed, "its queue was deleted", user);
            self.shared.announce("queue.deleted", || self.event_of(&queue.name, user));
        }
        for consumer in consumers {
            consumer.link.cancelled_by_broker(&consumer, effects);
            self.reattach(&consumer.link, "its queue was deleted");
        }
    }

    /// Ready messages removed.
    pub fn purge_queue(&self, name: &str, actor: Actor<'_>) -> Result<u64, Refused> {
        actor.must(Action::Read, "queue", name, self.name())?;
        let queue = self.queue_for(name, actor)?;
        let mut effects = Effects::new(self.shared.clock.now());
        let count = queue.purge(&mut effects);
        effects.run(&self.shared);
        Ok(count)
    }
}

/// Reads a queue's arguments and checks what it may not be. Whoever lets it send dead letters must be allowed to do what that does:
/// read the queue and write to the exchange.
fn check_queue(name: &str, spec: &QueueSpec, actor: Actor<'_>, space: &str) -> Result<QueueSettings, Refused> {
    let settings = QueueSettings::parse(name, &spec.arguments, space)?;
    if settings.kind == QueueKind::Quorum {
        check_quorum(name, spec, space)?;
    }
    if let Some(exchange) = &settings.dead_letter_exchange {
        actor.must(Action::Read, "queue", name, space)?;
        actor.must(Action::Write, "exchange", exchange, space)?;
    }
    Ok(settings)
}

/// What RabbitMQ does not let a quorum queue be.
fn check_quorum(name: &str, spec: &QueueSpec, space: &str) -> Result<(), Refused> {
    let wrong = [(!spec.durable, "non-durable"), (spec.auto_delete, "auto-delete"), (spec.exclusive, "exclusive-owner")];
    match wrong.into_iter().find(|(wrong, _)| *wrong) {
        None => Ok(()),
        Some((_, property)) => {
            Err(Refused::Precondition(format!("invalid property '{property}' for queue '{name}' in vhost '{space}'")))
        }
    }
}

fn must_be_equivalent_queue(current: &QueueSpec, received: &QueueSpec, space: &str) -> Result<(), Refused> {
    let thing = format!("queue '{}' in vhost '{space}'", current.name);
    if received.exclusive != current.exclusive {
        return Err(Refused::Locked(format!(
            "cannot obtain exclusive access to locked {thing}. It could be originally declared on another connection or the \
             exclusive property value does not match that of the original declaration."
        )));
    }
    must_equal("durable", &thing, received.durable, current.durable)?;
    must_equal("auto_delete", &thing, received.auto_delete, current.auto_delete)?;
    let classic = Field::text("classic");
    let kind = |spec: &QueueSpec| spec.arguments.get(QUEUE_TYPE).cloned().unwrap_or_else(|| classic.clone());
    must_equal_argument(QUEUE_TYPE, &thing, Some(&kind(received)), Some(&kind(current)))?;
    let known = if kind(current) == classic { QueueKind::Classic } else { QueueKind::Quorum };
    let mut compared = QueueSettings::compared(known).iter().filter(|name| **name != QUEUE_TYPE);
    compared.try_for_each(|name| must_equal_argument(name, &thing, received.arguments.get(name), current.arguments.get(name)))
}

pub(super) fn must_equal<T: PartialEq + std::fmt::Display>(
    name: &str,
    thing: &str,
    received: T,
    current: T,
) -> Result<(), Refused> {
    match received == current {
        true => Ok(()),
        false => {
            let text = format!("inequivalent arg '{name}' for {thing}: received '{received}' but current is '{current}'");
            Err(Refused::Precondition(text))
        }
    }
}

/// Integers of any width are equal if their values are; two values differ in RabbitMQ's words without their types.
pub(super) fn must_equal_argument(
    name: &str,
    thing: &str,
    received: Option<&Field>,
    current: Option<&Field>,
) -> Result<(), Refused> {
    let integers = (received.and_then(Field::as_integer), current.and_then(Field::as_integer));
    if received == current || matches!(integers, (Some(received), Some(current)) if received == current) {
        return Ok(());
    }
    if let (Some(received), Some(current)) = (received, current) {
        return must_equal(name, thing, received.spelled().0, current.spelled().0);
    }
    let spelled = |field: Option<&Field>| match field.map(Field::spelled) {
        Some((value, kind)) => format!("the value '{value}' of type '{kind}'"),
        None => "none".into(),
    };
    let (received, current) = (spelled(received), spelled(current));
    let text = format!("inequivalent arg '{name}' for {thing}: received {received} but current is {current}");
    Err(Refused::Precondition(text))
}
