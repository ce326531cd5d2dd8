//! The store's live readers: log records in order of arrival, traces in order of their last change.
//!
//! A reader is a position and a filter. What it could not be given is counted where it happens: rows that were passed over because
//! a delta is full when it reads, rows that went when they are evicted. The store is the ring; nothing is kept for a reader.

use super::core::{Core, TailState};
use super::live::{Batch, Stream, Subscribe, SubscribeError, Tail};
use super::query::QueryError;
use super::query::filter::Filter;
use super::query::lang::Test;
use super::query::logs::{self, LogFilter, LogTest};
use super::query::pattern::Pattern;
use super::query::traces::{self, TraceFilter, TraceTest};
use super::store::logs::Segment;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub struct LogStream(pub Arc<Mutex<Core>>);
pub struct TraceStream(pub Arc<Mutex<Core>>);

struct LogTail {
    core: Arc<Mutex<Core>>,
    id: u64,
}

struct TraceTail {
    core: Arc<Mutex<Core>>,
    id: u64,
}

pub fn lock(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where a reader begins, in numbers that start at 1.
struct Start {
    position: u64,
    backfill: Option<usize>,
    resumed: bool,
}

fn start(wish: &Subscribe, next_seq: u64) -> Start {
    match (wish.cursor, wish.backfill) {
        (Some(cursor), _) => Start { position: (cursor + 1).min(next_seq), backfill: None, resumed: true },
        (None, Some(rows)) => Start { position: 0, backfill: Some(rows), resumed: false },
        (None, None) => Start { position: next_seq, backfill: None, resumed: false },
    }
}

fn is(wanted: &Option<String>) -> Option<Test> {
    wanted.as_ref().map(|text| Test::Is(Pattern::phrase(text)))
}

fn log_filter(wish: &Subscribe) -> Result<LogFilter, QueryError> {
    let filter = logs::compile(wish.query.as_deref().unwrap_or_default())?;
    let tests =
        [is(&wish.service).map(LogTest::Service), is(&wish.instance).map(LogTest::Instance), is(&wish.space).map(LogTest::Space)];
    Ok(tests.into_iter().flatten().fold(filter, Filter::and))
}

fn trace_filter(wish: &Subscribe) -> Result<TraceFilter, QueryError> {
    let filter = traces::compile(wish.query.as_deref().unwrap_or_default())?;
    let tests = [
        is(&wish.service).map(TraceTest::Service),
        is(&wish.instance).map(TraceTest::Instance),
        is(&wish.space).map(TraceTest::Space),
    ];
    Ok(tests.into_iter().flatten().fold(filter, Filter::and))
}

impl Stream for LogStream {
    fn open(&self, wish: &Subscribe) -> Result<Box<dyn Tail>, SubscribeError> {
        let filter = log_filter(wish)?;
        let mut core = lock(&self.0);
        let Start { position, backfill, resumed } = start(wish, core.logs.next_seq());
        // Nobody asked this filter while its reader was away, so every row that went counts.
        let evicted = if resumed {
            let kept: usize =
                core.logs.segments_from(position).map(|segment| segment.heads().len() - segment.index_of(position)).sum();
            core.logs.next_seq() - position - kept as u64
        } else {
            0
        };
        let id = core.next_tail;
        core.next_tail += 1;
        core.log_tails.push(TailState { id, filter, position, evicted, backfill });
        Ok(Box::new(LogTail { core: self.0.clone(), id }))
    }
}

impl Stream for TraceStream {
    fn open(&self, wish: &Subscribe) -> Result<Box<dyn Tail>, SubscribeError> {
        let filter = trace_filter(wish)?;
        let mut core = lock(&self.0);
        let Start { position, backfill, resumed } = start(wish, core.traces.next_seq());
        let gone = core.evicted_traces.iter().filter(|seq| resumed && **seq >= position).count() as u64;
        let id = core.next_tail;
        core.next_tail += 1;
        core.trace_tails.push(TailState { id, filter, position, evicted: gone, backfill });
        // From here on a change must give its trace a number that this reader has not passed.
        core.traces.observe();
        Ok(Box::new(TraceTail { core: self.0.clone(), id }))
    }
}

/// Gathers rows from the newest to the oldest until a delta is full.
struct Gatherer {
    rows: Vec<Box<RawValue>>,
    matched: u64,
    bytes: usize,
    rows_max: usize,
    bytes_max: usize,
    full: bool,
}

impl Gatherer {
    fn new(rows_max: usize, bytes_max: usize) -> Self {
        Gatherer { rows: Vec::new(), matched: 0, bytes: 0, rows_max, bytes_max, full: rows_max == 0 }
    }

    fn add(&mut self, row: &impl Serialize) {
        let row = to_raw_value(row).expect("views are plain data with text keys");
        self.bytes += row.get().len();
        self.full = self.rows.len() >= self.rows_max || (self.bytes > self.bytes_max && !self.rows.is_empty());
        if !self.full {
            self.rows.push(row);
        }
    }

    fn batch<F>(mut self, tail: &mut TailState<F>, next_seq: u64) -> Batch {
        self.rows.reverse();
        let skipped = self.matched - self.rows.len() as u64;
        let evicted = std::mem::take(&mut tail.evicted);
        tail.position = next_seq;
        // What lies before the rows of a first read was never promised: it is history, not a gap.
        let is_first = tail.backfill.take().is_some();
        let (skipped, evicted) = if is_first { (0, 0) } else { (skipped, evicted) };
        Batch { cursor: next_seq - 1, rows: self.rows, skipped, evicted }
    }
}

impl Tail for LogTail {
    fn read(&mut self, rows_max: usize, bytes_max: usize) -> Batch {
        let mut core = lock(&self.core);
        let Core { logs: store, log_tails, names, .. } = &mut *core;
        let tail = log_tails.iter_mut().find(|tail| tail.id == self.id).expect("registered until dropped");
        let rows_max = tail.backfill.unwrap_or(rows_max).min(rows_max);
        let names = names.shared().read();
        let mut gatherer = Gatherer::new(rows_max, bytes_max);
        let mut newest: BinaryHeap<Reverse<(u64, usize, usize)>> = BinaryHeap::new();
        let segments: Vec<&Arc<Segment>> = store.segments_from(tail.position).collect();
        for (at, segment) in segments.iter().enumerate() {
            let first = segment.index_of(tail.position);
            if tail.filter.is_all() {
                gatherer.matched += (segment.heads().len() - first) as u64;
            }
            for index in (first..segment.heads().len()).rev() {
                let seq = segment.heads()[index].seq;
                let too_old = newest.len() >= rows_max && newest.peek().is_none_or(|Reverse((oldest, _, _))| seq < *oldest);
                if tail.filter.is_all() {
                    // Rows before this one are older still, and already counted.
                    if too_old {
                        break;
                    }
                } else if logs::matches(&tail.filter, segment, index, &names) {
                    gatherer.matched += 1;
                } else {
                    continue;
                }
                if !too_old {
                    newest.push(Reverse((seq, at, index)));
                }
                if newest.len() > rows_max {
                    newest.pop();
                }
            }
        }
        // Sorting by reversed numbers puts the newest first.
        for Reverse((_, at, index)) in newest.into_sorted_vec() {
            gatherer.add(&logs::to_row(&segments[at].row(index, &names)));
            if gatherer.full {
                break;
            }
        }
        gatherer.batch(tail, store.next_seq())
    }
}

impl Tail for TraceTail {
    fn read(&mut self, rows_max: usize, bytes_max: usize) -> Batch {
        let mut core = lock(&self.core);
        let Core { traces: store, trace_tails, names, .. } = &mut *core;
        let tail = trace_tails.iter_mut().find(|tail| tail.id == self.id).expect("registered until dropped");
        let names = names.shared().read();
        let mut gatherer = Gatherer::new(tail.backfill.unwrap_or(rows_max).min(rows_max), bytes_max);
        for entry in store.range(tail.position, u64::MAX).rev().filter(|entry| traces::matches(&tail.filter, entry, &names)) {
            gatherer.matched += 1;
            if !gatherer.full {
                gatherer.add(&traces::to_row(entry));
            }
        }
        let batch = gatherer.batch(tail, store.next_seq());
        store.observe();
        batch
    }
}

impl Drop for LogTail {
    fn drop(&mut self) {
        lock(&self.core).log_tails.retain(|tail| tail.id != self.id);
    }
}

impl Drop for TraceTail {
    fn drop(&mut self) {
        lock(&self.core).trace_tails.retain(|tail| tail.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{LogRecord, Resource, Severity, Span, SpanId, SpanKind, SpanStatus, TraceId};
    use crate::telemetry::TelemetryConfig;
    use crate::telemetry::live::Channel;
    use proptest::prelude::*;
    use std::collections::{HashMap, HashSet};

    fn core(bytes_max: usize) -> Arc<Mutex<Core>> {
        let config = TelemetryConfig {
            spans_bytes_max: bytes_max,
            logs_bytes_max: bytes_max,
            points_bytes_max: bytes_max,
            ..TelemetryConfig::default()
        };
        Arc::new(Mutex::new(Core::new(&config)))
    }

    fn wish(channel: Channel, query: &str, cursor: Option<u64>, backfill: Option<usize>) -> Subscribe {
        Subscribe { id: 1, channel, query: Some(query.to_owned()), service: None, instance: None, space: None, cursor, backfill }
    }

    fn resource(service: u8) -> Arc<Resource> {
        Arc::new(Resource { service: service.to_string().into(), instance: "".into(), attributes: vec![] })
    }

    fn log(core: &Mutex<Core>, service: u8) {
        let record = LogRecord {
            at_ns: 1,
            severity: Severity::INFO,
            body: "a line of text that takes some room".into(),
            resource: resource(service),
            scope: "".into(),
            trace_id: None,
            span_id: None,
            attributes: vec![],
        };
        lock(core).push_log(&record, 1);
    }

    fn span(core: &Mutex<Core>, service: u8, trace: u8) {
        let span = Span {
            trace_id: TraceId([trace + 1; 16]),
            span_id: SpanId([1; 8]),
            parent: None,
            name: "x".into(),
            kind: SpanKind::Internal,
            start_ns: 1,
            end_ns: 2,
            status: SpanStatus::Unset,
            resource: resource(service),
            scope: "".into(),
            attributes: vec![],
            events: vec![],
            links: vec![],
        };
        lock(core).push_span(&span, 1, 1.0);
    }

    fn field<T: serde::de::DeserializeOwned>(row: &RawValue, name: &str) -> T {
        let row: serde_json::Value = serde_json::from_str(row.get()).expect("an object");
        serde_json::from_value(row[name].clone()).expect("the type asked for")
    }

    #[test]
    fn a_log_reader_starts_at_the_live_end_or_with_the_newest_rows() {
        let core = core(1 << 20);
        (0..10).for_each(|n| log(&core, n % 2));
        let stream = LogStream(core.clone());
        let mut live = stream.open(&wish(Channel::Logs, "", None, None)).expect("opened");
        let mut back = stream.open(&wish(Channel::Logs, "service:1", None, Some(2))).expect("opened");
        assert_eq!(live.read(500, 1 << 20).rows.len(), 0);
        let batch = back.read(500, 1 << 20);
        let numbers: Vec<u64> = batch.rows.iter().map(|row| field(row, "seq")).collect();
        assert_eq!((numbers, batch.skipped, batch.cursor), (vec![8, 10], 0, 10));
        log(&core, 1);
        assert_eq!((live.read(500, 1 << 20).rows.len(), back.read(500, 1 << 20).rows.len()), (1, 1));
        let mut resumed = stream.open(&wish(Channel::Logs, "", Some(9), None)).expect("opened");
        assert_eq!(resumed.read(500, 1 << 20).rows.len(), 2);
        assert!(stream.open(&wish(Channel::Logs, "a(", None, None)).is_err());
    }

    #[test]
    fn a_delta_of_large_rows_is_cut_and_the_rest_counted() {
        let core = core(1 << 20);
        let stream = LogStream(core.clone());
        let mut tail = stream.open(&wish(Channel::Logs, "", None, None)).expect("opened");
        (0..10).for_each(|_| log(&core, 1));
        let batch = tail.read(500, 500);
        assert!((1..9).contains(&batch.rows.len()));
        assert_eq!(batch.rows.len() as u64 + batch.skipped, 10);
        assert_eq!(field::<u64>(batch.rows.last().expect("some"), "seq"), 10, "the newest are sent");
    }

    #[test]
    fn a_trace_that_changed_is_sent_again_and_one_that_did_not_is_not() {
        let core = core(1 << 20);
        let stream = TraceStream(core.clone());
        let mut tail = stream.open(&wish(Channel::Traces, "", None, Some(50))).expect("opened");
        span(&core, 1, 1);
        span(&core, 1, 2);
        assert_eq!(tail.read(500, 1 << 20).rows.len(), 2);
        span(&core, 1, 1);
        span(&core, 1, 1);
        let batch = tail.read(500, 1 << 20);
        assert_eq!(batch.rows.len(), 1);
        assert_eq!(field::<u64>(&batch.rows[0], "spans"), 3);
        assert!(tail.read(500, 1 << 20).rows.is_empty());
    }

    #[test]
    fn a_reader_that_left_is_forgotten() {
        let core = core(1 << 20);
        let tail = LogStream(core.clone()).open(&wish(Channel::Logs, "", None, None)).expect("opened");
        assert_eq!(lock(&core).log_tails.len(), 1);
        drop(tail);
        assert!(lock(&core).log_tails.is_empty());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        /// Every matching record is sent, skipped or evicted, exactly once, whatever is filtered, evicted and however rarely read.
        #[test]
        fn no_log_row_is_lost_doubled_or_miscounted(
            steps in prop::collection::vec((0..8u8, 0..4u8), 1..500), rows_max in 0..12usize, kept in 6..40usize)
        {
            let core = core(kept * 1_024);
            let stream = LogStream(core.clone());
            let queries = ["", "service:0", "service:1 OR service:2"];
            let matches = |query: usize, service: u8| [true, service == 0, service == 1 || service == 2][query];
            let mut tails: Vec<_> =
                queries.iter().map(|query| stream.open(&wish(Channel::Logs, query, None, None)).expect("opened")).collect();
            let (mut pushed, mut accounted, mut last) = ([0u64; 3], [0u64; 3], [0u64; 3]);
            let mut read = |which: usize, accounted: &mut [u64; 3]| {
                let batch = tails[which].read(rows_max, 1 << 20);
                let numbers: Vec<u64> = batch.rows.iter().map(|row| field(row, "seq")).collect();
                assert!(numbers.len() <= rows_max && numbers.is_sorted() && numbers.iter().all(|seq| *seq > last[which]));
                assert!(batch.rows.iter().all(|row| matches(which, field::<String>(row, "service").parse().expect("a number"))));
                last[which] = batch.cursor;
                accounted[which] += numbers.len() as u64 + batch.skipped + batch.evicted;
            };
            for (what, service) in steps {
                if what == 0 {
                    read(usize::from(service) % 3, &mut accounted);
                } else {
                    log(&core, service);
                    (0..3).for_each(|query| pushed[query] += u64::from(matches(query, service)));
                }
            }
            (0..3).for_each(|which| read(which, &mut accounted));
            prop_assert_eq!(accounted, pushed);
            let ledger = lock(&core).ledger();
            prop_assert_eq!(ledger.logs.received, ledger.logs.kept + ledger.logs.evicted + ledger.logs.dropped);
        }

        /// After reading, a browser that keeps the newest row of each trace knows the last state of every trace that still exists
        /// and was changed since it began, save for those it was told were skipped.
        #[test]
        fn a_trace_reader_converges_and_counts_what_it_missed(
            steps in prop::collection::vec((0..8u8, 0..3u8, 0..30u8), 1..400), rows_max in 1..40usize, kept in 8..40usize)
        {
            let core = core(kept * 1_024);
            let stream = TraceStream(core.clone());
            let mut tail = stream.open(&wish(Channel::Traces, "", None, None)).expect("opened");
            let mut known: HashMap<String, u64> = HashMap::new();
            let mut changed: HashSet<u8> = HashSet::new();
            let mut missed = 0;
            for (what, service, trace) in steps {
                if what == 0 {
                    let batch = tail.read(rows_max, 1 << 20);
                    let due = changed.iter().filter(|trace| lock(&core).traces.get(TraceId([**trace + 1; 16])).is_some()).count();
                    assert_eq!(batch.rows.len() as u64 + batch.skipped, due as u64);
                    missed += batch.skipped;
                    known.extend(batch.rows.iter().map(|row| (field(row, "trace_id"), field(row, "spans"))));
                    changed.clear();
                } else {
                    span(&core, service, trace);
                    changed.insert(trace);
                }
            }
            known.extend(tail.read(100, 1 << 20).rows.iter().map(|row| (field(row, "trace_id"), field::<u64>(row, "spans"))));
            if missed == 0 {
                let core = lock(&core);
                for entry in core.traces.range(0, u64::MAX) {
                    prop_assert_eq!(known.get(&entry.id.to_string()), Some(&u64::from(entry.spans)));
                }
            }
        }
    }
}
