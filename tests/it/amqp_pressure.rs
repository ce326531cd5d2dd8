//! More is sent than is taken: publishers wait, slow readers cost bounded memory, and everybody else goes on.

use crate::hostile_amqp::{Client, frame, header, raw, still_serves};
use crate::support::Reactor;
use reactor::wire::amqp::RawTable;
use reactor::wire::amqp::frame::{FRAME_BODY, FRAME_HEADER};
use reactor::wire::amqp::method::*;
use std::io::Write;
use std::time::Duration;

const MIB: u64 = 1024 * 1024;
const BODY_BYTES: usize = 50_000;

/// `capabilities: {connection.blocked: true}`
const UNDERSTANDS_BLOCKED: &[u8] = b"\x0ccapabilitiesF\0\0\0\x15\x12connection.blockedt\x01";

fn declare(client: &mut Client, queue: &str) -> String {
    client.say(&frame(1, &QueueDeclare { queue, ..Default::default() }));
    client.answer().expect("an answer")
}

fn ready(client: &mut Client, queue: &str) -> u64 {
    let said = declare(client, queue);
    let count = said.split("message_count=").nth(1).and_then(|rest| rest.split(' ').next()).and_then(|count| count.parse().ok());
    count.unwrap_or_else(|| panic!("no count in {said}"))
}

/// A message of [`BODY_BYTES`] that begins with its number.
fn message(routing_key: &str, number: u32) -> Vec<u8> {
    let mut body = number.to_be_bytes().to_vec();
    body.resize(BODY_BYTES, b'x');
    let publish = frame(1, &BasicPublish { routing_key, ..Default::default() });
    [publish, header(1, BODY_BYTES as u64), raw(FRAME_BODY, 1, &body)].concat()
}

fn consume(client: &mut Client, queue: &str) {
    client.say(&frame(1, &BasicConsume { queue, no_ack: true, ..Default::default() }));
}

/// Reads deliveries until `count` bodies have come.
fn take(client: &mut Client, count: usize) {
    let mut bodies = 0;
    while bodies < count {
        let line = client.answer().expect("a delivery");
        bodies += usize::from(line.starts_with("body 1 50000 bytes"));
    }
}

#[test]
fn publishers_wait_while_queues_are_over_the_limit_and_consumers_go_on() {
    let mut reactor = Reactor::start("[limits]\nqueue_bytes_max = \"1MiB\"\n");
    let mut consumer = Client::open(&reactor);
    declare(&mut consumer, "pile");
    let properties = RawTable::check(UNDERSTANDS_BLOCKED).expect("a table");
    let mut told = Client::open_as(&reactor, &ConnectionStartOk { client_properties: properties, ..Default::default() });
    let mut untold = Client::open(&reactor);

    (0..25).for_each(|number| told.say(&message("pile", number)));
    assert_eq!(told.answer().as_deref(), Some("method 0 connection.blocked reason=\"low on memory\""));
    let held = ready(&mut consumer, "pile");
    assert!((21..=25).contains(&held), "{held} messages of 50 KB stand where 1 MiB may");

    // Both publishers are held: what they say now is not heard before the pile is smaller, but for the one read in which the second
    // meets the limit.
    untold.say(&message("pile", 25));
    for publisher in [&mut told, &mut untold] {
        publisher.say(&[message("pile", 99), frame(1, &BasicQos::default())].concat());
    }
    for _ in 0..50 {
        assert!((held..=held + 2).contains(&ready(&mut consumer, "pile")), "a held publisher was read");
    }
    assert!(consumer.works(), "who only consumes is not held");

    consume(&mut consumer, "pile");
    assert!(consumer.answer().is_some_and(|line| line.contains("basic.consume-ok")));
    take(&mut consumer, 28);
    assert_eq!(told.answer().as_deref(), Some("method 0 connection.unblocked"));
    assert_eq!(told.answer().as_deref(), Some("method 1 basic.qos-ok"));
    assert_eq!(untold.answer().as_deref(), Some("method 1 basic.qos-ok"), "who does not understand blocked is told nothing");
    still_serves(&mut reactor);
}

#[test]
fn a_consumer_that_does_not_read_leaves_its_messages_in_the_queue_and_holds_up_nobody() {
    let mut reactor = Reactor::start("");
    let (mut slow, mut publisher, mut quick) = (Client::open(&reactor), Client::open(&reactor), Client::open(&reactor));
    for queue in ["slow", "quick"] {
        declare(&mut publisher, queue);
    }
    consume(&mut slow, "slow");
    consume(&mut quick, "quick");
    assert!(quick.answer().is_some_and(|line| line.contains("basic.consume-ok")));
    let before = reactor.memory_bytes();
    const COUNT: u32 = 1_000;
    for number in 0..COUNT {
        publisher.say(&message("slow", number));
        if number % 10 == 0 {
            publisher.say(&message("quick", number));
            take(&mut quick, 1);
        }
    }
    assert!(publisher.works());
    // What the sockets and the outbox take is not in the queue any more: a few MiB of 50.
    let waiting = ready(&mut publisher, "slow");
    assert!(waiting > u64::from(COUNT) * 3 / 4, "only {waiting} of {COUNT} wait in the queue");
    let grown = reactor.memory_bytes().saturating_sub(before);
    assert!(grown < 100 * MIB, "{} MiB for 50 MiB of messages", grown / MIB);

    let mut next = 0;
    while next < COUNT {
        let line = slow.line().expect("a delivery");
        if let Some(body) = line.strip_prefix("body 1 50000 bytes ") {
            let [a, b] = [(next >> 8) as u8, next as u8].map(|byte| byte.escape_ascii().to_string());
            assert!(body.starts_with(&format!("\"\\x00\\x00{a}{b}xxxx")), "message {next} is {}", &body[..body.len().min(40)]);
            next += 1;
        }
    }
    still_serves(&mut reactor);
}

#[test]
fn replies_to_a_peer_that_does_not_read_slow_down_their_sender_alone() {
    let mut reactor = Reactor::start("");
    let mut asking = Client::open(&reactor);
    let (mut working, mut other) = (Client::open(&reactor), Client::open(&reactor));
    declare(&mut working, "questions");
    asking.say(&frame(1, &BasicConsume { queue: "amq.rabbitmq.reply-to", no_ack: true, ..Default::default() }));
    assert!(asking.answer().is_some_and(|line| line.contains("basic.consume-ok")));
    let publish = frame(1, &BasicPublish { routing_key: "questions", ..Default::default() });
    // Property flags: reply_to only.
    let address = b"amq.rabbitmq.reply-to";
    let properties = [&[0, 60, 0, 0][..], &0u64.to_be_bytes(), &[0x02, 0x00, address.len() as u8], address].concat();
    asking.say(&[publish, raw(FRAME_HEADER, 1, &properties)].concat());
    consume(&mut working, "questions");
    let to = loop {
        let line = working.line().expect("the question");
        if let Some(at) = line.find("amq.rabbitmq.reply-to.") {
            break line[at..].split(['"', ' ', '}']).next().expect("an address").to_owned();
        }
    };
    let before = reactor.memory_bytes();
    working.stream.set_write_timeout(Some(Duration::from_millis(500))).expect("a timeout");
    let held = (0..4_000).any(|number| working.stream.write_all(&message(&to, number)).is_err());
    assert!(held, "200 MB of replies were taken for a peer that reads none");
    let grown = reactor.memory_bytes().saturating_sub(before);
    assert!(grown < 60 * MIB, "{} MiB of replies that nobody reads", grown / MIB);
    assert!(other.works(), "the others go on");
    still_serves(&mut reactor);
}
