//! `amq.rabbitmq.event` of the default space: what is created and deleted, who connects and consumes, wherever in the broker. Keys and
//! headers are those of RabbitMQ's event exchange. Nothing is built while nothing is bound to it.

use super::core::Broker;
use super::effects::Effects;
use super::republish::Republished;
use super::shared::Shared;
use super::topology::Binding;
use super::vhost::Vhost;
use crate::model::table::{Field, Table};
use crate::model::topology::{DEFAULT_SPACE, EVENTS_EXCHANGE};
use crate::wire::amqp::{Properties, PropertyList, RawTable, table};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, Weak};

#[derive(Debug, Default)]
pub(super) struct Events {
    bound: AtomicBool,
    /// The default space, as it is now: it may be deleted and made again.
    home: RwLock<Weak<Vhost>>,
}

const DELIVERY_PERSISTENT: u8 = 2;

impl Events {
    /// Tells of events in `vhost` from now on, if it is the default space. To be called before anybody knows of the space.
    pub fn live_in(&self, vhost: &Arc<Vhost>) {
        if **vhost.name() == *DEFAULT_SPACE {
            *self.home.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(vhost);
            self.bound.store(false, Ordering::Relaxed);
        }
    }

    fn home(&self) -> Option<Arc<Vhost>> {
        self.home.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }
}

impl Shared {
    /// Tells of an event (`queue.created`) if anybody listens. To be called without any lock.
    pub fn announce(&self, key: &str, headers: impl FnOnce() -> Table) {
        if self.events.bound.load(Ordering::Relaxed)
            && let Some(home) = self.events.home()
        {
            home.publish_event(key, headers());
        }
    }
}

impl Broker {
    /// Tells of an event that is not the broker's own, such as `user.created`, by its key and RabbitMQ's names for what it says.
    pub fn announce(&self, key: &str, headers: impl FnOnce() -> Table) {
        self.shared.announce(key, headers);
    }
}

impl Vhost {
    /// To be called when bindings of `exchange` came or went.
    pub(super) fn bindings_of_events_changed(&self, exchange: &str) {
        let is_home = || self.shared.events.home().is_some_and(|home| std::ptr::eq(&*home, self));
        if exchange == EVENTS_EXCHANGE && is_home() {
            let bound = self.topology().exchanges.get(EVENTS_EXCHANGE).is_some_and(|exchange| !exchange.bindings.is_empty());
            self.shared.events.bound.store(bound, Ordering::Relaxed);
        }
    }

    fn publish_event(&self, key: &str, headers: Table) {
        let now_ms = self.shared.clock.unix_nanos() / 1_000_000;
        let time = Table::new().with("timestamp_in_ms", Field::I64(i64::try_from(now_ms).unwrap_or(i64::MAX)));
        let headers = table::encoded(&Table(time.0.into_iter().chain(headers.0).collect()));
        let properties = PropertyList {
            headers: RawTable::check(&headers).ok(),
            delivery_mode: Some(DELIVERY_PERSISTENT),
            timestamp: Some(now_ms / 1000),
            ..PropertyList::default()
        }
        .to_bytes();
        let (exchange, properties) = (EVENTS_EXCHANGE, Properties::trusted(&properties));
        let event = Republished { exchange, key, properties, body: &[], large: None, trace: None, before: None };
        let mut effects = Effects::new(self.shared.clock.now());
        self.republish(event, |_| true, &mut effects);
        effects.run_quietly(&self.shared);
    }

    /// Name and space of something, and who did it.
    pub(super) fn event_of(&self, name: &str, user: &str) -> Table {
        Table::new()
            .with("name", Field::text(name))
            .with("vhost", Field::text(&**self.name()))
            .with("user_who_performed_action", Field::text(user))
    }

    /// `binding.created` or `binding.deleted`.
    pub(super) fn announce_binding(&self, what: &str, source: &str, binding: &Binding, user: &str) {
        self.shared.announce(what, || {
            Table::new()
                .with("source_name", Field::text(source))
                .with("source_kind", Field::text("exchange"))
                .with("destination_name", Field::text(&**binding.to.name()))
                .with("destination_kind", Field::text(binding.to.kind().as_str()))
                .with("routing_key", Field::text(&*binding.key))
                .with("arguments", Field::Table(binding.arguments.clone()))
                .with("vhost", Field::text(&**self.name()))
                .with("user_who_performed_action", Field::text(user))
        });
    }
}
