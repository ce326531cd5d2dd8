//! What was taken from the inbox, stored in runs of bounded length.

use super::core::Core;
use super::happenings::Happenings;
use super::inbox::Item;
use super::live::Channel;
use crate::model::happening::Happening;
use crate::model::signal::{LogRecord, Metric, Span};
use std::vec::IntoIter;

pub enum Work {
    Spans(IntoIter<Span>),
    OwnSpan(Span, f32),
    Logs(IntoIter<LogRecord>),
    Log(LogRecord),
    Metrics(IntoIter<Metric>),
    Happening(Happening),
}

impl From<Item> for Work {
    fn from(item: Item) -> Self {
        match item {
            Item::Span(span, weight) => Work::OwnSpan(span, weight),
            Item::Spans(spans) => Work::Spans(spans.into_iter()),
            Item::Log(record) => Work::Log(record),
            Item::Logs(records) => Work::Logs(records.into_iter()),
            Item::Metrics(metrics) => Work::Metrics(metrics.into_iter()),
            Item::Happening(happening) => Work::Happening(happening),
        }
    }
}

/// What one run did.
#[derive(Default)]
pub struct Done {
    pub rows: usize,
    spans: bool,
    logs: bool,
    happenings: bool,
}

impl Done {
    /// Those that have something new.
    pub fn channels(&self) -> impl Iterator<Item = Channel> {
        let all = [(self.spans, Channel::Traces), (self.logs, Channel::Logs), (self.happenings, Channel::Happenings)];
        all.into_iter().filter(|(changed, _)| *changed).map(|(_, channel)| channel)
    }
}

impl Work {
    /// Stores at most about `rows_max` rows; whether nothing is left.
    pub fn store(&mut self, core: &mut Core, happenings: &Happenings, now_ns: u64, rows_max: usize, done: &mut Done) -> bool {
        let before = done.rows;
        match self {
            Work::Spans(spans) => {
                for span in spans.take(rows_max) {
                    core.push_span(&span, now_ns, 1.0);
                    done.rows += 1;
                }
                done.spans |= done.rows > before;
                spans.len() == 0
            }
            Work::OwnSpan(span, weight) => {
                core.push_span(span, now_ns, f64::from(*weight));
                (done.spans, done.rows) = (true, done.rows + 1);
                true
            }
            Work::Logs(records) => {
                for record in records.take(rows_max) {
                    core.push_log(&record, now_ns);
                    done.rows += 1;
                }
                done.logs |= done.rows > before;
                records.len() == 0
            }
            Work::Log(record) => {
                core.push_log(record, now_ns);
                (done.logs, done.rows) = (true, done.rows + 1);
                true
            }
            Work::Metrics(metrics) => {
                while done.rows < before + rows_max
                    && let Some(metric) = metrics.next()
                {
                    core.push_metric(&metric, now_ns);
                    done.rows += metric.points.len().max(1);
                }
                metrics.len() == 0
            }
            Work::Happening(happening) => {
                happenings.store(happening, core, now_ns);
                (done.logs, done.happenings, done.rows) = (true, true, done.rows + 1);
                true
            }
        }
    }
}
