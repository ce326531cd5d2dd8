//! AMQP field tables as values (AMQP 0-9-1 §4.2.5.5, with the types RabbitMQ reads and writes). The bytes are `wire::amqp`'s.

use crate::kernel::counted;
use bytes::Bytes;

/// Pairs in wire order. Duplicate keys are kept as received; look-ups find the first.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Table(pub Vec<(String, Field)>);

#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// `t`
    Bool(bool),
    /// `b`
    I8(i8),
    /// `B`
    U8(u8),
    /// `s` (RabbitMQ's signed 16 bit)
    I16(i16),
    /// `u`
    U16(u16),
    /// `I`
    I32(i32),
    /// `i`
    U32(u32),
    /// `l` (also read from `L`)
    I64(i64),
    /// `f`
    F32(f32),
    /// `d`
    F64(f64),
    /// `D`: value / 10^scale
    Decimal { scale: u8, value: i32 },
    /// `S`: any bytes, usually UTF-8
    Text(Bytes),
    /// `x`
    Bytes(Bytes),
    /// `A`
    Array(Vec<Field>),
    /// `T`: seconds since the Unix epoch
    Timestamp(u64),
    /// `F`
    Table(Table),
    /// `V`
    Void,
}

impl Field {
    pub fn text(text: impl Into<String>) -> Self {
        Field::Text(Bytes::from(text.into()))
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Field::Text(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// Any integer type, widened.
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Field::I8(n) => Some(n.into()),
            Field::U8(n) => Some(n.into()),
            Field::I16(n) => Some(n.into()),
            Field::U16(n) => Some(n.into()),
            Field::I32(n) => Some(n.into()),
            Field::U32(n) => Some(n.into()),
            Field::I64(n) => Some(n),
            _ => None,
        }
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Field::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Value and type as RabbitMQ's error texts spell them.
    pub fn spelled(&self) -> (String, &'static str) {
        match self {
            Field::Bool(value) => (value.to_string(), "bool"),
            Field::I8(value) => (value.to_string(), "byte"),
            Field::U8(value) => (value.to_string(), "unsignedbyte"),
            Field::I16(value) => (value.to_string(), "short"),
            Field::U16(value) => (value.to_string(), "unsignedshort"),
            Field::I32(value) => (value.to_string(), "signedint"),
            Field::U32(value) => (value.to_string(), "unsignedint"),
            Field::I64(value) => (value.to_string(), "long"),
            Field::F32(value) => (value.to_string(), "float"),
            Field::F64(value) => (value.to_string(), "double"),
            Field::Decimal { scale, value } => (format!("{value}e-{scale}"), "decimal"),
            Field::Text(bytes) => (String::from_utf8_lossy(bytes).into_owned(), "longstr"),
            Field::Bytes(bytes) => (counted(bytes.len(), "byte"), "binary"),
            Field::Array(items) => (counted(items.len(), "item"), "array"),
            Field::Timestamp(seconds) => (seconds.to_string(), "timestamp"),
            Field::Table(table) => (counted(table.0.len(), "field"), "table"),
            Field::Void => ("undefined".into(), "void"),
        }
    }
}

impl Table {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn get(&self, key: &str) -> Option<&Field> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, field)| field)
    }

    pub fn with(mut self, key: &str, field: Field) -> Self {
        self.0.push((key.to_owned(), field));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &Field)> {
        self.0.iter().map(|(name, field)| (name.as_str(), field))
    }
}
