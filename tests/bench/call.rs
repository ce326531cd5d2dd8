//! Gateway → AMQP consumer → reply over one keep-alive connection: the latency a person feels.

use crate::peers::Peer;
use reactor::cli::bench::Server;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Sorted round-trip times of `count` requests made one after the other.
pub fn run(peer: &Peer, count: usize) -> Vec<Duration> {
    let server = Server::new(&peer.target, "benchecho", Some(("reactor.call", "benchecho.#"))).expect("a worker");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.serve(&over).expect("the worker serves to the end"));
        // Also when a request fails: the scope waits for its worker.
        let _over = Over(&over);
        ask(peer, count)
    })
}

/// Says that it is over when dropped.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn ask(peer: &Peer, count: usize) -> Vec<Duration> {
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
