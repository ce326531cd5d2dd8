//! What the sampler reads once a second: exact counts per service and per caller, never sampled.
//!
//! Services and callers are found by name in maps that are only replaced when a new name comes, so a request takes no lock. Both
//! are bounded; beyond, everything is counted under [`OTHER`].

use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the latency buckets, in milliseconds; one more bucket holds what is slower. Up to ten seconds none but the first is wider than
/// half of its bound, so that a percentile read from them is near the truth.
pub const LATENCY_BOUNDS_MS: [f64; 31] = [
    0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0,
    500.0, 750.0, 1_000.0, 1_500.0, 2_000.0, 3_000.0, 5_000.0, 7_500.0, 10_000.0, 30_000.0,
];

pub const LATENCY_BUCKET_COUNT: usize = LATENCY_BOUNDS_MS.len() + 1;

/// The name under which everything beyond the bounds is counted.
pub const OTHER: &str = "other";

const SERVICES_MAX: usize = 512;
const CALLERS_PER_SERVICE_MAX: usize = 32;
const CALLER_BYTES_MAX: usize = 40;

/// Counts since start; they only grow, except `in_flight`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    pub requests: u64,
    /// Answers of 500 and above, and answers cut midway.
    pub failed: u64,
    /// Requests whose client went away before the answer (logged as 499).
    pub abandoned: u64,
    pub in_flight: i64,
    /// Answered requests per bucket of [`LATENCY_BOUNDS_MS`], from the request's head to the answer's.
    pub latency: [u64; LATENCY_BUCKET_COUNT],
    pub latency_sum_ms: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ServiceCounts {
    pub space: Arc<str>,
    pub service: Arc<str>,
    pub counts: Counts,
}

/// Who asks whom: `caller` is the product of the User-Agent (`curl`, `python-requests`, `browser`).
#[derive(Clone, Debug, PartialEq)]
pub struct CallerCounts {
    pub caller: Arc<str>,
    pub service: Arc<str>,
    pub requests: u64,
    pub failed: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatsSnapshot {
    /// Every request, also those that no service matched.
    pub total: Counts,
    pub services: Vec<ServiceCounts>,
    pub callers: Vec<CallerCounts>,
    /// Upstream HTTP connections open now, and opened since start.
    pub upstream_connections: i64,
    pub upstream_connections_opened: u64,
    /// Bytes of call bodies held now.
    pub call_body_bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Tally {
    requests: AtomicU64,
    failed: AtomicU64,
    abandoned: AtomicU64,
    in_flight: AtomicI64,
    latency: [AtomicU64; LATENCY_BUCKET_COUNT],
    latency_sum_us: AtomicU64,
}

impl Tally {
    pub(super) fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, took: Duration) {
        let ms = took.as_secs_f64() * 1_000.0;
        let bucket = LATENCY_BOUNDS_MS.partition_point(|bound| *bound < ms);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.latency[bucket].fetch_add(1, Ordering::Relaxed);
        self.latency_sum_us.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn abandoned(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.abandoned.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> Counts {
        Counts {
            requests: self.requests.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            abandoned: self.abandoned.load(Ordering::Relaxed),
            in_flight: self.in_flight.load(Ordering::Relaxed),
            latency: std::array::from_fn(|bucket| self.latency[bucket].load(Ordering::Relaxed)),
            latency_sum_ms: self.latency_sum_us.load(Ordering::Relaxed) as f64 / 1_000.0,
        }
    }
}

/// One service's counts, and its callers'.
#[derive(Debug, Default)]
pub(super) struct ServiceTally {
    pub(super) all: Tally,
    callers: Names<CallerTally>,
}

impl ServiceTally {
    pub(super) fn caller(&self, caller: &str) -> Arc<CallerTally> {
        self.callers.get_or_add(caller, CALLERS_PER_SERVICE_MAX)
    }
}

#[derive(Debug, Default)]
pub(super) struct CallerTally {
    requests: AtomicU64,
    failed: AtomicU64,
}

impl CallerTally {
    pub(super) fn answered(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(super) struct Stats {
    pub(super) total: Tally,
    services: Names<ServiceTally>,
}

impl Stats {
    /// The counts of a service that was asked before.
    pub(super) fn known(&self, service: &str) -> Option<Arc<ServiceTally>> {
        self.services.get(service)
    }

    /// The counts of a service that exists; a name that a client made up must not come here.
    pub(super) fn of(&self, service: &str) -> Arc<ServiceTally> {
        self.services.get_or_add(service, SERVICES_MAX)
    }

    pub(super) fn snapshot(&self, space: &Arc<str>) -> StatsSnapshot {
        let mut snapshot = StatsSnapshot { total: self.total.counts(), ..StatsSnapshot::default() };
        for (service, tally) in self.services.all().iter() {
            let counts = tally.all.counts();
            snapshot.services.push(ServiceCounts { space: space.clone(), service: service.clone(), counts });
            for (caller, tally) in tally.callers.all().iter() {
                snapshot.callers.push(CallerCounts {
                    caller: caller.clone(),
                    service: service.clone(),
                    requests: tally.requests.load(Ordering::Relaxed),
                    failed: tally.failed.load(Ordering::Relaxed),
                });
            }
        }
        snapshot.services.sort_by(|a, b| a.service.cmp(&b.service));
        snapshot.callers.sort_by(|a, b| (&a.service, &a.caller).cmp(&(&b.service, &b.caller)));
        snapshot
    }
}

/// A bounded map that is read without a lock.
#[derive(Debug)]
struct Names<T> {
    map: ArcSwap<HashMap<Arc<str>, Arc<T>>>,
    adding: Mutex<()>,
}

impl<T> Default for Names<T> {
    fn default() -> Self {
        Names { map: ArcSwap::default(), adding: Mutex::new(()) }
    }
}

impl<T: Default> Names<T> {
    fn get(&self, name: &str) -> Option<Arc<T>> {
        self.map.load().get(name).cloned()
    }

    fn all(&self) -> Arc<HashMap<Arc<str>, Arc<T>>> {
        self.map.load_full()
    }

    fn get_or_add(&self, name: &str, count_max: usize) -> Arc<T> {
        if let Some(found) = self.get(name) {
            return found;
        }
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let mut map = HashMap::clone(&self.map.load());
        let name = if map.contains_key(name) || map.len() < count_max { name } else { OTHER };
        let value = map.entry(Arc::from(name)).or_default().clone();
        self.map.store(Arc::new(map));
        value
    }
}

/// The product of a User-Agent: `curl/8.5.0` is `curl`; everything that calls itself Mozilla is `browser`.
pub(super) fn caller_of(user_agent: Option<&[u8]>) -> String {
    let Some(user_agent) = user_agent.filter(|agent| !agent.is_empty()) else { return "unknown".to_owned() };
    let product = user_agent.split(|byte| matches!(byte, b'/' | b' ')).next().unwrap_or_default();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if product.is_empty() || product.len() > CALLER_BYTES_MAX || !product.iter().all(is_plain) {
        return OTHER.to_owned();
    }
    let product = String::from_utf8_lossy(product).to_ascii_lowercase();
    if product == "mozilla" { "browser".to_owned() } else { product }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callers_are_the_products_of_user_agents() {
        for (agent, caller) in [
            ("curl/8.5.0", "curl"),
            ("python-requests/2.32", "python-requests"),
            ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "browser"),
            ("Go-http-client/2.0", "go-http-client"),
            ("node", "node"),
            ("", "unknown"),
            ("<script>/1", "other"),
        ] {
            assert_eq!(caller_of(Some(agent.as_bytes())), caller);
        }
        assert_eq!(caller_of(None), "unknown");
        assert_eq!(caller_of(Some(&[b'a'; 100])), "other");
    }

    #[test]
    fn counts_add_up_per_service_and_caller() {
        let stats = Stats::default();
        let greeter = stats.of("greeter");
        greeter.all.begin();
        greeter.all.answered(Duration::from_micros(250));
        greeter.all.failed();
        greeter.caller("curl").answered();
        stats.total.answered(Duration::from_secs(100));
        let snapshot = stats.snapshot(&Arc::from("/"));
        let counts = &snapshot.services[0].counts;
        assert_eq!((counts.requests, counts.failed, counts.in_flight, counts.latency[2]), (1, 1, 1, 1));
        assert_eq!(snapshot.total.latency[LATENCY_BUCKET_COUNT - 1], 1);
        assert_eq!((&*snapshot.callers[0].caller, snapshot.callers[0].requests), ("curl", 1));
    }

    #[test]
    fn names_beyond_the_bound_are_counted_together() {
        let tally = ServiceTally::default();
        for n in 0..100 {
            tally.caller(&format!("client-{n}")).answered();
        }
        let callers = tally.callers.all();
        assert_eq!(callers.len(), CALLERS_PER_SERVICE_MAX + 1);
        assert_eq!(callers[OTHER].requests.load(Ordering::Relaxed), 100 - CALLERS_PER_SERVICE_MAX as u64);
    }
}
