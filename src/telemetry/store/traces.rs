//! Spans, kept trace by trace and evicted as whole traces.
//!
//! ```text
//!   by_seq   12 ─▶ trace a    19 ─▶ trace b      a trace has the number of its last change that somebody may have missed
//!   shares   "orders" [a, …]  "worker" [b, …]    a trace is charged to one service: the first that is not the runtime itself
//!   entry    what its row shows │ packed spans
//! ```
//!
//! Invariants: a number belongs to one trace at a time and only moves forward; what a reader at number n has not seen has a
//! number above n.

use super::names::NameWriter;
use super::origin::{Origin, Origins};
use super::pack::{List, Packer, Unpacker};
use super::share::{ShareId, Shares};
use crate::model::signal::{Attributes, Span, SpanEvent, SpanId, SpanKind, SpanLink, SpanStatus, TraceId, Value};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

/// Spans of one trace at most; a producer that never changes its trace id would else own the store. Later ones are dropped.
pub const SPANS_PER_TRACE_MAX: u32 = 50_000;
/// What a trace costs besides its spans.
const ENTRY_BYTES: usize = 400;
/// Longest method and path kept beside a trace's root; the root span itself has all of it.
const REQUEST_BYTES_MAX: usize = 256;
/// After this long without a new span a trace whose root never came is shown as it is.
const OPEN_NS_MAX: u64 = 60_000_000_000;
/// Scope of the spans that the runtime records itself.
pub const OWN_SCOPE: &str = "reactor";

const KIND: u8 = 0b0000_0111;
const HAS_PARENT: u8 = 0b0000_1000;
const IS_OK: u8 = 0b0001_0000;
const IS_ERROR: u8 = 0b0010_0000;
const IS_OWN: u8 = 0b0100_0000;
const IS_OPEN: u8 = 0b1000_0000;

/// What a trace's row says of its root.
#[derive(Clone, Debug)]
pub struct Root {
    pub name: Arc<str>,
    pub start_ns: u64,
    pub end_ns: u64,
    pub failed: bool,
    pub http_status: Option<u16>,
    /// `GET /orders/42`: what an HTTP server was asked for. Its name, `GET /orders`, says only the route.
    pub request: Option<Box<str>>,
    /// Has no parent; otherwise it is the earliest span seen, standing in.
    is_root: bool,
    /// The gateway's own span: where the trace entered, whatever its caller claims.
    is_entry: bool,
    origin: u16,
}

#[derive(Debug)]
pub struct TraceEntry {
    pub id: TraceId,
    pub seq: u64,
    pub started_ns: u64,
    pub ended_ns: u64,
    pub spans: u32,
    pub errors: u32,
    root: Root,
    /// When its last span arrived.
    changed_ns: u64,
    given_up: bool,
    share: ShareId,
    charged_to_runtime: bool,
    origins: SmallVec<[Arc<Origin>; 2]>,
    /// First start per service, by an origin of it.
    services: SmallVec<[(u16, u64); 4]>,
    packed: Vec<u8>,
}

/// One span, read in place.
pub struct PackedSpan<'a> {
    pub span_id: SpanId,
    pub parent: Option<SpanId>,
    pub kind: SpanKind,
    pub start_ns: u64,
    /// Equal to the start while it is open.
    pub end_ns: u64,
    pub open: bool,
    pub own: bool,
    pub failed: bool,
    pub ok: bool,
    pub status_text: &'a str,
    pub name: &'a str,
    pub scope: &'a str,
    pub origin: &'a Arc<Origin>,
    pub attributes: List<'a>,
    rest: Unpacker<'a>,
}

impl TraceEntry {
    pub fn root(&self) -> &Root {
        &self.root
    }

    pub fn root_origin(&self) -> &Arc<Origin> {
        &self.origins[usize::from(self.root.origin)]
    }

    /// The root has not ended, as far as is known, and may still come.
    pub fn is_open(&self) -> bool {
        !self.given_up && (self.root.end_ns == 0 || !(self.root.is_root || self.root.is_entry))
    }

    pub fn duration_ns(&self) -> u64 {
        self.ended_ns - self.started_ns
    }

    pub fn origins(&self) -> &[Arc<Origin>] {
        &self.origins
    }

    /// In the order in which they first did something.
    pub fn services(&self) -> Vec<Arc<str>> {
        let mut services: SmallVec<[(u16, u64); 4]> = self.services.clone();
        services.sort_by_key(|(_, start)| *start);
        services.iter().map(|(origin, _)| self.origins[usize::from(*origin)].service().clone()).collect()
    }

    pub fn iter<'a>(&'a self, names: &'a [Arc<str>]) -> impl Iterator<Item = PackedSpan<'a>> {
        let mut unpacker = Unpacker::new(&self.packed, names);
        std::iter::from_fn(move || (!unpacker.is_done()).then(|| self.read(&mut unpacker)))
    }

    fn read<'a>(&'a self, unpacker: &mut Unpacker<'a>) -> PackedSpan<'a> {
        let flags = unpacker.byte();
        let span_id = SpanId(unpacker.array());
        let parent = (flags & HAS_PARENT != 0).then(|| SpanId(unpacker.array()));
        let start_ns = u64::from_le_bytes(unpacker.array());
        let end_ns = start_ns + unpacker.number();
        let origin = &self.origins[unpacker.number() as usize];
        let name = unpacker.text().text;
        let scope = unpacker.text().text;
        let status_text = if flags & IS_ERROR != 0 { unpacker.text().text } else { "" };
        let attributes = unpacker.attributes();
        let rest = *unpacker;
        skip_events_and_links(unpacker);
        PackedSpan {
            span_id,
            parent,
            kind: kind_of(flags & KIND),
            start_ns,
            end_ns,
            open: flags & IS_OPEN != 0,
            own: flags & IS_OWN != 0,
            failed: flags & IS_ERROR != 0,
            ok: flags & IS_OK != 0,
            status_text,
            name,
            scope,
            origin,
            attributes,
            rest,
        }
    }

    fn bytes(&self) -> usize {
        ENTRY_BYTES + self.packed.capacity() + self.root.request.as_ref().map_or(0, |request| request.len())
    }
}

impl PackedSpan<'_> {
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }

    pub fn events_and_links(&self) -> (Vec<SpanEvent>, Vec<SpanLink>) {
        let mut unpacker = self.rest;
        let events = (0..unpacker.number()).map(|_| SpanEvent {
            at_ns: u64::from_le_bytes(unpacker.array()),
            name: unpacker.shared_text(),
            attributes: unpacker.attributes().to_attributes(),
        });
        let events = events.collect();
        let links = (0..unpacker.number()).map(|_| SpanLink {
            trace_id: TraceId(unpacker.array()),
            span_id: SpanId(unpacker.array()),
            attributes: Attributes::new(),
        });
        (events, links.collect())
    }
}

fn skip_events_and_links(unpacker: &mut Unpacker<'_>) {
    for _ in 0..unpacker.number() {
        unpacker.take(8);
        unpacker.text();
        unpacker.attributes();
    }
    let links = unpacker.number() as usize;
    unpacker.take(links * 24);
}

fn kind_of(bits: u8) -> SpanKind {
    match bits {
        1 => SpanKind::Server,
        2 => SpanKind::Client,
        3 => SpanKind::Producer,
        4 => SpanKind::Consumer,
        _ => SpanKind::Internal,
    }
}

/// Writes what [`TraceEntry::read`] reads.
// HOT
fn pack(span: &Span, origin: u16, packer: &mut Packer<'_>) {
    let kind = match span.kind {
        SpanKind::Internal => 0,
        SpanKind::Server => 1,
        SpanKind::Client => 2,
        SpanKind::Producer => 3,
        SpanKind::Consumer => 4,
    };
    let status = match span.status {
        SpanStatus::Unset => 0,
        SpanStatus::Ok => IS_OK,
        SpanStatus::Error(_) => IS_ERROR,
    };
    let parent = if span.parent.is_some() { HAS_PARENT } else { 0 };
    let own = if &*span.scope == OWN_SCOPE { IS_OWN } else { 0 };
    let open = if span.end_ns == 0 { IS_OPEN } else { 0 };
    packer.bytes(&[kind | status | parent | own | open]);
    packer.bytes(&span.span_id.0);
    if let Some(parent) = span.parent {
        packer.bytes(&parent.0);
    }
    packer.bytes(&span.start_ns.to_le_bytes());
    packer.number(span.end_ns.saturating_sub(span.start_ns));
    packer.number(u64::from(origin));
    packer.name(&span.name);
    packer.name(&span.scope);
    if let SpanStatus::Error(text) = &span.status {
        packer.text(text);
    }
    packer.attributes(&span.attributes);
    packer.number(span.events.len() as u64);
    for event in &span.events {
        packer.bytes(&event.at_ns.to_le_bytes());
        packer.name(&event.name);
        packer.attributes(&event.attributes);
    }
    packer.number(span.links.len() as u64);
    for link in &span.links {
        packer.bytes(&link.trace_id.0);
        packer.bytes(&link.span_id.0);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    Kept,
    /// Its trace holds as many spans as one may.
    Dropped,
}

#[derive(Debug)]
pub struct TraceStore {
    entries: HashMap<TraceId, Box<TraceEntry>>,
    by_seq: BTreeMap<u64, TraceId>,
    /// Per share in order of arrival. An id that moved to another share, or is gone, is skipped.
    queues: Vec<VecDeque<TraceId>>,
    shares: Shares,
    /// Traces without a root end, in order of when to look at them again.
    open: VecDeque<(u64, TraceId)>,
    next_seq: u64,
    /// Somebody may have read up to here; changes beyond need no new number.
    observed_seq: u64,
    kept: u64,
    bytes_max: usize,
    scratch: Vec<u8>,
}

impl TraceStore {
    pub fn new(bytes_max: usize) -> Self {
        TraceStore {
            entries: HashMap::new(),
            by_seq: BTreeMap::new(),
            queues: Vec::new(),
            shares: Shares::default(),
            open: VecDeque::new(),
            next_seq: 1,
            observed_seq: 0,
            kept: 0,
            bytes_max,
            scratch: Vec::new(),
        }
    }

    // HOT
    pub fn push(&mut self, span: &Span, now_ns: u64, origins: &mut Origins, names: &mut NameWriter) -> Pushed {
        let origin = origins.of(&span.resource);
        if !self.entries.contains_key(&span.trace_id) {
            self.open_trace(span, now_ns, &origin);
        }
        let entry = self.entries.get_mut(&span.trace_id).expect("made sure of above");
        if entry.spans >= SPANS_PER_TRACE_MAX || entry.bytes() > self.bytes_max / 4 {
            return Pushed::Dropped;
        }
        let before = entry.bytes();
        let index = origin_index(&mut entry.origins, &origin);
        self.scratch.clear();
        pack(span, index, &mut Packer { out: &mut self.scratch, names });
        append(&mut entry.packed, &self.scratch);
        entry.note(span, index, now_ns);
        self.shares.grow(entry.share, entry.bytes() - before);
        self.kept += 1;
        if entry.seq <= self.observed_seq {
            self.by_seq.remove(&entry.seq);
            entry.seq = self.next_seq;
            self.by_seq.insert(entry.seq, entry.id);
            self.next_seq += 1;
        }
        if entry.charged_to_runtime && !is_runtime(origin.service()) {
            self.charge(span.trace_id, origin.service());
        }
        Pushed::Kept
    }

    fn open_trace(&mut self, span: &Span, now_ns: u64, origin: &Arc<Origin>) {
        let share = self.share_of(origin.service());
        let seq = self.next_seq;
        self.next_seq += 1;
        let entry = TraceEntry {
            id: span.trace_id,
            seq,
            started_ns: span.start_ns,
            ended_ns: span.end_ns.max(span.start_ns),
            spans: 0,
            errors: 0,
            root: root_of(span, 0),
            changed_ns: now_ns,
            given_up: false,
            share,
            charged_to_runtime: is_runtime(origin.service()),
            origins: SmallVec::new(),
            services: SmallVec::new(),
            packed: Vec::new(),
        };
        self.shares.grow(share, entry.bytes());
        self.queues[share.index()].push_back(span.trace_id);
        self.by_seq.insert(seq, span.trace_id);
        self.open.push_back((now_ns + OPEN_NS_MAX, span.trace_id));
        self.entries.insert(span.trace_id, Box::new(entry));
    }

    fn share_of(&mut self, service: &Arc<str>) -> ShareId {
        let share = self.shares.of(service);
        if self.queues.len() < self.shares.len() {
            self.queues.resize_with(self.shares.len(), VecDeque::new);
        }
        share
    }

    /// Moves a trace from the runtime's own share to that of the service it turned out to be about.
    fn charge(&mut self, id: TraceId, service: &Arc<str>) {
        let share = self.share_of(service);
        let entry = self.entries.get_mut(&id).expect("just pushed to");
        let bytes = entry.bytes();
        self.shares.shrink(entry.share, bytes);
        self.shares.grow(share, bytes);
        entry.share = share;
        entry.charged_to_runtime = false;
        self.queues[share.index()].push_back(id);
    }

    /// Removes the oldest trace of whoever holds the most, if the budget is exceeded. Call until `None`.
    pub fn evict(&mut self) -> Option<Box<TraceEntry>> {
        if self.shares.total() <= self.bytes_max {
            return None;
        }
        let share = self.shares.largest()?;
        while let Some(id) = self.queues[share.index()].pop_front() {
            if self.entries.get(&id).is_none_or(|entry| entry.share != share) {
                continue;
            }
            let entry = self.entries.remove(&id).expect("just looked at");
            self.by_seq.remove(&entry.seq);
            self.shares.shrink(share, entry.bytes());
            self.kept -= u64::from(entry.spans);
            return Some(entry);
        }
        None
    }

    /// Gives up waiting for the roots of traces that were silent for long. Their rows change.
    pub fn close_silent(&mut self, now_ns: u64) -> bool {
        let mut closed = false;
        while let Some((due, id)) = self.open.front().copied().filter(|(due, _)| *due <= now_ns) {
            self.open.pop_front();
            let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.is_open()) else { continue };
            if entry.changed_ns + OPEN_NS_MAX > due {
                self.open.push_back((entry.changed_ns + OPEN_NS_MAX, id));
                continue;
            }
            entry.given_up = true;
            self.by_seq.remove(&entry.seq);
            entry.seq = self.next_seq;
            self.by_seq.insert(entry.seq, id);
            self.next_seq += 1;
            closed = true;
        }
        closed
    }

    /// No trace waits to be closed.
    pub fn is_quiet(&self) -> bool {
        self.open.is_empty()
    }

    /// To be called when rows are handed out: from now on a change gives a trace a new number.
    pub fn observe(&mut self) {
        self.observed_seq = self.next_seq - 1;
    }

    pub fn get(&self, id: TraceId) -> Option<&TraceEntry> {
        self.entries.get(&id).map(|entry| &**entry)
    }

    /// Traces numbered `from` to `to` (exclusive), oldest change first.
    pub fn range(&self, from: u64, to: u64) -> impl DoubleEndedIterator<Item = &TraceEntry> {
        self.by_seq.range(from..to.max(from)).map(|(_, id)| &*self.entries[id])
    }

    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Spans kept.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    pub fn bytes(&self) -> usize {
        self.shares.total()
    }
}

impl TraceEntry {
    fn note(&mut self, span: &Span, origin: u16, now_ns: u64) {
        self.spans += 1;
        self.errors += u32::from(matches!(span.status, SpanStatus::Error(_)));
        self.started_ns = self.started_ns.min(span.start_ns);
        self.ended_ns = self.ended_ns.max(span.end_ns.max(span.start_ns));
        self.changed_ns = now_ns;
        self.given_up = false;
        let rank = |root: &Root| (!root.is_root, root.start_ns, root.end_ns == 0);
        let candidate = root_of(span, origin);
        if self.spans == 1 || rank(&candidate) < rank(&self.root) {
            self.root = Root { request: request_of(span), ..candidate };
        }
        let service = self.origins[usize::from(origin)].service();
        let origins = &self.origins;
        match self.services.iter_mut().find(|(known, _)| origins[usize::from(*known)].service() == service) {
            Some((_, start)) => *start = span.start_ns.min(*start),
            None => self.services.push((origin, span.start_ns)),
        }
    }
}

fn root_of(span: &Span, origin: u16) -> Root {
    let own = &*span.scope == OWN_SCOPE;
    Root {
        name: span.name.clone(),
        start_ns: span.start_ns,
        end_ns: span.end_ns,
        failed: matches!(span.status, SpanStatus::Error(_)),
        http_status: http_status(&span.attributes),
        request: None,
        is_root: span.parent.is_none(),
        is_entry: own && span.kind == SpanKind::Server && is_runtime(&span.resource.service),
        origin,
    }
}

/// Method and path of a served request, by the stable and by the older attribute names. The query, which may be long, is left out.
fn request_of(span: &Span) -> Option<Box<str>> {
    let named = |name: &str| match span.attributes.iter().find(|(key, _)| key == name) {
        Some((_, Value::Text(text))) => Some(&**text),
        _ => None,
    };
    if span.kind != SpanKind::Server {
        return None;
    }
    let method = named("http.request.method").or_else(|| named("http.method"))?;
    let target = named("url.path").or_else(|| named("http.target"))?;
    let path = target.split('?').next().unwrap_or(target);
    let request = format!("{method} {path}");
    Some(request[..request.floor_char_boundary(REQUEST_BYTES_MAX)].into())
}

/// Services that are the runtime itself.
pub fn is_runtime(service: &str) -> bool {
    matches!(service, "gateway" | "reactor")
}

/// The answer's status, by the stable and by the older attribute name.
pub fn http_status(attributes: &Attributes) -> Option<u16> {
    let named = |name: &str| attributes.iter().find(|(key, _)| key == name);
    let (_, value) = named("http.response.status_code").or_else(|| named("http.status_code"))?;
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        Value::Text(text) => text.parse().ok(),
        Value::Null | Value::Bool(_) | Value::Double(_) | Value::Bytes(_) | Value::Array(_) | Value::Map(_) => None,
    }
}

fn origin_index(origins: &mut SmallVec<[Arc<Origin>; 2]>, origin: &Arc<Origin>) -> u16 {
    if let Some(index) = origins.iter().rposition(|known| Arc::ptr_eq(known, origin)) {
        return index as u16;
    }
    origins.push(origin.clone());
    (origins.len() - 1) as u16
}

/// Grows in small steps: most traces get a handful of spans, and doubling would waste a third of the budget.
fn append(packed: &mut Vec<u8>, bytes: &[u8]) {
    if packed.capacity() - packed.len() < bytes.len() {
        packed.reserve_exact(bytes.len() + packed.len() / 4);
    }
    packed.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::Resource;
    use proptest::prelude::*;

    struct Bench {
        store: TraceStore,
        origins: Origins,
        names: NameWriter,
    }

    impl Bench {
        fn new(bytes_max: usize) -> Self {
            Bench { store: TraceStore::new(bytes_max), origins: Origins::default(), names: NameWriter::default() }
        }

        fn push(&mut self, span: &Span) -> Pushed {
            self.store.push(span, 0, &mut self.origins, &mut self.names)
        }

        fn entry(&self, trace: u8) -> &TraceEntry {
            self.store.get(TraceId([trace; 16])).expect("kept")
        }
    }

    fn span(service: &str, trace: u8, id: u8, parent: Option<u8>, start_ns: u64, end_ns: u64) -> Span {
        Span {
            trace_id: TraceId([trace; 16]),
            span_id: SpanId([id; 8]),
            parent: parent.map(|id| SpanId([id; 8])),
            name: format!("{service} {id}").into(),
            kind: SpanKind::Server,
            start_ns,
            end_ns,
            status: SpanStatus::Unset,
            resource: Arc::new(Resource { service: service.into(), instance: "".into(), attributes: vec![] }),
            scope: "app".into(),
            attributes: vec![("n".into(), Value::Int(id.into()))],
            events: vec![],
            links: vec![],
        }
    }

    #[test]
    fn a_span_reads_back_as_it_was_pushed() {
        let mut bench = Bench::new(1 << 20);
        let mut pushed = span("orders", 1, 2, Some(1), 100, 250);
        pushed.status = SpanStatus::Error("no stock".into());
        pushed.events = vec![SpanEvent { at_ns: 120, name: "retry".into(), attributes: vec![("n".into(), Value::Int(1))] }];
        pushed.links = vec![SpanLink { trace_id: TraceId([9; 16]), span_id: SpanId([9; 8]), attributes: vec![] }];
        bench.push(&pushed);
        bench.push(&span("orders", 1, 3, None, 90, 300));
        let names = bench.names.shared().clone();
        let table = names.read();
        let spans: Vec<_> = bench.entry(1).iter(&table).collect();
        assert_eq!(spans.len(), 2);
        assert_eq!(
            (spans[0].span_id, spans[0].parent, spans[0].start_ns, spans[0].end_ns),
            (pushed.span_id, pushed.parent, 100, 250)
        );
        assert_eq!((spans[0].failed, spans[0].status_text, spans[0].kind), (true, "no stock", SpanKind::Server));
        assert_eq!(spans[0].attributes.to_attributes(), pushed.attributes);
        assert_eq!(spans[0].events_and_links(), (pushed.events, pushed.links));
        assert_eq!((spans[1].name, spans[1].parent), ("orders 3", None));
    }

    #[test]
    fn the_row_follows_the_root_whenever_it_arrives() {
        let mut bench = Bench::new(1 << 20);
        bench.push(&span("worker", 1, 3, Some(2), 150, 400));
        assert!(bench.entry(1).is_open());
        bench.push(&span("orders", 1, 2, Some(1), 110, 190));
        assert_eq!(&*bench.entry(1).root().name, "orders 2", "the earliest stands in");
        let mut root = span("gateway", 1, 1, None, 100, 200);
        root.attributes = vec![("http.response.status_code".into(), Value::Int(202))];
        root.attributes.push(("http.request.method".into(), "POST".into()));
        root.attributes.push(("http.target".into(), "/orders/42?full=1".into()));
        bench.push(&root);
        let entry = bench.entry(1);
        assert!(!entry.is_open());
        assert_eq!(entry.root().request.as_deref(), Some("POST /orders/42"));
        assert_eq!((entry.root().http_status, entry.started_ns, entry.duration_ns()), (Some(202), 100, 300));
        assert_eq!(entry.services().iter().map(|name| &**name).collect::<Vec<_>>(), ["gateway", "orders", "worker"]);
    }

    #[test]
    fn a_gateway_span_with_a_foreign_parent_is_not_open_for_ever() {
        let mut bench = Bench::new(1 << 20);
        let mut entry = span("gateway", 1, 1, Some(77), 100, 200);
        entry.scope = OWN_SCOPE.into();
        bench.push(&entry);
        assert!(!bench.entry(1).is_open());
    }

    #[test]
    fn a_silent_trace_is_closed_after_a_minute() {
        let mut bench = Bench::new(1 << 20);
        bench.push(&span("worker", 1, 3, Some(2), 150, 400));
        assert!(!bench.store.close_silent(OPEN_NS_MAX - 1));
        assert!(bench.store.close_silent(OPEN_NS_MAX));
        assert!(!bench.entry(1).is_open());
        assert_eq!(bench.entry(1).seq, 2, "its row changed");
    }

    #[test]
    fn a_change_that_nobody_could_have_seen_needs_no_new_number() {
        let mut bench = Bench::new(1 << 20);
        bench.push(&span("a", 1, 1, None, 1, 2));
        bench.push(&span("a", 2, 1, None, 1, 2));
        bench.push(&span("a", 1, 2, Some(1), 1, 2));
        assert_eq!(bench.entry(1).seq, 1);
        bench.store.observe();
        bench.push(&span("a", 1, 3, Some(1), 1, 2));
        assert_eq!(bench.entry(1).seq, 3);
        assert_eq!(bench.store.range(0, u64::MAX).map(|entry| entry.seq).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn a_noisy_service_evicts_its_own_traces_whole() {
        let mut bench = Bench::new(256 * 1024);
        let (mut evicted, mut pushed) = (0, 0);
        let mut push = |bench: &mut Bench, mut span: Span, trace: u32| {
            span.trace_id.0[..4].copy_from_slice(&trace.to_be_bytes());
            span.attributes.push(("text".into(), "a longer attribute text".into()));
            bench.push(&span);
            pushed += 1;
            while let Some(entry) = bench.store.evict() {
                evicted += u64::from(entry.spans);
            }
        };
        for trace in 0..20u32 {
            push(&mut bench, span("gateway", 9, 1, None, 1, 2), trace);
            push(&mut bench, span("quiet", 9, 2, Some(1), 1, 2), trace);
        }
        for trace in 100..3_000u32 {
            push(&mut bench, span("gateway", 9, 1, None, 1, 2), trace);
            push(&mut bench, span("noisy", 9, 2, Some(1), 1, 2), trace);
        }
        let quiet = bench.store.range(0, u64::MAX).filter(|entry| entry.services().iter().any(|name| &**name == "quiet"));
        assert_eq!(quiet.filter(|entry| entry.spans == 2).count(), 20, "with the gateway's span still in them");
        assert_eq!(bench.store.kept() + evicted, pushed);
    }

    #[test]
    fn a_trace_without_end_is_cut_at_its_bound() {
        let mut bench = Bench::new(64 << 20);
        let outcomes = (0..SPANS_PER_TRACE_MAX + 5).map(|_| bench.push(&span("loop", 1, 2, Some(1), 1, 2)));
        assert_eq!(outcomes.filter(|outcome| *outcome == Pushed::Dropped).count(), 5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]
        #[test]
        fn numbers_bytes_and_counts_stay_exact(steps in prop::collection::vec((0..6u8, 0..40u8, any::<bool>()), 1..600)) {
            let mut bench = Bench::new(24 * 1024);
            let mut evicted = 0;
            for (service, trace, look) in &steps {
                bench.push(&span(&service.to_string(), *trace, 1, None, 1, 2));
                while let Some(entry) = bench.store.evict() {
                    evicted += u64::from(entry.spans);
                }
                if *look {
                    bench.store.observe();
                }
            }
            prop_assert_eq!(bench.store.kept() + evicted, steps.len() as u64);
            prop_assert_eq!(bench.store.by_seq.len(), bench.store.entries.len());
            prop_assert!(bench.store.by_seq.iter().all(|(seq, id)| bench.store.entries[id].seq == *seq));
            let bytes: usize = bench.store.entries.values().map(|entry| entry.bytes()).sum();
            prop_assert_eq!(bench.store.bytes(), bytes);
            prop_assert!(bytes <= 24 * 1024);
        }
    }
}
