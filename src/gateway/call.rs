//! HTTP ⇄ bus: a request becomes a call on `reactor.call`, its replies the response (service contract §2, §4, §5).

use super::body::{self, RequestBody};
use super::bus_reply::{InCall, Mailbox, Next, Parts};
use super::call_body::{self, BodyRefused};
use super::engine::{Answer, Gateway, Tries};
use super::exchange::Exchange;
use super::hold::is_recent;
use super::inbound::Inbound;
use super::path::{self, ServicePath};
use super::problem::Problem;
use super::reply::{self, ReplyHead};
use super::{failure, fields, hygiene};
use crate::kernel::Instant;
use crate::model::call::{Call, CallFailure, ReplyPart};
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::signal::Value;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, header};
use std::sync::Arc;
use std::time::Duration;

/// What all tries of one request share.
struct Asked<'a> {
    inbound: &'a Inbound,
    headers: HeaderMap,
    key: String,
    /// The service that the path names, or the one behind `#`.
    service: String,
    body: Bytes,
    deadline_at: Instant,
    limit: Duration,
}

/// What one try came to.
enum Try {
    Answered(Answer),
    Failed(CallFailure),
}

impl Gateway {
    pub(super) async fn call(
        &self,
        exchange: &mut Exchange,
        inbound: &Inbound,
        body: RequestBody,
        tries: Tries,
    ) -> Result<Answer, Problem> {
        let Tries { mut hold, sees_all } = tries;
        let service = ServicePath::of(inbound.path()).map(|path| path.service.into_owned()).unwrap_or_default();
        exchange.guess(&service);
        if inbound.switch.is_some() {
            return Err(self.refuse_switch(inbound, &service, sees_all));
        }
        let mut headers = inbound.headers.clone();
        hygiene::strip_internal(&mut headers, true);
        let read = call_body::read(body, inbound.content_length(), self.config.call_body_bytes_max, &self.bodies).await;
        let body = read.map_err(|refused| self.body_problem(&refused))?;
        let limit = self.config.deadline;
        let mut asked = Asked {
            inbound,
            headers,
            key: path::key(inbound.path()),
            service,
            body: body.bytes.clone(),
            deadline_at: self.clock().now() + limit,
            limit,
        };
        let mut changes = self.matcher.changes();
        loop {
            let failed = match self.attempt(exchange, &mut asked).await? {
                Try::Answered(answer) => return Ok(answer),
                Try::Failed(failed) => failed,
            };
            if !(self.may_be_restarting(&failed, &asked.service) && hold.wait(&mut changes).await) {
                return Err(self.call_problem(exchange, failed, inbound.path(), sees_all));
            }
        }
    }

    fn refuse_switch(&self, inbound: &Inbound, service: &str, sees_all: bool) -> Problem {
        let attached = self.attached();
        match attached.iter().any(|name| name == service) {
            true => failure::cannot_switch(service),
            false => failure::unbound(inbound.path(), sees_all.then_some(attached)),
        }
    }

    fn body_problem(&self, refused: &BodyRefused) -> Problem {
        match refused {
            BodyRefused::TooLarge => failure::body_too_large(self.config.call_body_bytes_max),
            BodyRefused::Exhausted => failure::bodies_exhausted(self.config.call_bodies_bytes_max),
            BodyRefused::Client(fault) => failure::client_body(*fault),
        }
    }

    /// Whether a failure may be a restart that is worth waiting for.
    fn may_be_restarting(&self, failed: &CallFailure, service: &str) -> bool {
        let seen = match failed {
            CallFailure::NoConsumer { last_seen, .. } => last_seen.is_some_and(is_recent),
            CallFailure::Unbound { .. } | CallFailure::NoSuchVersion { .. } => false,
            CallFailure::WorkerGone { .. }
            | CallFailure::Rejected { .. }
            | CallFailure::Full { .. }
            | CallFailure::FrameTooSmall { .. }
            | CallFailure::Stalled { .. } => return false,
        };
        seen || self.may_return(service)
    }

    fn call_problem(&self, exchange: &mut Exchange, failed: CallFailure, path: &str, sees_all: bool) -> Problem {
        let exists = match &failed {
            CallFailure::NoSuchVersion { service, .. }
            | CallFailure::NoConsumer { service, .. }
            | CallFailure::WorkerGone { service, .. }
            | CallFailure::Rejected { service }
            | CallFailure::Stalled { service } => Some(service),
            CallFailure::Unbound { .. } | CallFailure::Full { .. } | CallFailure::FrameTooSmall { .. } => None,
        };
        if let Some(service) = exists {
            exchange.serve(service, &format!("/{service}"));
        }
        match failed {
            CallFailure::Unbound { .. } => self.nobody(path, sees_all),
            failed => failure::of_call(failed, path, sees_all),
        }
    }

    /// Nothing is bound: either nothing of that name exists, or reactor runs it and it is not there yet.
    fn nobody(&self, path: &str, sees_all: bool) -> Problem {
        let service = ServicePath::of(path).map(|path| path.service.into_owned()).unwrap_or_default();
        match self.matcher.table().supervised(&service) {
            Some(state) => failure::not_ready(&service, state),
            None => failure::unbound(path, sees_all.then(|| self.attached())),
        }
    }

    async fn attempt(&self, exchange: &mut Exchange, asked: &mut Asked<'_>) -> Result<Try, Problem> {
        let inbound = asked.inbound;
        let trace = exchange.call(|| match asked.service.as_str() {
            "" => "call".to_owned(),
            service => format!("call {service}"),
        });
        hygiene::set_trace(&mut asked.headers, trace);
        let pseudo = fields::Pseudo {
            method: &inbound.method,
            path: inbound.target(),
            authority: &inbound.authority.text,
            scheme: inbound.scheme.as_str(),
        };
        let fields = fields::of(&pseudo, &asked.headers).map_err(|too_large| failure::fields_too_large(too_large.bytes))?;
        let left = asked.deadline_at.since(self.clock().now());
        let text = |name| asked.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::to_owned);
        let call = Call {
            space: self.config.space.clone(),
            key: asked.key.clone(),
            fields,
            body: asked.body.clone(),
            content_type: text(header::CONTENT_TYPE),
            content_encoding: text(header::CONTENT_ENCODING),
            request_id: inbound.request_id.clone(),
            deadline: left,
        };
        let mailbox = Mailbox::new(self.clock().clone(), inbound.abort.clone());
        let in_call = match self.bus.call(call, mailbox.clone()) {
            Ok(guard) => InCall::new(mailbox, guard),
            Err(failed) => return Ok(Try::Failed(failed)),
        };
        let next = tokio::time::timeout(left, in_call.next()).await;
        let delivered = in_call.delivered();
        let service = delivered.as_ref().map_or(asked.service.as_str(), |delivered| &*delivered.service);
        if delivered.is_none()
            && matches!(next, Ok(Next::Part(_)))
            && self.bus.attached(&self.config.space).contains(&asked.service)
        {
            // The reply was faster than the news of the delivery.
            exchange.serve(service, &format!("/{service}"));
        }
        if let Some(delivered) = &delivered {
            let route = if *delivered.service == *asked.service { format!("/{service}") } else { "/".to_owned() };
            exchange.serve(service, &route);
            exchange.note("reactor.service", || Value::Text(delivered.service.clone()));
            exchange.note("reactor.instance", || Value::Text(delivered.instance.clone()));
        }
        match next {
            Err(_) => Err(failure::late(service, delivered.as_ref(), asked.limit)),
            Ok(Next::Failed(failed)) => Ok(Try::Failed(failed)),
            Ok(Next::Overrun) => Ok(Try::Failed(CallFailure::Stalled { service: service.to_owned() })),
            Ok(Next::Part(part)) => self.reply(&inbound.method, service, part, in_call).map(Try::Answered),
        }
    }

    fn reply(&self, method: &Method, service: &str, part: ReplyPart, in_call: InCall) -> Result<Answer, Problem> {
        let head = reply::head(&part).map_err(|reason| {
            emit::happening(Happening {
                at_ns: self.clock().unix_nanos(),
                space: self.config.space.clone(),
                what: What::ReplyRefused { service: Arc::from(service), reason: Arc::from(reason.as_str()) },
            });
            failure::reply_refused(service, &reason)
        })?;
        if *method == Method::HEAD || reply::forbids_body(head.status) {
            return Ok(Answer::Whole(without_body(head, part.last.then(|| part.body.len()))));
        }
        Ok(match part.last {
            true => Answer::Whole(response(head, body::full(part.body))),
            false => Answer::Parts(response(head, Parts::new(part.body, in_call))),
        })
    }
}

fn response<B>(head: ReplyHead, body: B) -> Response<B> {
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// The answer to HEAD, or one whose status has no body: what the worker sent is dropped. A HEAD's length is said only if the worker
/// built the body that a GET would have had.
fn without_body(head: ReplyHead, length: Option<usize>) -> Response<body::GatewayBody> {
    if reply::forbids_body(head.status) {
        return response(head, body::empty());
    }
    let mut answer = response(head, body::silent());
    if let Some(length) = length.filter(|length| *length > 0) {
        answer.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    answer
}
