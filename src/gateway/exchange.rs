//! One request from its head to the end of its answer: what is counted, traced and logged of it.
//!
//! An exchange that is dropped before it was answered is one whose client went away: it counts as 499.

use super::body::{BodyCut, GatewayBody};
use super::engine::ClientConn;
use super::stats::{CallerTally, ServiceTally, Stats};
use crate::kernel::rng::Rng;
use crate::kernel::{Clock, Instant};
use crate::model::emit;
use crate::model::signal::{Attributes, Resource, Span, SpanId, SpanKind, SpanStatus, TraceId, Value};
use crate::model::trace_context::TraceContext;
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use std::borrow::Cow;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll, ready};

/// Longest path kept as a span attribute, in bytes.
const PATH_ATTRIBUTE_BYTES_MAX: usize = 1_024;

/// Status under which a request is logged whose client left before the answer.
const CLIENT_GONE: u16 = 499;

static RESOURCE: LazyLock<Arc<Resource>> = LazyLock::new(|| {
    Arc::new(Resource { service: Arc::from("gateway"), instance: Arc::from("gateway"), attributes: Attributes::new() })
});
static SCOPE: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from("reactor"));

thread_local!(static IDS: RefCell<Rng> = RefCell::new(Rng::unseeded()));

/// An id nobody else uses, not a secret.
pub(super) fn fresh_id() -> String {
    IDS.with_borrow_mut(|rng| format!("{:016x}{:016x}", rng.draw(), rng.draw()))
}

fn fresh_span_id() -> SpanId {
    IDS.with_borrow_mut(|rng| SpanId((rng.draw() | 1).to_be_bytes()))
}

/// What every exchange needs of the gateway.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) clock: Clock,
    pub(super) stats: Stats,
}

/// What is known of a request when it comes.
pub(super) struct Asked<'a> {
    pub(super) method: Method,
    pub(super) path: &'a str,
    pub(super) caller: String,
    pub(super) incoming: Option<TraceContext>,
}

pub(super) struct Exchange {
    recorder: Arc<Recorder>,
    conn: Arc<ClientConn>,
    method: Method,
    path: String,
    caller: String,
    started: Instant,
    /// The server span's own context.
    trace: TraceContext,
    parent: Option<SpanId>,
    kept: bool,
    /// `/service` or `/service/vN` once matched: the span's low-cardinality name.
    route: Option<String>,
    service: Option<Arc<ServiceTally>>,
    upstream: Option<Upstream>,
    status: Option<StatusCode>,
    /// Why it failed, for the span and the log.
    error: Option<Cow<'static, str>>,
    finished: bool,
}

/// The call to whoever answers, as a client span.
struct Upstream {
    span_id: SpanId,
    name: String,
    started: Instant,
    ended: Option<Instant>,
    attributes: Attributes,
}

impl Exchange {
    /// Continues the caller's trace, or starts one.
    pub(super) fn begin(recorder: Arc<Recorder>, conn: Arc<ClientConn>, asked: Asked<'_>) -> Self {
        recorder.stats.total.begin();
        let (trace, kept) = match asked.incoming {
            Some(incoming) => (TraceContext { span_id: fresh_span_id(), ..incoming }, emit::keep(incoming.trace_id)),
            None => {
                let fresh = IDS.with_borrow_mut(TraceContext::fresh_from);
                let kept = emit::keep(fresh.trace_id);
                (TraceContext { sampled: kept, ..fresh }, kept)
            }
        };
        Exchange {
            started: recorder.clock.now(),
            recorder,
            conn,
            method: asked.method,
            path: bounded(asked.path, PATH_ATTRIBUTE_BYTES_MAX).to_owned(),
            caller: asked.caller,
            trace,
            parent: asked.incoming.map(|incoming| incoming.span_id),
            kept,
            route: None,
            service: None,
            upstream: None,
            status: None,
            error: None,
            finished: false,
        }
    }

    pub(super) fn trace_id(&self) -> TraceId {
        self.trace.trace_id
    }

    /// Names the service this request is for. Only names that exist may come here.
    pub(super) fn serve(&mut self, service: &str, route: &str) {
        if self.route.as_deref() != Some(route) {
            self.route = Some(bounded(route, 128).to_owned());
        }
        self.count_for(self.recorder.stats.of(service));
    }

    /// Counts the request for a service that the path names, if it was ever asked before.
    pub(super) fn guess(&mut self, service: &str) {
        if let Some(tally) = self.recorder.stats.known(service) {
            self.count_for(tally);
        }
    }

    fn count_for(&mut self, tally: Arc<ServiceTally>) {
        if self.service.as_ref().is_some_and(|before| Arc::ptr_eq(before, &tally)) {
            return;
        }
        tally.all.begin();
        if let Some(before) = self.service.replace(tally) {
            before.all.end();
        }
    }

    /// Begins the call to whoever answers; returns the context it travels with. A second try replaces the first.
    pub(super) fn call(&mut self, name: impl FnOnce() -> String) -> TraceContext {
        let span_id = fresh_span_id();
        let name = if self.kept { name() } else { String::new() };
        let started = self.recorder.clock.now();
        self.upstream = Some(Upstream { span_id, name, started, ended: None, attributes: Attributes::new() });
        TraceContext { span_id, ..self.trace }
    }

    /// Adds to the call's span.
    pub(super) fn note(&mut self, key: &'static str, value: impl FnOnce() -> Value) {
        if self.kept
            && let Some(upstream) = &mut self.upstream
        {
            upstream.attributes.push((Cow::Borrowed(key), value()));
        }
    }

    /// Says why the request failed, in the words of the span and the log.
    pub(super) fn fail(&mut self, error: impl Into<Cow<'static, str>>) {
        self.error = Some(error.into());
    }

    /// The answer's head is decided: latency ends here, for a stream too.
    pub(super) fn answer(&mut self, status: StatusCode) {
        let now = self.recorder.clock.now();
        let took = now.since(self.started);
        self.status = Some(status);
        self.recorder.stats.total.answered(took);
        if let Some(upstream) = &mut self.upstream {
            upstream.ended = Some(now);
        }
        let caller = self.caller_tally();
        if let Some(service) = &self.service {
            service.all.answered(took);
        }
        if let Some(caller) = &caller {
            caller.answered();
        }
        if status.is_server_error() {
            self.count_failure();
        }
    }

    fn caller_tally(&self) -> Option<Arc<CallerTally>> {
        self.service.as_ref().map(|service| service.caller(&self.caller))
    }

    fn count_failure(&self) {
        self.recorder.stats.total.failed();
        if let Some(service) = &self.service {
            service.all.failed();
            service.caller(&self.caller).failed();
        }
    }

    /// The answer was cut in the middle.
    fn cut(&mut self, why: &BodyCut) {
        let counted = self.status.is_some_and(|status| status.is_server_error());
        self.fail(why.0.clone());
        if !counted {
            self.count_failure();
        }
    }

    fn finish(&mut self) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        self.recorder.stats.total.end();
        if let Some(service) = &self.service {
            service.all.end();
        }
        let status = match self.status {
            Some(status) => status.as_u16(),
            None => {
                self.recorder.stats.total.abandoned();
                if let Some(service) = &self.service {
                    service.all.abandoned();
                }
                CLIENT_GONE
            }
        };
        self.log(status);
        if self.kept && emit::is_installed() {
            self.emit_spans(status);
        }
    }

    fn log(&self, status: u16) {
        let (trace_id, error) = (self.trace.trace_id, self.error.as_deref().unwrap_or_default());
        let (method, path, peer) = (&self.method, &self.path, self.conn.peer);
        let duration_ms = || self.recorder.clock.now().since(self.started).as_millis();
        if status == CLIENT_GONE {
            tracing::info!(%trace_id, %method, path, status, duration_ms = duration_ms(), %peer, "client went away before its answer");
        } else if status >= 500 || self.error.is_some() {
            tracing::warn!(%trace_id, %method, path, status, duration_ms = duration_ms(), %peer, error, "request failed");
        } else {
            tracing::trace!(%trace_id, %method, path, status, "request answered");
        }
    }

    fn emit_spans(&mut self, status: u16) {
        let clock = self.recorder.clock.clone();
        let now = clock.now();
        let error = self.error.take();
        let failed = status >= 500 || error.is_some();
        let span_status = if failed {
            let why = error.map_or_else(|| format!("status {status}"), Cow::into_owned);
            SpanStatus::Error(Arc::from(why))
        } else {
            SpanStatus::Unset
        };
        if let Some(upstream) = self.upstream.take() {
            let mut attributes = upstream.attributes;
            attributes.push((Cow::Borrowed("reactor.own"), Value::Bool(true)));
            emit::span(Span {
                trace_id: self.trace.trace_id,
                span_id: upstream.span_id,
                parent: Some(self.trace.span_id),
                name: Arc::from(upstream.name),
                kind: SpanKind::Client,
                start_ns: clock.unix_nanos_at(upstream.started),
                end_ns: clock.unix_nanos_at(upstream.ended.unwrap_or(now)),
                status: span_status.clone(),
                resource: RESOURCE.clone(),
                scope: SCOPE.clone(),
                attributes,
                events: Vec::new(),
                links: Vec::new(),
            });
        }
        emit::span(Span {
            trace_id: self.trace.trace_id,
            span_id: self.trace.span_id,
            parent: self.parent,
            name: Arc::from(format!("{} {}", self.method, self.route.as_deref().unwrap_or("unmatched"))),
            kind: SpanKind::Server,
            start_ns: clock.unix_nanos_at(self.started),
            end_ns: clock.unix_nanos_at(now),
            status: span_status,
            resource: RESOURCE.clone(),
            scope: SCOPE.clone(),
            attributes: self.attributes(status),
            events: Vec::new(),
            links: Vec::new(),
        });
    }

    fn attributes(&self, status: u16) -> Attributes {
        let mut attributes: Attributes = vec![
            (Cow::Borrowed("http.request.method"), Value::from(self.method.as_str())),
            (Cow::Borrowed("url.path"), Value::from(self.path.as_str())),
            (Cow::Borrowed("url.scheme"), Value::from(self.conn.scheme.as_str())),
            (Cow::Borrowed("http.response.status_code"), Value::Int(i64::from(status))),
            (Cow::Borrowed("network.peer.address"), Value::from(self.conn.peer.ip().to_canonical().to_string())),
            (Cow::Borrowed("reactor.caller"), Value::from(self.caller.as_str())),
            (Cow::Borrowed("reactor.own"), Value::Bool(true)),
        ];
        if let Some(route) = &self.route {
            attributes.push((Cow::Borrowed("http.route"), Value::from(route.as_str())));
        }
        attributes
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.finish();
    }
}

fn bounded(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// A streamed body that may be dropped before its end.
pub(super) trait Ending {
    /// Why it was not read to its end, if somebody is at fault for it.
    fn why_unfinished(&self) -> Option<&'static str>;
}

/// A streamed answer: its exchange lasts until its last byte.
pub(super) fn recorded<B>(body: B, exchange: Exchange) -> GatewayBody
where
    B: Body<Data = Bytes, Error = BodyCut> + Ending + Send + Unpin + 'static,
{
    Recorded { body, exchange, cut: None }.boxed_unsync()
}

struct Recorded<B: Ending> {
    body: B,
    exchange: Exchange,
    /// Why the body ends; said one turn later, so that the connection writes out what came before it.
    cut: Option<BodyCut>,
}

impl<B: Ending> Drop for Recorded<B> {
    fn drop(&mut self) {
        if let Some(why) = self.body.why_unfinished()
            && !self.exchange.finished
        {
            self.exchange.cut(&BodyCut(why.to_owned()));
        }
    }
}

impl<B> Body for Recorded<B>
where
    B: Body<Data = Bytes, Error = BodyCut> + Ending + Unpin,
{
    type Data = Bytes;
    type Error = BodyCut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyCut>>> {
        if let Some(cut) = self.cut.take() {
            return Poll::Ready(Some(Err(cut)));
        }
        match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Err(cut)) => {
                self.exchange.cut(&cut);
                self.exchange.finish();
                self.cut = Some(cut);
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Some(Ok(frame)) => Poll::Ready(Some(Ok(frame))),
            None => {
                self.exchange.finish();
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
