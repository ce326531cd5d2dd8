//! The engine's face: configuration, what goes in, what can be asked.

use super::core::Core;
use super::happenings::Happenings;
use super::inbox::{Inbox, Item, Signal};
use super::live::{Channel, Live};
use super::query::assemble::{LOGS_MAX, assemble};
use super::query::logs::{LogPlan, to_row};
use super::query::traces::TracePlan;
use super::query::{LogQuery, QueryError, SeriesQuery, TraceQuery, series};
use super::sample::Budget;
use super::store::logs::Segment;
use super::store::names::Names;
use super::tails::{LogStream, TraceStream, lock};
use super::traffic::TrafficSample;
use super::view::*;
use super::work::Work;
use crate::kernel::{Clock, Drain, Instant};
use crate::model::emit;
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::signal::{LogRecord, Metric, Span, TraceId};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Rows taken in under one hold of the store's lock.
const RUN_ROWS: usize = 512;
/// After something came, a little more is waited for: one wake-up for many rows.
const GATHER: Duration = Duration::from_millis(4);
const TICK: Duration = Duration::from_millis(100);
/// Between looks when nothing comes and nothing is under way.
const QUIET_TICK: Duration = Duration::from_secs(1);
const HISTOGRAM_BUCKETS_MAX: usize = 1_000;
const SCATTER_POINTS_MAX: usize = 5_000;

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
    clock: Clock,
    inbox: Inbox,
    /// What was taken from the inbox and not yet stored. Held while storing, so that order is kept whoever pumps.
    pending: Mutex<VecDeque<Work>>,
    wake: Notify,
    core: Arc<Mutex<Core>>,
    names: Arc<Names>,
    happenings: Happenings,
    budget: Budget,
    live: Arc<Live>,
}

impl Telemetry {
    pub fn new(config: TelemetryConfig, clock: Clock) -> Arc<Self> {
        let core = Core::new(&config);
        let names = core.names.shared().clone();
        let core = Arc::new(Mutex::new(core));
        let live = Live::new(clock.clone());
        let happenings = Happenings::default();
        live.register(Channel::Logs, Arc::new(LogStream(core.clone())));
        live.register(Channel::Traces, Arc::new(TraceStream(core.clone())));
        live.register(Channel::Happenings, happenings.stream());
        Arc::new(Telemetry {
            clock,
            inbox: Inbox::default(),
            pending: Mutex::default(),
            wake: Notify::new(),
            core,
            names,
            happenings,
            budget: Budget::new(config.own_spans_per_second),
            live,
        })
    }

    /// The sink to install with [`emit::install`].
    pub fn sink(self: &Arc<Self>) -> Box<dyn emit::Sink> {
        Box::new(super::sink::EngineSink::new(self.clone()))
    }

    /// Works until the drain is cut: takes in what was handed over, closes buckets, adjusts the sampling rate.
    pub async fn run(self: Arc<Self>, drain: Drain) {
        let mut wait = TICK;
        loop {
            let (is_last, gather) = tokio::select! {
                () = self.wake.notified() => (false, true),
                () = tokio::time::sleep(wait) => (false, false),
                () = drain.is_cut() => (true, false),
            };
            if gather {
                tokio::time::sleep(GATHER).await;
            }
            wait = QUIET_TICK;
            while self.pump_some() {
                wait = TICK;
                tokio::task::yield_now().await;
            }
            if !self.tick() {
                wait = TICK;
            }
            if is_last {
                return;
            }
        }
    }

    /// Takes in everything handed over so far.
    pub fn pump(&self) {
        while self.pump_some() {}
    }

    /// Takes in one run of rows; whether there may be more.
    fn pump_some(&self) -> bool {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.is_empty() {
            pending.extend(self.inbox.take().into_iter().map(Work::from));
        }
        if pending.is_empty() {
            return false;
        }
        let now_ns = self.clock.unix_nanos();
        let mut done = super::work::Done::default();
        {
            let mut core = lock(&self.core);
            while done.rows < RUN_ROWS
                && let Some(work) = pending.front_mut()
            {
                if work.store(&mut core, &self.happenings, now_ns, RUN_ROWS - done.rows, &mut done) {
                    pending.pop_front();
                }
            }
        }
        for channel in done.channels() {
            self.live.touch(channel);
        }
        true
    }

    /// What time alone changes. Whether it has nothing left to change.
    fn tick(&self) -> bool {
        let now_ns = self.clock.unix_nanos();
        if let Some(share) = self.budget.close_window(now_ns, emit::sample_rate()) {
            emit::set_sample_rate(share);
        }
        let (closed, is_quiet) = {
            let mut core = lock(&self.core);
            (core.traces.close_silent(now_ns), core.traces.is_quiet())
        };
        if closed {
            self.live.touch(Channel::Traces);
        }
        is_quiet && emit::sample_rate() >= 1.0
    }

    /// Takes what the runtime or a service's output gave; dropped and counted if the inbox is full.
    pub(super) fn take(&self, item: Item) {
        let signal = match &item {
            Item::Span(_, _) => Some(Signal::Spans),
            Item::Log(_) => Some(Signal::Logs),
            Item::Spans(_) | Item::Logs(_) | Item::Metrics(_) | Item::Happening(_) => None,
        };
        match self.inbox.put(item) {
            Ok(was_empty) => self.wake_if(was_empty),
            Err(_) => {
                if let Some(signal) = signal {
                    lock(&self.core).drop_rows(signal, 1);
                }
            }
        }
    }

    pub(super) fn budget(&self) -> &Budget {
        &self.budget
    }

    fn wake_if(&self, was_empty: bool) {
        if was_empty {
            self.wake.notify_one();
        }
    }

    fn offer(&self, item: Item, what: &str) -> Result<(), Refusal> {
        match self.inbox.put(item) {
            Ok(was_empty) => {
                self.wake_if(was_empty);
                Ok(())
            }
            Err(_) => Err(Refusal::new(RefusalKind::Exhausted, format!("{what} come in faster than they can be stored"))
                .hint("Send the same request again in a second")),
        }
    }

    /// Hands over spans from a peer. Refused whole (`Exhausted`) when the inbox is full: the sender keeps them and retries.
    pub fn ingest_spans(&self, spans: Vec<Span>) -> Result<(), Refusal> {
        self.offer(Item::Spans(spans), "Spans")
    }

    pub fn ingest_logs(&self, records: Vec<LogRecord>) -> Result<(), Refusal> {
        self.offer(Item::Logs(records), "Log records")
    }

    pub fn ingest_metrics(&self, metrics: Vec<Metric>) -> Result<(), Refusal> {
        self.offer(Item::Metrics(metrics), "Metrics")
    }

    /// Counts what a door could not read and told its sender so.
    pub fn reject(&self, signal: Signal, count: u64) {
        if count > 0 {
            lock(&self.core).drop_rows(signal, count);
        }
    }

    /// Wall time by the engine's clock.
    pub fn now_ns(&self) -> u64 {
        self.clock.unix_nanos()
    }

    /// Once a second, from the sampler.
    pub fn sample(&self, sample: TrafficSample) {
        let now_ns = self.clock.unix_nanos();
        let mut core = lock(&self.core);
        if let Some(gateway) = &sample.gateway {
            core.tape.sample(now_ns, gateway.requests, gateway.failed);
        }
        core.services.sample(now_ns, &sample);
        core.map.sample(now_ns, sample);
    }

    pub fn live(&self) -> &Arc<Live> {
        &self.live
    }

    pub fn ledger(&self) -> Ledger {
        self.pump();
        lock(&self.core).ledger()
    }

    /// May scan all that is kept, which takes a tenth of a second: call it where blocking is allowed. So may the others below.
    pub fn logs(&self, query: &LogQuery) -> Result<Page<LogRow>, QueryError> {
        let started = self.clock.now();
        let plan = LogPlan::new(query)?;
        Ok(self.timed(started, plan.page(&self.segments(), &self.names)))
    }

    /// Counts per bucket of the rows that match, over the query's range (the last 15 minutes if it has none).
    pub fn log_histogram(&self, query: &LogQuery, buckets: usize) -> Result<Histogram, QueryError> {
        let to_us = query.to_us.unwrap_or_else(|| self.clock.unix_nanos() / 1_000 + 1);
        let from_us = query.from_us.unwrap_or_else(|| to_us.saturating_sub(900_000_000));
        let query = LogQuery { from_us: Some(from_us), to_us: Some(to_us), ..query.clone() };
        let plan = LogPlan::new(&query)?;
        Ok(plan.histogram(&self.segments(), &self.names, buckets.clamp(1, HISTOGRAM_BUCKETS_MAX)))
    }

    pub fn traces(&self, query: &TraceQuery) -> Result<Page<TraceRow>, QueryError> {
        let started = self.clock.now();
        let plan = TracePlan::new(query)?;
        self.pump();
        let mut core = lock(&self.core);
        let page = plan.page(&core.traces, &self.names.read());
        core.traces.observe();
        drop(core);
        Ok(self.timed(started, page))
    }

    /// Duration over time for at most `points` of the matching traces.
    pub fn trace_scatter(&self, query: &TraceQuery, points: usize) -> Result<Scatter, QueryError> {
        let plan = TracePlan::new(query)?;
        self.pump();
        let core = lock(&self.core);
        Ok(plan.scatter(&core.traces, &self.names.read(), points.min(SCATTER_POINTS_MAX)))
    }

    pub fn trace(&self, id: TraceId) -> Option<Trace> {
        let segments = self.segments();
        let mut logs: Vec<LogRow> = Vec::new();
        for segment in &segments {
            let names = self.names.read();
            logs.extend(segment.of_trace(id, &names).map(|index| to_row(&segment.row(index, &names))));
        }
        logs.sort_by_key(|row| row.seq);
        logs.truncate(LOGS_MAX);
        let core = lock(&self.core);
        let entry = core.traces.get(id)?;
        Some(assemble(entry, &self.names.read(), logs))
    }

    pub fn instruments(&self) -> Vec<Instrument> {
        self.pump();
        series::instruments(&lock(&self.core).series)
    }

    /// `None` when no instrument has that name.
    pub fn series(&self, query: &SeriesQuery) -> Result<Option<SeriesAnswer>, QueryError> {
        self.pump();
        series::query(&lock(&self.core).series, query, self.clock.unix_nanos())
    }

    /// Newest page of happenings before `before`.
    pub fn happenings(&self, before: Option<u64>, limit: usize) -> Page<HappeningRow> {
        let started = self.clock.now();
        self.pump();
        self.timed(started, self.happenings.page(before, limit))
    }

    pub fn map(&self) -> TrafficMap {
        self.pump();
        let core = lock(&self.core);
        core.map.view(self.clock.unix_nanos(), &core.services)
    }

    /// Rate, errors and durations of one service; all unknown if it never had traffic.
    pub fn red(&self, space: &str, service: &str) -> Red {
        self.pump();
        let core = lock(&self.core);
        core.services.get(space, service).map(|service| service.red(self.clock.unix_nanos())).unwrap_or_default()
    }

    /// Services that telemetry knows of, in order of first sight.
    pub fn seen_services(&self) -> Vec<SeenService> {
        self.pump();
        lock(&self.core).services.seen()
    }

    /// `buckets` are 5 s each when `range_s` is 900, the default.
    pub fn tape(&self, to_us: Option<Micros>, range_s: Option<u64>) -> Tape {
        let to_ns = to_us.map_or_else(|| self.clock.unix_nanos(), |us| us.saturating_mul(1_000));
        lock(&self.core).tape.view(to_ns, range_s.unwrap_or(900).saturating_mul(1_000_000_000))
    }

    /// Error records since start; the navigation's unread count is this minus what the browser has seen.
    pub fn errors_seen(&self) -> u64 {
        self.pump();
        lock(&self.core).errors
    }

    /// The kept log segments: scanning them needs no lock.
    fn segments(&self) -> Vec<Arc<Segment>> {
        self.pump();
        lock(&self.core).logs.segments().cloned().collect()
    }

    fn timed<T>(&self, started: Instant, page: Page<T>) -> Page<T> {
        let took = self.clock.now().since(started);
        Page { took_ns: u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), ..page }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::emit::Sink;
    use crate::model::happening::{Happening, What};
    use crate::model::service::ServiceName;
    use crate::model::signal::{MetricKind, MetricPoint, PointValue, Resource, Severity, SpanId, SpanKind, SpanStatus};
    use crate::telemetry::live::Subscribe;
    use crate::telemetry::sink::EngineSink;

    const NOW: u64 = 1_700_000_000_000_000_000;

    fn telemetry() -> (Arc<Telemetry>, Clock) {
        let clock = Clock::manual(NOW);
        (Telemetry::new(TelemetryConfig::default(), clock.clone()), clock)
    }

    fn resource(service: &str) -> Arc<Resource> {
        Arc::new(Resource { service: service.into(), instance: format!("{service}-1").into(), attributes: vec![] })
    }

    fn span(service: &str, parent: Option<u8>, id: u8) -> Span {
        Span {
            trace_id: TraceId([7; 16]),
            span_id: SpanId([id; 8]),
            parent: parent.map(|id| SpanId([id; 8])),
            name: format!("{service} work").into(),
            kind: SpanKind::Server,
            start_ns: NOW - 50_000_000 + u64::from(id),
            end_ns: NOW - u64::from(id),
            status: SpanStatus::Unset,
            resource: resource(service),
            scope: "app".into(),
            attributes: vec![],
            events: vec![],
            links: vec![],
        }
    }

    fn log(service: &str, severity: Severity, body: &str, in_trace: bool) -> LogRecord {
        LogRecord {
            at_ns: NOW,
            severity,
            body: body.into(),
            resource: resource(service),
            scope: "app".into(),
            trace_id: in_trace.then_some(TraceId([7; 16])),
            span_id: None,
            attributes: vec![],
        }
    }

    fn subscribe(channel: Channel) -> Subscribe {
        let json = format!(r#"{{"id":1,"channel":"{}"}}"#, format!("{channel:?}").to_lowercase());
        serde_json::from_str(&json).expect("valid")
    }

    #[test]
    fn what_was_accepted_is_seen_by_the_next_question() {
        let (telemetry, _) = telemetry();
        telemetry.ingest_spans(vec![span("orders", Some(1), 2), span("web", None, 1)]).expect("room");
        telemetry
            .ingest_logs(vec![log("orders", Severity::ERROR, "no stock", true), log("web", Severity::INFO, "hi", false)])
            .expect("room");
        let trace = telemetry.trace(TraceId([7; 16])).expect("kept");
        assert_eq!((trace.spans.len(), trace.logs.len(), trace.missing_parents.len()), (2, 1, 0));
        assert_eq!(trace.logs[0].body, "no stock");
        let rows = telemetry.traces(&TraceQuery::default()).expect("valid").rows;
        assert_eq!((rows[0].root_service.as_ref(), rows[0].spans, rows[0].open), ("web", 2, false));
        assert_eq!(telemetry.logs(&LogQuery { query: "level>=error".into(), ..LogQuery::default() }).expect("valid").matched, 1);
        assert_eq!(telemetry.errors_seen(), 1);
        let seen: Vec<_> = telemetry.seen_services().into_iter().map(|service| service.name.to_string()).collect();
        assert_eq!(seen, ["orders", "web"]);
        let histogram = telemetry.log_histogram(&LogQuery::default(), 10).expect("valid");
        assert_eq!(histogram.error.iter().sum::<u64>() + histogram.rest.iter().sum::<u64>(), 2);
    }

    #[test]
    fn the_ledger_adds_up_whatever_happens() {
        let config = TelemetryConfig {
            spans_bytes_max: 64 << 10,
            logs_bytes_max: 64 << 10,
            points_bytes_max: 64 << 10,
            ..TelemetryConfig::default()
        };
        let telemetry = Telemetry::new(config, Clock::manual(NOW));
        for n in 0..2_000u64 {
            let mut one = span("orders", None, 1);
            one.trace_id = TraceId((u128::from(n) + 1).to_be_bytes());
            telemetry.ingest_spans(vec![one]).expect("room");
            telemetry.ingest_logs(vec![log("orders", Severity::INFO, "a line of some length", false)]).expect("room");
            let point =
                MetricPoint { at_ns: n / 2 + 1, start_ns: 0, attributes: vec![], value: PointValue::Number(n as f64 + 0.5) };
            let metric = Metric {
                name: "m".into(),
                description: "".into(),
                unit: "".into(),
                kind: MetricKind::Gauge,
                resource: resource("orders"),
                points: vec![point],
            };
            telemetry.ingest_metrics(vec![metric]).expect("room");
        }
        telemetry.reject(Signal::Spans, 3);
        let ledger = telemetry.ledger();
        for (signal, received) in [(ledger.spans, 2_003), (ledger.logs, 2_000), (ledger.points, 2_000)] {
            assert_eq!(signal.received, received);
            assert_eq!(signal.received, signal.kept + signal.evicted + signal.dropped);
        }
        assert_eq!((ledger.spans.dropped, ledger.points.dropped), (3, 1_000), "rejected spans, repeated points");
        assert!(ledger.spans.evicted > 0 && ledger.logs.evicted > 0);
        assert!(ledger.bytes <= ledger.bytes_max);
    }

    #[test]
    fn a_full_inbox_refuses_a_peer_and_drops_what_the_runtime_emits() {
        let (telemetry, _) = telemetry();
        let large = || log("noisy", Severity::INFO, &"x".repeat(8 << 20), false);
        for _ in 0..3 {
            telemetry.ingest_logs(vec![large()]).expect("room");
        }
        let refusal = telemetry.ingest_logs(vec![large()]).expect_err("full");
        assert_eq!(refusal.kind, RefusalKind::Exhausted);
        EngineSink::new(telemetry.clone()).log(large());
        let ledger = telemetry.ledger();
        assert_eq!(
            (ledger.logs.received, ledger.logs.kept, ledger.logs.dropped),
            (4, 3, 1),
            "the refused batch was not received"
        );
        telemetry.ingest_logs(vec![large()]).expect("room again");
    }

    #[test]
    fn a_happening_is_one_row_one_log_line_and_one_mark() {
        let (telemetry, clock) = telemetry();
        let mut session = telemetry.live().session();
        session.subscribe(subscribe(Channel::Happenings)).expect("registered");
        assert!(session.poll(clock.now()).is_some(), "where it begins");
        let worker = ServiceName::new("worker").expect("valid");
        let what = What::InstanceExited {
            service: worker,
            instance: "worker-1".into(),
            status: "137".into(),
            next: "starting again".into(),
        };
        EngineSink::new(telemetry.clone()).happening(Happening { at_ns: NOW, space: "/".into(), what });
        let page = telemetry.happenings(None, 10);
        assert_eq!((page.rows.len(), page.rows[0].name, page.rows[0].severity), (1, "instance.exited", "error"));
        let lines = telemetry
            .logs(&LogQuery { query: "service:reactor reactor.service:worker".into(), ..LogQuery::default() })
            .expect("valid");
        assert_eq!(lines.rows[0].body, "worker-1 exited 137; starting again");
        let tape = telemetry.tape(Some(NOW / 1_000), None);
        assert_eq!((tape.markers.len(), tape.markers[0].kind), (1, MarkerKind::Exit));
    }

    #[test]
    fn rows_reach_a_session_after_the_pump() {
        let (telemetry, clock) = telemetry();
        let mut session = telemetry.live().session();
        session.subscribe(subscribe(Channel::Logs)).expect("registered");
        let first = session.poll(clock.now()).expect("where it begins");
        session.ack(1, first.cursor());
        telemetry.ingest_logs(vec![log("web", Severity::INFO, "hi", false)]).expect("room");
        clock.advance(Duration::from_secs(1));
        assert!(session.poll(clock.now()).is_none(), "not stored yet");
        telemetry.pump();
        let delta = session.poll(clock.now()).expect("stored");
        let json = serde_json::to_string(&delta).expect("serialises");
        assert!(json.starts_with(r#"{"kind":"rows","id":1,"cursor":1,"rows":[{"seq":1,"#), "{json}");
        assert!(json.ends_with(r#""skipped":0,"evicted":0}"#), "{json}");
    }

    #[tokio::test]
    async fn the_task_stores_without_being_asked_and_ends_when_cut() {
        let telemetry = Telemetry::new(TelemetryConfig::default(), Clock::system());
        let drain = Drain::new();
        let running = tokio::spawn(telemetry.clone().run(drain.clone()));
        let mut session = telemetry.live().session();
        session.subscribe(subscribe(Channel::Logs)).expect("registered");
        session.ready().await;
        let first = session.poll(telemetry.clock.now()).expect("where it begins");
        session.ack(1, first.cursor());
        telemetry.ingest_logs(vec![log("web", Severity::INFO, "hi", false)]).expect("room");
        session.ready().await;
        assert!(session.poll(telemetry.clock.now()).is_some());
        telemetry.ingest_logs(vec![log("web", Severity::INFO, "last words", false)]).expect("room");
        drain.cut();
        running.await.expect("ends");
        assert_eq!(lock(&telemetry.core).logs.kept(), 2, "what came before the end was stored");
    }
}
