//! A request to a service that speaks HTTP: streamed both ways, to one of its ready instances (service contract §6).

use super::balance;
use super::body::{BodyCut, BodyWatch, PassedOn, RequestBody};
use super::engine::{Answer, Gateway, Resolved, Tries};
use super::exchange::{Ending, Exchange};
use super::inbound::{Inbound, Switch};
use super::matcher::Choice;
use super::path::{ServicePath, Wanted};
use super::problem::Problem;
use super::upgrade::{self, Tunnel};
use super::upstream::{Endpoint, InFlight, Lent};
use super::{failure, hygiene};
use crate::kernel::Clock;
use crate::kernel::rng;
use crate::model::signal::Value;
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::upgrade::OnUpgrade;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What one try with one instance came to.
enum Tried {
    Answered(Response<Incoming>, SendRequest<PassedOn>, InFlight),
    /// The instance took no connection; the request is whole.
    Unsent {
        request: Request<PassedOn>,
        why: String,
    },
    Failed(Problem),
}

/// Who may take a request now.
enum Candidates {
    Ready(Vec<Arc<Endpoint>>),
    /// Nobody; whether somebody may be back in a moment.
    Away(Problem, bool),
    None(Problem),
}

/// A service as one request sees it.
struct Asked {
    service: String,
    watch: Arc<BodyWatch>,
}

impl Gateway {
    pub(super) async fn proxy(
        &self,
        exchange: &mut Exchange,
        mut inbound: Inbound,
        body: RequestBody,
        tries: Tries,
    ) -> Result<Answer, Problem> {
        let Tries { mut hold, sees_all } = tries;
        hygiene::strip_internal(&mut inbound.headers, false);
        let switch = inbound.switch.take();
        let original = inbound.path().to_owned();
        let path = ServicePath::of(&original).expect("only paths of services come here");
        let (declares_versions, keep_prefix) = self.shape(&path);
        exchange.serve(&path.service, &path.prefix(declares_versions).to_ascii_lowercase());
        let body = PassedOn::new(body, self.clock().clone());
        let asked = Asked { service: path.service.to_string(), watch: body.watch() };
        let prefix = (!keep_prefix).then(|| (path.prefix(declares_versions), path.rest(declares_versions)));
        let mut request = outbound(inbound, prefix, switch.as_ref().map(|(switch, _)| switch), body)?;

        let mut changes = self.matcher.changes();
        let (mut tried, mut refusal): (Vec<Arc<Endpoint>>, Option<Problem>) = (Vec::new(), None);
        loop {
            let now = self.clock().now();
            let endpoint = match self.candidates(&path, sees_all) {
                Candidates::Ready(endpoints) => match balance::pick(&endpoints, &tried, now, draw) {
                    Some(endpoint) => endpoint,
                    None => {
                        let may_return = tried.iter().any(|endpoint| endpoint.refuses_since_recently(now));
                        if may_return && hold.wait(&mut changes).await {
                            tried.clear();
                            continue;
                        }
                        return Err(refusal.expect("instances were tried and none took a connection"));
                    }
                },
                Candidates::Away(problem, may_return) => {
                    if (may_return || refusal.is_some()) && hold.wait(&mut changes).await {
                        continue;
                    }
                    return Err(problem);
                }
                Candidates::None(problem) => return Err(problem),
            };
            match self.send(exchange, &endpoint, request, &asked).await {
                Tried::Answered(response, sender, in_flight) => {
                    return answered(response, switch, UpstreamLease { sender, in_flight, clock: self.clock().clone() });
                }
                Tried::Failed(problem) => return Err(problem),
                Tried::Unsent { request: whole, why } => {
                    endpoint.suspect(now);
                    request = whole;
                    refusal = Some(failure::unreachable(&path.service, &why));
                    tried.push(endpoint);
                }
            }
        }
    }

    fn candidates(&self, path: &ServicePath<'_>, sees_all: bool) -> Candidates {
        let service = &*path.service;
        match (self.resolve(path), path.wanted()) {
            (Resolved::Http(Choice::Endpoints(endpoints)), _) => Candidates::Ready(endpoints),
            (Resolved::Http(Choice::NotReady(state)), _) => {
                Candidates::Away(failure::not_ready(service, state), self.may_return(service))
            }
            (Resolved::Http(Choice::NoSuchVersion(versions)), Wanted::Exactly(version)) => {
                Candidates::None(failure::no_such_version(service, version, &versions, sees_all))
            }
            (Resolved::Http(Choice::NoSuchVersion(_)) | Resolved::OnBus, _) => {
                let problem = failure::unbound(&format!("/{service}"), sees_all.then(|| self.attached()));
                Candidates::Away(problem, self.may_return(service))
            }
        }
    }

    /// Whether the service declares versions, and whether it keeps its prefix.
    fn shape(&self, path: &ServicePath<'_>) -> (bool, bool) {
        let table = self.matcher.table();
        table.http(&path.service).map_or((false, false), |service| (service.declares_versions(), service.keep_prefix))
    }

    /// Sends the request to one instance, on a kept connection or a new one, and waits for the head of the answer.
    async fn send(
        &self,
        exchange: &mut Exchange,
        endpoint: &Arc<Endpoint>,
        mut request: Request<PassedOn>,
        asked: &Asked,
    ) -> Tried {
        let in_flight = endpoint.begin();
        let trace = exchange.call(|| format!("{} {}", request.method(), asked.service));
        exchange.note("reactor.service", || Value::from(asked.service.as_str()));
        exchange.note("reactor.instance", || Value::Text(endpoint.name.clone()));
        exchange.note("server.address", || Value::from(endpoint.address.to_string()));
        hygiene::set_trace(request.headers_mut(), trace);
        loop {
            let lent = match endpoint.reuse(self.clock().now()) {
                Some(lent) => lent,
                None => match endpoint.dial(&self.dialler).await {
                    Ok(lent) => lent,
                    Err(error) => return Tried::Unsent { request, why: format!("{}: {error}", endpoint.name) },
                },
            };
            let Lent { mut sender, reused } = lent;
            let Some(answer) = self.within_deadline(sender.try_send_request(request), &asked.watch).await else {
                return Tried::Failed(failure::slow_upstream(&asked.service, &endpoint.name, self.config.deadline));
            };
            match answer {
                Ok(response) => {
                    endpoint.took_connection();
                    return Tried::Answered(response, sender, in_flight);
                }
                Err(mut error) => match error.take_message() {
                    // The service closed a kept connection before anything was written: nothing happened, so try again.
                    Some(whole) if reused => request = whole,
                    Some(whole) => {
                        let why = format!("{}: {}", endpoint.name, error.error());
                        return Tried::Unsent { request: whole, why };
                    }
                    None => return Tried::Failed(broken(asked, endpoint, error.error())),
                },
            }
        }
    }

    /// Waits for an answer as long as the deadline allows, counted from when the request's body last moved.
    async fn within_deadline<F: Future>(&self, answer: F, watch: &BodyWatch) -> Option<F::Output> {
        let mut answer = pin!(answer);
        loop {
            let due = watch.moved_at() + self.config.deadline;
            let left = due.since(self.clock().now());
            if left.is_zero() {
                return None;
            }
            if let Ok(answer) = tokio::time::timeout(left, answer.as_mut()).await {
                return Some(answer);
            }
        }
    }
}

fn draw(bound: usize) -> usize {
    thread_local!(static DRAWS: std::cell::RefCell<rng::Rng> = std::cell::RefCell::new(rng::Rng::unseeded()));
    DRAWS.with_borrow_mut(|rng| rng.below(bound as u64) as usize)
}

/// The client's fault, if its body is what failed.
fn broken(asked: &Asked, endpoint: &Endpoint, error: &hyper::Error) -> Problem {
    match asked.watch.fault() {
        Some(fault) => failure::client_body(fault),
        None => {
            let why = match error {
                error if error.is_incomplete_message() => "it closed the connection without an answer".to_owned(),
                error if error.is_parse() => format!("what it sent is no HTTP ({error})"),
                error => error.to_string(),
            };
            failure::broken(&asked.service, &endpoint.name, &why)
        }
    }
}

/// The request as the service sees it. `prefix` is what is taken off the path and what is left.
fn outbound(
    inbound: Inbound,
    prefix: Option<(&str, &str)>,
    switch: Option<&Switch>,
    body: PassedOn,
) -> Result<Request<PassedOn>, Problem> {
    let path = prefix.map_or_else(|| inbound.path(), |(_, rest)| rest);
    let target = match inbound.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let target = PathAndQuery::try_from(target).map_err(|error| Problem::bad_request(error.to_string()))?;
    let mut request = Request::new(body);
    *request.method_mut() = inbound.method;
    *request.uri_mut() = Uri::from(target);
    *request.version_mut() = Version::HTTP_11;
    *request.headers_mut() = inbound.headers;
    let headers = request.headers_mut();
    let value = |text: &str| HeaderValue::from_str(text).map_err(|error| Problem::bad_request(error.to_string()));
    headers.insert(header::HOST, value(&inbound.authority.text)?);
    if let Some((prefix, _)) = prefix {
        let before = headers.get(hygiene::FORWARDED_PREFIX).and_then(|before| before.to_str().ok()).unwrap_or_default();
        let whole = value(&format!("{before}{prefix}"))?;
        headers.insert(hygiene::FORWARDED_PREFIX, whole);
    }
    match switch {
        Some(Switch::Upgrade(token)) => upgrade::ask(headers, token.clone()),
        Some(Switch::Connect) => {
            upgrade::ask(headers, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_KEY, upgrade::fresh_key());
            *request.method_mut() = Method::GET;
        }
        None => {}
    }
    Ok(request)
}

fn answered(
    mut response: Response<Incoming>,
    switch: Option<(Switch, OnUpgrade)>,
    lease: UpstreamLease,
) -> Result<Answer, Problem> {
    if response.status() == StatusCode::SWITCHING_PROTOCOLS {
        let Some((switch, on_client)) = switch else {
            return Err(failure::broken("the service", &lease.in_flight.endpoint().name, "it switched protocols unasked"));
        };
        let tunnel = Tunnel::new(on_client, hyper::upgrade::on(&mut response), lease.in_flight);
        return Ok(Answer::Switched(upgrade::agree(response, &switch), tunnel));
    }
    hygiene::strip_hop_by_hop(response.headers_mut());
    Ok(Answer::Upstream(response.map(|incoming| UpstreamBody::new(incoming, lease))))
}

/// A connection in use by a response that is still being read.
struct UpstreamLease {
    sender: SendRequest<PassedOn>,
    in_flight: InFlight,
    clock: Clock,
}

impl UpstreamLease {
    fn give_back(self) {
        self.in_flight.endpoint().give_back(self.sender, self.clock.now());
    }
}

/// A service's body as it comes. Read to its end, its connection is kept; dropped before, it is closed.
pub(super) struct UpstreamBody {
    incoming: Incoming,
    lease: Option<UpstreamLease>,
}

impl UpstreamBody {
    fn new(incoming: Incoming, lease: UpstreamLease) -> Self {
        let mut body = UpstreamBody { incoming, lease: Some(lease) };
        body.give_back_at_end();
        body
    }

    fn give_back_at_end(&mut self) {
        if self.incoming.is_end_stream()
            && let Some(lease) = self.lease.take()
        {
            lease.give_back();
        }
    }
}

impl Ending for UpstreamBody {
    fn why_unfinished(&self) -> Option<&'static str> {
        None
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = BodyCut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyCut>>> {
        loop {
            match ready!(Pin::new(&mut self.incoming).poll_frame(cx)) {
                // Trailers end with the connection they came over (HTTP/1.1); the tunnel will pass them.
                Some(Ok(frame)) if frame.is_trailers() => {}
                Some(Ok(frame)) => {
                    self.give_back_at_end();
                    return Poll::Ready(Some(Ok(frame)));
                }
                Some(Err(error)) => {
                    self.lease = None;
                    let cut = BodyCut(format!("the service's connection broke in the middle of its answer: {error}"));
                    return Poll::Ready(Some(Err(cut)));
                }
                None => {
                    if let Some(lease) = self.lease.take() {
                        lease.give_back();
                    }
                    return Poll::Ready(None);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
