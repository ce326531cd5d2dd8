//! Answers in the request's own encoding. OTLP asks for a `google.rpc.Status` as the body of every error.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use prost::Message;
use serde::Serialize;

pub(super) const PROTOBUF: &str = "application/x-protobuf";
pub(super) const JSON: &str = "application/json";

/// Seconds after which a refused sender may try again.
pub(super) const RETRY_SECONDS: i64 = 1;

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
    #[serde(skip)]
    pub details: Vec<Any>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Any {
    #[prost(string, tag = "1")]
    pub type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
}

/// `google.rpc.RetryInfo`, with its `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    pub retry_delay: Option<Delay>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Delay {
    #[prost(int64, tag = "1")]
    pub seconds: i64,
    #[prost(int32, tag = "2")]
    pub nanos: i32,
}

impl RpcStatus {
    pub(super) fn new(code: tonic::Code, message: impl Into<String>) -> Self {
        RpcStatus { code: code as i32, message: message.into(), details: Vec::new() }
    }

    /// Says that the same request may succeed in a second; without this an SDK drops it.
    pub(super) fn retry_soon(mut self) -> Self {
        let info = RetryInfo { retry_delay: Some(Delay { seconds: RETRY_SECONDS, nanos: 0 }) };
        let type_url = "type.googleapis.com/google.rpc.RetryInfo".to_owned();
        self.details.push(Any { type_url, value: info.encode_to_vec() });
        self
    }
}

/// The body in `encoding`: JSON for everything that is not protobuf, since a person may be reading.
pub(super) fn body<T: Message + Serialize>(status: StatusCode, content: &T, is_protobuf: bool) -> Response<Body> {
    let (kind, bytes) = if is_protobuf {
        (PROTOBUF, content.encode_to_vec())
    } else {
        (JSON, serde_json::to_vec(content).expect("messages are plain data with text keys"))
    };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
