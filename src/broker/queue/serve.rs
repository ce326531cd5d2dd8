//! From ready to a consumer's outbox.

use super::backlog::{Backlog, Fresh};
use super::consumer::{Consumer, STALLED};
use super::entry::Entry;
use super::{Queue, State};
use crate::broker::client::Got;
use crate::broker::effects::{Effects, Notice};
use crate::broker::link::{Link, OUTBOX_BYTES_MAX};
use crate::broker::message::Extra;
use crate::broker::outbox::{Lane, Open, Outbox, Unacked};
use crate::broker::record::{Anew, Frames, Head, Record};
use crate::broker::trace;
use crate::kernel::Instant;
use crate::model::table::{Field, Table};
use crate::wire::amqp::{Properties, PropertyList, RawTable, encode, table};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Queue {
    /// Hands out ready messages while a consumer has room.
    // HOT
    pub(super) fn serve(self: &Arc<Self>, state: &mut State, fresh: &mut Fresh<'_>, effects: &mut Effects) {
        let mut next = next_turn(state);
        while let Some((at, _)) = next {
            let link = state.consumers[at].link.clone();
            let mut outbox = link.outbox();
            outbox.frames.room();
            let mut given = Given::new(effects.now);
            // Consumers of one connection whose turns follow each other share one lock of its outbox.
            while let Some((at, alone)) = next
                && Arc::ptr_eq(&state.consumers[at].link, &link)
            {
                // One consumer takes all it can at once; several take turns, message by message, as RabbitMQ's do.
                self.give(state, at, if alone { u32::MAX } else { 1 }, &mut outbox, fresh, (&mut given, effects));
                state.turn = if at + 1 < state.consumers.len() { at + 1 } else { 0 };
                next = next_turn(state);
            }
            link.set_waiting(outbox.frames.len());
            given.book(&mut state.backlog, effects);
            match given.count {
                0 => outbox.frames.rest(),
                _ if std::mem::replace(&mut outbox.signalled, true) => {}
                _ => effects.wake(&link),
            }
        }
    }

    /// Gives up to `limit` messages to one consumer, whose connection's `outbox` is held. None only if that consumer is stalled now or
    /// nothing is ready.
    // HOT
    #[inline]
    fn give(
        self: &Arc<Self>,
        state: &mut State,
        at: usize,
        limit: u32,
        outbox: &mut Outbox,
        fresh: &mut Fresh<'_>,
        (given, effects): (&mut Given, &mut Effects),
    ) {
        let State { backlog, consumers, .. } = state;
        let Consumer { link, channel, slot, head, no_ack, prefetch, unacked, held, .. } = &mut consumers[at];
        let Outbox { frames, frame_max, dead, channels, stalled: stalled_queues, .. } = outbox;
        let Some(lane) = channels.get_mut(*channel).filter(|_| !*dead) else {
            *held |= STALLED;
            return;
        };
        let (mut count, mut redelivered) = (0, 0);
        let tapped = backlog.is_tapped();
        while count < limit && (*prefetch == 0 || *unacked < *prefetch) {
            if frames.len() >= OUTBOX_BYTES_MAX {
                *held |= STALLED;
                note(stalled_queues, self);
                break;
            }
            if !*no_ack && lane.is_at_limit() {
                *held |= STALLED;
                note(&mut lane.waiting, self);
                break;
            }
            let Some(entry) = backlog.take(fresh, effects) else { break };
            given.waited.add(backlog, &entry);
            if entry.has(Entry::EXTRA) && !fits(backlog, &entry, *frame_max, effects) {
                if tapped {
                    backlog.see_gone(std::iter::once(&entry), "its header is too large for its consumer", effects);
                }
                given.freed += backlog.drop_entry(&entry);
                continue;
            }
            let mut weight = u64::from(entry.len);
            let tag = lane.next_tag();
            if tapped {
                backlog.see_delivered(&entry, link, *channel, *no_ack, effects);
            }
            if backlog.is_special(&entry) {
                let delivery = Delivery { link, head, tag, no_ack: *no_ack, frame_max: *frame_max };
                weight += self.give_with_extra(backlog, &entry, frames, lane, delivery, effects);
            } else {
                frames.deliver(head, tag, entry.has(Entry::REDELIVERED), backlog.record(&entry), None, *frame_max);
            }
            redelivered += u64::from(entry.has(Entry::REDELIVERED));
            count += 1;
            if *no_ack {
                given.freed += weight;
                backlog.segments.release(entry.segment, 1);
            } else {
                *unacked += 1;
                given.held_bytes += weight;
                lane.hold(Unacked { tag, entry, slot: *slot, at_ms: given.at_ms });
            }
        }
        given.add(lane, *no_ack, count.into(), redelivered);
    }

    /// `basic.get`: one message to `channel` of `link`.
    pub fn get(self: &Arc<Self>, link: &Arc<Link>, channel: u16, no_ack: bool, effects: &mut Effects) -> Got {
        let mut state = self.state();
        let state = &mut *state;
        self.used(state, effects);
        state.touched = effects.now;
        state.backlog.expire(effects);
        let mut freed = 0;
        let got = match state.backlog.take(&mut Fresh::none(), effects) {
            None => {
                state.backlog.counts.got_empty += 1;
                if let Some(lane) = link.outbox().channels.get_mut(channel) {
                    lane.consumed.get_empty += 1;
                }
                Got::Empty
            }
            Some(entry) => self.hand_to_getter(&mut state.backlog, entry, &Getter { link, channel, no_ack }, &mut freed, effects),
        };
        effects.memory -= freed as i64;
        if state.backlog.timed || state.backlog.rules.is_some() {
            self.look_ahead(state, effects);
        }
        got
    }

    fn hand_to_getter(
        self: &Arc<Self>,
        backlog: &mut Backlog,
        entry: Entry,
        to: &Getter<'_>,
        freed: &mut u64,
        effects: &mut Effects,
    ) -> Got {
        let mut outbox = to.link.outbox();
        let outbox = &mut *outbox;
        let Some(lane) = outbox.channels.get_mut(to.channel) else {
            let extra = backlog.take_extra(&entry);
            backlog.put_back(entry, extra, false);
            return Got::Empty;
        };
        if backlog.is_tapped() {
            backlog.see_delivered(&entry, to.link, to.channel, to.no_ack, effects);
        }
        let extra = backlog.take_extra(&entry).unwrap_or_default();
        let weight = u64::from(entry.len) + extra.body_len();
        let tag = lane.next_tag();
        let redelivered = entry.has(Entry::REDELIVERED);
        let record = backlog.record(&entry);
        let mut arguments = [0u8; 9];
        arguments[..8].copy_from_slice(&tag.to_be_bytes());
        arguments[8] = redelivered.into();
        let left = u32::try_from(backlog.ready_count).unwrap_or(u32::MAX).to_be_bytes();
        outbox.frames.room();
        outbox.frames.method_with_key(to.channel, (60, 71), &arguments, record, &left);
        match backlog.returns_told(&extra) {
            None => outbox.frames.content(to.channel, record, extra.body.as_ref(), outbox.frame_max),
            Some(returns) => {
                let properties = with_delivery_count(record, returns);
                let anew = Anew { properties: &properties, large: extra.body.as_ref() };
                outbox.frames.content_anew(to.channel, record, anew, outbox.frame_max);
            }
        }
        backlog.counts.delivered += 1;
        backlog.counts.redelivered += u64::from(redelivered);
        lane.consumed.redeliver += u64::from(redelivered);
        effects.delivered += 1;
        if to.no_ack {
            backlog.counts.got_no_ack += 1;
            lane.consumed.get_no_ack += 1;
            *freed += weight;
            backlog.segments.release(entry.segment, 1);
        } else {
            backlog.counts.got += 1;
            lane.consumed.get += 1;
            backlog.unacked_count += 1;
            backlog.unacked_bytes += weight;
            let slot = lane.get_slot(self);
            lane.hold(Unacked { tag, entry, slot, at_ms: (effects.now.as_nanos() / 1_000_000) as u32 });
        }
        self.open_for_getter(extra, tag, to, lane, effects);
        Got::Message
    }

    /// What stands beside a message goes with it to the getter.
    fn open_for_getter(&self, extra: Extra, tag: u64, to: &Getter<'_>, lane: &mut Lane, effects: &mut Effects) {
        if !extra.is_something() {
            return;
        }
        if let Some(call) = &extra.call {
            effects.notify(call.clone(), Notice::Delivered { link: to.link.clone() });
        }
        if !to.no_ack || extra.call.is_some() {
            lane.remember(tag, Open { extra, process: None, auto_acked: to.no_ack }, effects.now);
        }
    }

    /// A delivery with something beside it: a large body, a trace, a call. Returns the bytes the extra holds.
    #[cold]
    fn give_with_extra(
        &self,
        backlog: &mut Backlog,
        entry: &Entry,
        frames: &mut Frames,
        lane: &mut Lane,
        to: Delivery<'_>,
        effects: &mut Effects,
    ) -> u64 {
        let extra = backlog.take_extra(entry).unwrap_or_default();
        let since = backlog.segments.at(entry);
        let record = backlog.record(entry);
        let redelivered = entry.has(Entry::REDELIVERED);
        match backlog.returns_told(&extra) {
            None => frames.deliver(to.head, to.tag, redelivered, record, extra.body.as_ref(), to.frame_max),
            Some(returns) => {
                let properties = with_delivery_count(record, returns);
                let anew = Anew { properties: &properties, large: extra.body.as_ref() };
                let head = Head { head: to.head, tag: to.tag, redelivered };
                frames.deliver_anew(head, record, anew, to.frame_max);
            }
        }
        let weight = extra.body_len();
        if let Some(call) = &extra.call {
            effects.notify(call.clone(), Notice::Delivered { link: to.link.clone() });
        }
        let process = extra.trace.as_ref().map(|beside| {
            let at = trace::Handed { queue: self, link: to.link, since, now: effects.now, redelivered };
            trace::handed_over(beside, &at, record, extra.body_len(), &mut effects.spans)
        });
        if process.is_some() {
            to.link.traced.fetch_add(1, Ordering::Relaxed);
        }
        if extra.call.is_some() || process.is_some() || (!to.no_ack && extra.is_something()) {
            lane.remember(to.tag, Open { extra, process, auto_acked: to.no_ack }, effects.now);
        }
        weight
    }
}

/// A message's properties with the header in which a quorum queue tells how often it came back.
fn with_delivery_count(record: Record<'_>, returns: u32) -> Vec<u8> {
    const NAME: &str = "x-delivery-count";
    let list = Properties::trusted(record.properties()).to_list();
    let given = list.headers.unwrap_or_default();
    let mut headers = match given.get(NAME) {
        None => given.as_bytes().to_vec(),
        Some(_) => {
            let mut kept = given.to_table();
            kept.0.retain(|(name, _)| name != NAME);
            table::encoded(&kept)
        }
    };
    headers.extend_from_slice(&table::encoded(&Table::new().with(NAME, Field::I64(returns.into()))));
    PropertyList { headers: RawTable::check(&headers).ok(), ..list }.to_bytes()
}

/// What consumers of one connection were given in turn, booked once.
struct Given {
    at_ms: u32,
    count: u64,
    no_ack: u64,
    redelivered: u64,
    /// Bytes of what waits for its ack now.
    held_bytes: u64,
    /// Bytes of what needs none.
    freed: u64,
    waited: Waited,
}

impl Given {
    fn new(now: Instant) -> Self {
        let waited = Waited { now, segment: u32::MAX, since: now, count: 0 };
        Given { at_ms: (now.as_nanos() / 1_000_000) as u32, count: 0, no_ack: 0, redelivered: 0, held_bytes: 0, freed: 0, waited }
    }

    /// `count` deliveries to a consumer of `lane`, and how many of them were not the first.
    // HOT
    #[inline]
    fn add(&mut self, lane: &mut Lane, no_ack: bool, count: u64, redelivered: u64) {
        self.count += count;
        if redelivered > 0 {
            self.redelivered += redelivered;
            lane.consumed.redeliver += redelivered;
        }
        if no_ack {
            self.no_ack += count;
            lane.consumed.deliver_no_ack += count;
        } else {
            lane.consumed.deliver += count;
        }
    }

    fn book(&mut self, backlog: &mut Backlog, effects: &mut Effects) {
        self.waited.finish(backlog);
        backlog.counts.delivered += self.count;
        backlog.counts.delivered_no_ack += self.no_ack;
        backlog.counts.redelivered += self.redelivered;
        backlog.unacked_count += self.count - self.no_ack;
        backlog.unacked_bytes += self.held_bytes;
        effects.delivered += self.count;
        effects.memory -= self.freed as i64;
    }
}

/// Whether a call's header fits the frames of the consumer it would go to; a header cannot be split. If not, its caller learns why.
#[cold]
fn fits(backlog: &Backlog, entry: &Entry, frame_max: u32, effects: &mut Effects) -> bool {
    let Some(call) = backlog.extra(entry).and_then(|extra| extra.call.clone()) else { return true };
    let fits = encode::header_fits(backlog.record(entry).properties().len(), frame_max);
    if !fits {
        effects.notify(call, Notice::FrameTooSmall { frame_max });
    }
    fits
}

/// Where `basic.get` was called.
struct Getter<'a> {
    link: &'a Arc<Link>,
    channel: u16,
    no_ack: bool,
}

/// Where one delivery goes.
struct Delivery<'a> {
    link: &'a Arc<Link>,
    head: &'a [u8],
    tag: u64,
    no_ack: bool,
    frame_max: u32,
}

/// Sums the waits of consecutive messages of one segment: they were published together.
struct Waited {
    now: Instant,
    segment: u32,
    since: Instant,
    count: u32,
}

impl Waited {
    // HOT
    #[inline]
    fn add(&mut self, backlog: &mut Backlog, entry: &Entry) {
        if entry.segment != self.segment {
            self.finish(backlog);
            (self.segment, self.since, self.count) = (entry.segment, backlog.segments.at(entry), 0);
        }
        self.count += 1;
    }

    fn finish(&self, backlog: &mut Backlog) {
        if self.count > 0 {
            backlog.waits.add(self.now.since(self.since), self.count);
        }
    }
}

/// Remembers that `queue` stands still, once for all its consumers met in a row.
#[cold]
fn note(still: &mut Vec<Arc<Queue>>, queue: &Arc<Queue>) {
    if !still.last().is_some_and(|noted| Arc::ptr_eq(noted, queue)) {
        still.push(queue.clone());
    }
}

/// Whose turn it is, while there is something to hand out.
// HOT
#[inline]
fn next_turn(state: &State) -> Option<(usize, bool)> {
    match state.backlog.ready_count {
        0 => None,
        _ => next_consumer(&state.consumers, state.turn),
    }
}

/// The consumer whose turn it is among those of the highest priority that have room, and whether it is the only one.
// HOT
fn next_consumer(consumers: &[Consumer], turn: usize) -> Option<(usize, bool)> {
    let one_priority = consumers.first()?.priority == consumers.last()?.priority;
    let mut found: Option<(usize, bool)> = None;
    for at in (turn..consumers.len()).chain(0..turn.min(consumers.len())) {
        if !consumers[at].has_room() {
            continue;
        }
        match found {
            None => found = Some((at, true)),
            Some((best, _)) if consumers[at].priority > consumers[best].priority => found = Some((at, true)),
            Some((best, _)) if consumers[at].priority == consumers[best].priority => {
                found = Some((best, false));
                if one_priority {
                    break;
                }
            }
            Some(_) => {}
        }
    }
    found
}
