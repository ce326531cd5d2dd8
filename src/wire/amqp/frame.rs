//! Frames: what every byte after the protocol header is part of (AMQP 0-9-1 §2.3).
//!
//! ```text
//!  0      1         3             7                 size+7
//!  +------+---------+-------------+-----------------+------+
//!  | type | channel | size        | payload         | 0xCE |
//!  +------+---------+-------------+-----------------+------+
//!  method payload:  class:u16 method:u16 arguments
//!  header payload:  class:u16 weight:u16 body_size:u64 property_flags:u16 properties
//! ```

use super::primitive::{Malformed, Reader};

pub const FRAME_METHOD: u8 = 1;
pub const FRAME_HEADER: u8 = 2;
pub const FRAME_BODY: u8 = 3;
pub const FRAME_HEARTBEAT: u8 = 8;
pub const FRAME_END: u8 = 0xCE;
/// Type, channel and size.
pub const FRAME_HEAD_BYTES: usize = 7;
/// What a frame adds to its payload; `frame_max` includes it.
pub const FRAME_OVERHEAD_BYTES: usize = 8;
/// Smallest `frame_max` that may be negotiated (§4.2.3: a peer must accept frames of that size before tune).
pub const FRAME_BYTES_MIN: u32 = 4_096;
/// What a client says first, and what a server answers when it does not speak what the client wants.
pub const PROTOCOL_HEADER: &[u8; 8] = b"AMQP\x00\x00\x09\x01";
/// What Perl's clients still say for the same (AMQP 0-9, whose frames and methods 0-9-1 has kept); RabbitMQ takes it for 0-9-1 too.
pub const PROTOCOL_HEADER_0_9: &[u8; 8] = b"AMQP\x01\x01\x00\x09";

/// The first seven bytes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHead {
    pub kind: u8,
    pub channel: u16,
    pub size: u32,
}

impl FrameHead {
    /// Reads a head if seven bytes are there.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let &[kind, c1, c0, s3, s2, s1, s0] = bytes.first_chunk::<FRAME_HEAD_BYTES>()?;
        Some(FrameHead { kind, channel: u16::from_be_bytes([c1, c0]), size: u32::from_be_bytes([s3, s2, s1, s0]) })
    }

    #[inline]
    pub fn to_bytes(self) -> [u8; FRAME_HEAD_BYTES] {
        let (channel, size) = (self.channel.to_be_bytes(), self.size.to_be_bytes());
        [self.kind, channel[0], channel[1], size[0], size[1], size[2], size[3]]
    }

    /// Bytes of the whole frame, head and end octet included.
    #[inline]
    pub fn frame_bytes(self) -> usize {
        self.size as usize + FRAME_OVERHEAD_BYTES
    }
}

/// The payload of a content header frame. `properties` starts with the flags and is not yet checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    pub class: u16,
    pub weight: u16,
    pub body_size: u64,
    pub properties: &'a [u8],
}

impl<'a> ContentHeader<'a> {
    #[inline]
    pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(payload);
        let (class, weight, body_size) = (reader.short()?, reader.short()?, reader.longlong()?);
        Ok(ContentHeader { class, weight, body_size, properties: reader.rest() })
    }
}
