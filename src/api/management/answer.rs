//! What is answered: RabbitMQ's JSON and its ways to say no. The one place where a [`Refusal`] gets its status here.

use crate::model::refusal::{Refusal, RefusalKind};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};

/// A refusal as RabbitMQ's clients read it: `{"error": …, "reason": …}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    pub status: StatusCode,
    pub body: Value,
}

pub type Answer = Result<Response, Failure>;

impl Failure {
    pub fn new(status: StatusCode, error: &str, reason: impl Into<Value>) -> Self {
        Failure { status, body: json!({ "error": error, "reason": reason.into() }) }
    }

    /// The path names nothing.
    pub fn no_object() -> Self {
        Failure::new(StatusCode::NOT_FOUND, "Object Not Found", "Not Found")
    }

    /// The path is right, but what it or the body names is not there.
    pub fn not_found(reason: impl Into<String>) -> Self {
        Failure::new(StatusCode::NOT_FOUND, "not_found", reason.into())
    }

    pub fn bad(reason: impl Into<Value>) -> Self {
        Failure::new(StatusCode::BAD_REQUEST, "bad_request", reason)
    }

    /// Known, and not allowed. RabbitMQ spells it so and answers 401.
    pub fn not_authorised(reason: impl Into<String>) -> Self {
        Failure::new(StatusCode::UNAUTHORIZED, "not_authorised", reason.into())
    }

    /// A health check that failed, with what it found.
    pub fn unhealthy(body: Value) -> Self {
        Failure { status: StatusCode::SERVICE_UNAVAILABLE, body }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal.kind {
            RefusalKind::NotFound => Failure::not_found(refusal.to_string()),
            RefusalKind::Forbidden => Failure::not_authorised(refusal.to_string()),
            RefusalKind::TooLarge => Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", refusal.to_string()),
            RefusalKind::Exhausted => Failure::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", refusal.to_string()),
            RefusalKind::NotImplemented => Failure::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", refusal.to_string()),
            RefusalKind::Invalid | RefusalKind::Conflict => Failure::bad(refusal.to_string()),
        }
    }
}

impl From<crate::broker::Refused> for Failure {
    fn from(refused: crate::broker::Refused) -> Self {
        Refusal::from(refused).into()
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(self.body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// 200 with JSON.
pub fn json(value: impl Serialize) -> Response {
    axum::Json(value).into_response()
}

pub fn status(status: StatusCode) -> Response {
    status.into_response()
}

/// 204.
pub fn done() -> Response {
    status(StatusCode::NO_CONTENT)
}

/// 201 when it is new, 204 when it was there.
pub fn put(existed: bool) -> Response {
    status(if existed { StatusCode::NO_CONTENT } else { StatusCode::CREATED })
}

/// 201 with where it is found.
pub fn created_at(location: &str) -> Response {
    let mut response = status(StatusCode::CREATED);
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// What every answer carries: nothing is to be kept, framed, sniffed or read by other origins.
pub fn harden(headers: &mut http::HeaderMap) {
    let fields = [
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept, accept-encoding, origin"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    for (name, value) in fields {
        headers.insert(name, HeaderValue::from_static(value));
    }
}
