//! §2 and §4: requests as calls, replies as responses.

use super::*;
use crate::gateway::testing::{Script, part, status};
use crate::model::call::{CallEvent, CallFailure, ReplyPart};
use crate::model::table::{Field, Table};
use std::sync::atomic::Ordering;

fn ok() -> Arc<FakeBus> {
    FakeBus::replying(Table::new(), "hello")
}

#[tokio::test]
async fn a_request_becomes_a_call_with_its_key_and_pseudo_fields() {
    let bus = ok();
    let answered = plain(&bus).send(get("/Greeter/Say/Hello?x=1"), "").await;
    assert_eq!((answered.status, answered.text()), (StatusCode::OK, "hello"));
    assert_eq!(answered.headers["content-type"], "text/plain; charset=utf-8");
    let call = bus.last_call();
    assert_eq!((call.key.as_str(), &*call.space), ("greeter.say.hello", "/"));
    let pseudo: Vec<_> =
        call.fields[..4].iter().map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(value))).collect();
    assert_eq!(pseudo, [":method=GET", ":path=/Greeter/Say/Hello?x=1", ":authority=localhost:16000", ":scheme=http"]);
    assert!(!call.fields.iter().any(|(name, _)| name == "host"));
}

#[tokio::test]
async fn properties_come_from_fields_and_the_deadline() {
    let bus = ok();
    let request = get("/greeter").method("POST").header("content-type", "application/json").header("content-encoding", "gzip");
    plain(&bus).send(request.header("x-request-id", "req-7"), "{}").await;
    let call = bus.last_call();
    assert_eq!(call.content_type.as_deref(), Some("application/json"));
    assert_eq!(call.content_encoding.as_deref(), Some("gzip"));
    assert_eq!(call.request_id, "req-7");
    assert_eq!(call.body, "{}");
    let left = call.deadline.as_secs_f64();
    assert!((29.0..=30.0).contains(&left), "{left}");
}

#[tokio::test]
async fn the_gateway_strips_what_the_runtime_reads_and_what_belongs_to_the_connection() {
    let bus = ok();
    let mut request = get("/greeter");
    for (name, value) in [
        ("x-reactor-subject", "root"),
        ("x-death", "1"),
        ("x-delay", "5"),
        ("x-stream-offset", "0"),
        ("connection", "x-secret, keep-alive"),
        ("x-secret", "1"),
        ("te", "trailers"),
        ("cc", "other"),
    ] {
        request = request.header(name, value);
    }
    plain(&bus).send(request, "").await;
    for name in ["x-reactor-subject", "x-death", "x-delay", "x-stream-offset", "connection", "x-secret", "te"] {
        assert_eq!(bus.field(name), None, "{name}");
    }
    assert_eq!(bus.field("cc").as_deref(), Some("other"), "lower case never routes");
}

#[tokio::test]
async fn the_client_is_named_by_the_gateway() {
    let bus = ok();
    plain(&bus).send(get("/greeter"), "").await;
    assert_eq!(bus.field("x-forwarded-for").as_deref(), Some("127.0.0.1"));
    assert_eq!(bus.field("x-forwarded-proto").as_deref(), Some("http"));
    assert_eq!(bus.field("x-forwarded-host").as_deref(), Some("localhost:16000"));
    assert_eq!(bus.field("x-forwarded-port").as_deref(), Some("16000"));
    assert_eq!(bus.field("via").as_deref(), Some("1.1 reactor"));
    assert_eq!(bus.field("x-request-id").expect("made").len(), 32);
}

#[tokio::test]
async fn traceparent_is_continued_or_created() {
    let bus = ok();
    let gateway = plain(&bus);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    gateway.send(get("/greeter").header("traceparent", parent).header("tracestate", "a=1"), "").await;
    let child = bus.field("traceparent").expect("continued");
    assert!(child.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-") && child != parent, "{child}");
    assert_eq!(bus.field("tracestate").as_deref(), Some("a=1"));
    gateway.send(get("/greeter").header("traceparent", "broken").header("tracestate", "a=1"), "").await;
    let fresh = bus.field("traceparent").expect("created");
    assert!(!fresh.contains("4bf92f3577b34da6a3ce929d0e0e4736"), "{fresh}");
    assert_eq!(bus.field("tracestate"), None);
}

#[tokio::test]
async fn more_than_32_kib_of_fields_is_431() {
    let answered = plain(&ok()).send(get("/greeter").header("x", "a".repeat(33_000)), "").await;
    assert_eq!(answered.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
    assert!(answered.json()["detail"].as_str().expect("text").contains("32768"));
}

#[tokio::test]
async fn bodies_are_limited_each_and_together() {
    let bus = ok();
    let gateway = gateway(bus, |config| {
        config.call_body_bytes_max = 4;
        config.call_bodies_bytes_max = 3;
    });
    assert_eq!(gateway.send(get("/greeter").method("POST"), "12345").await.status, StatusCode::PAYLOAD_TOO_LARGE);
    let exhausted = gateway.send(get("/greeter").method("POST").header("content-length", "4"), "1234").await;
    assert_eq!(exhausted.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(exhausted.headers["retry-after"], "1");
    assert_eq!(gateway.send(get("/greeter").method("POST"), "123").await.status, StatusCode::OK);
    assert_eq!(gateway.gateway.stats().call_body_bytes, 0);
}

#[tokio::test]
async fn encoded_dot_segments_are_refused() {
    let bus = ok();
    assert_eq!(plain(&bus).send(get("/greeter/%2e%2e/admin"), "").await.status, StatusCode::BAD_REQUEST);
    assert!(bus.calls.lock().expect("not poisoned").is_empty());
}

#[tokio::test]
async fn the_root_and_paths_of_no_service_go_to_the_default_service() {
    let bus = ok();
    let gateway = plain(&bus);
    for (target, key) in [("/", ""), ("/favicon.ico", "favicon%2eico"), ("/v2/x", "v2.x"), ("/%C3%A9", "%c3%a9")] {
        assert_eq!(gateway.send(get(target), "").await.status, StatusCode::OK);
        assert_eq!(bus.last_call().key, key);
    }
}

#[tokio::test]
async fn every_other_method_reaches_the_service() {
    let bus = ok();
    let gateway = plain(&bus);
    for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND", "QUERY"] {
        assert_eq!(gateway.send(get("/greeter").method(method), "").await.status, StatusCode::OK);
        assert_eq!(bus.field(":method").as_deref(), Some(method));
    }
}

#[tokio::test]
async fn trace_is_405_and_connect_is_refused_and_options_star_is_204() {
    let gateway = plain(&ok());
    let trace = gateway.send(get("/greeter").method("TRACE"), "").await;
    assert_eq!((trace.status, trace.headers.contains_key("allow")), (StatusCode::METHOD_NOT_ALLOWED, true));
    let connect = gateway.send(get("localhost:80").method("CONNECT"), "").await;
    assert_eq!(connect.status, StatusCode::METHOD_NOT_ALLOWED);
    let options = gateway.send(get("*").method("OPTIONS"), "").await;
    assert_eq!((options.status, options.body.len()), (StatusCode::NO_CONTENT, 0));
    assert!(options.headers.contains_key("allow"));
}

#[tokio::test]
async fn an_upgrade_to_a_service_on_the_bus_is_501_and_names_the_way() {
    let gateway = plain(&ok());
    let upgrade = |target| get(target).header("connection", "Upgrade").header("upgrade", "websocket");
    let answered = gateway.send(upgrade("/greeter/ws"), "").await;
    assert_eq!(answered.status, StatusCode::NOT_IMPLEMENTED);
    assert!(answered.json()["next"].as_str().expect("text").contains("reactor attach greeter"));
    assert_eq!(gateway.send(upgrade("/nobody/ws"), "").await.status, StatusCode::NOT_FOUND);
    let h2c =
        get("/greeter").header("connection", "Upgrade, HTTP2-Settings").header("upgrade", "h2c").header("http2-settings", "AA");
    assert_eq!(gateway.send(h2c, "").await.status, StatusCode::OK);
}

#[tokio::test]
async fn paths_under_reactor_are_reserved() {
    let bus = ok();
    for target in ["/.reactor", "/.reactor/", "/.reactor/refused", "/%2Ereactor/x", "/a/../.reactor/x"] {
        let answered = plain(&bus).send(get(target), "").await;
        assert_eq!(
            (answered.status, answered.json()["type"].as_str()),
            (StatusCode::NOT_FOUND, Some("/problems/reserved")),
            "{target}"
        );
    }
    assert!(bus.calls.lock().expect("not poisoned").is_empty());
}

#[tokio::test]
async fn bodies_of_head_204_and_304_are_dropped() {
    let bus = FakeBus::new(|call| {
        let code = if call.key == "greeter.304" { 304 } else { 204 };
        Script::Events(vec![part(status(if call.key == "greeter" { 200 } else { code }), "dropped", true)])
    });
    let gateway = plain(&bus);
    let head = gateway.send(get("/greeter").method("HEAD"), "").await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    assert_eq!(head.headers["content-length"], "7");
    for (target, code) in [("/greeter/204", 204), ("/greeter/304", 304)] {
        let answered = gateway.send(get(target), "").await;
        assert_eq!((answered.status.as_u16(), answered.body.len()), (code, 0));
        assert!(!answered.headers.contains_key("content-type"));
    }
}

#[tokio::test]
async fn status_fields_and_set_cookie_lines_go_back() {
    let cookies = Field::Array(vec![Field::text("a=1"), Field::text("b=2")]);
    let headers = status(201).with("set-cookie", cookies).with("x-n", Field::I32(5)).with("location", Field::text("/greeter/7"));
    let answered = plain(&FakeBus::replying(headers, "")).send(get("/greeter"), "").await;
    assert_eq!(answered.status, StatusCode::CREATED);
    assert_eq!(answered.headers.get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    assert_eq!(answered.headers["x-n"], "5");
    assert_eq!(answered.headers["location"], "/greeter/7");
}

#[tokio::test]
async fn a_reply_that_cannot_be_http_is_502() {
    for headers in
        [status(99), status(700), Table::new().with("x", Field::text("a\r\nb")), Table::new().with(":x", Field::text("a"))]
    {
        let answered = plain(&FakeBus::replying(headers, "")).send(get("/greeter"), "").await;
        assert_eq!(answered.status, StatusCode::BAD_GATEWAY);
        assert_eq!(answered.json()["type"], "/problems/bad-reply");
    }
}

#[tokio::test]
async fn the_first_complete_reply_wins() {
    let bus = FakeBus::new(|_| Script::Events(vec![part(status(200), "first", true), part(status(500), "second", true)]));
    let answered = plain(&bus).send(get("/greeter"), "").await;
    assert_eq!((answered.status, answered.text()), (StatusCode::OK, "first"));
}

#[tokio::test]
async fn a_reply_in_parts_is_streamed_and_its_head_is_the_first_parts() {
    let first = status(206).with(":more", Field::Bool(true)).with("x", Field::text("1"));
    let bus = FakeBus::new(move |_| {
        Script::Events(vec![part(first.clone(), "one ", false), part(status(500).with("x", Field::text("2")), "two", false)])
    });
    let gateway = plain(&bus);
    let response = gateway.start(get("/greeter"), "").await;
    assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
    assert_eq!(response.headers()["x"], "1");
    let mut body = response.into_body();
    for expected in ["one ", "two"] {
        assert_eq!(body.frame().await.expect("a frame").expect("good").into_data().expect("data"), expected);
    }
    let observer = bus.observers.lock().expect("not poisoned")[0].clone();
    assert_eq!(gateway.gateway.stats().services[0].counts.in_flight, 1, "a stream is in flight until it ends");
    observer.on(part(Table::new(), "", true));
    assert!(body.frame().await.is_none());
    drop(body);
    assert_eq!(gateway.gateway.stats().services[0].counts.in_flight, 0);
}

#[tokio::test]
async fn a_worker_that_dies_midway_never_ends_the_stream_cleanly() {
    let gone = CallFailure::WorkerGone { service: "greeter".into(), instance: "greeter-1".into() };
    let bus = FakeBus::new(move |_| Script::Events(vec![part(Table::new(), "one", false), CallEvent::Failed(gone.clone())]));
    let gateway = plain(&bus);
    let response = gateway.start(get("/greeter"), "").await;
    assert!(response.into_body().collect().await.is_err());
    let counts = &gateway.gateway.stats().services[0].counts;
    assert_eq!((counts.requests, counts.failed), (1, 1));
}

#[tokio::test]
async fn binary_bodies_go_back_byte_for_byte() {
    let bytes: Vec<u8> = (0..=255).collect();
    let body = Bytes::from(bytes);
    let bus = FakeBus::new(move |_| {
        let part =
            ReplyPart { headers: Table::new(), content_type: None, content_encoding: None, body: body.clone(), last: true };
        Script::Events(vec![CallEvent::Part(part)])
    });
    let answered = plain(&bus).send(get("/greeter"), "").await;
    assert_eq!(answered.headers["content-type"], "application/octet-stream");
    assert_eq!(answered.headers["x-content-type-options"], "nosniff");
    assert_eq!(answered.body.len(), 256);
}

#[tokio::test]
async fn a_call_is_cancelled_when_its_client_goes_away() {
    let bus = FakeBus::new(|_| Script::Events(Vec::new()));
    let gateway = plain(&bus);
    let dropped = bus.dropped.clone();
    let waiting = tokio::spawn({
        let handle = gateway.gateway.clone();
        async move {
            let request = get("/greeter").body(Full::new(Bytes::new())).expect("a request");
            handle.handle(request, conn("127.0.0.1")).await
        }
    });
    until("the call is made", || !bus.observers.lock().expect("not poisoned").is_empty()).await;
    assert_eq!(dropped.load(Ordering::SeqCst), 0);
    waiting.abort();
    until("the call is taken back", || dropped.load(Ordering::SeqCst) == 1).await;
    let observer = bus.observers.lock().expect("not poisoned")[0].clone();
    assert!(matches!(observer.on(part(Table::new(), "late", true)), crate::model::call::Pressure::Gone));
    let total = gateway.gateway.stats().total;
    assert_eq!((total.requests, total.abandoned, total.in_flight), (1, 1, 0));
}

#[tokio::test]
async fn callers_and_latencies_are_counted() {
    let gateway = plain(&ok());
    gateway.send(get("/greeter").header("user-agent", "curl/8.5.0"), "").await;
    gateway.send(get("/greeter"), "").await;
    let stats = gateway.gateway.stats();
    assert_eq!((stats.total.requests, stats.services[0].counts.requests), (2, 2));
    assert_eq!(stats.services[0].counts.latency.iter().sum::<u64>(), 2);
    let callers: Vec<_> = stats.callers.iter().map(|caller| (&*caller.caller, &*caller.service, caller.requests)).collect();
    assert_eq!(callers, [("curl", "greeter", 1), ("unknown", "greeter", 1)]);
}
