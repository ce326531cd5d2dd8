//! W1 and W3: one publishing and one consuming connection, as fast as they go.

use crate::amqp::{Args, Client, be64, publish_frames};
use crate::peers::{Peer, own_cpu};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub const BODY_BYTES: usize = 250;
const WINDOW: u64 = 10_000;
const ACK_EVERY: u64 = 100;
const PREFETCH: u16 = 2_000;
/// Publishes written with one system call, as an efficient client library batches them.
const BATCH: u64 = 100;

#[derive(Clone, Copy)]
pub struct Shape {
    pub confirms: bool,
    pub acks: bool,
}

pub struct Outcome {
    pub per_second: f64,
    pub lost: u64,
    pub duplicated: u64,
    pub broker_us: f64,
    pub broker_user_us: f64,
    pub client_us: f64,
    pub first_delivery: Duration,
}

/// Publishes `count` messages and consumes them all.
pub fn run(peer: &Peer, shape: Shape, count: u64) -> Outcome {
    static RUN: AtomicU64 = AtomicU64::new(0);
    let queue = format!("bench-{}", RUN.fetch_add(1, Ordering::Relaxed));
    let mut setup = Client::connect(peer.amqp).expect("a connection");
    setup.declare(&queue).expect("a queue");
    setup.bind(&queue, "amq.direct", &queue).expect("a binding");
    let mut consumer = Client::connect(peer.amqp).expect("a connection");
    consumer.consume(&queue, if shape.acks { PREFETCH } else { 0 }, !shape.acks).expect("a consumer");

    let (broker_before, client_before, begun) = (peer.cpu(), own_cpu(), Instant::now());
    let address = peer.amqp;
    let publisher = std::thread::spawn(move || publish(address, &queue, shape.confirms, count));
    let (lost, duplicated, first) = consume(&mut consumer, shape.acks, count);
    let elapsed = begun.elapsed();
    publisher.join().expect("the publisher ends");
    let (broker, client) = (peer.cpu().since(broker_before), own_cpu().since(client_before));
    let per_message = |time: Duration| time.as_secs_f64() * 1e6 / count as f64;
    Outcome {
        per_second: count as f64 / elapsed.as_secs_f64(),
        lost,
        duplicated,
        broker_us: per_message(broker.total()),
        broker_user_us: per_message(broker.user),
        client_us: per_message(client.total()),
        first_delivery: first.duration_since(begun),
    }
}

fn publish(address: std::net::SocketAddr, key: &str, confirms: bool, count: u64) {
    let mut client = Client::connect(address).expect("a connection");
    if confirms {
        client.request(1, Args::method(85, 10).u8(0), (85, 11)).expect("confirms");
    }
    let (frames, sequence_at) = publish_frames(1, "amq.direct", key, BODY_BYTES);
    let mut batch = Vec::with_capacity(frames.len() * BATCH as usize);
    let (mut sent, mut confirmed) = (0, 0);
    while sent < count || (confirms && confirmed < count) {
        let room = if confirms { WINDOW - (sent - confirmed) } else { BATCH };
        let now = room.min(BATCH).min(count - sent);
        batch.clear();
        for sequence in sent..sent + now {
            let start = batch.len();
            batch.extend_from_slice(&frames);
            batch[start + sequence_at..start + sequence_at + 8].copy_from_slice(&sequence.to_be_bytes());
        }
        client.stream.write_all(&batch).expect("the broker reads");
        sent += now;
        if confirms && (sent - confirmed > WINDOW - BATCH || sent == count) {
            client.fill().expect("confirms arrive");
            while let Some(frame) = client.next().expect("frames") {
                if frame.method() == Some((60, 80)) {
                    let (tag, multiple) = (be64(&frame.payload[4..]), frame.payload[12] & 1 == 1);
                    confirmed = if multiple { confirmed.max(tag) } else { confirmed + 1 };
                }
            }
        }
    }
    client.request(0, Args::method(10, 50).u16(200).short("").u32(0), (10, 51)).expect("a clean close");
}

fn consume(client: &mut Client, acks: bool, count: u64) -> (u64, u64, Instant) {
    let (mut expected, mut received, mut duplicated, mut lost, mut tag, mut acked) = (0, 0, 0, 0, 0, 0);
    let mut first = None;
    while received < count {
        client.fill().expect("deliveries arrive");
        first.get_or_insert_with(Instant::now);
        while let Some(frame) = client.next().expect("frames") {
            if frame.method() == Some((60, 60)) {
                let consumer_tag = usize::from(frame.payload[4]);
                tag = be64(&frame.payload[5 + consumer_tag..]);
            } else if frame.kind == 3 {
                let sequence = be64(frame.payload);
                duplicated += u64::from(sequence < expected);
                lost += sequence.saturating_sub(expected);
                expected = expected.max(sequence + 1);
                received += 1;
            }
        }
        if acks && (tag - acked >= ACK_EVERY || received == count) {
            client.stream.write_all(&Args::method(60, 80).u64(tag).u8(1).frame(1)).expect("the broker reads");
            acked = tag;
        }
    }
    (lost, duplicated, first.expect("something arrived"))
}
