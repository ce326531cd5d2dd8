//! Anything a peer may send, in any pieces: the session must not panic, must not hold or answer more than in proportion, must tell
//! the same however the bytes are cut, and must be able to write again what it decoded.
//!
//! The first byte of the input seeds the cuts and says whether the handshake is done for the fuzzer.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reactor::kernel::Instant;
use reactor::kernel::rng::Rng;
use reactor::wire::amqp::method::{ConnectionOpen, ConnectionStartOk, ConnectionTuneOk};
use reactor::wire::amqp::{Encode, Event, LongStr, Method, Session, SessionConfig, encode, frame, method};
use reactor::wire::trace;

fuzz_target!(|data: &[u8]| {
    let Some((&first, said)) = data.split_first() else { return };
    let bytes = if first & 1 == 1 { [&opening()[..], said].concat() } else { said.to_vec() };
    let whole = told(&bytes, None);
    let pieces = told(&bytes, Some(Rng::seeded(first.into())));
    assert_eq!(whole, pieces, "cut differently, told differently");

    let mut rest = bytes.as_slice();
    while trace::next_line(&mut rest).is_some() {}
    if let Ok(method) = Method::decode(said) {
        // Spare bits and `L` may be written differently, but what is written must read the same.
        let mut again = Vec::new();
        method.write(&mut again);
        let mut twice = Vec::new();
        Method::decode(&again).expect("what was decoded can be written and read").write(&mut twice);
        assert_eq!(again, twice);
    }
});

fn opening() -> Vec<u8> {
    let mut out = frame::PROTOCOL_HEADER.to_vec();
    encode::method(&mut out, 0, &ConnectionStartOk { mechanism: "PLAIN", response: LongStr(b"\0a\0b"), ..Default::default() });
    encode::method(&mut out, 0, &ConnectionTuneOk { channel_max: 10, frame_max: 4096, heartbeat: 0 });
    encode::method(&mut out, 0, &ConnectionOpen { virtual_host: "/", ..Default::default() });
    encode::method(&mut out, 1, &method::ChannelOpen::default());
    out
}

/// What the session says: events, and answers. `None` feeds everything at once.
fn told(bytes: &[u8], mut cuts: Option<Rng>) -> (Vec<String>, Vec<u8>) {
    let mut session = Session::new(SessionConfig::default(), Instant::ZERO);
    let (mut buffer, mut out, mut events, mut rest) = (Vec::new(), Vec::new(), Vec::new(), bytes);
    while !rest.is_empty() {
        let length = cuts.as_mut().map_or(usize::MAX, |rng| 1 + rng.below(40) as usize);
        let (piece, later) = rest.split_at(rest.len().min(length));
        rest = later;
        buffer.extend_from_slice(piece);
        let mut input: &[u8] = &buffer;
        while let Some(event) = session.next_event(&mut input, Instant::ZERO, &mut out) {
            events.push(match &event {
                Event::Publish(publish) => format!("{} {:?} {:?}", publish.channel, publish.properties, &*publish.body),
                other => format!("{other:?}"),
            });
            match event {
                Event::Login(_) => session.accept_login(&mut out),
                Event::Open { .. } => session.accept_open(&mut out),
                Event::UpdateSecret { .. } => session.accept_secret(&mut out),
                _ => {}
            }
        }
        let used = buffer.len() - input.len();
        buffer.drain(..used);
        assert!(session.unfinished_bytes() <= 64 * 1024 * (1 + session.channel_count()) + 2 * bytes.len());
    }
    assert!(out.len() <= 2_000 + 4 * bytes.len());
    (events, out)
}
