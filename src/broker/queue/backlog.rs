//! The messages of one queue: ready ones in order, and the counts of those that are out.
//!
//! ```text
//!   returned (sorted by position)  ──┐
//!   ready    (appended at the back) ─┼─► take: always the lowest position
//!   fresh    (the run being offered) ┘
//! ```
//!
//! A position is given once. What comes back goes to `returned` under its old position, which is lower than any in `ready`.

use super::blocks::Blocks;
use super::entry::{Entry, Segments};
use super::waits::Waits;
use crate::broker::message::{Extra, Meta, Run};
use crate::broker::record::Record;
use crate::broker::view::QueueCounts;
use crate::kernel::Instant;
use std::collections::{BTreeMap, HashMap};

#[derive(Debug)]
pub(super) struct Backlog {
    ready: Blocks<Entry>,
    returned: BTreeMap<u64, Entry>,
    pub segments: Segments,
    /// Of ready messages, by position.
    extras: HashMap<u64, Extra>,
    next_seq: u64,
    pub ready_count: u64,
    pub ready_bytes: u64,
    pub unacked_count: u64,
    pub unacked_bytes: u64,
    pub counts: QueueCounts,
    pub waits: Waits,
}

/// The part of a run that has not been placed yet.
pub(super) struct Fresh<'a> {
    metas: &'a [Meta],
    segment: u32,
    first_seq: u64,
    placed: usize,
}

impl Fresh<'_> {
    /// Nothing is being offered.
    pub fn none() -> Fresh<'static> {
        Fresh { metas: &[], segment: 0, first_seq: 0, placed: 0 }
    }

    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    // HOT
    #[inline]
    fn next(&mut self) -> Option<Entry> {
        let meta = self.metas.get(self.placed)?;
        let flags = if meta.extra { Entry::EXTRA } else { 0 };
        let seq = self.first_seq + self.placed as u64;
        self.placed += 1;
        Some(Entry { seq, at: meta.at, len: meta.len, segment: self.segment, key_len: meta.key_len, flags })
    }
}

impl Backlog {
    pub fn new() -> Self {
        Backlog {
            ready: Blocks::new(),
            returned: BTreeMap::new(),
            segments: Segments::default(),
            extras: HashMap::new(),
            next_seq: 0,
            ready_count: 0,
            ready_bytes: 0,
            unacked_count: 0,
            unacked_bytes: 0,
            counts: QueueCounts::default(),
            waits: Waits::default(),
        }
    }

    /// Takes a run in: it is ready from here on, though still outside the list.
    // HOT
    pub fn admit<'a>(&mut self, run: &Run<'a>) -> (Fresh<'a>, u64) {
        let count = run.metas.len();
        let weight = run.weight();
        let segment = self.segments.insert(run.segment.clone(), count as u32, run.now);
        let first_seq = self.next_seq;
        for (at, extra) in run.extras() {
            self.extras.insert(first_seq + at as u64, extra.clone());
        }
        self.next_seq += count as u64;
        self.ready_count += count as u64;
        self.ready_bytes += weight;
        self.counts.published += count as u64;
        (Fresh { metas: run.metas, segment, first_seq, placed: 0 }, weight)
    }

    /// Puts what nobody took into the ready list.
    // HOT
    pub fn keep(&mut self, mut fresh: Fresh<'_>) {
        while let Some(entry) = fresh.next() {
            self.ready.push_back(entry);
        }
    }

    /// The next message to hand out. Expired ones are dropped on the way; `freed` grows by their bytes.
    // HOT
    #[inline]
    pub fn take(&mut self, fresh: &mut Fresh<'_>, now: Instant, freed: &mut u64) -> Option<Entry> {
        loop {
            let entry = match self.returned.is_empty() {
                false => self.returned.pop_first().map(|(_, entry)| entry),
                true => self.ready.pop_front().or_else(|| fresh.next()),
            }?;
            if entry.flags & (Entry::EXTRA | Entry::GONE) == 0 {
                self.ready_count -= 1;
                self.ready_bytes -= u64::from(entry.len);
                return Some(entry);
            }
            if entry.has(Entry::GONE) {
                continue;
            }
            self.ready_count -= 1;
            self.ready_bytes -= self.weight(&entry);
            match self.extras.get(&entry.seq).is_some_and(|extra| extra.is_dead(now)) {
                true => {
                    self.counts.expired += 1;
                    *freed += self.drop_entry(&entry);
                }
                false => return Some(entry),
            }
        }
    }

    /// What a taken entry carries; its place is with the delivery now.
    pub fn take_extra(&mut self, entry: &Entry) -> Option<Extra> {
        entry.has(Entry::EXTRA).then(|| self.extras.remove(&entry.seq)).flatten()
    }

    pub fn extra(&self, entry: &Entry) -> Option<&Extra> {
        entry.has(Entry::EXTRA).then(|| self.extras.get(&entry.seq)).flatten()
    }

    pub fn record(&self, entry: &Entry) -> Record<'_> {
        Record::new(self.segments.record(entry), entry.key_len)
    }

    /// Bytes of an entry whose extra is still here.
    fn weight(&self, entry: &Entry) -> u64 {
        u64::from(entry.len) + self.extra(entry).map_or(0, Extra::body_len)
    }

    /// Forgets a message that is neither ready nor unacked any more; returns its bytes.
    pub fn drop_entry(&mut self, entry: &Entry) -> u64 {
        let weight = self.weight(entry);
        self.extras.remove(&entry.seq);
        self.segments.release(entry.segment, 1);
        weight
    }

    /// Puts a message back at its old position. `redelivered` unless it never left.
    pub fn put_back(&mut self, mut entry: Entry, extra: Option<Extra>, redelivered: bool) {
        if redelivered {
            entry.flags |= Entry::REDELIVERED;
        }
        self.ready_count += 1;
        self.ready_bytes += u64::from(entry.len) + extra.as_ref().map_or(0, Extra::body_len);
        if let Some(extra) = extra {
            self.extras.insert(entry.seq, extra);
        }
        self.returned.insert(entry.seq, entry);
    }

    /// Removes a ready message from wherever it stands; returns its bytes. `None` if it is not ready.
    pub fn remove(&mut self, seq: u64) -> Option<u64> {
        if let Some(entry) = self.returned.remove(&seq) {
            return Some(self.forget_ready(&entry));
        }
        let at = self.ready.find(seq, |entry| entry.seq)?;
        let place = self.ready.get_mut(at)?;
        if place.has(Entry::GONE) {
            return None;
        }
        let entry = *place;
        place.flags |= Entry::GONE;
        Some(self.forget_ready(&entry))
    }

    fn forget_ready(&mut self, entry: &Entry) -> u64 {
        self.ready_count -= 1;
        self.ready_bytes -= self.weight(entry);
        self.drop_entry(entry)
    }

    /// Drops every ready message; returns how many and their bytes.
    pub fn purge(&mut self) -> (u64, u64) {
        let (count, bytes) = (self.ready_count, self.ready_bytes);
        for entry in self.ready.iter().chain(self.returned.values()).filter(|entry| !entry.has(Entry::GONE)) {
            self.segments.release(entry.segment, 1);
        }
        self.ready = Blocks::new();
        self.returned = BTreeMap::new();
        self.extras = HashMap::new();
        (self.ready_count, self.ready_bytes) = (0, 0);
        self.counts.purged += count;
        (count, bytes)
    }

    /// Drops expired messages at the head; returns their bytes.
    pub fn expire(&mut self, now: Instant) -> u64 {
        let mut freed = 0;
        while let Some(entry) = self.head()
            && self.extra(&entry).is_some_and(|extra| extra.is_dead(now))
        {
            self.counts.expired += 1;
            freed += self.remove(entry.seq).unwrap_or(0);
            self.trim();
        }
        freed
    }

    /// Gives up the places of removed messages at the front of the list.
    pub fn trim(&mut self) {
        while self.ready.front().is_some_and(|entry| entry.has(Entry::GONE)) {
            self.ready.pop_front();
        }
    }

    /// A ready message by its position.
    pub fn find(&self, seq: u64) -> Option<Entry> {
        let listed = || self.ready.find(seq, |entry| entry.seq).and_then(|at| self.ready.get(at));
        self.returned.get(&seq).or_else(listed).filter(|entry| !entry.has(Entry::GONE)).copied()
    }

    fn head(&self) -> Option<Entry> {
        self.ready_in_order().next().copied()
    }

    /// Ready messages from the head.
    pub fn ready_in_order(&self) -> impl Iterator<Item = &Entry> {
        self.returned.values().chain(self.ready.iter()).filter(|entry| !entry.has(Entry::GONE))
    }

    /// When the message at the head was published.
    pub fn oldest_ready(&self) -> Option<Instant> {
        self.head().map(|entry| self.segments.at(&entry))
    }
}
