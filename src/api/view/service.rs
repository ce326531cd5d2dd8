//! Services: the registry's instances, the supervisor's processes, what the bus has bound and what only telemetry knows, merged by
//! space and name.

use super::Sources;
use super::board::{DEPARTED_KEPT, Departed, Key};
use crate::broker::view::BindingView;
use crate::model::service::{InstanceState, ServiceName, Source};
use crate::model::table::Field;
use crate::model::topology::{CALL_EXCHANGE, DEFAULT_SPACE};
use crate::registry;
use crate::supervisor;
use crate::telemetry::view::{Red, SeenInstance, SeenService, Tone};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use utoipa::ToSchema;

/// A service known only from its telemetry counts as gone after this silence.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Ids of instances that stand in no registry; the registry counts from 1.
const UNREGISTERED_ID_MIN: u64 = 1 << 40;

/// A named program that answers.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Service {
    pub space: Arc<str>,
    pub name: Arc<str>,
    /// Colour slot from 1, the lowest free one at first sight; the gateway is 1.
    pub slot: u16,
    pub state: InstanceState,
    /// Why, in words; empty when ready.
    pub reason: Arc<str>,
    pub tone: Tone,
    pub sources: Vec<Source>,
    /// True where reactor owns the process: start, stop and restart exist.
    pub owned: bool,
    /// `/orders`, or null when it answers no HTTP.
    pub route: Option<String>,
    pub language: Option<Arc<str>>,
    pub rate: Option<f64>,
    pub error_share: Option<f64>,
    pub p50_ns: Option<u64>,
    pub p95_ns: Option<u64>,
    /// p95 per 10 s bucket over the last 5 min, null where there was no traffic.
    pub latency_spark: Vec<Option<u64>>,
    /// Requests per 10 s bucket over the last 5 min.
    pub rate_spark: Vec<u64>,
    pub cpu_share: Option<f64>,
    pub memory_bytes: Option<u64>,
    /// When the first of its instances began; null when it has none.
    pub since_us: Option<u64>,
    /// When its last instance left, or when it was last heard of if only its telemetry is known; null while it is here.
    pub left_us: Option<u64>,
    pub restart_count: u32,
    pub last_line: Option<Arc<str>>,
    pub instances: Vec<Instance>,
}

/// One running copy.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Instance {
    pub id: u64,
    pub name: Arc<str>,
    pub state: InstanceState,
    pub reason: Arc<str>,
    pub source: Source,
    pub pid: Option<u32>,
    pub http: Option<String>,
    pub cpu_share: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub since_us: u64,
    pub restart_count: u32,
}

/// Everything that says something about one service.
#[derive(Default)]
struct Parts {
    registered: Vec<Arc<registry::Instance>>,
    supervised: Option<supervisor::ServiceView>,
    /// Has a binding on `reactor.call`.
    bound: bool,
    /// At least one of those bindings is for the gateway too.
    bound_http: bool,
    seen: Option<SeenService>,
    departed: Option<Departed>,
}

/// All services, the gateway first, then by space and name. What nothing defines is listed for [`DEPARTED_KEPT`] after it left.
pub fn services(sources: &Sources) -> Vec<Service> {
    let mut parts = collect(sources);
    let now_ns = sources.clock.unix_nanos();
    let present: Vec<(Key, Departed)> =
        parts.iter().filter_map(|(key, parts)| parts.presence(now_ns).map(|presence| (key.clone(), presence))).collect();
    for (key, departed) in sources.board.departed(&present, now_ns) {
        parts.entry(key).or_default().departed = Some(departed);
    }
    parts.retain(|_, parts| !parts.is_forgotten(now_ns));
    sources.board.keep_slots(|space, name| parts.contains_key(&(space.clone(), name.clone())));
    let mut services = vec![gateway(sources)];
    services.extend(parts.into_iter().map(|(key, parts)| parts.shape(key, sources, now_ns)));
    services
}

fn collect(sources: &Sources) -> BTreeMap<Key, Parts> {
    let mut parts: BTreeMap<Key, Parts> = BTreeMap::new();
    for instance in sources.registry.snapshot().instances() {
        let key = (instance.space.clone(), instance.service.shared());
        parts.entry(key).or_default().registered.push(instance.clone());
    }
    for service in sources.supervisor.services() {
        let key = (service.space.clone(), service.name.shared());
        parts.entry(key).or_default().supervised = Some(service);
    }
    for binding in sources.broker.vhosts().iter().flat_map(|vhost| vhost.bindings()) {
        if let Some(name) = called_service(&binding) {
            let parts = parts.entry((binding.space.clone(), name)).or_default();
            parts.bound = true;
            parts.bound_http |= binding.arguments.get("x-reactor-http").and_then(Field::as_bool) != Some(false);
        }
    }
    for service in sources.telemetry.seen_services() {
        // The runtime's own parts are the gateway's row and no service.
        if !matches!(&*service.name, "gateway" | "reactor" | "unknown" | "") {
            let key = (service.space.clone(), service.name.clone());
            parts.entry(key).or_default().seen = Some(service);
        }
    }
    parts
}

/// The service that a binding of `reactor.call` makes reachable; its key `#` is the space's default service, which has no name.
fn called_service(binding: &BindingView) -> Option<Arc<str>> {
    if &*binding.source != CALL_EXCHANGE {
        return None;
    }
    let first = binding.routing_key.split('.').next().unwrap_or_default().to_ascii_lowercase();
    ServiceName::new(&first).map(|name| name.shared())
}

fn gateway(sources: &Sources) -> Service {
    let (space, name): Key = (DEFAULT_SPACE.into(), "gateway".into());
    let mut service = Service {
        slot: super::board::GATEWAY_SLOT,
        state: InstanceState::Ready,
        sources: vec![Source::BuiltIn],
        since_us: Some(sources.started_us()),
        ..blank(space.clone(), name.clone())
    };
    service.measure(sources.telemetry.red(&space, &name));
    service
}

fn blank(space: Arc<str>, name: Arc<str>) -> Service {
    Service {
        space,
        name,
        slot: 0,
        state: InstanceState::Detached,
        reason: "".into(),
        tone: Tone::Normal,
        sources: Vec::new(),
        owned: false,
        route: None,
        language: None,
        rate: None,
        error_share: None,
        p50_ns: None,
        p95_ns: None,
        latency_spark: Vec::new(),
        rate_spark: Vec::new(),
        cpu_share: None,
        memory_bytes: None,
        since_us: None,
        left_us: None,
        restart_count: 0,
        last_line: None,
        instances: Vec::new(),
    }
}

impl Service {
    fn measure(&mut self, red: Red) {
        self.tone = self.tone.max(red.tone);
        (self.rate, self.error_share) = (red.rate, red.error_share);
        (self.p50_ns, self.p95_ns) = (red.p50_ns, red.p95_ns);
        (self.latency_spark, self.rate_spark) = (red.latency_spark, red.rate_spark);
    }
}

impl Parts {
    /// What to remember of a service that is here, for when it no longer is.
    fn presence(&self, now_ns: u64) -> Option<Departed> {
        let instance = self.registered.first()?;
        let language = self.registered.iter().find_map(|instance| instance.language.clone());
        Some(Departed { source: instance.source, language, left_ns: now_ns })
    }

    fn shape(self, (space, name): Key, sources: &Sources, now_ns: u64) -> Service {
        let mut service = Service { slot: sources.board.slot(&space, &name), ..blank(space.clone(), name.clone()) };
        (service.state, service.reason) = self.state(now_ns);
        service.tone = match service.state {
            InstanceState::Failing => Tone::Err,
            InstanceState::Degraded => Tone::Warn,
            _ => Tone::Normal,
        };
        service.owned = self.supervised.is_some();
        service.sources = self.sources();
        let answers_http = self.bound_http || self.registered.iter().any(|instance| instance.http.is_some());
        service.route = answers_http.then(|| format!("/{name}"));
        service.language = self.language();
        service.last_line = self.last_line();
        service.instances = self.instances(now_ns);
        service.left_us = self.left_us(now_ns);
        let began = service.instances.iter().map(|instance| instance.since_us).min();
        service.since_us = began.filter(|_| service.left_us.is_none());
        service.restart_count = service.instances.iter().map(|instance| instance.restart_count).sum();
        service.cpu_share = sum(service.instances.iter().map(|instance| instance.cpu_share));
        service.memory_bytes = service.instances.iter().filter_map(|instance| instance.memory_bytes).reduce(|a, b| a + b);
        service.measure(sources.telemetry.red(&space, &name));
        service
    }

    /// The state that needs looking at most, with its reason.
    fn state(&self, now_ns: u64) -> (InstanceState, Arc<str>) {
        let registered = self.registered.iter().map(|instance| (instance.state, instance.reason.clone()));
        let supervised = self.supervised.iter().map(|service| (service.state, service.reason.clone()));
        if let Some(worst) = registered.chain(supervised).max_by_key(|(state, _)| *state) {
            return worst;
        }
        if self.bound {
            return (InstanceState::Detached, "bound to reactor.call, but nobody consumes".into());
        }
        if self.departed.is_some() {
            return (InstanceState::Detached, "its last instance has left".into());
        }
        heard(self.seen.as_ref().map_or(0, |seen| seen.last_us), now_ns)
    }

    fn is_here(&self) -> bool {
        !self.registered.is_empty() || self.supervised.is_some()
    }

    fn left_us(&self, now_ns: u64) -> Option<u64> {
        if self.is_here() {
            return None;
        }
        let silent = || self.seen.as_ref().map(|seen| seen.last_us).filter(|last_us| silence(*last_us, now_ns) > SILENCE_MAX);
        self.departed.as_ref().map(|departed| departed.left_ns / 1_000).or_else(silent)
    }

    /// It is not here, nothing defines it, and whatever was heard of it is long past.
    fn is_forgotten(&self, now_ns: u64) -> bool {
        let heard_lately = self.seen.as_ref().is_some_and(|seen| silence(seen.last_us, now_ns) < DEPARTED_KEPT);
        !self.is_here() && !self.bound && self.departed.is_none() && !heard_lately
    }

    fn sources(&self) -> Vec<Source> {
        let mut sources: Vec<Source> = self.registered.iter().map(|instance| instance.source).collect();
        sources.extend(self.supervised.iter().map(|_| Source::Supervised));
        if sources.is_empty() {
            sources.extend(self.departed.iter().map(|departed| departed.source));
            sources.extend(self.bound.then_some(Source::Amqp));
        }
        if sources.is_empty() && self.seen.is_some() {
            sources.push(Source::Telemetry);
        }
        let mut unique = Vec::new();
        for source in sources {
            if !unique.contains(&source) {
                unique.push(source);
            }
        }
        unique
    }

    fn language(&self) -> Option<Arc<str>> {
        let registered = self.registered.iter().find_map(|instance| instance.language.clone());
        let seen = self.seen.as_ref().and_then(|seen| seen.language.clone());
        registered.or(seen).or_else(|| self.departed.as_ref().and_then(|departed| departed.language.clone()))
    }

    fn last_line(&self) -> Option<Arc<str>> {
        let printed =
            self.supervised.iter().flat_map(|service| &service.instances).find_map(|instance| instance.last_line.clone());
        printed.or_else(|| self.seen.as_ref().and_then(|seen| seen.last_line.clone()))
    }

    /// Registered instances with what the supervisor measures of them, then those it does not run now, then those that only
    /// telemetry knows.
    fn instances(&self, now_ns: u64) -> Vec<Instance> {
        let supervised: Vec<_> = self.supervised.iter().flat_map(|service| &service.instances).collect();
        let mut instances: Vec<Instance> = Vec::new();
        for known in &self.registered {
            let process = supervised.iter().find(|process| known.source == Source::Supervised && process.name == known.name);
            instances.push(Instance {
                id: known.id.0,
                name: known.name.clone(),
                state: known.state,
                reason: known.reason.clone(),
                source: known.source,
                pid: known.pid,
                http: known.http.map(|address| format!("http://{address}")),
                cpu_share: process.and_then(|process| process.cpu_share),
                memory_bytes: process.and_then(|process| process.memory_bytes),
                since_us: known.since_ns / 1_000,
                restart_count: known.restart_count,
            });
        }
        let mut id = UNREGISTERED_ID_MIN;
        let mut add = |instance: Instance| {
            if instances.iter().all(|known| known.name != instance.name) {
                instances.push(Instance { id, ..instance });
                id += 1;
            }
        };
        for process in supervised {
            add(from_process(process));
        }
        if self.registered.is_empty() && self.supervised.is_none() && !self.bound {
            let seen = self.seen.iter().flat_map(|seen| &seen.instances);
            seen.filter(|seen| silence(seen.last_us, now_ns) < DEPARTED_KEPT).for_each(|seen| add(from_telemetry(seen, now_ns)));
        }
        instances
    }
}

fn from_process(process: &supervisor::InstanceView) -> Instance {
    Instance {
        id: 0,
        name: process.name.clone(),
        state: process.state,
        reason: process.reason.clone(),
        source: Source::Supervised,
        pid: process.pid,
        http: process.http.map(|address| format!("http://{address}")),
        cpu_share: process.cpu_share,
        memory_bytes: process.memory_bytes,
        since_us: process.since_ns / 1_000,
        restart_count: process.restart_count,
    }
}

fn from_telemetry(seen: &SeenInstance, now_ns: u64) -> Instance {
    let (state, reason) = heard(seen.last_us, now_ns);
    Instance {
        id: 0,
        name: seen.name.clone(),
        state,
        reason,
        source: Source::Telemetry,
        pid: None,
        http: None,
        cpu_share: None,
        memory_bytes: None,
        since_us: seen.first_us,
        restart_count: 0,
    }
}

/// Whoever is known only from telemetry is here for as long as it sends some.
fn heard(last_us: u64, now_ns: u64) -> (InstanceState, Arc<str>) {
    if silence(last_us, now_ns) <= SILENCE_MAX {
        (InstanceState::Ready, "".into())
    } else {
        (InstanceState::Detached, "sends no telemetry any more".into())
    }
}

fn silence(last_us: u64, now_ns: u64) -> Duration {
    Duration::from_nanos(now_ns.saturating_sub(last_us.saturating_mul(1_000)))
}

fn sum(shares: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    shares.flatten().reduce(|a, b| a + b)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN_US: u64 = 60_000_000;

    fn heard_of(last_us: u64) -> Parts {
        let instance = |name: &str, last_us: u64| SeenInstance { name: name.into(), first_us: 0, last_us };
        let seen = SeenService {
            space: "/".into(),
            name: "orders".into(),
            language: None,
            instances: vec![instance("orders-1", 0), instance("orders-2", last_us)],
            last_us,
            last_line: None,
        };
        Parts { seen: Some(seen), ..Parts::default() }
    }

    fn told(parts: &Parts, minute: u64) -> (InstanceState, Option<u64>, bool, Vec<InstanceState>) {
        let now_ns = minute * MIN_US * 1_000;
        let instances = parts.instances(now_ns).iter().map(|instance| instance.state).collect();
        (parts.state(now_ns).0, parts.left_us(now_ns), parts.is_forgotten(now_ns), instances)
    }

    #[test]
    fn a_service_known_from_its_telemetry_leaves_when_it_is_silent_and_is_forgotten_later() {
        use InstanceState::{Detached, Ready};
        let parts = heard_of(9 * MIN_US);
        assert_eq!(told(&parts, 10), (Ready, None, false, vec![Detached, Ready]));
        assert_eq!(told(&parts, 14), (Detached, Some(9 * MIN_US), false, vec![Detached, Detached]));
        assert_eq!(told(&parts, 16), (Detached, Some(9 * MIN_US), false, vec![Detached]));
        assert_eq!(told(&parts, 24), (Detached, Some(9 * MIN_US), true, vec![]));
    }

    #[test]
    fn a_service_that_something_defines_stays() {
        let bound = Parts { bound: true, ..heard_of(0) };
        assert!(!bound.is_forgotten(100 * MIN_US * 1_000));
        let left = Departed { source: Source::Amqp, language: None, left_ns: 5_000 };
        let departed = Parts { departed: Some(left), bound: true, ..Parts::default() };
        assert_eq!((departed.left_us(9_000), departed.is_forgotten(9_000)), (Some(5), false));
    }
}
