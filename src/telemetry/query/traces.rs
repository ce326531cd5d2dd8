//! Traces: which match, a page of their rows, their durations over time.

use super::filter::{Filter, Leaf, ValueTest, contains_any, duration_test, holds_of_part, holds_of_whole, number_test};
use super::lang::{self, Comparison, Field, Test};
use super::logs::holds_of_value;
use super::pattern::Pattern;
use super::{QueryError, Range, TraceQuery, TraceStatus};
use crate::model::signal::TraceId;
use crate::telemetry::store::traces::{Root, TraceEntry, TraceStore};
use crate::telemetry::view::{Page, Scatter, ScatterPoint, TraceRow};
use std::sync::Arc;

pub type TraceFilter = Filter<TraceTest>;

#[derive(Clone, Debug)]
pub enum TraceTest {
    /// Root, services, names of spans and their attributes.
    Text(Pattern),
    Root(Test),
    RootService(Test),
    Service(Test),
    Instance(Test),
    Space(Test),
    /// `ok`, `error`, `open` or an HTTP status.
    Status(ValueTest),
    StatusIs(TraceStatus),
    Duration(Comparison, f64),
    Spans(ValueTest),
    Errors(ValueTest),
    Id(Test),
    Name(Test),
    /// Of any span, or of the resource of one.
    Attribute(String, ValueTest),
}

pub fn compile(text: &str) -> Result<TraceFilter, QueryError> {
    Filter::compile(lang::parse(text)?, &|leaf| match leaf {
        Leaf::Text(pattern) => Ok(TraceTest::Text(pattern)),
        Leaf::Field(field) => compile_field(field),
    })
}

fn compile_field(field: Field) -> Result<TraceTest, QueryError> {
    Ok(match field.name.to_ascii_lowercase().as_str() {
        "root" => TraceTest::Root(field.test),
        "root_service" => TraceTest::RootService(field.test),
        "service" | "service.name" => TraceTest::Service(field.test),
        "instance" | "service.instance.id" => TraceTest::Instance(field.test),
        "space" => TraceTest::Space(field.test),
        "status" => TraceTest::Status(ValueTest::new(field.test)),
        "duration" => {
            let (comparison, nanos) = duration_test(&field)?;
            TraceTest::Duration(comparison, nanos)
        }
        "spans" => TraceTest::Spans(number_test(&field)?),
        "errors" => TraceTest::Errors(number_test(&field)?),
        "trace" | "trace_id" => TraceTest::Id(super::logs::prefix(field.test)),
        "name" | "span" | "operation" => TraceTest::Name(field.test),
        _ => TraceTest::Attribute(field.name, ValueTest::new(field.test)),
    })
}

pub fn matches(filter: &TraceFilter, entry: &TraceEntry, names: &[Arc<str>]) -> bool {
    filter.matches(&|test| match test {
        TraceTest::Root(test) => {
            let Root { name, request, .. } = entry.root();
            holds_of_part(test, name) || request.as_deref().is_some_and(|request| holds_of_part(test, request))
        }
        TraceTest::RootService(test) => holds_of_whole(test, entry.root_origin().service()),
        TraceTest::Service(test) => entry.origins().iter().any(|origin| holds_of_whole(test, origin.service())),
        TraceTest::Instance(test) => entry.origins().iter().any(|origin| holds_of_whole(test, origin.instance())),
        TraceTest::Space(test) => entry.origins().iter().any(|origin| holds_of_whole(test, &origin.space)),
        TraceTest::Status(test) => test.holds_of_text(&status(entry)) || test.holds_of_text(outcome(entry)),
        TraceTest::StatusIs(TraceStatus::Open) => entry.is_open(),
        TraceTest::StatusIs(TraceStatus::Error) => is_failed(entry),
        TraceTest::StatusIs(TraceStatus::Ok) => !entry.is_open() && !is_failed(entry),
        TraceTest::Duration(comparison, nanos) => comparison.holds(entry.duration_ns() as f64, *nanos),
        TraceTest::Spans(test) => test.holds_of_number(f64::from(entry.spans), &|| entry.spans.to_string()),
        TraceTest::Errors(test) => test.holds_of_number(f64::from(entry.errors), &|| entry.errors.to_string()),
        TraceTest::Id(test) => holds_of_whole(test, &entry.id.to_string()),
        TraceTest::Name(test) => entry.iter(names).any(|span| holds_of_part(test, span.name)),
        TraceTest::Text(pattern) => {
            entry.origins().iter().any(|origin| pattern.is_in(origin.service()))
                || entry.iter(names).any(|span| pattern.is_in(span.name) || contains_any(span.attributes, pattern))
        }
        TraceTest::Attribute(name, test) => {
            let of_span = entry
                .iter(names)
                .any(|span| span.attributes.pairs().any(|(key, value)| key.text == name.as_str() && test.holds(value)));
            of_span
                || entry.origins().iter().any(|origin| origin.attribute(name).is_some_and(|value| holds_of_value(test, value)))
        }
    })
}

pub fn is_failed(entry: &TraceEntry) -> bool {
    entry.root().failed || entry.root().http_status.is_some_and(|status| status >= 500)
}

fn outcome(entry: &TraceEntry) -> &'static str {
    match () {
        () if is_failed(entry) => "error",
        () if entry.is_open() => "open",
        () => "ok",
    }
}

fn status(entry: &TraceEntry) -> String {
    match entry.root().http_status {
        Some(status) => status.to_string(),
        None if entry.root().failed => "error".to_owned(),
        None => "ok".to_owned(),
    }
}

pub fn to_row(entry: &TraceEntry) -> TraceRow {
    TraceRow {
        seq: entry.seq,
        trace_id: entry.id.to_string(),
        started_us: entry.started_ns / 1_000,
        duration_ns: entry.duration_ns(),
        root: entry.root().name.clone(),
        request: entry.root().request.as_deref().map(str::to_owned),
        root_service: entry.root_origin().service().clone(),
        services: entry.services(),
        spans: u64::from(entry.spans),
        errors: u64::from(entry.errors),
        status: status(entry),
        open: entry.is_open(),
    }
}

/// Everything that decides over one answer, compiled.
pub struct TracePlan {
    filter: TraceFilter,
    range: Range,
    before: u64,
    limit: usize,
}

impl TracePlan {
    pub fn new(query: &TraceQuery) -> Result<Self, QueryError> {
        let mut filter = compile(&query.query)?;
        let tests = [
            query.space.as_ref().map(|space| TraceTest::Space(Test::Is(Pattern::phrase(space)))),
            query.min_duration_ns.map(|nanos| TraceTest::Duration(Comparison::GreaterOrEqual, nanos as f64)),
            query.max_duration_ns.map(|nanos| TraceTest::Duration(Comparison::LessOrEqual, nanos as f64)),
            query.status.map(TraceTest::StatusIs),
        ];
        for test in tests.into_iter().flatten() {
            filter = filter.and(test);
        }
        Ok(TracePlan {
            filter,
            range: Range::of(query.from_us, query.to_us),
            before: query.before.unwrap_or(u64::MAX),
            limit: super::row_limit(query.limit),
        })
    }

    /// A trace belongs to the range in which it started.
    fn in_range(&self, entry: &TraceEntry) -> bool {
        self.range.has(entry.started_ns)
    }

    /// Traces in order of their last change; the newest `limit` matching ones below `before`, oldest first.
    pub fn page(&self, store: &TraceStore, names: &[Arc<str>]) -> Page<TraceRow> {
        let (mut matched, mut outside, mut older) = (0, 0, 0_u64);
        let mut oldest_ns = None;
        let mut rows = Vec::new();
        for entry in store.range(0, u64::MAX).rev() {
            oldest_ns = Some(oldest_ns.unwrap_or(u64::MAX).min(entry.started_ns));
            if !self.in_range(entry) {
                continue;
            }
            if !matches(&self.filter, entry, names) {
                outside += 1;
                continue;
            }
            matched += 1;
            if entry.seq < self.before {
                older += 1;
                if rows.len() < self.limit {
                    rows.push(to_row(entry));
                }
            }
        }
        rows.reverse();
        let before = rows.first().filter(|_| older > rows.len() as u64).map(|row| row.seq);
        Page { rows, before, matched, outside, oldest_us: oldest_ns.map(|ns| ns / 1_000), took_ns: 0 }
    }

    /// At most `points_max` of the matching traces: all failed ones while they fit, the rest evenly.
    pub fn scatter(&self, store: &TraceStore, names: &[Arc<str>], points_max: usize) -> Scatter {
        let found: Vec<&TraceEntry> =
            store.range(0, u64::MAX).filter(|entry| self.in_range(entry) && matches(&self.filter, entry, names)).collect();
        let (failed, fine): (Vec<_>, Vec<_>) = found.iter().copied().partition(|entry| is_failed(entry));
        let failed = thinned(failed, points_max);
        let fine = thinned(fine, points_max - failed.len());
        let mut points: Vec<_> = failed.into_iter().chain(fine).map(to_point).collect();
        points.sort_by_key(|point| point.started_us);
        Scatter { points, matched: found.len() as u64 }
    }
}

/// Every so-manieth, so that at most `count` are left.
fn thinned<T>(items: Vec<T>, count: usize) -> Vec<T> {
    if items.len() <= count {
        return items;
    }
    let total = items.len();
    let kept = |at: &usize| at * count / total != (at + 1) * count / total;
    items.into_iter().enumerate().filter(|(at, _)| kept(at)).map(|(_, item)| item).collect()
}

fn to_point(entry: &TraceEntry) -> ScatterPoint {
    ScatterPoint {
        trace_id: entry.id.to_string(),
        started_us: entry.started_ns / 1_000,
        duration_ns: entry.duration_ns(),
        failed: is_failed(entry),
        open: entry.is_open(),
    }
}

/// Ids of kept traces that begin with `prefix`, for the palette's `#`.
pub fn find_ids(store: &TraceStore, prefix: &str, limit: usize) -> Vec<TraceId> {
    let entries = store.range(0, u64::MAX).rev();
    entries.map(|entry| entry.id).filter(|id| id.to_string().starts_with(prefix)).take(limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{Resource, Span, SpanId, SpanKind, SpanStatus, Value};
    use crate::telemetry::store::names::NameWriter;
    use crate::telemetry::store::origin::Origins;

    struct Shelf {
        store: TraceStore,
        origins: Origins,
        names: NameWriter,
    }

    impl Shelf {
        /// One trace: a root `name` of `service`, with a status and a child in `worker`.
        fn trace(&mut self, id: u8, service: &str, name: &str, millis: u64, http: i64) {
            let span = |service: &str, name: &str, span: u8, parent: Option<u8>, attributes| Span {
                trace_id: TraceId([id; 16]),
                span_id: SpanId([span; 8]),
                parent: parent.map(|id| SpanId([id; 8])),
                name: name.into(),
                kind: SpanKind::Server,
                start_ns: u64::from(id) * 1_000_000,
                end_ns: u64::from(id) * 1_000_000 + millis * 1_000_000,
                status: if http >= 500 { SpanStatus::Error("".into()) } else { SpanStatus::Unset },
                resource: Arc::new(Resource { service: service.into(), instance: "".into(), attributes: vec![] }),
                scope: "app".into(),
                attributes,
                events: vec![],
                links: vec![],
            };
            let method = name.split(' ').next().expect("a word");
            let root = span(
                service,
                name,
                1,
                None,
                vec![
                    ("http.response.status_code".into(), Value::Int(http)),
                    ("http.request.method".into(), method.into()),
                    ("url.path".into(), format!("/v{id}").as_str().into()),
                ],
            );
            let child = span("worker", "reserve stock", 2, Some(1), vec![("sku".into(), Value::Int(id.into()))]);
            for span in [&child, &root] {
                self.store.push(span, 0, &mut self.origins, &mut self.names);
            }
        }

        fn roots(&self, query: TraceQuery) -> Vec<String> {
            let page = TracePlan::new(&query).expect("valid").page(&self.store, &self.names.shared().read());
            page.rows.iter().map(|row| row.root.to_string()).collect()
        }
    }

    fn shop() -> Shelf {
        let mut shelf = Shelf { store: TraceStore::new(8 << 20), origins: Origins::default(), names: NameWriter::default() };
        shelf.trace(1, "gateway", "GET /orders", 5, 200);
        shelf.trace(2, "gateway", "POST /orders", 300, 202);
        shelf.trace(3, "gateway", "POST /pay", 3_000, 504);
        shelf.trace(4, "cron", "job stock.sync", 900, 0);
        shelf
    }

    #[test]
    fn traces_are_found_by_root_status_duration_service_and_any_attribute() {
        let shelf = shop();
        let (get, post, pay, job) = ("GET /orders", "POST /orders", "POST /pay", "job stock.sync");
        for (query, expected) in [
            ("", vec![get, post, pay, job]),
            ("root:/orders", vec![get, post]),
            ("-root:/orders", vec![pay, job]),
            ("root:/v2", vec![post]),
            ("duration > 100 ms", vec![post, pay, job]),
            ("duration>=3s", vec![pay]),
            ("status:error", vec![pay]),
            ("status:504", vec![pay]),
            ("status:2*", vec![get, post]),
            ("status>=500", vec![pay]),
            ("service:cron", vec![job]),
            ("service:worker root_service:gateway", vec![get, post, pay]),
            ("sku:4", vec![job]),
            ("errors:0", vec![get, post, job]),
            ("spans>2", vec![]),
            ("name:reserve sku<=2", vec![get, post]),
            ("stock.sync", vec![job]),
            ("trace:0303", vec![pay]),
        ] {
            assert_eq!(shelf.roots(TraceQuery { query: query.into(), ..TraceQuery::default() }), expected, "{query}");
        }
        assert_eq!(shelf.roots(TraceQuery { status: Some(TraceStatus::Error), ..TraceQuery::default() }), [pay]);
        let middle =
            TraceQuery { min_duration_ns: Some(6_000_000), max_duration_ns: Some(1_000_000_000), ..TraceQuery::default() };
        assert_eq!(shelf.roots(middle), [post, job]);
        let started = TraceQuery { from_us: Some(2_000), to_us: Some(4_000), ..TraceQuery::default() };
        assert_eq!(shelf.roots(started), [post, pay]);
    }

    #[test]
    fn a_duration_without_a_number_is_a_mistake() {
        let error = compile("duration>slow").expect_err("no duration");
        assert_eq!((error.position, error.next.as_str()), (9, "Write duration>100ms"));
        assert!(compile("duration:5").is_err() && compile("spans:many").is_err());
    }

    #[test]
    fn pages_go_back_by_number() {
        let shelf = shop();
        let plan = TracePlan::new(&TraceQuery { limit: 3, ..TraceQuery::default() }).expect("valid");
        let page = plan.page(&shelf.store, &shelf.names.shared().read());
        assert_eq!((page.rows.len(), page.before, page.matched), (3, Some(2), 4));
        assert_eq!(shelf.roots(TraceQuery { before: page.before, ..TraceQuery::default() }), ["GET /orders"]);
    }

    #[test]
    fn a_thinned_scatter_keeps_the_failed_ones() {
        let mut shelf = shop();
        for id in 5..200 {
            shelf.trace(id, "gateway", "GET /", 5, if id % 20 == 0 { 500 } else { 200 });
        }
        let plan = TracePlan::new(&TraceQuery::default()).expect("valid");
        let scatter = plan.scatter(&shelf.store, &shelf.names.shared().read(), 50);
        assert_eq!((scatter.points.len(), scatter.matched), (50, 199));
        assert_eq!(scatter.points.iter().filter(|point| point.failed).count(), 10);
    }
}
