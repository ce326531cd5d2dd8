//! The messages of one queue: ready ones in order, and the counts of those that are out.
//!
//! ```text
//!   returned (sorted by position)  ──┐
//!   ready    (appended at the back) ─┼─► take: always the lowest position
//!   fresh    (the run being offered) ┘
//! ```
//!
//! A position is given once. What comes back goes to `returned` under its old position, which is lower than any in `ready`.
//!
//! Queues with rules keep to the same two lists. A priority queue has everything in `returned`, ordered by priority and then
//! position. What comes back to a quorum queue stands in `returned` in the order of coming back, or anew at the end of `ready`.

use super::blocks::Blocks;
use super::entry::{Entry, Segments};
use super::rules::Rules;
use super::settings::QueueSettings;
use super::waits::Waits;
use crate::broker::effects::{Effects, Notice};
use crate::broker::letters::{Dead, Reason};
use crate::broker::message::{Extra, Meta, Run};
use crate::broker::record::Record;
use crate::broker::tap::QueueTap;
use crate::broker::view::{QueueCounts, QueueFates};
use crate::kernel::Instant;
use crate::wire::amqp::Properties;
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
    /// A ready message may expire.
    pub timed: bool,
    /// Why every message, not only one with its own flag, must be looked at when it is taken or given.
    care: u8,
    pub rules: Option<Box<Rules>>,
    /// Who looks at its messages, once it belongs to a space.
    pub tap: Option<Box<QueueTap>>,
}

/// Messages expire by the queue's own time.
const TIMED: u8 = 1 << 5;
/// Bodies of ready messages are counted.
const MEASURED: u8 = 1 << 6;

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
        Some(Entry { seq, at: meta.at, len: meta.len, segment: self.segment, key_len: meta.key_len, flags, priority: 0 })
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
            timed: false,
            care: 0,
            rules: None,
            tap: None,
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
            self.timed |= extra.expires_at.is_some();
            self.extras.insert(first_seq + at as u64, extra.clone());
        }
        self.next_seq += count as u64;
        self.ready_count += count as u64;
        self.ready_bytes += weight;
        self.counts.published += count as u64;
        if let Some(rules) = self.rules.as_mut().filter(|_| self.care & MEASURED != 0) {
            rules.body_bytes += run.body_bytes();
        }
        (Fresh { metas: run.metas, segment, first_seq, placed: 0 }, weight)
    }

    /// Puts what nobody took into the ready list.
    // HOT
    pub fn keep(&mut self, mut fresh: Fresh<'_>) {
        while let Some(entry) = fresh.next() {
            self.ready.push_back(entry);
        }
    }

    /// The next message to hand out. Expired ones are given up on the way.
    // HOT
    #[inline]
    pub fn take(&mut self, fresh: &mut Fresh<'_>, effects: &mut Effects) -> Option<Entry> {
        loop {
            let entry = match self.returned.is_empty() {
                false => self.returned.pop_first().map(|(_, entry)| entry),
                true => self.ready.pop_front().or_else(|| fresh.next()),
            }?;
            if (entry.flags | self.care) & (Entry::EXTRA | Entry::GONE | TIMED | MEASURED) == 0 {
                self.ready_count -= 1;
                self.ready_bytes -= u64::from(entry.len);
                return Some(entry);
            }
            if self.take_with_care(&entry, effects) {
                return Some(entry);
            }
        }
    }

    /// False if it is none that may be handed out.
    fn take_with_care(&mut self, entry: &Entry, effects: &mut Effects) -> bool {
        if entry.has(Entry::GONE) {
            return false;
        }
        self.uncount(entry);
        // At the very moment it expires a message may still be handed out: with a time of 0 it reaches a consumer that waits.
        let dead = self.is_abandoned(entry) || self.expiry(entry).is_some_and(|at| at < effects.now);
        if dead {
            let extra = self.take_extra(entry);
            self.bury(*entry, extra, Reason::Expired, effects);
        }
        !dead
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

    /// Whether something must be known of each message on its way out: a quorum queue tells how often it came back.
    // HOT
    #[inline]
    pub fn is_special(&self, entry: &Entry) -> bool {
        (entry.flags | self.care) & (Entry::EXTRA | Entry::COUNTED) != 0
    }

    /// How often the message was returned, if its queue tells.
    pub fn returns_told(&self, extra: &Extra) -> Option<u32> {
        (self.care & Entry::COUNTED != 0).then_some(extra.returns)
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
            self.counts.requeued += 1;
        }
        let place = self.place(&entry);
        self.count_ready(&entry, extra.as_ref());
        self.insert_extra(&mut entry, extra);
        self.returned.insert(place, entry);
    }

    fn insert_extra(&mut self, entry: &mut Entry, extra: Option<Extra>) {
        let Some(extra) = extra.filter(Extra::is_something) else { return };
        self.timed |= extra.expires_at.is_some();
        entry.flags |= Entry::EXTRA;
        self.extras.insert(entry.seq, extra);
    }

    /// Where an entry stands among the `returned`.
    fn place(&mut self, entry: &Entry) -> u64 {
        match &mut self.rules {
            None => entry.seq,
            Some(rules) if rules.is_quorum() => {
                rules.next_return += 1;
                rules.next_return
            }
            Some(rules) if rules.settings.max_priority.is_some() => place_of(entry.priority, entry.seq),
            Some(_) => entry.seq,
        }
    }

    /// Puts a message back that a client returned to a quorum queue: by a delivery limit it may have been once too often; without
    /// one, what is asked back by name goes to the end. Returns its position; `None` if it was given up.
    pub fn put_back_counted(
        &mut self,
        mut entry: Entry,
        extra: Option<Extra>,
        asked: bool,
        effects: &mut Effects,
    ) -> Option<u64> {
        let limit = self.rules.as_ref().and_then(|rules| rules.settings.delivery_limit);
        let mut extra = extra.unwrap_or_default();
        extra.returns = extra.returns.saturating_add(1);
        if limit.is_some_and(|limit| u64::from(extra.returns) > limit) {
            self.bury(entry, Some(extra), Reason::DeliveryLimit, effects);
            self.fates().over_limit += 1;
            return None;
        }
        if limit.is_some() || !asked {
            let seq = entry.seq;
            self.put_back(entry, Some(extra), true);
            return Some(seq);
        }
        entry.seq = self.next_seq;
        self.next_seq += 1;
        entry.flags |= Entry::REDELIVERED;
        self.counts.requeued += 1;
        self.count_ready(&entry, Some(&extra));
        self.insert_extra(&mut entry, Some(extra));
        self.ready.push_back(entry);
        Some(entry.seq)
    }

    pub fn is_quorum(&self) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.is_quorum())
    }

    fn count_ready(&mut self, entry: &Entry, extra: Option<&Extra>) {
        let large = extra.map_or(0, Extra::body_len);
        self.ready_count += 1;
        self.ready_bytes += u64::from(entry.len) + large;
        if self.care & MEASURED != 0 {
            let inline = self.record(entry).inline_body().len() as u64;
            if let Some(rules) = &mut self.rules {
                rules.body_bytes += inline + large;
            }
        }
    }

    /// Takes a ready message whose extra is still here out of the counts.
    fn uncount(&mut self, entry: &Entry) {
        self.ready_count -= 1;
        self.ready_bytes -= self.weight(entry);
        if self.care & MEASURED != 0 {
            let body = self.body_len(entry);
            if let Some(rules) = &mut self.rules {
                rules.body_bytes -= body;
            }
        }
    }

    fn body_len(&self, entry: &Entry) -> u64 {
        self.record(entry).inline_body().len() as u64 + self.extra(entry).map_or(0, Extra::body_len)
    }

    /// Gives up a message that is neither ready nor unacked any more: it is dropped, or becomes a dead letter.
    pub fn bury(&mut self, entry: Entry, extra: Option<Extra>, reason: Reason, effects: &mut Effects) {
        let ended = if self.is_tapped() { self.see_buried(&entry, reason, effects) } else { None };
        let extra = extra.unwrap_or_default();
        effects.memory -= (u64::from(entry.len) + extra.body_len()) as i64;
        match reason {
            Reason::Expired => self.counts.expired += 1,
            Reason::Rejected => self.counts.rejected += 1,
            Reason::MaxLen | Reason::DeliveryLimit => {}
        }
        if let Some(call) = &extra.call
            && matches!(reason, Reason::MaxLen | Reason::DeliveryLimit)
        {
            effects.notify(call.clone(), Notice::Dropped);
        }
        let abandoned = extra.call.as_ref().is_some_and(|call| call.is_over());
        if let Some(rules) = self.rules.as_mut().filter(|_| !abandoned) {
            rules.count(reason);
            if let Some(letters) = rules.letters.clone() {
                let (record, key_len) = (self.segments.share(&entry), entry.key_len);
                let (at, body, trace) = (effects.now, extra.body, extra.trace);
                effects.bury(Dead { letters, reason, at, record, key_len, body, trace, ended });
            }
        }
        self.segments.release(entry.segment, 1);
    }

    /// When it may not be delivered any more.
    fn expiry(&self, entry: &Entry) -> Option<Instant> {
        let own = self.extra(entry).and_then(|extra| extra.expires_at);
        let ttl = self.rules.as_ref().and_then(|rules| rules.settings.message_ttl);
        let by_queue = ttl.map(|ttl| self.segments.at(entry) + ttl);
        match (own, by_queue) {
            (Some(own), Some(by_queue)) => Some(own.min(by_queue)),
            (own, by_queue) => own.or(by_queue),
        }
    }

    /// A call whose caller is gone.
    fn is_abandoned(&self, entry: &Entry) -> bool {
        self.extra(entry).and_then(|extra| extra.call.as_ref()).is_some_and(|call| call.is_over())
    }

    /// Removes a ready message from wherever it stands; returns its bytes. `None` if it is not ready. `reason` is for who looks.
    pub fn remove(&mut self, seq: u64, reason: &'static str, effects: &mut Effects) -> Option<u64> {
        if let Some(place) = self.place_among_returned(seq) {
            let entry = self.returned.remove(&place)?;
            return Some(self.forget_ready(&entry, reason, effects));
        }
        let at = self.ready.find(seq, |entry| entry.seq)?;
        let place = self.ready.get_mut(at)?;
        if place.has(Entry::GONE) {
            return None;
        }
        let entry = *place;
        place.flags |= Entry::GONE;
        Some(self.forget_ready(&entry, reason, effects))
    }

    fn place_among_returned(&self, seq: u64) -> Option<u64> {
        match self.rules.as_deref() {
            // Few: what came back.
            Some(rules) if rules.is_quorum() => self.returned.iter().find(|(_, entry)| entry.seq == seq).map(|(place, _)| *place),
            Some(Rules { settings: QueueSettings { max_priority: Some(max), .. }, .. }) => {
                (0..=*max).map(|priority| place_of(priority, seq)).find(|place| self.returned.contains_key(place))
            }
            _ => self.returned.contains_key(&seq).then_some(seq),
        }
    }

    fn forget_ready(&mut self, entry: &Entry, reason: &'static str, effects: &mut Effects) -> u64 {
        if self.is_tapped() {
            self.see_gone(std::iter::once(entry), reason, effects);
        }
        self.uncount(entry);
        self.drop_entry(entry)
    }

    /// Drops every ready message; returns how many and their bytes. `reason` is for who looks.
    pub fn purge(&mut self, reason: &'static str, effects: &mut Effects) -> (u64, u64) {
        if self.is_tapped() && self.ready_count > 0 {
            self.see_gone(self.ready_in_order(), reason, effects);
        }
        let (count, bytes) = (self.ready_count, self.ready_bytes);
        for entry in self.ready.iter().chain(self.returned.values()).filter(|entry| !entry.has(Entry::GONE)) {
            self.segments.release(entry.segment, 1);
        }
        self.ready = Blocks::new();
        self.returned = BTreeMap::new();
        self.extras = HashMap::new();
        (self.ready_count, self.ready_bytes, self.timed) = (0, 0, false);
        if let Some(rules) = &mut self.rules {
            rules.body_bytes = 0;
        }
        self.counts.purged += count;
        (count, bytes)
    }

    /// Gives up what has expired at the head. Returns when the message that then stands there does, or may.
    pub fn expire(&mut self, effects: &mut Effects) -> Option<Instant> {
        self.trim();
        while let Some(entry) = self.head() {
            let expiry = self.expiry(&entry);
            if !self.is_abandoned(&entry) && expiry.is_none_or(|at| at > effects.now) {
                self.timed &= !self.extras.is_empty();
                return expiry;
            }
            self.bury_head(Reason::Expired, effects);
        }
        self.timed = false;
        None
    }

    /// Gives up the oldest messages until no more are ready than may be; none of a queue that refuses what is too much.
    pub fn keep_to_length(&mut self, effects: &mut Effects) {
        while self.ready_count > 0 && self.rules.as_ref().is_some_and(|rules| rules.is_over(self.ready_count)) {
            self.bury_head(Reason::MaxLen, effects);
            self.fates().dropped += 1;
        }
    }

    /// Only asked of queues with rules.
    fn fates(&mut self) -> &mut QueueFates {
        &mut self.rules.as_mut().expect("a queue without rules gives nothing up by them").fates
    }

    fn bury_head(&mut self, reason: Reason, effects: &mut Effects) {
        loop {
            let taken = match self.returned.is_empty() {
                false => self.returned.pop_first().map(|(_, entry)| entry),
                true => self.ready.pop_front(),
            };
            let Some(entry) = taken else { return };
            if !entry.has(Entry::GONE) {
                self.uncount(&entry);
                let extra = self.take_extra(&entry);
                return self.bury(entry, extra, reason, effects);
            }
        }
    }

    /// Whether a run of `count` messages with `bodies` bytes is too much for a queue that refuses what is.
    pub fn refuses(&self, count: u64, bodies: u64) -> bool {
        let Some(rules) = self.rules.as_ref().filter(|rules| rules.settings.refuses()) else { return false };
        let settings = &rules.settings;
        settings.max_length.is_some_and(|max| self.ready_count + rules.kept.count() + count > max)
            || settings.max_length_bytes.is_some_and(|max| rules.body_bytes + rules.kept.body_bytes + bodies > max)
    }

    /// Takes a run of one in that will not stay: refused, but a dead letter.
    pub fn bury_refused(&mut self, run: &Run<'_>, effects: &mut Effects) {
        let (mut fresh, weight) = self.admit(run);
        effects.memory += weight as i64;
        self.counts.published -= run.metas.len() as u64;
        while let Some(entry) = fresh.next() {
            self.uncount(&entry);
            let extra = self.take_extra(&entry);
            self.bury(entry, extra, Reason::MaxLen, effects);
        }
    }

    /// Puts a run into a priority queue, each message by its priority.
    pub fn keep_by_priority(&mut self, mut fresh: Fresh<'_>, max: u8) {
        while let Some(mut entry) = fresh.next() {
            let said = Properties::trusted(self.record(&entry).properties()).priority().unwrap_or(0);
            entry.priority = said.min(max);
            self.returned.insert(place_of(entry.priority, entry.seq), entry);
        }
    }

    /// The rules have changed: what they ask to know of each message is known from here on.
    pub fn heed(&mut self) {
        self.care = 0;
        let Some(rules) = &self.rules else { return };
        self.care |= if rules.settings.message_ttl.is_some() { TIMED } else { 0 };
        self.care |= if rules.is_quorum() { Entry::COUNTED } else { 0 };
        if rules.settings.max_length_bytes.is_some() {
            self.care |= MEASURED;
            let bytes = self.ready_in_order().map(|entry| self.body_len(entry)).sum();
            if let Some(rules) = &mut self.rules {
                rules.body_bytes = bytes;
            }
        }
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
        let returned = self.place_among_returned(seq).and_then(|place| self.returned.get(&place));
        returned.or_else(listed).filter(|entry| !entry.has(Entry::GONE)).copied()
    }

    fn head(&self) -> Option<Entry> {
        self.ready_in_order().next().copied()
    }

    /// Ready messages from the head.
    pub fn ready_in_order(&self) -> impl Iterator<Item = &Entry> {
        self.returned.values().chain(self.ready.iter()).filter(|entry| !entry.has(Entry::GONE))
    }

    /// When the message at the head says it was sent, in Unix seconds.
    pub fn head_timestamp(&self) -> Option<u64> {
        Properties::trusted(self.record(&self.head()?).properties()).timestamp()
    }

    /// When the message at the head was published.
    pub fn oldest_ready(&self) -> Option<Instant> {
        self.head().map(|entry| self.segments.at(&entry))
    }
}

/// Higher priorities first, then older messages.
fn place_of(priority: u8, seq: u64) -> u64 {
    (u64::from(u8::MAX - priority) << 56) | seq
}
