//! One trace put together: its spans in order, its logs beside them, whose parent is missing, where the time went.

use crate::model::signal::{SpanId, Value};
use crate::telemetry::store::traces::{PackedSpan, TraceEntry};
use crate::telemetry::view::{EventRow, LinkRow, LogRow, SpanRow, Trace};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Log records shown inside one trace at most; the oldest ones.
pub const LOGS_MAX: usize = 5_000;
/// A step that takes more of the trace than this is worth a sentence.
const VERDICT_SHARE: f64 = 0.6;

/// `logs` are the records of this trace in order of arrival.
pub fn assemble(entry: &TraceEntry, names: &[Arc<str>], logs: Vec<LogRow>) -> Trace {
    let spans = unique(entry.iter(names).collect());
    let start_ns = spans.iter().map(|span| span.start_ns).min().unwrap_or(entry.started_ns);
    let known: HashSet<SpanId> = spans.iter().map(|span| span.span_id).collect();
    let missing: HashSet<SpanId> = spans.iter().filter_map(|span| span.parent).filter(|id| !known.contains(id)).collect();
    let mut missing_parents: Vec<String> = missing.iter().map(SpanId::to_string).collect();
    missing_parents.sort();
    let root_answered = (!entry.is_open() && entry.root().end_ns > 0).then(|| entry.root().end_ns.saturating_sub(start_ns));
    let finished_ns = spans.iter().map(|span| span.end_ns).max().unwrap_or(start_ns) - start_ns;
    let verdict = verdict(&spans, finished_ns);
    Trace {
        trace_id: entry.id.to_string(),
        started_us: start_ns / 1_000,
        answered_ns: root_answered,
        finished_ns,
        verdict,
        missing_parents,
        logs,
        spans: spans.iter().map(|span| to_row(span, start_ns)).collect(),
    }
}

/// Senders repeat batches after a lost answer, and may send a span again once it ended: the ended one counts.
fn unique(mut spans: Vec<PackedSpan<'_>>) -> Vec<PackedSpan<'_>> {
    spans.sort_by_key(|span| (span.start_ns, span.span_id, span.open));
    let mut seen = HashSet::with_capacity(spans.len());
    spans.retain(|span| seen.insert(span.span_id));
    spans
}

fn to_row(span: &PackedSpan<'_>, start_ns: u64) -> SpanRow {
    let (events, links) = span.events_and_links();
    SpanRow {
        span_id: span.span_id.to_string(),
        parent: span.parent.map(|id| id.to_string()),
        inferred: span
            .attributes
            .pairs()
            .any(|(key, value)| key.text == "reactor.parent" && is_text(value.to_value(), "inferred")),
        name: Arc::from(span.name),
        kind: span.kind,
        start_ns: span.start_ns - start_ns,
        duration_ns: span.duration_ns(),
        service: span.origin.service().clone(),
        instance: span.origin.instance().clone(),
        own: span.own,
        wait: is_wait(span),
        open: span.open,
        status: match (span.failed, span.ok) {
            (true, _) => "error",
            (false, true) => "ok",
            (false, false) => "unset",
        },
        status_text: Arc::from(span.status_text),
        attributes: span.attributes.to_attributes(),
        events: events
            .into_iter()
            .map(|event| EventRow { at_ns: event.at_ns.saturating_sub(start_ns), name: event.name, attributes: event.attributes })
            .collect(),
        links: links
            .into_iter()
            .map(|link| LinkRow { trace_id: link.trace_id.to_string(), span_id: link.span_id.to_string() })
            .collect(),
    }
}

fn is_text(value: Value, expected: &str) -> bool {
    matches!(value, Value::Text(text) if &*text == expected)
}

fn is_wait(span: &PackedSpan<'_>) -> bool {
    span.attributes.pairs().any(|(key, value)| key.text == "reactor.wait" && value.to_value() == Value::Bool(true))
}

fn attribute(span: &PackedSpan<'_>, name: &str) -> Option<String> {
    let (_, value) = span.attributes.pairs().find(|(key, _)| key.text == name)?;
    match value.to_value() {
        Value::Text(text) => Some(text.to_string()),
        _ => None,
    }
}

/// The sentence for the one step that took most of the time, if one did. A step's time is what no child of it accounts for.
fn verdict(spans: &[PackedSpan<'_>], finished_ns: u64) -> Option<String> {
    if finished_ns == 0 || spans.len() < 2 {
        return None;
    }
    let own = self_times(spans);
    let (at, own_ns) = own.iter().enumerate().max_by_key(|(_, nanos)| **nanos)?;
    let share = *own_ns as f64 / finished_ns as f64;
    if share <= VERDICT_SHARE {
        return None;
    }
    let span = &spans[at];
    let took = duration_text(*own_ns);
    let percent = (share * 100.0).min(100.0);
    if is_wait(span) {
        let queue = attribute(span, "messaging.destination.name").or_else(|| attribute(span, "reactor.queue"));
        return Some(match queue {
            Some(queue) => format!("{percent:.0} % of this trace is one queue wait: {took} in {queue}."),
            None => format!("{percent:.0} % of this trace is one wait: {}, {took}.", span.name),
        });
    }
    Some(format!("{percent:.0} % of this trace is one step: {} in {}, {took}.", span.name, span.origin.service()))
}

/// Each span's duration less the time in which a child of it ran.
fn self_times(spans: &[PackedSpan<'_>]) -> Vec<u64> {
    let index: HashMap<SpanId, usize> = spans.iter().enumerate().map(|(at, span)| (span.span_id, at)).collect();
    // Spans come in order of start, so each parent's children do too and one pass merges what overlaps.
    let mut covered: Vec<(u64, u64)> = vec![(0, 0); spans.len()];
    for span in spans {
        let Some(parent) = span.parent.and_then(|id| index.get(&id)) else { continue };
        let (of, until) = (&spans[*parent], covered[*parent].1);
        let start = span.start_ns.max(of.start_ns).max(until);
        let end = span.end_ns.min(of.end_ns);
        if end > start {
            covered[*parent].0 += end - start;
        }
        covered[*parent].1 = until.max(end);
    }
    spans.iter().zip(covered).map(|(span, (covered, _))| span.duration_ns() - covered).collect()
}

/// Three significant digits, as the dashboard writes durations.
fn duration_text(nanos: u64) -> String {
    let nanos = nanos as f64;
    let (value, unit) = match nanos {
        n if n >= 60e9 => return format!("{:.0} min {:02.0} s", (n / 60e9).floor(), (n / 1e9) % 60.0),
        n if n >= 1e9 => (n / 1e9, "s"),
        n if n >= 1e6 => (n / 1e6, "ms"),
        n => (n / 1e3, "µs"),
    };
    match value {
        v if v >= 100.0 => format!("{v:.0} {unit}"),
        v if v >= 10.0 => format!("{v:.1} {unit}"),
        v => format!("{v:.2} {unit}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{Attributes, Resource, Span, SpanKind, SpanStatus, TraceId};
    use crate::telemetry::store::names::NameWriter;
    use crate::telemetry::store::origin::Origins;
    use crate::telemetry::store::traces::TraceStore;

    const MS: u64 = 1_000_000;

    fn span(service: &str, id: u8, parent: Option<u8>, from_ms: u64, to_ms: u64, attributes: Attributes) -> Span {
        Span {
            trace_id: TraceId([1; 16]),
            span_id: SpanId([id; 8]),
            parent: parent.map(|id| SpanId([id; 8])),
            name: format!("step {id}").into(),
            kind: SpanKind::Internal,
            start_ns: from_ms * MS,
            end_ns: to_ms * MS,
            status: SpanStatus::Unset,
            resource: Arc::new(Resource { service: service.into(), instance: "".into(), attributes: vec![] }),
            scope: "app".into(),
            attributes,
            events: vec![],
            links: vec![],
        }
    }

    fn assembled(spans: &[Span]) -> Trace {
        let (mut store, mut origins, mut names) = (TraceStore::new(8 << 20), Origins::default(), NameWriter::default());
        for span in spans {
            store.push(span, 0, &mut origins, &mut names);
        }
        let shared = names.shared().clone();
        let table = shared.read();
        assemble(store.get(TraceId([1; 16])).expect("kept"), &table, vec![])
    }

    #[test]
    fn a_queue_wait_that_took_the_time_is_named() {
        let wait = vec![("reactor.wait".into(), true.into()), ("messaging.destination.name".into(), "worker.orders".into())];
        let trace = assembled(&[
            span("gateway", 1, None, 1_000, 1_187, vec![]),
            span("gateway", 2, Some(1), 1_180, 31_380, wait),
            span("worker", 3, Some(2), 31_390, 33_000, vec![]),
        ]);
        assert_eq!((trace.answered_ns, trace.finished_ns), (Some(187 * MS), 32_000 * MS));
        assert_eq!(trace.verdict.as_deref(), Some("94 % of this trace is one queue wait: 30.2 s in worker.orders."));
        assert_eq!(
            trace.spans.iter().map(|span| (span.start_ns / MS, span.wait)).collect::<Vec<_>>(),
            [(0, false), (180, true), (30_390, false)]
        );
    }

    #[test]
    fn time_inside_overlapping_children_is_not_the_parents() {
        let parallel = assembled(&[
            span("a", 1, None, 0, 100, vec![]),
            span("b", 2, Some(1), 0, 50, vec![]),
            span("c", 3, Some(1), 20, 55, vec![]),
            span("d", 4, Some(1), 50, 98, vec![]),
        ]);
        assert_eq!(parallel.verdict, None, "no step above 60 %");
        let one = assembled(&[span("a", 1, None, 0, 100, vec![]), span("stripe", 2, Some(1), 10, 90, vec![])]);
        assert_eq!(one.verdict.as_deref(), Some("80 % of this trace is one step: step 2 in stripe, 80.0 ms."));
    }

    #[test]
    fn parents_that_never_came_are_listed_once() {
        let trace = assembled(&[
            span("a", 2, Some(9), 0, 10, vec![]),
            span("a", 3, Some(9), 0, 10, vec![]),
            span("a", 4, Some(2), 1, 2, vec![]),
        ]);
        assert_eq!(trace.missing_parents, ["0909090909090909"]);
        assert_eq!(trace.answered_ns, None);
    }

    #[test]
    fn a_repeated_span_is_shown_once_and_ended() {
        let mut unfinished = span("a", 1, None, 5, 5, vec![]);
        unfinished.end_ns = 0;
        let trace = assembled(&[unfinished.clone(), span("a", 1, None, 5, 9, vec![]), unfinished]);
        assert_eq!(trace.spans.len(), 1);
        assert!(!trace.spans[0].open);
        assert_eq!(trace.spans[0].duration_ns, 4 * MS);
    }

    #[test]
    fn durations_read_with_three_digits() {
        for (nanos, text) in [(900, "0.90 µs"), (1_234_567, "1.23 ms"), (187_000_000, "187 ms"), (64_000_000_000, "1 min 04 s")]
        {
            assert_eq!(duration_text(nanos), text);
        }
    }
}
