//! Wrong protocols, garbage and silence on every port: a readable answer or a closed socket, never a dead reactor.

use crate::support::{DEADLINE, Reactor, http};
use std::io::{Read, Write};
use std::net::TcpStream;

const DOORS: [&str; 9] = ["http", "https", "ingress", "control", "bus", "amqp", "amqps", "otlp_grpc", "otlp_http"];

fn dial(reactor: &Reactor, door: &str) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", reactor.port(door))).expect("the door is open");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream
}

/// Everything the peer says until it closes.
fn hear(mut stream: TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    match stream.read_to_end(&mut answer) {
        Ok(_) => answer,
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => answer,
        Err(error) => panic!("neither an answer nor a close: {error}"),
    }
}

#[test]
fn an_http_client_on_the_amqp_port_is_told_where_http_is() {
    let reactor = Reactor::start("");
    let mut stream = dial(&reactor, "amqp");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("written");
    let answer = String::from_utf8(hear(stream)).expect("text");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("application/problem+json") && answer.contains(&reactor.port("ingress").to_string()), "{answer}");
}

#[test]
fn plain_http_on_the_tls_port_is_told_so() {
    let reactor = Reactor::start("");
    let mut stream = dial(&reactor, "https");
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("written");
    let answer = String::from_utf8(hear(stream)).expect("text");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("over TLS"), "{answer}");
}

#[test]
fn garbage_on_every_port_is_closed_and_the_process_lives() {
    let mut reactor = Reactor::start("");
    for door in DOORS {
        for garbage in [
            &b"\x00\x01\x02\x03\xff\xfe\xfd\xfc garbage beyond any protocol \r\n\r\n"[..],
            &[0xff; 64 * 1024],
            b"\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n",
        ] {
            let mut stream = dial(&reactor, door);
            let _ = stream.write_all(garbage);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            hear(stream);
        }
        assert!(reactor.is_running(), "{door} killed it");
    }
}

#[test]
fn a_silent_peer_is_closed_after_the_handshake_limit() {
    let reactor = Reactor::start("[limits]\nhandshake = \"200ms\"\n");
    let silent: Vec<TcpStream> = DOORS.iter().map(|door| dial(&reactor, door)).collect();
    for (door, stream) in DOORS.iter().zip(silent) {
        assert!(hear(stream).is_empty(), "{door} spoke first");
    }
}

#[tokio::test]
async fn the_health_check_says_ok_once_everything_listens() {
    let reactor = Reactor::start("");
    let answer = http().get(format!("{}/healthz", reactor.api())).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
}

#[test]
fn beyond_the_connection_limit_sockets_are_closed_and_counted() {
    let mut reactor = Reactor::start("[limits]\nconnections_max = 5\n");
    let held: Vec<TcpStream> = (0..5).map(|_| dial(&reactor, "amqp")).collect();
    assert!(hear(dial(&reactor, "amqp")).is_empty());
    drop(held);
    assert!(reactor.is_running());
}
