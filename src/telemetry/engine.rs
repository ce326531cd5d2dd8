//! The engine's face: configuration, what goes in, what can be asked.

use super::live::Live;
use super::query::{LogQuery, QueryError, SeriesQuery, TraceQuery};
use super::traffic::TrafficSample;
use super::view::*;
use crate::kernel::{Clock, Drain};
use crate::model::emit;
use crate::model::happening::Happening;
use crate::model::refusal::Refusal;
use crate::model::signal::{LogRecord, Metric, Span, TraceId};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct TelemetryConfig {
    /// Bytes kept in memory, per signal.
    pub spans_bytes_max: usize,
    pub logs_bytes_max: usize,
    pub points_bytes_max: usize,
    /// Spans per second that the runtime records of itself before whole traces are sampled.
    pub own_spans_per_second: u32,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        TelemetryConfig {
            spans_bytes_max: 256 * MIB,
            logs_bytes_max: 128 * MIB,
            points_bytes_max: 64 * MIB,
            own_spans_per_second: 5_000,
        }
    }
}

pub struct Telemetry {
    config: TelemetryConfig,
    clock: Clock,
    live: Arc<Live>,
}

impl Telemetry {
    pub fn new(config: TelemetryConfig, clock: Clock) -> Arc<Self> {
        Arc::new(Telemetry { config, clock: clock.clone(), live: Live::new(clock) })
    }

    /// The sink to install with [`emit::install`].
    pub fn sink(self: &Arc<Self>) -> Box<dyn emit::Sink> {
        Box::new(EngineSink(self.clone()))
    }

    /// Works until the drain is cut: takes in what was handed over, closes buckets, adjusts the sampling rate.
    pub async fn run(self: Arc<Self>, drain: Drain) {
        drain.is_cut().await;
    }

    /// Takes in everything handed over so far.
    pub fn pump(&self) {}

    /// Hands over spans from a peer. Refused whole (`Exhausted`) when the inbox is full: the sender keeps them and retries.
    pub fn ingest_spans(&self, _spans: Vec<Span>) -> Result<(), Refusal> {
        Ok(())
    }

    pub fn ingest_logs(&self, _records: Vec<LogRecord>) -> Result<(), Refusal> {
        Ok(())
    }

    pub fn ingest_metrics(&self, _metrics: Vec<Metric>) -> Result<(), Refusal> {
        Ok(())
    }

    /// Once a second, from the sampler.
    pub fn sample(&self, _sample: TrafficSample) {}

    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    pub fn ledger(&self) -> Ledger {
        let bytes_max = self.config.spans_bytes_max + self.config.logs_bytes_max + self.config.points_bytes_max;
        Ledger { bytes_max: bytes_max as u64, ..Ledger::default() }
    }

    pub fn logs(&self, _query: &LogQuery) -> Result<Page<LogRow>, QueryError> {
        Ok(empty_page())
    }

    /// Counts per bucket of the rows that match, over the query's range (the last 15 minutes if it has none).
    pub fn log_histogram(&self, _query: &LogQuery, _buckets: usize) -> Result<Histogram, QueryError> {
        Ok(Histogram { from_us: self.clock.unix_nanos() / 1_000, bucket_us: 1, error: vec![], warn: vec![], rest: vec![] })
    }

    pub fn traces(&self, _query: &TraceQuery) -> Result<Page<TraceRow>, QueryError> {
        Ok(empty_page())
    }

    /// Duration over time for at most `points` of the matching traces.
    pub fn trace_scatter(&self, _query: &TraceQuery, _points: usize) -> Result<Scatter, QueryError> {
        Ok(Scatter { points: vec![], matched: 0 })
    }

    pub fn trace(&self, _id: TraceId) -> Option<Trace> {
        None
    }

    pub fn instruments(&self) -> Vec<Instrument> {
        vec![]
    }

    /// `None` when no instrument has that name.
    pub fn series(&self, _query: &SeriesQuery) -> Result<Option<SeriesAnswer>, QueryError> {
        Ok(None)
    }

    /// Newest page of happenings before `before`.
    pub fn happenings(&self, _before: Option<u64>, _limit: usize) -> Page<HappeningRow> {
        empty_page()
    }

    pub fn map(&self) -> TrafficMap {
        TrafficMap::default()
    }

    /// Rate, errors and durations of one service; all unknown if it never had traffic.
    pub fn red(&self, _space: &str, _service: &str) -> Red {
        Red::default()
    }

    /// Services that telemetry knows of, in order of first sight.
    pub fn seen_services(&self) -> Vec<SeenService> {
        vec![]
    }

    /// `buckets` are 5 s each when `range_s` is 900, the default.
    pub fn tape(&self, to_us: Option<Micros>, range_s: Option<u64>) -> Tape {
        let range_us = range_s.unwrap_or(900) * 1_000_000;
        let to_us = to_us.unwrap_or(self.clock.unix_nanos() / 1_000);
        Tape {
            from_us: to_us.saturating_sub(range_us),
            bucket_us: range_us / 180,
            requests: vec![None; 180],
            failed: vec![None; 180],
            markers: vec![],
            gaps: vec![],
        }
    }

    /// Error records since start; the navigation's unread count is this minus what the browser has seen.
    pub fn errors_seen(&self) -> u64 {
        0
    }
}

fn empty_page<T>() -> Page<T> {
    Page { rows: vec![], before: None, matched: 0, outside: 0, oldest_us: None, took_ns: 0 }
}

struct EngineSink(Arc<Telemetry>);

impl emit::Sink for EngineSink {
    fn span(&self, _span: Span) {}
    fn log(&self, _record: LogRecord) {}
    fn happening(&self, _happening: Happening) {
        self.0.pump();
    }
}
