//! Answers in the request's own encoding. OTLP asks for a `google.rpc.Status` as the body of every error.

use crate::wire::otlp::logs_v1::ExportLogsServiceResponse;
use crate::wire::otlp::metrics_v1::ExportMetricsServiceResponse;
use crate::wire::otlp::traces_v1::ExportTraceServiceResponse;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use prost::Message;
use serde_json::{Value, json};

pub(super) const PROTOBUF: &str = "application/x-protobuf";
pub(super) const JSON: &str = "application/json";

/// Seconds after which a refused sender may try again.
pub(super) const RETRY_SECONDS: i64 = 1;

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RpcStatus {
    #[prost(int32, tag = "1")]
    pub code: i32,
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(message, repeated, tag = "3")]
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

/// A message as its JSON: protobuf's mapping writes 64-bit counts as strings, which the derived one does not.
pub(super) trait ToJson {
    fn to_json(&self) -> Value;
}

impl ToJson for RpcStatus {
    fn to_json(&self) -> Value {
        json!({"code": self.code, "message": self.message})
    }
}

impl ToJson for ExportTraceServiceResponse {
    fn to_json(&self) -> Value {
        partial(self.partial_success.as_ref().map(|partial| ("rejectedSpans", partial.rejected_spans, &partial.error_message)))
    }
}

impl ToJson for ExportLogsServiceResponse {
    fn to_json(&self) -> Value {
        partial(
            self.partial_success
                .as_ref()
                .map(|partial| ("rejectedLogRecords", partial.rejected_log_records, &partial.error_message)),
        )
    }
}

impl ToJson for ExportMetricsServiceResponse {
    fn to_json(&self) -> Value {
        partial(
            self.partial_success
                .as_ref()
                .map(|partial| ("rejectedDataPoints", partial.rejected_data_points, &partial.error_message)),
        )
    }
}

fn partial(rejected: Option<(&str, i64, &String)>) -> Value {
    match rejected {
        Some((name, count, why)) => json!({"partialSuccess": {name: count.to_string(), "errorMessage": why}}),
        None => json!({}),
    }
}

/// The body in the request's encoding: JSON for everything that is not protobuf, since a person may be reading.
pub(super) fn body<T: Message + ToJson>(status: StatusCode, content: &T, is_protobuf: bool) -> Response<Body> {
    let (kind, bytes) =
        if is_protobuf { (PROTOBUF, content.encode_to_vec()) } else { (JSON, content.to_json().to_string().into_bytes()) };
    let mut response = Response::new(Body::from(bytes));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
