//! The port through which engines hand over what they observed, without knowing who listens.
//!
//! A sink is set once, by wiring; before that (and in unit tests) everything is dropped. Emitting never blocks and never fails.
//! Sampling is by whole traces: [`keep`] answers from the trace id alone, so that every engine decides alike.

use super::happening::Happening;
use super::signal::{LogRecord, Span, TraceId};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

pub trait Sink: Send + Sync {
    fn span(&self, span: Span);
    fn log(&self, record: LogRecord);
    fn happening(&self, happening: Happening);
}

static SINK: OnceLock<Box<dyn Sink>> = OnceLock::new();

/// Traces whose low 64 bits are at most this are kept. `u64::MAX` keeps all.
static KEEP_UP_TO: AtomicU64 = AtomicU64::new(u64::MAX);

/// Installs the process's sink. A second one is refused and handed back.
pub fn install(sink: Box<dyn Sink>) -> Result<(), Box<dyn Sink>> {
    SINK.set(sink)
}

pub fn is_installed() -> bool {
    SINK.get().is_some()
}

pub fn span(span: Span) {
    if let Some(sink) = SINK.get() {
        sink.span(span);
    }
}

pub fn log(record: LogRecord) {
    if let Some(sink) = SINK.get() {
        sink.log(record);
    }
}

pub fn happening(happening: Happening) {
    if let Some(sink) = SINK.get() {
        sink.happening(happening);
    }
}

/// Whether the runtime's own spans of this trace are recorded, at the rate in force.
pub fn keep(trace_id: TraceId) -> bool {
    let low = u64::from_be_bytes(trace_id.0[8..].try_into().expect("the last 8 of 16 bytes"));
    keep_low(low)
}

/// [`keep`] for a caller that drew only the low 64 bits so far.
pub fn keep_low(low: u64) -> bool {
    low <= KEEP_UP_TO.load(Ordering::Relaxed)
}

/// Sets the share of traces kept, 0.0 to 1.0.
pub fn set_sample_rate(rate: f64) {
    let limit = if rate >= 1.0 { u64::MAX } else { (rate.max(0.0) * u64::MAX as f64) as u64 };
    KEEP_UP_TO.store(limit, Ordering::Relaxed);
}

pub fn sample_rate() -> f64 {
    match KEEP_UP_TO.load(Ordering::Relaxed) {
        u64::MAX => 1.0,
        limit => limit as f64 / u64::MAX as f64,
    }
}
