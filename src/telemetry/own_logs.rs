//! reactor's own `tracing` events as log records of the service `reactor`, for the dashboard.
//!
//! Never of the path that takes telemetry in: an event there would make a record, which would make an event. Happenings are left
//! out too, since the engine turns each of them into its one log line itself.

use crate::kernel::Clock;
use crate::model::emit;
use crate::model::signal::{Attributes, LogRecord, Resource, Severity, SpanId, TraceId, Value};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::{Layer, filter};

/// Target of the events that say a happening on standard error.
pub const HAPPENING_TARGET: &str = "reactor::happening";

/// Modules whose events would feed themselves.
const NEVER: [&str; 4] = [HAPPENING_TARGET, "reactor::telemetry", "reactor::net::otlp", "reactor::wire::otlp"];

/// The service these records belong to.
pub const SERVICE: &str = "reactor";

thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });

/// A layer to put beside the one that writes standard error. Takes the crate's own events, from info upwards.
pub fn layer<S>(clock: Clock) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let resource = Arc::new(Resource { service: SERVICE.into(), instance: SERVICE.into(), attributes: Attributes::new() });
    OwnLogs { clock, resource }.with_filter(filter::filter_fn(is_taken))
}

fn is_taken(metadata: &Metadata<'_>) -> bool {
    let target = metadata.target();
    let is_within = |module: &str| target.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    metadata.is_event() && *metadata.level() <= Level::INFO && is_within("reactor") && !NEVER.iter().any(|never| is_within(never))
}

struct OwnLogs {
    clock: Clock,
    resource: Arc<Resource>,
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for OwnLogs {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if INSIDE.replace(true) {
            return;
        }
        emit::log(self.record(event));
        INSIDE.set(false);
    }
}

impl OwnLogs {
    fn record(&self, event: &Event<'_>) -> LogRecord {
        let mut fields = Fields::default();
        event.record(&mut fields);
        LogRecord {
            at_ns: self.clock.unix_nanos(),
            severity: severity(*event.metadata().level()),
            body: Value::from(fields.message),
            resource: self.resource.clone(),
            scope: Arc::from(event.metadata().target()),
            trace_id: fields.trace_id,
            span_id: fields.span_id,
            attributes: fields.attributes,
        }
    }
}

fn severity(level: Level) -> Severity {
    match level {
        Level::ERROR => Severity::ERROR,
        Level::WARN => Severity::WARN,
        Level::INFO => Severity::INFO,
        Level::DEBUG => Severity::DEBUG,
        Level::TRACE => Severity::TRACE,
    }
}

/// `message` is the body, `trace_id` and `span_id` place it in a trace, the rest are attributes.
#[derive(Default)]
struct Fields {
    message: String,
    trace_id: Option<TraceId>,
    span_id: Option<SpanId>,
    attributes: Attributes,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        self.attributes.push((Cow::Borrowed(field.name()), value));
    }

    fn add_text(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.message = text,
            "trace_id" if TraceId::parse(&text).is_some() => self.trace_id = TraceId::parse(&text),
            "span_id" if SpanId::parse(&text).is_some() => self.span_id = SpanId::parse(&text),
            // Most callers have an optional reason and pass it empty.
            _ if text.is_empty() => {}
            _ => self.add(field, Value::from(text)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add_text(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, value.to_owned());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, Value::Int(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        match i64::try_from(value) {
            Ok(number) => self.add(field, Value::Int(number)),
            Err(_) => self.add_text(field, value.to_string()),
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, Value::Double(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, Value::Bool(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use tracing_subscriber::layer::SubscriberExt;

    /// Keeps the records that the layer would emit.
    struct Kept {
        own: OwnLogs,
        records: Arc<Mutex<Vec<LogRecord>>>,
    }

    impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Kept {
        fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
            self.records.lock().expect("not poisoned").push(self.own.record(event));
        }
    }

    #[test]
    fn an_event_becomes_a_record_with_its_trace_and_the_ingest_path_stays_silent() {
        let records = Arc::new(Mutex::new(Vec::new()));
        let resource = Arc::new(Resource { service: SERVICE.into(), instance: SERVICE.into(), attributes: vec![] });
        let kept = Kept { own: OwnLogs { clock: Clock::manual(7), resource }, records: records.clone() };
        let subscriber = tracing_subscriber::registry().with(kept.with_filter(filter::filter_fn(is_taken)));
        tracing::subscriber::with_default(subscriber, || {
            let trace_id = TraceId::parse("5b8efff798038103d269b633813fc60c").expect("valid");
            tracing::warn!(target: "reactor::gateway", %trace_id, status = 504, error = "", "request failed");
            tracing::debug!(target: "reactor::gateway", "too fine");
            tracing::error!(target: "reactor::telemetry::engine", "would feed itself");
            tracing::error!(target: "reactor::net::otlp", "would feed itself");
            tracing::info!(target: "reactor::happening", "has its line already");
            tracing::error!(target: "h2::codec", "not ours");
            tracing::info!(target: "reactor::net::otlp_like", "ours");
        });
        let records = records.lock().expect("not poisoned");
        assert_eq!(records.len(), 2);
        assert_eq!(
            (records[0].at_ns, records[0].severity, &records[0].body),
            (7, Severity::WARN, &Value::from("request failed"))
        );
        assert!(records[0].trace_id.is_some());
        assert_eq!(records[0].attributes, vec![("status".into(), Value::Int(504))]);
        assert_eq!(&*records[1].scope, "reactor::net::otlp_like");
    }
}
