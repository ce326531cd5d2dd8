//! Mends OTLP/JSON so that the derived reader of `opentelemetry-proto` takes what real senders write.
//!
//! Seen in the wild and refused by that reader: empty lists left out (`{"arrayValue": {}}`, the collector's way), explicit `null`
//! for a field that is not set, numbers that JSON has no number for (`"NaN"`), and enumerations by name, which protobuf's own JSON
//! mapping writes.

use serde_json::{Map, Value};

/// Rewrites `value` in place. Unknown fields stay: the reader skips them.
pub fn mend(value: &mut Value) {
    match value {
        Value::Object(object) => mend_object(object),
        Value::Array(items) => items.iter_mut().for_each(mend),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn mend_object(object: &mut Map<String, Value>) {
    object.retain(|_, value| !value.is_null());
    if let Some(text) = take_text(object, "doubleValue") {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => object.insert("doubleValue".into(), number.into()),
            _ => object.insert("stringValue".into(), Value::String(text)),
        };
    }
    for key in ["asDouble", "sum", "min", "max", "zeroThreshold"] {
        if let Some(number) = take_text(object, key).and_then(|text| text.parse::<f64>().ok()).filter(|n| n.is_finite()) {
            object.insert(key.into(), number.into());
        }
    }
    for (key, value) in object.iter_mut() {
        match key.as_str() {
            "arrayValue" | "kvlistValue" => {
                if let Some(list) = value.as_object_mut() {
                    list.entry("values").or_insert_with(|| Value::Array(Vec::new()));
                }
            }
            "kind" | "code" | "severityNumber" | "aggregationTemporality" => {
                if let Some(number) = value.as_str().and_then(enum_number) {
                    *value = number.into();
                }
            }
            _ => {}
        }
        mend(value);
    }
}

/// Removes `key` if its value is a string, and returns it.
fn take_text(object: &mut Map<String, Value>, key: &str) -> Option<String> {
    object.get(key)?.as_str()?;
    match object.remove(key) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

fn enum_number(name: &str) -> Option<i32> {
    use opentelemetry_proto::tonic::logs::v1::SeverityNumber;
    use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;
    use opentelemetry_proto::tonic::trace::v1::{span::SpanKind, status::StatusCode};
    SpanKind::from_str_name(name)
        .map(|kind| kind as i32)
        .or_else(|| StatusCode::from_str_name(name).map(|code| code as i32))
        .or_else(|| SeverityNumber::from_str_name(name).map(|severity| severity as i32))
        .or_else(|| AggregationTemporality::from_str_name(name).map(|temporality| temporality as i32))
        .or_else(|| name.parse().ok())
}
