//! Happenings: a bounded list for pages, a ring for followers, one log record each, a mark on the tape where one is due.

use super::core::Core;
use super::live::{RingRow, RingStream, Stream};
use super::own_logs::SERVICE;
use super::view::{HappeningRow, MarkerKind, Page};
use crate::model::happening::{Happening, What};
use crate::model::signal::{Attributes, LogRecord, Resource, Severity, Value};
use serde_json::value::to_raw_value;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const KEPT_MAX: usize = 10_000;
const RING_BYTES_MAX: usize = 8 * 1024 * 1024;

pub struct Happenings {
    kept: Mutex<VecDeque<HappeningRow>>,
    ring: Arc<RingStream>,
    resource: Arc<Resource>,
}

impl Default for Happenings {
    fn default() -> Self {
        Happenings {
            kept: Mutex::default(),
            ring: Arc::new(RingStream::new(RING_BYTES_MAX)),
            resource: Arc::new(Resource { service: SERVICE.into(), instance: SERVICE.into(), attributes: Attributes::new() }),
        }
    }
}

impl Happenings {
    pub fn stream(&self) -> Arc<dyn Stream> {
        self.ring.clone()
    }

    pub fn store(&self, happening: &Happening, core: &mut Core, now_ns: u64) {
        let line: Arc<str> = happening.what.line().into();
        if let Some(kind) = mark_of(&happening.what) {
            let href = happening.what.service().map(|service| format!("/services/{service}"));
            core.tape.mark(happening.at_ns, kind, line.to_string(), href);
        }
        core.push_log(&self.record(happening, &line), now_ns);
        let mut kept = self.kept();
        self.ring.push(|seq| {
            let row = HappeningRow {
                seq,
                at_us: happening.at_ns / 1_000,
                name: happening.what.name(),
                severity: severity_text(happening.what.severity()),
                space: happening.space.clone(),
                service: happening.what.service().map(Arc::from),
                queue: happening.what.queue().cloned(),
                line: line.clone(),
            };
            let ring_row = ring_row(&row);
            if kept.len() >= KEPT_MAX {
                kept.pop_front();
            }
            kept.push_back(row);
            ring_row
        });
    }

    /// The log line of a happening.
    fn record(&self, happening: &Happening, line: &Arc<str>) -> LogRecord {
        let mut attributes: Attributes = vec![
            (Cow::Borrowed("reactor.happening"), Value::from(happening.what.name())),
            (Cow::Borrowed("reactor.space"), Value::Text(happening.space.clone())),
        ];
        if let Some(service) = happening.what.service() {
            attributes.push((Cow::Borrowed("reactor.service"), Value::from(service)));
        }
        LogRecord {
            at_ns: happening.at_ns,
            severity: happening.what.severity(),
            body: Value::Text(line.clone()),
            resource: self.resource.clone(),
            scope: Arc::from("reactor::happening"),
            trace_id: None,
            span_id: None,
            attributes,
        }
    }

    pub fn page(&self, before: Option<u64>, limit: usize) -> Page<HappeningRow> {
        let kept = self.kept();
        let older = kept.partition_point(|row| before.is_none_or(|before| row.seq < before));
        let limit = if limit == 0 { 200 } else { limit };
        let rows: Vec<_> = kept.range(older.saturating_sub(limit)..older).cloned().collect();
        let before = rows.first().filter(|_| older > rows.len()).map(|row| row.seq);
        let oldest_us = kept.front().map(|row| row.at_us);
        Page { rows, before, matched: kept.len() as u64, outside: 0, oldest_us, took_ns: 0 }
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<HappeningRow>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ring_row(row: &HappeningRow) -> RingRow {
    let mut fields = vec![("space", row.space.clone()), ("name", Arc::from(row.name)), ("severity", Arc::from(row.severity))];
    fields.extend(row.service.iter().map(|service| ("service", service.clone())));
    let json = to_raw_value(row).expect("views are plain data with text keys");
    RingRow { fields, text: row.line.clone(), json: json.into() }
}

fn severity_text(severity: Severity) -> &'static str {
    match severity {
        severity if severity >= Severity::ERROR => "error",
        severity if severity >= Severity::WARN => "warn",
        _ => "info",
    }
}

/// What is worth a mark on the time axis.
fn mark_of(what: &What) -> Option<MarkerKind> {
    match what.name() {
        "instance.exited" | "instance.failing" => Some(MarkerKind::Exit),
        "definition.changed" | "service.attached" | "service.detached" => Some(MarkerKind::Change),
        _ => None,
    }
}
