//! The exchanges, queues and bindings of one space, and what is built in. Plain data under the vhost's lock.

use super::queue::Queue;
use super::refused::Refused;
use super::route::{Bound, Calls, Routes};
use super::vhost::Actor;
use crate::model::identity::Action;
use crate::model::table::Table;
use crate::model::topology::{CALL_EXCHANGE, EVENT_EXCHANGE, ExchangeKind, ExchangeSpec};
use crate::wire::amqp::table;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

#[derive(Debug, Default)]
pub(super) struct ExchangeStats {
    pub published: AtomicU64,
    pub routed: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Exchange {
    pub name: Arc<str>,
    pub spec: ExchangeSpec,
    pub routes: Routes,
    pub bindings: BTreeMap<u64, Binding>,
    by_identity: HashMap<Identity, u64>,
    pub stats: Arc<ExchangeStats>,
}

#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub queue: Arc<Queue>,
    pub key: Arc<str>,
    pub arguments: Table,
}

/// Two bindings are the same if queue, key and arguments are.
type Identity = (Arc<str>, Arc<str>, Vec<u8>);

#[derive(Debug)]
pub(super) struct Topology {
    pub exchanges: HashMap<Arc<str>, Exchange>,
    pub queues: HashMap<Arc<str>, Arc<Queue>>,
    /// By queue: the exchanges it is bound to, with the binding's id.
    bound_to: HashMap<Arc<str>, Vec<(Arc<str>, u64)>>,
    next_binding: u64,
    binding_count: usize,
    /// Of the default exchange.
    pub default_stats: Arc<ExchangeStats>,
}

/// The exchanges every space has.
const BUILT_IN: &[(&str, ExchangeKind)] = &[
    ("amq.direct", ExchangeKind::Direct),
    ("amq.fanout", ExchangeKind::Fanout),
    ("amq.topic", ExchangeKind::Topic),
    ("amq.headers", ExchangeKind::Headers),
    ("amq.match", ExchangeKind::Headers),
    (CALL_EXCHANGE, ExchangeKind::Topic),
    (EVENT_EXCHANGE, ExchangeKind::Topic),
];

/// Whether only the broker may use a name like this.
pub(super) fn reserved_prefix(name: &str) -> Option<&'static str> {
    ["amq.", "reactor."].into_iter().find(|prefix| name.starts_with(prefix))
}

impl Exchange {
    pub fn new(spec: ExchangeSpec) -> Self {
        let routes = if spec.name == CALL_EXCHANGE { Routes::Call(Calls::default()) } else { Routes::new(spec.kind) };
        let name = spec.name.as_str().into();
        Exchange { name, spec, routes, bindings: BTreeMap::new(), by_identity: HashMap::new(), stats: Arc::default() }
    }

    /// Whether `actor` may bind to it with this key; only topic exchanges ask that.
    pub fn must_read(&self, key: &str, actor: Actor<'_>, space: &str) -> Result<(), Refused> {
        match self.spec.kind {
            ExchangeKind::Topic => actor.must_topic(Action::Read, &self.name, key, space),
            _ => Ok(()),
        }
    }

    fn built_in(name: &str, kind: ExchangeKind) -> Self {
        let (name, arguments) = (name.to_owned(), Table::new());
        Exchange::new(ExchangeSpec { name, kind, durable: true, auto_delete: false, internal: false, arguments })
    }
}

fn identity(queue: &Arc<str>, key: &str, arguments: &Table) -> Identity {
    (queue.clone(), key.into(), table::encoded(arguments))
}

impl Topology {
    pub fn new() -> Self {
        let exchanges = BUILT_IN.iter().map(|(name, kind)| Exchange::built_in(name, *kind));
        Topology {
            exchanges: exchanges.map(|exchange| (exchange.name.clone(), exchange)).collect(),
            queues: HashMap::new(),
            bound_to: HashMap::new(),
            next_binding: 0,
            binding_count: 0,
            default_stats: Arc::default(),
        }
    }

    /// False if it was bound so before. The exchange must exist.
    pub fn bind(&mut self, exchange: &str, queue: &Arc<Queue>, key: &str, arguments: &Table) -> bool {
        let Some(exchange) = self.exchanges.get_mut(exchange) else { return false };
        let identity = identity(&queue.name, key, arguments);
        if exchange.by_identity.contains_key(&identity) {
            return false;
        }
        let id = self.next_binding;
        self.next_binding += 1;
        self.binding_count += 1;
        exchange.routes.insert(key, arguments, Bound { id, queue: queue.clone() });
        let binding = Binding { queue: queue.clone(), key: identity.1.clone(), arguments: arguments.clone() };
        exchange.bindings.insert(id, binding);
        exchange.by_identity.insert(identity, id);
        self.bound_to.entry(queue.name.clone()).or_default().push((exchange.name.clone(), id));
        true
    }

    /// False if there was no such binding. An auto-delete exchange goes with its last one.
    pub fn unbind(&mut self, exchange: &str, queue: &Arc<str>, key: &str, arguments: &Table) -> bool {
        let Some(found) = self.exchanges.get(exchange) else { return false };
        let Some(id) = found.by_identity.get(&identity(queue, key, arguments)).copied() else { return false };
        if let Some(list) = self.bound_to.get_mut(queue) {
            list.retain(|(_, bound)| *bound != id);
        }
        self.drop_binding(exchange, id);
        true
    }

    fn drop_binding(&mut self, exchange: &str, id: u64) {
        let Some(found) = self.exchanges.get_mut(exchange) else { return };
        let Some(binding) = found.bindings.remove(&id) else { return };
        self.binding_count -= 1;
        found.routes.remove(&binding.key, id);
        found.by_identity.remove(&identity(&binding.queue.name, &binding.key, &binding.arguments));
        if found.spec.auto_delete && found.bindings.is_empty() {
            self.exchanges.remove(exchange);
        }
    }

    /// Takes a queue out with all its bindings. False if it is not (or no longer) the one of that name.
    pub fn remove_queue(&mut self, queue: &Arc<Queue>) -> bool {
        if !self.queues.get(&queue.name).is_some_and(|found| Arc::ptr_eq(found, queue)) {
            return false;
        }
        self.queues.remove(&queue.name);
        for (exchange, id) in self.bound_to.remove(&queue.name).unwrap_or_default() {
            self.drop_binding(&exchange, id);
        }
        true
    }

    /// Returns the queues that were bound to it.
    pub fn remove_exchange(&mut self, name: &str) -> Vec<Arc<Queue>> {
        let Some(removed) = self.exchanges.remove(name) else { return Vec::new() };
        self.binding_count -= removed.bindings.len();
        for (id, binding) in &removed.bindings {
            if let Some(list) = self.bound_to.get_mut(&binding.queue.name) {
                list.retain(|(_, bound)| bound != id);
            }
        }
        removed.bindings.into_values().map(|binding| binding.queue).collect()
    }

    /// Bindings of one queue: exchange and binding.
    pub fn bindings_of<'a>(&'a self, queue: &str) -> impl Iterator<Item = (&'a Exchange, &'a Binding)> {
        let list = self.bound_to.get(queue).map(Vec::as_slice).unwrap_or_default();
        list.iter().filter_map(|(exchange, id)| {
            let exchange = self.exchanges.get(exchange)?;
            Some((exchange, exchange.bindings.get(id)?))
        })
    }

    pub fn binding_count(&self) -> usize {
        self.binding_count
    }
}
