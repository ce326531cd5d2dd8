//! What the gateway answers when it cannot pass on a service's answer: RFC 9457 bodies that name the thing, say what is wrong and
//! what to do next (service contract §5).

use super::body::{self, GatewayBody};
use crate::model::signal::TraceId;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

/// One problem, before it is written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    /// Stable identifier of the kind, last word of the `type` URI.
    kind: &'static str,
    pub(super) title: &'static str,
    /// Boxed, because problems travel in results whose good side is what happens.
    more: Box<More>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct More {
    detail: String,
    next: String,
    retry_after_seconds: Option<u32>,
    attached: Option<Vec<String>>,
    /// A field this kind of answer must carry (`Allow`).
    field: Option<(HeaderName, &'static str)>,
    closes: bool,
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(rename = "type")]
    kind: String,
    title: &'a str,
    status: u16,
    detail: &'a str,
    next: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    attached: Option<&'a [String]>,
    trace_id: TraceId,
}

impl Problem {
    pub(super) fn new(status: StatusCode, kind: &'static str, title: &'static str) -> Self {
        Problem { status, kind, title, more: Box::default() }
    }

    /// The client's request itself is wrong.
    pub(super) fn bad_request(detail: impl Into<String>) -> Self {
        Problem::new(StatusCode::BAD_REQUEST, "bad-request", "The request is malformed")
            .detail(detail)
            .next("Send a request that HTTP (RFC 9110, RFC 9112) allows.")
    }

    pub(super) fn detail(mut self, detail: impl Into<String>) -> Self {
        self.more.detail = detail.into();
        self
    }

    /// What was asked and what is wrong, for the log and the span.
    pub(super) fn said(&self) -> &str {
        &self.more.detail
    }

    /// The next step.
    pub(super) fn next(mut self, next: impl Into<String>) -> Self {
        self.more.next = next.into();
        self
    }

    pub(super) fn retry_after(mut self, seconds: u32) -> Self {
        self.more.retry_after_seconds = Some(seconds);
        self
    }

    pub(super) fn attached(mut self, attached: Vec<String>) -> Self {
        self.more.attached = Some(attached);
        self
    }

    pub(super) fn field(mut self, name: HeaderName, value: &'static str) -> Self {
        self.more.field = Some((name, value));
        self
    }

    /// The connection ends behind this answer.
    pub(super) fn closing(mut self) -> Self {
        self.more.closes = true;
        self
    }

    pub(super) fn into_response(self, trace_id: TraceId) -> Response<GatewayBody> {
        let written = Written {
            kind: format!("/problems/{}", self.kind),
            title: self.title,
            status: self.status.as_u16(),
            detail: &self.more.detail,
            next: &self.more.next,
            attached: self.more.attached.as_deref(),
            trace_id,
        };
        let json = serde_json::to_vec(&written).expect("strings and numbers are always JSON");
        let mut response = Response::new(body::full(json.into()));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = self.more.retry_after_seconds {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some((name, value)) = self.more.field {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if self.more.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
