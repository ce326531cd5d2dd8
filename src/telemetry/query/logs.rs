//! Log records: which match, a page of them, how many there were when.

use super::filter::{Filter, Leaf, ValueTest, contains, contains_any, holds_of_part, holds_of_whole};
use super::lang::{self, Comparison, Field, Test};
use super::pattern::Pattern;
use super::{LogQuery, QueryError, Range};
use crate::model::signal::{Severity, TraceId, Value};
use crate::telemetry::store::logs::{Row, Segment};
use crate::telemetry::store::names::Names;
use crate::telemetry::store::pack::Packed;
use crate::telemetry::view::{Histogram, LogRow, Page};
use std::cell::OnceCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

pub type LogFilter = Filter<LogTest>;

#[derive(Clone, Debug)]
pub enum LogTest {
    Text(Pattern),
    Body(Test),
    Level(Comparison, Severity),
    /// From a level's first to its last number.
    LevelIs(u8, u8),
    Service(Test),
    Instance(Test),
    Space(Test),
    Scope(Test),
    Trace(Test),
    Span(Test),
    TraceIs(TraceId),
    Attribute(String, ValueTest),
}

/// Compiles a query text.
pub fn compile(text: &str) -> Result<LogFilter, QueryError> {
    Filter::compile(lang::parse(text)?, &|leaf| match leaf {
        Leaf::Text(pattern) => Ok(LogTest::Text(pattern)),
        Leaf::Field(field) => compile_field(field),
    })
}

fn compile_field(field: Field) -> Result<LogTest, QueryError> {
    Ok(match field.name.to_ascii_lowercase().as_str() {
        "level" | "severity" => return compile_level(&field),
        "service" | "service.name" => LogTest::Service(field.test),
        "instance" | "service.instance.id" => LogTest::Instance(field.test),
        "space" => LogTest::Space(field.test),
        "scope" | "logger" => LogTest::Scope(field.test),
        "body" | "message" | "msg" => LogTest::Body(field.test),
        "trace" | "trace_id" => match &field.test {
            Test::Is(pattern) => match pattern.literal().and_then(TraceId::parse) {
                Some(id) => LogTest::TraceIs(id),
                None => LogTest::Trace(prefix(field.test)),
            },
            Test::Exists | Test::Compare(_, _) => LogTest::Trace(field.test),
        },
        "span" | "span_id" => LogTest::Span(prefix(field.test)),
        _ => LogTest::Attribute(field.name, ValueTest::new(field.test)),
    })
}

/// Ids are shown by their first characters, so those are enough to find them.
pub fn prefix(test: Test) -> Test {
    match &test {
        Test::Is(pattern) => match pattern.literal() {
            Some(literal) => Test::Is(Pattern::word(&format!("{literal}*"))),
            None => test,
        },
        Test::Exists | Test::Compare(_, _) => test,
    }
}

fn compile_level(field: &Field) -> Result<LogTest, QueryError> {
    let (comparison, name) = match &field.test {
        Test::Exists => return Ok(LogTest::Level(Comparison::Greater, Severity(0))),
        Test::Is(pattern) => (None, pattern.literal().unwrap_or_default().to_owned()),
        Test::Compare(comparison, name) => (Some(*comparison), name.to_ascii_lowercase()),
    };
    let (first, last) = match name.as_str() {
        "trace" => (1, 4),
        "debug" => (5, 8),
        "info" => (9, 12),
        "warn" | "warning" => (13, 16),
        "error" => (17, 20),
        "fatal" => (21, 24),
        number => match number.parse::<u8>() {
            Ok(number @ 1..=24) => (number, number),
            _ => {
                return Err(
                    field.error(format!("{number} is no level"), "Write trace, debug, info, warn, error, fatal or 1 to 24")
                );
            }
        },
    };
    Ok(match comparison {
        None => LogTest::LevelIs(first, last),
        Some(comparison @ (Comparison::Greater | Comparison::LessOrEqual)) => LogTest::Level(comparison, Severity(last)),
        Some(comparison @ (Comparison::Less | Comparison::GreaterOrEqual)) => LogTest::Level(comparison, Severity(first)),
    })
}

/// Whether the row at `index` matches. The row is only read if a test needs more than its head.
// HOT
pub fn matches(filter: &LogFilter, segment: &Segment, index: usize, names: &[Arc<str>]) -> bool {
    if filter.is_all() {
        return true;
    }
    let head = &segment.heads()[index];
    let origin = segment.origin_of(head);
    let row: OnceCell<Row<'_>> = OnceCell::new();
    let row = || row.get_or_init(|| segment.row(index, names));
    let severity = shown_severity(head.severity);
    filter.matches(&|test| match test {
        LogTest::Level(comparison, level) => comparison.holds(severity, level.0),
        LogTest::LevelIs(first, last) => (*first..=*last).contains(&severity),
        LogTest::Service(test) => holds_of_whole(test, origin.service()),
        LogTest::Instance(test) => holds_of_whole(test, origin.instance()),
        LogTest::Space(test) => holds_of_whole(test, &origin.space),
        LogTest::Scope(test) => holds_of_whole(test, row().scope),
        LogTest::TraceIs(id) => row().trace_id == Some(*id),
        LogTest::Trace(test) => row().trace_id.is_some_and(|id| holds_of_whole(test, &id.to_string())),
        LogTest::Span(test) => row().span_id.is_some_and(|id| holds_of_whole(test, &id.to_string())),
        LogTest::Body(test) => holds_of_body(test, row().body),
        LogTest::Text(pattern) => contains(row().body, pattern) || contains_any(row().attributes, pattern),
        LogTest::Attribute(name, test) => holds_of_attribute(row(), name, test),
    })
}

/// A record without severity counts as info, which is how it is shown.
fn shown_severity(severity: Severity) -> u8 {
    if severity.0 == 0 { Severity::INFO.0 } else { severity.0 }
}

fn holds_of_body(test: &Test, body: Packed<'_>) -> bool {
    match (body, test) {
        (Packed::Text(text), _) => holds_of_part(test, text),
        (_, Test::Is(pattern)) => contains(body, pattern),
        (_, Test::Exists | Test::Compare(_, _)) => ValueTest::new(test.clone()).holds(body),
    }
}

fn holds_of_attribute(row: &Row<'_>, name: &str, test: &ValueTest) -> bool {
    let own = row.attributes.pairs().find(|(key, _)| key.text == name);
    if let Some((_, value)) = own {
        return test.holds(value);
    }
    // A structured body is searched like attributes: JSON lines arrive either way.
    if let Packed::Map(list) = row.body
        && let Some((_, value)) = list.pairs().find(|(key, _)| key.text == name)
    {
        return test.holds(value);
    }
    row.origin.attribute(name).is_some_and(|value| holds_of_value(test, value))
}

/// The same test on a value of a resource, which is not packed.
pub fn holds_of_value(test: &ValueTest, value: &Value) -> bool {
    match value {
        Value::Null | Value::Bytes(_) => false,
        Value::Text(text) => test.holds_of_text(text),
        Value::Bool(value) => test.holds_of_text(if *value { "true" } else { "false" }),
        Value::Int(number) => test.holds_of_number(*number as f64, &|| number.to_string()),
        Value::Double(number) => test.holds_of_number(*number, &|| number.to_string()),
        Value::Array(items) => items.iter().any(|item| holds_of_value(test, item)),
        Value::Map(entries) => entries.iter().any(|(_, item)| holds_of_value(test, item)),
    }
}

pub fn to_row(row: &Row<'_>) -> LogRow {
    LogRow {
        seq: row.head.seq,
        at_us: row.head.at_ns / 1_000,
        severity: row.head.severity.0,
        level: row.head.severity.text(),
        service: row.origin.service().clone(),
        instance: row.origin.instance().clone(),
        scope: Arc::from(row.scope),
        body: body_text(row.body),
        trace_id: row.trace_id.map(|id| id.to_string()),
        span_id: row.span_id.map(|id| id.to_string()),
        attributes: row.attributes.to_attributes(),
    }
}

/// Text as it is, anything else as JSON.
fn body_text(body: Packed<'_>) -> String {
    match body {
        Packed::Text(text) => text.to_owned(),
        Packed::Null => String::new(),
        other => serde_json::to_string(&other.to_value()).unwrap_or_default(),
    }
}

/// Everything that decides over one answer, compiled.
pub struct LogPlan {
    filter: LogFilter,
    range: Range,
    before: u64,
    limit: usize,
}

impl LogPlan {
    pub fn new(query: &LogQuery) -> Result<Self, QueryError> {
        let mut filter = compile(&query.query)?;
        if let Some(space) = &query.space {
            filter = filter.and(LogTest::Space(Test::Is(Pattern::phrase(space))));
        }
        Ok(LogPlan {
            filter,
            range: Range::of(query.from_us, query.to_us),
            before: query.before.unwrap_or(u64::MAX),
            limit: super::row_limit(query.limit),
        })
    }

    /// Calls `found` for each row in the range, with whether it matches. Holds the names for one segment at a time: whoever
    /// stores rows may be waiting to add one.
    fn scan(&self, segments: &[Arc<Segment>], names: &Names, mut found: impl FnMut(usize, usize, bool)) {
        for (at, segment) in segments.iter().enumerate() {
            if !self.range.overlaps(segment.oldest_ns, segment.newest_ns) {
                continue;
            }
            let names = names.read();
            let inside = self.range.holds(segment.oldest_ns, segment.newest_ns);
            for (index, head) in segment.heads().iter().enumerate() {
                if inside || self.range.has(head.at_ns) {
                    found(at, index, matches(&self.filter, segment, index, &names));
                }
            }
        }
    }

    /// The newest `limit` matching rows below `before`, oldest first.
    pub fn page(&self, segments: &[Arc<Segment>], names: &Names) -> Page<LogRow> {
        let (mut matched, mut outside, mut older) = (0, 0, 0_u64);
        let mut newest: BinaryHeap<Reverse<(u64, usize, usize)>> = BinaryHeap::with_capacity(self.limit + 1);
        self.scan(segments, names, |at, index, matches| {
            if !matches {
                outside += 1;
                return;
            }
            matched += 1;
            let seq = segments[at].heads()[index].seq;
            if seq >= self.before {
                return;
            }
            older += 1;
            if newest.len() < self.limit {
                newest.push(Reverse((seq, at, index)));
            } else if newest.peek().is_some_and(|Reverse((smallest, _, _))| seq > *smallest) {
                newest.pop();
                newest.push(Reverse((seq, at, index)));
            }
        });
        let found = newest.into_sorted_vec();
        let names = names.read();
        let rows: Vec<_> = found.iter().rev().map(|Reverse((_, at, index))| to_row(&segments[*at].row(*index, &names))).collect();
        let before = rows.first().filter(|_| older > rows.len() as u64).map(|row| row.seq);
        let oldest_us = segments.iter().map(|segment| segment.oldest_ns / 1_000).min();
        Page { rows, before, matched, outside, oldest_us, took_ns: 0 }
    }

    /// Counts per bucket over a range whose ends are known.
    pub fn histogram(&self, segments: &[Arc<Segment>], names: &Names, buckets: usize) -> Histogram {
        let from_us = self.range.from_ns / 1_000;
        let span_us = (self.range.to_ns / 1_000).saturating_sub(from_us).max(1);
        let bucket_us = span_us.div_ceil(buckets as u64);
        let mut histogram =
            Histogram { from_us, bucket_us, error: vec![0; buckets], warn: vec![0; buckets], rest: vec![0; buckets] };
        self.scan(segments, names, |at, index, matches| {
            if !matches {
                return;
            }
            let head = &segments[at].heads()[index];
            let bucket = ((head.at_ns / 1_000 - from_us) / bucket_us) as usize;
            let counts = match head.severity.0 {
                17.. => &mut histogram.error,
                13..=16 => &mut histogram.warn,
                _ => &mut histogram.rest,
            };
            if let Some(count) = counts.get_mut(bucket) {
                *count += 1;
            }
        });
        histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{LogRecord, Resource};
    use crate::telemetry::store::logs::LogStore;
    use crate::telemetry::store::names::NameWriter;
    use crate::telemetry::store::origin::Origins;

    struct Shelf {
        store: LogStore,
        origins: Origins,
        names: NameWriter,
    }

    impl Shelf {
        fn new() -> Self {
            Shelf { store: LogStore::new(8 << 20), origins: Origins::default(), names: NameWriter::default() }
        }

        fn push(
            &mut self,
            service: &str,
            at_ns: u64,
            severity: Severity,
            body: impl Into<Value>,
            attributes: &[(&'static str, Value)],
        ) {
            let resource = Arc::new(Resource {
                service: service.into(),
                instance: format!("{service}-1").into(),
                attributes: vec![("host.name".into(), "box".into())],
            });
            let record = LogRecord {
                at_ns,
                severity,
                body: body.into(),
                resource,
                scope: "app.http".into(),
                trace_id: TraceId::parse("5b8efff798038103d269b633813fc60c").filter(|_| service == "orders"),
                span_id: None,
                attributes: attributes.iter().map(|(key, value)| ((*key).into(), value.clone())).collect(),
            };
            self.store.push(&record, &mut self.origins, &mut self.names);
        }

        fn page(&self, query: &LogQuery) -> Page<LogRow> {
            let segments: Vec<_> = self.store.segments().cloned().collect();
            LogPlan::new(query).expect("valid").page(&segments, self.names.shared())
        }

        fn bodies(&self, query: &str) -> Vec<String> {
            let page = self.page(&LogQuery { query: query.into(), ..LogQuery::default() });
            page.rows.into_iter().map(|row| row.body).collect()
        }
    }

    fn shop() -> Shelf {
        let mut shelf = Shelf::new();
        shelf.push("orders", 1_000, Severity::INFO, "placing order", &[("sku", Value::Int(8841)), ("user.id", "ann".into())]);
        shelf.push("orders", 2_000, Severity::WARN, "3ds challenge took 149 ms", &[("ms", Value::Int(149))]);
        shelf.push("worker", 3_000, Severity::ERROR, "no stock left", &[("sku", Value::Int(7)), ("retry", true.into())]);
        shelf.push(
            "worker",
            4_000,
            Severity(0),
            Value::Map(vec![("event".into(), "cart".into()), ("total".into(), Value::Int(12))]),
            &[],
        );
        shelf
    }

    #[test]
    fn the_query_language_finds_what_it_says() {
        let shelf = shop();
        let (order, slow, stock, cart) =
            ("placing order", "3ds challenge took 149 ms", "no stock left", r#"{"event":"cart","total":12}"#);
        for (query, expected) in [
            ("", vec![order, slow, stock, cart]),
            ("ORDER", vec![order]),
            ("\"no stock\"", vec![stock]),
            ("service:worker", vec![stock, cart]),
            ("-service:worker", vec![order, slow]),
            ("service:w*", vec![stock, cart]),
            ("instance:orders-1", vec![order, slow]),
            ("severity>=warn", vec![slow, stock]),
            ("level:info", vec![order, cart]),
            ("level<warn", vec![order, cart]),
            ("level:17", vec![stock]),
            ("sku:8841", vec![order]),
            ("sku>100", vec![order]),
            ("sku:*", vec![order, stock]),
            ("sku:88*", vec![order]),
            ("user.id:ANN", vec![order]),
            ("retry:true", vec![stock]),
            ("ann", vec![order]),
            ("host.name:box level:warn", vec![slow]),
            ("event:cart total>=12", vec![cart]),
            ("cart", vec![cart]),
            ("body:stock", vec![stock]),
            ("body:/^no.*left$/", vec![stock]),
            ("scope:app.*", vec![order, slow, stock, cart]),
            ("trace:5b8efff798038103d269b633813fc60c", vec![order, slow]),
            ("trace:5b8efff", vec![order, slow]),
            ("-trace:*", vec![stock, cart]),
            ("space:/", vec![order, slow, stock, cart]),
            ("stock OR challenge", vec![slow, stock]),
            ("service:worker NOT (stock OR cart)", vec![]),
        ] {
            assert_eq!(shelf.bodies(query), expected, "{query}");
        }
    }

    #[test]
    fn an_unknown_level_is_a_mistake_with_a_place() {
        let error = compile("a level:loud").expect_err("no such level");
        assert_eq!((error.position, error.what.as_str()), (8, "loud is no level"));
    }

    #[test]
    fn pages_go_back_without_loss_and_count_what_is_outside() {
        let mut shelf = Shelf::new();
        for n in 0..1_000 {
            let service = if n % 3 == 0 { "orders" } else { "worker" };
            shelf.push(service, n * 10, Severity::INFO, format!("{n}"), &[]);
        }
        let mut query = LogQuery { query: "service:orders".into(), limit: 50, ..LogQuery::default() };
        let mut seen = Vec::new();
        loop {
            let page = shelf.page(&query);
            assert_eq!((page.matched, page.outside), (334, 666));
            let mut bodies: Vec<_> = page.rows.iter().map(|row| row.body.clone()).collect();
            bodies.extend(seen);
            seen = bodies;
            query.before = page.before;
            if page.before.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..1_000).step_by(3).map(|n| n.to_string()).collect::<Vec<_>>());
        let page = shelf.page(&LogQuery { from_us: Some(1), to_us: Some(2), ..LogQuery::default() });
        assert_eq!((page.rows.len(), page.matched, page.outside), (100, 100, 0), "the range is half open");
    }

    #[test]
    fn the_histogram_counts_every_matching_row_once() {
        let shelf = shop();
        let segments: Vec<_> = shelf.store.segments().cloned().collect();
        let query = LogQuery { from_us: Some(1), to_us: Some(5), ..LogQuery::default() };
        let histogram = LogPlan::new(&query).expect("valid").histogram(&segments, shelf.names.shared(), 4);
        assert_eq!((histogram.rest, histogram.warn, histogram.error), (vec![1, 0, 0, 1], vec![0, 1, 0, 0], vec![0, 0, 1, 0]));
    }
}
