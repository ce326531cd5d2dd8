//! OpenTelemetry in: every encoding on every port that takes it, what is refused and how, and real SDKs.

use crate::support::{DEADLINE, Reactor, http, node_client, python_client, wait_until};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::logs::v1::logs_service_client::LogsServiceClient;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use prost::Message;
use serde_json::{Value, json};
use std::process::Command;
use tonic::codec::CompressionEncoding;

const PROTOBUF: &str = "application/x-protobuf";
/// The ports that take OTLP over HTTP and gRPC alike.
const DOORS: [&str; 3] = ["otlp_http", "otlp_grpc", "bus"];

fn request(trace: u8, spans: Vec<Span>) -> ExportTraceServiceRequest {
    let spans = spans.into_iter().map(|span| Span { trace_id: vec![trace; 16], ..span }).collect();
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            scope_spans: vec![ScopeSpans { spans, ..Default::default() }],
            ..Default::default()
        }],
    }
}

fn span(id: u8) -> Span {
    Span {
        span_id: vec![id; 8],
        name: format!("step {id}"),
        start_time_unix_nano: 1_000,
        end_time_unix_nano: 5_000,
        ..Default::default()
    }
}

fn hex(byte: u8, count: usize) -> String {
    format!("{byte:02x}").repeat(count)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("to memory");
    encoder.finish().expect("to memory")
}

async fn post(reactor: &Reactor, door: &str, path: &str, kind: &str, body: Vec<u8>) -> reqwest::Response {
    let url = format!("http://127.0.0.1:{}{path}", reactor.port(door));
    http().post(url).header("content-type", kind).body(body).send().await.expect("an answer")
}

async fn ask(reactor: &Reactor, path: &str) -> Value {
    let response = http().get(format!("{}/api/v1/{path}", reactor.api())).send().await.expect("an answer");
    let status = response.status();
    let text = response.text().await.expect("a body");
    assert!(status.is_success(), "{path}: {status} {text}");
    serde_json::from_str(&text).expect("JSON")
}

async fn names_of(reactor: &Reactor, trace: u8) -> Vec<String> {
    let trace = ask(reactor, &format!("traces/{}", hex(trace, 16))).await;
    let spans = trace["spans"].as_array().expect("spans");
    spans.iter().map(|span| span["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn protobuf_json_and_gzip_are_taken_over_http_on_every_door() {
    let reactor = Reactor::start("");
    for (at, door) in DOORS.iter().enumerate() {
        let trace = 10 * (at as u8 + 1);
        let body = request(trace, vec![span(1)]).encode_to_vec();
        let response = post(&reactor, door, "/v1/traces", PROTOBUF, body).await;
        assert_eq!(
            (response.status().as_u16(), response.headers()["content-type"].to_str().expect("text")),
            (200, PROTOBUF),
            "{door}"
        );
        let answer = ExportTraceServiceResponse::decode(response.bytes().await.expect("a body")).expect("protobuf");
        assert_eq!(answer.partial_success, None);

        let as_json = serde_json::to_vec(&request(trace + 1, vec![span(1), span(2)])).expect("JSON");
        let response = post(&reactor, door, "/v1/traces", "application/json; charset=utf-8", as_json).await;
        assert_eq!(
            (response.status().as_u16(), response.headers()["content-type"].to_str().expect("text")),
            (200, "application/json")
        );

        let url = format!("http://127.0.0.1:{}/v1/traces", reactor.port(door));
        let zipped = gzip(&request(trace + 2, vec![span(3)]).encode_to_vec());
        let request = http().post(url).header("content-type", PROTOBUF).header("content-encoding", "gzip").body(zipped);
        assert_eq!(request.send().await.expect("an answer").status(), 200);

        assert_eq!(names_of(&reactor, trace).await, ["step 1"], "{door}");
        assert_eq!(names_of(&reactor, trace + 1).await, ["step 1", "step 2"], "{door}");
        assert_eq!(names_of(&reactor, trace + 2).await, ["step 3"], "{door}");
    }
    let ledger = ask(&reactor, "overview").await["telemetry"]["spans"].clone();
    assert_eq!((ledger["received"].as_u64(), ledger["dropped"].as_u64()), (Some(12), Some(0)));
}

#[tokio::test]
async fn the_three_signals_are_taken_over_grpc_on_every_door() {
    let reactor = Reactor::start("");
    for (at, door) in DOORS.iter().enumerate() {
        let trace = at as u8 + 1;
        let channel = tonic::transport::Endpoint::new(format!("http://127.0.0.1:{}", reactor.port(door))).expect("a URL");
        let channel = channel.connect().await.expect("connects");
        let mut traces = TraceServiceClient::new(channel.clone()).send_compressed(CompressionEncoding::Gzip);
        let answer = traces.export(request(trace, vec![span(1)])).await.expect("taken").into_inner();
        assert_eq!(answer.partial_success, None);
        assert_eq!(names_of(&reactor, trace).await, ["step 1"], "{door}");

        let logs: ExportLogsServiceRequest = serde_json::from_value(json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"timeUnixNano": "7000", "severityNumber": 9, "severityText": "INFO", "body": {"stringValue": format!("by {door}")},
             "attributes": [], "traceId": "", "spanId": ""}]}]}]}))
        .expect("a request");
        LogsServiceClient::new(channel.clone()).export(logs).await.expect("taken");
        let page = ask(&reactor, &format!("logs?query=%22by {door}%22")).await;
        assert_eq!(page["matched"], 1, "{door}");

        let metrics: ExportMetricsServiceRequest = serde_json::from_value(json!({"resourceMetrics": [{"scopeMetrics": [{"metrics": [
            {"name": format!("by.{door}"), "description": "", "unit": "1", "metadata": [], "gauge": {"dataPoints": [
                {"timeUnixNano": "7000", "startTimeUnixNano": "0", "attributes": [], "exemplars": [], "flags": 0, "asDouble": 1.5}]}}]}]}]}))
        .expect("a request");
        MetricsServiceClient::new(channel).export(metrics).await.expect("taken");
        let instruments = ask(&reactor, "metrics").await;
        let found = instruments.as_array().expect("a list").iter().any(|instrument| instrument["name"] == format!("by.{door}"));
        assert!(found, "{door}: {instruments}");
    }
}

#[tokio::test]
async fn a_span_with_a_bad_id_is_rejected_alone_and_counted() {
    let reactor = Reactor::start("");
    let mut mixed = request(1, vec![span(1), span(2)]);
    mixed.resource_spans[0].scope_spans[0].spans[0].trace_id = vec![1; 3];
    let body = serde_json::to_vec(&mixed).expect("JSON");
    let answer: Value = post(&reactor, "otlp_http", "/v1/traces", "application/json", body).await.json().await.expect("JSON");
    assert_eq!(answer["partialSuccess"]["rejectedSpans"], json!("1"));
    assert!(answer["partialSuccess"]["errorMessage"].as_str().expect("why").contains("trace_id"));
    assert_eq!(names_of(&reactor, 1).await, ["step 2"]);
    let ledger = ask(&reactor, "overview").await["telemetry"]["spans"].clone();
    assert_eq!((ledger["received"].as_u64(), ledger["kept"].as_u64(), ledger["dropped"].as_u64()), (Some(2), Some(1), Some(1)));
}

/// `google.rpc.Status`, which OTLP wants as the body of an error.
#[derive(Clone, PartialEq, Message)]
struct RpcStatus {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

#[tokio::test]
async fn what_is_no_otlp_is_refused_in_words_and_does_no_harm() {
    let mut reactor = Reactor::start("");
    for door in DOORS {
        let response = post(&reactor, door, "/v1/traces", "text/plain", b"hello".to_vec()).await;
        assert_eq!(response.status(), 415, "{door}");
        let answer: Value = response.json().await.expect("JSON");
        assert!(answer["message"].as_str().expect("words").contains("application/x-protobuf"), "{answer}");

        let response = post(&reactor, door, "/v1/logs", PROTOBUF, b"\x0a\xff\xff\xff\xff\x0fgarbage".to_vec()).await;
        assert_eq!(response.status(), 400);
        let status = RpcStatus::decode(response.bytes().await.expect("a body")).expect("a protobuf status");
        assert!(status.message.contains("not an OTLP protobuf message"), "{status:?}");

        let response = post(&reactor, door, "/v1/metrics", "application/json", b"{\"resourceMetrics\": 7}".to_vec()).await;
        assert_eq!(response.status(), 400);

        let large = vec![b' '; 33 * 1024 * 1024];
        assert_eq!(post(&reactor, door, "/v1/traces", "application/json", large).await.status(), 413);

        let url = format!("http://127.0.0.1:{}/v1/traces", reactor.port(door));
        let bomb = gzip(&vec![b' '; 40 * 1024 * 1024]);
        let zipped = http().post(&url).header("content-type", "application/json").header("content-encoding", "gzip").body(bomb);
        assert_eq!(zipped.send().await.expect("an answer").status(), 413);
        let zipped = http().post(&url).header("content-type", "application/json").header("content-encoding", "zstd").body("{}");
        assert_eq!(zipped.send().await.expect("an answer").status(), 415);

        let response = http().get(&url).send().await.expect("an answer");
        assert_eq!((response.status().as_u16(), response.headers()["allow"].to_str().expect("text")), (405, "POST"));
        let response = post(&reactor, door, "/v1/trace", PROTOBUF, Vec::new()).await;
        assert_eq!(response.status(), 404);
        assert!(response.text().await.expect("a body").contains("/v1/traces"));
    }
    wait_until("the mistake is told to the developer", DEADLINE, || async {
        let page = ask(&reactor, "happenings").await;
        let rows = page["rows"].as_array().expect("rows");
        rows.iter().any(|row| row["name"] == "advice" && row["line"].as_str().is_some_and(|line| line.contains("text/plain")))
    })
    .await;
    assert!(reactor.is_running());
    let ledger = ask(&reactor, "overview").await["telemetry"].clone();
    assert_eq!((ledger["spans"]["received"].as_u64(), ledger["spans"]["dropped"].as_u64()), (Some(0), Some(0)));
}

#[tokio::test]
async fn garbage_over_grpc_ends_the_call_and_not_the_connection() {
    let reactor = Reactor::start("");
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let base = format!("http://127.0.0.1:{}", reactor.port("otlp_grpc"));
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let call =
        |path: &str, body: Vec<u8>| client.post(format!("{base}{path}")).header("content-type", "application/grpc").body(body);
    let framed = |length: u32, body: &[u8]| [&[0][..], &length.to_be_bytes(), body].concat();

    let response = call(path, framed(3, b"\xff\xff\xff")).send().await.expect("an answer");
    assert_eq!(response.headers().get("grpc-status").map(|code| code.as_bytes()), Some(&b"13"[..]), "not protobuf");
    let response = call(path, framed(u32::MAX, b"x")).send().await.expect("an answer");
    assert_eq!(response.headers().get("grpc-status").map(|code| code.as_bytes()), Some(&b"11"[..]), "a lying length");
    let response = call("/some.Service/Method", framed(0, b"")).send().await.expect("an answer");
    assert_eq!(response.headers().get("grpc-status").map(|code| code.as_bytes()), Some(&b"12"[..]), "unknown method");
    let good = request(5, vec![span(1)]).encode_to_vec();
    let response = call(path, framed(good.len() as u32, &good)).send().await.expect("an answer");
    assert_eq!(response.status(), 200);
    assert_eq!(names_of(&reactor, 5).await, ["step 1"]);
}

#[tokio::test]
async fn a_page_of_this_machine_may_send_and_a_foreign_one_may_not_read_the_answer() {
    let reactor = Reactor::start("");
    let url = format!("{}/v1/traces", reactor.otlp_url());
    let preflight = |origin: &'static str| {
        let request = http().request(reqwest::Method::OPTIONS, &url).header("origin", origin);
        request
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type,traceparent")
            .send()
    };
    let allowed = preflight("http://localhost:5173").await.expect("an answer");
    assert_eq!(allowed.status(), 204);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "http://localhost:5173");
    assert!(allowed.headers()["access-control-allow-headers"].to_str().expect("text").contains("traceparent"));
    let foreign = preflight("http://evil.example").await.expect("an answer");
    assert!(foreign.headers().get("access-control-allow-origin").is_none());
}

/// Runs a client program to its end and returns the trace id it printed.
fn send(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    assert!(!text(&output.stderr).contains("Failed to export"), "{}", text(&output.stderr));
    text(&output.stdout).lines().last().expect("a trace id").to_owned()
}

fn python(protocol: &str, endpoint: &str) -> Command {
    let mut command = python_client("otlp_send.py");
    command.args([protocol, endpoint]);
    command
}

fn node(protocol: &str, endpoint: &str) -> Command {
    let mut command = node_client("otlp_send.js");
    command.args([protocol, endpoint]);
    command
}

/// What the two programs have in common: an order that ends well around a charge that fails.
async fn holds_the_order(reactor: &Reactor, trace_id: &str, service: &str) -> Value {
    let trace = ask(reactor, &format!("traces/{trace_id}")).await;
    let spans = trace["spans"].as_array().expect("spans");
    let named = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("{name} in {trace}"));
    let (order, charge) = (named("place order"), named("charge card"));
    assert_eq!((&order["kind"], &order["service"], &order["parent"]), (&json!("server"), &json!(service), &Value::Null));
    assert_eq!(
        (&charge["kind"], &charge["status"], &charge["status_text"]),
        (&json!("client"), &json!("error"), &json!("card declined"))
    );
    assert_eq!(charge["parent"], order["span_id"]);
    let events = charge["events"].as_array().expect("events");
    assert!(
        events.iter().any(|event| event["name"] == "exception" && event["attributes"]["exception.message"] == "card declined")
    );
    assert_eq!(trace["logs"].as_array().expect("logs").len(), 1, "{trace}");
    let row = ask(reactor, &format!("traces?query=trace:{trace_id}")).await["rows"][0].clone();
    assert_eq!((&row["root"], &row["errors"], &row["open"]), (&json!("place order"), &json!(1), &json!(false)));
    trace
}

#[tokio::test]
async fn the_python_sdk_sends_everything_over_http_and_grpc() {
    let reactor = Reactor::start("");
    let own = |name: &str| format!("http://127.0.0.1:{}", reactor.port(name));
    for (protocol, endpoint) in
        [("http", own("otlp_http")), ("grpc", own("otlp_grpc")), ("http", own("bus")), ("grpc", own("bus"))]
    {
        let service = format!("py-{protocol}");
        let trace_id = send(python(protocol, &endpoint));
        let trace = holds_the_order(&reactor, &trace_id, &service).await;
        let order =
            trace["spans"].as_array().expect("spans").iter().find(|span| span["name"] == "place order").expect("the order");
        assert_eq!(order["attributes"]["order.big"].as_i64(), Some(9_007_199_254_740_993));
        assert_eq!(order["attributes"]["order.skus"], json!(["a", "b"]));
        let log = &trace["logs"][0];
        assert_eq!(
            (&log["body"], &log["level"], &log["attributes"]["order.id"]),
            (&json!("slow card"), &json!("warn"), &json!(77121))
        );
        assert_eq!((&log["service"], &log["instance"]), (&json!(service), &json!("py-1")));
    }
    let instruments = ask(&reactor, "metrics").await;
    let kind = |name: &str| {
        let found = instruments.as_array().expect("a list").iter().find(|instrument| instrument["name"] == name);
        found.unwrap_or_else(|| panic!("{name} in {instruments}"))["kind"].clone()
    };
    assert_eq!((kind("orders.placed"), kind("orders.open")), (json!("counter"), json!("up_down_counter")));
    assert_eq!((kind("work.explicit"), kind("work.exponential")), (json!("histogram"), json!("histogram")));
    let open = ask(&reactor, "metrics/query?name=orders.open&service=py-http").await;
    assert!(open["series"][0]["values"].as_array().expect("values").contains(&json!(-2.0)), "{open}");
    let services = ask(&reactor, "services").await;
    let known =
        services.as_array().expect("a list").iter().find(|service| service["name"] == "py-grpc").expect("seen by its telemetry");
    assert_eq!((&known["language"], &known["sources"]), (&json!("python"), &json!(["telemetry"])));
}

#[tokio::test]
async fn the_node_sdk_sends_json_and_protobuf() {
    let reactor = Reactor::start("");
    for (protocol, door) in [("json", "otlp_http"), ("proto", "otlp_http"), ("json", "bus")] {
        let endpoint = format!("http://127.0.0.1:{}", reactor.port(door));
        let trace_id = send(node(protocol, &endpoint));
        let trace = holds_the_order(&reactor, &trace_id, &format!("node-{protocol}")).await;
        let log = &trace["logs"][0];
        assert_eq!(log["level"], "error");
        assert_eq!(serde_json::from_str::<Value>(log["body"].as_str().expect("text")).expect("JSON")["reason"], "card declined");
        let found = ask(&reactor, "logs?query=attempt:2%20reason:card*").await;
        assert!(found["matched"].as_u64().expect("a count") >= 1, "a structured body is searched by its fields");
    }
    let answer = ask(&reactor, "metrics/query?name=orders.placed").await;
    assert_eq!(answer["shows"], "rate");
}
