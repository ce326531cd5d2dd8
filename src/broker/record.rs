//! A message as it is kept: the bytes it will be delivered with, so that delivering is one copy and two patched channel numbers.
//!
//! ```text
//!   ├ key_len ──────────────────────────┤
//!   │ exchange  routing key  0xCE       │ 02 ch ch size4  class weight body-size flags properties  0xCE │ 03 ch ch size4  body  0xCE │
//!   └ tail of basic.deliver's method ───┴ content header frame ──────────────────────────────────────────┴ body frame ──────────────┘
//! ```
//!
//! The body frame is absent when the body is empty or travels by reference (from [`INLINE_BODY_MAX`] bytes on). Channel numbers
//! are zero in the record. A body frame larger than the receiver's `frame_max` is split on the way out.

use crate::wire::amqp::encode::body_frames;
use bytes::{Bytes, BytesMut};

/// Bodies of this size and more are kept and sent by reference: below, one copy is cheaper than a vectored write.
pub(super) const INLINE_BODY_MAX: usize = 8 * 1024;
/// Room of a fresh segment.
pub(super) const SEGMENT_BYTES: usize = 32 * 1024;

const FRAME_END: u8 = 0xCE;
const FRAME_HEAD: usize = 7;
/// Class, weight and body size before the properties.
const HEADER_FIXED: usize = 12;
/// Class and method numbers, delivery tag and redelivered flag of `basic.deliver`.
const DELIVER_FIXED: usize = 9;

/// Appends `exchange`, `routing key` and their frame end: the part of a record that decides its route.
// HOT
#[inline]
pub(super) fn write_key(out: &mut BytesMut, exchange: &str, key: &str) -> u16 {
    let (exchange, key) = (exchange.as_bytes(), key.as_bytes());
    debug_assert!(exchange.len() <= 255 && key.len() <= 255, "short strings are checked by the codec");
    out.extend_from_slice(&[exchange.len() as u8]);
    out.extend_from_slice(exchange);
    out.extend_from_slice(&[key.len() as u8]);
    out.extend_from_slice(key);
    out.extend_from_slice(&[FRAME_END]);
    (exchange.len() + key.len() + 3) as u16
}

/// Appends the content header frame and, unless it goes by reference, the body frame. `properties` are flags and list.
// HOT
#[inline]
pub(super) fn write_content(out: &mut BytesMut, properties: &[u8], body: &[u8]) {
    let mut head = [0u8; FRAME_HEAD + HEADER_FIXED];
    head[0] = 2;
    head[3..7].copy_from_slice(&((HEADER_FIXED + properties.len()) as u32).to_be_bytes());
    head[8] = 60;
    head[11..19].copy_from_slice(&(body.len() as u64).to_be_bytes());
    out.extend_from_slice(&head);
    out.extend_from_slice(properties);
    if body.is_empty() || body.len() >= INLINE_BODY_MAX {
        out.extend_from_slice(&[FRAME_END]);
        return;
    }
    let mut between = [0u8; 1 + FRAME_HEAD];
    between[0] = FRAME_END;
    between[1] = 3;
    between[4..8].copy_from_slice(&(body.len() as u32).to_be_bytes());
    out.extend_from_slice(&between);
    out.extend_from_slice(body);
    out.extend_from_slice(&[FRAME_END]);
}

/// Bytes that [`write_key`] and [`write_content`] will take.
pub(super) fn room(exchange: &str, key: &str, properties: &[u8], body: &[u8]) -> usize {
    let inline = if body.len() < INLINE_BODY_MAX { body.len() } else { 0 };
    exchange.len() + key.len() + properties.len() + inline + 64
}

/// Reads the parts of a record.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    bytes: &'a [u8],
    key_len: usize,
}

impl<'a> Record<'a> {
    pub fn new(bytes: &'a [u8], key_len: u16) -> Self {
        Record { bytes, key_len: key_len.into() }
    }

    pub fn exchange(self) -> &'a str {
        text(&self.bytes[1..1 + usize::from(self.bytes[0])])
    }

    pub fn routing_key(self) -> &'a str {
        let at = 1 + usize::from(self.bytes[0]);
        text(&self.bytes[at + 1..at + 1 + usize::from(self.bytes[at])])
    }

    /// Payload of the content header frame: class, weight, body size, flags, properties.
    pub fn header(self) -> &'a [u8] {
        let at = self.key_len + FRAME_HEAD;
        &self.bytes[at..at + self.header_len()]
    }

    pub fn properties(self) -> &'a [u8] {
        &self.header()[HEADER_FIXED..]
    }

    /// Empty when the body goes by reference.
    pub fn inline_body(self) -> &'a [u8] {
        let at = self.body_frame();
        if at == self.bytes.len() { &[] } else { &self.bytes[at + FRAME_HEAD..self.bytes.len() - 1] }
    }

    fn header_len(self) -> usize {
        let at = self.key_len + 3;
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().expect("four bytes")) as usize
    }

    fn body_frame(self) -> usize {
        self.key_len + FRAME_HEAD + self.header_len() + 1
    }

    /// The method's tail without its frame end.
    fn key(self) -> &'a [u8] {
        &self.bytes[..self.key_len - 1]
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("names are checked by the codec")
}

/// Head of every `basic.deliver` of one consumer, frame size still open.
pub(super) fn deliver_head(channel: u16, tag: &str) -> Box<[u8]> {
    let mut head = Vec::with_capacity(FRAME_HEAD + 5 + tag.len());
    head.push(1);
    head.extend_from_slice(&channel.to_be_bytes());
    head.extend_from_slice(&[0; 4]);
    head.extend_from_slice(&[0, 60, 0, 60, tag.len() as u8]);
    head.extend_from_slice(tag.as_bytes());
    head.into()
}

/// To whom a delivery goes, and as what.
#[derive(Clone, Copy)]
pub(super) struct Head<'a> {
    /// See [`deliver_head`].
    pub head: &'a [u8],
    pub tag: u64,
    pub redelivered: bool,
}

/// What a delivery carries instead of, or beside, its record's.
#[derive(Clone, Copy)]
pub(super) struct Anew<'a> {
    pub properties: &'a [u8],
    /// Its body, if that goes by reference.
    pub large: Option<&'a Bytes>,
}

/// Where frames go: contiguous bytes, and large bodies by reference at their place among them.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub bytes: Vec<u8>,
    /// Each goes out before the byte at its position.
    pub large: Vec<(usize, Bytes)>,
    pub large_bytes: usize,
}

impl Frames {
    pub fn len(&self) -> usize {
        self.bytes.len() + self.large_bytes
    }

    /// Writes a delivery with the consumer's `head` (see [`deliver_head`]).
    // HOT
    #[inline]
    pub fn deliver(
        &mut self,
        head: &[u8],
        tag: u64,
        redelivered: bool,
        record: Record<'_>,
        large: Option<&Bytes>,
        frame_max: u32,
    ) {
        let start = self.bytes.len();
        let mut fixed = [0u8; DELIVER_FIXED];
        fixed[..8].copy_from_slice(&tag.to_be_bytes());
        fixed[8] = redelivered.into();
        self.bytes.reserve(head.len() + DELIVER_FIXED + record.bytes.len());
        self.bytes.extend_from_slice(head);
        self.bytes.extend_from_slice(&fixed);
        let at = self.bytes.len();
        self.bytes.extend_from_slice(record.bytes);
        let size = (at - start - FRAME_HEAD + record.key_len - 1) as u32;
        self.bytes[start + 3..start + 7].copy_from_slice(&size.to_be_bytes());
        let channel = [head[1], head[2]];
        let header = at + record.key_len;
        self.bytes[header + 1..header + 3].copy_from_slice(&channel);
        let body = at + record.body_frame();
        if body < self.bytes.len() {
            self.bytes[body + 1..body + 3].copy_from_slice(&channel);
            if self.bytes.len() - body > frame_max as usize {
                self.split_body(body, record.inline_body(), u16::from_be_bytes(channel), frame_max);
            }
        } else if let Some(large) = large {
            self.refer(large, u16::from_be_bytes(channel), frame_max);
        }
    }

    /// As [`Frames::deliver`], with other properties than the record's.
    pub fn deliver_anew(&mut self, to: Head<'_>, record: Record<'_>, anew: Anew<'_>, frame_max: u32) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(to.head);
        self.bytes.extend_from_slice(&to.tag.to_be_bytes());
        self.bytes.push(to.redelivered.into());
        self.bytes.extend_from_slice(record.key());
        let size = (self.bytes.len() - start - FRAME_HEAD) as u32;
        self.bytes[start + 3..start + 7].copy_from_slice(&size.to_be_bytes());
        self.bytes.push(FRAME_END);
        self.content_anew(u16::from_be_bytes([to.head[1], to.head[2]]), record, anew, frame_max);
    }

    /// As [`Frames::content`], with other properties than the record's.
    pub fn content_anew(&mut self, channel: u16, record: Record<'_>, anew: Anew<'_>, frame_max: u32) {
        self.bytes.push(2);
        self.bytes.extend_from_slice(&channel.to_be_bytes());
        self.bytes.extend_from_slice(&((HEADER_FIXED + anew.properties.len()) as u32).to_be_bytes());
        self.bytes.extend_from_slice(&record.header()[..HEADER_FIXED]);
        self.bytes.extend_from_slice(anew.properties);
        self.bytes.push(FRAME_END);
        match anew.large {
            Some(large) => self.refer(large, channel, frame_max),
            None => {
                let body = self.bytes.len();
                self.split_body(body, record.inline_body(), channel, frame_max);
            }
        }
    }

    /// Replaces the body frame that starts at `at` by as many as `frame_max` asks for.
    #[cold]
    fn split_body(&mut self, at: usize, body: &[u8], channel: u16, frame_max: u32) {
        self.bytes.truncate(at);
        for frame in body_frames(channel, body.len(), frame_max) {
            self.bytes.extend_from_slice(&frame.head);
            self.bytes.extend_from_slice(&body[frame.range]);
            self.bytes.push(FRAME_END);
        }
    }

    fn refer(&mut self, body: &Bytes, channel: u16, frame_max: u32) {
        for frame in body_frames(channel, body.len(), frame_max) {
            self.bytes.extend_from_slice(&frame.head);
            self.large_bytes += frame.range.len();
            self.large.push((self.bytes.len(), body.slice(frame.range)));
            self.bytes.push(FRAME_END);
        }
    }

    /// Writes the content frames of a record behind a method frame of another kind (`basic.get-ok`, `basic.return`).
    pub fn content(&mut self, channel: u16, record: Record<'_>, large: Option<&Bytes>, frame_max: u32) {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&record.bytes[record.key_len..record.body_frame()]);
        self.bytes[at + 1..at + 3].copy_from_slice(&channel.to_be_bytes());
        match large {
            Some(large) => self.refer(large, channel, frame_max),
            None => {
                let body = self.bytes.len();
                self.split_body(body, record.inline_body(), channel, frame_max);
            }
        }
    }

    /// Writes a method frame that ends with the record's exchange and routing key (and `tail` behind them).
    pub fn method_with_key(&mut self, channel: u16, method: (u8, u8), arguments: &[u8], record: Record<'_>, tail: &[u8]) {
        let size = (4 + arguments.len() + record.key().len() + tail.len()) as u32;
        self.bytes.push(1);
        self.bytes.extend_from_slice(&channel.to_be_bytes());
        self.bytes.extend_from_slice(&size.to_be_bytes());
        self.bytes.extend_from_slice(&[0, method.0, 0, method.1]);
        self.bytes.extend_from_slice(arguments);
        self.bytes.extend_from_slice(record.key());
        self.bytes.extend_from_slice(tail);
        self.bytes.push(FRAME_END);
    }
}
