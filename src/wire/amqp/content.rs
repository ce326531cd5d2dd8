//! Looks ahead from a `basic.publish` to see whether its whole message is in the read buffer, so that it need not be collected.

use super::frame::{ContentHeader, FRAME_BODY, FRAME_END, FRAME_HEAD_BYTES, FRAME_HEADER, FRAME_OVERHEAD_BYTES, FrameHead};
use super::properties::Properties;

pub(super) const CLASS_BASIC: u16 = 60;

/// A message up to this size, frames included, is waited for in the read buffer instead of being collected.
pub(super) const WAITED_FOR_BYTES_MAX: usize = 16 * 1024;

/// What follows the method frame.
pub(super) enum Ahead<'a> {
    /// Header and body are here and take `frame_bytes` together.
    Whole { properties: Properties<'a>, body: &'a [u8], frame_bytes: usize },
    /// A good beginning of a small message; it takes `frame_bytes` (or more, if even that is not known yet).
    Wait { frame_bytes: usize },
    /// Large, split, interleaved or wrong: frame by frame, which also finds the words for what is wrong.
    Piecewise,
}

/// `ahead` starts behind the method frame, which takes `method_bytes`.
// HOT
#[inline]
pub(super) fn look<'a>(ahead: &'a [u8], channel: u16, payload_max: usize, body_max: u64, method_bytes: usize) -> Ahead<'a> {
    let wait = |frame_bytes: usize| match method_bytes + frame_bytes <= WAITED_FOR_BYTES_MAX {
        true => Ahead::Wait { frame_bytes },
        false => Ahead::Piecewise,
    };
    let Some(head) = FrameHead::read(ahead) else { return wait(FRAME_HEAD_BYTES) };
    let header_bytes = head.frame_bytes();
    if head.kind != FRAME_HEADER || head.channel != channel || head.size as usize > payload_max {
        return Ahead::Piecewise;
    }
    let Some((header_frame, after)) = ahead.split_at_checked(header_bytes) else { return wait(header_bytes) };
    let Some(payload) = payload(header_frame) else { return Ahead::Piecewise };
    let Ok(header) = ContentHeader::decode(payload) else { return Ahead::Piecewise };
    if header.class != CLASS_BASIC || header.body_size > body_max.min(payload_max as u64) {
        return Ahead::Piecewise;
    }
    let Ok(properties) = Properties::check(header.properties) else { return Ahead::Piecewise };
    if header.body_size == 0 {
        return Ahead::Whole { properties, body: &[], frame_bytes: header_bytes };
    }
    let body_frame_bytes = header.body_size as usize + FRAME_OVERHEAD_BYTES;
    let frame_bytes = header_bytes + body_frame_bytes;
    let Some(head) = FrameHead::read(after) else { return wait(frame_bytes) };
    if head.kind != FRAME_BODY || head.channel != channel || u64::from(head.size) != header.body_size {
        return Ahead::Piecewise;
    }
    let Some(body_frame) = after.get(..body_frame_bytes) else { return wait(frame_bytes) };
    match self::payload(body_frame) {
        Some(body) => Ahead::Whole { properties, body, frame_bytes },
        None => Ahead::Piecewise,
    }
}

/// The payload of a whole frame, if its end octet is right.
#[inline]
pub(super) fn payload(frame: &[u8]) -> Option<&[u8]> {
    match frame {
        [_, _, _, _, _, _, _, payload @ .., FRAME_END] => Some(payload),
        _ => None,
    }
}
