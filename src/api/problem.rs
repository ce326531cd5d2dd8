//! Refusals as RFC 9457 bodies: the one place where a [`RefusalKind`] becomes an HTTP status.

use crate::model::refusal::{Refusal, RefusalKind};
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;

/// What went wrong, said so that the caller can mend it.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Problem {
    /// Stable identifier of the kind of problem, a relative URI.
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub title: &'static str,
    pub status: u16,
    /// The thing, and what is wrong with it.
    pub detail: Box<str>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<str>>,
    /// Offset of the offending character in a query, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
}

impl Problem {
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let kind = match status {
            StatusCode::BAD_REQUEST => "/problems/invalid",
            StatusCode::UNAUTHORIZED => "/problems/no-token",
            StatusCode::FORBIDDEN => "/problems/forbidden",
            StatusCode::NOT_FOUND => "/problems/not-found",
            StatusCode::CONFLICT => "/problems/conflict",
            StatusCode::PAYLOAD_TOO_LARGE => "/problems/too-large",
            StatusCode::NOT_IMPLEMENTED => "/problems/not-implemented",
            StatusCode::SERVICE_UNAVAILABLE => "/problems/exhausted",
            _ => "about:blank",
        };
        let title = status.canonical_reason().unwrap_or("Error");
        Problem { kind, title, status: status.as_u16(), detail: detail.into().into(), next: None, position: None }
    }

    pub fn invalid(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// Adds the next step.
    pub fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into().into());
        self
    }

    pub fn at(mut self, position: usize) -> Self {
        self.position = Some(position);
        self
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal.kind {
            RefusalKind::Invalid => StatusCode::BAD_REQUEST,
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::Conflict => StatusCode::CONFLICT,
            RefusalKind::Forbidden => StatusCode::FORBIDDEN,
            RefusalKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            RefusalKind::Exhausted => StatusCode::SERVICE_UNAVAILABLE,
            RefusalKind::NotImplemented => StatusCode::NOT_IMPLEMENTED,
        };
        let mut problem = Problem::new(status, refusal.what);
        problem.next = refusal.next.map(Into::into);
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_its_words_and_gets_its_status() {
        let refusal =
            Refusal::new(RefusalKind::Conflict, "queue a is exclusive to another connection").hint("close that connection");
        let problem = Problem::from(refusal);
        assert_eq!((problem.status, problem.kind), (409, "/problems/conflict"));
        assert_eq!(problem.next.as_deref(), Some("close that connection"));
        let json = serde_json::to_value(&problem).expect("plain data");
        assert_eq!(json["type"], "/problems/conflict");
        assert!(json.get("position").is_none());
    }
}
