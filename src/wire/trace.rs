//! Frames as text: one line a frame, for `REACTOR_TRACE=amqp` and for golden files.
//!
//! ```text
//! method 1 basic.publish ticket=0 exchange="" routing_key="q" mandatory=false immediate=false
//! header 1 body_size=5 content_type="text/plain" headers={n: 1:u8}
//! body 1 5 bytes "hello"
//! ```
//!
//! Long strings show their length only: they carry passwords.

use super::amqp::frame::{
    ContentHeader, FRAME_BODY, FRAME_END, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, FrameHead, PROTOCOL_HEADER,
};
use super::amqp::method::Method;
use super::amqp::properties::Properties;
use std::fmt::{self, Write};

/// The `tracing` target under which the AMQP door logs these lines.
pub const AMQP_TARGET: &str = "reactor::frames::amqp";

const BODY_BYTES_SHOWN: usize = 32;

/// Cuts one direction of a connection into lines as its bytes pass.
#[derive(Debug, Default)]
pub struct Tracer {
    pending: Vec<u8>,
    lost: bool,
}

/// A frame longer than any that is negotiated: borders are lost, and tracing ends.
const FRAME_BYTES_MAX: usize = 1024 * 1024;

impl Tracer {
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `line` for each frame that `bytes` complete.
    pub fn pass(&mut self, bytes: &[u8], mut line: impl FnMut(&str)) {
        if self.lost {
            return;
        }
        self.pending.extend_from_slice(bytes);
        let mut rest = self.pending.as_slice();
        while let Some(text) = next_line(&mut rest) {
            line(&text);
        }
        if frame_bytes(rest).is_some_and(|length| length > FRAME_BYTES_MAX) {
            line("broken: no frame is this long; the rest is not shown");
            *self = Tracer { pending: Vec::new(), lost: true };
            return;
        }
        let used = self.pending.len() - rest.len();
        self.pending.drain(..used);
    }
}

/// Takes one frame (or a protocol header) off the front of `bytes` and says what it is; `None` if it is not whole.
pub fn next_line(bytes: &mut &[u8]) -> Option<String> {
    let (frame, rest) = bytes.split_at_checked(frame_bytes(bytes)?)?;
    *bytes = rest;
    Some(line(frame))
}

/// Length of the frame that `bytes` begin with, once that can be known.
pub fn frame_bytes(bytes: &[u8]) -> Option<usize> {
    if bytes.first() == Some(&b'A') {
        return Some(PROTOCOL_HEADER.len());
    }
    FrameHead::read(bytes).map(FrameHead::frame_bytes)
}

/// One whole frame as text. What cannot be decoded says why.
pub fn line(frame: &[u8]) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    _ = write_line(&mut text, frame);
    text
}

fn write_line(f: &mut String, frame: &[u8]) -> fmt::Result {
    if let [b'A', b'M', b'Q', b'P', version @ ..] = frame {
        return write!(f, "protocol {version:?}");
    }
    let (Some(head), [_, _, _, _, _, _, _, payload @ .., end]) = (FrameHead::read(frame), frame) else {
        return write!(f, "broken {} bytes", frame.len());
    };
    if *end != FRAME_END {
        return write!(f, "broken frame type {} on {}: ends with 0x{end:02x}", head.kind, head.channel);
    }
    match head.kind {
        FRAME_METHOD => write_method(f, head.channel, payload),
        FRAME_HEADER => write_header(f, head.channel, payload),
        FRAME_BODY => {
            write!(f, "body {} {} bytes \"", head.channel, payload.len())?;
            let shown = &payload[..payload.len().min(BODY_BYTES_SHOWN)];
            write!(f, "{}{}\"", shown.escape_ascii(), if shown.len() < payload.len() { "…" } else { "" })
        }
        FRAME_HEARTBEAT => f.write_str("heartbeat"),
        kind => write!(f, "unknown frame type {kind} on {} {} bytes", head.channel, payload.len()),
    }
}

fn write_method(f: &mut String, channel: u16, payload: &[u8]) -> fmt::Result {
    match Method::decode(payload) {
        Ok(method) => {
            write!(f, "method {channel} {}", method.name())?;
            method.show_arguments(f)
        }
        Err(error) => write!(f, "method {channel} broken: {error}"),
    }
}

fn write_header(f: &mut String, channel: u16, payload: &[u8]) -> fmt::Result {
    let Ok(header) = ContentHeader::decode(payload) else { return write!(f, "header {channel} broken") };
    match Properties::check(header.properties) {
        Ok(properties) => write!(f, "header {channel} body_size={}{properties}", header.body_size),
        Err(error) => write!(f, "header {channel} body_size={} broken: {error}", header.body_size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::amqp::encode::HEARTBEAT;

    #[test]
    fn lines_come_as_frames_are_complete() {
        let (mut tracer, mut lines) = (Tracer::new(), Vec::new());
        let bytes = [&PROTOCOL_HEADER[..], &HEARTBEAT, &[3, 0, 7, 0, 0, 0, 2, b'h', b'i', FRAME_END], &[3, 0, 0, 0xff]].concat();
        for piece in bytes.chunks(3) {
            tracer.pass(piece, |line| lines.push(line.to_owned()));
        }
        assert_eq!(lines, ["protocol [0, 0, 9, 1]", "heartbeat", "body 7 2 bytes \"hi\""]);
        tracer.pass(&[0xff, 0xff, 0xff], |line| lines.push(line.to_owned()));
        assert!(lines.pop().unwrap().starts_with("broken: no frame"));
        tracer.pass(&bytes, |_| panic!("nothing more is shown"));
    }

    #[test]
    fn what_cannot_be_decoded_says_why() {
        let frame = |kind: u8, payload: &[u8]| {
            let head = FrameHead { kind, channel: 1, size: payload.len() as u32 };
            line(&[&head.to_bytes(), payload, &[FRAME_END]].concat())
        };
        assert_eq!(frame(FRAME_METHOD, &[0, 60, 0, 99]), "method 1 broken: unknown class 60 or method 99");
        assert_eq!(frame(FRAME_METHOD, &[0, 60, 0, 80, 1]), "method 1 broken: a field ends after the end of its frame");
        assert_eq!(frame(FRAME_HEADER, &[0, 60]), "header 1 broken");
        assert_eq!(frame(FRAME_BODY, &[7; 40]), format!("body 1 40 bytes \"{}…\"", "\\x07".repeat(32)));
        assert_eq!(frame(5, b"x"), "unknown frame type 5 on 1 1 bytes");
        assert_eq!(line(&[1, 0, 0, 0, 0, 0, 0, 9]), "broken frame type 1 on 0: ends with 0x09");
        assert_eq!(line(b"?"), "broken 1 bytes");
    }
}
