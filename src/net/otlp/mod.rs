//! Door: OpenTelemetry in, over HTTP (protobuf and JSON) and gRPC, as one service.
//!
//! ```text
//!   POST /v1/traces │ /v1/logs │ /v1/metrics            protobuf or JSON, plain or gzip        http
//!   …TraceService │ LogsService │ MetricsService/Export  gRPC (h2)                              grpc
//!   anything else                                       what to do instead, in the caller's protocol
//! ```
//!
//! One [`router`] answers all of it, so the ports `otlp_http`, `otlp_grpc` and `bus` may be given the same one: a client that took
//! the wrong port of the three is served all the same. Its log events stay out of the telemetry store (`telemetry::own_logs`).

mod advice;
mod answer;
mod grpc;
mod http;

use crate::telemetry::{Signal, Telemetry};
use advice::Advisor;
use axum::Router;
use std::sync::Arc;

/// Largest request, in bytes, as it came and as it is after decompression; 413 or OUT_OF_RANGE beyond. SDKs send batches of a few
/// hundred kilobytes, collectors of a few megabytes.
pub const BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What every handler needs.
#[derive(Clone)]
struct Door {
    telemetry: Arc<Telemetry>,
    advisor: Arc<Advisor>,
}

/// Everything the door answers. Serve it with HTTP/1.1 and h2c (`hyper_util::server::conn::auto`).
pub fn router(telemetry: Arc<Telemetry>) -> Router {
    let door = Door { advisor: Arc::new(Advisor::new(telemetry.clone())), telemetry };
    grpc::routes(&door).merge(http::routes(door))
}

/// Wire names of a signal: its path segment and what its items are called in `partial_success`.
fn name_of(signal: Signal) -> &'static str {
    match signal {
        Signal::Spans => "traces",
        Signal::Logs => "logs",
        Signal::Points => "metrics",
    }
}
