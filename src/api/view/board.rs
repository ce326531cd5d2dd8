//! What needs memory between two looks: rates from counters, colours that hold still, colour slots, services that have left.
//!
//! The node's sampler calls [`Board::look`] once a second; every reader gets the [`Rates`] of the last look. Counters only grow, so
//! a rate is a difference to the last look, or to nothing. What never did anything is not listed.
//!
//! Connections are many and rarely looked at: their rates are made when somebody asks, as the difference to the last time.

use super::Sources;
use crate::broker::view::{ConnectionView, ExchangeView, QueueView};
use crate::broker::{ConnectionId, Waits};
use crate::kernel::platform;
use crate::kernel::{Clock, Instant};
use crate::telemetry::view::Tone;
use arc_swap::ArcSwap;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Space and name.
pub type Key = (Arc<str>, Arc<str>);

/// Services that left, still shown; beyond it they are forgotten.
const DEPARTED_MAX: usize = 1_024;
/// What left and nothing defines is told of for so long: as long as the dashboard's default range shows what it did.
pub(super) const DEPARTED_KEPT: Duration = Duration::from_secs(15 * 60);
/// A state must hold this long to be coloured, and be gone this long to lose its colour again.
const TONE_APPEARS: Duration = Duration::from_secs(10);
const TONE_CLEARS: Duration = Duration::from_secs(30);
/// A queue that only grew for this long, or a message unacked for this long, is worth a look.
const QUEUE_GROWS: Duration = Duration::from_secs(30);
const UNACKED_LONG: Duration = Duration::from_secs(30);
/// Connections' rates are differences over at least this long.
const CONNECTION_WINDOW_MIN: Duration = Duration::from_millis(900);
/// Nobody asked for connections for this long: what was remembered of them goes.
const CONNECTIONS_KEPT: Duration = Duration::from_secs(30);
/// The gateway's colour slot; services get the lowest free one after it at first sight.
pub const GATEWAY_SLOT: u16 = 1;

#[derive(Debug, Default)]
pub struct Rates {
    pub queues: HashMap<Key, QueueRate>,
    pub exchanges: HashMap<Key, InOut>,
    /// In cores: 1.0 is one core busy.
    pub cpu_share: f64,
    pub memory_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InOut {
    pub in_rate: f64,
    pub out_rate: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueRate {
    pub in_rate: f64,
    pub out_rate: f64,
    pub ack_rate: f64,
    /// 95th percentile of the time in the queue, of messages delivered since the last look.
    pub wait_p95_ns: Option<u64>,
    pub tone: Tone,
}

#[derive(Debug, Default)]
pub struct Board {
    current: ArcSwap<Rates>,
    memory: Mutex<Memory>,
    connections: Mutex<Connections>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Memory {
    at: Option<Instant>,
    cpu: Duration,
    queues: HashMap<Key, QueueMemory>,
    exchanges: HashMap<Key, [u64; 2]>,
}

/// Connections as they were when somebody last asked.
#[derive(Debug, Default)]
struct Connections {
    asked: Option<Instant>,
    seen: HashMap<ConnectionId, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at: Instant,
    counts: [u64; 2],
    rate: InOut,
}

#[derive(Clone, Debug)]
struct QueueMemory {
    counts: [u64; 3],
    waits: Waits,
    ready: u64,
    grows_since: Instant,
    tone: HeldTone,
}

/// Services that are listed, with their slots, and those that have left.
#[derive(Debug, Default)]
struct Known {
    /// By space.
    slots: HashMap<Arc<str>, Slots>,
    /// How a service that has left last looked.
    departed: HashMap<Key, Departed>,
}

/// The colour slots of one space: those taken and those free are together all from the first to the highest ever needed at a time.
#[derive(Debug, Default)]
struct Slots {
    taken: HashMap<Arc<str>, u16>,
    free: BTreeSet<u16>,
}

#[derive(Clone, Debug)]
pub struct Departed {
    pub source: crate::model::service::Source,
    pub language: Option<Arc<str>>,
    /// Unix nanoseconds.
    pub left_ns: u64,
}

impl Board {
    pub fn rates(&self) -> Arc<Rates> {
        self.current.load_full()
    }

    /// Takes the counters of now and makes rates of the difference to the last time.
    pub fn look(&self, sources: &Sources, now: Instant) {
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(passed) = memory.passed(now) else { return };
        let mut rates = Rates::default();
        let vhosts = sources.broker.vhosts();
        let queues = vhosts.iter().flat_map(|vhost| vhost.queues_in_use());
        (rates.queues, memory.queues) = look_at_queues(queues, &memory.queues, passed, now);
        let exchanges = vhosts.iter().flat_map(|vhost| vhost.exchanges().into_iter().chain([vhost.default_exchange()]));
        (rates.exchanges, memory.exchanges) = look_at_exchanges(exchanges, &memory.exchanges, passed);
        let usage = platform::own_usage();
        rates.cpu_share = usage.cpu.saturating_sub(memory.cpu).as_secs_f64() / passed.as_secs_f64();
        rates.memory_bytes = usage.memory_bytes;
        memory.cpu = usage.cpu;
        drop(memory);
        self.current.store(Arc::new(rates));
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).forget(now);
    }

    /// Bytes per second of these connections, in their order: since somebody last asked, or since they began.
    pub fn connection_rates(&self, connections: &[ConnectionView], clock: &Clock) -> Vec<InOut> {
        let mut memory = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        memory.look(connections, clock.now(), clock.unix_nanos())
    }

    /// The service's colour slot, the same for as long as it is listed.
    pub fn slot(&self, space: &Arc<str>, service: &Arc<str>) -> u16 {
        if &**service == "gateway" {
            return GATEWAY_SLOT;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.slots.entry(space.clone()).or_default().of(service)
    }

    /// Frees the slots of services that are no longer listed: whoever comes next gets theirs.
    pub fn keep_slots(&self, is_listed: impl Fn(&Arc<str>, &Arc<str>) -> bool) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.slots.retain(|space, slots| {
            slots.keep(|service| is_listed(space, service));
            !slots.taken.is_empty()
        });
    }

    /// Remembers services that are here now, and says which others were here lately.
    pub fn departed(&self, present: &[(Key, Departed)], now_ns: u64) -> Vec<(Key, Departed)> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.departed.retain(|_, departed| now_ns.saturating_sub(departed.left_ns) < DEPARTED_KEPT.as_nanos() as u64);
        for (key, now) in present {
            if known.departed.len() < DEPARTED_MAX || known.departed.contains_key(key) {
                known.departed.insert(key.clone(), now.clone());
            }
        }
        let here: HashSet<&Key> = present.iter().map(|(key, _)| key).collect();
        known
            .departed
            .iter()
            .filter(|(key, _)| !here.contains(key))
            .map(|(key, departed)| (key.clone(), departed.clone()))
            .collect()
    }
}

impl Slots {
    fn of(&mut self, service: &Arc<str>) -> u16 {
        if let Some(slot) = self.taken.get(service) {
            return *slot;
        }
        let unused = GATEWAY_SLOT.saturating_add(1).saturating_add(u16::try_from(self.taken.len()).unwrap_or(u16::MAX));
        let slot = self.free.pop_first().unwrap_or(unused);
        self.taken.insert(service.clone(), slot);
        slot
    }

    fn keep(&mut self, is_listed: impl Fn(&Arc<str>) -> bool) {
        let Slots { taken, free } = self;
        taken.retain(|service, slot| is_listed(service) || !free.insert(*slot));
    }
}

impl Memory {
    /// Time since the last look; `None` at the first one and when no time has passed.
    fn passed(&mut self, now: Instant) -> Option<Duration> {
        let passed = self.at.map_or(Duration::from_secs(1), |at| now.since(at));
        if passed.is_zero() {
            return None;
        }
        self.at = Some(now);
        Some(passed)
    }
}

impl Connections {
    fn look(&mut self, connections: &[ConnectionView], now: Instant, now_ns: u64) -> Vec<InOut> {
        let seen = |view: &ConnectionView| {
            let counts = [view.in_bytes, view.out_bytes];
            let rated = |old: [u64; 2], passed: Duration| Seen { at: now, counts, rate: InOut::between(old, counts, passed) };
            match self.seen.get(&view.id) {
                Some(before) if now.since(before.at) < CONNECTION_WINDOW_MIN => *before,
                Some(before) => rated(before.counts, now.since(before.at)),
                None => rated([0; 2], Duration::from_nanos(now_ns.saturating_sub(view.since_ns)).max(Duration::from_secs(1))),
            }
        };
        self.seen = connections.iter().map(|view| (view.id, seen(view))).collect();
        self.asked = Some(now);
        connections.iter().map(|view| self.seen[&view.id].rate).collect()
    }

    fn forget(&mut self, now: Instant) {
        if self.asked.is_some_and(|asked| now.since(asked) >= CONNECTIONS_KEPT) {
            *self = Connections::default();
        }
    }
}

impl InOut {
    fn between(old: [u64; 2], new: [u64; 2], passed: Duration) -> Self {
        InOut { in_rate: rate(old[0], new[0], passed), out_rate: rate(old[1], new[1], passed) }
    }
}

type Looked<R, M> = (HashMap<Key, R>, HashMap<Key, M>);

fn look_at_exchanges(
    now: impl Iterator<Item = ExchangeView>,
    before: &HashMap<Key, [u64; 2]>,
    passed: Duration,
) -> Looked<InOut, [u64; 2]> {
    let (mut rates, mut memory) = (HashMap::new(), HashMap::new());
    for exchange in now.filter(|exchange| exchange.published > 0) {
        let counts = [exchange.published, exchange.routed];
        let key = (exchange.space, exchange.name);
        let old = before.get(&key).copied().unwrap_or_default();
        if old != counts {
            rates.insert(key.clone(), InOut::between(old, counts, passed));
        }
        memory.insert(key, counts);
    }
    (rates, memory)
}

fn look_at_queues(
    now_there: impl Iterator<Item = QueueView>,
    before: &HashMap<Key, QueueMemory>,
    passed: Duration,
    now: Instant,
) -> Looked<QueueRate, QueueMemory> {
    let (mut rates, mut memory) = (HashMap::new(), HashMap::new());
    let blank = QueueMemory::blank(now);
    for queue in now_there.filter(has_been_used) {
        let counts = [queue.counts.published, queue.counts.delivered, queue.counts.acked];
        let key = (queue.space, queue.name);
        let old = before.get(&key).unwrap_or(&blank);
        let (grows_since, tone) = old.judged(queue.ready, queue.oldest_unacked, now);
        let rated = QueueRate {
            in_rate: rate(old.counts[0], counts[0], passed),
            out_rate: rate(old.counts[1], counts[1], passed),
            ack_rate: rate(old.counts[2], counts[2], passed),
            wait_p95_ns: queue.waits.quantile_since(&old.waits, 0.95).map(super::json::nanos),
            tone: tone.shown,
        };
        if rated != QueueRate::default() {
            rates.insert(key.clone(), rated);
        }
        memory.insert(key, QueueMemory { counts, waits: queue.waits, ready: queue.ready, grows_since, tone });
    }
    (rates, memory)
}

fn has_been_used(queue: &QueueView) -> bool {
    queue.counts.published + queue.ready + queue.unacked > 0
}

impl QueueMemory {
    fn blank(now: Instant) -> Self {
        QueueMemory { counts: [0; 3], waits: Waits::default(), ready: 0, grows_since: now, tone: HeldTone::new(now) }
    }

    /// Since when the queue has grown at every look, and its tone. One that stands still does not grow, however deep it is.
    fn judged(&self, ready: u64, oldest_unacked: Option<Duration>, now: Instant) -> (Instant, HeldTone) {
        let grows_since = if ready > self.ready { self.grows_since } else { now };
        let worrying = now.since(grows_since) >= QUEUE_GROWS || oldest_unacked.is_some_and(|age| age >= UNACKED_LONG);
        (grows_since, self.tone.next(if worrying { Tone::Warn } else { Tone::Normal }, now))
    }
}

/// Per second. A counter that went back belongs to a thing that was made anew.
fn rate(old: u64, new: u64, passed: Duration) -> f64 {
    new.saturating_sub(old) as f64 / passed.as_secs_f64()
}

/// A colour that appears only after its reason held for a while, and leaves later than its reason.
#[derive(Clone, Copy, Debug)]
struct HeldTone {
    shown: Tone,
    /// When the wanted tone last agreed with the shown one.
    agreed: Instant,
}

impl HeldTone {
    fn new(now: Instant) -> Self {
        HeldTone { shown: Tone::Normal, agreed: now }
    }

    fn next(mut self, wanted: Tone, now: Instant) -> Self {
        let wait = if wanted > self.shown { TONE_APPEARS } else { TONE_CLEARS };
        if wanted == self.shown {
            self.agreed = now;
        } else if now.since(self.agreed) >= wait {
            self = HeldTone { shown: wanted, agreed: now };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_colour_appears_after_10_seconds_and_clears_after_30() {
        let mut tone = HeldTone::new(at(0));
        let mut shown = Vec::new();
        for second in 1..=60 {
            let wanted = if second < 20 { Tone::Warn } else { Tone::Normal };
            tone = tone.next(wanted, at(second));
            shown.push(tone.shown);
        }
        let first = shown.iter().position(|tone| *tone == Tone::Warn).expect("appears") + 1;
        let last = shown.iter().rposition(|tone| *tone == Tone::Warn).expect("appeared") + 1;
        assert_eq!((first, last), (10, 48));
    }

    #[test]
    fn a_queue_that_grew_for_thirty_seconds_is_a_warning_and_one_that_then_stands_still_is_not() {
        let mut memory = QueueMemory::blank(at(0));
        let mut shown = |second: u64, ready: u64| {
            let (grows_since, tone) = memory.judged(ready, None, at(second));
            memory = QueueMemory { ready, grows_since, tone, ..memory.clone() };
            tone.shown
        };
        let first = (1..=60).find(|second| shown(*second, *second) == Tone::Warn);
        assert_eq!(first, Some(39), "grown for thirty seconds, and that has held for ten");
        let cleared = (40..=3_000).find(|second| shown(*second, 39) == Tone::Normal);
        assert_eq!(cleared, Some(69), "its last growth was at 39");
        assert!((70..=3_000).all(|second| shown(second, 39) == Tone::Normal));
        let (_, tone) = memory.judged(39, Some(UNACKED_LONG), at(3_011));
        assert_eq!(tone.shown, Tone::Warn);
    }

    #[test]
    fn slots_follow_the_order_of_first_sight_in_each_space() {
        let board = Board::default();
        let slot = |space: &str, name: &str| board.slot(&space.into(), &name.into());
        assert_eq!([slot("/", "gateway"), slot("/", "orders"), slot("/", "stock"), slot("other", "stock")], [1, 2, 3, 2]);
        assert_eq!(slot("/", "orders"), 2);
    }

    #[test]
    fn ten_thousand_services_that_came_and_left_leave_no_slot_taken() {
        let board = Board::default();
        let slot = |name: &str| board.slot(&"/".into(), &name.into());
        assert_eq!(slot("orders"), 2);
        for number in 0..10_000 {
            assert_eq!(slot(&format!("job-{number}")), 3);
            board.keep_slots(|_, service| &**service == "orders");
        }
        assert_eq!([slot("a"), slot("b"), slot("orders"), slot("c")], [3, 4, 2, 5]);
        board.keep_slots(|_, service| matches!(&**service, "b" | "c"));
        assert_eq!([slot("d"), slot("e"), slot("f"), slot("c")], [2, 3, 6, 5], "each colour is one service's at a time");
        board.keep_slots(|_, _| false);
        assert!(board.known.lock().expect("no panic holds it").slots.is_empty());
    }

    #[test]
    fn a_service_that_left_is_remembered_until_it_is_back_or_a_quarter_of_an_hour_has_passed() {
        let board = Board::default();
        let key: Key = ("/".into(), "orders".into());
        let here = Departed { source: crate::model::service::Source::Amqp, language: None, left_ns: 7 };
        assert!(board.departed(&[(key.clone(), here.clone())], 7).is_empty());
        assert_eq!(board.departed(&[], 8).len(), 1);
        assert!(board.departed(&[(key, here)], 9).is_empty());
        let kept_ns = DEPARTED_KEPT.as_nanos() as u64;
        assert_eq!(board.departed(&[], 6 + kept_ns).len(), 1);
        assert!(board.departed(&[], 7 + kept_ns).is_empty());
    }

    fn connection(id: u64, in_bytes: u64, since_ns: u64) -> ConnectionView {
        ConnectionView {
            id: ConnectionId(id),
            name: "c".into(),
            space: "/".into(),
            user: "guest".into(),
            peer: "127.0.0.1:1".into(),
            protocol: "AMQP 0-9-1",
            negotiated: Default::default(),
            frame_max: 131_072,
            client: "".into(),
            client_properties: Default::default(),
            services: Vec::new(),
            channels: 1,
            consumers: 0,
            in_bytes,
            out_bytes: 0,
            since_ns,
            waiting_bytes: 0,
            blocked: false,
        }
    }

    #[test]
    fn a_connections_rate_is_that_since_somebody_last_asked() {
        let mut memory = Connections::default();
        let mut look = |seconds: u64, views: &[ConnectionView]| -> Vec<f64> {
            memory.look(views, at(seconds), seconds * 1_000_000_000).iter().map(|rate| rate.in_rate).collect()
        };
        assert_eq!(look(10, &[connection(1, 500, 0)]), [50.0], "since it began");
        assert_eq!(look(10, &[connection(1, 900, 0), connection(2, 0, 10_000_000_000)]), [50.0, 0.0], "too soon for another");
        assert_eq!(look(12, &[connection(2, 80, 10_000_000_000), connection(1, 900, 0)]), [40.0, 200.0]);
        assert_eq!(look(13, &[connection(1, 900, 0)]), [0.0]);
        memory.forget(at(13) + CONNECTIONS_KEPT);
        assert!(memory.seen.is_empty());
    }

    #[test]
    fn a_rate_is_a_difference_over_time() {
        assert_eq!(rate(10, 30, Duration::from_secs(2)), 10.0);
        assert_eq!(rate(30, 10, Duration::from_secs(2)), 0.0);
    }
}
