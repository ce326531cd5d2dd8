//! What the sampler reads once a second: exact counts per service and per caller, never sampled.

use std::sync::Arc;

/// Upper bounds of the latency buckets, in milliseconds; one more bucket holds what is slower.
pub const LATENCY_BOUNDS_MS: [f64; 20] =
    [0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 5_000.0, 30_000.0];

pub const LATENCY_BUCKET_COUNT: usize = LATENCY_BOUNDS_MS.len() + 1;

/// Counts since start; they only grow, except `in_flight`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    pub requests: u64,
    /// Answers of 500 and above, and answers cut midway.
    pub failed: u64,
    /// Requests whose client went away before the answer (logged as 499).
    pub abandoned: u64,
    pub in_flight: i64,
    /// Finished requests per bucket of [`LATENCY_BOUNDS_MS`].
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
pub(super) struct Stats {}

impl Stats {
    pub(super) fn snapshot(&self) -> StatsSnapshot {
        StatsSnapshot::default()
    }
}
