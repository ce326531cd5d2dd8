//! One space: its exchanges, queues and bindings. How they are declared and deleted is `declare`'s and `exchanges`'s, where a message
//! goes is `routing`'s.

use super::attach::Attached;
use super::config::ConnectionId;
use super::delay::Delayed;
use super::flow::Flow;
use super::queue::Queue;
use super::refused::Refused;
use super::reply::Replies;
use super::shared::Shared;
use super::tap::Taps;
use super::topology::Topology;
use super::view::{BindingView, ExchangeView, QueueLoad, QueueView};
use crate::model::catalog::SpaceRules;
use crate::model::identity::{Action, Principal};
use crate::model::policy::{NoPolicies, Policies};
use crate::model::table::Table;
use crate::model::topology::ExchangeKind;
use arc_swap::ArcSwap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// Who asks: permissions, and the connection that exclusive queues belong to.
#[derive(Clone, Copy, Debug)]
pub struct Actor<'a> {
    pub principal: &'a Principal,
    /// `None` for the API and definitions.
    pub connection: Option<ConnectionId>,
}

impl Actor<'_> {
    pub(super) fn must(&self, action: Action, kind: &str, name: &str, space: &str) -> Result<(), Refused> {
        match self.principal.may(action, name) {
            true => Ok(()),
            false => Err(no_access(self.principal, action, kind, name, space)),
        }
    }

    /// Whether binding to a topic exchange with this key is allowed, or publishing to it.
    pub(super) fn must_topic(&self, action: Action, exchange: &str, key: &str, space: &str) -> Result<(), Refused> {
        must_topic(self.principal, action, exchange, key, space)
    }
}

pub(super) fn no_access(principal: &Principal, action: Action, kind: &str, name: &str, space: &str) -> Refused {
    let (action, user) = (action.as_str(), &principal.user);
    Refused::AccessRefused(format!("{action} access to {kind} '{name}' in vhost '{space}' refused for user '{user}'"))
}

pub(super) fn must_topic(principal: &Principal, action: Action, exchange: &str, key: &str, space: &str) -> Result<(), Refused> {
    if principal.may_topic(action, exchange, key) {
        return Ok(());
    }
    let (action, user) = (action.as_str(), &principal.user);
    Err(Refused::AccessRefused(format!(
        "{action} access to topic '{key}' in exchange '{exchange}' in vhost '{space}' refused for user '{user}'"
    )))
}

pub struct Vhost {
    name: Arc<str>,
    pub(super) shared: Arc<Shared>,
    /// Itself, for queues that publish what they give up.
    pub(super) me: Weak<Vhost>,
    pub(super) policies: RwLock<Arc<dyn Policies>>,
    topology: RwLock<Topology>,
    /// Raised after every change of the topology: remembered routes of an older one are void.
    generation: AtomicU64,
    pub(super) replies: Replies,
    pub(super) attached: Attached,
    /// Who looks at its messages.
    pub(super) taps: Arc<Taps>,
    /// Messages that wait for their time.
    pub(super) delayed: Delayed,
    /// Limits, policies and what is said of the space.
    pub(super) rules: ArcSwap<SpaceRules>,
    /// What channels did that have ended, and what no channel did.
    ended: Mutex<Flow>,
}

impl Vhost {
    pub(super) fn new(name: &str, shared: Arc<Shared>) -> Arc<Self> {
        Arc::new_cyclic(|me| Vhost {
            name: name.into(),
            shared,
            me: me.clone(),
            policies: RwLock::new(Arc::new(NoPolicies)),
            topology: RwLock::new(Topology::new(name)),
            generation: AtomicU64::new(0),
            replies: Replies::default(),
            attached: Attached::default(),
            taps: Arc::default(),
            delayed: Delayed::default(),
            rules: ArcSwap::default(),
            ended: Mutex::default(),
        })
    }

    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    pub(super) fn topology(&self) -> RwLockReadGuard<'_, Topology> {
        self.topology.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn topology_mut(&self) -> RwLockWriteGuard<'_, Topology> {
        self.topology.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn ended(&self) -> MutexGuard<'_, Flow> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // HOT
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn find_queue(&self, name: &str) -> Option<Arc<Queue>> {
        self.topology().queues.get(name).cloned()
    }

    pub(super) fn no_queue(&self, name: &str) -> Refused {
        Refused::NotFound(format!("no queue '{name}' in vhost '{}'", self.name))
    }

    pub(super) fn no_exchange(&self, name: &str) -> Refused {
        Refused::NotFound(format!("no exchange '{name}' in vhost '{}'", self.name))
    }

    /// The queue, unless it is another connection's exclusive one.
    pub(super) fn queue_for(&self, name: &str, actor: Actor<'_>) -> Result<Arc<Queue>, Refused> {
        let queue = self.find_queue(name).ok_or_else(|| self.no_queue(name))?;
        self.must_own(&queue, actor)?;
        Ok(queue)
    }

    pub(super) fn must_own(&self, queue: &Queue, actor: Actor<'_>) -> Result<(), Refused> {
        match queue.owner {
            Some(owner) if actor.connection.is_some_and(|asking| asking != owner) => Err(Refused::Locked(format!(
                "cannot obtain exclusive access to locked queue '{}' in vhost '{}'. It could be originally declared on another \
                 connection or the exclusive property value does not match that of the original declaration.",
                queue.name, self.name
            ))),
            _ => Ok(()),
        }
    }

    pub fn queues(&self) -> Vec<QueueView> {
        let now = self.shared.clock.now();
        let mut queues: Vec<Arc<Queue>> = self.topology().queues.values().cloned().collect();
        queues.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        queues.iter().map(|queue| queue.view(&self.name, now, self.shared.epoch_ns)).collect()
    }

    /// Those that ever held a message or are consumed: what is worth measuring once a second.
    pub fn queues_in_use(&self) -> Vec<QueueView> {
        let now = self.shared.clock.now();
        let mut queues: Vec<Arc<Queue>> = self.topology().queues.values().cloned().collect();
        queues.retain(|queue| !queue.is_untouched());
        queues.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        queues.iter().map(|queue| queue.view(&self.name, now, self.shared.epoch_ns)).collect()
    }

    /// The load of every queue, in no order.
    pub fn queue_loads(&self) -> Vec<(Arc<str>, QueueLoad)> {
        let queues: Vec<Arc<Queue>> = self.topology().queues.values().cloned().collect();
        queues.iter().map(|queue| (queue.name.clone(), queue.load())).collect()
    }

    pub fn queue(&self, name: &str) -> Option<QueueView> {
        Some(self.find_queue(name)?.view(&self.name, self.shared.clock.now(), self.shared.epoch_ns))
    }

    pub fn queue_names(&self) -> Vec<Arc<str>> {
        self.topology().queues.keys().cloned().collect()
    }

    pub fn queue_count(&self) -> usize {
        self.topology().queues.len()
    }

    pub fn exchanges(&self) -> Vec<ExchangeView> {
        let topology = self.topology();
        let mut views: Vec<ExchangeView> = topology
            .exchanges
            .values()
            .map(|exchange| ExchangeView {
                space: self.name.clone(),
                name: exchange.name.clone(),
                kind: exchange.spec.kind,
                durable: exchange.spec.durable,
                auto_delete: exchange.spec.auto_delete,
                internal: exchange.spec.internal,
                arguments: exchange.spec.arguments.clone(),
                bindings: exchange.bindings.len() as u64,
                policy: exchange.policy.clone(),
                delayed: self.delayed.count(&exchange.name),
                published: exchange.stats.published.load(Ordering::Relaxed),
                routed: exchange.stats.routed.load(Ordering::Relaxed),
            })
            .collect();
        views.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        views
    }

    /// The exchange without a name, which reaches every queue by the queue's own. It is not among [`Vhost::exchanges`].
    pub fn default_exchange(&self) -> ExchangeView {
        let topology = self.topology();
        ExchangeView {
            space: self.name.clone(),
            name: "".into(),
            kind: ExchangeKind::Direct,
            durable: true,
            auto_delete: false,
            internal: false,
            arguments: Table::new(),
            bindings: topology.queues.len() as u64,
            policy: None,
            delayed: 0,
            published: topology.default_stats.published.load(Ordering::Relaxed),
            routed: topology.default_stats.routed.load(Ordering::Relaxed),
        }
    }

    /// Bindings as declared; those of the default exchange are implied by the queues.
    pub fn bindings(&self) -> Vec<BindingView> {
        let topology = self.topology();
        let mut views: Vec<BindingView> = topology
            .exchanges
            .values()
            .flat_map(|exchange| exchange.bindings.values().map(move |binding| (exchange, binding)))
            .map(|(exchange, binding)| BindingView {
                space: self.name.clone(),
                source: exchange.name.clone(),
                destination: binding.to.name().clone(),
                destination_kind: binding.to.kind(),
                routing_key: binding.key.clone(),
                arguments: binding.arguments.clone(),
            })
            .collect();
        views.sort_unstable_by(|a, b| {
            (&a.source, &a.destination, &a.routing_key).cmp(&(&b.source, &b.destination, &b.routing_key))
        });
        views
    }
}

impl fmt::Debug for Vhost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vhost '{}'", self.name)
    }
}
