//! What must hold for any input: written is read back, however it is cut, and noise is refused without harm.

use super::frame::{FRAME_END, FRAME_HEADER, FrameHead, PROTOCOL_HEADER};
use super::method::*;
use super::primitive::LongStr;
use super::table::{self, RawTable};
use super::{Body, Event, Malformed, Properties, PropertyList, Session, SessionConfig, encode};
use crate::kernel::Instant;
use crate::model::table::{Field, Table};
use proptest::collection::vec;
use proptest::prelude::*;

fn field() -> impl Strategy<Value = Field> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Field::Bool),
        any::<i8>().prop_map(Field::I8),
        any::<u8>().prop_map(Field::U8),
        any::<i16>().prop_map(Field::I16),
        any::<u16>().prop_map(Field::U16),
        any::<i32>().prop_map(Field::I32),
        any::<u32>().prop_map(Field::U32),
        any::<i64>().prop_map(Field::I64),
        // Not NaN, which equals nothing.
        (-1e30f32..1e30).prop_map(Field::F32),
        (-1e300f64..1e300).prop_map(Field::F64),
        any::<(u8, i32)>().prop_map(|(scale, value)| Field::Decimal { scale, value }),
        vec(any::<u8>(), 0..20).prop_map(|bytes| Field::Text(bytes.into())),
        vec(any::<u8>(), 0..20).prop_map(|bytes| Field::Bytes(bytes.into())),
        any::<u64>().prop_map(Field::Timestamp),
        Just(Field::Void),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![vec(inner.clone(), 0..6).prop_map(Field::Array), table_of(inner).prop_map(Field::Table)]
    })
}

fn table_of(field: impl Strategy<Value = Field>) -> impl Strategy<Value = Table> {
    vec((".{0,12}", field), 0..6).prop_map(Table)
}

fn some_table() -> impl Strategy<Value = Table> {
    table_of(field())
}

/// Nests `depth` tables (or arrays) in one another.
fn nested(depth: usize, arrays: bool) -> Vec<u8> {
    let wrap = |inner: Field| if arrays { Field::Array(vec![inner]) } else { Field::Table(Table::new().with("t", inner)) };
    let inner = (1..depth).fold(Field::Void, |inner, _| wrap(inner));
    table::encoded(&Table::new().with("t", inner))
}

/// A frame that any client may send on an open channel 1 or 2, and what comes of it.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let body_size = prop_oneof![4 => 0..200usize, 2 => 4_000..9_000usize, 1 => 16_000..60_000usize];
    let message = (1..=2u16, body_size, 40..40_000u32, some_table()).prop_map(|(channel, size, frame_max, headers)| {
        let headers = table::encoded(&headers);
        let headers = Some(RawTable::check(&headers).expect("encoded by us"));
        let properties = PropertyList { headers, priority: Some(7), ..Default::default() }.to_bytes();
        let body: Vec<u8> = (0..size).map(|at| at as u8).collect();
        let mut out = Vec::new();
        let content = encode::Content { properties: &properties, body: &body };
        encode::content(&mut out, channel, &BasicPublish { routing_key: "k", ..Default::default() }, content, frame_max);
        out
    });
    let method = (1..=2u16, any::<u64>(), any::<bool>()).prop_map(|(channel, delivery_tag, multiple)| {
        let mut out = Vec::new();
        encode::ack(&mut out, channel, delivery_tag, multiple);
        out
    });
    prop_oneof![3 => message, 2 => method, 1 => Just(encode::HEARTBEAT.to_vec())]
}

fn opening() -> Vec<u8> {
    let mut out = PROTOCOL_HEADER.to_vec();
    let start_ok = ConnectionStartOk { mechanism: "PLAIN", response: LongStr(b"\0a\0b"), ..Default::default() };
    encode::method(&mut out, 0, &start_ok);
    encode::method(&mut out, 0, &ConnectionTuneOk { channel_max: 10, frame_max: 131_072, heartbeat: 0 });
    encode::method(&mut out, 0, &ConnectionOpen { virtual_host: "/", ..Default::default() });
    encode::method(&mut out, 1, &ChannelOpen::default());
    encode::method(&mut out, 2, &ChannelOpen::default());
    out
}

/// Everything a session says of `bytes` that arrive in pieces of the given lengths (the last one repeated).
fn told(bytes: &[u8], pieces: &[usize]) -> (Vec<String>, Vec<u8>, usize) {
    let mut session = Session::new(SessionConfig::default(), Instant::ZERO);
    let (mut buffer, mut out, mut events, mut rest) = (Vec::new(), Vec::new(), Vec::new(), bytes);
    let mut pieces = pieces.iter().copied().chain(std::iter::repeat(pieces.last().copied().unwrap_or(usize::MAX)));
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.len().min(pieces.next().unwrap_or(1).max(1)));
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
                _ => {}
            }
        }
        let used = buffer.len() - input.len();
        buffer.drain(..used);
    }
    (events, out, session.unfinished_bytes())
}

proptest! {
    #[test]
    fn tables_are_read_as_written(table in some_table()) {
        let bytes = table::encoded(&table);
        let raw = RawTable::check(&bytes).expect("encoded by us");
        let again = raw.to_table();
        prop_assert_eq!(&again, &table);
        prop_assert_eq!(table::encoded(&again), bytes);
    }

    #[test]
    fn a_cut_or_noisy_table_is_refused_or_read_to_its_end(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(raw) = RawTable::check(&bytes) {
            // A checked table is read without a gap: all its bytes come back, but for `L`, which is written as `l`, and true as 1.
            prop_assert_eq!(table::encoded(&raw.to_table()).len(), bytes.len());
        }
    }

    #[test]
    fn properties_are_read_as_written(
        texts in vec(proptest::option::of(".{0,40}"), 9), octets in any::<(Option<u8>, Option<u8>, Option<u64>)>(),
        headers in proptest::option::of(some_table()),
    ) {
        let headers = headers.map(|table| table::encoded(&table));
        let text = |at: usize| texts[at].as_deref().filter(|text| text.len() <= 255);
        let list = PropertyList {
            content_type: text(0), content_encoding: text(1), headers: headers.as_deref().map(|bytes| RawTable::check(bytes).expect("ours")),
            delivery_mode: octets.0, priority: octets.1, correlation_id: text(2), reply_to: text(3), expiration: text(4),
            message_id: text(5), timestamp: octets.2, kind: text(6), user_id: text(7), app_id: text(8), cluster_id: text(0),
        };
        let bytes = list.to_bytes();
        let read = Properties::check(&bytes).expect("encoded by us");
        prop_assert_eq!(read.to_list(), list);
        for length in 0..bytes.len() {
            prop_assert!(Properties::check(&bytes[..length]).is_err());
        }
    }

    #[test]
    fn the_same_bytes_tell_the_same_however_they_are_cut(
        messages in vec(message(), 1..12), pieces in vec(prop_oneof![1..30usize, 1..3_000usize, 1..70_000usize], 1..40),
    ) {
        let bytes = [opening(), messages.concat()].concat();
        let whole = told(&bytes, &[usize::MAX]);
        prop_assert!(!whole.0.iter().any(|event| event.starts_with("Failed")), "{:?}", whole.0);
        prop_assert_eq!(told(&bytes, &pieces), whole);
    }

    #[test]
    fn noise_after_the_handshake_neither_panics_nor_takes_memory(
        noise in vec(any::<u8>(), 0..400), framed in vec((1..=3u8, 0..3u16, vec(any::<u8>(), 0..60)), 0..12), pieces in vec(1..200usize, 1..20),
    ) {
        let mut bytes = opening();
        for (kind, channel, payload) in framed {
            // Known numbers in front, so that arguments are reached.
            let payload = match kind {
                1 => [&[0, [10, 20, 40, 50, 60, 85, 90][payload.len() % 7], 0, (payload.len() % 13 * 10) as u8][..], &payload].concat(),
                FRAME_HEADER => [&[0, 60, 0, 0, 0, 0, 0, 0][..], &payload].concat(),
                _ => payload,
            };
            bytes.extend_from_slice(&FrameHead { kind, channel, size: payload.len() as u32 }.to_bytes());
            bytes.extend_from_slice(&payload);
            bytes.push(FRAME_END);
        }
        bytes.extend_from_slice(&noise);
        let (_, _, held) = told(&bytes, &pieces);
        prop_assert!(held <= 2 * 65_536 + 2 * bytes.len());
    }
}

#[test]
fn tables_nest_to_the_limit_and_no_deeper() {
    let max = crate::kernel::limit::TABLE_DEPTH_MAX;
    for arrays in [false, true] {
        assert!(RawTable::check(&nested(max, arrays)).is_ok());
        assert_eq!(RawTable::check(&nested(max + 1, arrays)), Err(Malformed::TooDeep));
        assert_eq!(RawTable::check(&nested(500, arrays)), Err(Malformed::TooDeep));
    }
}

#[test]
fn every_method_of_the_table_survives_a_round_trip_of_its_default() {
    for (id, name) in METHODS {
        // Enough zeros are a valid encoding of every argument list; what is left over says how many were too many.
        let payload = |zeros: usize| [&id.class.to_be_bytes()[..], &id.method.to_be_bytes(), &vec![0; zeros]].concat();
        let bytes = (0..40).map(payload).find(|bytes| Method::decode(bytes).is_ok()).unwrap_or_else(|| panic!("{name}"));
        let method = Method::decode(&bytes).expect("just decoded");
        let mut again = Vec::new();
        method.write(&mut again);
        assert_eq!((method.name(), method.id(), again), (*name, *id, bytes));
    }
}

#[test]
fn collected_bodies_become_bytes_without_a_copy() {
    let collected = bytes::Bytes::from(vec![1; 100]);
    let at = collected.as_ptr();
    assert_eq!(Body::Collected(collected).into_bytes().as_ptr(), at);
}
