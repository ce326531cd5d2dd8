//! What the browser and `/api/v1` read: one struct per interface of `ui/src/api/types`, field for field.
//!
//! Times are Unix microseconds (`_us`), durations nanoseconds (`_ns`), rates per second. Knows nothing of how the values come
//! about; a change here is a change of that agreement.

use crate::model::signal::Attributes;
use serde::Serialize;
use serde::ser::SerializeMap;
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

pub type Micros = u64;
pub type Nanos = u64;

/// How a value is coloured (ui: "When is a value coloured?"). Worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Default, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    #[default]
    Normal,
    Warn,
    Err,
}

/// What a service has done lately, for the columns of `Service` that are measured.
#[derive(Clone, Debug, PartialEq, Serialize, Default, ToSchema)]
pub struct Red {
    pub tone: Tone,
    pub rate: Option<f64>,
    pub error_share: Option<f64>,
    pub p50_ns: Option<Nanos>,
    pub p95_ns: Option<Nanos>,
    /// p95 per 10 s bucket over the last 5 min, null where there was no traffic.
    pub latency_spark: Vec<Option<Nanos>>,
    /// Requests per 10 s bucket over the last 5 min.
    pub rate_spark: Vec<u64>,
}

/// A service known from its telemetry. `node` merges it with the registry by name.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeenService {
    pub space: Arc<str>,
    pub name: Arc<str>,
    pub language: Option<Arc<str>>,
    pub instances: Vec<SeenInstance>,
    pub last_us: Micros,
    /// Body of the newest log record.
    pub last_line: Option<Arc<str>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeenInstance {
    pub name: Arc<str>,
    pub first_us: Micros,
    pub last_us: Micros,
}

#[derive(Clone, Debug, PartialEq, Serialize, Default, ToSchema)]
pub struct TrafficMap {
    pub nodes: Vec<MapNode>,
    pub edges: Vec<MapEdge>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NodeKind {
    Caller,
    Gateway,
    Service,
    Queue,
    Outside,
    Block,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MapNode {
    /// `caller:curl`, `service:/ orders`, `queue:/ worker.orders`, `outside:postgres`, `gateway`.
    pub id: String,
    pub kind: NodeKind,
    /// 0 callers, 1 gateway, 2 services, 3 queues, 4 consumers.
    pub column: u8,
    pub name: String,
    pub slot: Option<u16>,
    /// An `InstanceState`, as the registry has it.
    pub state: Option<crate::model::service::InstanceState>,
    pub tone: Tone,
    pub rate: Option<f64>,
    pub error_share: Option<f64>,
    pub p95_ns: Option<Nanos>,
    pub instances: Vec<crate::model::service::InstanceState>,
    pub queue: Option<MapQueue>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MapQueue {
    pub ready: u64,
    pub unacked: u64,
    pub limit: Option<u64>,
    pub wait_ns: Option<Nanos>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MapEdge {
    pub from: String,
    pub to: String,
    pub rate: f64,
    pub error_share: f64,
    pub p95_ns: Option<Nanos>,
    pub tone: Tone,
    pub last_us: Micros,
}

/// Exact counts over all telemetry: `received = kept + evicted + dropped` for each signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Default, ToSchema)]
pub struct Ledger {
    pub spans: SignalLedger,
    pub logs: SignalLedger,
    pub points: SignalLedger,
    pub bytes: u64,
    pub bytes_max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Default, ToSchema)]
pub struct SignalLedger {
    pub received: u64,
    pub kept: u64,
    pub evicted: u64,
    pub dropped: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Tape {
    pub from_us: Micros,
    pub bucket_us: u64,
    pub requests: Vec<Option<u64>>,
    pub failed: Vec<Option<u64>>,
    pub markers: Vec<Marker>,
    pub gaps: Vec<Gap>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum MarkerKind {
    Change,
    Exit,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Marker {
    pub at_us: Micros,
    pub kind: MarkerKind,
    pub text: String,
    pub href: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Gap {
    pub from_us: Micros,
    pub to_us: Micros,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct HappeningRow {
    pub seq: u64,
    pub at_us: Micros,
    pub name: &'static str,
    /// `info`, `warn` or `error`.
    pub severity: &'static str,
    pub space: Arc<str>,
    pub service: Option<Arc<str>>,
    /// The queue that the line names, unless it is told that the queue is gone.
    pub queue: Option<Arc<str>>,
    pub line: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct LogRow {
    pub seq: u64,
    pub at_us: Micros,
    pub severity: u8,
    pub level: &'static str,
    pub service: Arc<str>,
    pub instance: Arc<str>,
    pub scope: Arc<str>,
    pub body: String,
    pub trace_id: Option<String>,
    pub span_id: Option<String>,
    #[serde(serialize_with = "attributes")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub attributes: Attributes,
}

/// One page of rows, newest last, and what lies around it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Page<T> {
    pub rows: Vec<T>,
    /// Pass as `before` for the next older page; null at the oldest kept.
    pub before: Option<u64>,
    /// Rows in the range that the query matches, all pages together.
    pub matched: u64,
    /// Rows in the range that it does not match.
    pub outside: u64,
    pub oldest_us: Option<Micros>,
    pub took_ns: Nanos,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Histogram {
    pub from_us: Micros,
    pub bucket_us: u64,
    pub error: Vec<u64>,
    pub warn: Vec<u64>,
    pub rest: Vec<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct TraceRow {
    pub seq: u64,
    pub trace_id: String,
    pub started_us: Micros,
    pub duration_ns: Nanos,
    /// Name of its first span.
    pub root: Arc<str>,
    /// Method and path, `GET /orders/42`, where that span is a request: its name says only the route.
    pub request: Option<String>,
    pub root_service: Arc<str>,
    pub services: Vec<Arc<str>>,
    pub spans: u64,
    pub errors: u64,
    /// HTTP status or `ok`/`error`.
    pub status: String,
    /// No root end seen yet.
    pub open: bool,
}

/// Duration over time of the traces that match, thinned evenly to a bound; failed ones are kept first.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Scatter {
    pub points: Vec<ScatterPoint>,
    pub matched: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ScatterPoint {
    pub trace_id: String,
    pub started_us: Micros,
    pub duration_ns: Nanos,
    pub failed: bool,
    pub open: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Trace {
    pub trace_id: String,
    pub started_us: Micros,
    /// Root answered.
    pub answered_ns: Option<Nanos>,
    pub finished_ns: Nanos,
    pub spans: Vec<SpanRow>,
    pub logs: Vec<LogRow>,
    /// Where the time went, only if one step is above 60 %.
    pub verdict: Option<String>,
    pub missing_parents: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SpanRow {
    pub span_id: String,
    pub parent: Option<String>,
    /// Set by reactor without a header from the caller.
    pub inferred: bool,
    pub name: Arc<str>,
    pub kind: crate::model::signal::SpanKind,
    /// Offset from the trace's start.
    pub start_ns: Nanos,
    pub duration_ns: Nanos,
    pub service: Arc<str>,
    pub instance: Arc<str>,
    /// Recorded by reactor itself.
    pub own: bool,
    /// A queue, lock or backoff wait.
    pub wait: bool,
    pub open: bool,
    /// `unset`, `ok` or `error`.
    pub status: &'static str,
    pub status_text: Arc<str>,
    #[serde(serialize_with = "attributes")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub attributes: Attributes,
    pub events: Vec<EventRow>,
    pub links: Vec<LinkRow>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct EventRow {
    pub at_ns: Nanos,
    pub name: Arc<str>,
    #[serde(serialize_with = "attributes")]
    #[schema(value_type = BTreeMap<String, serde_json::Value>)]
    pub attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct LinkRow {
    pub trace_id: String,
    pub span_id: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstrumentKind {
    Gauge,
    Counter,
    UpDownCounter,
    Histogram,
    Summary,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Instrument {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub unit: Arc<str>,
    pub kind: InstrumentKind,
    pub services: Vec<Arc<str>>,
    pub attributes: Vec<String>,
    pub series: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Series {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub service: Arc<str>,
    /// One entry a bucket; null is a gap, never interpolated.
    pub values: Vec<Option<f64>>,
    pub min: Vec<Option<f64>>,
    pub max: Vec<Option<f64>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct SeriesAnswer {
    pub from_us: Micros,
    pub bucket_us: u64,
    pub unit: String,
    /// `rate` (counters), `value` (gauges), `p50/p95/p99` (histograms).
    pub shows: String,
    pub series: Vec<Series>,
}

/// Attributes as one JSON object. Of a repeated key the first is kept.
fn attributes<S: serde::Serializer>(attributes: &Attributes, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    for (at, (key, value)) in attributes.iter().enumerate() {
        let repeated = attributes[..at].iter().any(|(earlier, _)| earlier == key);
        if !repeated {
            map.serialize_entry(key, value)?;
        }
    }
    map.end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    #[test]
    fn a_log_row_is_the_json_that_the_browser_expects() {
        let row = LogRow {
            seq: 7,
            at_us: 1_000,
            severity: 17,
            level: "error",
            service: "orders".into(),
            instance: "orders-1".into(),
            scope: "app".into(),
            body: "no stock".into(),
            trace_id: None,
            span_id: None,
            attributes: vec![(Cow::Borrowed("sku"), 8841.into()), (Cow::Borrowed("sku"), 1.into())],
        };
        let json = serde_json::to_string(&row).expect("serialises");
        assert_eq!(
            json,
            r#"{"seq":7,"at_us":1000,"severity":17,"level":"error","service":"orders","instance":"orders-1","scope":"app","body":"no stock","trace_id":null,"span_id":null,"attributes":{"sku":8841}}"#
        );
    }
}
