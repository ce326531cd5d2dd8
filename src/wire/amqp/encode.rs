//! What the server sends, straight into a `Vec<u8>`.
//!
//! [`method`] writes one method frame, [`content`] a method with its header and body frames. A large body can travel by reference:
//! [`content_head`] writes the method and header frames, and [`body_frames`] says which slices of the body go out behind which
//! seven bytes, each followed by [`FRAME_END`].
//!
//! Nothing here allocates but the growth of `out`.

use super::frame::{
    FRAME_BODY, FRAME_END, FRAME_HEAD_BYTES, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, FRAME_OVERHEAD_BYTES, FrameHead,
};
use super::method::{
    BasicAck, BasicDeliver, BasicGetOk, BasicNack, BasicReturn, ChannelClose, ConnectionClose, Encode, MethodId,
};
use super::reply::Reply;
use std::ops::Range;

const CLASS_BASIC: u16 = 60;
/// Class, weight and body size in front of the properties.
const HEADER_FIXED_BYTES: usize = 12;

/// A whole heartbeat frame.
pub const HEARTBEAT: [u8; 8] = [FRAME_HEARTBEAT, 0, 0, 0, 0, 0, 0, FRAME_END];

/// One method frame. Methods of the server always fit the smallest `frame_max`, given names within a short string.
// HOT
#[inline]
pub fn method(out: &mut Vec<u8>, channel: u16, method: &impl Encode) {
    let at = out.len();
    out.extend_from_slice(&FrameHead { kind: FRAME_METHOD, channel, size: 0 }.to_bytes());
    method.write(out);
    let size = u32::try_from(out.len() - at - FRAME_HEAD_BYTES).expect("a method is far smaller than 4 GiB");
    out[at + 3..at + 7].copy_from_slice(&size.to_be_bytes());
    out.push(FRAME_END);
}

/// `properties` as [`super::Properties::as_bytes`]: flags and list.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    pub properties: &'a [u8],
    pub body: &'a [u8],
}

/// A method with its content, the body copied and split by `frame_max`.
// HOT
pub fn content(out: &mut Vec<u8>, channel: u16, method: &impl Encode, content: Content<'_>, frame_max: u32) {
    content_head(out, channel, method, content.properties, content.body.len());
    for frame in body_frames(channel, content.body.len(), frame_max) {
        out.extend_from_slice(&frame.head);
        out.extend_from_slice(&content.body[frame.range]);
        out.push(FRAME_END);
    }
}

// HOT
pub fn deliver(out: &mut Vec<u8>, channel: u16, method: &BasicDeliver<'_>, with: Content<'_>, frame_max: u32) {
    content(out, channel, method, with, frame_max);
}

pub fn get_ok(out: &mut Vec<u8>, channel: u16, method: &BasicGetOk<'_>, with: Content<'_>, frame_max: u32) {
    content(out, channel, method, with, frame_max);
}

pub fn basic_return(out: &mut Vec<u8>, channel: u16, method: &BasicReturn<'_>, with: Content<'_>, frame_max: u32) {
    content(out, channel, method, with, frame_max);
}

// HOT
pub fn ack(out: &mut Vec<u8>, channel: u16, delivery_tag: u64, multiple: bool) {
    method(out, channel, &BasicAck { delivery_tag, multiple });
}

// HOT
pub fn nack(out: &mut Vec<u8>, channel: u16, delivery_tag: u64, multiple: bool) {
    method(out, channel, &BasicNack { delivery_tag, multiple, requeue: false });
}

/// The method and header frames; the body frames follow from [`body_frames`].
// HOT
pub fn content_head(out: &mut Vec<u8>, channel: u16, with: &impl Encode, properties: &[u8], body_size: usize) {
    method(out, channel, with);
    let size = u32::try_from(HEADER_FIXED_BYTES + properties.len()).expect("properties came in one frame");
    out.extend_from_slice(&FrameHead { kind: FRAME_HEADER, channel, size }.to_bytes());
    out.extend_from_slice(&CLASS_BASIC.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    out.extend_from_slice(&(body_size as u64).to_be_bytes());
    out.extend_from_slice(properties);
    out.push(FRAME_END);
}

/// Whether a header frame with these properties fits; it cannot be split.
pub fn header_fits(properties_bytes: usize, frame_max: u32) -> bool {
    HEADER_FIXED_BYTES + properties_bytes + FRAME_OVERHEAD_BYTES <= frame_max as usize
}

/// One body frame: send `head`, the body's `range`, then [`FRAME_END`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyFrame {
    pub head: [u8; FRAME_HEAD_BYTES],
    pub range: Range<usize>,
}

/// How a body of `body_size` bytes is split; none for an empty one.
// HOT
pub fn body_frames(channel: u16, body_size: usize, frame_max: u32) -> impl Iterator<Item = BodyFrame> {
    let payload_max = (frame_max as usize).saturating_sub(FRAME_OVERHEAD_BYTES).max(1);
    (0..body_size).step_by(payload_max).map(move |start| {
        let end = body_size.min(start.saturating_add(payload_max));
        let head = FrameHead { kind: FRAME_BODY, channel, size: (end - start) as u32 }.to_bytes();
        BodyFrame { head, range: start..end }
    })
}

/// `connection.close` that blames the method `cause` (zeros if none is to blame).
pub fn connection_close(out: &mut Vec<u8>, reply: &Reply, cause: MethodId) {
    let (class_id, method_id) = (cause.class, cause.method);
    method(out, 0, &ConnectionClose { reply_code: reply.code.code(), reply_text: reply.text(), class_id, method_id });
}

pub fn channel_close(out: &mut Vec<u8>, channel: u16, reply: &Reply, cause: MethodId) {
    let (class_id, method_id) = (cause.class, cause.method);
    method(out, channel, &ChannelClose { reply_code: reply.code.code(), reply_text: reply.text(), class_id, method_id });
}
