//! What became of single messages, for people who look for one: published → routed → queued → delivered → acked, or how else it ended.
//!
//! While somebody watches a space ([`Vhost::watch_journeys`]), messages are kept here as they pass, as many a second as the budget
//! allows; the rest is counted. What was kept stays to be searched until newer messages push it out.
//!
//! A message is known by the address of its record, which all its copies share as long as one of them is in a queue or unacked; so
//! following it costs the message path nothing. The address is forgotten once something is told of it that happened after the end of
//! the last copy. Queues number what they do with a message under their locks, and tell it later: a consumer's ack may be told before
//! its delivery is, and stands behind it all the same.

use super::message::Run;
use super::queue::Queue;
use super::record::Record;
use super::tap::{Publisher, Taps, is_about_others};
use super::vhost::Vhost;
use crate::wire::amqp::Properties;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Messages kept of one space; older ones go.
pub const JOURNEYS_MAX: usize = 20_000;
/// Bytes kept of one space.
pub const JOURNEY_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Messages of one space that are followed in one second; the others are counted.
pub const JOURNEYS_PER_SECOND: u32 = 1_000;
/// Of each body so much is kept, in bytes.
pub const JOURNEY_BODY_BYTES: usize = 2 * 1024;
/// Steps kept of one message, and queues it was routed to; the others are counted.
pub const STEPS_MAX: usize = 64;
/// What a message takes at most beside its bytes. Names are shared with what bears them.
const KEPT_BYTES: usize = size_of::<Journey>() + STEPS_MAX * (size_of::<Step>() + size_of::<Arc<str>>()) + 4 * size_of::<u64>();

/// One message and what happened to it.
#[derive(Clone, Debug)]
pub struct Journey {
    /// Unique in its space for as long as the process runs, and growing.
    pub id: u64,
    pub exchange: Arc<str>,
    pub routing_key: Arc<str>,
    /// Encoded properties, flags first.
    pub properties: Bytes,
    pub body_len: u64,
    /// Cut at [`JOURNEY_BODY_BYTES`].
    pub body: Bytes,
    /// Queues it was routed to, the first [`STEPS_MAX`]; its copies in the others are not followed.
    pub queues: Vec<Arc<str>>,
    pub steps: Vec<Step>,
    pub steps_left_out: u32,
    /// Followed copies that are still in a queue or unacked.
    pub open: u32,
    /// The number of the last end of a copy. What has a higher one, once none is open, happened to another message at its address.
    ended: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Steps stand in the order of these, which is that in which they happened.
    number: u64,
    /// Unix nanoseconds, to the batch.
    pub at_ns: u64,
    pub what: StepKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepKind {
    Published {
        connection: Arc<str>,
        channel: u16,
        user: Arc<str>,
    },
    /// To so many queues, by its exchange's bindings and what follows from them.
    Routed {
        queues: usize,
    },
    Queued {
        queue: Arc<str>,
    },
    Delivered {
        queue: Arc<str>,
        connection: Arc<str>,
        channel: u16,
        redelivered: bool,
        /// Nobody will ack it.
        no_ack: bool,
    },
    Acked {
        queue: Arc<str>,
    },
    Rejected {
        queue: Arc<str>,
    },
    Requeued {
        queue: Arc<str>,
    },
    Expired {
        queue: Arc<str>,
    },
    /// The queue gave it up, or did not take it, for another reason: `maxlen`, `delivery_limit`, or in words. Behind the end of a
    /// copy that should have been a dead letter: what kept it from being one.
    Dropped {
        queue: Arc<str>,
        reason: &'static str,
    },
    /// It should have gone on through the queue's dead-letter exchange, and waits in the queue until somebody takes it there.
    Kept {
        queue: Arc<str>,
        reason: &'static str,
    },
    /// It went on through the queue's dead-letter exchange, as a new message that at least one queue took.
    DeadLettered {
        queue: Arc<str>,
        exchange: Arc<str>,
    },
    /// No queue took it, and its publisher was told.
    Returned,
    /// No queue took it, and nobody asked to be told.
    Unroutable,
}

impl StepKind {
    /// `published`, `delivered`, …
    pub fn name(&self) -> &'static str {
        match self {
            StepKind::Published { .. } => "published",
            StepKind::Routed { .. } => "routed",
            StepKind::Queued { .. } => "queued",
            StepKind::Delivered { .. } => "delivered",
            StepKind::Acked { .. } => "acked",
            StepKind::Rejected { .. } => "rejected",
            StepKind::Requeued { .. } => "requeued",
            StepKind::Expired { .. } => "expired",
            StepKind::Dropped { .. } => "dropped",
            StepKind::Kept { .. } => "kept",
            StepKind::DeadLettered { .. } => "dead-lettered",
            StepKind::Returned => "returned",
            StepKind::Unroutable => "unroutable",
        }
    }

    pub fn queue(&self) -> Option<&Arc<str>> {
        match self {
            StepKind::Queued { queue }
            | StepKind::Delivered { queue, .. }
            | StepKind::Acked { queue }
            | StepKind::Rejected { queue }
            | StepKind::Requeued { queue }
            | StepKind::Expired { queue }
            | StepKind::Dropped { queue, .. }
            | StepKind::Kept { queue, .. }
            | StepKind::DeadLettered { queue, .. } => Some(queue),
            StepKind::Published { .. } | StepKind::Routed { .. } | StepKind::Returned | StepKind::Unroutable => None,
        }
    }

    /// The copy is neither in its queue nor unacked any more.
    fn ends_copy(&self) -> bool {
        match self {
            StepKind::Delivered { no_ack, .. } => *no_ack,
            StepKind::Acked { .. } | StepKind::Rejected { .. } | StepKind::Expired { .. } | StepKind::Dropped { .. } => true,
            _ => false,
        }
    }
}

/// What to look for; everything given must hold.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search<'a> {
    /// In the body, the properties and headers, or the routing key; whole as the `message_id` too.
    pub text: Option<&'a str>,
    pub exchange: Option<&'a str>,
    pub queue: Option<&'a str>,
    /// Only messages older than this id: the next page.
    pub before: Option<u64>,
    pub limit: usize,
}

/// Newest first.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    pub journeys: Vec<Journey>,
    /// Messages kept, over all.
    pub kept: u64,
    /// Messages that passed unfollowed since the process began, beyond the budget while somebody watched.
    pub skipped: u64,
}

/// As long as it lives, messages of its space are followed.
pub struct Watch(Arc<Taps>);

impl Watch {
    /// Whether it is this space that is watched, and not one of the same name that was deleted.
    pub fn is_of(&self, vhost: &Vhost) -> bool {
        Arc::ptr_eq(&self.0, &vhost.taps)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.unwatch();
    }
}

impl Vhost {
    /// Follows messages until the last watch is dropped.
    pub fn watch_journeys(&self) -> Watch {
        self.taps.watch();
        Watch(self.taps.clone())
    }

    pub fn search_journeys(&self, search: Search<'_>) -> Findings {
        self.taps.journeys.lock().search(search)
    }

    pub fn journey(&self, id: u64) -> Option<Journey> {
        let ring = self.taps.journeys.lock();
        ring.get(id).cloned()
    }
}

/// The messages followed in one space.
#[derive(Debug, Default)]
pub(super) struct Journeys(Mutex<Ring>);

#[derive(Debug, Default)]
pub(super) struct Ring {
    journeys: VecDeque<Journey>,
    /// By the address of its record.
    by_record: HashMap<usize, u64>,
    records: VecDeque<usize>,
    next_id: u64,
    bytes: usize,
    skipped: u64,
    second: u64,
    used: u32,
}

impl Journeys {
    pub fn lock(&self) -> MutexGuard<'_, Ring> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Addresses known from before may have been used again unseen.
    pub fn forget_records(&mut self) {
        self.by_record.clear();
    }

    /// Keeps the messages of a run that is about to be offered to `into`.
    pub fn keep_run(&mut self, run: &Run<'_>, into: &[Arc<Queue>], from: Publisher<'_>, at: (u64, u64)) {
        let bodies: HashMap<usize, &Bytes> = run.extras().filter_map(|(at, extra)| Some((at, extra.body.as_ref()?))).collect();
        let queues: Vec<Arc<str>> = into.iter().take(STEPS_MAX).map(|queue| queue.name.clone()).collect();
        for (index, meta) in run.metas.iter().enumerate() {
            let bytes = &run.segment[meta.at as usize..(meta.at + meta.len) as usize];
            let record = Record::new(bytes, meta.key_len);
            if is_about_others(record.exchange()) || !self.has_budget(at.1) {
                continue;
            }
            let body = bodies.get(&index).map_or(record.inline_body(), |body| body);
            let kept = self.keep(record.exchange(), record.routing_key(), record.properties(), body);
            kept.add(at, from.step());
            kept.add(at, StepKind::Routed { queues: into.len() });
            kept.steps_left_out += (into.len() - queues.len()) as u32;
            kept.queues.clone_from(&queues);
            kept.open = queues.len() as u32;
            let id = kept.id;
            let address = bytes.as_ptr() as usize;
            self.by_record.insert(address, id);
            if let Some(last) = self.records.back_mut() {
                *last = address;
            }
        }
    }

    /// Keeps a message that no queue took.
    pub fn keep_lost(&mut self, lost: &Lost<'_>, from: Publisher<'_>, at: (u64, u64)) {
        if self.has_budget(at.1) {
            let kept = self.keep(lost.exchange, lost.routing_key, lost.properties.as_bytes(), lost.body);
            kept.add(at, from.step());
            kept.add(at, StepKind::Routed { queues: 0 });
            kept.add(at, if lost.returned { StepKind::Returned } else { StepKind::Unroutable });
        }
    }

    fn has_budget(&mut self, at_ns: u64) -> bool {
        let second = at_ns / 1_000_000_000;
        if self.second != second {
            (self.second, self.used) = (second, 0);
        }
        let has = self.used < JOURNEYS_PER_SECOND;
        self.used += u32::from(has);
        self.skipped += u64::from(!has);
        has
    }

    fn keep(&mut self, exchange: &str, routing_key: &str, properties: &[u8], body: &[u8]) -> &mut Journey {
        let journey = Journey {
            id: self.next_id,
            exchange: exchange.into(),
            routing_key: routing_key.into(),
            properties: Bytes::copy_from_slice(properties),
            body_len: body.len() as u64,
            body: Bytes::copy_from_slice(&body[..body.len().min(JOURNEY_BODY_BYTES)]),
            queues: Vec::new(),
            steps: Vec::new(),
            steps_left_out: 0,
            open: 0,
            ended: 0,
        };
        self.next_id += 1;
        self.bytes += journey.weight();
        self.journeys.push_back(journey);
        self.records.push_back(0);
        while self.journeys.len() > JOURNEYS_MAX || (self.bytes > JOURNEY_BYTES_MAX && self.journeys.len() > 1) {
            self.evict();
        }
        self.journeys.back_mut().expect("one was just kept")
    }

    fn evict(&mut self) {
        let Some(oldest) = self.journeys.pop_front() else { return };
        self.bytes -= oldest.weight();
        let record = self.records.pop_front().unwrap_or(0);
        if self.by_record.get(&record) == Some(&oldest.id) {
            self.by_record.remove(&record);
        }
    }

    /// Notes what happened to the copy in a queue of the message whose record lies at `record`, and what became of its letter.
    pub fn note(&mut self, record: usize, at_ns: u64, (number, step): (u64, &StepKind), then: Option<&(u64, StepKind)>) {
        let Some(id) = self.by_record.get(&record).copied() else { return };
        let Some(journey) = self.get_mut(id) else { return };
        // An address that was used again, unseen, would tell of another queue, or of what came after the last end.
        if journey.open == 0 && number > journey.ended {
            self.by_record.remove(&record);
            return;
        }
        if !step.queue().is_some_and(|queue| journey.queues.contains(queue)) {
            return;
        }
        journey.add((number, at_ns), step.clone());
        if let Some((number, step)) = then {
            journey.add((*number, at_ns), step.clone());
        }
        if step.ends_copy() {
            journey.open = journey.open.saturating_sub(1);
            journey.ended = journey.ended.max(number);
        }
    }

    fn index(&self, id: u64) -> Option<usize> {
        let first = self.journeys.front()?.id;
        usize::try_from(id.checked_sub(first)?).ok()
    }

    pub fn get(&self, id: u64) -> Option<&Journey> {
        self.journeys.get(self.index(id)?)
    }

    fn get_mut(&mut self, id: u64) -> Option<&mut Journey> {
        let index = self.index(id)?;
        self.journeys.get_mut(index)
    }

    pub fn search(&self, search: Search<'_>) -> Findings {
        let older = self.journeys.iter().rev().filter(|journey| search.before.is_none_or(|before| journey.id < before));
        let journeys = older.filter(|journey| search.takes(journey)).take(search.limit).cloned().collect();
        Findings { journeys, kept: self.journeys.len() as u64, skipped: self.skipped }
    }
}

/// A message that no queue took.
pub(super) struct Lost<'a> {
    pub exchange: &'a str,
    pub routing_key: &'a str,
    pub properties: Properties<'a>,
    pub body: &'a [u8],
    pub returned: bool,
}

impl Publisher<'_> {
    fn step(&self) -> StepKind {
        StepKind::Published { connection: self.connection.clone(), channel: self.channel, user: self.user.clone() }
    }
}

impl Journey {
    /// Adds what happened, by its number and time. What is told late stands where it belongs.
    fn add(&mut self, (number, at_ns): (u64, u64), what: StepKind) {
        if self.steps.len() == STEPS_MAX {
            self.steps_left_out += 1;
            return;
        }
        let later = self.steps.iter().rev().take_while(|step| step.number > number).count();
        self.steps.insert(self.steps.len() - later, Step { number, at_ns, what });
    }

    /// What it takes at most to keep it, its steps included; it does not change as they come.
    fn weight(&self) -> usize {
        KEPT_BYTES + self.exchange.len() + self.routing_key.len() + self.properties.len() + self.body.len()
    }
}

impl Search<'_> {
    fn takes(&self, journey: &Journey) -> bool {
        let is = |wanted: Option<&str>, name: &str| wanted.is_none_or(|wanted| wanted == name);
        let in_queue = |wanted: &str| {
            journey.queues.iter().any(|queue| **queue == *wanted)
                || journey.steps.iter().any(|step| step.what.queue().is_some_and(|queue| **queue == *wanted))
        };
        let has = |text: &str| {
            let bytes = text.as_bytes();
            let within = |hay: &[u8]| memchr::memmem::find(hay, bytes).is_some();
            within(&journey.body) || within(&journey.properties) || within(journey.routing_key.as_bytes())
        };
        is(self.exchange, &journey.exchange) && self.queue.is_none_or(in_queue) && self.text.is_none_or(has)
    }
}
