//! OTLP over HTTP.

use super::answer::{self, JSON, PROTOBUF, RETRY_SECONDS, RpcStatus};
use super::{BODY_BYTES_MAX, Door, name_of};
use crate::model::refusal::Refusal;
use crate::telemetry::Signal;
use crate::wire::otlp::{DecodeError, Decoded, Encoding, decode_logs, decode_metrics, decode_spans};
use crate::wire::otlp::{logs_v1, metrics_v1, traces_v1};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::post;
use flate2::read::MultiGzDecoder;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::io::Read;
use tonic::Code;

pub(super) fn routes(door: Door) -> Router {
    Router::new()
        .route("/v1/traces", post(traces).fallback(other_method))
        .route("/v1/logs", post(logs).fallback(other_method))
        .route("/v1/metrics", post(metrics).fallback(other_method))
        .fallback(elsewhere)
        .with_state(door)
}

async fn traces(State(door): State<Door>, request: Request) -> Response<Body> {
    receive(door, Signal::Spans, request).await
}

async fn logs(State(door): State<Door>, request: Request) -> Response<Body> {
    receive(door, Signal::Logs, request).await
}

async fn metrics(State(door): State<Door>, request: Request) -> Response<Body> {
    receive(door, Signal::Points, request).await
}

/// Why a request was not taken.
enum Wrong {
    ContentType(String),
    ContentEncoding(String),
    TooLarge,
    Body(DecodeError),
    Gzip(std::io::Error),
    /// The peer went away, or its transfer was malformed.
    Transfer(String),
    Full(Refusal),
}

async fn receive(door: Door, signal: Signal, request: Request) -> Response<Body> {
    let origin = request.headers().get(header::ORIGIN).cloned();
    let encoding = encoding_of(request.headers());
    let answered = match encoding {
        Ok(encoding) => take(&door, signal, encoding, request).await,
        Err(ref content_type) => Err(Wrong::ContentType(content_type.clone())),
    };
    let is_protobuf = encoding == Ok(Encoding::Protobuf);
    let response = answered.unwrap_or_else(|wrong| refused(&door, signal, wrong, is_protobuf));
    with_cors(response, origin)
}

async fn take(door: &Door, signal: Signal, encoding: Encoding, request: Request) -> Result<Response<Body>, Wrong> {
    let gzip = is_gzip(request.headers())?;
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect().await.map_err(|error| {
        if error.downcast_ref::<LengthLimitError>().is_some() { Wrong::TooLarge } else { Wrong::Transfer(error.to_string()) }
    })?;
    let body = if gzip { unzip(&body.to_bytes())? } else { body.to_bytes() };
    let is_protobuf = encoding == Encoding::Protobuf;
    let telemetry = &door.telemetry;
    Ok(match signal {
        Signal::Spans => {
            let Decoded { items, rejected, why } = decode_spans(&body, encoding).map_err(Wrong::Body)?;
            telemetry.ingest_spans(items).map_err(Wrong::Full)?;
            telemetry.reject(signal, rejected);
            answer::body(StatusCode::OK, &traces_answer(rejected, why), is_protobuf)
        }
        Signal::Logs => {
            let Decoded { items, rejected, why } = decode_logs(&body, encoding, telemetry.now_ns()).map_err(Wrong::Body)?;
            telemetry.ingest_logs(items).map_err(Wrong::Full)?;
            telemetry.reject(signal, rejected);
            answer::body(StatusCode::OK, &logs_answer(rejected, why), is_protobuf)
        }
        Signal::Points => {
            let Decoded { items, rejected, why } = decode_metrics(&body, encoding).map_err(Wrong::Body)?;
            telemetry.ingest_metrics(items).map_err(Wrong::Full)?;
            telemetry.reject(signal, rejected);
            answer::body(StatusCode::OK, &metrics_answer(rejected, why), is_protobuf)
        }
    })
}

pub(super) fn traces_answer(rejected: u64, why: Option<&str>) -> traces_v1::ExportTraceServiceResponse {
    traces_v1::ExportTraceServiceResponse {
        partial_success: why
            .map(|why| traces_v1::ExportTracePartialSuccess { rejected_spans: rejected as i64, error_message: why.to_owned() }),
    }
}

pub(super) fn logs_answer(rejected: u64, why: Option<&str>) -> logs_v1::ExportLogsServiceResponse {
    logs_v1::ExportLogsServiceResponse {
        partial_success: why.map(|why| logs_v1::ExportLogsPartialSuccess {
            rejected_log_records: rejected as i64,
            error_message: why.to_owned(),
        }),
    }
}

pub(super) fn metrics_answer(rejected: u64, why: Option<&str>) -> metrics_v1::ExportMetricsServiceResponse {
    metrics_v1::ExportMetricsServiceResponse {
        partial_success: why.map(|why| metrics_v1::ExportMetricsPartialSuccess {
            rejected_data_points: rejected as i64,
            error_message: why.to_owned(),
        }),
    }
}

fn encoding_of(headers: &HeaderMap) -> Result<Encoding, String> {
    let given = headers.get(header::CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let given = given.unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        PROTOBUF | "application/protobuf" => Ok(Encoding::Protobuf),
        JSON => Ok(Encoding::Json),
        _ => Err(given.into_owned()),
    }
}

fn is_gzip(headers: &HeaderMap) -> Result<bool, Wrong> {
    let Some(given) = headers.get(header::CONTENT_ENCODING) else { return Ok(false) };
    match given.to_str().unwrap_or("?").trim().to_ascii_lowercase().as_str() {
        "" | "identity" => Ok(false),
        "gzip" => Ok(true),
        other => Err(Wrong::ContentEncoding(other.to_owned())),
    }
}

/// Stops at the limit, so that a small body cannot become a large one.
fn unzip(body: &[u8]) -> Result<Bytes, Wrong> {
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(body).take(BODY_BYTES_MAX as u64 + 1).read_to_end(&mut plain).map_err(Wrong::Gzip)?;
    if read > BODY_BYTES_MAX { Err(Wrong::TooLarge) } else { Ok(plain.into()) }
}

fn refused(door: &Door, signal: Signal, wrong: Wrong, is_protobuf: bool) -> Response<Body> {
    let path = format!("/v1/{}", name_of(signal));
    let (status, code, message, next) = match &wrong {
        Wrong::ContentType(given) => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::InvalidArgument,
            format!("{path} does not read content type \"{given}\""),
            "Send application/x-protobuf or application/json",
        ),
        Wrong::ContentEncoding(given) => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Code::InvalidArgument,
            format!("{path} does not read content encoding \"{given}\""),
            "Send gzip or no encoding",
        ),
        Wrong::TooLarge => (
            StatusCode::PAYLOAD_TOO_LARGE,
            Code::InvalidArgument,
            format!("the request is larger than {} MiB", BODY_BYTES_MAX / 1024 / 1024),
            "Send smaller batches",
        ),
        Wrong::Body(error) => {
            (StatusCode::BAD_REQUEST, Code::InvalidArgument, error.to_string(), "Check the exporter's protocol setting")
        }
        Wrong::Gzip(error) => (
            StatusCode::BAD_REQUEST,
            Code::InvalidArgument,
            format!("the body is not gzip: {error}"),
            "Check the exporter's compression",
        ),
        Wrong::Transfer(error) => {
            (StatusCode::BAD_REQUEST, Code::InvalidArgument, format!("the body did not arrive whole: {error}"), "Send it again")
        }
        Wrong::Full(refusal) => {
            (StatusCode::TOO_MANY_REQUESTS, Code::ResourceExhausted, refusal.what.clone(), "Send it again in a second")
        }
    };
    if let Wrong::ContentType(_) | Wrong::ContentEncoding(_) | Wrong::Body(_) = wrong {
        door.advisor.say(&message, next);
    }
    let mut body = RpcStatus::new(code, format!("{message}. {next}"));
    if let Wrong::Full(_) = wrong {
        body = body.retry_soon();
    }
    let mut response = answer::body(status, &body, is_protobuf);
    if let Wrong::Full(_) = wrong {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(RETRY_SECONDS));
    }
    response
}

/// A preflight of a browser, or a mistake.
async fn other_method(request: Request) -> Response<Body> {
    let origin = request.headers().get(header::ORIGIN).cloned();
    if request.method() == Method::OPTIONS && origin.is_some() {
        let mut response = StatusCode::NO_CONTENT.into_response();
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
        let allowed = "content-type, content-encoding, traceparent, tracestate, baggage";
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
        headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        return with_cors(response, origin);
    }
    let body = RpcStatus::new(Code::Unimplemented, format!("{} takes POST. An OpenTelemetry SDK sends it", request.uri().path()));
    let mut response = answer::body(StatusCode::METHOD_NOT_ALLOWED, &body, false);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    response
}

async fn elsewhere(State(door): State<Door>, request: Request) -> Response<Body> {
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let path = request.uri().path();
    if kind.starts_with("application/grpc") {
        let status =
            tonic::Status::unimplemented(format!("{path} is not served here. OTLP's Export of traces, logs and metrics is"));
        return status.into_http();
    }
    let seen = format!("{} {path} is no OTLP path", request.method());
    let fix = "Send POST /v1/traces, /v1/logs or /v1/metrics; with OTEL_EXPORTER_OTLP_ENDPOINT an SDK adds the path itself";
    if request.method() == Method::POST {
        door.advisor.say(&seen, fix);
    }
    answer::body(StatusCode::NOT_FOUND, &RpcStatus::new(Code::Unimplemented, format!("{seen}. {fix}")), false)
}

/// Pages served from this machine may send telemetry; others' may not read that they did.
fn with_cors(mut response: Response<Body>, origin: Option<HeaderValue>) -> Response<Body> {
    if let Some(origin) = origin.filter(|origin| origin.to_str().is_ok_and(is_local)) {
        response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("origin"));
    }
    response
}

fn is_local(origin: &str) -> bool {
    let Some((_, host)) = origin.split_once("://") else { return false };
    let host = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_machine_are_local() {
        for (origin, expected) in [
            ("http://localhost:5173", true),
            ("https://127.0.0.1", true),
            ("http://[::1]:80", true),
            ("http://localhost.evil.example", false),
            ("http://evil.example:80", false),
            ("null", false),
        ] {
            assert_eq!(is_local(origin), expected, "{origin}");
        }
    }

    #[test]
    fn a_zip_bomb_stops_at_the_limit() {
        use flate2::{Compression, write::GzEncoder};
        use std::io::Write;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        let zeros = vec![0; 1024 * 1024];
        (0..40).for_each(|_| encoder.write_all(&zeros).expect("to memory"));
        let bomb = encoder.finish().expect("to memory");
        assert!(bomb.len() < 1024 * 1024);
        assert!(matches!(unzip(&bomb), Err(Wrong::TooLarge)));
        assert!(matches!(unzip(b"not gzip"), Err(Wrong::Gzip(_))));
    }

    #[test]
    fn content_types_may_carry_parameters() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
            encoding_of(&headers)
        };
        assert_eq!(of("application/json; charset=utf-8"), Ok(Encoding::Json));
        assert_eq!(of("Application/X-Protobuf"), Ok(Encoding::Protobuf));
        assert_eq!(of("text/plain"), Err("text/plain".to_owned()));
        assert_eq!(encoding_of(&HeaderMap::new()), Err(String::new()));
    }
}
