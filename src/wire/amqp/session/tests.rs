//! Bytes in, text out: what a peer says becomes events and answers, both shown as lines.

use super::*;
use crate::model::table::{Field, Table};
use crate::wire::amqp::frame::{FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_METHOD, FrameHead, PROTOCOL_HEADER};
use crate::wire::amqp::method::*;
use crate::wire::amqp::primitive::LongStr;
use crate::wire::amqp::table::{RawTable, encoded};
use crate::wire::amqp::{Body, PropertyList};
use crate::wire::trace;

struct Peer {
    session: Session,
    now: Instant,
    buffer: Vec<u8>,
    /// Taken by [`Peer::answers`].
    out: Vec<u8>,
}

impl Peer {
    fn new() -> Self {
        Peer {
            session: Session::new(SessionConfig::default(), Instant::ZERO),
            now: Instant::ZERO,
            buffer: Vec::new(),
            out: Vec::new(),
        }
    }

    fn running() -> Self {
        Self::tuned(2_047, 131_072, 0)
    }

    fn tuned(channel_max: u16, frame_max: u32, heartbeat: u16) -> Self {
        let mut peer = Self::new();
        peer.receive(PROTOCOL_HEADER);
        peer.receive(&frame(0, &start_ok("PLAIN", b"\0guest\0guest")));
        peer.receive(&frame(0, &ConnectionTuneOk { channel_max, frame_max, heartbeat }));
        peer.receive(&frame(0, &ConnectionOpen { virtual_host: "/", ..Default::default() }));
        assert!(peer.session.is_running());
        peer.receive(&frame(1, &ChannelOpen::default()));
        peer.answers();
        peer
    }

    /// Reads, says yes to login and vhost, and returns the events as lines.
    fn receive(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        self.buffer.extend_from_slice(bytes);
        let mut rest = self.buffer.as_slice();
        while let Some(event) = self.session.next_event(&mut rest, self.now, &mut self.out) {
            events.push(match &event {
                Event::Publish(publish) => {
                    format!("Publish {} {} {}", publish.channel, publish.routing_key, publish.body.escape_ascii())
                }
                Event::Method { channel, method } => format!("{channel} {}", method.name()),
                other => format!("{other:?}"),
            });
            match event {
                Event::Login(_) => self.session.accept_login(&mut self.out),
                Event::Open { .. } => self.session.accept_open(&mut self.out),
                _ => {}
            }
        }
        let used = self.buffer.len() - rest.len();
        self.buffer.drain(..used);
        events
    }

    fn answers(&mut self) -> Vec<String> {
        let (out, mut lines) = (std::mem::take(&mut self.out), Vec::new());
        let mut rest = out.as_slice();
        while let Some(line) = trace::next_line(&mut rest) {
            lines.push(line);
        }
        assert!(rest.is_empty());
        lines
    }

    fn after(&mut self, seconds: u64) -> Option<Finish> {
        self.now = self.now + Duration::from_secs(seconds);
        self.session.handle_timeout(self.now, &mut self.out)
    }
}

fn frame(channel: u16, method: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    encode::method(&mut out, channel, method);
    out
}

fn raw(kind: u8, channel: u16, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead { kind, channel, size: payload.len() as u32 };
    [&head.to_bytes(), payload, &[FRAME_END]].concat()
}

fn start_ok<'a>(mechanism: &'a str, response: &'a [u8]) -> ConnectionStartOk<'a> {
    ConnectionStartOk { mechanism, response: LongStr(response), locale: "en_US", ..Default::default() }
}

fn publish(channel: u16, routing_key: &str) -> Vec<u8> {
    frame(channel, &BasicPublish { routing_key, ..Default::default() })
}

fn header(channel: u16, body_size: u64) -> Vec<u8> {
    raw(FRAME_HEADER, channel, &[&[0, 60, 0, 0][..], &body_size.to_be_bytes(), &[0, 0]].concat())
}

fn body(channel: u16, bytes: &[u8]) -> Vec<u8> {
    raw(FRAME_BODY, channel, bytes)
}

fn qos() -> BasicQos {
    BasicQos { prefetch_count: 1, ..Default::default() }
}

#[test]
fn a_client_comes_in_step_by_step() {
    let mut peer = Peer::new();
    assert!(peer.receive(PROTOCOL_HEADER).is_empty());
    let start = peer.answers().join("\n");
    assert!(start.starts_with("method 0 connection.start version_major=0 version_minor=9 server_properties={capabilities: {"));
    for part in ["product: \"RabbitMQ\"", "version: \"3.13.7\"", "platform: \"reactor ", "consumer_cancel_notify: true"] {
        assert!(start.contains(part), "{part} in {start}");
    }
    let login = encoded(&Table::new().with("LOGIN", Field::text("ann")).with("PASSWORD", Field::text("secret")));
    let events = peer.receive(&frame(0, &start_ok("AMQPLAIN", &login)));
    assert_eq!(events, ["Login(Login(AMQPLAIN \"ann\" {}))"], "and no password");
    assert_eq!(peer.answers(), ["method 0 connection.tune channel_max=2047 frame_max=131072 heartbeat=60"]);
    assert!(peer.receive(&frame(0, &ConnectionTuneOk { channel_max: 10, frame_max: 4096, heartbeat: 5 })).is_empty());
    let events = peer.receive(&frame(0, &ConnectionOpen { virtual_host: "blue", ..Default::default() }));
    assert_eq!(events, ["Open { vhost: \"blue\" }"]);
    assert_eq!(peer.answers(), ["method 0 connection.open-ok reserved_1=\"\""]);
    assert_eq!(peer.session.tune(), Tune { channel_max: 10, frame_max: 4096, heartbeat: 5 });
}

#[test]
fn the_header_of_amqp_0_9_means_0_9_1_whatever_the_pieces() {
    let mut peer = Peer::new();
    for byte in b"AMQP\x01\x01\x00\x09" {
        assert!(peer.receive(&[*byte]).is_empty() && !peer.session.is_finished());
    }
    assert!(peer.answers().join("\n").starts_with("method 0 connection.start version_major=0 version_minor=9 "));
}

#[test]
fn another_protocol_is_answered_with_ours() {
    for foreign in
        [&b"AMQP\x00\x01\x00\x00"[..], b"AMQP\x03\x01\x00\x00", b"AMQP\x01\x01\x08\x00", b"GET / HTTP/1.1\r\n", b"AMQX"]
    {
        let mut peer = Peer::new();
        assert_eq!(peer.receive(foreign), ["Finished(ForeignProtocol)"]);
        assert_eq!((peer.out.as_slice(), peer.session.is_finished()), (&PROTOCOL_HEADER[..], true));
        assert!(peer.receive(b"more").is_empty() && peer.buffer.is_empty());
    }
}

#[test]
fn a_refused_login_is_said_to_clients_that_understand_it() {
    let capable = Table::new().with("authentication_failure_close", Field::Bool(true));
    let capable = encoded(&Table::new().with("capabilities", Field::Table(capable)));
    for (properties, expected) in [(&capable[..], 1), (&[], 0)] {
        let mut peer = Peer::new();
        let client_properties = RawTable::check(properties).unwrap();
        let input =
            [&PROTOCOL_HEADER[..], &frame(0, &ConnectionStartOk { client_properties, ..start_ok("PLAIN", b"\0a\0b") })].concat();
        let mut rest = input.as_slice();
        assert!(
            matches!(peer.session.next_event(&mut rest, peer.now, &mut peer.out), Some(Event::Login(login)) if login.user == "a")
        );
        peer.answers();
        peer.session.refuse_login(&Reply::new(ReplyCode::AccessRefused, "no"), peer.now, &mut peer.out);
        assert_eq!(peer.answers().len(), expected);
        assert_eq!(peer.session.is_finished(), expected == 0);
    }
}

#[test]
fn the_wrong_word_in_the_handshake_closes_with_rabbitmqs_reply() {
    let tune = |channel_max, frame_max| frame(0, &ConnectionTuneOk { channel_max, frame_max, heartbeat: 0 });
    let plain = frame(0, &start_ok("PLAIN", b"\0guest\0guest"));
    let cases = [
        (frame(0, &start_ok("NTLM", b"")), "503 COMMAND_INVALID - unknown authentication mechanism 'NTLM'"),
        (frame(0, &start_ok("PLAIN", b"abc")), "502 SYNTAX_ERROR - invalid PLAIN response"),
        (tune(1, 4096), "504 CHANNEL_ERROR - unexpected method in connection state starting"),
        (raw(FRAME_METHOD, 0, &[0; 16_385]), "501 FRAME_ERROR - type 1, all octets = <<>>: {frame_too_large,16385,16376}"),
        ([&plain[..], &tune(0, 4096)].concat(), "530 NOT_ALLOWED - negotiated channel_max = 0 (no limit) is higher"),
        ([&plain[..], &tune(9, 0)].concat(), "530 NOT_ALLOWED - negotiated frame_max = 0 (no limit) is higher"),
        ([&plain[..], &tune(9, 131_073)].concat(), "530 NOT_ALLOWED - negotiated frame_max = 131073 is higher"),
        (
            [&plain[..], &tune(9, 4096), &frame(1, &ChannelOpen::default())].concat(),
            "505 UNEXPECTED_FRAME - type 1, all octets = <<0,20,0,10,0>>",
        ),
    ];
    for (said, expected) in cases {
        let mut peer = Peer::new();
        let events = peer.receive(&[&PROTOCOL_HEADER[..], &said].concat());
        let last = events.last().unwrap();
        assert!(last.starts_with("Failed"), "{events:?}");
        let close = peer.answers().pop().unwrap();
        let (code, text) = expected.split_once(' ').unwrap();
        assert!(close.contains(&format!("connection.close reply_code={code} reply_text=\"{text}")), "{close}");
    }
}

#[test]
fn the_wrong_frame_closes_the_connection_with_rabbitmqs_reply() {
    let unknown = raw(FRAME_METHOD, 1, &[0, 60, 0, 99]);
    let declare = |arguments: &[u8]| {
        let length = (arguments.len() as u32).to_be_bytes();
        raw(FRAME_METHOD, 1, &[&[0, 50, 0, 10, 0, 0, 0, 0][..], &length, arguments].concat())
    };
    let mut bad_end = publish(1, "nowhere");
    *bad_end.last_mut().unwrap() = 0;
    let wrong_class = raw(FRAME_HEADER, 1, &[&[0, 50, 0, 0][..], &3u64.to_be_bytes(), &[0, 0]].concat());
    let bad_flags = raw(FRAME_HEADER, 1, &[&[0, 60, 0, 0][..], &3u64.to_be_bytes(), &[0, 1]].concat());
    let start = publish(1, "q");
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (raw(9, 1, b"abc"), "501 FRAME_ERROR - type 9, "),
        (bad_end, "{invalid_frame_end_marker,0}"),
        (raw(FRAME_BODY, 1, &[0; 131_073]), "501 FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,131073,131064}"),
        (raw(8, 1, b""), "505 UNEXPECTED_FRAME - type 8, all octets = <<>>"),
        (raw(8, 0, b"abc"), "501 FRAME_ERROR - type 8, all octets = <<97,98,99>>: unknown_frame"),
        (body(0, b"abc"), "505 UNEXPECTED_FRAME - type 3, all octets = <<97,98,99>>"),
        (body(1, b"abc"), "505 UNEXPECTED_FRAME - expected method frame, got non method frame instead"),
        (header(1, 3), "505 UNEXPECTED_FRAME - expected method frame, got non method frame instead"),
        (
            [&start[..], &start].concat(),
            "505 UNEXPECTED_FRAME - expected content header for class 60, got non content header frame instead",
        ),
        (
            [&start[..], &body(1, b"a")].concat(),
            "505 UNEXPECTED_FRAME - expected content header for class 60, got non content header",
        ),
        ([&start[..], &wrong_class].concat(), "expected content header for class 60, got one for class 50 instead"),
        (
            [&start[..], &header(1, 3), &start].concat(),
            "505 UNEXPECTED_FRAME - expected content body, got non content body frame instead",
        ),
        ([&start[..], &header(1, 3), &body(1, b"abcd")].concat(), "501 FRAME_ERROR - content body is longer than the 3 bytes"),
        ([&start[..], &bad_flags].concat(), "502 SYNTAX_ERROR - property flags 0x0001 name unknown properties"),
        (unknown, "540 NOT_IMPLEMENTED - unknown class 60 or method 99"),
        (frame(1, &BasicGetEmpty::default()), "503 COMMAND_INVALID - unimplemented method"),
        (frame(1, &ConnectionOpen::default()), "503 COMMAND_INVALID - unimplemented method"),
        (frame(0, &qos()), "504 CHANNEL_ERROR - unexpected method in connection state running"),
        (frame(1, &ChannelOpen::default()), "504 CHANNEL_ERROR - second 'channel.open' seen"),
        (frame(2, &qos()), "504 CHANNEL_ERROR - expected 'channel.open'"),
        (raw(FRAME_METHOD, 1, &[0, 60, 0, 10, 0]), "501 FRAME_ERROR - cannot decode <<0>>"),
        (
            raw(FRAME_METHOD, 1, &[0, 60, 0, 10, 0, 0, 0, 0, 0, 1, 0, 9]),
            "501 FRAME_ERROR - cannot decode <<0,0,0,0,0,1,0,9>>: 1 bytes follow",
        ),
        (declare(&[1, b'Z', b'Q', b'x']), "502 SYNTAX_ERROR - unknown field type 0x51 in a table"),
        (declare(&[1, 0xff, b'V']), "501 FRAME_ERROR - Malformed UTF-8 in shortstr"),
    ];
    for (said, expected) in cases {
        let mut peer = Peer::running();
        let events = peer.receive(&said);
        assert!(matches!(&events[..], [only] if only.starts_with("Failed")), "{expected}: {events:?}");
        let answers = peer.answers();
        let [close] = &answers[..] else { panic!("{answers:?}") };
        let code = expected.split(' ').next().unwrap();
        assert!(close.contains(expected.trim_start_matches(code).trim_start()), "{expected} in {close}");
        assert!(code.parse::<u16>().is_err() || close.contains(&format!("reply_code={code}")), "{expected} in {close}");
    }
}

#[test]
fn whole_messages_are_borrowed_from_the_input() {
    let mut peer = Peer::running();
    let input = [publish(1, "q"), header(1, 5), body(1, b"hello"), frame(1, &qos())].concat();
    let range = input.as_ptr_range();
    let mut rest = input.as_slice();
    match peer.session.next_event(&mut rest, peer.now, &mut peer.out) {
        Some(Event::Publish(publish)) => {
            assert!(matches!(publish.body, Body::Slice(slice) if range.contains(&slice.as_ptr()) && slice == b"hello"));
            assert!(range.contains(&publish.routing_key.as_ptr()) && range.contains(&publish.properties.as_bytes().as_ptr()));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(peer.session.next_event(&mut rest, peer.now, &mut peer.out), Some(Event::Method { channel: 1, .. })));
    assert!(rest.is_empty());
}

#[test]
fn a_small_message_is_waited_for_and_a_large_one_collected() {
    let mut peer = Peer::running();
    let small = [publish(1, "q"), header(1, 5), body(1, b"hello")].concat();
    assert!(peer.receive(&small[..small.len() - 1]).is_empty());
    assert_eq!((peer.buffer.len(), peer.session.wanted()), (small.len() - 1, small.len()));
    assert_eq!(peer.receive(&small[small.len() - 1..]), ["Publish 1 q hello"]);

    let bytes = vec![b'x'; 100_000];
    let large = [publish(1, "q"), header(1, 100_000), body(1, &bytes)].concat();
    assert!(peer.receive(&large[..50_000]).is_empty());
    assert!(peer.buffer.is_empty(), "what is here is taken");
    assert!(peer.receive(&large[50_000..large.len() - 1]).is_empty());
    let events = peer.receive(&large[large.len() - 1..]);
    assert_eq!(events, [format!("Publish 1 q {}", "x".repeat(100_000))]);
}

#[test]
fn messages_on_several_channels_may_be_interleaved_with_anything() {
    let mut peer = Peer::running();
    peer.receive(&frame(2, &ChannelOpen::default()));
    let said = [
        publish(1, "one"),
        publish(2, "two"),
        header(1, 4),
        frame(0, &ConnectionUpdateSecret { new_secret: LongStr(b"s"), reason: "r" }),
        body(1, b"ab"),
        encode::HEARTBEAT.to_vec(),
        header(2, 0),
        body(1, b""),
        frame(2, &qos()),
        body(1, b"cd"),
    ]
    .concat();
    let expected = ["UpdateSecret { secret: [115], reason: \"r\" }", "Publish 2 two ", "2 basic.qos", "Publish 1 one abcd"];
    assert_eq!(peer.receive(&said), expected);
}

#[test]
fn memory_for_a_body_follows_what_came_not_what_was_promised() {
    let mut peer = Peer::running();
    peer.receive(&[publish(1, "q"), header(1, 134_217_728), body(1, &[0; 20_000])].concat());
    assert!(peer.session.unfinished_bytes() <= 64 * 1024);
    let mut sent = 20_000;
    for _ in 0..20 {
        peer.receive(&body(1, &[0; 100_000]));
        sent += 100_000;
        assert!(peer.session.unfinished_bytes() <= 2 * sent, "{} for {sent}", peer.session.unfinished_bytes());
    }
}

#[test]
fn a_message_above_the_limit_closes_its_channel_before_its_body_is_read() {
    let mut peer = Peer::running();
    let events = peer.receive(&[publish(1, "q"), header(1, 134_217_729), body(1, b"abc"), body(1, b"def")].concat());
    assert!(matches!(&events[..], [only] if only.starts_with("ChannelFailed")), "{events:?}");
    let text = "PRECONDITION_FAILED - message size 134217729 is larger than configured max size 134217728";
    assert_eq!(peer.answers(), [format!("method 1 channel.close reply_code=406 reply_text=\"{text}\" class_id=60 method_id=40")]);
    assert!(peer.receive(&frame(1, &ChannelCloseOk {})).is_empty());
    assert_eq!(peer.receive(&frame(1, &ChannelOpen::default())), ["ChannelOpened { channel: 1 }"]);
}

#[test]
fn nothing_of_a_channel_we_closed_is_told_until_it_is_opened_anew() {
    let mut peer = Peer::running();
    peer.receive(&[publish(1, "q"), header(1, 200_000), body(1, &[0; 90_000])].concat());
    let reply = Reply::new(ReplyCode::NotFound, "no queue 'q' in vhost '/'");
    peer.session.close_channel(1, &reply, QueueDeclare::ID, &mut peer.out);
    assert!(!peer.session.is_open(1) && peer.session.unfinished_bytes() == 0);
    let answer =
        "method 1 channel.close reply_code=404 reply_text=\"NOT_FOUND - no queue 'q' in vhost '/'\" class_id=50 method_id=10";
    assert_eq!(peer.answers(), [answer]);
    let late =
        [body(1, &[0; 110_000]), frame(1, &qos()), publish(1, "q"), header(1, 1), body(1, b"x"), raw(FRAME_METHOD, 1, b"?")];
    assert!(peer.receive(&late.concat()).is_empty());
    assert_eq!(
        peer.receive(&[frame(1, &ChannelCloseOk {}), frame(1, &ChannelOpen::default())].concat()),
        ["ChannelOpened { channel: 1 }"]
    );
}

#[test]
fn closes_that_cross_are_both_answered_and_the_number_can_be_used_again() {
    let mut peer = Peer::running();
    peer.session.close_channel(1, &Reply::new(ReplyCode::NotFound, "x"), MethodId::default(), &mut peer.out);
    peer.answers();
    assert!(peer.receive(&frame(1, &ChannelClose { reply_code: 200, ..Default::default() })).is_empty());
    assert_eq!(peer.answers(), ["method 1 channel.close-ok"]);
    assert_eq!(peer.receive(&frame(1, &ChannelOpen::default())), ["ChannelOpened { channel: 1 }"]);
    assert!(peer.receive(&frame(1, &ChannelCloseOk {})).is_empty(), "a late answer does no harm");
}

#[test]
fn the_peers_closes_are_answered() {
    let mut peer = Peer::running();
    let close = ChannelClose { reply_code: 200, reply_text: "bye", ..Default::default() };
    assert_eq!(peer.receive(&frame(1, &close)), ["ChannelClosed { channel: 1, code: 200, text: \"bye\" }"]);
    assert_eq!(peer.answers(), ["method 1 channel.close-ok"]);
    let close = ConnectionClose { reply_code: 200, reply_text: "done", ..Default::default() };
    let events = peer.receive(&[frame(0, &close), frame(1, &qos())].concat());
    assert_eq!(events, ["Finished(ByPeer { code: 200, text: \"done\" })"]);
    assert_eq!(peer.answers(), ["method 0 connection.close-ok"]);
    assert!(peer.session.is_finished());
}

#[test]
fn after_our_connection_close_everything_but_the_answer_is_discarded() {
    let mut peer = Peer::running();
    peer.session.close_connection(&Reply::new(ReplyCode::ConnectionForced, "bye"), MethodId::default(), peer.now, &mut peer.out);
    assert_eq!(peer.answers().len(), 1);
    let late = [
        frame(1, &qos()),
        publish(1, "q"),
        header(1, 90_000),
        body(1, &[0; 90_000]),
        frame(7, &qos()),
        raw(FRAME_METHOD, 0, b"?"),
    ];
    assert!(peer.receive(&late.concat()).is_empty());
    assert!(peer.receive(&frame(0, &ConnectionClose::default())).is_empty());
    assert_eq!(peer.answers(), ["method 0 connection.close-ok"]);
    assert_eq!(peer.receive(&frame(0, &ConnectionCloseOk {})), ["Finished(ByUs)"]);
}

#[test]
fn open_channels_are_counted_and_their_numbers_are_free() {
    let mut peer = Peer::tuned(3, 4096, 0);
    let open = |channel| frame(channel, &ChannelOpen::default());
    assert_eq!(peer.receive(&[open(65_535), open(6)].concat()).len(), 2);
    peer.answers();
    assert!(peer.receive(&open(7))[0].starts_with("Failed"));
    let text = "NOT_ALLOWED - number of channels opened (3) has reached the negotiated channel_max (3)";
    assert!(peer.answers()[0].contains(text));
}

#[test]
fn heartbeats_go_out_after_silence_and_two_missed_ones_end_it() {
    let mut peer = Peer::tuned(10, 4096, 10);
    assert_eq!(peer.session.poll_timeout(), Some(Instant::ZERO + Duration::from_secs(5)));
    assert_eq!(peer.after(4), None);
    assert!(peer.answers().is_empty());
    peer.session.sent(peer.now);
    assert_eq!(peer.after(4), None);
    assert!(peer.answers().is_empty(), "something was sent 4 s ago");
    assert_eq!(peer.after(1), None);
    assert_eq!(peer.answers(), ["heartbeat"]);
    peer.receive(&encode::HEARTBEAT);
    assert_eq!(peer.after(19), None);
    assert_eq!(peer.after(1), Some(Finish::HeartbeatMissed));
    assert!(peer.session.is_finished() && peer.session.poll_timeout().is_none());
}

#[test]
fn without_heartbeats_an_idle_connection_lives() {
    let peer = Peer::running();
    assert_eq!(peer.session.poll_timeout(), None);
}

#[test]
fn half_open_handshakes_and_unanswered_closes_end() {
    let mut peer = Peer::new();
    peer.receive(PROTOCOL_HEADER);
    assert_eq!(peer.after(9), None);
    peer.receive(&frame(0, &start_ok("PLAIN", b"\0guest\0guest")));
    assert_eq!(peer.after(1), Some(Finish::HandshakeTimeout));

    let mut peer = Peer::running();
    peer.receive(&raw(9, 0, b""));
    assert!(peer.receive(b"garbage").is_empty());
    assert_eq!(peer.after(10), Some(Finish::CloseTimeout));
}

#[test]
fn unfinished_messages_on_many_channels_are_bounded_together() {
    let mut peer = Peer::running();
    let mut failed = Vec::new();
    for channel in 2..100 {
        peer.receive(&[frame(channel, &ChannelOpen::default()), publish(channel, "q"), header(channel, 134_217_728)].concat());
        let piece = body(channel, &[0; 131_000]);
        for _ in 0..64 {
            failed.extend(peer.receive(&piece));
        }
        if !failed.is_empty() {
            break;
        }
    }
    assert!(failed.len() == 1 && failed[0].contains("RESOURCE_ERROR - unfinished messages"), "{failed:?}");
    assert_eq!(peer.session.unfinished_bytes(), 0);
}

#[test]
fn encoded_messages_are_split_by_frame_max_and_read_back() {
    let properties = PropertyList { content_type: Some("text/plain"), priority: Some(3), ..Default::default() }.to_bytes();
    for (size, frames) in [(0, 0), (1, 1), (4_088, 1), (4_089, 2), (9_000, 3)] {
        let bytes = vec![b'z'; size];
        let mut out = Vec::new();
        let content = encode::Content { properties: &properties, body: &bytes };
        encode::content(&mut out, 1, &BasicPublish { routing_key: "q", ..Default::default() }, content, 4_096);
        assert_eq!(encode::body_frames(1, size, 4_096).count(), frames);
        let mut peer = Peer::tuned(1, 4_096, 0);
        assert_eq!(peer.receive(&out), [format!("Publish 1 q {}", "z".repeat(size))]);
    }
    assert!(encode::header_fits(4_076, 4_096) && !encode::header_fits(4_077, 4_096));
}
