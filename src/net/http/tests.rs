//! What hostile and careless clients send, byte by byte, and what they get (reference: request smuggling and normalisation probe).
//! The service behind is the scripted bus, or a bare HTTP server that shows what reached it.

use super::*;
use crate::gateway::testing::{FakeBus, Script, TestGateway, gateway, part, status};
use crate::model::call::CallFailure;
use crate::model::table::{Field, Table};
use crate::net::tls::{self, Alpn, Certificate};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::TcpListener;

const LIMIT: Duration = Duration::from_secs(10);

fn world() -> (Arc<FakeBus>, TestGateway) {
    let bus =
        FakeBus::new(|call| Script::Events(vec![part(Table::new(), if call.body.is_empty() { "ok" } else { "body" }, true)]));
    let gateway = gateway(bus.clone(), |_| {});
    (bus, gateway)
}

fn connect(gateway: &TestGateway) -> DuplexStream {
    let (client, server) = duplex(256 * 1024);
    let peer = "127.0.0.1:40000".parse().expect("an address");
    tokio::spawn(serve_gateway(server, peer, Scheme::Http, gateway.gateway.clone()));
    client
}

/// Everything the gateway says to `request` until it closes.
async fn converse(gateway: &TestGateway, request: &[u8]) -> String {
    let mut client = connect(gateway);
    client.write_all(request).await.expect("written");
    let mut said = Vec::new();
    tokio::time::timeout(LIMIT, client.read_to_end(&mut said)).await.expect("closed in time").expect("readable");
    String::from_utf8_lossy(&said).into_owned()
}

/// The status of each answer in a conversation.
fn statuses(said: &str) -> Vec<&str> {
    let codes = said.match_indices("HTTP/1.1 ").filter_map(|(at, start)| said.get(at + start.len()..at + start.len() + 3));
    codes.filter(|code| code.bytes().all(|digit| digit.is_ascii_digit())).collect()
}

/// Sends one request that must be refused with `status`, as a problem, and the connection closed; nothing may reach a service.
async fn refused(request: &str, status: &str) {
    let (bus, gateway) = world();
    // A second request behind it must never be answered: it would be the smuggled one.
    let said = converse(&gateway, format!("{request}GET /greeter HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).await;
    assert_eq!(statuses(&said), [status], "{request:?}: {said}");
    assert!(said.to_ascii_lowercase().contains("connection: close"), "{request:?}: {said}");
    assert!(said.contains("application/problem+json") && said.contains("trace_id"), "{request:?}: {said}");
    assert!(bus.calls.lock().expect("not poisoned").is_empty(), "{request:?} reached the service");
}

async fn all_refused(status: &str, requests: &[&str]) {
    for request in requests {
        refused(request, status).await;
    }
}

#[tokio::test]
async fn content_length_with_transfer_encoding_is_400_and_closed() {
    all_refused(
        "400",
        &[
            "POST /greeter HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST /greeter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        ],
    )
    .await;
}

#[tokio::test]
async fn content_lengths_that_differ_or_are_no_number_are_400() {
    for lengths in [
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: 3, 3",
        "Content-Length: +3",
        "Content-Length:",
        "Content-Length : 3",
    ] {
        refused(&format!("POST /greeter HTTP/1.1\r\nHost: x\r\n{lengths}\r\n\r\nabc"), "400").await;
    }
}

#[tokio::test]
async fn transfer_encodings_that_are_not_chunked_are_400() {
    for coding in ["xchunked", "chunked, identity", "chunked\r\nTransfer-Encoding: chunked", "identity"] {
        refused(&format!("POST /greeter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: {coding}\r\n\r\n0\r\n\r\n"), "400").await;
    }
    refused("POST /greeter HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400").await;
}

#[tokio::test]
async fn transfer_encoding_gzip_chunked_is_501() {
    refused("POST /greeter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "501").await;
}

#[tokio::test]
async fn malformed_chunks_are_400_and_no_failure_of_the_service() {
    for chunks in [
        "0x0\r\n\r\n",
        "0_2\r\nab\r\n0\r\n\r\n",
        "fffffffffffffffff\r\nab\r\n",
        "2\nab\r\n0\r\n\r\n",
        "2;a\nb\r\nab\r\n0\r\n\r\n",
        "\r\nab\r\n",
    ] {
        let (bus, gateway) = world();
        let request = format!("POST /greeter HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}");
        let said = converse(&gateway, request.as_bytes()).await;
        assert_eq!(statuses(&said), ["400"], "{chunks:?}: {said}");
        assert!(bus.calls.lock().expect("not poisoned").is_empty());
        assert_eq!(gateway.gateway.stats().total.failed, 0);
    }
}

#[tokio::test]
async fn malformed_chunks_to_an_http_service_are_400_and_not_its_failure() {
    let (_, gateway) = world();
    let (address, _seen) = silent_upstream(b"").await;
    gateway.add("orders", address, |_| {});
    let request = "POST /orders HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n";
    let said = converse(&gateway, request.as_bytes()).await;
    assert_eq!(statuses(&said), ["400"], "{said}");
    assert_eq!(gateway.gateway.stats().services[0].counts.failed, 0);
}

#[tokio::test]
async fn folded_fields_bare_cr_nul_and_odd_request_lines_are_400() {
    all_refused(
        "400",
        &[
            "GET /greeter HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
            "GET /greeter HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
            "GET /greeter HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
            "GE T /greeter HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET  /greeter HTTP/1.1\r\nHost: x\r\n\r\n",
            "GET /greeter HTTP/1.9\r\nHost: x\r\n\r\n",
            "GET /greeter HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
        ],
    )
    .await;
}

#[tokio::test]
async fn bare_lf_lines_are_400() {
    all_refused("400", &["GET /greeter HTTP/1.1\nHost: x\n\n", "GET /greeter HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"]).await;
}

#[tokio::test]
async fn no_host_two_hosts_and_a_bad_host_are_400() {
    for hosts in
        ["", "Host: x\r\nHost: x\r\n", "Host: x\r\nHost: y\r\n", "Host: x/y\r\n", "Host: a b\r\n", "Host: u@x\r\n", "Host:\r\n"]
    {
        let (bus, gateway) = world();
        let said = converse(&gateway, format!("GET /greeter HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n").as_bytes()).await;
        assert_eq!(statuses(&said), ["400"], "{hosts:?}: {said}");
        assert!(bus.calls.lock().expect("not poisoned").is_empty());
    }
}

#[tokio::test]
async fn the_authority_of_an_absolute_target_wins() {
    let (bus, gateway) = world();
    let request = "GET http://evil:81/greeter?x=1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    assert_eq!(statuses(&converse(&gateway, request.as_bytes()).await), ["200"]);
    assert_eq!(bus.field(":authority").as_deref(), Some("evil:81"));
    assert_eq!(bus.field(":path").as_deref(), Some("/greeter?x=1"));
}

#[tokio::test]
async fn fields_named_by_connection_never_reach_an_upstream() {
    let (_, gateway) = world();
    let (address, seen) = silent_upstream(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await;
    gateway.add("orders", address, |_| {});
    let request = "GET /orders HTTP/1.1\r\nHost: x\r\nConnection: x-auth, close\r\nX-Auth: secret\r\nTE: trailers\r\n\
        Keep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\n\r\n";
    assert_eq!(statuses(&converse(&gateway, request.as_bytes()).await), ["200"]);
    let seen = tokio::time::timeout(LIMIT, seen).await.expect("in time").expect("a request").to_ascii_lowercase();
    for name in ["x-auth", "\nte:", "keep-alive", "proxy-connection", "\nconnection:"] {
        assert!(!seen.contains(name), "{name} in {seen}");
    }
}

#[tokio::test]
async fn connection_content_length_leaves_the_framing_alone() {
    let (bus, gateway) = world();
    let request = "POST /greeter HTTP/1.1\r\nHost: x\r\nConnection: content-length, close\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(statuses(&converse(&gateway, request.as_bytes()).await), ["200"]);
    assert_eq!(bus.last_call().body, "abc");
    assert_eq!(bus.field("connection"), None);
}

#[tokio::test]
async fn dot_segments_are_resolved_and_encoded_ones_refused() {
    let (bus, gateway) = world();
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").into_bytes();
    assert_eq!(statuses(&converse(&gateway, &get("/a/../greeter/./b/../c")).await), ["200"]);
    assert_eq!(bus.last_call().key, "greeter.c");
    assert_eq!(statuses(&converse(&gateway, &get("/a/%2e%2e/b/../c")).await), ["400"]);
}

#[tokio::test]
async fn a_fragment_in_the_target_is_400() {
    refused("GET /greeter#fragment HTTP/1.1\r\nHost: x\r\n\r\n", "400").await;
}

#[tokio::test]
async fn a_hundred_and_twenty_fields_are_431() {
    let fields: String = (0..120).map(|n| format!("x-{n}: y\r\n")).collect();
    refused(&format!("GET /greeter HTTP/1.1\r\nHost: x\r\n{fields}\r\n"), "431").await;
}

#[tokio::test]
async fn answers_to_pipelined_requests_come_in_order_and_a_refusal_in_its_turn() {
    let (bus, gateway) = world();
    let requests = "POST /greeter/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nabGET /greeter/2 HTTP/1.1\r\nHost: x\r\n\r\n\
        GET /greeter/3 HTTP/1.1\nHost: x\r\n\r\n";
    let said = converse(&gateway, requests.as_bytes()).await;
    assert_eq!(statuses(&said), ["200", "200", "400"], "{said}");
    assert_eq!(bus.calls.lock().expect("not poisoned").len(), 2);
}

#[tokio::test]
async fn expect_100_continue_is_met_when_the_body_is_wanted() {
    let (_, gateway) = world();
    let mut client = connect(&gateway);
    let head = b"POST /greeter HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 3\r\nConnection: close\r\n\r\n";
    client.write_all(head).await.expect("written");
    let mut said = [0; 25];
    tokio::time::timeout(LIMIT, client.read_exact(&mut said)).await.expect("in time").expect("an answer");
    assert_eq!(&said, b"HTTP/1.1 100 Continue\r\n\r\n");
    client.write_all(b"abc").await.expect("written");
    let mut rest = String::new();
    client.read_to_string(&mut rest).await.expect("an answer");
    assert_eq!(statuses(&rest), ["200"]);
}

#[tokio::test]
async fn a_body_too_large_is_413_and_the_answer_can_be_read() {
    let bus = FakeBus::replying(Table::new(), "ok");
    let gateway = gateway(bus, |config| config.call_body_bytes_max = 10);
    let mut request = b"POST /greeter HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n".to_vec();
    request.resize(request.len() + 200_000, b'x');
    let said = converse(&gateway, &request).await;
    assert_eq!(statuses(&said), ["413"], "{said}");
    assert!(said.contains("limits.call_body_bytes_max"));
}

#[tokio::test]
async fn a_worker_that_dies_midway_cuts_the_chunked_answer() {
    let gone = CallFailure::WorkerGone { service: "greeter".into(), instance: "greeter-1".into() };
    let more = Table::new().with(":more", Field::Bool(true));
    let bus = FakeBus::new(move |_| {
        Script::Events(vec![part(more.clone(), "one", false), crate::model::call::CallEvent::Failed(gone.clone())])
    });
    let gateway = gateway(bus, |_| {});
    let said = converse(&gateway, b"GET /greeter HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(said.contains("3\r\none\r\n") && !said.contains("0\r\n\r\n"), "{said}");
}

#[tokio::test]
async fn http2_with_prior_knowledge_is_served_on_the_same_port() {
    let (bus, gateway) = world();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(connect(&gateway))).await.expect("a handshake");
    tokio::spawn(connection);
    let request = |uri: &str| {
        Request::builder().method("POST").uri(uri).body(http_body_util::Full::new(bytes::Bytes::from("abc"))).expect("a request")
    };
    let response = sender.send_request(request("http://shop.example/greeter/a?b")).await.expect("an answer");
    assert_eq!((response.status(), response.version()), (StatusCode::OK, http::Version::HTTP_2));
    assert_eq!(response.into_body().collect().await.expect("a body").to_bytes(), "body");
    assert_eq!(bus.field(":authority").as_deref(), Some("shop.example"));
    assert_eq!(bus.field(":path").as_deref(), Some("/greeter/a?b"));
    let mut two_hosts = request("http://shop.example/greeter");
    two_hosts.headers_mut().insert("host", http::HeaderValue::from_static("other.example"));
    assert_eq!(sender.send_request(two_hosts).await.expect("an answer").status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn tls_offers_both_versions_by_alpn() {
    let (_, gateway) = world();
    let acceptor =
        tls::acceptor(&Certificate::Ephemeral { names: vec!["shop.test".to_owned()] }, Alpn::Http, None).expect("an acceptor");
    for (offered, chosen) in
        [(vec![&b"h2"[..], b"http/1.1"], Some(&b"h2"[..])), (vec![b"http/1.1"], Some(b"http/1.1")), (vec![], None)]
    {
        let (client, server) = duplex(64 * 1024);
        let (acceptor, gateway) = (acceptor.clone(), gateway.gateway.clone());
        tokio::spawn(async move {
            let stream = tls::accept(&acceptor, server, LIMIT).await.expect("a handshake");
            serve_gateway(stream, "127.0.0.1:40000".parse().expect("an address"), Scheme::Https, gateway).await;
        });
        let mut config = insecure_client();
        config.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
        let name = "shop.test".try_into().expect("a name");
        let mut tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, client).await.expect("a handshake");
        assert_eq!(tls.get_ref().1.alpn_protocol(), chosen);
        if chosen != Some(b"h2") {
            tls.write_all(b"GET /greeter HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await.expect("written");
            let mut said = String::new();
            tls.read_to_string(&mut said).await.expect("an answer");
            assert_eq!(statuses(&said), ["200"]);
        }
    }
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight_and_closes_idle_connections() {
    let bus = FakeBus::new(|_| Script::Events(Vec::new()));
    let gateway = gateway(bus.clone(), |_| {});
    let (mut busy, mut idle) = (connect(&gateway), connect(&gateway));
    busy.write_all(b"GET /greeter HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("written");
    let begun = tokio::time::timeout(LIMIT, async {
        while bus.observers.lock().expect("not poisoned").is_empty() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    begun.await.expect("the call is made");
    gateway.drain.begin();
    let mut said = String::new();
    tokio::time::timeout(LIMIT, idle.read_to_string(&mut said)).await.expect("closed in time").expect("closed");
    assert_eq!(said, "");
    let observer = bus.observers.lock().expect("not poisoned")[0].clone();
    observer.on(part(status(200), "late but whole", true));
    tokio::time::timeout(LIMIT, busy.read_to_string(&mut said)).await.expect("closed in time").expect("answered");
    assert!(said.ends_with("late but whole"), "{said}");
}

#[tokio::test]
async fn a_websocket_upgrade_passes_to_an_http_service_both_ways() {
    let (_, gateway) = world();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    gateway.add("chat", listener.local_addr().expect("an address"), |_| {});
    let service = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let agreed =
            b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: x\r\n\r\nhi";
        stream.write_all(agreed).await.expect("written");
        let mut said = [0; 5];
        stream.read_exact(&mut said).await.expect("bytes");
        stream.write_all(&said).await.expect("written");
        String::from_utf8_lossy(&head).into_owned()
    });
    let mut client = connect(&gateway);
    let request =
        b"GET /chat/room HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n\r\n";
    client.write_all(request).await.expect("written");
    let mut said = Vec::new();
    while !said.ends_with(b"\r\n\r\nhi") {
        said.push(tokio::time::timeout(LIMIT, client.read_u8()).await.expect("in time").expect("an answer"));
    }
    let said = String::from_utf8_lossy(&said).to_ascii_lowercase();
    assert!(
        said.starts_with("http/1.1 101 ") && said.contains("upgrade: websocket") && said.contains("sec-websocket-accept: x"),
        "{said}"
    );
    client.write_all(b"\x81\x01\n\0\xff").await.expect("written");
    let mut echoed = [0; 5];
    tokio::time::timeout(LIMIT, client.read_exact(&mut echoed)).await.expect("in time").expect("bytes");
    assert_eq!(&echoed, b"\x81\x01\n\0\xff");
    let head = service.await.expect("joined");
    assert!(head.starts_with("GET /room HTTP/1.1\r\n") && head.contains("upgrade: websocket"), "{head}");
}

/// Accepts one connection, reads one head, gives it out, sends `answer`, and keeps the connection open.
async fn silent_upstream(answer: &'static [u8]) -> (SocketAddr, tokio::sync::oneshot::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (tell, seen) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let _ = tell.send(String::from_utf8_lossy(&head).into_owned());
        let _ = stream.write_all(answer).await;
        let _ = stream.read_to_end(&mut head).await;
    });
    (address, seen)
}

/// A client that takes any certificate.
fn insecure_client() -> rustls::ClientConfig {
    #[derive(Debug)]
    struct Anything(rustls::crypto::CryptoProvider);
    impl rustls::client::danger::ServerCertVerifier for Anything {
        fn verify_server_cert(
            &self,
            _: &rustls::pki_types::CertificateDer<'_>,
            _: &[rustls::pki_types::CertificateDer<'_>],
            _: &rustls::pki_types::ServerName<'_>,
            _: &[u8],
            _: rustls::pki_types::UnixTime,
        ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
            Ok(rustls::client::danger::ServerCertVerified::assertion())
        }
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            certificate: &rustls::pki_types::CertificateDer<'_>,
            signature: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
        }
        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &rustls::pki_types::CertificateDer<'_>,
            signature: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.0.signature_verification_algorithms)
        }
        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            self.0.signature_verification_algorithms.supported_schemes()
        }
    }
    let provider = rustls::crypto::ring::default_provider();
    rustls::ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anything(provider)))
        .with_no_client_auth()
}
