//! Single messages, wherever they stand: looking at them, and taking ready ones out to drop them or to put them elsewhere.
//!
//! What is looked at is shared, not copied, so that the lock is held for a few hundred entries and no more; whoever looks decodes
//! afterwards.

use super::{Entry, Queue};
use crate::broker::effects::{Effects, Notice};
use crate::broker::link::Link;
use crate::broker::message::Extra;
use crate::broker::record::Record;
use crate::kernel::Instant;
use bytes::Bytes;
use std::sync::Arc;

/// A message as it lies in its queue.
#[derive(Clone, Debug)]
pub(in crate::broker) struct Seen {
    pub seq: u64,
    pub redelivered: bool,
    record: Bytes,
    key_len: u16,
    /// A large body.
    pub large: Option<Bytes>,
    /// When it was published, to the batch.
    pub at: Instant,
}

/// A message that was delivered and waits for its ack.
#[derive(Clone, Debug)]
pub(in crate::broker) struct SeenUnacked {
    pub seen: Seen,
    pub link: Arc<Link>,
    pub channel: u16,
    pub delivery_tag: u64,
    /// `None` for `basic.get`, and for a consumer that left its deliveries behind.
    pub consumer: Option<Arc<str>>,
    pub held_ms: u32,
}

/// A ready message taken out of its queue.
#[derive(Debug)]
pub(in crate::broker) struct Taken {
    pub seen: Seen,
    pub extra: Extra,
}

impl Seen {
    pub fn record(&self) -> Record<'_> {
        Record::new(&self.record, self.key_len)
    }

    /// The record behind exchange and routing key: content header and inline body, framed.
    pub fn content(&self) -> &[u8] {
        &self.record[usize::from(self.key_len)..]
    }

    /// Everything that was published, but a large body.
    pub fn bytes(&self) -> &[u8] {
        &self.record
    }

    pub fn body(&self) -> &[u8] {
        self.large.as_deref().unwrap_or_else(|| self.record().inline_body())
    }
}

impl super::State {
    fn seen(&self, entry: &Entry, large: Option<Bytes>) -> Seen {
        Seen {
            seq: entry.seq,
            redelivered: entry.has(Entry::REDELIVERED),
            record: self.backlog.segments.share(entry),
            key_len: entry.key_len,
            large,
            at: self.backlog.segments.at(entry),
        }
    }
}

impl Queue {
    /// Up to `count` ready messages from the place `from` on; 0 is the head.
    pub fn look(&self, from: usize, count: usize) -> Vec<Seen> {
        let state = self.state();
        let large = |entry: &Entry| state.backlog.extra(entry).and_then(|extra| extra.body.clone());
        state.backlog.ready_in_order().skip(from).take(count).map(|entry| state.seen(entry, large(entry))).collect()
    }

    /// Those of `seqs` that are ready.
    pub fn look_at_these(&self, seqs: &[u64]) -> Vec<Seen> {
        let state = self.state();
        let ready = seqs.iter().filter_map(|seq| state.backlog.find(*seq));
        ready.map(|entry| state.seen(&entry, state.backlog.extra(&entry).and_then(|extra| extra.body.clone()))).collect()
    }

    /// Up to `count` deliveries of each channel of `links` that wait for their ack, oldest first.
    pub fn look_at_unacked(self: &Arc<Self>, links: &[Arc<Link>], count: usize, now: Instant) -> Vec<SeenUnacked> {
        let state = self.state();
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let mut found = Vec::new();
        for link in links {
            let outbox = link.outbox();
            for (channel, lane) in outbox.channels.iter() {
                let ours = |slot: u32| lane.slot(slot).is_some_and(|slot| Arc::ptr_eq(&slot.queue, self));
                for unacked in lane.unsettled().filter(|unacked| ours(unacked.slot)).take(count) {
                    let large = lane.open.get(&unacked.tag).and_then(|open| open.extra.body.clone());
                    let consumer = lane.consumers.iter().find(|(_, consumer)| consumer.slot == unacked.slot);
                    found.push(SeenUnacked {
                        seen: state.seen(&unacked.entry, large),
                        link: link.clone(),
                        channel,
                        delivery_tag: unacked.tag,
                        consumer: consumer.map(|(tag, _)| tag.clone()),
                        held_ms: now_ms.wrapping_sub(unacked.at_ms),
                    });
                }
            }
        }
        found
    }

    /// The first `count` ready messages that may leave the queue, by position. Calls stay, since their callers wait for this queue's
    /// consumers.
    pub fn movable(&self, count: usize) -> Vec<u64> {
        let state = self.state();
        let may_go = |entry: &&Entry| state.backlog.extra(entry).is_none_or(|extra| extra.call.is_none());
        state.backlog.ready_in_order().filter(may_go).take(count).map(|entry| entry.seq).collect()
    }

    /// Takes those of `seqs` out that are ready; calls stay.
    pub fn take_these(&self, seqs: &[u64], effects: &mut Effects) -> Vec<Taken> {
        let mut state = self.state();
        let ready = seqs.iter().filter_map(|seq| state.backlog.find(*seq));
        let entries: Vec<Entry> =
            ready.filter(|entry| state.backlog.extra(entry).is_none_or(|extra| extra.call.is_none())).collect();
        take(&mut state, &entries, "moved to another queue", effects)
    }

    /// Drops one ready message for good; the caller of a call learns it. False if it is not ready.
    pub fn discard(&self, seq: u64, effects: &mut Effects) -> bool {
        let mut state = self.state();
        let Some(entry) = state.backlog.find(seq) else { return false };
        let call = state.backlog.extra(&entry).and_then(|extra| extra.call.clone());
        let freed = state.backlog.remove(seq, "purged", effects).unwrap_or(0);
        state.backlog.trim();
        state.backlog.counts.purged += 1;
        effects.memory -= freed as i64;
        if let Some(call) = call {
            effects.notify(call, Notice::Rejected);
        }
        true
    }

    /// Drops the first `count` ready messages; calls stay. Returns how many went.
    pub fn purge_first(&self, count: usize, effects: &mut Effects) -> usize {
        let mut state = self.state();
        let may_go = |extra: Option<&Extra>| extra.is_none_or(|extra| extra.call.is_none());
        let entries: Vec<Entry> =
            state.backlog.ready_in_order().filter(|entry| may_go(state.backlog.extra(entry))).take(count).copied().collect();
        let taken = take(&mut state, &entries, "purged", effects).len();
        state.backlog.counts.purged += taken as u64;
        taken
    }
}

fn take(state: &mut super::State, entries: &[Entry], reason: &'static str, effects: &mut Effects) -> Vec<Taken> {
    let mut taken = Vec::with_capacity(entries.len());
    for entry in entries {
        let extra = state.backlog.extra(entry).cloned().unwrap_or_default();
        let seen = state.seen(entry, extra.body.clone());
        if let Some(freed) = state.backlog.remove(entry.seq, reason, effects) {
            effects.memory -= freed as i64;
            taken.push(Taken { seen, extra });
        }
    }
    state.backlog.trim();
    taken
}
