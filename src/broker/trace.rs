//! The broker's own spans: publish, queue wait, process. The trace context of a sampled message stands beside it; the message itself
//! is never rewritten (contract §8).
//!
//! ```text
//!   publish ──┬── wait      published → handed to a consumer
//!             └── process   handed → acked, rejected or answered
//! ```

use super::effects::Effects;
use super::link::Link;
use super::queue::Queue;
use super::record::Record;
use crate::kernel::Instant;
use crate::kernel::rng::Rng;
use crate::model::emit;
use crate::model::signal::{Attributes, Resource, Span, SpanId, SpanKind, SpanStatus, TraceId, Value};
use crate::model::trace_context::TraceContext;
use crate::wire::amqp::Properties;
use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::{Arc, LazyLock};

thread_local!(static RNG: RefCell<Rng> = RefCell::new(Rng::unseeded()));

/// A cheap draw: no secret.
// HOT
#[inline]
pub(super) fn draw() -> u64 {
    RNG.with_borrow_mut(Rng::draw)
}

fn span_id() -> SpanId {
    SpanId((draw() | 1).to_be_bytes())
}

/// A new trace whose low bits were drawn to decide whether it is kept.
pub(super) fn fresh(low: u64) -> TraceId {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&(draw() | 1).to_be_bytes());
    bytes[8..].copy_from_slice(&low.to_be_bytes());
    TraceId(bytes)
}

static SCOPE: LazyLock<Arc<str>> = LazyLock::new(|| "reactor".into());

/// Where a recorded message stands in its trace: the span that everything later hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    pub trace_id: TraceId,
    pub parent: SpanId,
}

impl From<TraceContext> for Beside {
    fn from(context: TraceContext) -> Self {
        Beside { trace_id: context.trace_id, parent: context.span_id }
    }
}

/// What a publish belongs to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Parent {
    /// Its own `traceparent`.
    Given(Beside),
    /// The delivery its connection works on.
    Inferred(Beside),
    /// Nothing: it starts a trace with these low bits.
    Root(u64),
}

/// A delivery being worked on.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub started: Instant,
    parent: SpanId,
    name: Arc<str>,
    resource: Arc<Resource>,
    attributes: Attributes,
    /// Where its answer goes, to tell answers of a busy connection apart.
    pub reply_to: Option<Box<str>>,
    pub correlation: Option<Box<str>>,
}

impl Process {
    pub fn beside(&self) -> Beside {
        Beside { trace_id: self.trace_id, parent: self.span_id }
    }
}

/// What is published.
#[derive(Clone, Copy)]
pub(super) struct Published<'a> {
    pub exchange: &'a str,
    pub routing_key: &'a str,
    pub properties: Properties<'a>,
    pub body_len: usize,
}

/// Records the publish span and returns what stands beside the message.
#[cold]
pub(super) fn published(
    parent: Parent,
    what: Published<'_>,
    resource: Arc<Resource>,
    epoch_ns: u64,
    effects: &mut Effects,
) -> Beside {
    let (trace_id, parent_id, inferred) = match parent {
        Parent::Given(beside) => (beside.trace_id, Some(beside.parent), false),
        Parent::Inferred(beside) => (beside.trace_id, Some(beside.parent), true),
        Parent::Root(low) => (fresh(low), None, false),
    };
    let span_id = span_id();
    let destination = if what.exchange.is_empty() { what.routing_key } else { what.exchange };
    let mut attributes = messaging("send", "publish", destination, what.routing_key, what.properties, what.body_len);
    if inferred {
        attributes.push(("reactor.parent".into(), "inferred".into()));
    }
    let at_ns = epoch_ns + effects.now.as_nanos();
    effects.spans.push(Span {
        trace_id,
        span_id,
        parent: parent_id,
        name: format!("publish {destination}").into(),
        kind: SpanKind::Producer,
        start_ns: at_ns,
        end_ns: at_ns,
        status: SpanStatus::Unset,
        resource,
        scope: SCOPE.clone(),
        attributes,
        events: Vec::new(),
        links: Vec::new(),
    });
    Beside { trace_id, parent: span_id }
}

/// A message on its way from a queue to a connection.
pub(super) struct Handed<'a> {
    pub queue: &'a Queue,
    pub link: &'a Link,
    /// When it was published, to the batch.
    pub since: Instant,
    pub now: Instant,
    pub redelivered: bool,
}

/// Records the time it waited and opens the span of working on it.
#[cold]
pub(super) fn handed_over(beside: &Beside, at: &Handed<'_>, record: Record<'_>, large: u64, spans: &mut Vec<Span>) -> Process {
    let epoch_ns = at.link.shared.epoch_ns;
    let properties = Properties::trusted(record.properties());
    let mut resource = at.link.resource();
    if let Some(service) = at.queue.called_service()
        && *service.as_str() != *resource.service
    {
        resource = Arc::new(Resource { service: service.shared(), instance: resource.instance.clone(), attributes: Vec::new() });
    }
    let body_len = record.inline_body().len() + large as usize;
    let queue = &*at.queue.name;
    let mut waited = messaging("receive", "wait", queue, record.routing_key(), Properties::NONE, body_len);
    waited.push(("reactor.wait".into(), true.into()));
    spans.push(Span {
        trace_id: beside.trace_id,
        span_id: span_id(),
        parent: Some(beside.parent),
        name: format!("wait {queue}").into(),
        kind: SpanKind::Internal,
        start_ns: epoch_ns + at.since.as_nanos(),
        end_ns: epoch_ns + at.now.as_nanos(),
        status: SpanStatus::Unset,
        resource: resource.clone(),
        scope: SCOPE.clone(),
        attributes: waited,
        events: Vec::new(),
        links: Vec::new(),
    });
    let mut attributes = messaging("process", "process", queue, record.routing_key(), properties, body_len);
    if at.redelivered {
        attributes.push(("reactor.redelivered".into(), true.into()));
    }
    Process {
        trace_id: beside.trace_id,
        span_id: span_id(),
        started: at.now,
        parent: beside.parent,
        name: format!("process {queue}").into(),
        resource,
        attributes,
        reply_to: properties.reply_to().map(Into::into),
        correlation: properties.correlation_id().map(Into::into),
    }
}

/// Records how working on a delivery ended.
#[cold]
pub(super) fn finished(process: Process, failure: Option<&'static str>, epoch_ns: u64, effects: &mut Effects) {
    effects.spans.push(Span {
        trace_id: process.trace_id,
        span_id: process.span_id,
        parent: Some(process.parent),
        name: process.name,
        kind: SpanKind::Consumer,
        start_ns: epoch_ns + process.started.as_nanos(),
        end_ns: epoch_ns + effects.now.as_nanos(),
        status: failure.map_or(SpanStatus::Unset, |why| SpanStatus::Error(why.into())),
        resource: process.resource,
        scope: SCOPE.clone(),
        attributes: process.attributes,
        events: Vec::new(),
        links: Vec::new(),
    });
}

/// Whether a trace that somebody else began is recorded here.
pub(super) fn is_kept(context: &TraceContext) -> bool {
    context.sampled && emit::keep(context.trace_id)
}

/// OpenTelemetry's messaging attributes.
fn messaging(
    kind: &'static str,
    operation: &'static str,
    destination: &str,
    key: &str,
    properties: Properties<'_>,
    body_len: usize,
) -> Attributes {
    let mut attributes: Attributes = vec![
        ("messaging.system".into(), "rabbitmq".into()),
        ("messaging.operation.type".into(), kind.into()),
        ("messaging.operation.name".into(), operation.into()),
        ("messaging.destination.name".into(), destination.into()),
        ("messaging.rabbitmq.destination.routing_key".into(), key.into()),
        ("messaging.message.body.size".into(), Value::Int(body_len as i64)),
        ("reactor.own".into(), true.into()),
    ];
    let mut add = |name: &'static str, value: Option<&str>| {
        if let Some(value) = value {
            attributes.push((Cow::Borrowed(name), value.into()));
        }
    };
    add("messaging.message.id", properties.message_id());
    add("messaging.message.conversation_id", properties.correlation_id());
    attributes
}
