//! The log signal.

use super::logs_v1::ExportLogsServiceRequest;
use super::resource::{attributes, body, resource, scope_name};
use super::traces::{span_id, trace_id};
use super::{DecodeError, Decoded, Encoding, request};
use crate::model::signal::{LogRecord, Resource, Severity};
use opentelemetry_proto::tonic::logs::v1 as proto;
use std::borrow::Cow;
use std::sync::Arc;

/// `now_ns` dates records whose sender gave no time.
pub fn decode_logs(body: &[u8], encoding: Encoding, now_ns: u64) -> Result<Decoded<LogRecord>, DecodeError> {
    Ok(log_records(request(body, encoding)?, now_ns))
}

pub fn log_records(request: ExportLogsServiceRequest, now_ns: u64) -> Decoded<LogRecord> {
    let mut decoded = Decoded::new();
    for of_resource in request.resource_logs {
        let resource = resource(of_resource.resource);
        for of_scope in of_resource.scope_logs {
            let scope = scope_name(of_scope.scope);
            decoded.items.extend(of_scope.log_records.into_iter().map(|proto| record(proto, &resource, &scope, now_ns)));
        }
    }
    decoded
}

fn record(proto: proto::LogRecord, resource: &Arc<Resource>, scope: &Arc<str>, now_ns: u64) -> LogRecord {
    let at_ns = [proto.time_unix_nano, proto.observed_time_unix_nano].into_iter().find(|at| *at > 0).unwrap_or(now_ns);
    let mut attributes = attributes(proto.attributes);
    if !proto.event_name.is_empty() {
        attributes.push((Cow::Borrowed("event.name"), proto.event_name.into()));
    }
    LogRecord {
        at_ns,
        severity: severity(proto.severity_number, &proto.severity_text),
        body: body(proto.body),
        resource: resource.clone(),
        scope: scope.clone(),
        trace_id: trace_id(&proto.trace_id),
        span_id: span_id(&proto.span_id),
        attributes,
    }
}

/// The number if it is one of the 24, else what the text says.
fn severity(number: i32, text: &str) -> Severity {
    match u8::try_from(number) {
        Ok(number @ 1..=24) => Severity(number),
        _ => match text.to_ascii_lowercase().as_str() {
            "trace" | "verbose" => Severity::TRACE,
            "debug" => Severity::DEBUG,
            "info" | "information" | "notice" => Severity::INFO,
            "warn" | "warning" => Severity::WARN,
            "error" | "err" => Severity::ERROR,
            "fatal" | "critical" | "alert" | "emergency" | "panic" => Severity::FATAL,
            _ => Severity(0),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::Value;

    #[test]
    fn a_record_keeps_its_severity_body_and_trace() {
        let json = r#"{"resourceLogs":[{"scopeLogs":[{"scope":{"name":"app"},"logRecords":[
            {"timeUnixNano":"5","severityNumber":13,"severityText":"WARN","body":{"stringValue":"slow"},
             "traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","attributes":[{"key":"ms","value":{"intValue":"912"}}]},
            {"observedTimeUnixNano":"6","severityText":"Error","body":{"kvlistValue":{"values":[{"key":"k","value":{"boolValue":true}}]}},
             "traceId":"","eventName":"cart.emptied"},
            {}]}]}]}"#;
        let records = decode_logs(json.as_bytes(), Encoding::Json, 99).expect("valid").items;
        assert_eq!(records.len(), 3);
        assert_eq!((records[0].at_ns, records[0].severity, &records[0].body), (5, Severity::WARN, &Value::from("slow")));
        assert!(records[0].trace_id.is_some() && records[0].span_id.is_some());
        assert_eq!((records[1].at_ns, records[1].severity), (6, Severity::ERROR));
        assert_eq!(records[1].body, Value::Map(vec![("k".into(), true.into())]));
        assert_eq!(records[1].attributes, vec![("event.name".into(), "cart.emptied".into())]);
        assert_eq!((records[2].at_ns, records[2].severity, records[2].trace_id), (99, Severity(0), None));
    }
}
