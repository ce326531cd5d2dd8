//! The recorded clients talk to our session: it must accept every word, whatever the pieces in which it arrives.

use super::{Line, conversations};
use reactor::kernel::Instant;
use reactor::wire::amqp::frame::{FRAME_HEAD_BYTES, FRAME_METHOD};
use reactor::wire::amqp::{Event, Method, MethodId, Publish, Reply, ReplyCode, Session, SessionConfig};

/// A session with the read buffer and the caller's part of every answer.
pub struct Peer {
    pub session: Session,
    pub buffer: Vec<u8>,
    pub out: Vec<u8>,
    pub events: Vec<String>,
}

pub const NOW: Instant = Instant::ZERO;

impl Peer {
    pub fn new() -> Self {
        let session = Session::new(SessionConfig::default(), NOW);
        Peer { session, buffer: Vec::new(), out: Vec::new(), events: Vec::new() }
    }

    /// Reads what arrived and says yes to everything.
    pub fn receive(&mut self, bytes: &[u8]) {
        enum Answer {
            Nothing,
            Login,
            Open,
            Secret,
        }
        self.buffer.extend_from_slice(bytes);
        let mut rest = self.buffer.as_slice();
        while let Some(event) = self.session.next_event(&mut rest, NOW, &mut self.out) {
            self.events.push(match &event {
                Event::Publish(publish) => {
                    let (size, sum) = (publish.body.len(), publish.body.iter().map(|byte| u64::from(*byte)).sum::<u64>());
                    let Publish { channel, exchange, routing_key, mandatory, properties, .. } = publish;
                    format!("Publish {channel} {exchange:?} {routing_key:?} {mandatory} {size} bytes sum {sum}{properties}")
                }
                other => format!("{other:?}"),
            });
            let answer = match event {
                Event::Login(_) => Answer::Login,
                Event::Open { .. } => Answer::Open,
                Event::UpdateSecret { .. } => Answer::Secret,
                _ => Answer::Nothing,
            };
            match answer {
                Answer::Nothing => {}
                Answer::Login => self.session.accept_login(&mut self.out),
                Answer::Open => self.session.accept_open(&mut self.out),
                Answer::Secret => self.session.accept_secret(&mut self.out),
            }
        }
        let used = self.buffer.len() - rest.len();
        self.buffer.drain(..used);
    }
}

/// Plays the client's half in pieces of at most `piece` bytes, closing what the recorded server closed.
fn play(lines: &[Line], piece: usize) -> Peer {
    let mut peer = Peer::new();
    for line in lines {
        if line.by_client {
            line.bytes.chunks(piece).for_each(|bytes| peer.receive(bytes));
        } else if line.bytes[0] == FRAME_METHOD {
            let reply = Reply::new(ReplyCode::InternalError, "as recorded");
            match method(&line.bytes) {
                (channel, Method::ChannelClose(_)) => {
                    peer.session.close_channel(channel, &reply, MethodId::default(), &mut peer.out);
                }
                (_, Method::ConnectionClose(_)) => {
                    peer.session.close_connection(&reply, MethodId::default(), NOW, &mut peer.out);
                }
                _ => {}
            }
        }
    }
    peer
}

fn method(frame: &[u8]) -> (u16, Method<'_>) {
    let payload = &frame[FRAME_HEAD_BYTES..frame.len() - 1];
    (u16::from_be_bytes([frame[1], frame[2]]), Method::decode(payload).expect("a known method"))
}

#[test]
fn recorded_clients_are_accepted_to_the_end() {
    for (name, lines) in conversations() {
        let peer = play(&lines, usize::MAX);
        assert!(!peer.events.iter().any(|event| event.contains("Failed")), "{name}: {:#?}", peer.events);
        assert!(peer.buffer.is_empty(), "{name} leaves {} bytes", peer.buffer.len());
        let goodbye = lines
            .iter()
            .filter(|line| line.by_client && line.bytes[0] == FRAME_METHOD)
            .any(|line| matches!(method(&line.bytes), (0, Method::ConnectionClose(_) | Method::ConnectionCloseOk(_))));
        // Some only close the socket once the server has closed the connection.
        assert_eq!(peer.session.is_finished(), goodbye, "{name}: {:#?}", peer.events);
    }
}

#[test]
fn the_pieces_in_which_bytes_arrive_change_nothing() {
    for (name, lines) in conversations() {
        let whole = play(&lines, usize::MAX);
        for piece in [1, 2, 7, 8, 13, 100, 4096] {
            let pieces = play(&lines, piece);
            assert_eq!(whole.events, pieces.events, "{name} in pieces of {piece}");
            assert_eq!(whole.out, pieces.out, "{name} in pieces of {piece}");
        }
    }
}

#[test]
fn recorded_messages_arrive_with_their_properties() {
    let conversations = conversations();
    // amqplib takes a cluster id and does not send it.
    for (name, last) in
        [("pika-life", "cluster_id=\"c1\""), ("amqplib-life", "app_id=\"golden\""), ("lapin-life", "cluster_id=\"c3\"")]
    {
        let (_, lines) = conversations.iter().find(|(found, _)| found == name).expect("that recording");
        let events = play(lines, usize::MAX).events;
        let published = events.iter().find(|event| event.starts_with("Publish")).expect("a message");
        for part in ["5 bytes", "content_type=\"text/plain\"", "void: void", "expiration=\"60000\"", last] {
            assert!(published.contains(part), "{name}: {part} in {published}");
        }
    }
}
