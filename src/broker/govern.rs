//! What holds in a space besides its topology (limits, policies, what queues are when nobody says), and the end of a space or of
//! a user's connections.

use super::core::Broker;
use super::effects::Effects;
use super::link::Link;
use super::queue::{self, Queue, QueueSettings};
use super::refused::Refused;
use super::vhost::Vhost;
use crate::model::account::UserLimits;
use crate::model::catalog::SpaceRules;
use crate::model::change::{Change, Thing, Verb};
use crate::model::identity::Principal;
use crate::model::policy::Policies;
use crate::model::table::{Field, Table};
use crate::model::topology::{DestinationKind, ExchangeSpec, QueueSpec};
use std::sync::{Arc, PoisonError};

/// Learns what clients define by AMQP: queues, exchanges and bindings that last. Called without any broker lock held; must not
/// block.
pub trait DefinitionWatch: Send + Sync {
    fn changed(&self, change: &Change, by: &Principal);
}

impl Broker {
    /// Closes the connections of a space with 320 and deletes it with all it holds. False if there is none of that name.
    pub fn delete_vhost(&self, name: &str) -> bool {
        let removed = self.vhosts.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        let Some(vhost) = removed else { return false };
        let why = format!("vhost '{name}' is deleted");
        self.links().iter().filter(|link| *link.space == *name).for_each(|link| link.ask_to_close(&why));
        vhost.end();
        self.shared.announce("vhost.deleted", || Table::new().with("name", Field::text(name)));
        true
    }

    /// Closes the connections of a user with 320.
    pub fn close_connections_of_user(&self, user: &str, why: &str) {
        self.links().iter().filter(|link| *link.user == *user).for_each(|link| link.ask_to_close(why));
    }

    /// Has `watch` told of what clients define. Once.
    pub fn watch(&self, watch: Arc<dyn DefinitionWatch>) {
        let _ = self.shared.watch.set(watch);
    }

    /// What users may do has changed: nothing that was found allowed before counts any more.
    pub fn permissions_changed(&self) {
        self.vhosts().iter().for_each(|vhost| vhost.changed());
    }

    /// What this broker tells clients it is called.
    pub fn cluster_name(&self) -> Arc<str> {
        self.shared.cluster_name.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn name_cluster(&self, name: &str) {
        *self.shared.cluster_name.write().unwrap_or_else(PoisonError::into_inner) = name.into();
    }

    /// Whether one more connection of `user` to `space` is within the limits of both; the error says which is reached.
    pub fn admits_connection(&self, space: &str, user: &str, limits: UserLimits) -> Result<(), Refused> {
        let Some(vhost) = self.vhost(space) else { return Err(Refused::NotAllowed(format!("vhost {space} not found"))) };
        let links = self.links();
        let count = |of: &dyn Fn(&Link) -> bool| links.iter().filter(|link| of(link)).count();
        if let Some(limit) = vhost.rules.load().limits.max_connections.and_then(reached(|| count(&|link| *link.space == *space)))
        {
            return Err(Refused::NotAllowed(format!(
                "access to vhost '{space}' refused for user '{user}': connection limit ({limit}) is reached"
            )));
        }
        if let Some(limit) = limits.max_connections.and_then(reached(|| count(&|link| *link.user == *user))) {
            return Err(Refused::NotAllowed(format!(
                "connection refused for user '{user}': user connection limit ({limit}) is reached"
            )));
        }
        Ok(())
    }

    /// Whether the channels that `user` has open, the newest among them, are within its limit.
    pub fn admits_channel(&self, user: &str, limits: UserLimits) -> Result<(), Refused> {
        let count = || -> usize {
            let own = self.links().into_iter().filter(|link| *link.user == *user);
            own.map(|link| link.outbox().channels.iter().count()).sum()
        };
        match limits.max_channels.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| count() as u64 > *limit) {
            Some(limit) => Err(Refused::NotAllowed(format!(
                "number of channels opened for user '{user}' has reached the maximum allowed user limit of ({limit})"
            ))),
            None => Ok(()),
        }
    }
}

/// The limit, if so many are there already. A negative one is none.
fn reached(count: impl Fn() -> usize) -> impl Fn(i64) -> Option<u64> {
    move |limit| u64::try_from(limit).ok().filter(|limit| count() as u64 >= *limit)
}

impl Vhost {
    /// What holds in it from now on.
    pub fn rule(&self, rules: SpaceRules) {
        self.taps.set_firehose(rules.space.tracing);
        self.rules.store(Arc::new(rules));
    }

    pub(super) fn policies(&self) -> Arc<dyn Policies> {
        self.policies.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether these still hold. To be asked under the topology's lock: whoever sets others later finds what was added under it.
    pub(super) fn still_rule(&self, policies: &Arc<dyn Policies>) -> bool {
        Arc::ptr_eq(policies, &self.policies())
    }

    /// From now on these policies hold, for what exists too.
    pub fn set_policies(&self, policies: Arc<dyn Policies>) {
        *self.policies.write().unwrap_or_else(PoisonError::into_inner) = policies.clone();
        self.apply_exchange_policies(&*policies);
        let queues: Vec<Arc<Queue>> = self.topology().queues.values().cloned().collect();
        let mut effects = Effects::new(self.shared.clock.now());
        for queue in queues {
            // It was accepted when the queue was declared.
            let Ok(settings) = QueueSettings::parse(&queue.name, &queue.spec.arguments, self.name()) else { continue };
            let policy = policies.of_queue(&queue.name, settings.kind);
            let declared = queue::Declared { settings: &settings, vhost: self.me.clone() };
            if queue.set_policy(&declared, policy, &mut effects) {
                self.note_rules(&queue);
            }
        }
        effects.run_quietly(&self.shared);
    }

    /// A queue has new rules.
    pub(super) fn note_rules(&self, queue: &Queue) {
        self.shared.timeouts.note(queue.consumer_timeout());
        if queue.may_lose_letters() {
            tracing::warn!(
                queue = &*queue.name,
                space = &**self.name(),
                "dead-letter-strategy at-least-once needs overflow reject-publish; without it letters are delivered at most once"
            );
        }
    }

    /// Whether one more queue is within the space's limit.
    pub(super) fn admits_queue(&self, name: &str, count: usize) -> Result<(), Refused> {
        match self.rules.load().limits.max_queues.and_then(reached(|| count)) {
            Some(limit) => {
                let space = self.name();
                let text = format!("cannot declare queue '{name}': queue limit in vhost '{space}' ({limit}) is reached");
                Err(Refused::Precondition(text))
            }
            None => Ok(()),
        }
    }

    pub(super) fn exchange_spec(&self, name: &str) -> Option<ExchangeSpec> {
        self.topology().exchanges.get(name).map(|exchange| exchange.spec.clone())
    }

    /// Tells who keeps account that a client made or deleted something that lasts.
    pub(super) fn tell_change(&self, verb: Verb, thing: Thing, by: &Principal) {
        let Some(watch) = self.shared.watch.get() else { return };
        if self.lasts(&thing) {
            watch.changed(&Change { space: self.name().clone(), verb, thing }, by);
        }
    }

    fn lasts(&self, thing: &Thing) -> bool {
        let queue = |spec: &QueueSpec| spec.durable && !spec.exclusive && !spec.auto_delete;
        let exchange = |spec: &ExchangeSpec| spec.durable && !spec.auto_delete;
        match thing {
            Thing::Queue(spec) => queue(spec),
            Thing::Exchange(spec) => exchange(spec),
            Thing::Binding(spec) => {
                let destination = match spec.destination_kind {
                    DestinationKind::Queue => self.find_queue(&spec.destination).is_some_and(|found| queue(&found.spec)),
                    DestinationKind::Exchange => self.exchange_spec(&spec.destination).is_some_and(|spec| exchange(&spec)),
                };
                destination && self.exchange_spec(&spec.source).is_some_and(|spec| exchange(&spec))
            }
            Thing::Entry(_) => false,
        }
    }

    /// Everything in it goes; who still consumes is told.
    fn end(&self) {
        let queues: Vec<Arc<Queue>> = self.topology().queues.values().cloned().collect();
        let mut effects = Effects::new(self.shared.clock.now());
        queues.iter().for_each(|queue| self.end_queue(queue, false, &mut effects));
        effects.run(&self.shared);
        self.changed();
    }
}
