//! Peers that break the protocol, lie about lengths, fall silent or flood: each gets RabbitMQ's answer or a closed socket, memory
//! stays bounded, and a well-behaved client is served all the while.

use crate::support::{DEADLINE, Reactor};
use reactor::kernel::rng::Rng;
use reactor::wire::amqp::frame::{FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_METHOD, FrameHead, PROTOCOL_HEADER};
use reactor::wire::amqp::method::*;
use reactor::wire::amqp::{Encode, LongStr, encode};
use reactor::wire::trace;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::time::Duration;

/// A client that says exactly the bytes it is told to.
pub struct Client {
    pub stream: TcpStream,
    heard: Vec<u8>,
}

impl Client {
    pub fn dial(reactor: &Reactor) -> Self {
        let stream = TcpStream::connect(("127.0.0.1", reactor.port("amqp"))).expect("the door is open");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        Client { stream, heard: Vec::new() }
    }

    /// Logged in, with channel 1 open.
    pub fn open(reactor: &Reactor) -> Self {
        Self::open_as(reactor, &ConnectionStartOk::default())
    }

    /// As [`Client::open`], saying this of itself.
    pub fn open_as(reactor: &Reactor, itself: &ConnectionStartOk<'_>) -> Self {
        let mut client = Self::dial(reactor);
        client.say(&opening_as(itself, 2_047));
        while client.line().expect("the handshake goes on") != "method 1 channel.open-ok reserved_1=<0 bytes>" {}
        client
    }

    /// A peer that has closed already makes this fail, which is its right.
    pub fn say(&mut self, bytes: &[u8]) {
        _ = self.stream.write_all(bytes);
    }

    /// The next frame as text; `None` once the socket is closed.
    pub fn line(&mut self) -> Option<String> {
        loop {
            let mut rest = self.heard.as_slice();
            if let Some(line) = trace::next_line(&mut rest) {
                let used = self.heard.len() - rest.len();
                self.heard.drain(..used);
                return Some(line);
            }
            let mut piece = [0; 65_536];
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => self.heard.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("neither a frame nor a close: {error}"),
            }
        }
    }

    /// The first frame that is no answer to the handshake.
    pub fn answer(&mut self) -> Option<String> {
        loop {
            let line = self.line()?;
            let handshake = ["connection.start", "connection.tune", "connection.open-ok", "channel.open-ok"];
            if !handshake.iter().any(|name| line.contains(name)) && line != "heartbeat" {
                return Some(line);
            }
        }
    }

    /// Asks something and gets the answer.
    pub fn works(&mut self) -> bool {
        self.say(&frame(1, &BasicQos::default()));
        self.answer().is_some_and(|line| line == "method 1 basic.qos-ok")
    }
}

fn opening(channel_max: u16) -> Vec<u8> {
    opening_as(&ConnectionStartOk::default(), channel_max)
}

fn opening_as(itself: &ConnectionStartOk<'_>, channel_max: u16) -> Vec<u8> {
    let client_properties = itself.client_properties;
    let response = LongStr(b"\0guest\0guest");
    let start_ok = ConnectionStartOk { client_properties, mechanism: "PLAIN", response, locale: "en_US" };
    [
        PROTOCOL_HEADER.to_vec(),
        frame(0, &start_ok),
        frame(0, &ConnectionTuneOk { channel_max, frame_max: 131_072, heartbeat: 0 }),
        frame(0, &ConnectionOpen { virtual_host: "/", ..Default::default() }),
        frame(1, &ChannelOpen::default()),
    ]
    .concat()
}

pub fn frame(channel: u16, method: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    encode::method(&mut out, channel, method);
    out
}

pub fn raw(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    [&FrameHead { kind, channel, size: payload.len() as u32 }.to_bytes(), payload, &[FRAME_END]].concat()
}

fn publish(channel: u16, routing_key: &str) -> Vec<u8> {
    frame(channel, &BasicPublish { routing_key, mandatory: true, ..Default::default() })
}

pub fn header(channel: u16, body_size: u64) -> Vec<u8> {
    raw(FRAME_HEADER, channel, &[&[0, 60, 0, 0][..], &body_size.to_be_bytes(), &[0, 0]].concat())
}

fn declare(queue: &str) -> Vec<u8> {
    frame(1, &QueueDeclare { queue, exclusive: true, ..Default::default() })
}

/// What every test asks last.
pub fn still_serves(reactor: &mut Reactor) {
    assert!(reactor.is_running(), "reactor is gone:\n{}", reactor.stderr());
    assert!(Client::open(reactor).works());
}

#[test]
fn who_says_goodbye_closes_the_socket_itself() {
    let reactor = Reactor::start("");
    let mut client = Client::open(&reactor);
    client.say(&frame(0, &ConnectionClose { reply_code: 200, ..Default::default() }));
    assert_eq!(client.answer().as_deref(), Some("method 0 connection.close-ok"));
    // lapin 2 calls an end that it reads together with close-ok a lost connection.
    client.stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a timeout");
    let early = client.stream.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock), "still open");
    client.stream.shutdown(Shutdown::Write).expect("our end");
    client.stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    assert_eq!(client.stream.read(&mut [0]).expect("no reset"), 0);
}

#[test]
fn an_unknown_protocol_version_is_answered_with_ours_and_closed() {
    let mut reactor = Reactor::start("");
    for foreign in [&b"AMQP\x00\x01\x00\x00"[..], b"AMQP\x03\x01\x00\x00", b"AMQP\x01\x01\x00\x0a"] {
        let mut client = Client::dial(&reactor);
        client.say(foreign);
        assert_eq!(client.line().as_deref(), Some("protocol [0, 0, 9, 1]"));
        assert_eq!(client.line(), None);
    }
    still_serves(&mut reactor);
}

#[test]
fn a_wrong_frame_is_answered_as_rabbitmq_does() {
    let mut reactor = Reactor::start("");
    let mut bad_end = publish(1, "q");
    *bad_end.last_mut().expect("a frame") = 0;
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (raw(9, 1, b"abc"), "reply_code=501"),
        (bad_end, "reply_code=501"),
        (FrameHead { kind: FRAME_BODY, channel: 1, size: u32::MAX }.to_bytes().to_vec(), "frame_too_large,4294967295,131064"),
        (raw(FRAME_METHOD, 1, &[0, 60, 0, 10, 0]), "reply_code=501"),
        (raw(FRAME_METHOD, 1, &[&[0, 50, 0, 10, 0, 0, 0, 0][..], &u32::MAX.to_be_bytes()].concat()), "reply_code=501"),
        (raw(FRAME_METHOD, 1, &[0, 50, 0, 10, 0, 0, 0, 0, 0, 0, 0, 4, 1, b'Z', b'Q', b'x']), "reply_code=502"),
        (frame(1, &BasicGetEmpty::default()), "COMMAND_INVALID - unimplemented method"),
        (frame(9, &BasicQos::default()), "CHANNEL_ERROR - expected 'channel.open'"),
        (frame(1, &ChannelOpen::default()), "CHANNEL_ERROR - second 'channel.open' seen"),
        (raw(FRAME_BODY, 1, b"abc"), "UNEXPECTED_FRAME - expected method frame, got non method frame instead"),
        (raw(FRAME_METHOD, 1, &[0, 60, 0, 99]), "reply_code=540"),
        ([publish(1, "q"), header(1, 3), raw(FRAME_BODY, 1, b"abcdef")].concat(), "reply_code=501"),
    ];
    for (said, expected) in cases {
        let mut client = Client::open(&reactor);
        client.say(&said);
        let answer = client.answer().expect("a reply");
        assert!(answer.contains("connection.close") && answer.contains(expected), "{expected}: {answer}");
        client.say(&frame(0, &ConnectionCloseOk {}));
        _ = client.stream.shutdown(Shutdown::Write);
        assert_eq!(client.answer(), None, "{expected}");
    }
    still_serves(&mut reactor);
}

#[test]
fn no_limit_is_refused_with_the_limit() {
    let mut reactor = Reactor::start("");
    let mut client = Client::dial(&reactor);
    client.say(&opening(0));
    let answer = client.answer().expect("a reply");
    assert!(
        answer.contains("reply_code=530") && answer.contains("channel_max = 0 (no limit) is higher than the maximum"),
        "{answer}"
    );
    still_serves(&mut reactor);
}

#[test]
fn a_handshake_that_stops_half_way_is_closed_in_time() {
    let mut reactor = Reactor::start("[limits]\nhandshake = \"300ms\"\n");
    let whole = opening(2_047);
    let tune = PROTOCOL_HEADER.len() + 60;
    let half_open: Vec<Client> = [1, 7, 8, 12, tune, whole.len() - 40]
        .iter()
        .map(|length| {
            let mut client = Client::dial(&reactor);
            client.say(&whole[..*length]);
            client
        })
        .collect();
    for mut client in half_open {
        while client.line().is_some() {}
    }
    still_serves(&mut reactor);
}

#[test]
fn a_peer_that_ignores_our_close_is_cut_off() {
    let mut reactor = Reactor::start("[limits]\nhandshake = \"300ms\"\n");
    let mut client = Client::open(&reactor);
    client.say(&raw(9, 1, b"abc"));
    assert!(client.answer().is_some_and(|line| line.contains("connection.close")));
    // Still talking; nothing of it is heard.
    client.say(&[0xff; 100_000]);
    assert_eq!(client.answer(), None);
    still_serves(&mut reactor);
}

#[test]
fn promised_bodies_take_no_memory_until_they_come() {
    let mut reactor = Reactor::start("");
    Client::open(&reactor);
    let before = reactor.memory_bytes();
    let mut clients = Vec::new();
    for _ in 0..100 {
        let mut client = Client::open(&reactor);
        let mut said = Vec::new();
        for channel in 2..12 {
            said.extend(frame(channel, &ChannelOpen::default()));
            said.extend(publish(channel, "q"));
            said.extend(header(channel, 134_217_728));
            said.extend(raw(FRAME_BODY, channel, b"the beginning of 128 MiB"));
        }
        client.say(&said);
        assert!(client.works());
        clients.push(client);
    }
    // 1000 promises of 128 MiB are 125 GiB; a first room of 64 KiB each is 64 MiB.
    let grown = reactor.memory_bytes().saturating_sub(before);
    assert!(grown < 200 * 1024 * 1024, "{} MiB for promises", grown >> 20);
    still_serves(&mut reactor);
}

#[test]
fn a_message_beyond_the_limit_closes_its_channel_only() {
    let mut reactor = Reactor::start("");
    let mut client = Client::open(&reactor);
    client.say(&[frame(2, &ChannelOpen::default()), publish(2, "q"), header(2, 134_217_729)].concat());
    let answer = client.answer().expect("a reply");
    assert!(
        answer.contains("method 2 channel.close reply_code=406") && answer.contains("larger than configured max size"),
        "{answer}"
    );
    assert!(client.works());
    still_serves(&mut reactor);
}

#[test]
fn a_hundred_thousand_tiny_frames_are_just_work() {
    let mut reactor = Reactor::start("");
    let mut client = Client::open(&reactor);
    let beats: Vec<u8> = encode::HEARTBEAT.repeat(50_000);
    client.say(&beats);
    // One-byte body frames.
    let mut slow = [publish(1, "nowhere"), header(1, 50_000)].concat();
    (0..50_000).for_each(|_| slow.extend(raw(FRAME_BODY, 1, b"x")));
    client.say(&slow);
    let answer = client.answer().expect("the message comes back");
    assert!(answer.contains("basic.return reply_code=312"), "{answer}");
    assert_eq!(client.answer().as_deref(), Some("header 1 body_size=50000"));
    assert!(client.answer().is_some_and(|line| line.starts_with("body 1 50000 bytes")));
    assert!(client.works());
    still_serves(&mut reactor);
}

#[test]
fn channels_opened_and_closed_ten_thousand_times_leave_nothing_behind() {
    let mut reactor = Reactor::start("");
    let mut client = Client::open(&reactor);
    let round: Vec<u8> = (2..102u16)
        .flat_map(|channel| [frame(channel, &ChannelOpen::default()), frame(channel, &ChannelClose::default())].concat())
        .collect();
    for number in 0..100 {
        client.say(&round);
        for _ in 0..100 {
            // channel.open-ok is not an answer.
            assert!(client.answer().is_some_and(|line| line.ends_with("channel.close-ok")), "round {number}");
        }
    }
    assert!(client.works());
    still_serves(&mut reactor);
}

#[test]
fn a_peer_that_never_reads_does_not_fill_memory() {
    let mut reactor = Reactor::start("");
    let mut client = Client::open(&reactor);
    client.say(&declare("hoard"));
    assert!(client.answer().is_some_and(|line| line.contains("queue.declare-ok")));
    let before = reactor.memory_bytes();
    // Every message comes back as unroutable; nobody takes it. 400 MB if the answers were kept.
    let body = vec![b'x'; 100_000];
    let message = [publish(1, "nowhere"), header(1, body.len() as u64), raw(FRAME_BODY, 1, &body)].concat();
    client.stream.set_write_timeout(Some(std::time::Duration::from_millis(500))).expect("a timeout");
    for _ in 0..4_000 {
        if client.stream.write_all(&message).is_err() {
            break;
        }
    }
    let grown = reactor.memory_bytes().saturating_sub(before);
    assert!(grown < 100 * 1024 * 1024, "{} MiB of answers nobody reads", grown >> 20);
    still_serves(&mut reactor);
}

#[test]
fn a_storm_of_half_dead_connections_leaves_room_for_a_good_one() {
    let mut reactor = Reactor::start("");
    let mut good = Client::open(&reactor);
    for round in 0..300 {
        let mut client = Client::dial(&reactor);
        client.say(&opening(2_047)[..round % 100]);
        if round % 3 == 0 {
            _ = client.stream.shutdown(Shutdown::Write);
        }
        assert!(round % 50 != 0 || good.works());
    }
    still_serves(&mut reactor);
}

#[test]
fn damaged_conversations_end_in_a_close_and_never_in_a_crash() {
    let mut reactor = Reactor::start("");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/amqp");
    let said = |path: std::path::PathBuf| -> Vec<u8> {
        let text = std::fs::read_to_string(path).expect("a recording");
        let hex = text.lines().filter_map(|line| line.strip_prefix("> ")).map(|line| line.split(' ').next().unwrap_or(""));
        hex.flat_map(|hex| {
            (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).expect("hex")).collect::<Vec<_>>()
        })
        .collect()
    };
    let recordings: Vec<Vec<u8>> = std::fs::read_dir(folder)
        .expect("recordings")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "frames"))
        .map(said)
        .collect();
    for seed in 0..400 {
        let mut rng = Rng::seeded(seed);
        let mut bytes = recordings[rng.below(recordings.len() as u64) as usize].clone();
        for _ in 0..1 + rng.below(5) {
            let at = 8 + rng.below(bytes.len() as u64 - 8) as usize;
            bytes[at] = rng.draw() as u8;
        }
        let mut client = Client::dial(&reactor);
        client.say(&bytes);
        _ = client.stream.shutdown(Shutdown::Write);
        while client.line().is_some() {}
        assert!(reactor.is_running(), "seed {seed}:\n{}", reactor.stderr());
    }
    still_serves(&mut reactor);
}
