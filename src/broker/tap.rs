//! Who looks at the messages of a space: the firehose and whoever follows single messages. Off, it costs one look at a number a batch.

use super::effects::Effects;
use super::firehose::Handed;
use super::journey::{Journeys, Lost, StepKind};
use super::link::Link;
use super::message::Run;
use super::queue::Queue;
use super::record::Record;
use super::routing::Route;
use super::vhost::Vhost;
use crate::model::topology::{EVENTS_EXCHANGE, TRACE_EXCHANGE};
use bytes::Bytes;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

#[derive(Debug, Default)]
pub(super) struct Taps {
    /// The lowest bit is the firehose's, the rest counts who follows messages.
    on: AtomicU32,
    pub journeys: Journeys,
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

    fn is_watched(&self) -> bool {
        self.on.load(Ordering::Relaxed) >= WATCH
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

/// What a queue did with a message, noted under its lock and told after it.
pub(super) struct Seen {
    pub taps: Arc<Taps>,
    /// Address of the message's record.
    pub record: usize,
    pub step: StepKind,
    /// What follows from it at once.
    pub then: Option<StepKind>,
    pub handed: Option<Box<HandedOver>>,
}

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
            self.taps.journeys.lock().note(self.record, at_ns, [Some(self.step), self.then].into_iter().flatten());
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
    /// A run that was just put into its queues.
    #[cold]
    pub(super) fn tap_run(&self, run: &Run<'_>, route: &Route, publisher: Publisher<'_>, effects: &mut Effects) {
        if self.taps.is_watched() {
            let at_ns = self.shared.epoch_ns + run.now.as_nanos();
            self.taps.journeys.lock().keep_run(run, route, publisher, at_ns);
        }
        if self.taps.has_firehose() {
            self.trace_run(run, route, publisher, effects);
        }
    }

    /// A message that the broker itself just put into queues; only who follows messages is told.
    #[cold]
    pub(super) fn tap_own(&self, run: &Run<'_>, route: &Route) {
        if self.taps.is_watched() {
            let (connection, user): (Arc<str>, Arc<str>) = ("reactor".into(), INTERNAL_USER.into());
            let publisher = Publisher { connection: &connection, channel: 0, user: &user };
            let at_ns = self.shared.epoch_ns + run.now.as_nanos();
            self.taps.journeys.lock().keep_run(run, route, publisher, at_ns);
        }
    }

    /// A call of the gateway, about to be put into its queue.
    #[cold]
    pub(super) fn tap_call(&self, run: &Run<'_>, queue: &Arc<Queue>, effects: &mut Effects) {
        let gateway: Arc<str> = "reactor.gateway".into();
        let publisher = Publisher { connection: &gateway, channel: 0, user: &gateway };
        let (queues, stats) = (std::iter::once(queue.clone()).collect(), Arc::default());
        let route = Route { queues, stats, key: None, delays: Vec::new(), lasting: false };
        self.tap_run(run, &route, publisher, effects);
    }

    /// A message that no queue took.
    #[cold]
    pub(super) fn tap_lost(&self, lost: &Lost<'_>, publisher: Publisher<'_>, effects: &mut Effects) {
        if self.taps.is_watched() {
            let at_ns = self.shared.epoch_ns + effects.now.as_nanos();
            self.taps.journeys.lock().keep_lost(lost, publisher, at_ns);
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
