//! Telemetry data in OpenTelemetry's terms: spans, log records and metric points, each with the resource that produced it.
//! Source: OpenTelemetry Protocol 1.x data model. Times are Unix nanoseconds.

use serde::Serialize;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TraceId(pub [u8; 16]);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// All zeros is "no trace" on the wire.
    pub fn is_valid(self) -> bool {
        self.0 != [0; 16]
    }

    pub fn parse(hex: &str) -> Option<Self> {
        parse_hex(hex).map(TraceId).filter(|id| id.is_valid())
    }
}

impl SpanId {
    pub fn is_valid(self) -> bool {
        self.0 != [0; 8]
    }

    pub fn parse(hex: &str) -> Option<Self> {
        parse_hex(hex).map(SpanId).filter(|id| id.is_valid())
    }
}

/// Exactly `2 * N` lower- or upper-case hex digits.
fn parse_hex<const N: usize>(hex: &str) -> Option<[u8; N]> {
    let hex = hex.as_bytes();
    if hex.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
        let digit = |c: u8| (c as char).to_digit(16);
        *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
    }
    Some(bytes)
}

macro_rules! hex_text {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    };
}
hex_text!(TraceId);
hex_text!(SpanId);

/// An attribute value (`AnyValue`). Serialised as the plain JSON value; bytes as base64.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Arc<str>),
    Bytes(Arc<[u8]>),
    Array(Vec<Value>),
    Map(Vec<(Cow<'static, str>, Value)>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.into())
    }
}
impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text.into())
    }
}
impl From<Arc<str>> for Value {
    fn from(text: Arc<str>) -> Self {
        Value::Text(text)
    }
}
impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}
impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Bool(value)
    }
}
impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Double(number)
    }
}

impl Serialize for Value {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(number) => serializer.serialize_i64(*number),
            Value::Double(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => {
                use base64::Engine as _;
                serializer.serialize_str(&base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Value::Array(items) => serializer.collect_seq(items),
            Value::Map(entries) => serializer.collect_map(entries.iter().map(|(key, value)| (key, value))),
        }
    }
}

/// Key–value pairs in the order received; keys are unique by the producer's promise.
pub type Attributes = Vec<(Cow<'static, str>, Value)>;

/// Who produced a signal. `service` is `service.name`, or `unknown` when the producer gave none.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    pub service: Arc<str>,
    /// `service.instance.id`, or the instance name reactor gave; empty if unknown.
    pub instance: Arc<str>,
    pub attributes: Attributes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum SpanKind {
    #[default]
    Internal,
    Server,
    Client,
    Producer,
    Consumer,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub enum SpanStatus {
    #[default]
    Unset,
    Ok,
    Error(Arc<str>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpanEvent {
    pub at_ns: u64,
    pub name: Arc<str>,
    pub attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SpanLink {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub parent: Option<SpanId>,
    pub name: Arc<str>,
    pub kind: SpanKind,
    pub start_ns: u64,
    /// 0 while it has not ended.
    pub end_ns: u64,
    pub status: SpanStatus,
    pub resource: Arc<Resource>,
    /// Instrumentation scope; `reactor` for spans the runtime records itself.
    pub scope: Arc<str>,
    pub attributes: Attributes,
    pub events: Vec<SpanEvent>,
    pub links: Vec<SpanLink>,
}

/// OpenTelemetry severity number, 1 to 24: trace 1-4, debug 5-8, info 9-12, warn 13-16, error 17-20, fatal 21-24; 0 unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Severity(pub u8);

impl Severity {
    pub const TRACE: Severity = Severity(1);
    pub const DEBUG: Severity = Severity(5);
    pub const INFO: Severity = Severity(9);
    pub const WARN: Severity = Severity(13);
    pub const ERROR: Severity = Severity(17);
    pub const FATAL: Severity = Severity(21);

    pub fn text(self) -> &'static str {
        match self.0 {
            1..=4 => "trace",
            5..=8 => "debug",
            0 | 9..=12 => "info",
            13..=16 => "warn",
            17..=20 => "error",
            _ => "fatal",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogRecord {
    pub at_ns: u64,
    pub severity: Severity,
    pub body: Value,
    pub resource: Arc<Resource>,
    pub scope: Arc<str>,
    pub trace_id: Option<TraceId>,
    pub span_id: Option<SpanId>,
    pub attributes: Attributes,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// UCUM unit as sent (`ms`, `By`, `1`, `{request}`).
    pub unit: Arc<str>,
    pub kind: MetricKind,
    pub resource: Arc<Resource>,
    pub points: Vec<MetricPoint>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    Gauge,
    /// `monotonic` counters are shown as rates; `delta` points are added up on arrival.
    Sum {
        monotonic: bool,
        delta: bool,
    },
    Histogram {
        delta: bool,
    },
    ExponentialHistogram {
        delta: bool,
    },
    Summary,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MetricPoint {
    pub at_ns: u64,
    pub start_ns: u64,
    pub attributes: Attributes,
    pub value: PointValue,
}

#[derive(Clone, Debug, PartialEq)]
pub enum PointValue {
    Number(f64),
    /// `counts` has one more entry than `bounds`; bucket `i` holds values up to and including `bounds[i]`.
    Histogram {
        count: u64,
        sum: f64,
        bounds: Vec<f64>,
        counts: Vec<u64>,
    },
    ExponentialHistogram {
        count: u64,
        sum: f64,
        scale: i32,
        zero_count: u64,
        positive_offset: i32,
        positive: Vec<u64>,
        negative_offset: i32,
        negative: Vec<u64>,
    },
    Summary {
        count: u64,
        sum: f64,
        quantiles: Vec<(f64, f64)>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_read_and_write_hex() {
        let id = TraceId::parse("4bf92f3577b34da6a3ce929d0e0e4736").expect("valid");
        assert_eq!(id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(TraceId::parse("00000000000000000000000000000000"), None);
        assert_eq!(SpanId::parse("00f067aa0ba902b"), None);
        assert_eq!(SpanId::parse("00f067aa0ba902bg"), None);
    }
}
