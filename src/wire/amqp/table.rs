//! Field tables on the wire ⇄ [`model::table`](crate::model::table).
//!
//! ```text
//! table  = length:u32 ( name:shortstr type:u8 value )*        array = length:u32 ( type:u8 value )*
//! ```
//!
//! A [`RawTable`] is a checked slice of the peer's bytes: every name, type, length and depth in it has been walked once, without
//! allocating, so reading it later cannot fail.

use super::primitive::{Malformed, Reader, Writer};
use crate::kernel::limit::TABLE_DEPTH_MAX;
use crate::model::table::{Field, Table};
use bytes::Bytes;
use std::fmt;

/// The contents of a table, without the length in front, checked when made.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct RawTable<'a>(&'a [u8]);

/// The contents of an array, without the length in front; always part of a checked table.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RawArray<'a>(&'a [u8]);

/// [`Field`], borrowed from the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RawField<'a> {
    Bool(bool),
    I8(i8),
    U8(u8),
    I16(i16),
    U16(u16),
    I32(i32),
    U32(u32),
    I64(i64),
    F32(f32),
    F64(f64),
    Decimal { scale: u8, value: i32 },
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    Array(RawArray<'a>),
    Timestamp(u64),
    Table(RawTable<'a>),
    Void,
}

impl<'a> RawTable<'a> {
    /// Walks `bytes` once; what passes can be read without errors.
    pub fn check(bytes: &'a [u8]) -> Result<Self, Malformed> {
        check_table(bytes, 1)?;
        Ok(RawTable(bytes))
    }

    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(self) -> impl Iterator<Item = (&'a str, RawField<'a>)> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || {
            let name = reader.short_str().ok()?;
            Some((name, read_field(&mut reader).ok()?))
        })
    }

    /// The first field of that name.
    pub fn get(self, name: &str) -> Option<RawField<'a>> {
        self.iter().find(|(found, _)| *found == name).map(|(_, field)| field)
    }

    pub fn to_table(self) -> Table {
        Table(self.iter().map(|(name, field)| (name.to_owned(), field.to_field())).collect())
    }
}

impl<'a> RawArray<'a> {
    pub fn iter(self) -> impl Iterator<Item = RawField<'a>> {
        let mut reader = Reader::new(self.0);
        std::iter::from_fn(move || read_field(&mut reader).ok())
    }
}

impl<'a> RawField<'a> {
    pub fn as_str(self) -> Option<&'a str> {
        match self {
            RawField::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Any integer type, widened.
    pub fn as_integer(self) -> Option<i64> {
        match self {
            RawField::I8(n) => Some(n.into()),
            RawField::U8(n) => Some(n.into()),
            RawField::I16(n) => Some(n.into()),
            RawField::U16(n) => Some(n.into()),
            RawField::I32(n) => Some(n.into()),
            RawField::U32(n) => Some(n.into()),
            RawField::I64(n) => Some(n),
            _ => None,
        }
    }

    pub fn as_bool(self) -> Option<bool> {
        match self {
            RawField::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub fn to_field(self) -> Field {
        match self {
            RawField::Bool(v) => Field::Bool(v),
            RawField::I8(v) => Field::I8(v),
            RawField::U8(v) => Field::U8(v),
            RawField::I16(v) => Field::I16(v),
            RawField::U16(v) => Field::U16(v),
            RawField::I32(v) => Field::I32(v),
            RawField::U32(v) => Field::U32(v),
            RawField::I64(v) => Field::I64(v),
            RawField::F32(v) => Field::F32(v),
            RawField::F64(v) => Field::F64(v),
            RawField::Decimal { scale, value } => Field::Decimal { scale, value },
            RawField::Text(v) => Field::Text(Bytes::copy_from_slice(v)),
            RawField::Bytes(v) => Field::Bytes(Bytes::copy_from_slice(v)),
            RawField::Array(v) => Field::Array(v.iter().map(RawField::to_field).collect()),
            RawField::Timestamp(v) => Field::Timestamp(v),
            RawField::Table(v) => Field::Table(v.to_table()),
            RawField::Void => Field::Void,
        }
    }
}

fn check_table(bytes: &[u8], depth: usize) -> Result<(), Malformed> {
    if depth > TABLE_DEPTH_MAX {
        return Err(Malformed::TooDeep);
    }
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        reader.short_str()?;
        check_field(&mut reader, depth)?;
    }
    Ok(())
}

fn check_array(bytes: &[u8], depth: usize) -> Result<(), Malformed> {
    if depth > TABLE_DEPTH_MAX {
        return Err(Malformed::TooDeep);
    }
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        check_field(&mut reader, depth)?;
    }
    Ok(())
}

fn check_field(reader: &mut Reader<'_>, depth: usize) -> Result<(), Malformed> {
    match read_field(reader)? {
        RawField::Table(table) => check_table(table.0, depth + 1),
        RawField::Array(array) => check_array(array.0, depth + 1),
        _ => Ok(()),
    }
}

/// Reads one field; what is nested in it is not looked at.
fn read_field<'a>(reader: &mut Reader<'a>) -> Result<RawField<'a>, Malformed> {
    Ok(match reader.octet()? {
        b't' => RawField::Bool(reader.octet()? != 0),
        b'b' => RawField::I8(i8::from_be_bytes(reader.array()?)),
        b'B' => RawField::U8(reader.octet()?),
        b's' => RawField::I16(i16::from_be_bytes(reader.array()?)),
        b'u' => RawField::U16(reader.short()?),
        b'I' => RawField::I32(i32::from_be_bytes(reader.array()?)),
        b'i' => RawField::U32(reader.long()?),
        b'l' | b'L' => RawField::I64(i64::from_be_bytes(reader.array()?)),
        b'f' => RawField::F32(f32::from_be_bytes(reader.array()?)),
        b'd' => RawField::F64(f64::from_be_bytes(reader.array()?)),
        b'D' => RawField::Decimal { scale: reader.octet()?, value: i32::from_be_bytes(reader.array()?) },
        b'S' => RawField::Text(reader.long_bytes()?),
        b'x' => RawField::Bytes(reader.long_bytes()?),
        b'A' => RawField::Array(RawArray(reader.long_bytes()?)),
        b'T' => RawField::Timestamp(reader.longlong()?),
        b'F' => RawField::Table(RawTable(reader.long_bytes()?)),
        b'V' => RawField::Void,
        unknown => return Err(Malformed::UnknownFieldType(unknown)),
    })
}

/// Appends `table` with its length in front.
pub fn write(out: &mut Vec<u8>, table: &Table) {
    with_length(out, |out| {
        for (name, field) in table.iter() {
            Writer::new(out).short_str(name);
            write_field(out, field);
        }
    });
}

/// The contents of `table` as bytes, for a method argument: `RawTable::check(&table::encoded(&t))`.
pub fn encoded(table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out, table);
    out.drain(..4);
    out
}

fn write_field(out: &mut Vec<u8>, field: &Field) {
    fn put<const N: usize>(out: &mut Vec<u8>, kind: u8, bytes: [u8; N]) {
        out.push(kind);
        out.extend_from_slice(&bytes);
    }
    match field {
        Field::Bool(v) => put(out, b't', [u8::from(*v)]),
        Field::I8(v) => put(out, b'b', v.to_be_bytes()),
        Field::U8(v) => put(out, b'B', [*v]),
        Field::I16(v) => put(out, b's', v.to_be_bytes()),
        Field::U16(v) => put(out, b'u', v.to_be_bytes()),
        Field::I32(v) => put(out, b'I', v.to_be_bytes()),
        Field::U32(v) => put(out, b'i', v.to_be_bytes()),
        Field::I64(v) => put(out, b'l', v.to_be_bytes()),
        Field::F32(v) => put(out, b'f', v.to_be_bytes()),
        Field::F64(v) => put(out, b'd', v.to_be_bytes()),
        Field::Decimal { scale, value } => {
            put(out, b'D', [*scale]);
            out.extend_from_slice(&value.to_be_bytes());
        }
        Field::Text(v) => {
            out.push(b'S');
            Writer::new(out).long_bytes(v);
        }
        Field::Bytes(v) => {
            out.push(b'x');
            Writer::new(out).long_bytes(v);
        }
        Field::Array(items) => {
            out.push(b'A');
            with_length(out, |out| items.iter().for_each(|item| write_field(out, item)));
        }
        Field::Timestamp(v) => put(out, b'T', v.to_be_bytes()),
        Field::Table(v) => {
            out.push(b'F');
            write(out, v);
        }
        Field::Void => out.push(b'V'),
    }
}

fn with_length(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = u32::try_from(out.len() - at - 4).expect("a table of 4 GiB is never built");
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// `{x-max-length: 5, name: "a"}`; types that are not plain show their letter: `3:u8`.
impl fmt::Display for RawTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (at, (name, field)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{}: {field}", name.escape_debug())?;
        }
        f.write_str("}")
    }
}

impl fmt::Display for RawField<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            RawField::Bool(v) => write!(f, "{v}"),
            RawField::I8(v) => write!(f, "{v}:i8"),
            RawField::U8(v) => write!(f, "{v}:u8"),
            RawField::I16(v) => write!(f, "{v}:i16"),
            RawField::U16(v) => write!(f, "{v}:u16"),
            RawField::I32(v) => write!(f, "{v}:i32"),
            RawField::U32(v) => write!(f, "{v}:u32"),
            RawField::I64(v) => write!(f, "{v}:i64"),
            RawField::F32(v) => write!(f, "{v}:f32"),
            RawField::F64(v) => write!(f, "{v}:f64"),
            RawField::Decimal { scale, value } => write!(f, "{value}e-{scale}"),
            RawField::Text(v) => write!(f, "{:?}", String::from_utf8_lossy(v)),
            RawField::Bytes(v) => write!(f, "b\"{}\"", v.escape_ascii()),
            RawField::Array(v) => {
                f.write_str("[")?;
                for (at, item) in v.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            RawField::Timestamp(v) => write!(f, "{v}:time"),
            RawField::Table(v) => write!(f, "{v}"),
            RawField::Void => f.write_str("void"),
        }
    }
}

impl fmt::Debug for RawTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for RawArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&RawField::Array(*self), f)
    }
}
