//! Rubbish, floods and silence on the control port: each a clear refusal or a bounded effect.

use crate::support::{DEADLINE, Reactor};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn connect(reactor: &Reactor) -> TcpStream {
    TcpStream::connect(("127.0.0.1", reactor.port("control"))).await.expect("connects")
}

/// Sends `bytes` and returns all that comes back until the other side closes.
async fn exchange(reactor: &Reactor, bytes: &[u8]) -> String {
    let mut stream = connect(reactor).await;
    let _ = stream.write_all(bytes).await;
    let mut answer = Vec::new();
    let read = tokio::time::timeout(DEADLINE, stream.read_to_end(&mut answer)).await;
    // A reset after an early answer is a close too.
    let _ = read.unwrap_or_else(|_| {
        panic!("{:?} was neither answered nor closed", String::from_utf8_lossy(&bytes[..bytes.len().min(60)]))
    });
    String::from_utf8_lossy(&answer).into_owned()
}

async fn assert_answers(reactor: &Reactor) {
    let response = reqwest::get(format!("{}/healthz", reactor.api())).await.expect("answers");
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn garbage_is_refused_and_the_connection_closed() {
    let mut reactor = Reactor::start("");
    for garbage in [
        &b"AMQP\x00\x00\x09\x01"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
        b"GET  /  HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"\0\0\0\0\0\0\0\0\0\0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n",
    ] {
        let answer = exchange(&reactor, garbage).await;
        // A TLS client is told in its own words: an alert record.
        let refused = ["HTTP/1.1 400", "HTTP/1.1 505", "\u{15}"].iter().any(|start| answer.starts_with(start));
        assert!(answer.is_empty() || refused, "{answer}");
    }
    assert_answers(&reactor).await;
    assert!(reactor.is_running());
}

/// Refused with one of `codes`. What was still on its way when the connection closed may have taken the answer with it.
fn assert_refused(answer: &str, codes: &[&str]) {
    let named = codes.iter().any(|code| answer.starts_with(&format!("HTTP/1.1 {code}")));
    assert!(answer.is_empty() || named, "{answer}");
}

#[tokio::test]
async fn requests_beyond_their_limits_are_refused_by_name() {
    let reactor = Reactor::start("");
    let long_field = format!("GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: {}\r\n\r\n", "a".repeat(512 * 1024));
    assert_refused(&exchange(&reactor, long_field.as_bytes()).await, &["431"]);
    let many: String = (0..200).map(|n| format!("X-{n}: 1\r\n")).collect();
    let many_fields = format!("GET / HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    assert_refused(&exchange(&reactor, many_fields.as_bytes()).await, &["431"]);
    let long_target = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(512 * 1024));
    assert_refused(&exchange(&reactor, long_target.as_bytes()).await, &["414", "431"]);
    let lying = "POST /api/v1/definitions/plan HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: 99999999999\r\n\r\n{}";
    assert!(
        exchange(&reactor, lying.as_bytes()).await.starts_with("HTTP/1.1 413"),
        "a body beyond its limit is refused by its length"
    );
    assert_answers(&reactor).await;
}

#[tokio::test]
async fn a_client_that_sends_all_of_a_body_too_large_before_it_reads_is_answered() {
    let reactor = Reactor::start("");
    let guest = "Authorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n";
    for (door, path, field) in
        [("control", "/api/v1/definitions/plan", ""), ("management", "/api/definitions", guest), ("otlp_http", "/v1/logs", "")]
    {
        for framing in ["Content-Length: 67108864", "Transfer-Encoding: chunked"] {
            let mut stream = TcpStream::connect(("127.0.0.1", reactor.port(door))).await.expect("connects");
            let head =
                format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{field}Content-Type: application/json\r\n{framing}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.expect("sent");
            let mib = vec![b' '; 1 << 20];
            for _ in 0..64 {
                if framing.starts_with("Transfer") {
                    stream.write_all(b"100000\r\n").await.expect("the body is taken until its end");
                    stream.write_all(&mib).await.expect("the body is taken until its end");
                    stream.write_all(b"\r\n").await.expect("the body is taken until its end");
                } else {
                    stream.write_all(&mib).await.expect("the body is taken until its end");
                }
            }
            let mut answer = String::new();
            let read = tokio::time::timeout(DEADLINE, stream.read_to_string(&mut answer)).await;
            read.expect("closed in time").expect("the answer is not lost to a reset");
            assert!(answer.starts_with("HTTP/1.1 413"), "{door} {framing}: {answer}");
        }
    }
    assert_answers(&reactor).await;
}

#[tokio::test]
async fn a_connection_that_never_finishes_its_header_or_says_nothing_more_is_closed() {
    let reactor = Reactor::start("");
    let mut silent = connect(&reactor).await;
    let mut slow = connect(&reactor).await;
    slow.write_all(b"GET / HTTP/1.1\r\nHost: loc").await.expect("sent");
    let mut idle = connect(&reactor).await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await.expect("sent");
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(DEADLINE, async {
        let _ = silent.read_to_end(&mut rest).await;
        let _ = slow.read_to_end(&mut rest).await;
        let _ = idle.read_to_end(&mut rest).await;
    });
    closed.await.expect("half-open connections are closed within the handshake limit");
    assert_answers(&reactor).await;
}

#[tokio::test]
async fn a_thousand_half_open_connections_leave_room_for_the_next() {
    let reactor = Reactor::start("");
    let before = reactor.memory_bytes();
    let mut held = Vec::new();
    for _ in 0..1_000 {
        let mut stream = connect(&reactor).await;
        stream.write_all(b"GET /api/v1/overview HTTP/1.1\r\nHost:").await.expect("sent");
        held.push(stream);
    }
    tokio::time::timeout(Duration::from_secs(5), assert_answers(&reactor)).await.expect("answers in time");
    let grown = reactor.memory_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "a thousand half-open connections made reactor {grown} bytes larger");
}
