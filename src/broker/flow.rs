//! What channels have done, in RabbitMQ's words: the numbers behind `message_stats`.
//!
//! The consuming side is counted in the channel's lane, under the lock a delivery holds anyway, once a run. The publishing side
//! belongs to one task: it writes with plain stores, others only read. A channel that ends leaves its numbers to its space.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one channel, or of all of a space together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    pub publish: u64,
    pub confirm: u64,
    /// Found no queue and went back to its publisher.
    pub return_unroutable: u64,
    /// Found no queue and was dropped.
    pub drop_unroutable: u64,
    /// To consumers that acknowledge.
    pub deliver: u64,
    /// To consumers that do not.
    pub deliver_no_ack: u64,
    pub get: u64,
    pub get_no_ack: u64,
    pub get_empty: u64,
    pub ack: u64,
    pub redeliver: u64,
}

impl Flow {
    pub fn add(&mut self, other: &Flow) {
        let Flow { publish, confirm, return_unroutable, drop_unroutable, deliver, deliver_no_ack, .. } = other;
        self.publish += publish;
        self.confirm += confirm;
        self.return_unroutable += return_unroutable;
        self.drop_unroutable += drop_unroutable;
        self.deliver += deliver;
        self.deliver_no_ack += deliver_no_ack;
        self.get += other.get;
        self.get_no_ack += other.get_no_ack;
        self.get_empty += other.get_empty;
        self.ack += other.ack;
        self.redeliver += other.redeliver;
    }

    /// Every way out of a queue.
    pub fn deliver_get(&self) -> u64 {
        self.deliver + self.deliver_no_ack + self.get + self.get_no_ack
    }
}

/// The publishing side of one channel. One task writes.
#[derive(Debug, Default)]
pub(super) struct Publishes {
    pub publish: Tally,
    pub confirm: Tally,
    pub return_unroutable: Tally,
    pub drop_unroutable: Tally,
}

impl Publishes {
    pub fn add_to(&self, flow: &mut Flow) {
        flow.publish += self.publish.get();
        flow.confirm += self.confirm.get();
        flow.return_unroutable += self.return_unroutable.get();
        flow.drop_unroutable += self.drop_unroutable.get();
    }
}

/// A count with a single writer: no locked instruction.
#[derive(Debug, Default)]
pub(super) struct Tally(AtomicU64);

impl Tally {
    // HOT
    #[inline]
    pub fn add(&self, count: u64) {
        self.0.store(self.get() + count, Ordering::Relaxed);
    }

    // HOT
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
