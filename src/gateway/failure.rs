//! What can go wrong with a call, as the answer the client gets (service contract §5): one function per cause.

use super::body::ClientFault;
use super::bus_reply::Delivered;
use super::problem::Problem;
use crate::kernel::limit::CALL_HEADERS_BYTES_MAX;
use crate::model::call::CallFailure;
use crate::model::service::InstanceState;
use crate::wire::http::Refused;
use http::StatusCode;
use std::time::Duration;

/// Seconds after which a client may try again where something is full or away.
const RETRY_AFTER_SECONDS: u32 = 1;

/// No service answers under this path. `attached` is given only for those who could see the dashboard anyway.
pub(super) fn unbound(path: &str, attached: Option<Vec<String>>) -> Problem {
    let service = path.split('/').find(|segment| !segment.is_empty());
    let (detail, key) = match service {
        Some(service) => (format!("no service is attached for `/{service}`"), format!("{}.#", service.to_ascii_lowercase())),
        None => ("no default service is attached for `/`".to_owned(), "#".to_owned()),
    };
    let problem = Problem::new(StatusCode::NOT_FOUND, "no-service", "No service answers here").detail(detail).next(format!(
        "Bind a queue to the exchange `reactor.call` with the key `{key}` and consume it, or let reactor run the service."
    ));
    with_attached(problem, attached)
}

pub(super) fn no_such_version(service: &str, version: u32, versions: &[u32], show: bool) -> Problem {
    let known: Vec<String> = versions.iter().map(|version| format!("v{version}")).collect();
    let next = match known.last() {
        Some(highest) if show => format!("Ask for /{service}/{highest}, or for /{service} to get the highest that is ready."),
        _ => format!("Ask for /{service} to get the highest version that is ready."),
    };
    let problem = Problem::new(StatusCode::NOT_FOUND, "no-such-version", "This version of the service is not attached")
        .detail(format!("{service} has no version {version}"))
        .next(next);
    with_attached(problem, show.then_some(known))
}

fn with_attached(problem: Problem, attached: Option<Vec<String>>) -> Problem {
    match attached {
        Some(attached) => problem.attached(attached),
        None => problem,
    }
}

/// What the bus reported, except that nothing is bound.
pub(super) fn of_call(failure: CallFailure, path: &str, show: bool) -> Problem {
    match failure {
        CallFailure::Unbound { attached } => unbound(path, show.then_some(attached)),
        CallFailure::NoSuchVersion { service, version, attached } => no_such_version(&service, version, &attached, show),
        CallFailure::NoConsumer { service, .. } => unavailable("no-consumer", "Nobody consumes the service's queue")
            .detail(format!("{service} is bound to `reactor.call`, but no instance of it is attached"))
            .next(format!("Start {service}; its queue and bindings are there.")),
        CallFailure::WorkerGone { service, instance } => bad_gateway("worker-gone", "The service went away before it answered")
            .detail(format!(
                "{instance} of {service} took the call and closed its channel without a reply; the call is not repeated"
            ))
            .next(format!("Look into the log of {instance}; repeat the request if it is safe to.")),
        CallFailure::Rejected { service } => bad_gateway("rejected", "The service rejected the call")
            .detail(format!("{service} rejected the message without requeue"))
            .next(format!("Look into the log of {service}; a service that wants to refuse a request answers with a `:status`.")),
        CallFailure::Full { queue } => unavailable("full", "The service's queue is full")
            .detail(format!("{queue} takes no more messages now"))
            .next("Wait and repeat; add instances of the service or raise the queue's limit."),
        CallFailure::FrameTooSmall { frame_max } => {
            bad_gateway("frame-too-small", "The service cannot receive this request's fields")
                .detail(format!("the header fields do not fit the consumer's frame_max of {frame_max} bytes"))
                .next("Let the service's AMQP client negotiate a larger `frame_max`, or send fewer header fields.")
        }
        CallFailure::Stalled { service } => bad_gateway("stalled", "The answer was not read")
            .detail(format!("the streamed reply of {service} found no reader for 10 s"))
            .next("Read the response as it comes."),
    }
}

/// No first reply in time.
pub(super) fn late(service: &str, delivered: Option<&Delivered>, limit: Duration) -> Problem {
    let seconds = limit.as_secs_f64();
    let problem = Problem::new(StatusCode::GATEWAY_TIMEOUT, "no-reply", "The service did not answer in time");
    match delivered {
        Some(Delivered { service, instance }) => {
            problem.detail(format!("{instance} of {service} took the call and sent no reply within {seconds} s")).next(
                "Publish the answer to the message's `reply_to` with its `correlation_id`; the trace shows where the time went.",
            )
        }
        None => problem
            .detail(format!("no instance of {service} took the call within {seconds} s"))
            .next("Look at the service's queue: its consumers are busy; raise their prefetch or add instances."),
    }
}

/// The worker's answer cannot be written as HTTP.
pub(super) fn reply_refused(service: &str, reason: &str) -> Problem {
    bad_gateway("bad-reply", "The service's answer cannot be HTTP")
        .detail(format!("{service} replied, but {reason}"))
        .next("Correct the reply's headers; the service contract, section 4, says what they may be.")
}

/// Supervised and known, but nobody is ready.
pub(super) fn not_ready(service: &str, state: InstanceState) -> Problem {
    let (detail, next) = match state {
        InstanceState::Starting => ("is starting", "Wait until its readiness probe succeeds, and repeat."),
        InstanceState::Failing => ("does not stay up", "Look into its console in the dashboard for the error it exits with."),
        InstanceState::Stopped | InstanceState::Stopping => ("is stopped", "Start it in the dashboard or with the API."),
        InstanceState::Ready | InstanceState::Degraded | InstanceState::Detached => (
            "runs, but neither listens on its PORT nor consumes calls",
            "Let it listen on the port in `PORT`, or bind a queue to `reactor.call` and consume it.",
        ),
    };
    unavailable("not-ready", "The service is not ready").detail(format!("{service} {detail}")).next(next)
}

/// No instance took a connection; nothing was sent.
pub(super) fn unreachable(service: &str, why: &str) -> Problem {
    bad_gateway("unreachable", "The service takes no connection")
        .detail(format!("{service}: {why}"))
        .next("Check that it listens on the port it was given in `PORT`, on a loopback address.")
}

/// The connection to the service broke, or what came was no HTTP.
pub(super) fn broken(service: &str, instance: &str, why: &str) -> Problem {
    bad_gateway("broken-answer", "The service's connection broke before its answer")
        .detail(format!("{instance} of {service}: {why}"))
        .next(format!("Look into the log of {instance}; repeat the request if it is safe to."))
}

pub(super) fn slow_upstream(service: &str, instance: &str, limit: Duration) -> Problem {
    Problem::new(StatusCode::GATEWAY_TIMEOUT, "no-reply", "The service did not answer in time")
        .detail(format!("{instance} of {service} sent no response head within {} s", limit.as_secs_f64()))
        .next("The trace shows where the time went; long work is better answered with 202 and done by a queue worker.")
}

pub(super) fn body_too_large(bytes_max: usize) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body-too-large", "The request body is too large for a call")
        .detail(format!("a call's body has at most {bytes_max} bytes"))
        .next("Send less, raise `limits.call_body_bytes_max`, or let the service speak HTTP, to which bodies are streamed.")
}

pub(super) fn bodies_exhausted(bytes_max: usize) -> Problem {
    unavailable("busy", "Too many request bodies are in flight")
        .detail(format!("the bodies of all calls together have at most {bytes_max} bytes"))
        .next("Wait and repeat.")
}

pub(super) fn fields_too_large(bytes: usize) -> Problem {
    Problem::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "fields-too-large",
        "The request's header fields are too large for a call",
    )
    .detail(format!("they have {bytes} bytes, and a call carries at most {CALL_HEADERS_BYTES_MAX}"))
    .next("Send fewer or shorter fields; put large values into the body.")
}

/// The client's body never came whole.
pub(super) fn client_body(fault: ClientFault) -> Problem {
    match fault {
        ClientFault::Malformed => Problem::bad_request("the request body's chunks are malformed").closing(),
        ClientFault::TooSlow => Problem::new(StatusCode::REQUEST_TIMEOUT, "body-too-slow", "The request body stopped coming")
            .detail("no byte of the body came for a minute")
            .next("Repeat the request on a new connection.")
            .closing(),
        ClientFault::Gone => Problem::bad_request("the request body ended before its declared length").closing(),
    }
}

/// `Upgrade` to a service that is reached by messages.
pub(super) fn cannot_switch(service: &str) -> Problem {
    Problem::new(StatusCode::NOT_IMPLEMENTED, "no-upgrade", "A service on the bus cannot take a connection over")
        .detail(format!("{service} answers by AMQP messages, which carry no WebSocket or other upgraded connection"))
        .next(format!("Let {service} serve HTTP and attach it with `reactor attach {service} --to http://localhost:PORT`."))
}

pub(super) fn reserved(path: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "reserved", "This path is reserved")
        .detail(format!("`{path}` lies under `/.reactor/`, which belongs to the runtime; nothing is there"))
        .next("Use a path that begins with a service's name.")
}

fn unavailable(kind: &'static str, title: &'static str) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, kind, title).retry_after(RETRY_AFTER_SECONDS)
}

fn bad_gateway(kind: &'static str, title: &'static str) -> Problem {
    Problem::new(StatusCode::BAD_GATEWAY, kind, title)
}

/// The door could not pass the request on.
pub(super) fn refused_head(refused: &Refused) -> Problem {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::BAD_REQUEST);
    let problem = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE | StatusCode::URI_TOO_LONG => {
            Problem::new(status, "head-too-large", "The request's head is too large").next("Put large values into the body.")
        }
        StatusCode::NOT_IMPLEMENTED => Problem::new(status, "unknown-coding", "The transfer coding is not understood")
            .next("Send the body `chunked` or with its length."),
        StatusCode::REQUEST_TIMEOUT => Problem::new(status, "head-too-slow", "The request did not come in time")
            .next("Repeat the request on a new connection."),
        _ => Problem::bad_request(""),
    };
    problem.detail(refused.why.clone()).closing()
}
