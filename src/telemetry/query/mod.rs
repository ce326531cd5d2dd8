//! What can be asked, and the answers: the query language and its evaluation over the store.

pub mod assemble;
pub(in crate::telemetry) mod filter;
pub(in crate::telemetry) mod lang;
pub mod logs;
pub(in crate::telemetry) mod pattern;
pub mod series;
pub mod traces;

use crate::model::refusal::{Refusal, RefusalKind};

/// Rows of one answer at most; a larger wish is cut, not refused.
pub const ROWS_MAX: usize = 5_000;

/// Log records: `query` in the query language, newest page first.
#[derive(Clone, Debug, Default)]
pub struct LogQuery {
    pub query: String,
    pub space: Option<String>,
    pub from_us: Option<u64>,
    pub to_us: Option<u64>,
    /// Only rows with a smaller sequence number.
    pub before: Option<u64>,
    /// 200 if zero.
    pub limit: usize,
}

#[derive(Clone, Debug, Default)]
pub struct TraceQuery {
    pub query: String,
    pub space: Option<String>,
    pub from_us: Option<u64>,
    pub to_us: Option<u64>,
    pub before: Option<u64>,
    pub limit: usize,
    pub min_duration_ns: Option<u64>,
    pub max_duration_ns: Option<u64>,
    pub status: Option<TraceStatus>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceStatus {
    Ok,
    Error,
    Open,
}

#[derive(Clone, Debug, Default)]
pub struct SeriesQuery {
    pub name: String,
    pub service: Option<String>,
    /// Attribute keys (or `service`, `instance`) whose values make the series; all attributes if empty.
    pub group: Vec<String>,
    /// Only series whose labels match: `field:value`, as in the query language.
    pub query: String,
    pub from_us: Option<u64>,
    pub to_us: Option<u64>,
    /// Buckets wanted, 1 to 1,000; 120 if zero.
    pub points: usize,
}

/// A question that cannot be understood, with the place of the mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// Offset in characters into the query text.
    pub position: usize,
    pub what: String,
    pub next: String,
}

impl std::fmt::Display for QueryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at character {}: {}. {}", self.position + 1, self.what, self.next)
    }
}

impl std::error::Error for QueryError {}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        Refusal::new(RefusalKind::Invalid, format!("at character {}: {}", error.position + 1, error.what)).hint(error.next)
    }
}

/// A half-open range of time.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Range {
    pub fn of(from_us: Option<u64>, to_us: Option<u64>) -> Self {
        Range {
            from_ns: from_us.map_or(0, |us| us.saturating_mul(1_000)),
            to_ns: to_us.map_or(u64::MAX, |us| us.saturating_mul(1_000)),
        }
    }

    pub fn has(&self, at_ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&at_ns)
    }

    /// Whether any of `first..=last` may be inside.
    pub fn overlaps(&self, first_ns: u64, last_ns: u64) -> bool {
        first_ns < self.to_ns && last_ns >= self.from_ns
    }

    /// Whether all of `first..=last` is inside.
    pub fn holds(&self, first_ns: u64, last_ns: u64) -> bool {
        self.has(first_ns) && self.has(last_ns)
    }
}

fn row_limit(wish: usize) -> usize {
    match wish {
        0 => 200,
        wish => wish.min(ROWS_MAX),
    }
}
