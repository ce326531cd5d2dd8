//! What waits to be written to one connection, and what its channels owe: deliveries not yet acked.
//!
//! Guarded by one lock, the last in the order topology, queue, outbox. Acks are taken out of here by the connection's own task
//! and then told to the queues, never the other way round.

use super::client::Failed;
use super::flow::{Flow, Publishes};
use super::message::Extra;
use super::queue::{Entry, Queue};
use super::record::Frames;
use super::trace::Process;
use crate::kernel::Instant;
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct Outbox {
    pub frames: Frames,
    pub frame_max: u32,
    /// The connection is gone: nothing may be added.
    pub dead: bool,
    /// Somebody has taken on to wake the owner since the last take.
    pub signalled: bool,
    pub channels: ByChannel<Lane>,
    /// Queues that stopped delivering here because it was full.
    pub stalled: Vec<Arc<Queue>>,
    /// Deliveries are settled in the order they were made (contract §8).
    pub settles_in_order: bool,
    /// Channels that must be closed, which their own task has not learnt yet.
    pub failing: Vec<Failed>,
}

impl Outbox {
    pub fn new(frame_max: u32) -> Self {
        Outbox {
            frames: Frames::default(),
            frame_max,
            dead: false,
            signalled: false,
            channels: ByChannel::default(),
            stalled: Vec::new(),
            settles_in_order: true,
            failing: Vec::new(),
        }
    }
}

/// Values by channel number: an index for the usual low numbers, a map for the rest.
#[derive(Debug)]
pub(super) struct ByChannel<T> {
    low: Vec<Option<Box<T>>>,
    high: HashMap<u16, Box<T>>,
}

const LOW: u16 = 256;

impl<T> Default for ByChannel<T> {
    fn default() -> Self {
        ByChannel { low: Vec::new(), high: HashMap::new() }
    }
}

impl<T> ByChannel<T> {
    pub fn get(&self, number: u16) -> Option<&T> {
        match number < LOW {
            true => self.low.get(usize::from(number))?.as_deref(),
            false => self.high.get(&number).map(|value| &**value),
        }
    }

    // HOT
    #[inline]
    pub fn get_mut(&mut self, number: u16) -> Option<&mut T> {
        match number < LOW {
            true => self.low.get_mut(usize::from(number))?.as_deref_mut(),
            false => self.high.get_mut(&number).map(|value| &mut **value),
        }
    }

    pub fn insert(&mut self, number: u16, value: T) {
        if number >= LOW {
            self.high.insert(number, Box::new(value));
            return;
        }
        let at = usize::from(number);
        if self.low.len() <= at {
            self.low.resize_with(at + 1, || None);
        }
        self.low[at] = Some(Box::new(value));
    }

    pub fn remove(&mut self, number: u16) -> Option<T> {
        let removed = match number < LOW {
            true => self.low.get_mut(usize::from(number))?.take(),
            false => self.high.remove(&number),
        };
        removed.map(|value| *value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u16, &T)> {
        let low = self.low.iter().enumerate().filter_map(|(number, value)| Some((number as u16, &**value.as_ref()?)));
        low.chain(self.high.iter().map(|(number, value)| (*number, &**value)))
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.low.iter_mut().flatten().chain(self.high.values_mut()).map(|value| &mut **value)
    }

    pub fn numbers(&self) -> Vec<u16> {
        self.iter().map(|(number, _)| number).collect()
    }
}

/// A delivery that waits for its ack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unacked {
    pub tag: u64,
    pub entry: Entry,
    pub slot: u32,
    /// Milliseconds since the broker's clock began, for views.
    pub at_ms: u32,
}

impl Unacked {
    /// Marks one that was settled out of order; it goes when those before it have gone.
    const SETTLED: u32 = u32::MAX;

    fn is_settled(&self) -> bool {
        self.slot == Self::SETTLED
    }
}

/// Whose deliveries: a consumer of a queue, or `basic.get` of one (consumer 0).
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub queue: Arc<Queue>,
    pub consumer: u64,
    /// Deliveries not yet settled.
    pub open: u32,
    pub cancelled: bool,
}

/// What must be remembered of a delivery until it is settled (or, without acks, answered).
#[derive(Debug, Default)]
pub(super) struct Open {
    pub extra: Extra,
    pub process: Option<Process>,
    pub auto_acked: bool,
}

/// A consumer as its channel knows it.
#[derive(Clone, Debug)]
pub(super) struct LaneConsumer {
    pub queue: Arc<Queue>,
    pub id: u64,
    pub slot: u32,
}

/// How long an auto-acked delivery without a call counts as being worked on.
const AUTO_ACKED_OPEN: Duration = Duration::from_secs(30);

impl Open {
    fn reply_to(&self) -> Option<&str> {
        self.process.as_ref()?.reply_to.as_deref()
    }

    /// Whether a message to `key` with that correlation answers it.
    pub fn is_answered_by(&self, key: &str, correlation: Option<&str>) -> bool {
        let Some(process) = &self.process else { return false };
        process.reply_to.as_deref() == Some(key)
            && (process.correlation.is_none() || process.correlation.as_deref() == correlation)
    }

    /// Nobody will settle or answer it any more.
    fn is_over(&self, now: Instant) -> bool {
        match (&self.extra.call, &self.process) {
            (Some(call), _) => call.is_over(),
            (None, Some(process)) => now.since(process.started) > AUTO_ACKED_OPEN,
            (None, None) => true,
        }
    }
}

/// The outgoing side of one channel. What every delivery touches stands together at the front: many channels of one connection may
/// be served in turns.
#[derive(Debug, Default)]
#[repr(C)]
pub(super) struct Lane {
    last_tag: u64,
    /// Ascending tags; gaps where nothing needs an ack.
    unacked: VecDeque<Unacked>,
    /// Of `unacked`, those not settled.
    pub live: u32,
    /// 0 is unlimited (`basic.qos` with `global`).
    pub prefetch_global: u32,
    slots: SmallVec<[Option<Slot>; 1]>,
    /// The consuming side.
    pub consumed: Flow,
    /// Publishers' confirms are on; for views.
    pub confirms: bool,
    /// Since `tx.select`; for views.
    pub transactional: bool,
    /// What consumers to come get (`basic.qos` without `global`); for views.
    pub prefetch: u32,
    /// The publishing side, which the connection's own task counts.
    pub publishes: Arc<Publishes>,
    /// Queues that stopped because of `prefetch_global`.
    pub waiting: Vec<Arc<Queue>>,
    /// Consumers by tag.
    pub consumers: HashMap<Arc<str>, LaneConsumer>,
    /// By delivery tag: rare deliveries that carry more, acked or not.
    pub open: BTreeMap<u64, Open>,
    open_next_sweep: usize,
}

impl Lane {
    pub fn new(publishes: Arc<Publishes>) -> Self {
        Lane { publishes, ..Lane::default() }
    }

    /// Everything the channel did.
    pub fn flow(&self) -> Flow {
        let mut flow = self.consumed;
        self.publishes.add_to(&mut flow);
        flow
    }

    // HOT
    #[inline]
    pub fn next_tag(&mut self) -> u64 {
        self.last_tag += 1;
        self.last_tag
    }

    /// Keeps what a delivery carries until it is settled, or answered if no ack will come.
    pub fn remember(&mut self, tag: u64, open: Open, now: Instant) {
        if open.auto_acked && open.extra.call.is_none() {
            // Without ack or answer nobody says when it is done: the next delivery does.
            self.open.retain(|_, before| !(before.auto_acked && before.extra.call.is_none() && before.reply_to().is_none()));
        }
        self.open.insert(tag, open);
        if self.open.len() > self.open_next_sweep {
            self.open.retain(|_, open| !open.auto_acked || !open.is_over(now));
            self.open_next_sweep = (self.open.len() * 2).max(64);
        }
    }

    pub fn is_at_limit(&self) -> bool {
        self.prefetch_global > 0 && self.live >= self.prefetch_global
    }

    // HOT
    #[inline]
    pub fn hold(&mut self, unacked: Unacked) {
        self.unacked.push_back(unacked);
        self.live += 1;
        if let Some(Some(slot)) = self.slots.get_mut(unacked.slot as usize) {
            slot.open += 1;
        }
    }

    pub fn add_slot(&mut self, queue: Arc<Queue>, consumer: u64) -> u32 {
        let slot = Some(Slot { queue, consumer, open: 0, cancelled: false });
        let at = match self.slots.iter().position(Option::is_none) {
            Some(at) => {
                self.slots[at] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        u32::try_from(at).expect("as many slots as consumers at most")
    }

    /// The slot that `basic.get` uses for `queue`.
    pub fn get_slot(&mut self, queue: &Arc<Queue>) -> u32 {
        let known = |slot: &Option<Slot>| slot.as_ref().is_some_and(|slot| slot.consumer == 0 && Arc::ptr_eq(&slot.queue, queue));
        match self.slots.iter().position(known) {
            Some(at) => at as u32,
            None => {
                let at = self.add_slot(queue.clone(), 0);
                self.cancel_slot(at);
                at
            }
        }
    }

    pub fn slot(&self, at: u32) -> Option<&Slot> {
        self.slots.get(at as usize)?.as_ref()
    }

    pub fn holds_from(&self, queue: &Arc<Queue>) -> bool {
        self.slots.iter().flatten().any(|slot| slot.open > 0 && Arc::ptr_eq(&slot.queue, queue))
    }

    /// The slot goes with its last delivery.
    pub fn cancel_slot(&mut self, at: u32) {
        if let Some(place) = self.slots.get_mut(at as usize)
            && let Some(slot) = place
        {
            slot.cancelled = true;
        }
    }

    /// Frees a slot whose consumer is gone and whose deliveries are settled.
    pub fn free_slot(&mut self, at: u32) {
        if let Some(place) = self.slots.get_mut(at as usize)
            && place.as_ref().is_some_and(|slot| slot.cancelled && slot.open == 0)
        {
            *place = None;
        }
    }

    /// Takes out one delivery, or all up to `tag` (`tag` 0: all). False if `tag` is unknown; then nothing is taken.
    // HOT
    pub fn settle(&mut self, tag: u64, multiple: bool, taken: &mut Vec<Unacked>) -> bool {
        if multiple && tag == 0 {
            self.take_front(u64::MAX, taken);
            return true;
        }
        let Some(at) = self.find(tag) else { return false };
        if multiple {
            self.take_front(tag, taken);
            return true;
        }
        let found = self.unacked[at];
        taken.push(found);
        self.settled(found.slot);
        if at == 0 {
            self.unacked.pop_front();
            self.trim_front();
        } else {
            self.unacked[at].slot = Unacked::SETTLED;
            self.compact();
        }
        true
    }

    /// Takes out every delivery, oldest first.
    pub fn settle_all(&mut self, taken: &mut Vec<Unacked>) {
        self.take_front(u64::MAX, taken);
    }

    fn take_front(&mut self, up_to: u64, taken: &mut Vec<Unacked>) {
        while let Some(first) = self.unacked.front()
            && first.tag <= up_to
        {
            let first = *first;
            self.unacked.pop_front();
            if !first.is_settled() {
                taken.push(first);
                self.settled(first.slot);
            }
        }
        self.trim_front();
    }

    fn settled(&mut self, slot: u32) {
        self.live -= 1;
        if let Some(Some(slot)) = self.slots.get_mut(slot as usize) {
            slot.open -= 1;
        }
    }

    fn trim_front(&mut self) {
        while self.unacked.front().is_some_and(Unacked::is_settled) {
            self.unacked.pop_front();
        }
        if self.unacked.is_empty() && self.unacked.capacity() > 4096 {
            self.unacked = VecDeque::new();
        }
    }

    /// One delivery that is never acked must not keep the places of all behind it.
    fn compact(&mut self) {
        if self.unacked.len() > 1024 && self.unacked.len() > 4 * self.live as usize {
            self.unacked.retain(|unacked| !unacked.is_settled());
        }
    }

    fn find(&self, tag: u64) -> Option<usize> {
        let first = self.unacked.front()?.tag;
        let guess = usize::try_from(tag.checked_sub(first)?).ok()?;
        let at = match self.unacked.get(guess) {
            Some(unacked) if unacked.tag == tag => guess,
            _ => self.unacked.binary_search_by_key(&tag, |unacked| unacked.tag).ok()?,
        };
        (!self.unacked[at].is_settled()).then_some(at)
    }

    /// Deliveries not settled, oldest first.
    pub fn unsettled(&self) -> impl Iterator<Item = &Unacked> {
        self.unacked.iter().filter(|unacked| !unacked.is_settled())
    }

    /// The oldest delivery not settled of each consumer (and of each queue asked by `basic.get`), oldest first.
    pub fn oldest_of_each(&self) -> impl Iterator<Item = (&Slot, &Unacked)> {
        let holding = self.slots.iter().flatten().filter(|slot| slot.open > 0).count();
        let mut met = vec![false; self.slots.len()];
        let first = move |unacked: &&Unacked| met.get_mut(unacked.slot as usize).is_some_and(|met| !std::mem::replace(met, true));
        let firsts = self.unsettled().filter(first).take(holding);
        firsts.filter_map(|unacked| Some((self.slot(unacked.slot)?, unacked)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lane(tags: impl IntoIterator<Item = u64>) -> Lane {
        let mut lane = Lane::default();
        for tag in tags {
            let entry = Entry { seq: tag, at: 0, len: 0, segment: 0, key_len: 0, flags: 0, priority: 0 };
            lane.hold(Unacked { tag, entry, slot: 0, at_ms: 0 });
        }
        lane
    }

    fn settle(lane: &mut Lane, tag: u64, multiple: bool) -> Option<Vec<u64>> {
        let mut taken = Vec::new();
        lane.settle(tag, multiple, &mut taken).then(|| taken.iter().map(|unacked| unacked.tag).collect())
    }

    #[test]
    fn acks_take_one_or_all_before_and_never_twice() {
        let mut lane = lane([1, 2, 4, 5, 9]);
        assert_eq!(settle(&mut lane, 4, false), Some(vec![4]));
        assert_eq!(settle(&mut lane, 4, false), None);
        assert_eq!(settle(&mut lane, 3, false), None, "a tag that needs no ack is unknown");
        assert_eq!(settle(&mut lane, 5, true), Some(vec![1, 2, 5]));
        assert_eq!(settle(&mut lane, 5, true), None);
        assert_eq!(settle(&mut lane, 0, true), Some(vec![9]));
        assert_eq!(settle(&mut lane, 0, true), Some(vec![]));
        assert_eq!(lane.live, 0);
    }

    #[test]
    fn one_old_delivery_does_not_keep_the_places_of_later_ones() {
        let mut lane = lane(1..=10_000);
        for tag in 2..=10_000 {
            assert!(settle(&mut lane, tag, false).is_some());
        }
        assert!(lane.unacked.len() <= 1025, "{}", lane.unacked.len());
        assert_eq!(settle(&mut lane, 1, false), Some(vec![1]));
    }

    proptest! {
        #[test]
        fn settling_matches_a_set(acks in proptest::collection::vec((0u64..60, any::<bool>()), 1..80)) {
            let mut lane = lane((1..50).filter(|tag| tag % 7 != 3));
            let mut model: std::collections::BTreeSet<u64> = (1..50).filter(|tag| tag % 7 != 3).collect();
            for (tag, multiple) in acks {
                let expected = match (tag, multiple) {
                    (0, true) => Some(std::mem::take(&mut model).into_iter().collect()),
                    (tag, _) if !model.contains(&tag) => None,
                    (tag, true) => {
                        let rest = model.split_off(&(tag + 1));
                        Some(std::mem::replace(&mut model, rest).into_iter().collect())
                    }
                    (tag, false) => {
                        model.remove(&tag);
                        Some(vec![tag])
                    }
                };
                prop_assert_eq!(settle(&mut lane, tag, multiple), expected);
                prop_assert_eq!(lane.live as usize, model.len());
            }
        }
    }

    #[test]
    fn channels_of_any_number_are_found() {
        let mut channels = ByChannel::default();
        for number in [1u16, 3, 255, 256, 65_535] {
            channels.insert(number, number);
        }
        assert_eq!(channels.get(2), None);
        assert!(channels.iter().all(|(number, value)| number == *value));
        assert_eq!(channels.remove(65_535), Some(65_535));
        assert_eq!(channels.remove(3), Some(3));
        assert_eq!(channels.get_mut(256).copied(), Some(256));
        let mut numbers = channels.numbers();
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 255, 256]);
    }
}
