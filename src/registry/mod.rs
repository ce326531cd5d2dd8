//! Floor 2: who is running where. Services and their instances, however they came: the supervisor, the broker's attachments and
//! tunnels write, the gateway and the views read.
//!
//! Knows nothing of processes, queues or HTTP. Invariants: an instance belongs to one service in one space; ids are never
//! reused; a reader's snapshot is immutable.

use crate::kernel::Clock;
use crate::model::service::{InstanceName, InstanceState, ServiceName, Source};
use arc_swap::ArcSwap;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct InstanceId(pub u64);

/// One running copy of a service.
#[derive(Clone, Debug)]
pub struct Instance {
    pub id: InstanceId,
    pub space: Arc<str>,
    pub service: ServiceName,
    pub name: InstanceName,
    pub source: Source,
    pub state: InstanceState,
    /// Why it is in this state, in words; empty when ready.
    pub reason: Arc<str>,
    /// Where it answers HTTP, if it does; calls over the bus need none.
    pub http: Option<SocketAddr>,
    /// Keep `/{service}[/vN]` on the path (`strip_prefix = false`).
    pub keep_prefix: bool,
    /// The version it declares (`/{service}/vN/…` over HTTP); `None` is unversioned. Bindings declare their own on the bus.
    pub version: Option<u32>,
    pub pid: Option<u32>,
    pub language: Option<Arc<str>>,
    /// Bus connections that belong to it; see [`Registry::attach`].
    pub attached: u32,
    pub restart_count: u32,
    /// Unix nanoseconds.
    pub since_ns: u64,
}

/// What a new instance is made of; [`Registry::add`] gives it its id and time.
#[derive(Clone, Debug)]
pub struct NewInstance {
    pub space: Arc<str>,
    pub service: ServiceName,
    pub name: InstanceName,
    pub source: Source,
    pub state: InstanceState,
    pub http: Option<SocketAddr>,
    pub keep_prefix: bool,
    pub version: Option<u32>,
    pub pid: Option<u32>,
    pub language: Option<Arc<str>>,
}

/// An immutable picture of everything registered.
#[derive(Debug, Default)]
pub struct Snapshot {
    instances: BTreeMap<InstanceId, Arc<Instance>>,
    by_service: BTreeMap<(Arc<str>, ServiceName), Vec<InstanceId>>,
}

impl Snapshot {
    pub fn instances(&self) -> impl Iterator<Item = &Arc<Instance>> {
        self.instances.values()
    }

    pub fn of_service<'a>(&'a self, space: &str, service: &ServiceName) -> impl Iterator<Item = &'a Arc<Instance>> {
        let ids = self.by_service.get(&(Arc::from(space), service.clone())).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.instances.get(id))
    }

    pub fn get(&self, id: InstanceId) -> Option<&Arc<Instance>> {
        self.instances.get(&id)
    }
}

#[derive(Debug)]
pub struct Registry {
    clock: Clock,
    next_id: AtomicU64,
    writer: Mutex<()>,
    current: ArcSwap<Snapshot>,
    version: watch::Sender<u64>,
}

impl Registry {
    pub fn new(clock: Clock) -> Self {
        Registry {
            clock,
            next_id: AtomicU64::new(1),
            writer: Mutex::new(()),
            current: ArcSwap::default(),
            version: watch::Sender::new(0),
        }
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    /// Resolves whenever anything changed since the receiver last looked.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    pub fn add(&self, new: NewInstance) -> InstanceId {
        let mut id = InstanceId(0);
        self.edit(|instances| id = self.insert(instances, new, 0));
        id
    }

    /// A bus connection became an instance. If it is the connection of a process that the supervisor runs (same space, service
    /// and instance name), it joins that instance instead of standing beside it. Pair with [`Registry::detach`].
    pub fn attach(&self, new: NewInstance) -> InstanceId {
        let mut id = InstanceId(0);
        self.edit(|instances| {
            let own = instances.values_mut().find(|known| {
                known.source == Source::Supervised
                    && known.name == new.name
                    && known.service == new.service
                    && known.space == new.space
            });
            id = match own {
                Some(own) => {
                    let own = Arc::make_mut(own);
                    own.attached += 1;
                    own.language = new.language.or_else(|| own.language.take());
                    own.id
                }
                None => self.insert(instances, new, 1),
            };
        });
        id
    }

    /// A bus connection of `id` is gone. The instance goes with its last connection, unless the supervisor runs it.
    pub fn detach(&self, id: InstanceId) -> Option<Arc<Instance>> {
        let mut removed = None;
        self.edit(|instances| {
            let Some(instance) = instances.get_mut(&id) else { return };
            if instance.source != Source::Supervised && instance.attached <= 1 {
                removed = instances.remove(&id);
            } else {
                let instance = Arc::make_mut(instance);
                instance.attached = instance.attached.saturating_sub(1);
            }
        });
        removed
    }

    fn insert(&self, instances: &mut BTreeMap<InstanceId, Arc<Instance>>, new: NewInstance, attached: u32) -> InstanceId {
        let id = InstanceId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let instance = Instance {
            id,
            space: new.space,
            service: new.service,
            name: new.name,
            source: new.source,
            state: new.state,
            reason: Arc::from(""),
            http: new.http,
            keep_prefix: new.keep_prefix,
            version: new.version,
            pid: new.pid,
            language: new.language,
            attached,
            restart_count: 0,
            since_ns: self.clock.unix_nanos(),
        };
        instances.insert(id, Arc::new(instance));
        id
    }

    /// Changes an instance in place; nothing happens if it is gone.
    pub fn update(&self, id: InstanceId, change: impl FnOnce(&mut Instance)) {
        self.edit(|instances| {
            if let Some(instance) = instances.get_mut(&id) {
                change(Arc::make_mut(instance));
            }
        });
    }

    pub fn remove(&self, id: InstanceId) -> Option<Arc<Instance>> {
        let mut removed = None;
        self.edit(|instances| removed = instances.remove(&id));
        removed
    }

    fn edit(&self, change: impl FnOnce(&mut BTreeMap<InstanceId, Arc<Instance>>)) {
        let writing = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut instances = self.current.load().instances.clone();
        change(&mut instances);
        let mut by_service: BTreeMap<(Arc<str>, ServiceName), Vec<InstanceId>> = BTreeMap::new();
        for instance in instances.values() {
            by_service.entry((instance.space.clone(), instance.service.clone())).or_default().push(instance.id);
        }
        self.current.store(Arc::new(Snapshot { instances, by_service }));
        drop(writing);
        self.version.send_modify(|version| *version += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_instance(service: &str, name: &str) -> NewInstance {
        NewInstance {
            space: Arc::from("/"),
            service: ServiceName::new(service).expect("a valid name"),
            name: Arc::from(name),
            source: Source::Supervised,
            state: InstanceState::Starting,
            http: None,
            keep_prefix: false,
            version: None,
            pid: None,
            language: None,
        }
    }

    #[test]
    fn a_snapshot_is_not_changed_by_later_edits() {
        let registry = Registry::new(Clock::manual(5));
        let first = registry.add(new_instance("greeter", "greeter-1"));
        let before = registry.snapshot();
        registry.update(first, |instance| instance.state = InstanceState::Ready);
        registry.add(new_instance("greeter", "greeter-2"));
        assert_eq!(before.instances().count(), 1);
        assert_eq!(before.get(first).expect("kept").state, InstanceState::Starting);
        let greeter = ServiceName::new("greeter").expect("valid");
        assert_eq!(registry.snapshot().of_service("/", &greeter).count(), 2);
        assert_eq!(registry.snapshot().of_service("other", &greeter).count(), 0);
        registry.remove(first);
        assert_eq!(registry.snapshot().of_service("/", &greeter).count(), 1);
    }

    #[test]
    fn the_bus_connection_of_a_supervised_process_joins_its_instance() {
        let registry = Registry::new(Clock::manual(0));
        let own = registry.add(new_instance("greeter", "greeter-1"));
        let from_bus =
            |name| NewInstance { source: Source::Amqp, language: Some("Python".into()), ..new_instance("greeter", name) };
        assert_eq!(registry.attach(from_bus("greeter-1")), own);
        assert_eq!(registry.snapshot().get(own).expect("kept").attached, 1);
        let other = registry.attach(from_bus("laptop"));
        assert_ne!(other, own);
        assert!(registry.detach(other).is_some(), "an instance that is only a connection goes with it");
        assert!(registry.detach(own).is_none());
        let instance = registry.snapshot().get(own).expect("the process still runs").clone();
        assert_eq!((instance.attached, instance.language.as_deref()), (0, Some("Python")));
    }

    #[test]
    fn readers_are_told_of_changes() {
        let registry = Registry::new(Clock::manual(0));
        let changes = registry.changes();
        assert!(!changes.has_changed().expect("open"));
        registry.add(new_instance("a", "a-1"));
        assert!(changes.has_changed().expect("open"));
    }
}
