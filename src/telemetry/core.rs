//! The store and everything that is derived from what passes into it, behind one lock.

use super::TelemetryConfig;
use super::inbox::Signal;
use super::map::Map;
use super::query::logs::{self, LogFilter};
use super::query::traces::{self, TraceFilter};
use super::rollup::services::Services;
use super::rollup::tape::Recorder;
use super::store::logs::{LogStore, Segment};
use super::store::names::NameWriter;
use super::store::origin::Origins;
use super::store::series::SeriesStore;
use super::store::traces::{OWN_SCOPE, Pushed, TraceEntry, TraceStore};
use super::view::{Ledger, SignalLedger};
use crate::model::signal::{LogRecord, Metric, Severity, Span};
use std::collections::VecDeque;
use std::sync::Arc;

pub struct Core {
    pub names: NameWriter,
    pub origins: Origins,
    pub logs: LogStore,
    pub traces: TraceStore,
    pub series: SeriesStore,
    pub services: Services,
    pub map: Map,
    pub tape: Recorder,
    pub log_tails: Vec<TailState<LogFilter>>,
    pub trace_tails: Vec<TailState<TraceFilter>>,
    pub next_tail: u64,
    /// Numbers of evicted traces, newest last: what a resumed reader missed.
    pub evicted_traces: VecDeque<u64>,
    counts: [Counts; 3],
    bytes_max: usize,
    pub errors: u64,
}

/// A live reader of the store.
#[derive(Debug)]
pub struct TailState<F> {
    pub id: u64,
    pub filter: F,
    /// The first number it has not seen.
    pub position: u64,
    pub evicted: u64,
    /// Rows of the first read at most, if it asked for some from before it began.
    pub backfill: Option<usize>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    received: u64,
    evicted: u64,
    dropped: u64,
}

/// Remembered numbers of evicted traces.
const EVICTED_TRACES_MAX: usize = 65_536;

impl Core {
    pub fn new(config: &TelemetryConfig) -> Self {
        Core {
            names: NameWriter::default(),
            origins: Origins::default(),
            logs: LogStore::new(config.logs_bytes_max),
            traces: TraceStore::new(config.spans_bytes_max),
            series: SeriesStore::new(config.points_bytes_max),
            services: Services::default(),
            map: Map::default(),
            tape: Recorder::default(),
            log_tails: Vec::new(),
            trace_tails: Vec::new(),
            next_tail: 0,
            evicted_traces: VecDeque::new(),
            counts: [Counts::default(); 3],
            bytes_max: config.spans_bytes_max + config.logs_bytes_max + config.points_bytes_max,
            errors: 0,
        }
    }

    // HOT
    pub fn push_span(&mut self, span: &Span, now_ns: u64, own_weight: f64) {
        let counts = &mut self.counts[Signal::Spans as usize];
        counts.received += 1;
        if self.traces.push(span, now_ns, &mut self.origins, &mut self.names) == Pushed::Dropped {
            counts.dropped += 1;
        }
        while let Some(entry) = self.traces.evict() {
            self.forget_trace(&entry);
        }
        let weight = if &*span.scope == OWN_SCOPE { own_weight } else { 1.0 };
        let origin = self.origins.of(&span.resource);
        self.services.span(span, &origin, now_ns, weight);
        self.map.span(span, &origin, now_ns, weight);
    }

    fn forget_trace(&mut self, entry: &TraceEntry) {
        self.counts[Signal::Spans as usize].evicted += u64::from(entry.spans);
        if self.evicted_traces.len() >= EVICTED_TRACES_MAX {
            self.evicted_traces.pop_front();
        }
        self.evicted_traces.push_back(entry.seq);
        if self.trace_tails.is_empty() {
            return;
        }
        let names = self.names.shared().read();
        for tail in self.trace_tails.iter_mut().filter(|tail| tail.position <= entry.seq) {
            tail.evicted += u64::from(traces::matches(&tail.filter, entry, &names));
        }
    }

    // HOT
    pub fn push_log(&mut self, record: &LogRecord, now_ns: u64) {
        self.counts[Signal::Logs as usize].received += 1;
        self.errors += u64::from(record.severity >= Severity::ERROR);
        self.logs.push(record, &mut self.origins, &mut self.names);
        while let Some(segment) = self.logs.evict() {
            self.forget_logs(&segment);
        }
        let origin = self.origins.of(&record.resource);
        self.services.log(record, &origin, now_ns);
    }

    fn forget_logs(&mut self, segment: &Arc<Segment>) {
        self.counts[Signal::Logs as usize].evicted += segment.heads().len() as u64;
        let behind = |tail: &&mut TailState<LogFilter>| tail.position <= segment.last_seq();
        let mut behind = self.log_tails.iter_mut().filter(behind).peekable();
        if behind.peek().is_none() {
            return;
        }
        let names = self.names.shared().read();
        for tail in behind {
            let unseen = segment.index_of(tail.position)..segment.heads().len();
            tail.evicted += unseen.filter(|index| logs::matches(&tail.filter, segment, *index, &names)).count() as u64;
        }
    }

    pub fn push_metric(&mut self, metric: &Metric, now_ns: u64) {
        let taken = self.series.push(metric, now_ns, &mut self.origins);
        let counts = &mut self.counts[Signal::Points as usize];
        counts.received += metric.points.len() as u64;
        counts.dropped += taken.dropped;
        counts.evicted += taken.evicted;
        while let Some(points) = self.series.evict() {
            counts.evicted += points;
        }
        let origin = self.origins.of(&metric.resource);
        self.services.metric(&origin, now_ns);
    }

    /// Counts what never came so far as to be kept.
    pub fn drop_rows(&mut self, signal: Signal, count: u64) {
        let counts = &mut self.counts[signal as usize];
        counts.received += count;
        counts.dropped += count;
    }

    pub fn ledger(&self) -> Ledger {
        let of = |signal: Signal, kept: u64| {
            let counts = self.counts[signal as usize];
            debug_assert_eq!(counts.received, kept + counts.evicted + counts.dropped, "{signal:?} add up");
            SignalLedger { received: counts.received, kept, evicted: counts.evicted, dropped: counts.dropped }
        };
        Ledger {
            spans: of(Signal::Spans, self.traces.kept()),
            logs: of(Signal::Logs, self.logs.kept()),
            points: of(Signal::Points, self.series.kept()),
            bytes: (self.traces.bytes() + self.logs.bytes() + self.series.bytes()) as u64,
            bytes_max: self.bytes_max as u64,
        }
    }
}
