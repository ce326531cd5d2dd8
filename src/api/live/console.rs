//! The `console` channel: the output of one instance, by the same rules as every other stream. The next rows follow the last
//! acknowledgement; what could not be sent is counted, never silently left out.

use crate::api::problem::Problem;
use crate::api::view::{self, ConsoleLine, Sources};
use crate::supervisor::Console;
use crate::telemetry::live::Subscribe;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Text of one frame at most, and always at least one line.
const FRAME_TEXT_BYTES_MAX: usize = 64 * 1024;
const FRAME_LINES_MAX: usize = 500;
const BACKFILL_DEFAULT: usize = 200;
/// Consoles that one socket follows at once.
const FEEDS_MAX: usize = 16;

#[derive(Default)]
pub struct Consoles(BTreeMap<u64, Feed>);

struct Feed {
    console: Arc<Console>,
    changes: watch::Receiver<u64>,
    /// The next line to send.
    cursor: u64,
    /// Sent and not yet acknowledged.
    outstanding: Option<u64>,
    /// Says something even if there is nothing yet, so that the reader knows it has begun.
    greeted: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename = "rows")]
pub struct Rows {
    pub id: u64,
    /// The number of the next line.
    pub cursor: u64,
    pub rows: Vec<ConsoleLine>,
    pub skipped: u64,
    pub evicted: u64,
}

impl Consoles {
    pub fn subscribe(&mut self, wish: &Subscribe, sources: &Sources) -> Result<(), Problem> {
        let service =
            wish.service.as_deref().ok_or_else(|| Problem::invalid("a console belongs to a service").next("name `service`"))?;
        if self.0.len() >= FEEDS_MAX && !self.0.contains_key(&wish.id) {
            return Err(Problem::invalid(format!("{FEEDS_MAX} consoles are followed already")).next("unsubscribe from one"));
        }
        let console = view::console(sources, service, wish.instance.as_deref())?;
        let mut changes = console.changes();
        let next = *changes.borrow_and_update();
        let backfill = wish.backfill.unwrap_or(BACKFILL_DEFAULT).min(FRAME_LINES_MAX) as u64;
        let first = console.page(0, 1).first_seq;
        // A backfill begins at the oldest line kept: what went before it is the past, not a gap.
        let cursor = wish.cursor.filter(|cursor| *cursor <= next).unwrap_or_else(|| next.saturating_sub(backfill).max(first));
        self.0.insert(wish.id, Feed { console, changes, cursor, outstanding: None, greeted: wish.cursor.is_some() });
        Ok(())
    }

    pub fn ack(&mut self, id: u64, cursor: u64) {
        if let Some(feed) = self.0.get_mut(&id)
            && feed.outstanding.is_some_and(|sent| cursor >= sent)
        {
            feed.outstanding = None;
        }
    }

    /// True if there was one.
    pub fn unsubscribe(&mut self, id: u64) -> bool {
        self.0.remove(&id).is_some()
    }

    pub fn poll(&mut self) -> Option<Rows> {
        self.0.iter_mut().find_map(|(id, feed)| feed.poll(*id))
    }

    /// Resolves when [`Consoles::poll`] may have something.
    pub async fn ready(&mut self) {
        let mut waiting: Vec<_> = self
            .0
            .values_mut()
            .filter(|feed| feed.outstanding.is_none())
            .map(|feed| Box::pin(async { feed.changes.changed().await.is_err() }))
            .collect();
        std::future::poll_fn(|task| {
            // A console that is gone never changes again: it must not wake anybody for ever.
            let mut changed = false;
            waiting.retain_mut(|change| match change.as_mut().poll(task) {
                std::task::Poll::Ready(gone) => {
                    changed |= !gone;
                    false
                }
                std::task::Poll::Pending => true,
            });
            if changed { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }
}

impl Feed {
    fn poll(&mut self, id: u64) -> Option<Rows> {
        let next = *self.changes.borrow();
        if self.outstanding.is_some() || (self.cursor >= next && self.greeted) {
            return None;
        }
        self.greeted = true;
        // A reader who fell behind is taken to the newest lines; what lies between is kept and said.
        let from = self.cursor.max(next.saturating_sub(FRAME_LINES_MAX as u64));
        let page = self.console.page(from, FRAME_LINES_MAX);
        let evicted = page.first_seq.saturating_sub(self.cursor);
        let fitting = fitting(page.lines.iter().map(|line| line.text.len())).min(page.lines.len());
        let rows: Vec<ConsoleLine> = page.lines[page.lines.len() - fitting..].iter().map(ConsoleLine::from).collect();
        let first = rows.first().map_or(page.next_seq, |row| row.seq);
        let skipped = first.saturating_sub(self.cursor.max(page.first_seq));
        self.cursor = page.next_seq;
        self.outstanding = Some(page.next_seq);
        Some(Rows { id, cursor: page.next_seq, rows, skipped, evicted })
    }
}

/// How many of the last lines fit into one frame.
fn fitting(lengths: impl DoubleEndedIterator<Item = usize>) -> usize {
    let mut bytes = 0;
    let fit = lengths.rev().take_while(|length| {
        bytes += length;
        bytes <= FRAME_TEXT_BYTES_MAX
    });
    fit.count().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::LineKind;

    fn feed(console: &Arc<Console>, cursor: u64) -> Feed {
        Feed { console: console.clone(), changes: console.changes(), cursor, outstanding: None, greeted: false }
    }

    fn print(console: &Console, lines: std::ops::Range<u64>) {
        lines.for_each(|n| console.push(n, LineKind::Stdout, format!("line {n}").into()));
    }

    #[test]
    fn the_next_lines_follow_the_acknowledgement_only() {
        let console = Arc::new(Console::new(1 << 20));
        let mut consoles = Consoles::default();
        consoles.0.insert(7, feed(&console, 0));
        let empty = consoles.poll().expect("a first frame says that there is nothing yet");
        assert_eq!((empty.cursor, empty.rows.len()), (0, 0));
        print(&console, 0..3);
        assert!(consoles.poll().is_none(), "the first frame was not acknowledged");
        consoles.ack(7, 0);
        let rows = consoles.poll().expect("three lines");
        assert_eq!((rows.cursor, rows.rows.len(), rows.skipped, rows.evicted), (3, 3, 0, 0));
        consoles.ack(7, 2);
        print(&console, 3..4);
        assert!(consoles.poll().is_none(), "an older cursor acknowledges nothing");
        consoles.ack(7, 3);
        assert_eq!(consoles.poll().expect("the fourth").rows[0].seq, 3);
    }

    #[test]
    fn what_was_passed_or_evicted_is_counted_exactly() {
        let console = Arc::new(Console::new(700 * 80));
        let mut late = feed(&console, 0);
        print(&console, 0..10_000);
        let rows = late.poll(1).expect("the newest");
        assert_eq!(rows.rows.len(), FRAME_LINES_MAX);
        assert_eq!(rows.evicted, console.page(0, 1).first_seq);
        assert_eq!(rows.evicted + rows.skipped + rows.rows.len() as u64, 10_000);
        assert_eq!(rows.cursor, 10_000);
    }

    #[test]
    fn long_lines_make_short_frames() {
        let console = Arc::new(Console::new(10 << 20));
        for n in 0..5 {
            console.push(n, LineKind::Stderr, "x".repeat(40 * 1024).into());
        }
        let rows = feed(&console, 0).poll(1).expect("the newest");
        assert_eq!((rows.rows.len(), rows.skipped, rows.evicted), (1, 4, 0));
    }

    #[tokio::test]
    async fn a_new_line_wakes_the_reader() {
        let console = Arc::new(Console::new(1_000));
        let mut consoles = Consoles::default();
        consoles.0.insert(1, feed(&console, 0));
        consoles.poll();
        consoles.ack(1, 0);
        let (_, ()) = tokio::join!(async { print(&console, 0..1) }, consoles.ready());
        assert!(consoles.poll().is_some());
    }
}
