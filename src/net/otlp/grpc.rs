//! OTLP over gRPC: three services with one method each.

use super::answer::RpcStatus;
use super::http::{logs_answer, metrics_answer, traces_answer};
use super::{BODY_BYTES_MAX, Door};
use crate::model::refusal::Refusal;
use crate::telemetry::Signal;
use crate::wire::otlp::logs_v1::logs_service_server::{LogsService, LogsServiceServer};
use crate::wire::otlp::logs_v1::{ExportLogsServiceRequest, ExportLogsServiceResponse};
use crate::wire::otlp::metrics_v1::metrics_service_server::{MetricsService, MetricsServiceServer};
use crate::wire::otlp::metrics_v1::{ExportMetricsServiceRequest, ExportMetricsServiceResponse};
use crate::wire::otlp::traces_v1::trace_service_server::{TraceService, TraceServiceServer};
use crate::wire::otlp::traces_v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use crate::wire::otlp::{log_records, metrics, spans};
use axum::Router;
use prost::Message;
use tonic::codec::CompressionEncoding::Gzip;
use tonic::{Code, Request, Response, Status, async_trait};

pub(super) fn routes(door: &Door) -> Router {
    let traces = TraceServiceServer::new(door.clone());
    let logs = LogsServiceServer::new(door.clone());
    let metrics = MetricsServiceServer::new(door.clone());
    Router::new()
        .route_service(
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            traces.accept_compressed(Gzip).max_decoding_message_size(BODY_BYTES_MAX),
        )
        .route_service(
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            logs.accept_compressed(Gzip).max_decoding_message_size(BODY_BYTES_MAX),
        )
        .route_service(
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            metrics.accept_compressed(Gzip).max_decoding_message_size(BODY_BYTES_MAX),
        )
}

#[async_trait]
impl TraceService for Door {
    async fn export(&self, request: Request<ExportTraceServiceRequest>) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let decoded = spans(request.into_inner());
        self.telemetry.ingest_spans(decoded.items).map_err(full)?;
        self.telemetry.reject(Signal::Spans, decoded.rejected);
        Ok(Response::new(traces_answer(decoded.rejected, decoded.why)))
    }
}

#[async_trait]
impl LogsService for Door {
    async fn export(&self, request: Request<ExportLogsServiceRequest>) -> Result<Response<ExportLogsServiceResponse>, Status> {
        let decoded = log_records(request.into_inner(), self.telemetry.now_ns());
        self.telemetry.ingest_logs(decoded.items).map_err(full)?;
        self.telemetry.reject(Signal::Logs, decoded.rejected);
        Ok(Response::new(logs_answer(decoded.rejected, decoded.why)))
    }
}

#[async_trait]
impl MetricsService for Door {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let decoded = metrics(request.into_inner());
        self.telemetry.ingest_metrics(decoded.items).map_err(full)?;
        self.telemetry.reject(Signal::Points, decoded.rejected);
        Ok(Response::new(metrics_answer(decoded.rejected, decoded.why)))
    }
}

/// RESOURCE_EXHAUSTED is only tried again if it says when.
fn full(refusal: Refusal) -> Status {
    let details = RpcStatus::new(Code::ResourceExhausted, refusal.to_string()).retry_soon();
    Status::with_details(Code::ResourceExhausted, refusal.to_string(), details.encode_to_vec().into())
}
