//! Rows as bytes: about a tenth of what they take as values.
//!
//! ```text
//!   number  LEB128                        text   number: id·2+1 of a name, or length·2 and the bytes
//!   value   tag, then by tag:
//!     0 null · 1 false · 2 true · 3 zigzag number · 4 eight bytes of f64 · 5 text · 6 length, bytes
//!     7 array of values, 8 map and 9 attributes of text, value pairs: four bytes of length, the items
//! ```
//!
//! What is read here was written here: bytes never come from a peer, so a malformed one is a bug and panics.

use super::names::NameWriter;
use crate::model::signal::{Attributes, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Longest text or byte string kept of one value; the rest is cut, with an ellipsis where it was text.
pub const VALUE_BYTES_MAX: usize = 64 * 1024;
/// Attributes after this many packed bytes of one list are left out.
pub const LIST_BYTES_MAX: usize = 256 * 1024;

pub struct Packer<'a> {
    pub out: &'a mut Vec<u8>,
    pub names: &'a mut NameWriter,
}

impl Packer<'_> {
    pub fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// A text that repeats.
    pub fn name(&mut self, text: &str) {
        match self.names.number(text) {
            Some(number) => self.number(u64::from(number) * 2 + 1),
            None => self.text(text),
        }
    }

    pub fn text(&mut self, text: &str) {
        if text.len() <= VALUE_BYTES_MAX {
            self.number(text.len() as u64 * 2);
            return self.bytes(text.as_bytes());
        }
        let end = (0..=VALUE_BYTES_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        self.number((end + '…'.len_utf8()) as u64 * 2);
        self.bytes(&text.as_bytes()[..end]);
        self.bytes("…".as_bytes());
    }

    pub fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push(0),
            Value::Bool(false) => self.out.push(1),
            Value::Bool(true) => self.out.push(2),
            Value::Int(number) => {
                self.out.push(3);
                self.number(((number << 1) ^ (number >> 63)) as u64);
            }
            Value::Double(number) => {
                self.out.push(4);
                self.bytes(&number.to_le_bytes());
            }
            Value::Text(text) => {
                self.out.push(5);
                self.text(text);
            }
            Value::Bytes(bytes) => {
                let bytes = &bytes[..bytes.len().min(VALUE_BYTES_MAX)];
                self.out.push(6);
                self.number(bytes.len() as u64);
                self.bytes(bytes);
            }
            Value::Array(items) => self.list(7, items, Packer::value),
            Value::Map(entries) => self.list(8, entries, Packer::pair),
        }
    }

    pub fn attributes(&mut self, attributes: &Attributes) {
        self.list(9, attributes, Packer::pair);
    }

    fn pair(&mut self, (key, value): &(Cow<'static, str>, Value)) {
        self.name(key);
        self.value(value);
    }

    fn list<T>(&mut self, tag: u8, items: &[T], write: fn(&mut Self, &T)) {
        self.out.push(tag);
        let start = self.out.len() + 4;
        self.bytes(&[0; 4]);
        for item in items {
            if self.out.len() - start > LIST_BYTES_MAX {
                break;
            }
            write(self, item);
        }
        let length = (self.out.len() - start) as u32;
        self.out[start - 4..start].copy_from_slice(&length.to_le_bytes());
    }
}

/// A packed value, read in place.
#[derive(Clone, Copy, Debug)]
pub enum Packed<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(&'a str),
    Bytes(&'a [u8]),
    Array(List<'a>),
    Map(List<'a>),
}

/// The inside of an array, a map or an attribute list.
#[derive(Clone, Copy, Debug)]
pub struct List<'a> {
    bytes: &'a [u8],
    names: &'a [Arc<str>],
}

/// A text that may be a name: its number is compared before its letters.
#[derive(Clone, Copy, Debug)]
pub struct Key<'a> {
    pub number: Option<u32>,
    pub text: &'a str,
}

#[derive(Clone, Copy)]
pub struct Unpacker<'a> {
    bytes: &'a [u8],
    names: &'a [Arc<str>],
}

impl<'a> Unpacker<'a> {
    pub fn new(bytes: &'a [u8], names: &'a [Arc<str>]) -> Self {
        Unpacker { bytes, names }
    }

    pub fn is_done(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn number(&mut self) -> u64 {
        let mut number = 0;
        for (at, byte) in self.bytes.iter().enumerate() {
            number |= u64::from(byte & 0x7f) << (7 * at);
            if byte & 0x80 == 0 {
                self.bytes = &self.bytes[at + 1..];
                return number;
            }
        }
        unreachable!("a packed number ends with a byte below 0x80")
    }

    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(count);
        self.bytes = rest;
        taken
    }

    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).try_into().expect("as many bytes as asked for")
    }

    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    pub fn text(&mut self) -> Key<'a> {
        let head = self.number();
        if head & 1 == 1 {
            let number = (head >> 1) as u32;
            return Key { number: Some(number), text: &self.names[number as usize] };
        }
        let bytes = self.take((head >> 1) as usize);
        Key { number: None, text: std::str::from_utf8(bytes).expect("packed from a string") }
    }

    /// A repeated text, shared instead of copied where it is a name.
    pub fn shared_text(&mut self) -> Arc<str> {
        let key = self.text();
        match key.number {
            Some(number) => self.names[number as usize].clone(),
            None => Arc::from(key.text),
        }
    }

    pub fn value(&mut self) -> Packed<'a> {
        match self.byte() {
            0 => Packed::Null,
            1 => Packed::Bool(false),
            2 => Packed::Bool(true),
            3 => {
                let number = self.number();
                Packed::Int((number >> 1) as i64 ^ -((number & 1) as i64))
            }
            4 => Packed::Double(f64::from_le_bytes(self.array())),
            5 => Packed::Text(self.text().text),
            6 => {
                let length = self.number() as usize;
                Packed::Bytes(self.take(length))
            }
            7 => Packed::Array(self.framed()),
            8 => Packed::Map(self.framed()),
            tag => unreachable!("no packed value has tag {tag}"),
        }
    }

    pub fn attributes(&mut self) -> List<'a> {
        let tag = self.byte();
        debug_assert_eq!(tag, 9, "an attribute list begins here");
        self.framed()
    }

    fn framed(&mut self) -> List<'a> {
        let length = u32::from_le_bytes(self.array()) as usize;
        List { bytes: self.take(length), names: self.names }
    }
}

impl<'a> List<'a> {
    pub fn pairs(self) -> impl Iterator<Item = (Key<'a>, Packed<'a>)> {
        let mut body = Unpacker::new(self.bytes, self.names);
        std::iter::from_fn(move || (!body.is_done()).then(|| (body.text(), body.value())))
    }

    pub fn values(self) -> impl Iterator<Item = Packed<'a>> {
        let mut body = Unpacker::new(self.bytes, self.names);
        std::iter::from_fn(move || (!body.is_done()).then(|| body.value()))
    }

    pub fn to_attributes(self) -> Attributes {
        self.pairs().map(|(key, value)| (Cow::Owned(key.text.to_owned()), value.to_value())).collect()
    }
}

impl Packed<'_> {
    pub fn to_value(self) -> Value {
        match self {
            Packed::Null => Value::Null,
            Packed::Bool(value) => Value::Bool(value),
            Packed::Int(number) => Value::Int(number),
            Packed::Double(number) => Value::Double(number),
            Packed::Text(text) => Value::from(text),
            Packed::Bytes(bytes) => Value::Bytes(bytes.into()),
            Packed::Array(list) => Value::Array(list.values().map(Packed::to_value).collect()),
            Packed::Map(list) => Value::Map(list.to_attributes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(Value::Int),
            any::<f64>().prop_filter("NaN is not equal to itself", |n| !n.is_nan()).prop_map(Value::Double),
            ".{0,12}".prop_map(Value::from),
            prop::collection::vec(any::<u8>(), 0..8).prop_map(|bytes| Value::Bytes(bytes.into())),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec(("[a-z.]{0,8}".prop_map(Cow::Owned), inner), 0..4).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_packed_is_what_is_read(attributes in prop::collection::vec(("[a-zé.]{0,10}".prop_map(Cow::Owned), values()), 0..6)) {
            let mut names = NameWriter::default();
            let mut out = vec![];
            Packer { out: &mut out, names: &mut names }.attributes(&attributes);
            let shared = names.shared().clone();
            let table = shared.read();
            let mut unpacker = Unpacker::new(&out, &table);
            prop_assert_eq!(unpacker.attributes().to_attributes(), attributes);
            prop_assert!(unpacker.is_done());
        }
    }

    #[test]
    fn a_long_text_is_cut_at_a_character() {
        let mut names = NameWriter::default();
        let mut out = vec![];
        Packer { out: &mut out, names: &mut names }.value(&Value::from("é".repeat(VALUE_BYTES_MAX)));
        let shared = names.shared().clone();
        let table = shared.read();
        let Packed::Text(text) = Unpacker::new(&out, &table).value() else { panic!("a text") };
        assert!(text.len() <= VALUE_BYTES_MAX + 3 && text.ends_with("é…"));
    }
}
