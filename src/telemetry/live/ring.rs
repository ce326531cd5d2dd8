//! A stream over a bounded ring of ready rows, for what has no store of its own: happenings, console lines.

use super::{Batch, Stream, Subscribe, SubscribeError, Tail};
use crate::kernel::ring::Ring;
use crate::telemetry::query::QueryError;
use crate::telemetry::query::filter::{Filter, Leaf, holds_of_whole};
use crate::telemetry::query::lang::{self, Test};
use crate::telemetry::query::pattern::Pattern;
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// One row and what it can be filtered by.
#[derive(Clone, Debug)]
pub struct RingRow {
    /// `service`, `instance`, `space` and whatever else a query may name.
    pub fields: Vec<(&'static str, Arc<str>)>,
    /// What free text is looked for in.
    pub text: Arc<str>,
    pub json: Arc<RawValue>,
}

pub struct RingStream(Arc<Mutex<Inner>>);

struct Inner {
    ring: Ring<RingRow>,
    bytes_max: usize,
    tails: Vec<Follower>,
    next_tail: u64,
}

struct Follower {
    id: u64,
    filter: Filter<RowTest>,
    /// The first row it has not seen.
    position: u64,
    evicted: u64,
    /// Rows of the first read at most; they are not a gap.
    backfill: Option<usize>,
}

#[derive(Debug)]
enum RowTest {
    Text(Pattern),
    Field(String, Test),
}

impl RingStream {
    pub fn new(bytes_max: usize) -> Self {
        let ring = Ring::new(usize::MAX, |row: &RingRow| row.json.get().len() + row.text.len() + 128);
        RingStream(Arc::new(Mutex::new(Inner { ring, bytes_max, tails: Vec::new(), next_tail: 0 })))
    }

    /// Appends the row that `make` builds around its sequence number. The caller then touches the channel.
    pub fn push(&self, make: impl FnOnce(u64) -> RingRow) -> u64 {
        let mut inner = lock(&self.0);
        let seq = number(inner.ring.next_seq());
        inner.ring.push(make(seq));
        while inner.ring.bytes() > inner.bytes_max && inner.ring.len() > 1 {
            inner.evict();
        }
        seq
    }

    /// Newest `limit` rows numbered below `before`, oldest first, with the count of all that are.
    pub fn page(&self, before: u64, limit: usize) -> (Vec<Arc<RawValue>>, u64) {
        let inner = lock(&self.0);
        let older = inner.ring.iter_from(0).take_while(|(index, _)| number(*index) < before).count();
        let rows = inner.ring.iter_from(0).take(older).skip(older.saturating_sub(limit));
        (rows.map(|(_, row)| row.json.clone()).collect(), older as u64)
    }

    /// Rows ever pushed.
    pub fn received(&self) -> u64 {
        lock(&self.0).ring.next_seq()
    }
}

/// Rows are numbered from 1, so that a cursor of 0 is before all of them.
fn number(index: u64) -> u64 {
    index + 1
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Inner {
    fn evict(&mut self) {
        let seq = number(self.ring.first_seq());
        let Some(row) = self.ring.pop_front() else { return };
        for tail in self.tails.iter_mut().filter(|tail| tail.position <= seq && matches(&tail.filter, &row)) {
            tail.evicted += 1;
        }
    }
}

fn matches(filter: &Filter<RowTest>, row: &RingRow) -> bool {
    filter.matches(&|test| match test {
        RowTest::Text(pattern) => pattern.is_in(&row.text),
        RowTest::Field(name, test) => row.fields.iter().any(|(key, value)| key == name && holds_of_whole(test, value)),
    })
}

fn compile(wish: &Subscribe) -> Result<Filter<RowTest>, QueryError> {
    let mut filter = Filter::compile(lang::parse(wish.query.as_deref().unwrap_or_default())?, &|leaf| {
        Ok(match leaf {
            Leaf::Text(pattern) => RowTest::Text(pattern),
            Leaf::Field(field) => RowTest::Field(field.name, field.test),
        })
    })?;
    for (name, wanted) in [("service", &wish.service), ("instance", &wish.instance), ("space", &wish.space)] {
        if let Some(wanted) = wanted {
            filter = filter.and(RowTest::Field(name.to_owned(), Test::Is(Pattern::phrase(wanted))));
        }
    }
    Ok(filter)
}

impl Stream for RingStream {
    fn open(&self, wish: &Subscribe) -> Result<Box<dyn Tail>, SubscribeError> {
        let filter = compile(wish)?;
        let mut inner = lock(&self.0);
        let (first, end) = (number(inner.ring.first_seq()), number(inner.ring.next_seq()));
        let position = match (wish.cursor, wish.backfill) {
            (Some(cursor), _) => (cursor + 1).min(end),
            (None, Some(_)) => 0,
            (None, None) => end,
        };
        // Before this tail began nobody asked its filter, so a resumed one counts every row that went.
        let evicted = if wish.cursor.is_some() { first.saturating_sub(position) } else { 0 };
        let backfill = wish.backfill.filter(|_| wish.cursor.is_none());
        let id = inner.next_tail;
        inner.next_tail += 1;
        inner.tails.push(Follower { id, filter, position, evicted, backfill });
        Ok(Box::new(RingTail { inner: self.0.clone(), id }))
    }
}

struct RingTail {
    inner: Arc<Mutex<Inner>>,
    id: u64,
}

impl Tail for RingTail {
    fn read(&mut self, rows_max: usize, bytes_max: usize) -> Batch {
        let mut inner = lock(&self.inner);
        let Inner { ring, tails, .. } = &mut *inner;
        let tail = tails.iter_mut().find(|tail| tail.id == self.id).expect("registered until dropped");
        let backfill = tail.backfill.take();
        let rows_max = backfill.unwrap_or(rows_max).min(rows_max);
        let mut batch = Batch { cursor: ring.next_seq(), evicted: std::mem::take(&mut tail.evicted), ..Batch::default() };
        let mut bytes = 0;
        for (_, row) in ring.iter_from(tail.position.saturating_sub(1)).rev().filter(|(_, row)| matches(&tail.filter, row)) {
            bytes += row.json.get().len();
            let fits = batch.rows.len() < rows_max && (bytes <= bytes_max || batch.rows.is_empty());
            if fits && batch.skipped == 0 {
                batch.rows.push(row.json.as_ref().to_owned());
            } else {
                batch.skipped += 1;
            }
        }
        batch.rows.reverse();
        if backfill.is_some() {
            (batch.skipped, batch.evicted) = (0, 0);
        }
        tail.position = number(ring.next_seq());
        batch
    }
}

impl Drop for RingTail {
    fn drop(&mut self) {
        lock(&self.inner).tails.retain(|tail| tail.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::live::Channel;
    use proptest::prelude::*;

    fn row(seq: u64, service: u8) -> RingRow {
        RingRow {
            fields: vec![("service", Arc::from(service.to_string()))],
            text: Arc::from(""),
            json: RawValue::from_string(seq.to_string()).expect("a number").into(),
        }
    }

    fn wish(service: Option<u8>, cursor: Option<u64>, backfill: Option<usize>) -> Subscribe {
        Subscribe {
            id: 1,
            channel: Channel::Happenings,
            query: None,
            service: service.map(|service| service.to_string()),
            instance: None,
            space: None,
            cursor,
            backfill,
        }
    }

    fn numbers(batch: &Batch) -> Vec<u64> {
        batch.rows.iter().map(|row| row.get().parse().expect("a number")).collect()
    }

    #[test]
    fn backfill_gives_the_newest_rows_and_no_gap() {
        let stream = RingStream::new(1 << 20);
        for n in 0..10 {
            stream.push(|seq| row(seq, n % 2));
        }
        let mut tail = stream.open(&wish(Some(1), None, Some(2))).expect("opened");
        let batch = tail.read(500, 1 << 20);
        assert_eq!((numbers(&batch), batch.skipped, batch.evicted, batch.cursor), (vec![8, 10], 0, 0, 10));
        let mut live = stream.open(&wish(None, None, None)).expect("opened");
        assert!(live.read(500, 1 << 20).rows.is_empty());
        stream.push(|seq| row(seq, 1));
        assert_eq!((numbers(&tail.read(500, 1 << 20)), numbers(&live.read(500, 1 << 20))), (vec![11], vec![11]));
    }

    #[test]
    fn a_delta_is_bounded_in_bytes_too() {
        let stream = RingStream::new(1 << 20);
        let mut tail = stream.open(&wish(None, None, None)).expect("opened");
        for _ in 0..5 {
            stream.push(|seq| row(seq, 1));
        }
        let batch = tail.read(500, 2);
        assert_eq!((numbers(&batch), batch.skipped), (vec![4, 5], 3));
    }

    #[test]
    fn pages_go_back() {
        let stream = RingStream::new(1 << 20);
        for _ in 0..5 {
            stream.push(|seq| row(seq, 1));
        }
        let (rows, older) = stream.page(u64::MAX, 2);
        assert_eq!((rows.len(), older, rows[0].get()), (2, 5, "4"));
        assert_eq!(stream.page(4, 2).1, 3);
    }

    proptest! {
        /// Every row that matches is received, skipped or evicted, exactly once and in order, however rarely a reader reads.
        #[test]
        fn nothing_is_lost_doubled_or_miscounted(
            steps in prop::collection::vec((0..6u8, 0..3u8), 1..400), rows_max in 1..8usize, kept in 2..40usize)
        {
            let stream = RingStream::new(kept * 130);
            let filters = [None, Some(0), Some(1)];
            let mut tails: Vec<_> = filters.iter().map(|service| stream.open(&wish(*service, None, None)).expect("opened")).collect();
            let mut pushed = [0u64; 3];
            let mut accounted = [0u64; 3];
            let mut last = [0u64; 3];
            let mut read = |which: usize, tails: &mut Vec<Box<dyn Tail>>, accounted: &mut [u64; 3]| {
                let batch = tails[which].read(rows_max, 1 << 20);
                let rows = numbers(&batch);
                assert!(rows.len() <= rows_max && rows.iter().all(|seq| *seq > last[which]) && rows.is_sorted());
                last[which] = batch.cursor;
                accounted[which] += rows.len() as u64 + batch.skipped + batch.evicted;
            };
            for (what, which) in steps {
                if what == 0 {
                    read(usize::from(which), &mut tails, &mut accounted);
                } else {
                    stream.push(|seq| row(seq, which));
                    for (count, filter) in pushed.iter_mut().zip(filters) {
                        *count += u64::from(filter.is_none_or(|service| service == which));
                    }
                }
            }
            (0..3).for_each(|which| read(which, &mut tails, &mut accounted));
            prop_assert_eq!(accounted, pushed);
        }
    }
}
