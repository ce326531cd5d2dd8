//! Resources, scopes and attribute values.

use crate::model::signal::{Attributes, Resource, Value};
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource as ProtoResource;
use std::borrow::Cow;
use std::sync::Arc;

/// Deeper values are cut to null. Protobuf itself stops at 100 messages deep, JSON at 128.
const VALUE_DEPTH_MAX: usize = 32;

/// `service.name` and `service.instance.id` become fields; the rest stays as attributes.
pub fn resource(proto: Option<ProtoResource>) -> Arc<Resource> {
    let mut service = None;
    let mut instance = None;
    let mut rest = Attributes::new();
    for (key, value) in attributes(proto.map(|proto| proto.attributes).unwrap_or_default()) {
        match (&*key, value) {
            ("service.name", Value::Text(text)) if !text.is_empty() => service = Some(text),
            ("service.instance.id", Value::Text(text)) => instance = Some(text),
            (_, value) => rest.push((key, value)),
        }
    }
    Arc::new(Resource {
        service: service.unwrap_or_else(|| Arc::from("unknown")),
        instance: instance.unwrap_or_else(|| Arc::from("")),
        attributes: rest,
    })
}

pub fn scope_name(scope: Option<InstrumentationScope>) -> Arc<str> {
    Arc::from(scope.map(|scope| scope.name).unwrap_or_default())
}

pub fn attributes(pairs: Vec<KeyValue>) -> Attributes {
    pairs.into_iter().map(|pair| (Cow::Owned(pair.key), value(pair.value, VALUE_DEPTH_MAX))).collect()
}

/// A log record's body.
pub fn body(any: Option<AnyValue>) -> Value {
    value(any, VALUE_DEPTH_MAX)
}

fn value(any: Option<AnyValue>, depth: usize) -> Value {
    let Some(any) = any.and_then(|any| any.value) else { return Value::Null };
    match any {
        Any::StringValue(text) => Value::Text(text.into()),
        Any::BoolValue(value) => Value::Bool(value),
        Any::IntValue(number) => Value::Int(number),
        Any::DoubleValue(number) => Value::Double(number),
        Any::BytesValue(bytes) => Value::Bytes(bytes.into()),
        Any::ArrayValue(_) | Any::KvlistValue(_) if depth == 0 => Value::Null,
        Any::ArrayValue(array) => Value::Array(array.values.into_iter().map(|item| value(Some(item), depth - 1)).collect()),
        Any::KvlistValue(list) => {
            Value::Map(list.values.into_iter().map(|pair| (Cow::Owned(pair.key), value(pair.value, depth - 1))).collect())
        }
        // An index into the profiles signal's string table, which these three signals do not carry.
        Any::StringValueStrindex(_) => Value::Null,
    }
}
