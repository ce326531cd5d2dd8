//! Log records, per service in append-only segments.
//!
//! ```text
//!   share "orders"  [segment][segment][head]      segment: row heads (32 bytes each) │ packed rows
//!   share "worker"  [segment][head]                 row: trace id? · span id? · scope · body · attributes
//! ```
//!
//! Sequence numbers run over all services; within a segment they ascend. A snapshot is the segments' pointers: readers scan it
//! without the store's lock while the head is copied only if it must grow under them.

use super::names::NameWriter;
use super::origin::{Origin, Origins};
use super::pack::{List, Packed, Packer, Unpacker};
use super::share::{ShareId, Shares};
use crate::model::signal::{LogRecord, Severity, SpanId, TraceId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows per segment at most, so that an index into it fits and evicting one is a small step.
const SEGMENT_ROWS_MAX: usize = 4_096;
/// What a segment costs besides its rows.
const SEGMENT_BYTES: usize = 256;
const HAS_TRACE: u8 = 1;
const HAS_SPAN: u8 = 2;

#[derive(Clone, Copy, Debug)]
pub struct RowHead {
    pub seq: u64,
    pub at_ns: u64,
    offset: u32,
    /// Low bits of the trace id; 0 if there is none. Compared before the row is read.
    trace_hash: u32,
    origin: u16,
    pub severity: Severity,
    flags: u8,
}

#[derive(Clone, Debug, Default)]
pub struct Segment {
    heads: Vec<RowHead>,
    packed: Vec<u8>,
    origins: Vec<Arc<Origin>>,
    pub oldest_ns: u64,
    pub newest_ns: u64,
}

/// One record, read in place.
pub struct Row<'a> {
    pub head: &'a RowHead,
    pub origin: &'a Arc<Origin>,
    pub trace_id: Option<TraceId>,
    pub span_id: Option<SpanId>,
    pub scope: &'a str,
    pub body: Packed<'a>,
    pub attributes: List<'a>,
}

impl Segment {
    pub fn heads(&self) -> &[RowHead] {
        &self.heads
    }

    pub fn first_seq(&self) -> u64 {
        self.heads.first().map_or(0, |head| head.seq)
    }

    pub fn last_seq(&self) -> u64 {
        self.heads.last().map_or(0, |head| head.seq)
    }

    /// Index of the first row whose number is `seq` or larger.
    pub fn index_of(&self, seq: u64) -> usize {
        self.heads.partition_point(|head| head.seq < seq)
    }

    pub fn origins(&self) -> &[Arc<Origin>] {
        &self.origins
    }

    pub fn origin_of(&self, head: &RowHead) -> &Arc<Origin> {
        &self.origins[usize::from(head.origin)]
    }

    pub fn row<'a>(&'a self, index: usize, names: &'a [Arc<str>]) -> Row<'a> {
        let head = &self.heads[index];
        let mut unpacker = Unpacker::new(&self.packed[head.offset as usize..], names);
        let trace_id = (head.flags & HAS_TRACE != 0).then(|| TraceId(unpacker.array()));
        let span_id = (head.flags & HAS_SPAN != 0).then(|| SpanId(unpacker.array()));
        Row {
            head,
            origin: self.origin_of(head),
            trace_id,
            span_id,
            scope: unpacker.text().text,
            body: unpacker.value(),
            attributes: unpacker.attributes(),
        }
    }

    /// Rows of one trace, by index.
    pub fn of_trace<'a>(&'a self, id: TraceId, names: &'a [Arc<str>]) -> impl Iterator<Item = usize> + 'a {
        let hash = trace_hash(id);
        self.heads
            .iter()
            .enumerate()
            .filter(move |(_, head)| head.trace_hash == hash)
            .map(|(index, _)| index)
            .filter(move |index| self.row(*index, names).trace_id == Some(id))
    }

    fn bytes(&self) -> usize {
        SEGMENT_BYTES + self.heads.len() * size_of::<RowHead>() + self.packed.len()
    }

    fn origin_index(&mut self, origin: &Arc<Origin>) -> u16 {
        // The newest first: a sender's rows come in runs.
        if let Some(index) = self.origins.iter().rposition(|known| Arc::ptr_eq(known, origin)) {
            return index as u16;
        }
        self.origins.push(origin.clone());
        (self.origins.len() - 1) as u16
    }

    // HOT
    fn push(&mut self, seq: u64, record: &LogRecord, origin: &Arc<Origin>, names: &mut NameWriter) {
        let origin = self.origin_index(origin);
        let offset = self.packed.len() as u32;
        let mut packer = Packer { out: &mut self.packed, names };
        let mut flags = 0;
        if let Some(id) = record.trace_id {
            flags |= HAS_TRACE;
            packer.bytes(&id.0);
        }
        if let Some(id) = record.span_id {
            flags |= HAS_SPAN;
            packer.bytes(&id.0);
        }
        packer.name(&record.scope);
        packer.value(&record.body);
        packer.attributes(&record.attributes);
        if self.heads.is_empty() {
            (self.oldest_ns, self.newest_ns) = (record.at_ns, record.at_ns);
        }
        self.oldest_ns = self.oldest_ns.min(record.at_ns);
        self.newest_ns = self.newest_ns.max(record.at_ns);
        let trace_hash = record.trace_id.map_or(0, trace_hash);
        self.heads.push(RowHead { seq, at_ns: record.at_ns, offset, trace_hash, origin, severity: record.severity, flags });
    }
}

fn trace_hash(id: TraceId) -> u32 {
    let [.., a, b, c, d] = id.0;
    u32::from_le_bytes([a, b, c, d]).max(1)
}

#[derive(Debug)]
pub struct LogStore {
    segments: Vec<VecDeque<Arc<Segment>>>,
    shares: Shares,
    next_seq: u64,
    kept: u64,
    bytes_max: usize,
    segment_bytes_max: usize,
}

impl LogStore {
    pub fn new(bytes_max: usize) -> Self {
        LogStore {
            segments: Vec::new(),
            shares: Shares::default(),
            next_seq: 1,
            kept: 0,
            bytes_max,
            segment_bytes_max: (bytes_max / 256).clamp(4 * 1024, 256 * 1024),
        }
    }

    // HOT
    pub fn push(&mut self, record: &LogRecord, origins: &mut Origins, names: &mut NameWriter) -> u64 {
        let origin = origins.of(&record.resource);
        let share = self.shares.of(origin.service());
        if self.segments.len() < self.shares.len() {
            self.segments.resize_with(self.shares.len(), VecDeque::new);
        }
        let list = &mut self.segments[share.index()];
        let full = |head: &Arc<Segment>| head.bytes() >= self.segment_bytes_max || head.heads.len() >= SEGMENT_ROWS_MAX;
        if list.back().is_none_or(full) {
            if let Some(head) = list.back_mut().and_then(Arc::get_mut) {
                head.heads.shrink_to_fit();
                head.packed.shrink_to_fit();
            }
            list.push_back(Arc::default());
            self.shares.grow(share, SEGMENT_BYTES);
        }
        let head = Arc::make_mut(list.back_mut().expect("a head was just made sure of"));
        let before = head.bytes();
        let seq = self.next_seq;
        head.push(seq, record, &origin, names);
        self.shares.grow(share, head.bytes() - before);
        self.next_seq += 1;
        self.kept += 1;
        seq
    }

    /// Removes the oldest segment of whoever holds the most, if the budget is exceeded. Call until `None`.
    pub fn evict(&mut self) -> Option<Arc<Segment>> {
        if self.shares.total() <= self.bytes_max {
            return None;
        }
        let share: ShareId = self.shares.largest()?;
        let segment = self.segments[share.index()].pop_front()?;
        self.shares.shrink(share, segment.bytes());
        self.kept -= segment.heads.len() as u64;
        Some(segment)
    }

    /// All segments, in no particular order.
    pub fn segments(&self) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.iter().flatten()
    }

    /// Segments that hold rows numbered `seq` or later.
    pub fn segments_from(&self, seq: u64) -> impl Iterator<Item = &Arc<Segment>> {
        self.segments.iter().flat_map(move |list| list.iter().rev().take_while(move |segment| segment.last_seq() >= seq))
    }

    /// The number the next row will get.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub fn kept(&self) -> u64 {
        self.kept
    }

    pub fn bytes(&self) -> usize {
        self.shares.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{Resource, Value};
    use proptest::prelude::*;

    fn record(resource: &Arc<Resource>, body: &str) -> LogRecord {
        LogRecord {
            at_ns: 5,
            severity: Severity::INFO,
            body: body.into(),
            resource: resource.clone(),
            scope: "app".into(),
            trace_id: TraceId::parse("5b8efff798038103d269b633813fc60c"),
            span_id: None,
            attributes: vec![("sku".into(), Value::Int(8841))],
        }
    }

    fn resource(service: &str) -> Arc<Resource> {
        Arc::new(Resource { service: service.into(), instance: "".into(), attributes: vec![] })
    }

    fn rows_of(store: &LogStore, service: &str) -> u64 {
        let of_service = |segment: &&Arc<Segment>| &**segment.origins()[0].service() == service;
        store.segments().filter(of_service).map(|segment| segment.heads().len() as u64).sum()
    }

    #[test]
    fn a_row_reads_back_as_it_was_pushed() {
        let (mut store, mut origins, mut names) = (LogStore::new(1 << 20), Origins::default(), NameWriter::default());
        let pushed = record(&resource("orders"), "placing order");
        store.push(&pushed, &mut origins, &mut names);
        let segment = store.segments().next().expect("one");
        let names = names.shared().clone();
        let table = names.read();
        let row = segment.row(0, &table);
        assert_eq!((row.trace_id, row.span_id, row.scope), (pushed.trace_id, None, "app"));
        assert_eq!(row.body.to_value(), pushed.body);
        assert_eq!(row.attributes.to_attributes(), pushed.attributes);
        assert_eq!(segment.of_trace(pushed.trace_id.expect("set"), &table).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_noisy_service_never_evicts_a_quiet_one() {
        let (mut store, mut origins, mut names) = (LogStore::new(1 << 20), Origins::default(), NameWriter::default());
        let (noisy, quiet) = (resource("noisy"), resource("quiet"));
        let mut evicted = 0;
        for n in 0..40_000 {
            if n % 1_000 == 0 {
                store.push(&record(&quiet, "still here"), &mut origins, &mut names);
            }
            store.push(&record(&noisy, "noise noise noise noise noise noise"), &mut origins, &mut names);
            while let Some(segment) = store.evict() {
                evicted += segment.heads().len() as u64;
            }
            assert!(store.bytes() <= 1 << 20);
        }
        assert_eq!(rows_of(&store, "quiet"), 40);
        assert_eq!(store.kept() + evicted, 40_040);
        assert_eq!(store.kept(), rows_of(&store, "quiet") + rows_of(&store, "noisy"));
    }

    proptest! {
        #[test]
        fn bytes_and_counts_stay_exact_over_any_mix(services in prop::collection::vec((0..5u8, 0..400usize), 1..400)) {
            let (mut store, mut origins, mut names) = (LogStore::new(32 * 1024), Origins::default(), NameWriter::default());
            let mut evicted = 0;
            for (service, length) in &services {
                let resource = resource(&service.to_string());
                store.push(&record(&resource, &"x".repeat(*length)), &mut origins, &mut names);
                while let Some(segment) = store.evict() {
                    evicted += segment.heads().len() as u64;
                }
            }
            prop_assert_eq!(store.kept() + evicted, services.len() as u64);
            prop_assert_eq!(store.bytes(), store.segments().map(|segment| segment.bytes()).sum::<usize>());
            prop_assert!(store.bytes() <= 32 * 1024);
        }
    }
}
