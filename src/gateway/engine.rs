//! The gateway itself: what the doors call, and the way of a request through it.

use super::body::{self, BoxError, GatewayBody, RequestBody};
use super::bus_reply::Parts;
use super::call_body::Budget;
use super::config::GatewayConfig;
use super::exchange::{Asked, Exchange, Recorder, recorded};
use super::failure;
use super::hold::{self, Hold};
use super::hygiene;
use super::inbound::{self, Admitted, Inbound};
use super::matcher::{Choice, Matcher};
use super::path::ServicePath;
use super::problem::Problem;
use super::proxy::UpstreamBody;
use super::stats::{Stats, StatsSnapshot, caller_of};
use super::upgrade::Tunnel;
use super::upstream::{Dialler, UpstreamStats};
use crate::kernel::task::Tasks;
use crate::kernel::{Clock, Drain};
use crate::model::call::CallBus;
use crate::model::service::InstanceState;
use crate::registry::Registry;
use crate::wire::http::Refused;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version, header};
use http_body::Body;
use http_body_util::BodyExt as _;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// How the client reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

/// What is known of a client's connection.
#[derive(Debug)]
pub struct ClientConn {
    pub peer: SocketAddr,
    pub scheme: Scheme,
    abort: CancellationToken,
}

impl ClientConn {
    pub fn new(peer: SocketAddr, scheme: Scheme) -> Arc<Self> {
        Arc::new(ClientConn { peer, scheme, abort: CancellationToken::new() })
    }

    /// Resolves when an HTTP/1.1 connection must be closed although its client reads nothing: bodies are only asked for more when
    /// the client takes what it has, so nothing else would end such a response. (An HTTP/2 stream is reset when its client next
    /// takes something, or leaves; until then it holds nothing.)
    pub async fn aborted(&self) {
        self.abort.cancelled().await;
    }

    pub(super) fn abort_if_http1(&self, version: Version) -> Option<CancellationToken> {
        (version < Version::HTTP_2).then(|| self.abort.clone())
    }
}

pub struct Gateway {
    pub(super) config: GatewayConfig,
    pub(super) bus: Arc<dyn CallBus>,
    pub(super) matcher: Matcher,
    pub(super) recorder: Arc<Recorder>,
    pub(super) dialler: Dialler,
    pub(super) bodies: Arc<Budget>,
    drain: Drain,
}

/// An answer, and how it ends.
pub(super) enum Answer {
    Whole(Response<GatewayBody>),
    /// Parts of a reply over the bus.
    Parts(Response<Parts>),
    /// An HTTP service's body, as it comes.
    Upstream(Response<UpstreamBody>),
    /// The connection leaves HTTP behind.
    Switched(Response<GatewayBody>, Tunnel),
}

impl Gateway {
    /// Starts the gateway's own task on the current runtime; it ends with `drain`.
    pub fn new(
        config: GatewayConfig,
        bus: Arc<dyn CallBus>,
        registry: Arc<Registry>,
        clock: Clock,
        drain: Drain,
    ) -> Arc<Gateway> {
        let dialler = Dialler { tasks: Tasks::new(), stats: Arc::new(UpstreamStats::default()) };
        let gateway = Arc::new(Gateway {
            matcher: Matcher::new(config.space.clone(), registry, clock.clone()),
            bodies: Budget::new(config.call_bodies_bytes_max),
            recorder: Arc::new(Recorder { clock, stats: Stats::default() }),
            config,
            bus,
            dialler,
            drain,
        });
        gateway.dialler.tasks.spawn("gateway matcher", gateway.clone().watch_registry());
        gateway
    }

    /// Keeps the table in step while nobody asks: when a service left must be known later.
    async fn watch_registry(self: Arc<Self>) {
        let mut changes = self.matcher.changes();
        loop {
            drop(self.matcher.table());
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = self.drain.begun() => return,
            }
        }
    }

    pub fn drain(&self) -> &Drain {
        &self.drain
    }

    pub fn clock(&self) -> &Clock {
        &self.recorder.clock
    }

    /// Requests, failures, latencies and callers so far; counts only grow, so the sampler takes differences.
    pub fn stats(&self) -> StatsSnapshot {
        let mut snapshot = self.recorder.stats.snapshot(&self.config.space);
        snapshot.upstream_connections = self.dialler.stats.open.get();
        snapshot.upstream_connections_opened = self.dialler.stats.opened.get();
        snapshot.call_body_bytes = self.bodies.used() as u64;
        snapshot
    }

    /// Answers one request. Dropping the future cancels it: its call is taken back, its upstream connection closed.
    pub async fn handle<B>(self: Arc<Self>, mut request: Request<B>, conn: Arc<ClientConn>) -> Response<GatewayBody>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let wants_switch = request.method() == Method::CONNECT || request.headers().contains_key(header::UPGRADE);
        let on_upgrade = wants_switch.then(|| hyper::upgrade::on(&mut request));
        let (mut parts, body) = request.into_parts();
        let incoming = hygiene::incoming_trace(&mut parts.headers);
        let caller = caller_of(parts.headers.get(header::USER_AGENT).map(|agent| agent.as_bytes()));
        let asked = Asked { method: parts.method.clone(), path: parts.uri.path(), caller, incoming };
        let mut exchange = Exchange::begin(self.recorder.clone(), conn.clone(), asked);
        let answer = match inbound::admit(parts, on_upgrade, &conn, &self.config) {
            Ok(Admitted::Request(inbound)) => {
                let body = body.map_err(Into::into).boxed_unsync();
                self.answer(&mut exchange, *inbound, body, &conn).await
            }
            Ok(Admitted::AskedGateway) => Ok(Answer::Whole(asked_gateway())),
            Err(problem) => Err(problem),
        };
        self.finish(exchange, answer)
    }

    /// Answers a request that the door may not pass on.
    pub fn refuse(&self, refused: &Refused, conn: Arc<ClientConn>) -> Response<GatewayBody> {
        let asked = Asked { method: Method::default(), path: "", caller: caller_of(None), incoming: None };
        let exchange = Exchange::begin(self.recorder.clone(), conn, asked);
        self.finish(exchange, Err(failure::refused_head(refused)))
    }

    fn finish(&self, mut exchange: Exchange, answer: Result<Answer, Problem>) -> Response<GatewayBody> {
        match answer {
            Ok(Answer::Whole(response)) => {
                exchange.answer(response.status());
                response
            }
            Ok(Answer::Parts(response)) => {
                exchange.answer(response.status());
                response.map(|parts| recorded(parts, exchange))
            }
            Ok(Answer::Upstream(response)) => {
                exchange.answer(response.status());
                response.map(|body| recorded(body, exchange))
            }
            Ok(Answer::Switched(response, tunnel)) => {
                exchange.answer(response.status());
                self.dialler.tasks.spawn("gateway upgraded", tunnel.run(exchange, self.drain.clone()));
                response
            }
            Err(problem) => {
                if problem.status.is_server_error() {
                    exchange.fail(format!("{}: {}", problem.title, problem.said()));
                }
                exchange.answer(problem.status);
                problem.into_response(exchange.trace_id())
            }
        }
    }

    async fn answer(
        &self,
        exchange: &mut Exchange,
        inbound: Inbound,
        body: RequestBody,
        conn: &ClientConn,
    ) -> Result<Answer, Problem> {
        let sees_all = (self.config.sees_dashboard)(conn.peer.ip(), &inbound.authority.text);
        if inbound.path() == "/.reactor" || inbound.path().starts_with("/.reactor/") {
            return Err(failure::reserved(inbound.path()));
        }
        let mut hold = Hold::new(self.clock().clone(), self.config.hold);
        if self.leads_to_http(&inbound, &mut hold).await {
            self.proxy(exchange, inbound, body, Tries { hold, sees_all }).await
        } else {
            self.call(exchange, &inbound, body, Tries { hold, sees_all }).await
        }
    }

    /// Whether an HTTP service answers; if nobody does, but somebody may in a moment, waits to see who.
    async fn leads_to_http(&self, inbound: &Inbound, hold: &mut Hold) -> bool {
        let Some(path) = ServicePath::of(inbound.path()) else { return false };
        let is_on_bus = || self.bus.attached(&self.config.space).iter().any(|name| *name == path.service);
        let mut changes = self.matcher.changes();
        loop {
            match self.resolve(&path) {
                Resolved::Http(Choice::NotReady(_)) => return !is_on_bus(),
                Resolved::Http(_) => return true,
                Resolved::OnBus if !self.may_return(&path.service) || is_on_bus() => return false,
                Resolved::OnBus => {}
            }
            if !hold.wait(&mut changes).await {
                return false;
            }
        }
    }

    /// Where a path leads at this moment.
    pub(super) fn resolve(&self, path: &ServicePath<'_>) -> Resolved {
        match self.matcher.table().http(&path.service) {
            Some(service) => Resolved::Http(service.choose(path.wanted())),
            None => Resolved::OnBus,
        }
    }

    /// Whether a service that is not there may just be (re)starting.
    pub(super) fn may_return(&self, service: &str) -> bool {
        let table = self.matcher.table();
        let left_recently = table.lost_at(service).is_some_and(|at| hold::is_recent(self.recorder.clock.now().since(at)));
        left_recently || table.supervised(service) == Some(InstanceState::Starting)
    }

    /// Everything that is attached, over the bus or HTTP.
    pub(super) fn attached(&self) -> Vec<String> {
        let mut attached = self.bus.attached(&self.config.space);
        attached.extend(self.matcher.table().http_services().map(str::to_owned));
        attached.sort_unstable();
        attached.dedup();
        attached
    }
}

/// What a request may spend on reaching its service, and what its client may learn of others.
pub(super) struct Tries {
    pub(super) hold: Hold,
    pub(super) sees_all: bool,
}

pub(super) enum Resolved {
    Http(Choice),
    OnBus,
}

fn asked_gateway() -> Response<GatewayBody> {
    let mut response = Response::new(body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response.headers_mut().insert(header::ALLOW, inbound::allow());
    response
}
