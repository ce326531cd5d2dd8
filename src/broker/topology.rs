//! The exchanges, queues and bindings of one space, and what is built in. Plain data under the vhost's lock.

use super::queue::Queue;
use super::refused::Refused;
use super::route::{Bound, Calls, Routes, Target};
use super::vhost::Actor;
use crate::model::identity::Action;
use crate::model::table::Table;
use crate::model::topology::{
    CALL_EXCHANGE, DEFAULT_SPACE, DestinationKind, EVENT_EXCHANGE, EVENTS_EXCHANGE, ExchangeKind, ExchangeSpec, TRACE_EXCHANGE,
};
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
    /// Where a message goes that no binding takes: its argument's word, else its policy's.
    pub alternate: Option<Arc<str>>,
    /// Name of the policy that applies.
    pub policy: Option<Arc<str>>,
    pub stats: Arc<ExchangeStats>,
}

#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub to: Target,
    pub key: Arc<str>,
    pub arguments: Table,
}

/// Two bindings of an exchange are the same if destination, key and arguments are.
type Identity = (Place, Arc<str>, Vec<u8>);
/// A queue or an exchange by its name.
type Place = (DestinationKind, Arc<str>);

impl Target {
    pub fn name(&self) -> &Arc<str> {
        match self {
            Target::Queue(queue) => &queue.name,
            Target::Exchange(name) => name,
        }
    }

    pub fn kind(&self) -> DestinationKind {
        match self {
            Target::Queue(_) => DestinationKind::Queue,
            Target::Exchange(_) => DestinationKind::Exchange,
        }
    }

    fn place(&self) -> Place {
        (self.kind(), self.name().clone())
    }
}

#[derive(Debug)]
pub(super) struct Topology {
    pub exchanges: HashMap<Arc<str>, Exchange>,
    pub queues: HashMap<Arc<str>, Arc<Queue>>,
    /// By destination and the binding's id: the exchanges that lead there.
    bound_to: HashMap<Place, BTreeMap<u64, Arc<str>>>,
    next_binding: u64,
    binding_count: usize,
    /// Of the default exchange.
    pub default_stats: Arc<ExchangeStats>,
}

/// What went with something: bindings, and exchanges that were to go with their last binding.
#[derive(Debug, Default)]
pub(super) struct Removed {
    pub exchanges: Vec<Arc<str>>,
    /// Each with the exchange it was of.
    pub bindings: Vec<(Arc<str>, Binding)>,
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

pub(super) const ALTERNATE: &str = "alternate-exchange";

impl Exchange {
    pub fn new(spec: ExchangeSpec) -> Self {
        let routes = match spec.name == CALL_EXCHANGE {
            true => Routes::Call(Calls::default()),
            false => Routes::new(spec.kind, &spec.arguments),
        };
        let name = spec.name.as_str().into();
        let alternate = spec.arguments.get(ALTERNATE).and_then(|field| field.as_str()).map(Arc::from);
        Exchange {
            name,
            spec,
            routes,
            bindings: BTreeMap::new(),
            by_identity: HashMap::new(),
            alternate,
            policy: None,
            stats: Arc::default(),
        }
    }

    /// Whether `actor` may bind to it with this key; only topic exchanges ask that.
    pub fn must_read(&self, key: &str, actor: Actor<'_>, space: &str) -> Result<(), Refused> {
        match self.spec.kind {
            ExchangeKind::Topic => actor.must_topic(Action::Read, &self.name, key, space),
            _ => Ok(()),
        }
    }

    fn built_in(name: &str, kind: ExchangeKind, internal: bool) -> Self {
        let (name, arguments) = (name.to_owned(), Table::new());
        Exchange::new(ExchangeSpec { name, kind, durable: true, auto_delete: false, internal, arguments })
    }
}

fn identity(place: Place, key: &str, arguments: &Table) -> Identity {
    (place, key.into(), table::encoded(arguments))
}

impl Topology {
    pub fn new(space: &str) -> Self {
        let inner = [TRACE_EXCHANGE].into_iter().chain((space == DEFAULT_SPACE).then_some(EVENTS_EXCHANGE));
        let inner = inner.map(|name| Exchange::built_in(name, ExchangeKind::Topic, true));
        let exchanges = BUILT_IN.iter().map(|(name, kind)| Exchange::built_in(name, *kind, false)).chain(inner);
        Topology {
            exchanges: exchanges.map(|exchange| (exchange.name.clone(), exchange)).collect(),
            queues: HashMap::new(),
            bound_to: HashMap::new(),
            next_binding: 0,
            binding_count: 0,
            default_stats: Arc::default(),
        }
    }

    /// Whether the destination is (still) there.
    pub fn has(&self, to: &Target) -> bool {
        match to {
            Target::Queue(queue) => self.queues.get(&queue.name).is_some_and(|found| Arc::ptr_eq(found, queue)),
            Target::Exchange(name) => self.exchanges.contains_key(name),
        }
    }

    /// False if it was bound so before. The exchange and the destination must exist.
    pub fn bind(&mut self, exchange: &str, to: &Target, key: &str, arguments: &Table) -> bool {
        let Some(exchange) = self.exchanges.get_mut(exchange) else { return false };
        let identity = identity(to.place(), key, arguments);
        if exchange.by_identity.contains_key(&identity) {
            return false;
        }
        let id = self.next_binding;
        self.next_binding += 1;
        self.binding_count += 1;
        exchange.routes.insert(key, arguments, Bound { id, to: to.clone() });
        let binding = Binding { to: to.clone(), key: identity.1.clone(), arguments: arguments.clone() };
        exchange.bindings.insert(id, binding);
        self.bound_to.entry(identity.0.clone()).or_default().insert(id, exchange.name.clone());
        exchange.by_identity.insert(identity, id);
        true
    }

    /// `None` if there was no such binding. An auto-delete exchange goes with its last one.
    pub fn unbind(&mut self, exchange: &str, to: Place, key: &str, arguments: &Table) -> Option<Removed> {
        let found = self.exchanges.get(exchange)?;
        let source = found.name.clone();
        let id = found.by_identity.get(&identity(to, key, arguments)).copied()?;
        let mut removed = Removed::default();
        if self.drop_binding(&source, id, &mut removed) {
            self.take_exchanges(source, &mut removed);
        }
        Some(removed)
    }

    /// True if its exchange should go with it.
    fn drop_binding(&mut self, exchange: &Arc<str>, id: u64, removed: &mut Removed) -> bool {
        let Some(found) = self.exchanges.get_mut(exchange) else { return false };
        let Some(binding) = found.bindings.remove(&id) else { return false };
        found.routes.remove(&binding.key, id);
        found.by_identity.remove(&identity(binding.to.place(), &binding.key, &binding.arguments));
        let ends = found.spec.auto_delete && found.bindings.is_empty();
        self.forget_binding(exchange.clone(), id, binding, removed);
        ends
    }

    fn forget_binding(&mut self, exchange: Arc<str>, id: u64, binding: Binding, removed: &mut Removed) {
        self.binding_count -= 1;
        let place = binding.to.place();
        if let Some(list) = self.bound_to.get_mut(&place) {
            list.remove(&id);
            if list.is_empty() {
                self.bound_to.remove(&place);
            }
        }
        removed.bindings.push((exchange, binding));
    }

    /// Drops every binding that leads to `place`; returns the exchanges that should go with them.
    fn drop_bindings_to(&mut self, place: &Place, removed: &mut Removed) -> Vec<Arc<str>> {
        let bound = self.bound_to.remove(place).unwrap_or_default();
        bound.into_iter().filter(|(id, source)| self.drop_binding(source, *id, removed)).map(|(_, source)| source).collect()
    }

    /// Takes an exchange out, and all that go with it: deleting one unbinds those that led to it. A list, since chains may be long.
    fn take_exchanges(&mut self, first: Arc<str>, removed: &mut Removed) {
        let mut ending = vec![first];
        while let Some(name) = ending.pop() {
            let Some(exchange) = self.exchanges.remove(&name) else { continue };
            for (id, binding) in exchange.bindings {
                self.forget_binding(name.clone(), id, binding, removed);
            }
            ending.extend(self.drop_bindings_to(&(DestinationKind::Exchange, name.clone()), removed));
            removed.exchanges.push(name);
        }
    }

    /// Takes a queue out with all its bindings. `None` if it is not (or no longer) the one of that name.
    pub fn remove_queue(&mut self, queue: &Arc<Queue>) -> Option<Removed> {
        if !self.has(&Target::Queue(queue.clone())) {
            return None;
        }
        self.queues.remove(&queue.name);
        let mut removed = Removed::default();
        for exchange in self.drop_bindings_to(&(DestinationKind::Queue, queue.name.clone()), &mut removed) {
            self.take_exchanges(exchange, &mut removed);
        }
        Some(removed)
    }

    /// Takes an exchange out with its bindings and those that led to it.
    pub fn remove_exchange(&mut self, name: &str) -> Removed {
        let mut removed = Removed::default();
        self.take_exchanges(name.into(), &mut removed);
        removed
    }

    /// Bindings of one queue: exchange and binding.
    pub fn bindings_of<'a>(&'a self, queue: &Arc<str>) -> impl Iterator<Item = (&'a Exchange, &'a Binding)> {
        let bound = self.bound_to.get(&(DestinationKind::Queue, queue.clone()));
        bound.into_iter().flatten().filter_map(|(id, exchange)| {
            let exchange = self.exchanges.get(exchange)?;
            Some((exchange, exchange.bindings.get(id)?))
        })
    }

    pub fn binding_count(&self) -> usize {
        self.binding_count
    }
}
