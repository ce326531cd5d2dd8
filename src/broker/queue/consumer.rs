//! Who consumes a queue: joining, leaving, and the room each has.

use super::{Queue, State};
use crate::broker::config::ConnectionId;
use crate::broker::effects::Effects;
use crate::broker::link::Link;
use crate::broker::outbox::LaneConsumer;
use crate::broker::record::deliver_head;
use crate::broker::refused::Refused;
use crate::model::table::Table;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Debug)]
pub(in crate::broker) struct Consumer {
    /// Unique in the broker; 0 is `basic.get`.
    pub id: u64,
    pub link: Arc<Link>,
    pub channel: u16,
    pub tag: Arc<str>,
    /// Its place in the channel's lane.
    pub slot: u32,
    /// Every delivery's first bytes.
    pub head: Box<[u8]>,
    pub no_ack: bool,
    pub exclusive: bool,
    pub arguments: Table,
    /// 0 is unlimited.
    pub prefetch: u32,
    /// Higher ones are served first (`x-priority`).
    pub priority: i64,
    pub unacked: u32,
    /// Why nothing is given to it; 0 if it may get something.
    pub(super) held: u8,
}

/// Its outbox was full or its channel at the limit; whoever makes room resumes it.
pub(super) const STALLED: u8 = 1;
/// Another one is the single active consumer.
const WAITING: u8 = 2;

impl Consumer {
    // HOT
    #[inline]
    pub fn has_room(&self) -> bool {
        self.held == 0 && (self.prefetch == 0 || self.unacked < self.prefetch)
    }

    /// There is room for it again.
    pub(super) fn go_on(&mut self) {
        self.held &= !STALLED;
    }

    pub fn is_waiting(&self) -> bool {
        self.held & WAITING != 0
    }
}

#[derive(Clone, Debug)]
pub(in crate::broker) struct NewConsumer {
    pub id: u64,
    pub link: Arc<Link>,
    pub channel: u16,
    pub tag: Arc<str>,
    pub no_ack: bool,
    pub exclusive: bool,
    pub arguments: Table,
    pub prefetch: u32,
    pub priority: i64,
}

impl Queue {
    /// Adds a consumer. `announce` writes `basic.consume-ok`, which must stand before the first delivery.
    pub fn join(
        self: &Arc<Self>,
        new: NewConsumer,
        announce: impl FnOnce(&mut Vec<u8>),
        effects: &mut Effects,
    ) -> Result<(), Refused> {
        let mut state = self.state();
        if state.deleted {
            return Err(Refused::NotFound(format!("no queue '{}' in vhost '{}'", self.name, new.link.space)));
        }
        let single = state.backlog.rules.as_ref().is_some_and(|rules| rules.settings.single_active_consumer);
        let alone = |consumer: &Consumer| consumer.exclusive;
        let taken = state.consumers.iter().any(alone) || (new.exclusive && (single || !state.consumers.is_empty()));
        if taken {
            return Err(Refused::AccessRefused(format!("queue '{}' in vhost '{}' in exclusive use", self.name, new.link.space)));
        }
        let slot = {
            let mut outbox = new.link.outbox();
            let outbox = &mut *outbox;
            let Some(lane) = outbox.channels.get_mut(new.channel) else {
                return Err(Refused::NotAllowed(format!("channel {} is not open", new.channel)));
            };
            announce(outbox.frames.room());
            let slot = lane.add_slot(self.clone(), new.id);
            lane.consumers.insert(new.tag.clone(), LaneConsumer { queue: self.clone(), id: new.id, slot });
            slot
        };
        let head = deliver_head(new.channel, &new.tag);
        let NewConsumer { id, link, channel, tag, no_ack, exclusive, arguments, prefetch, priority } = new;
        let held = if single && state.consumers.iter().any(|other| !other.is_waiting()) { WAITING } else { 0 };
        let consumer =
            Consumer { id, link, channel, tag, slot, head, no_ack, exclusive, arguments, prefetch, priority, unacked: 0, held };
        let at = state.consumers.partition_point(|other| other.priority >= priority);
        state.consumers.insert(at, consumer);
        state.had_consumer = true;
        effects.consumers += 1;
        self.consumer_count.store(state.consumers.len() as u32, Ordering::Relaxed);
        state.touched = effects.now;
        self.turn(&mut state, effects);
        Ok(())
    }

    /// Removes a consumer; nothing is delivered to it any more. True if the queue should go with it (auto-delete). The next single
    /// active consumer is served when the queue [goes on](Queue::go_on): what the old one had not settled may come back before.
    pub fn leave(self: &Arc<Self>, consumer: u64, effects: &mut Effects) -> bool {
        let mut state = self.state();
        let Some(at) = state.consumers.iter().position(|found| found.id == consumer) else { return false };
        let gone = state.consumers.remove(at);
        effects.consumers -= 1;
        if state.turn > at {
            state.turn -= 1;
        }
        if !gone.is_waiting()
            && let Some(next) = state.consumers.iter_mut().find(|other| other.is_waiting())
        {
            next.held &= !WAITING;
        }
        self.left(&mut state, effects)
    }

    fn left(self: &Arc<Self>, state: &mut State, effects: &mut Effects) -> bool {
        self.consumer_count.store(state.consumers.len() as u32, Ordering::Relaxed);
        if state.consumers.is_empty() {
            self.last_consumer_ms.store(effects.now.as_nanos() / 1_000_000 + 1, Ordering::Relaxed);
            self.used(state, effects);
            self.look_ahead(state, effects);
        }
        state.consumers.is_empty() && state.had_consumer && self.spec.auto_delete
    }

    /// Connections that consume this queue.
    pub fn consuming_connections(&self) -> Vec<ConnectionId> {
        let mut found: Vec<ConnectionId> = self.state().consumers.iter().map(|consumer| consumer.link.id).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
impl Queue {
    /// Lets routing believe that somebody consumes.
    pub fn pretend_consumers(&self, count: u32) {
        self.consumer_count.store(count, Ordering::Relaxed);
    }
}
