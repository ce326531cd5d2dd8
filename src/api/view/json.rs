//! AMQP values as JSON, for people to read.

use crate::model::table::{Field, Table};
use base64::Engine as _;
use serde_json::{Map, Value};
use std::time::Duration;

/// A field table as an object; of a repeated key the first is kept, as look-ups do.
pub fn table(table: &Table) -> Map<String, Value> {
    let mut object = Map::new();
    for (key, value) in table.iter() {
        if !object.contains_key(key) {
            object.insert(key.to_owned(), field(value));
        }
    }
    object
}

/// Numbers that JSON cannot hold (NaN, infinities) become text, bytes that are no UTF-8 base64, timestamps seconds.
pub fn field(value: &Field) -> Value {
    match value {
        Field::Bool(value) => Value::Bool(*value),
        Field::I8(number) => (*number).into(),
        Field::U8(number) => (*number).into(),
        Field::I16(number) => (*number).into(),
        Field::U16(number) => (*number).into(),
        Field::I32(number) => (*number).into(),
        Field::U32(number) => (*number).into(),
        Field::I64(number) => (*number).into(),
        Field::F32(number) => float(f64::from(*number)),
        Field::F64(number) => float(*number),
        Field::Decimal { scale, value } => float(f64::from(*value) / 10_f64.powi(i32::from(*scale))),
        Field::Text(bytes) | Field::Bytes(bytes) => Value::String(text(bytes).0),
        Field::Array(items) => items.iter().map(field).collect(),
        Field::Timestamp(seconds) => (*seconds).into(),
        Field::Table(inner) => Value::Object(table(inner)),
        Field::Void => Value::Null,
    }
}

fn float(number: f64) -> Value {
    serde_json::Number::from_f64(number).map_or_else(|| Value::String(number.to_string()), Value::Number)
}

/// Bytes as text, with the name of the encoding that was needed.
pub fn text(bytes: &[u8]) -> (String, &'static str) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), "utf8"),
        Err(_) => (base64::engine::general_purpose::STANDARD.encode(bytes), "base64"),
    }
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn every_field_type_has_a_json_form() {
        let inner = Table::new().with("n", Field::I64(-1));
        let all = Table::new()
            .with("text", Field::text("é"))
            .with("bytes", Field::Bytes(Bytes::from_static(&[0xff, 0])))
            .with("nan", Field::F64(f64::NAN))
            .with("decimal", Field::Decimal { scale: 2, value: 314 })
            .with("list", Field::Array(vec![Field::Void, Field::Bool(true), Field::Timestamp(7)]))
            .with("table", Field::Table(inner))
            .with("text", Field::text("later"));
        let json = Value::Object(table(&all)).to_string();
        assert_eq!(json, r#"{"bytes":"/wA=","decimal":3.14,"list":[null,true,7],"nan":"NaN","table":{"n":-1},"text":"é"}"#);
    }
}
