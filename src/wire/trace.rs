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

const BODY_BYTES_SHOWN: usize = 32;

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
