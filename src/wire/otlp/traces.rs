//! The trace signal.

use super::resource::{attributes, resource, scope_name};
use super::traces_v1::ExportTraceServiceRequest;
use super::{DecodeError, Decoded, Encoding, request};
use crate::model::signal::{Resource, Span, SpanEvent, SpanId, SpanKind, SpanLink, SpanStatus, TraceId};
use opentelemetry_proto::tonic::trace::v1::{self as proto, span::SpanKind as ProtoKind, status::StatusCode};
use std::sync::Arc;

pub fn decode_spans(body: &[u8], encoding: Encoding) -> Result<Decoded<Span>, DecodeError> {
    Ok(spans(request(body, encoding)?))
}

pub fn spans(request: ExportTraceServiceRequest) -> Decoded<Span> {
    let mut decoded = Decoded::new();
    for of_resource in request.resource_spans {
        let resource = resource(of_resource.resource);
        for of_scope in of_resource.scope_spans {
            let scope = scope_name(of_scope.scope);
            for proto in of_scope.spans {
                match span(proto, &resource, &scope) {
                    Ok(span) => decoded.items.push(span),
                    Err(why) => decoded.reject(1, why),
                }
            }
        }
    }
    decoded
}

fn span(proto: proto::Span, resource: &Arc<Resource>, scope: &Arc<str>) -> Result<Span, &'static str> {
    let trace_id = trace_id(&proto.trace_id).ok_or("a span's trace_id must be 16 bytes, not all zero")?;
    let span_id = span_id(&proto.span_id).ok_or("a span's span_id must be 8 bytes, not all zero")?;
    let parent = match proto.parent_span_id.as_slice() {
        [] => None,
        zero if zero.iter().all(|byte| *byte == 0) => None,
        bytes => Some(self::span_id(bytes).ok_or("a span's parent_span_id must be 8 bytes")?),
    };
    Ok(Span {
        trace_id,
        span_id,
        parent,
        name: proto.name.into(),
        kind: kind(proto.kind),
        start_ns: proto.start_time_unix_nano,
        // A stepped clock may end a span before it began; it then took no time rather than centuries.
        end_ns: match proto.end_time_unix_nano {
            0 => 0,
            end => end.max(proto.start_time_unix_nano),
        },
        status: status(proto.status),
        resource: resource.clone(),
        scope: scope.clone(),
        attributes: attributes(proto.attributes),
        events: proto.events.into_iter().map(event).collect(),
        links: proto.links.into_iter().filter_map(link).collect(),
    })
}

pub fn trace_id(bytes: &[u8]) -> Option<TraceId> {
    Some(TraceId(bytes.try_into().ok()?)).filter(|id| id.is_valid())
}

pub fn span_id(bytes: &[u8]) -> Option<SpanId> {
    Some(SpanId(bytes.try_into().ok()?)).filter(|id| id.is_valid())
}

fn kind(number: i32) -> SpanKind {
    match ProtoKind::try_from(number) {
        Ok(ProtoKind::Server) => SpanKind::Server,
        Ok(ProtoKind::Client) => SpanKind::Client,
        Ok(ProtoKind::Producer) => SpanKind::Producer,
        Ok(ProtoKind::Consumer) => SpanKind::Consumer,
        Ok(ProtoKind::Internal | ProtoKind::Unspecified) | Err(_) => SpanKind::Internal,
    }
}

fn status(proto: Option<proto::Status>) -> SpanStatus {
    let Some(status) = proto else { return SpanStatus::Unset };
    match StatusCode::try_from(status.code) {
        Ok(StatusCode::Ok) => SpanStatus::Ok,
        Ok(StatusCode::Error) => SpanStatus::Error(status.message.into()),
        Ok(StatusCode::Unset) | Err(_) => SpanStatus::Unset,
    }
}

fn event(proto: proto::span::Event) -> SpanEvent {
    SpanEvent { at_ns: proto.time_unix_nano, name: proto.name.into(), attributes: attributes(proto.attributes) }
}

fn link(proto: proto::span::Link) -> Option<SpanLink> {
    Some(SpanLink {
        trace_id: trace_id(&proto.trace_id)?,
        span_id: span_id(&proto.span_id)?,
        attributes: attributes(proto.attributes),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::Value;
    use prost::Message;

    fn one_span(span: &str) -> String {
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.name","value":{{"stringValue":"orders"}}}},
            {{"key":"service.instance.id","value":{{"stringValue":"orders-1"}}}},{{"key":"host.name","value":{{"stringValue":"box"}}}}]}},
            "scopeSpans":[{{"scope":{{"name":"http","version":"1"}},"spans":[{span}]}}]}}]}}"#
        )
    }

    #[test]
    fn json_takes_hex_ids_and_numbers_as_strings_or_numbers() {
        let json = one_span(
            r#"{"traceId":"5B8EFFF798038103D269B633813FC60C","spanId":"eee19b7ec3c1b174","parentSpanId":"eee19b7ec3c1b173",
            "name":"GET /orders","kind":2,"startTimeUnixNano":"1544712660000000000","endTimeUnixNano":1544712661000000000,
            "attributes":[{"key":"a","value":{"intValue":"-9007199254740993"}},{"key":"b","value":{"intValue":7}},
            {"key":"c","value":{"doubleValue":0.5}},{"key":"d","value":{"arrayValue":{}}},{"key":"e","value":{"kvlistValue":{"values":[]}}},
            {"key":"f","value":{}},{"key":"g","value":null},{"key":"h","value":{"doubleValue":"NaN"}},{"key":"i","value":{"bytesValue":"AAE="}}],
            "events":[{"timeUnixNano":"1544712660500000000","name":"retry","attributes":[]}],
            "links":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b175"}],
            "status":{"code":2,"message":"no stock"},"droppedAttributesCount":0,"flags":257,"somethingNew":{"a":[1]}}"#,
        );
        let decoded = decode_spans(json.as_bytes(), Encoding::Json).expect("valid");
        assert_eq!((decoded.items.len(), decoded.rejected), (1, 0));
        let span = &decoded.items[0];
        assert_eq!(span.trace_id.to_string(), "5b8efff798038103d269b633813fc60c");
        assert_eq!(span.parent.map(|id| id.to_string()).as_deref(), Some("eee19b7ec3c1b173"));
        assert_eq!((span.start_ns, span.end_ns), (1_544_712_660_000_000_000, 1_544_712_661_000_000_000));
        assert_eq!(span.kind, SpanKind::Server);
        assert_eq!(span.status, SpanStatus::Error("no stock".into()));
        assert_eq!((&*span.resource.service, &*span.resource.instance, &*span.scope), ("orders", "orders-1", "http"));
        assert_eq!(span.resource.attributes, vec![("host.name".into(), "box".into())]);
        let values: Vec<_> = span.attributes.iter().map(|(_, value)| value.clone()).collect();
        assert_eq!(
            values,
            [
                Value::Int(-9_007_199_254_740_993),
                Value::Int(7),
                Value::Double(0.5),
                Value::Array(vec![]),
                Value::Map(vec![]),
                Value::Null,
                Value::Null,
                "NaN".into(),
                Value::Bytes([0, 1].into()),
            ]
        );
        assert_eq!((span.events.len(), span.links.len()), (1, 1));
    }

    #[test]
    fn enumerations_by_name_are_understood() {
        let json = one_span(
            r#"{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"x","kind":"SPAN_KIND_CONSUMER",
            "startTimeUnixNano":"2","endTimeUnixNano":"1","status":{"code":"STATUS_CODE_OK"}}"#,
        );
        let decoded = decode_spans(json.as_bytes(), Encoding::Json).expect("valid");
        let span = &decoded.items[0];
        assert_eq!((span.kind, &span.status), (SpanKind::Consumer, &SpanStatus::Ok));
        assert_eq!(span.end_ns, 2, "a span never ends before it starts");
    }

    #[test]
    fn a_span_with_a_bad_id_is_rejected_and_the_rest_is_taken() {
        let good = r#"{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","name":"good"}"#;
        let json =
            one_span(&format!(r#"{{"traceId":"5b8e","spanId":"eee19b7ec3c1b174"}},{good},{{"spanId":"eee19b7ec3c1b174"}}"#));
        let decoded = decode_spans(json.as_bytes(), Encoding::Json).expect("valid");
        assert_eq!((decoded.items.len(), decoded.rejected), (1, 2));
        assert!(decoded.why.expect("told").contains("trace_id"));
    }

    #[test]
    fn protobuf_and_json_of_one_request_give_the_same_spans() {
        let request = ExportTraceServiceRequest {
            resource_spans: vec![proto::ResourceSpans {
                resource: None,
                scope_spans: vec![proto::ScopeSpans {
                    spans: vec![proto::Span {
                        trace_id: vec![7; 16],
                        span_id: vec![9; 8],
                        name: "job".into(),
                        start_time_unix_nano: u64::MAX - 1,
                        end_time_unix_nano: u64::MAX,
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            }],
        };
        let json = serde_json::to_vec(&request).expect("serialises");
        let from_json = decode_spans(&json, Encoding::Json).expect("valid").items;
        let from_protobuf = decode_spans(&request.encode_to_vec(), Encoding::Protobuf).expect("valid").items;
        assert_eq!(from_json, from_protobuf);
        assert_eq!(&*from_json[0].resource.service, "unknown");
    }

    #[test]
    fn garbage_is_an_error_that_says_what_it_is_not() {
        let json = decode_spans(b"{\"resourceSpans\": 3}", Encoding::Json).expect_err("wrong type");
        assert!(json.to_string().starts_with("the body is not OTLP JSON"), "{json}");
        let protobuf = decode_spans(b"\x0a\xff\xff\xff\xff\x0f", Encoding::Protobuf).expect_err("lying length");
        assert!(protobuf.to_string().starts_with("the body is not an OTLP protobuf message"), "{protobuf}");
        let deep = format!("{}{}", r#"{"resourceSpans":"#.repeat(400), "}".repeat(400));
        assert!(decode_spans(deep.as_bytes(), Encoding::Json).is_err(), "deep nesting is refused, not a stack overflow");
    }

    #[test]
    fn an_empty_request_is_an_empty_answer() {
        assert!(decode_spans(b"", Encoding::Protobuf).expect("valid").items.is_empty());
        assert!(decode_spans(b"{}", Encoding::Json).expect("valid").items.is_empty());
    }
}
