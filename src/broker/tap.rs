//! Who looks at the messages of a space: the firehose and whoever follows single messages. Off, it costs one look at a number a batch.

use super::effects::Effects;
use super::firehose::Handed;
use super::journey::{Journeys, Lost, StepKind};
use super::link::Link;
use super::message::Run;
use super::queue::Queue;
use super::record::Record;
use super::vhost::Vhost;
use crate::model::topology::{EVENTS_EXCHANGE, TRACE_EXCHANGE};
use bytes::Bytes;
use smallvec::SmallVec;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

#[derive(Debug, Default)]
pub(super) struct Taps {
    /// The lowest bit is the firehose's, the rest counts who follows messages.
    on: AtomicU32,
    pub journeys: Journeys,
    /// Numbers what happens to messages, in the order in which it does.
    happened: AtomicU64,
    /// The space they are of.
    home: OnceLock<Weak<Vhost>>,
}

/// Who acts when nobody asked.
pub(super) const INTERNAL_USER: &str = "rmq-internal";
const FIREHOSE: u32 = 1;
const WATCH: u32 = 2;

impl Taps {
    pub fn live_in(&self, vhost: &Arc<Vhost>) {
        let _ = self.home.set(Arc::downgrade(vhost));
    }

    // HOT
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed) != 0
    }

    pub fn has_firehose(&self) -> bool {
        self.on.load(Ordering::Relaxed) & FIREHOSE != 0
    }

    pub fn is_watched(&self) -> bool {
        self.on.load(Ordering::Relaxed) >= WATCH
    }

    /// The number of what happens now. To be drawn under the lock of the queue in which it does: it may be told later than what
    /// follows from it elsewhere.
    pub fn number(&self) -> u64 {
        self.happened.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub fn set_firehose(&self, on: bool) {
        match on {
            true => self.on.fetch_or(FIREHOSE, Ordering::Relaxed),
            false => self.on.fetch_and(!FIREHOSE, Ordering::Relaxed),
        };
    }

    pub fn watch(&self) {
        if self.on.fetch_add(WATCH, Ordering::Relaxed) < WATCH {
            self.journeys.lock().forget_records();
        }
    }

    pub fn unwatch(&self) {
        self.on.fetch_sub(WATCH, Ordering::Relaxed);
    }
}

/// A queue's share in its space's taps.
#[derive(Debug)]
pub(super) struct QueueTap {
    pub queue: Arc<str>,
    pub taps: Arc<Taps>,
}

/// What a queue did with messages, noted under its lock and told after it.
pub(super) struct Seen {
    pub taps: Arc<Taps>,
    /// Addresses of the messages' records.
    pub records: SmallVec<[usize; 1]>,
    /// See [`Taps::number`].
    pub number: u64,
    pub step: StepKind,
    /// What became of it once it was a dead letter.
    pub then: Option<(u64, StepKind)>,
    pub handed: Option<Box<HandedOver>>,
}

/// A message that ended in its queue, as a dead letter: what becomes of that is told with its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended(pub usize);

/// A delivery, for the firehose.
pub(super) struct HandedOver {
    pub link: Arc<Link>,
    pub channel: u16,
    pub record: Bytes,
    pub key_len: u16,
    pub large: Option<Bytes>,
    pub redelivered: bool,
}

impl Seen {
    /// Tells whoever looks. To be called without any lock.
    pub fn tell(self, effects: &mut Effects) {
        let Some(vhost) = self.taps.home.get().and_then(Weak::upgrade) else { return };
        if let (Some(handed), Some(queue), true) = (&self.handed, self.step.queue(), self.taps.has_firehose()) {
            let record = Record::new(&handed.record, handed.key_len);
            let inline = || handed.record.slice_ref(record.inline_body());
            let body = handed.large.clone().unwrap_or_else(inline);
            let to = Publisher::of(&handed.link, handed.channel);
            vhost.trace_handed(&Handed { queue, record, body, redelivered: handed.redelivered, to }, effects);
        }
        if self.taps.is_watched() {
            let at_ns = vhost.shared.epoch_ns + effects.now.as_nanos();
            let mut journeys = self.taps.journeys.lock();
            self.records.iter().for_each(|record| journeys.note(*record, at_ns, (self.number, &self.step), self.then.as_ref()));
        }
    }
}

/// What a publish came by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Publisher<'a> {
    pub connection: &'a Arc<str>,
    pub channel: u16,
    pub user: &'a Arc<str>,
}

impl<'a> Publisher<'a> {
    pub fn of(link: &'a Link, channel: u16) -> Self {
        Publisher { connection: &link.info.name, channel, user: &link.user }
    }
}

impl Vhost {
    /// A run that is about to be offered to `queues`, which tell what they do with it.
    #[cold]
    pub(super) fn tap_run(&self, run: &Run<'_>, queues: &[Arc<Queue>], publisher: Publisher<'_>, effects: &mut Effects) {
        self.keep_run(run, queues, publisher);
        if self.taps.has_firehose() {
            self.trace_run(run, queues, publisher, effects);
        }
    }

    /// A message that the broker itself is about to offer to `queues`; only who follows messages is told.
    #[cold]
    pub(super) fn tap_own(&self, run: &Run<'_>, queues: &[Arc<Queue>]) {
        let (connection, user): (Arc<str>, Arc<str>) = ("reactor".into(), INTERNAL_USER.into());
        self.keep_run(run, queues, Publisher { connection: &connection, channel: 0, user: &user });
    }

    fn keep_run(&self, run: &Run<'_>, queues: &[Arc<Queue>], publisher: Publisher<'_>) {
        if self.taps.is_watched() {
            let at = (self.taps.number(), self.shared.epoch_ns + run.now.as_nanos());
            self.taps.journeys.lock().keep_run(run, queues, publisher, at);
        }
    }

    /// A call of the gateway, about to be put into its queue.
    #[cold]
    pub(super) fn tap_call(&self, run: &Run<'_>, queue: &Arc<Queue>, effects: &mut Effects) {
        let gateway: Arc<str> = "reactor.gateway".into();
        let publisher = Publisher { connection: &gateway, channel: 0, user: &gateway };
        self.tap_run(run, std::slice::from_ref(queue), publisher, effects);
    }

    /// A message that no queue took.
    #[cold]
    pub(super) fn tap_lost(&self, lost: &Lost<'_>, publisher: Publisher<'_>, effects: &mut Effects) {
        if self.taps.is_watched() {
            let at = (self.taps.number(), self.shared.epoch_ns + effects.now.as_nanos());
            self.taps.journeys.lock().keep_lost(lost, publisher, at);
        }
        if self.taps.has_firehose() {
            self.trace_lost(lost, publisher, effects);
        }
    }
}

/// Messages about messages are not looked at.
pub(super) fn is_about_others(exchange: &str) -> bool {
    exchange == TRACE_EXCHANGE || exchange == EVENTS_EXCHANGE
}
