//! The elementary types of AMQP 0-9-1 (§4.2.5) on byte slices: integers in network order, packed bits, short and long strings.
//!
//! A [`Reader`] borrows what it reads and never allocates: a length that a peer states is only compared with what is there.

use super::table::RawTable;
use crate::kernel::limit::SHORT_STRING_BYTES_MAX;
use std::fmt;

/// Bytes that are not what the protocol says they are. Becomes 502 SYNTAX_ERROR on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("a field ends after the end of its frame")]
    Truncated,
    #[error("{0} bytes follow the last field")]
    Trailing(usize),
    #[error("a short string is not UTF-8")]
    NotUtf8,
    #[error("unknown field type 0x{0:02x} in a table")]
    UnknownFieldType(u8),
    #[error("tables are nested more than {} deep", crate::kernel::limit::TABLE_DEPTH_MAX)]
    TooDeep,
    #[error("property flags 0x{0:04x} name unknown properties")]
    UnknownProperties(u16),
    #[error("unknown class {class} or method {method}")]
    UnknownMethod { class: u16, method: u16 },
}

/// A long string: any bytes, usually UTF-8.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct LongStr<'a>(pub &'a [u8]);

impl<'a> LongStr<'a> {
    pub fn as_str(self) -> Option<&'a str> {
        std::str::from_utf8(self.0).ok()
    }
}

impl<'a> From<&'a str> for LongStr<'a> {
    fn from(text: &'a str) -> Self {
        LongStr(text.as_bytes())
    }
}

impl fmt::Debug for LongStr<'_> {
    /// Length only: long strings carry passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<{} bytes>", self.0.len())
    }
}

/// Takes fields off the front of a slice. Consecutive bits share octets, lowest bit first.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    bits: u8,
    bit_count: u8,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes, bits: 0, bit_count: 0 }
    }

    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        self.bit_count = 0;
        let (head, rest) = self.rest.split_at_checked(count).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(head)
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        self.bit_count = 0;
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(*head)
    }

    #[inline]
    pub fn octet(&mut self) -> Result<u8, Malformed> {
        Ok(self.array::<1>()?[0])
    }

    #[inline]
    pub fn short(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn long(&mut self) -> Result<u32, Malformed> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn longlong(&mut self) -> Result<u64, Malformed> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    #[inline]
    pub fn bit(&mut self) -> Result<bool, Malformed> {
        if self.bit_count == 0 {
            self.bits = self.octet()?;
            self.bit_count = 8;
        }
        let bit = self.bits & 1 == 1;
        self.bits >>= 1;
        self.bit_count -= 1;
        Ok(bit)
    }

    #[inline]
    pub fn short_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.octet()?;
        self.take(length.into())
    }

    #[inline]
    pub fn short_str(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.short_bytes()?).map_err(|_| Malformed::NotUtf8)
    }

    /// Bytes behind a 32-bit length: a long string, or the contents of a table or array.
    #[inline]
    pub fn long_bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.long()?;
        self.take(usize::try_from(length).map_err(|_| Malformed::Truncated)?)
    }
}

/// Appends fields to a buffer, packing consecutive bits as [`Reader`] unpacks them.
#[derive(Debug)]
pub struct Writer<'b> {
    out: &'b mut Vec<u8>,
    /// Bits already in the last octet; 0 if the last thing written was not a bit.
    bit_count: u8,
}

impl<'b> Writer<'b> {
    pub fn new(out: &'b mut Vec<u8>) -> Self {
        Writer { out, bit_count: 0 }
    }

    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bit_count = 0;
        self.out.extend_from_slice(bytes);
    }

    #[inline]
    pub fn bit(&mut self, bit: bool) {
        if self.bit_count == 0 || self.bit_count == 8 {
            self.put(&[u8::from(bit)]);
            self.bit_count = 1;
            return;
        }
        if let Some(last) = self.out.last_mut() {
            *last |= u8::from(bit) << self.bit_count;
        }
        self.bit_count += 1;
    }

    #[inline]
    pub fn short_str(&mut self, text: &str) {
        assert!(text.len() <= SHORT_STRING_BYTES_MAX, "names are checked where they enter; {} bytes are too long", text.len());
        self.put(&[text.len() as u8]);
        self.put(text.as_bytes());
    }

    #[inline]
    pub fn long_bytes(&mut self, bytes: &[u8]) {
        let length = u32::try_from(bytes.len()).expect("nothing as long as 4 GiB is ever put into one field");
        self.put(&length.to_be_bytes());
        self.put(bytes);
    }
}

/// A method argument: how it is read, written and shown in a trace.
pub trait Argument<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed>;
    fn write(&self, writer: &mut Writer<'_>);
    fn show(&self, f: &mut dyn fmt::Write) -> fmt::Result;
}

macro_rules! integer_argument {
    ($($type:ty),*) => {$(
        impl<'a> Argument<'a> for $type {
            #[inline]
            fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                Ok(<$type>::from_be_bytes(reader.array()?))
            }
            #[inline]
            fn write(&self, writer: &mut Writer<'_>) {
                writer.put(&self.to_be_bytes());
            }
            fn show(&self, f: &mut dyn fmt::Write) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    )*};
}
integer_argument!(u8, u16, u32, u64);

impl<'a> Argument<'a> for bool {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        reader.bit()
    }
    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.bit(*self);
    }
    fn show(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl<'a> Argument<'a> for &'a str {
    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        reader.short_str()
    }
    #[inline]
    fn write(&self, writer: &mut Writer<'_>) {
        writer.short_str(self);
    }
    fn show(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl<'a> Argument<'a> for LongStr<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        reader.long_bytes().map(LongStr)
    }
    fn write(&self, writer: &mut Writer<'_>) {
        writer.long_bytes(self.0);
    }
    fn show(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl<'a> Argument<'a> for RawTable<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        RawTable::check(reader.long_bytes()?)
    }
    fn write(&self, writer: &mut Writer<'_>) {
        writer.long_bytes(self.as_bytes());
    }
    fn show(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_share_octets_until_something_else_follows() {
        let mut out = Vec::new();
        let mut writer = Writer::new(&mut out);
        [true, false, true].iter().for_each(|bit| writer.bit(*bit));
        writer.put(&[9]);
        (0..9).for_each(|at| writer.bit(at % 2 == 0));
        assert_eq!(out, [0b101, 9, 0b0101_0101, 1]);

        let mut reader = Reader::new(&out);
        assert_eq!([reader.bit(), reader.bit(), reader.bit()], [Ok(true), Ok(false), Ok(true)]);
        assert_eq!(reader.octet(), Ok(9));
        assert!((0..9).all(|at| reader.bit() == Ok(at % 2 == 0)));
        assert_eq!(reader.bit(), Ok(false));
        assert!(reader.is_empty());
    }

    #[test]
    fn a_lying_length_is_truncated_not_allocated() {
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 1]).long_bytes(), Err(Malformed::Truncated));
        assert_eq!(Reader::new(&[5, b'a']).short_str(), Err(Malformed::Truncated));
        assert_eq!(Reader::new(&[1, 0xff]).short_str(), Err(Malformed::NotUtf8));
    }
}
