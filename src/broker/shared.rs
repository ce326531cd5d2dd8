//! What every part of the broker shares: the clock, the limits, the memory level, counters and who is connected.

use super::config::{Attachments, BrokerConfig, ConnectionId};
use super::deadlines::{Deadlines, Timeouts};
use super::events::Events;
use super::govern::DefinitionWatch;
use super::link::Link;
use crate::kernel::stats::{Counter, Gauge};
use crate::kernel::{Clock, Instant};
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::space::CLUSTER_NAME_DEFAULT;
use crate::model::table::{Field, Table};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, Weak};
use tokio::sync::Notify;

pub(super) struct Shared {
    pub clock: Clock,
    /// Wall time at the clock's zero, in Unix nanoseconds.
    pub epoch_ns: u64,
    pub config: BrokerConfig,
    pub attachments: Arc<dyn Attachments>,
    /// Bytes of messages in all queues.
    memory: AtomicI64,
    /// Of these, what open transactions hold.
    transacted: AtomicI64,
    alarm: AtomicBool,
    alarm_over: Arc<Notify>,
    next_id: AtomicU64,
    links: Mutex<BTreeMap<ConnectionId, Arc<Link>>>,
    /// Those that hold buffers which grew.
    heavy: Mutex<Vec<Weak<Link>>>,
    pub counts: Counts,
    last_drop_told_s: AtomicU64,
    pub events: Events,
    pub cluster_name: RwLock<Arc<str>>,
    pub watch: OnceLock<Arc<dyn DefinitionWatch>>,
    pub deadlines: Deadlines,
    pub timeouts: Timeouts,
}

#[derive(Debug, Default)]
pub(super) struct Counts {
    pub published: Counter,
    pub confirmed: Counter,
    pub delivered: Counter,
    pub acked: Counter,
    pub unroutable: Counter,
    pub replies_dropped: Counter,
    pub connections_opened: Counter,
    pub connections_closed: Counter,
    pub channels: Gauge,
    pub consumers: Gauge,
    pub channels_opened: Counter,
    pub channels_closed: Counter,
    pub queues_declared: Counter,
    pub queues_created: Counter,
    pub queues_deleted: Counter,
}

impl Shared {
    pub fn new(clock: Clock, config: BrokerConfig, attachments: Arc<dyn Attachments>) -> Arc<Self> {
        Arc::new(Shared {
            timeouts: Timeouts::new(config.consumer_timeout),
            epoch_ns: clock.unix_nanos_at(Instant::ZERO),
            clock,
            config,
            attachments,
            memory: AtomicI64::new(0),
            transacted: AtomicI64::new(0),
            alarm: AtomicBool::new(false),
            alarm_over: Arc::new(Notify::new()),
            next_id: AtomicU64::new(1),
            links: Mutex::default(),
            heavy: Mutex::default(),
            counts: Counts::default(),
            last_drop_told_s: AtomicU64::new(0),
            events: Events::default(),
            cluster_name: RwLock::new(CLUSTER_NAME_DEFAULT.into()),
            watch: OnceLock::new(),
            deadlines: Deadlines::default(),
        })
    }

    /// For connections and consumers; never 0, never twice.
    pub fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn links(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn heavy(&self) -> MutexGuard<'_, Vec<Weak<Link>>> {
        self.heavy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Books bytes that entered or left queues and transactions, and raises or ends the alarm.
    // HOT
    #[inline]
    pub fn book(&self, delta: i64) {
        if delta == 0 {
            return;
        }
        let level = self.memory.fetch_add(delta, Ordering::Relaxed) + delta;
        let max = i64::try_from(self.config.queue_bytes_max).unwrap_or(i64::MAX);
        if delta > 0 && level > max {
            if !self.alarm.swap(true, Ordering::AcqRel) {
                self.tell_alarm(level);
            }
        } else if delta < 0 && self.alarm.load(Ordering::Relaxed) && level <= max / 5 * 4 {
            self.end_alarm();
        }
    }

    /// Books bytes that open transactions take or let go.
    #[cold]
    pub fn book_transacted(&self, delta: i64) {
        self.transacted.fetch_add(delta, Ordering::Relaxed);
        self.book(delta);
    }

    /// Whether transactions may hold `bytes` more. Held publishers cannot commit, so transactions alone must never keep up the alarm,
    /// which ends at four fifths: they have half.
    pub fn may_transact(&self, bytes: usize) -> bool {
        let held = u64::try_from(self.transacted.load(Ordering::Relaxed)).unwrap_or(0);
        held + bytes as u64 <= self.config.queue_bytes_max / 2
    }

    #[cold]
    fn end_alarm(&self) {
        self.alarm.store(false, Ordering::Release);
        self.alarm_over.notify_waiters();
        self.announce("alarm.cleared", || memory_alarm(&self.config.node));
    }

    #[cold]
    fn tell_alarm(&self, level: i64) {
        self.announce("alarm.set", || memory_alarm(&self.config.node));
        let seen = format!(
            "queues and open transactions hold {level} bytes of messages, more than limits.queue_bytes_max; publishers are held"
        );
        self.happen("/", What::Advice { seen: seen.into(), fix: "Consume or purge the long queues, or raise the limit".into() });
    }

    pub fn memory(&self) -> u64 {
        u64::try_from(self.memory.load(Ordering::Relaxed)).unwrap_or(0)
    }

    pub fn has_alarm(&self) -> bool {
        self.alarm.load(Ordering::Acquire)
    }

    /// Notified when the alarm ends.
    pub fn alarm_over(&self) -> Arc<Notify> {
        self.alarm_over.clone()
    }

    pub fn happen(&self, space: &str, what: What) {
        emit::happening(Happening { at_ns: self.clock.unix_nanos(), space: space.into(), what });
    }

    /// Counts a reply nobody waits for, and says so at most once a second.
    pub fn reply_dropped(&self, space: &str, reason: impl FnOnce() -> String) {
        self.counts.replies_dropped.add(1);
        let second = self.clock.now().as_nanos() / 1_000_000_000 + 1;
        if self.last_drop_told_s.swap(second, Ordering::Relaxed) != second {
            self.happen(space, What::ReplyDropped { reason: reason().into() });
        }
    }
}

/// As RabbitMQ names a memory alarm in its events.
fn memory_alarm(node: &str) -> Table {
    Table::new().with("source", Field::text("memory")).with("node", Field::text(node))
}
