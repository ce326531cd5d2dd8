//! The console of one instance: its last lines as printed, colours and all, across restarts, with the steps of its life ruled
//! in. Bounded in bytes; every line keeps its number, so a reader knows exactly what it missed.

use crate::kernel::ring::Ring;
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LineKind {
    Stdout,
    Stderr,
    /// Written by reactor: starting, ready, exited, output dropped.
    Lifecycle,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsoleLine {
    pub seq: u64,
    /// Unix nanoseconds.
    pub at_ns: u64,
    pub kind: LineKind,
    /// ANSI escape sequences kept; invalid UTF-8 replaced.
    pub text: Arc<str>,
}

/// Lines from a cursor on. What lies between the cursor asked for and `first_seq` was evicted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConsolePage {
    pub lines: Vec<ConsoleLine>,
    /// The oldest line kept.
    pub first_seq: u64,
    /// Pass this as the next `from_seq`.
    pub next_seq: u64,
}

#[derive(Debug)]
pub struct Console {
    lines: Mutex<Ring<ConsoleLine>>,
    /// The number the next line will get.
    next_seq: watch::Sender<u64>,
}

impl Console {
    pub fn new(bytes_max: usize) -> Self {
        // What a line costs beside its text, so that a service printing empty lines is bounded too.
        const LINE_OVERHEAD: usize = 64;
        let ring = Ring::new(bytes_max, |line: &ConsoleLine| line.text.len() + LINE_OVERHEAD);
        Console { lines: Mutex::new(ring), next_seq: watch::Sender::new(0) }
    }

    pub fn push(&self, at_ns: u64, kind: LineKind, text: Arc<str>) {
        let mut lines = self.lock();
        let seq = lines.next_seq();
        lines.push(ConsoleLine { seq, at_ns, kind, text });
        drop(lines);
        self.next_seq.send_modify(|next| *next = (*next).max(seq + 1));
    }

    /// At most `count_max` lines from `from_seq` on, oldest first.
    pub fn page(&self, from_seq: u64, count_max: usize) -> ConsolePage {
        let lines = self.lock();
        let page: Vec<ConsoleLine> = lines.iter_from(from_seq).take(count_max).map(|(_, line)| line.clone()).collect();
        let next_seq = page.last().map_or(lines.next_seq().max(lines.first_seq()), |last| last.seq + 1);
        ConsolePage { lines: page, first_seq: lines.first_seq(), next_seq }
    }

    /// The last `count_max` lines.
    pub fn tail(&self, count_max: usize) -> ConsolePage {
        let from_seq = self.lock().next_seq().saturating_sub(count_max as u64);
        self.page(from_seq, count_max)
    }

    /// The last line the program printed, without its colours; the beginning of a long one.
    pub fn last_output(&self) -> Option<Arc<str>> {
        // Life-cycle lines and blank ones are few; a long run of them has no last line worth showing.
        const LOOK_BACK: usize = 20;
        const BYTES_MAX: usize = 200;
        let lines = self.lock();
        let mut recent = lines.iter_from(lines.first_seq()).rev().take(LOOK_BACK).map(|(_, line)| line);
        let last = recent.find(|line| line.kind != LineKind::Lifecycle && !line.text.trim().is_empty())?;
        let plain = super::line::without_ansi(&last.text);
        Some(Arc::from(&plain[..plain.floor_char_boundary(BYTES_MAX)]))
    }

    /// Carries the number of the next line; changes whenever one was added.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.next_seq.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Ring<ConsoleLine>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_continues_where_it_stopped_and_sees_what_it_missed() {
        let console = Console::new(3 * 70);
        for n in 0..3 {
            console.push(n, LineKind::Stdout, Arc::from(format!("line {n}")));
        }
        let page = console.page(0, 2);
        assert_eq!(page.lines.iter().map(|line| line.seq).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(page.next_seq, 2);
        for n in 3..8 {
            console.push(n, LineKind::Stderr, Arc::from(format!("line {n}")));
        }
        let page = console.page(page.next_seq, 100);
        assert_eq!(page.first_seq, 5, "lines 2 to 4 were evicted unread");
        assert_eq!(page.lines[0].text.as_ref(), "line 5");
        assert_eq!(page.next_seq, 8);
        assert_eq!(console.page(8, 100), ConsolePage { lines: vec![], first_seq: 5, next_seq: 8 });
        assert_eq!(console.tail(1).lines[0].seq, 7);
    }

    #[test]
    fn readers_are_told_of_new_lines() {
        let console = Console::new(1_000);
        let changes = console.changes();
        console.push(0, LineKind::Lifecycle, Arc::from("starting"));
        assert_eq!(*changes.borrow(), 1);
    }
}
