//! What the runtime's own engines hand in through `model::emit`.

use super::engine::Telemetry;
use super::inbox::Item;
use super::own_logs::HAPPENING_TARGET;
use crate::model::emit::{self, Sink};
use crate::model::happening::Happening;
use crate::model::signal::{LogRecord, Severity, Span};
use std::sync::Arc;

pub struct EngineSink(Arc<Telemetry>);

impl EngineSink {
    pub fn new(telemetry: Arc<Telemetry>) -> Self {
        EngineSink(telemetry)
    }
}

impl Sink for EngineSink {
    // HOT
    fn span(&self, span: Span) {
        let share = emit::sample_rate();
        if let Some(lower) = self.0.budget().count(share) {
            emit::set_sample_rate(lower);
        }
        self.0.take(Item::Span(span, (1.0 / share) as f32));
    }

    fn log(&self, record: LogRecord) {
        self.0.take(Item::Log(record));
    }

    /// Said once on standard error; its record, its row and its mark on the tape are made when it is stored.
    fn happening(&self, happening: Happening) {
        let (name, line, space) = (happening.what.name(), happening.what.line(), &*happening.space);
        match happening.what.severity() {
            severity if severity >= Severity::ERROR => tracing::error!(target: HAPPENING_TARGET, name, space, "{line}"),
            severity if severity >= Severity::WARN => tracing::warn!(target: HAPPENING_TARGET, name, space, "{line}"),
            _ => tracing::info!(target: HAPPENING_TARGET, name, space, "{line}"),
        }
        self.0.take(Item::Happening(happening));
    }
}
