//! Gateway → AMQP consumer → reply over one keep-alive connection: the latency a person feels.

use crate::amqp::{Args, Client, be64, frame};
use crate::peers::Peer;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Sorted round-trip times of `count` requests made one after the other.
pub fn run(peer: &Peer, count: usize) -> Vec<Duration> {
    let address = peer.amqp;
    std::thread::spawn(move || worker(address));
    let mut stream = TcpStream::connect(peer.http.expect("a gateway")).expect("the gateway accepts");
    stream.set_nodelay(true).expect("a socket");
    wait_for_worker(&mut stream);
    let mut times: Vec<_> = (0..count)
        .map(|_| {
            let begun = Instant::now();
            assert_eq!(request(&mut stream), 200);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

fn wait_for_worker(stream: &mut TcpStream) {
    let begun = Instant::now();
    while request(stream) != 200 {
        assert!(begun.elapsed() < Duration::from_secs(10), "the worker does not answer");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn request(stream: &mut TcpStream) -> u16 {
    stream.write_all(b"GET /benchecho/hello HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("the gateway reads");
    let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).expect("the gateway answers");
        assert!(count > 0, "the gateway closed the connection");
        bytes.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .lines()
            .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(|value| value.trim().to_owned()))
            .map_or(0, |value| value.parse().expect("a length"));
        if body.len() >= length {
            return head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        }
    }
}

/// Answers every call with its own correlation id and two bytes.
fn worker(address: std::net::SocketAddr) {
    let mut client = Client::connect(address).expect("a connection");
    client.declare("benchecho").expect("a queue");
    client.bind("benchecho", "reactor.call", "benchecho.#").expect("a binding");
    client.consume("benchecho", 0, true).expect("a consumer");
    loop {
        if client.fill().is_err() {
            return;
        }
        let mut out = Vec::new();
        while let Some(input) = client.next().expect("frames") {
            if input.kind == 2 {
                let (reply_to, correlation_id) = addresses(input.payload);
                out.extend(Args::method(60, 40).u16(0).short("").short(&reply_to).u8(0).frame(1));
                let mut header = 60u16.to_be_bytes().to_vec();
                header.extend(0u16.to_be_bytes());
                header.extend(2u64.to_be_bytes());
                header.extend(0x0400u16.to_be_bytes());
                header.push(u8::try_from(correlation_id.len()).expect("a short string"));
                header.extend(correlation_id.as_bytes());
                out.extend(frame(2, 1, &header));
                out.extend(frame(3, 1, b"ok"));
            }
        }
        client.stream.write_all(&out).expect("the broker reads");
    }
}

/// `reply_to` and `correlation_id` of a content header (properties in the order of AMQP 0-9-1 §1.8).
fn addresses(payload: &[u8]) -> (String, String) {
    let flags = u16::from_be_bytes([payload[12], payload[13]]);
    let mut rest = &payload[14..];
    let mut short = |present: bool| {
        if !present {
            return String::new();
        }
        let (text, after) = rest[1..].split_at(usize::from(rest[0]));
        rest = after;
        String::from_utf8_lossy(text).into_owned()
    };
    short(flags & 0x8000 != 0);
    short(flags & 0x4000 != 0);
    if flags & 0x2000 != 0 {
        let length = be64(&[&[0; 4], &rest[..4]].concat()) as usize;
        rest = &rest[4 + length..];
    }
    rest = &rest[usize::from(flags & 0x1000 != 0) + usize::from(flags & 0x0800 != 0)..];
    let mut short = |present: bool| {
        if !present {
            return String::new();
        }
        let (text, after) = rest[1..].split_at(usize::from(rest[0]));
        rest = after;
        String::from_utf8_lossy(text).into_owned()
    };
    let correlation_id = short(flags & 0x0400 != 0);
    (short(flags & 0x0200 != 0), correlation_id)
}
