//! §3 and §6: services that speak HTTP, with a real upstream.

use super::*;
use crate::model::service::InstanceState;
use crate::model::table::Table;
use http_body::Frame;
use http_body_util::StreamBody;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

struct Upstream {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

/// An HTTP service that answers what it saw: target, fields and body.
async fn mirror() -> Upstream {
    serve(|request: Request<Incoming>| async move {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
        let mut seen = format!("{} {}\n", parts.method, parts.uri);
        for (name, value) in &parts.headers {
            seen.push_str(&format!("{name}: {}\n", value.to_str().unwrap_or("?")));
        }
        seen.push('\n');
        seen.push_str(&String::from_utf8_lossy(&body));
        Response::builder().header("connection", "x-hop").header("x-hop", "1").header("x-kept", "1").body(Full::new(seen.into()))
    })
    .await
}

async fn serve<F, Fut, B>(answer: F) -> Upstream
where
    F: Fn(Request<Incoming>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = Result<Response<B>, http::Error>> + Send,
    B: http_body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let (address, connections) = (listener.local_addr().expect("an address"), Arc::new(AtomicUsize::new(0)));
    let counter = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let service = service_fn(answer.clone());
            tokio::spawn(hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    Upstream { address, connections }
}

/// Accepts, reads a little, sends `answer` as it is and closes.
async fn raw(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut space = [0; 1024];
            let _ = stream.read(&mut space).await;
            let _ = stream.write_all(answer).await;
        }
    });
    address
}

fn without_bus() -> Arc<FakeBus> {
    FakeBus::new(|_| crate::gateway::testing::Script::Refuse(crate::model::call::CallFailure::Unbound { attached: Vec::new() }))
}

async fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

#[tokio::test]
async fn the_prefix_is_taken_off_and_sent_as_a_field() {
    let (gateway, upstream) = (plain(&without_bus()), mirror().await);
    gateway.add("orders", upstream.address, |_| {});
    let answered = gateway.send(get("/Orders/v2/items/7?x=%20"), "").await;
    assert_eq!(answered.status, StatusCode::OK);
    assert!(answered.text().starts_with("GET /v2/items/7?x=%20\n"), "{}", answered.text());
    assert!(answered.text().contains("x-forwarded-prefix: /Orders\n"));
    assert!(answered.text().contains("host: localhost:16000\n"));
    assert!(gateway.send(get("/orders"), "").await.text().starts_with("GET /\n"));
}

#[tokio::test]
async fn a_declared_version_is_taken_off_too() {
    let (gateway, upstream) = (plain(&without_bus()), mirror().await);
    gateway.add("orders", upstream.address, |instance| instance.version = Some(2));
    let answered = gateway.send(get("/orders/v2/items"), "").await;
    assert!(answered.text().starts_with("GET /items\n") && answered.text().contains("x-forwarded-prefix: /orders/v2\n"));
    let answered = gateway.send(get("/orders/items"), "").await;
    assert!(answered.text().starts_with("GET /items\n") && answered.text().contains("x-forwarded-prefix: /orders\n"));
    assert!(gateway.send(get("/orders/v0/items"), "").await.text().starts_with("GET /items\n"));
    let unknown = gateway.send(get("/orders/v3/items"), "").await;
    assert_eq!((unknown.status, unknown.json()["attached"].clone()), (StatusCode::NOT_FOUND, serde_json::json!(["v2"])));
}

#[tokio::test]
async fn strip_prefix_false_keeps_it() {
    let (gateway, upstream) = (plain(&without_bus()), mirror().await);
    gateway.add("orders", upstream.address, |instance| instance.keep_prefix = true);
    let answered = gateway.send(get("/orders/a/./b/../c"), "").await;
    assert!(answered.text().starts_with("GET /orders/a/c\n"), "{}", answered.text());
    assert!(!answered.text().contains("x-forwarded-prefix"));
}

#[tokio::test]
async fn fields_of_either_connection_stay_there() {
    let (gateway, upstream) = (plain(&without_bus()), mirror().await);
    gateway.add("orders", upstream.address, |_| {});
    let request = get("/orders").header("connection", "x-auth, close").header("x-auth", "1").header("te", "x");
    let answered =
        gateway.send(request.header("keep-alive", "5").header("proxy-connection", "x").header("x-reactor-roles", "a"), "").await;
    for name in ["x-auth", "te:", "keep-alive", "proxy-connection", "connection:", "x-reactor-roles"] {
        assert!(!answered.text().contains(name), "{name} in {}", answered.text());
    }
    assert!(!answered.headers.contains_key("x-hop") && !answered.headers.contains_key("connection"));
    assert_eq!(answered.headers["x-kept"], "1");
}

#[tokio::test]
async fn the_client_and_the_trace_are_named_to_the_service() {
    let (gateway, upstream) = (plain(&without_bus()), mirror().await);
    gateway.add("orders", upstream.address, |_| {});
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answered = gateway.send(get("/orders").header("traceparent", parent), "").await;
    for field in ["x-forwarded-for: 127.0.0.1\n", "x-forwarded-proto: http\n", "via: 1.1 reactor\n", "x-request-id: "] {
        assert!(answered.text().contains(field), "{field} in {}", answered.text());
    }
    assert!(answered.text().contains("traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-") && !answered.text().contains(parent));
}

#[tokio::test]
async fn connections_are_kept_and_reused() {
    let (gateway, upstream) = (plain(&without_bus()), mirror().await);
    gateway.add("orders", upstream.address, |_| {});
    for n in 0..5 {
        assert!(gateway.send(get("/orders").method("POST"), &format!("body {n}")).await.text().ends_with(&format!("body {n}")));
    }
    assert_eq!(upstream.connections.load(Ordering::SeqCst), 1);
    assert_eq!(gateway.gateway.stats().upstream_connections_opened, 1);
}

#[tokio::test]
async fn both_bodies_are_streamed() {
    let upstream = serve(|request: Request<Incoming>| async move {
        let frames = futures_util::stream::unfold(request.into_body(), |mut body| async move {
            let data = body.frame().await?.ok()?.into_data().ok()?;
            Some((Ok::<_, Infallible>(Frame::data(data)), body))
        });
        Response::builder().body(StreamBody::new(frames))
    })
    .await;
    let gateway = plain(&without_bus());
    gateway.add("echo", upstream.address, |_| {});
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, Infallible>>(1);
    let body = StreamBody::new(futures_util::stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|frame| (frame, receiver))
    }));
    let request = get("/echo").method("POST").body(body).expect("a request");
    let response = gateway.gateway.clone().handle(request, conn("127.0.0.1")).await;
    let mut echoed = response.into_body();
    for piece in ["one", "two"] {
        sender.send(Ok(Frame::data(Bytes::from(piece)))).await.expect("taken");
        let frame = tokio::time::timeout(Duration::from_secs(10), echoed.frame()).await.expect("in time");
        assert_eq!(frame.expect("a frame").expect("good").into_data().expect("data"), piece);
    }
    drop(sender);
    assert!(echoed.frame().await.is_none());
}

#[tokio::test]
async fn load_is_shared_and_an_instance_that_refuses_is_passed_over() {
    let (gateway, first, second) = (plain(&without_bus()), mirror().await, mirror().await);
    for address in [first.address, second.address, closed_port().await] {
        gateway.add("orders", address, |_| {});
    }
    for _ in 0..40 {
        assert_eq!(gateway.send(get("/orders").method("POST"), "not idempotent").await.status, StatusCode::OK);
    }
    assert!(first.connections.load(Ordering::SeqCst) > 0 && second.connections.load(Ordering::SeqCst) > 0);
}

#[tokio::test]
async fn nobody_listening_is_502_after_a_short_wait() {
    let gateway = gateway(without_bus(), |config| config.hold = Duration::from_millis(50));
    gateway.add("orders", closed_port().await, |_| {});
    let answered = gateway.send(get("/orders"), "").await;
    assert_eq!((answered.status, answered.json()["type"].clone()), (StatusCode::BAD_GATEWAY, "/problems/unreachable".into()));
}

#[tokio::test]
async fn a_restart_is_not_an_error() {
    let (gateway, upstream) = (plain(&without_bus()), mirror().await);
    let id = gateway.add("orders", upstream.address, |_| {});
    assert_eq!(gateway.send(get("/orders"), "").await.status, StatusCode::OK);
    gateway.registry.update(id, |instance| instance.state = InstanceState::Failing);
    let waiting = tokio::spawn({
        let handle = gateway.gateway.clone();
        async move {
            let request = get("/orders").body(Full::new(Bytes::new())).expect("a request");
            handle.handle(request, conn("127.0.0.1")).await.status()
        }
    });
    until("the request waits", || gateway.gateway.stats().total.in_flight == 1).await;
    gateway.registry.update(id, |instance| instance.state = InstanceState::Ready);
    assert_eq!(waiting.await.expect("joined"), StatusCode::OK);
}

#[tokio::test]
async fn a_stopped_service_is_503_and_says_so() {
    let gateway = plain(&without_bus());
    gateway.add("orders", closed_port().await, |instance| instance.state = InstanceState::Stopped);
    let answered = gateway.send(get("/orders"), "").await;
    assert_eq!(answered.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answered.headers.contains_key("retry-after"));
    assert!(answered.json()["detail"].as_str().expect("text").contains("is stopped"));
}

#[tokio::test]
async fn a_service_that_is_on_the_bus_too_answers_there_while_its_http_side_is_not_ready() {
    let bus = FakeBus::replying(Table::new(), "by message");
    let gateway = plain(&bus);
    gateway.add("greeter", closed_port().await, |instance| instance.state = InstanceState::Stopped);
    assert_eq!(gateway.send(get("/greeter"), "").await.text(), "by message");
}

#[tokio::test]
async fn answers_that_are_no_http_or_end_early_are_502() {
    for answer in [&b"SSH-2.0-OpenSSH\r\n"[..], b"HTTP/1.1 200 OK\r\ncontent-le", b""] {
        let gateway = plain(&without_bus());
        gateway.add("orders", raw(answer).await, |_| {});
        let answered = gateway.send(get("/orders"), "").await;
        assert_eq!(answered.status, StatusCode::BAD_GATEWAY);
        assert_eq!(answered.json()["type"], "/problems/broken-answer");
    }
}

#[tokio::test]
async fn an_answer_that_breaks_midway_never_ends_cleanly() {
    let gateway = plain(&without_bus());
    gateway.add("orders", raw(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await, |_| {});
    let response = gateway.start(get("/orders"), "").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(gateway.gateway.stats().services[0].counts.failed, 1);
}

#[tokio::test]
async fn a_service_that_never_answers_is_504() {
    let upstream = serve(|_| std::future::pending::<Result<Response<Full<Bytes>>, http::Error>>()).await;
    let gateway = gateway(without_bus(), |config| config.deadline = Duration::from_millis(50));
    gateway.add("orders", upstream.address, |_| {});
    assert_eq!(gateway.send(get("/orders"), "").await.status, StatusCode::GATEWAY_TIMEOUT);
}

#[tokio::test]
async fn a_cancelled_request_closes_its_upstream_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let gateway = plain(&without_bus());
    gateway.add("orders", listener.local_addr().expect("an address"), |_| {});
    let waiting = tokio::spawn({
        let handle = gateway.gateway.clone();
        async move {
            let request = get("/orders").body(Full::new(Bytes::new())).expect("a request");
            handle.handle(request, conn("127.0.0.1")).await.status()
        }
    });
    let (mut stream, _) = listener.accept().await.expect("a connection");
    let mut seen = [0; 4];
    stream.read_exact(&mut seen).await.expect("a request");
    waiting.abort();
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.expect("closed in time").expect("closed");
    assert_eq!(gateway.gateway.stats().total.abandoned, 1);
}

#[tokio::test]
async fn head_keeps_the_length_that_a_get_would_have() {
    let upstream =
        serve(|_| async { Response::builder().header("content-length", "42").body(http_body_util::Empty::<Bytes>::new()) }).await;
    let gateway = plain(&without_bus());
    gateway.add("orders", upstream.address, |_| {});
    let answered = gateway.send(get("/orders").method("HEAD"), "").await;
    assert_eq!(answered.headers["content-length"], "42");
}
