//! The 14 properties of a basic message, as they came.
//!
//! ```text
//! flags:u16 (bit 15 = content_type … bit 2 = cluster_id) then the present ones in that order
//! ```
//!
//! [`Properties`] is the peer's bytes, checked once; a message keeps them so and is delivered with them unchanged. Accessors skip
//! over what stands before: no table is decoded to learn a priority. [`PropertyList`] is all of them at once, to look at or to
//! encode anew.

use super::primitive::{Malformed, Reader, Writer};
use super::table::RawTable;
use std::fmt;

/// Property bits; the order of the constants is the order on the wire.
pub mod flag {
    pub const CONTENT_TYPE: u16 = 1 << 15;
    pub const CONTENT_ENCODING: u16 = 1 << 14;
    pub const HEADERS: u16 = 1 << 13;
    pub const DELIVERY_MODE: u16 = 1 << 12;
    pub const PRIORITY: u16 = 1 << 11;
    pub const CORRELATION_ID: u16 = 1 << 10;
    pub const REPLY_TO: u16 = 1 << 9;
    pub const EXPIRATION: u16 = 1 << 8;
    pub const MESSAGE_ID: u16 = 1 << 7;
    pub const TIMESTAMP: u16 = 1 << 6;
    pub const TYPE: u16 = 1 << 5;
    pub const USER_ID: u16 = 1 << 4;
    pub const APP_ID: u16 = 1 << 3;
    pub const CLUSTER_ID: u16 = 1 << 2;
}

const ALL: u16 = !0b11;
/// Kinds by leading zeros of the property's bit.
const KINDS: [Kind; 14] = {
    use Kind::{Headers, Octet, Short, Time};
    [Short, Short, Headers, Octet, Octet, Short, Short, Short, Short, Time, Short, Short, Short, Short]
};

#[derive(Clone, Copy)]
enum Kind {
    Short,
    Headers,
    Octet,
    Time,
}

/// Kinds of the flagged properties, in wire order.
#[inline]
fn present(mut flags: u16) -> impl Iterator<Item = Kind> {
    std::iter::from_fn(move || {
        let at = flags.leading_zeros();
        flags &= !(1u16 << 15).checked_shr(at)?;
        KINDS.get(at as usize).copied()
    })
}

/// Encoded properties, flags first, checked when made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Properties<'a>(&'a [u8]);

impl<'a> Properties<'a> {
    /// No property at all.
    pub const NONE: Properties<'static> = Properties(&[0, 0]);

    /// Checks what follows `body_size` in a header frame.
    // HOT
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let flags = reader.short()?;
        if flags & !ALL != 0 {
            return Err(Malformed::UnknownProperties(flags));
        }
        for kind in present(flags) {
            match kind {
                Kind::Short => _ = reader.short_str()?,
                Kind::Octet => _ = reader.octet()?,
                Kind::Time => _ = reader.longlong()?,
                Kind::Headers => _ = RawTable::check(reader.long_bytes()?)?,
            }
        }
        match reader.rest().len() {
            0 => Ok(Properties(bytes)),
            count => Err(Malformed::Trailing(count)),
        }
    }

    /// Bytes that passed [`Properties::check`] before, as a kept message's have. Others read as absent properties.
    pub fn trusted(bytes: &'a [u8]) -> Self {
        Properties(bytes)
    }

    /// Flags and list, exactly as received.
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn flags(self) -> u16 {
        self.0.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags))
    }

    // HOT
    pub fn content_type(self) -> Option<&'a str> {
        self.short(flag::CONTENT_TYPE)
    }
    pub fn content_encoding(self) -> Option<&'a str> {
        self.short(flag::CONTENT_ENCODING)
    }
    pub fn headers(self) -> Option<RawTable<'a>> {
        RawTable::check(self.seek(flag::HEADERS)?.long_bytes().ok()?).ok()
    }
    pub fn delivery_mode(self) -> Option<u8> {
        self.seek(flag::DELIVERY_MODE)?.octet().ok()
    }
    /// Whether `delivery_mode` is 2.
    pub fn is_persistent(self) -> bool {
        self.delivery_mode() == Some(2)
    }
    pub fn priority(self) -> Option<u8> {
        self.seek(flag::PRIORITY)?.octet().ok()
    }
    pub fn correlation_id(self) -> Option<&'a str> {
        self.short(flag::CORRELATION_ID)
    }
    pub fn reply_to(self) -> Option<&'a str> {
        self.short(flag::REPLY_TO)
    }
    /// Milliseconds as text; whether it is a number is for the broker to check.
    pub fn expiration(self) -> Option<&'a str> {
        self.short(flag::EXPIRATION)
    }
    pub fn message_id(self) -> Option<&'a str> {
        self.short(flag::MESSAGE_ID)
    }
    /// Seconds since the Unix epoch, as the publisher says.
    pub fn timestamp(self) -> Option<u64> {
        self.seek(flag::TIMESTAMP)?.longlong().ok()
    }
    pub fn kind(self) -> Option<&'a str> {
        self.short(flag::TYPE)
    }
    pub fn user_id(self) -> Option<&'a str> {
        self.short(flag::USER_ID)
    }
    pub fn app_id(self) -> Option<&'a str> {
        self.short(flag::APP_ID)
    }
    pub fn cluster_id(self) -> Option<&'a str> {
        self.short(flag::CLUSTER_ID)
    }

    pub fn to_list(self) -> PropertyList<'a> {
        PropertyList {
            content_type: self.content_type(),
            content_encoding: self.content_encoding(),
            headers: self.headers(),
            delivery_mode: self.delivery_mode(),
            priority: self.priority(),
            correlation_id: self.correlation_id(),
            reply_to: self.reply_to(),
            expiration: self.expiration(),
            message_id: self.message_id(),
            timestamp: self.timestamp(),
            kind: self.kind(),
            user_id: self.user_id(),
            app_id: self.app_id(),
            cluster_id: self.cluster_id(),
        }
    }

    fn short(self, wanted: u16) -> Option<&'a str> {
        self.seek(wanted)?.short_str().ok()
    }

    /// A reader that stands before the property, if it is present.
    #[inline]
    fn seek(self, wanted: u16) -> Option<Reader<'a>> {
        let mut reader = Reader::new(self.0);
        let flags = reader.short().ok()?;
        if flags & wanted == 0 {
            return None;
        }
        let before = flags & !(wanted | (wanted - 1));
        for kind in present(before) {
            match kind {
                Kind::Short => _ = reader.short_bytes().ok()?,
                Kind::Octet => _ = reader.octet().ok()?,
                Kind::Time => _ = reader.longlong().ok()?,
                Kind::Headers => _ = reader.long_bytes().ok()?,
            }
        }
        Some(reader)
    }
}

/// All properties side by side: decode, change one, encode.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct PropertyList<'a> {
    pub content_type: Option<&'a str>,
    pub content_encoding: Option<&'a str>,
    pub headers: Option<RawTable<'a>>,
    pub delivery_mode: Option<u8>,
    pub priority: Option<u8>,
    pub correlation_id: Option<&'a str>,
    pub reply_to: Option<&'a str>,
    pub expiration: Option<&'a str>,
    pub message_id: Option<&'a str>,
    pub timestamp: Option<u64>,
    /// `type`
    pub kind: Option<&'a str>,
    pub user_id: Option<&'a str>,
    pub app_id: Option<&'a str>,
    pub cluster_id: Option<&'a str>,
}

impl PropertyList<'_> {
    /// Appends flags and list. Texts must fit a short string.
    pub fn write(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0, 0]);
        let mut flags = 0;
        let mut writer = Writer::new(out);
        let mut short = |writer: &mut Writer<'_>, bit: u16, text: Option<&str>| {
            if let Some(text) = text {
                flags |= bit;
                writer.short_str(text);
            }
        };
        short(&mut writer, flag::CONTENT_TYPE, self.content_type);
        short(&mut writer, flag::CONTENT_ENCODING, self.content_encoding);
        if let Some(headers) = self.headers {
            writer.long_bytes(headers.as_bytes());
        }
        [self.delivery_mode, self.priority].into_iter().flatten().for_each(|octet| writer.put(&[octet]));
        short(&mut writer, flag::CORRELATION_ID, self.correlation_id);
        short(&mut writer, flag::REPLY_TO, self.reply_to);
        short(&mut writer, flag::EXPIRATION, self.expiration);
        short(&mut writer, flag::MESSAGE_ID, self.message_id);
        if let Some(timestamp) = self.timestamp {
            writer.put(&timestamp.to_be_bytes());
        }
        short(&mut writer, flag::TYPE, self.kind);
        short(&mut writer, flag::USER_ID, self.user_id);
        short(&mut writer, flag::APP_ID, self.app_id);
        short(&mut writer, flag::CLUSTER_ID, self.cluster_id);
        flags |= if self.headers.is_some() { flag::HEADERS } else { 0 };
        flags |= if self.delivery_mode.is_some() { flag::DELIVERY_MODE } else { 0 };
        flags |= if self.priority.is_some() { flag::PRIORITY } else { 0 };
        flags |= if self.timestamp.is_some() { flag::TIMESTAMP } else { 0 };
        out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        self.write(&mut out);
        out
    }
}

/// Present properties as ` name=value`.
impl fmt::Display for Properties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = self.to_list();
        let short = |f: &mut fmt::Formatter<'_>, name: &str, text: Option<&str>| match text {
            Some(text) => write!(f, " {name}={text:?}"),
            None => Ok(()),
        };
        short(f, "content_type", list.content_type)?;
        short(f, "content_encoding", list.content_encoding)?;
        if let Some(headers) = list.headers {
            write!(f, " headers={headers}")?;
        }
        if let Some(mode) = list.delivery_mode {
            write!(f, " delivery_mode={mode}")?;
        }
        if let Some(priority) = list.priority {
            write!(f, " priority={priority}")?;
        }
        short(f, "correlation_id", list.correlation_id)?;
        short(f, "reply_to", list.reply_to)?;
        short(f, "expiration", list.expiration)?;
        short(f, "message_id", list.message_id)?;
        if let Some(timestamp) = list.timestamp {
            write!(f, " timestamp={timestamp}")?;
        }
        short(f, "type", list.kind)?;
        short(f, "user_id", list.user_id)?;
        short(f, "app_id", list.app_id)?;
        short(f, "cluster_id", list.cluster_id)
    }
}

impl fmt::Debug for Properties<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Properties({self} )")
    }
}
