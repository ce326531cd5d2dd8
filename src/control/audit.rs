//! The audit list: who changed what, when, and how it ended. In memory, bounded, every entry with its number.

use crate::kernel::ring::Ring;
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use utoipa::ToSchema;

const BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct AuditEntry {
    pub seq: u64,
    pub at_us: u64,
    /// The user, or `configuration` for what the file says.
    pub by: Arc<str>,
    pub space: Arc<str>,
    /// `space`, `exchange`, `queue`, `binding`, `service`, `user`, `permission`, `policy`, ….
    pub kind: &'static str,
    pub name: Arc<str>,
    /// `created`, `deleted`, `changed`, `undone` or `refused: …`.
    pub outcome: Arc<str>,
}

/// Newest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct AuditPage {
    pub rows: Vec<AuditEntry>,
    /// Pass as `before` for the next older page; null at the oldest kept.
    pub before: Option<u64>,
    pub evicted: u64,
}

#[derive(Debug)]
pub(super) struct Audit(Mutex<Ring<AuditEntry>>);

impl Audit {
    pub(super) fn new() -> Self {
        let size = |entry: &AuditEntry| 96 + entry.name.len() + entry.outcome.len();
        Audit(Mutex::new(Ring::new(BYTES_MAX, size)))
    }

    pub(super) fn push(&self, entry: AuditEntry) {
        let mut ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let seq = ring.next_seq();
        ring.push(AuditEntry { seq, ..entry });
    }

    pub(super) fn page(&self, before: Option<u64>, count: usize) -> AuditPage {
        let ring = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = before.unwrap_or(ring.next_seq());
        let older = ring.iter_from(0).rev().map(|(_, entry)| entry).skip_while(|entry| entry.seq >= end);
        let rows: Vec<AuditEntry> = older.take(count).cloned().collect();
        let before = rows.last().map(|last| last.seq).filter(|seq| *seq > ring.first_seq());
        AuditPage { rows, before, evicted: ring.first_seq() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_go_back_from_the_newest() {
        let audit = Audit::new();
        for n in 0..5 {
            let name: Arc<str> = format!("q{n}").into();
            let (by, space, outcome) = ("ann".into(), "/".into(), "created".into());
            audit.push(AuditEntry { seq: 0, at_us: n, by, space, kind: "queue", name, outcome });
        }
        let names = |page: &AuditPage| page.rows.iter().map(|row| row.name.to_string()).collect::<Vec<_>>();
        let first = audit.page(None, 3);
        assert_eq!((names(&first), first.before), (vec!["q4".into(), "q3".into(), "q2".into()], Some(2)));
        let second = audit.page(first.before, 3);
        assert_eq!((names(&second), second.before), (vec!["q1".into(), "q0".into()], None));
    }
}
