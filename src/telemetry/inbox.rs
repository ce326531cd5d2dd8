//! What was handed in and not yet taken into the store. Handing in costs one short lock and never waits.
//!
//! Bounded in bytes per signal. Full: what the runtime and its services emit is dropped and counted; a peer's batch is refused
//! whole, so that the peer keeps it and tries again.

use crate::model::happening::Happening;
use crate::model::signal::{Attributes, LogRecord, Metric, PointValue, Span, Value};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes waiting per signal, as values in memory.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Happenings are few and never counted in bytes.
const HAPPENINGS_MAX: usize = 10_000;

#[derive(Debug)]
pub enum Item {
    /// One of the runtime's own, and how many it stands for.
    Span(Span, f32),
    Spans(Vec<Span>),
    Log(LogRecord),
    Logs(Vec<LogRecord>),
    Metrics(Vec<Metric>),
    Happening(Happening),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Spans,
    Logs,
    Points,
}

/// The inbox has no room.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

#[derive(Debug, Default)]
pub struct Inbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    items: Vec<Item>,
    bytes: [usize; 3],
    happenings: usize,
}

impl Inbox {
    /// Whether nothing else waited: then whoever takes must be woken.
    // HOT
    pub fn put(&self, item: Item) -> Result<bool, Full> {
        let (signal, bytes) = match &item {
            Item::Span(span, _) => (Signal::Spans, span_bytes(span)),
            Item::Spans(spans) => (Signal::Spans, spans.iter().map(span_bytes).sum()),
            Item::Log(record) => (Signal::Logs, log_bytes(record)),
            Item::Logs(records) => (Signal::Logs, records.iter().map(log_bytes).sum()),
            Item::Metrics(metrics) => (Signal::Points, metrics.iter().map(metric_bytes).sum()),
            Item::Happening(_) => return self.put_happening(item),
        };
        let mut waiting = self.lock();
        let used = &mut waiting.bytes[signal as usize];
        // A batch larger than the whole inbox is taken when nothing else waits: it would never fit otherwise.
        if *used > 0 && *used + bytes > WAITING_BYTES_MAX {
            return Err(Full);
        }
        *used += bytes;
        waiting.items.push(item);
        Ok(waiting.items.len() == 1)
    }

    fn put_happening(&self, item: Item) -> Result<bool, Full> {
        let mut waiting = self.lock();
        if waiting.happenings >= HAPPENINGS_MAX {
            return Err(Full);
        }
        waiting.happenings += 1;
        waiting.items.push(item);
        Ok(waiting.items.len() == 1)
    }

    /// Everything that waits, in order.
    pub fn take(&self) -> Vec<Item> {
        let mut waiting = self.lock();
        waiting.bytes = [0; 3];
        waiting.happenings = 0;
        std::mem::take(&mut waiting.items)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn span_bytes(span: &Span) -> usize {
    let inner = span.events.iter().map(|event| 64 + attributes_bytes(&event.attributes)).sum::<usize>();
    size_of::<Span>() + span.name.len() + attributes_bytes(&span.attributes) + inner + span.links.len() * 64
}

fn log_bytes(record: &LogRecord) -> usize {
    size_of::<LogRecord>() + value_bytes(&record.body) + attributes_bytes(&record.attributes)
}

fn metric_bytes(metric: &Metric) -> usize {
    let point = |value: &PointValue| match value {
        PointValue::Number(_) => 32,
        PointValue::Histogram { bounds, counts, .. } => 64 + (bounds.len() + counts.len()) * 8,
        PointValue::ExponentialHistogram { positive, negative, .. } => 96 + (positive.len() + negative.len()) * 8,
        PointValue::Summary { quantiles, .. } => 48 + quantiles.len() * 16,
    };
    size_of::<Metric>() + metric.points.iter().map(|at| point(&at.value) + attributes_bytes(&at.attributes)).sum::<usize>()
}

fn attributes_bytes(attributes: &Attributes) -> usize {
    attributes.iter().map(|(key, value)| 48 + key.len() + value_bytes(value)).sum()
}

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Double(_) => 0,
        Value::Text(text) => text.len() + 16,
        Value::Bytes(bytes) => bytes.len() + 16,
        Value::Array(items) => items.iter().map(|item| 32 + value_bytes(item)).sum(),
        Value::Map(entries) => attributes_bytes(entries),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{Resource, Severity};
    use std::sync::Arc;

    fn record(bytes: usize) -> LogRecord {
        LogRecord {
            at_ns: 1,
            severity: Severity::INFO,
            body: "x".repeat(bytes).into(),
            resource: Arc::new(Resource { service: "a".into(), instance: "".into(), attributes: vec![] }),
            scope: "".into(),
            trace_id: None,
            span_id: None,
            attributes: vec![],
        }
    }

    #[test]
    fn a_full_inbox_refuses_whole_and_is_empty_after_taking() {
        let inbox = Inbox::default();
        let megabyte = 1024 * 1024;
        let taken = (0..100).take_while(|_| inbox.put(Item::Log(record(megabyte))).is_ok()).count();
        assert_eq!(taken, 31);
        assert_eq!(inbox.put(Item::Logs(vec![record(megabyte)])), Err(Full));
        assert_eq!(inbox.put(Item::Metrics(vec![])), Ok(false), "signals do not share their room");
        assert_eq!(inbox.take().len(), 32);
        assert_eq!(
            inbox.put(Item::Logs(vec![record(40 * megabyte)])),
            Ok(true),
            "one that is larger than the room is taken alone"
        );
    }
}
