//! Which services answer HTTP, compiled from the registry: one immutable table that is replaced when the registry changes, so that
//! a request only reads. Calls over the bus need no table; the broker knows its bindings.

use super::path::Wanted;
use super::upstream::Endpoint;
use crate::kernel::{Clock, Instant};
use crate::model::service::{InstanceState, Source};
use crate::registry::{Instance, InstanceId, Registry, Snapshot};
use arc_swap::ArcSwap;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

/// Instances of one service that answer HTTP.
#[derive(Debug, Default)]
pub(super) struct HttpService {
    members: Vec<Member>,
    pub(super) keep_prefix: bool,
}

#[derive(Debug)]
struct Member {
    endpoint: Arc<Endpoint>,
    version: Option<u32>,
    state: InstanceState,
}

/// Where a request for a service may go.
#[derive(Debug)]
pub(super) enum Choice {
    /// To any of these; never empty.
    Endpoints(Vec<Arc<Endpoint>>),
    /// Nobody is ready; the best state anyone is in.
    NotReady(InstanceState),
    /// The version asked for is not declared by anyone; those that are.
    NoSuchVersion(Vec<u32>),
}

impl HttpService {
    pub(super) fn declares_versions(&self) -> bool {
        self.members.iter().any(|member| member.version.is_some())
    }

    /// Resolves the version as for bindings: exactly the one asked for, else the highest with a ready instance, unversioned
    /// counting lowest. Degraded instances are used when no other is left.
    pub(super) fn choose(&self, wanted: Wanted) -> Choice {
        if let Wanted::Exactly(version) = wanted
            && self.declares_versions()
        {
            if !self.members.iter().any(|member| member.version == Some(version)) {
                let declared: BTreeSet<u32> = self.members.iter().filter_map(|member| member.version).collect();
                return Choice::NoSuchVersion(declared.into_iter().collect());
            }
            return self.usable(|member| member.version == Some(version));
        }
        let ready = self.members.iter().filter(|member| is_usable(member.state));
        let Some(highest) = ready.map(|member| member.version).max() else { return self.usable(|_| true) };
        self.usable(|member| member.version == highest)
    }

    fn usable(&self, of_version: impl Fn(&Member) -> bool) -> Choice {
        for state in [InstanceState::Ready, InstanceState::Degraded] {
            let members = self.members.iter().filter(|member| member.state == state && of_version(member));
            let endpoints: Vec<_> = members.map(|member| member.endpoint.clone()).collect();
            if !endpoints.is_empty() {
                return Choice::Endpoints(endpoints);
            }
        }
        let states = self.members.iter().filter(|member| of_version(member)).map(|member| member.state);
        Choice::NotReady(states.min().unwrap_or(InstanceState::Stopped))
    }
}

fn is_usable(state: InstanceState) -> bool {
    matches!(state, InstanceState::Ready | InstanceState::Degraded)
}

#[derive(Debug, Default)]
pub(super) struct Table {
    of: Arc<Snapshot>,
    http: HashMap<Arc<str>, HttpService>,
    /// Services with an instance that can be asked, over HTTP or the bus.
    present: BTreeSet<Arc<str>>,
    /// Services that reactor runs, with the best state of their instances, whether or not they can be asked.
    supervised: HashMap<Arc<str>, InstanceState>,
    /// When services that can no longer be asked last could.
    lost: HashMap<Arc<str>, Instant>,
}

/// Services whose last instance left are remembered this many; older ones go first.
const LOST_MAX: usize = 1_024;

impl Table {
    pub(super) fn http(&self, service: &str) -> Option<&HttpService> {
        self.http.get(service)
    }

    pub(super) fn http_services(&self) -> impl Iterator<Item = &str> {
        self.http.keys().map(|name| &**name)
    }

    /// The best state of a service that reactor runs and that cannot be asked yet. One that is on the bus and binds nothing for
    /// HTTP is not on its way: it stays with the bus.
    pub(super) fn supervised(&self, service: &str) -> Option<InstanceState> {
        self.supervised.get(service).copied().filter(|_| !self.present.contains(service))
    }

    /// When the last instance of `service` left, if none has come back.
    pub(super) fn lost_at(&self, service: &str) -> Option<Instant> {
        self.lost.get(service).copied()
    }

    fn build(space: &str, snapshot: Arc<Snapshot>, before: &Table, now: Instant) -> Table {
        let known: HashMap<InstanceId, &Arc<Endpoint>> = before
            .http
            .values()
            .flat_map(|service| &service.members)
            .map(|member| (member.endpoint.id, &member.endpoint))
            .collect();
        let mut table = Table { of: snapshot.clone(), lost: before.lost.clone(), ..Table::default() };
        for instance in snapshot.instances().filter(|instance| &*instance.space == space) {
            if is_usable(instance.state) && (instance.http.is_some() || instance.attached > 0) {
                table.present.insert(instance.service.shared());
            }
            if instance.source == Source::Supervised {
                let best = table.supervised.entry(instance.service.shared()).or_insert(instance.state);
                *best = (*best).min(instance.state);
            }
            if let Some(member) = member_of(instance, &known) {
                let service = table.http.entry(instance.service.shared()).or_default();
                service.keep_prefix |= instance.keep_prefix;
                service.members.push(member);
            }
        }
        for gone in before.present.difference(&table.present) {
            table.lost.insert(gone.clone(), now);
        }
        table.lost.retain(|service, _| !table.present.contains(service));
        while table.lost.len() > LOST_MAX {
            let oldest = table.lost.iter().min_by_key(|(_, at)| **at).map(|(service, _)| service.clone());
            oldest.and_then(|service| table.lost.remove(&service));
        }
        table
    }
}

/// Keeps the endpoint, with its connections and counts, of an instance that was known at the same address.
fn member_of(instance: &Instance, known: &HashMap<InstanceId, &Arc<Endpoint>>) -> Option<Member> {
    let address = instance.http?;
    let endpoint = match known.get(&instance.id) {
        Some(endpoint) if endpoint.address == address => (*endpoint).clone(),
        _ => Arc::new(Endpoint::new(instance.id, instance.name.clone(), address)),
    };
    Some(Member { endpoint, version: instance.version, state: instance.state })
}

/// The table in force.
#[derive(Debug)]
pub(super) struct Matcher {
    space: Arc<str>,
    registry: Arc<Registry>,
    clock: Clock,
    current: ArcSwap<Table>,
    building: Mutex<()>,
}

impl Matcher {
    pub(super) fn new(space: Arc<str>, registry: Arc<Registry>, clock: Clock) -> Self {
        Matcher { space, registry, clock, current: ArcSwap::default(), building: Mutex::new(()) }
    }

    /// The table of the registry as it is now.
    pub(super) fn table(&self) -> arc_swap::Guard<Arc<Table>> {
        let snapshot = self.registry.snapshot();
        let table = self.current.load();
        if Arc::ptr_eq(&table.of, &snapshot) {
            return table;
        }
        let building = self.building.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.load();
        let snapshot = self.registry.snapshot();
        if !Arc::ptr_eq(&before.of, &snapshot) {
            self.current.store(Arc::new(Table::build(&self.space, snapshot, &before, self.clock.now())));
        }
        drop(building);
        self.current.load()
    }

    pub(super) fn changes(&self) -> tokio::sync::watch::Receiver<u64> {
        self.registry.changes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::service::ServiceName;
    use crate::registry::NewInstance;
    use std::time::Duration;

    struct World {
        clock: Clock,
        registry: Arc<Registry>,
        matcher: Matcher,
    }

    fn world() -> World {
        let clock = Clock::manual(0);
        let registry = Arc::new(Registry::new(clock.clone()));
        let matcher = Matcher::new(Arc::from("/"), registry.clone(), clock.clone());
        World { clock, registry, matcher }
    }

    impl World {
        fn add(&self, service: &str, port: u16, version: Option<u32>, state: InstanceState) -> InstanceId {
            self.registry.add(self.new_instance(service, port, version, state))
        }

        fn new_instance(&self, service: &str, port: u16, version: Option<u32>, state: InstanceState) -> NewInstance {
            NewInstance {
                space: Arc::from("/"),
                service: ServiceName::new(service).expect("a service name"),
                name: Arc::from(format!("{service}-{port}")),
                source: Source::Supervised,
                state,
                http: (port != 0).then(|| ([127, 0, 0, 1], port).into()),
                keep_prefix: false,
                version,
                pid: None,
                language: None,
            }
        }

        fn ports(&self, service: &str, wanted: Wanted) -> Vec<u16> {
            match self.matcher.table().http(service).expect("known").choose(wanted) {
                Choice::Endpoints(endpoints) => endpoints.iter().map(|endpoint| endpoint.address.port()).collect(),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn ready_instances_are_chosen_and_degraded_ones_only_in_need() {
        let world = world();
        world.add("a", 1, None, InstanceState::Ready);
        let second = world.add("a", 2, None, InstanceState::Degraded);
        world.add("a", 3, None, InstanceState::Starting);
        assert_eq!(world.ports("a", Wanted::Highest), [1]);
        world.registry.update(InstanceId(1), |instance| instance.state = InstanceState::Failing);
        assert_eq!(world.ports("a", Wanted::Highest), [2]);
        world.registry.remove(second);
        let table = world.matcher.table();
        let choice = table.http("a").expect("known").choose(Wanted::Highest);
        assert!(matches!(choice, Choice::NotReady(InstanceState::Starting)), "{choice:?}");
    }

    #[test]
    fn versions_resolve_as_for_bindings() {
        let world = world();
        world.add("a", 1, Some(1), InstanceState::Ready);
        world.add("a", 2, Some(2), InstanceState::Ready);
        world.add("a", 3, Some(3), InstanceState::Starting);
        world.add("a", 9, None, InstanceState::Ready);
        assert_eq!(world.ports("a", Wanted::Exactly(1)), [1]);
        assert_eq!(world.ports("a", Wanted::Highest), [2], "the highest that is ready");
        let table = world.matcher.table();
        let service = table.http("a").expect("known");
        assert!(matches!(service.choose(Wanted::Exactly(3)), Choice::NotReady(InstanceState::Starting)));
        let Choice::NoSuchVersion(declared) = service.choose(Wanted::Exactly(7)) else { panic!("version 7 is unknown") };
        assert_eq!(declared, [1, 2, 3]);
    }

    #[test]
    fn a_service_without_versions_takes_every_path() {
        let world = world();
        world.add("a", 1, None, InstanceState::Ready);
        assert_eq!(world.ports("a", Wanted::Exactly(5)), [1]);
        assert!(!world.matcher.table().http("a").expect("known").declares_versions());
    }

    #[test]
    fn an_endpoint_survives_changes_of_its_instance_but_not_of_its_address() {
        let world = world();
        let id = world.add("a", 1, None, InstanceState::Ready);
        let endpoint = |world: &World| match world.matcher.table().http("a").expect("known").choose(Wanted::Highest) {
            Choice::Endpoints(endpoints) => endpoints[0].clone(),
            other => panic!("{other:?}"),
        };
        let first = endpoint(&world);
        world.registry.update(id, |instance| instance.restart_count += 1);
        assert!(Arc::ptr_eq(&first, &endpoint(&world)));
        world.registry.update(id, |instance| instance.http = Some(([127, 0, 0, 1], 2).into()));
        assert!(!Arc::ptr_eq(&first, &endpoint(&world)));
    }

    #[test]
    fn a_lost_service_is_remembered_until_it_is_back() {
        let world = world();
        let attach = || world.registry.attach(world.new_instance("a", 0, None, InstanceState::Ready));
        let id = attach();
        assert_eq!(world.matcher.table().lost_at("a"), None);
        world.clock.advance(Duration::from_secs(3));
        world.registry.detach(id);
        let at = world.matcher.table().lost_at("a").expect("lost");
        assert_eq!(at.since(Instant::ZERO), Duration::from_secs(3));
        world.clock.advance(Duration::from_secs(1));
        world.add("b", 1, None, InstanceState::Ready);
        assert_eq!(world.matcher.table().lost_at("a"), Some(at), "other changes do not renew it");
        attach();
        assert_eq!(world.matcher.table().lost_at("a"), None);
    }

    #[test]
    fn a_process_that_neither_listens_nor_consumes_is_known_but_not_there() {
        let world = world();
        let first = world.add("a", 0, None, InstanceState::Starting);
        world.add("a", 0, None, InstanceState::Ready);
        let table = world.matcher.table();
        assert!(table.http("a").is_none() && table.present.is_empty());
        assert_eq!(table.supervised("a"), Some(InstanceState::Ready));
        world.registry.update(first, |instance| instance.state = InstanceState::Ready);
        let own = world.new_instance("a", 0, None, InstanceState::Ready);
        world.registry.attach(own);
        assert_eq!(world.matcher.table().supervised("a"), None, "it is on the bus; what it keeps from HTTP stays unknown there");
    }
}
