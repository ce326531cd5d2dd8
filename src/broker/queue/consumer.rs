//! Who consumes a queue: joining, leaving, and the room each has.

use super::{Queue, State, backlog::Fresh};
use crate::broker::config::ConnectionId;
use crate::broker::effects::Effects;
use crate::broker::link::Link;
use crate::broker::outbox::LaneConsumer;
use crate::broker::record::deliver_head;
use crate::broker::refused::Refused;
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
    /// 0 is unlimited.
    pub prefetch: u32,
    /// Higher ones are served first (`x-priority`).
    pub priority: i64,
    pub unacked: u32,
    /// Its outbox was full or its channel at the limit; whoever makes room resumes it.
    pub stalled: bool,
}

impl Consumer {
    // HOT
    #[inline]
    pub fn has_room(&self) -> bool {
        !self.stalled && (self.prefetch == 0 || self.unacked < self.prefetch)
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
        let taken = state.consumers.iter().any(|consumer| consumer.exclusive) || (new.exclusive && !state.consumers.is_empty());
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
        let NewConsumer { id, link, channel, tag, no_ack, exclusive, prefetch, priority } = new;
        let consumer =
            Consumer { id, link, channel, tag, slot, head, no_ack, exclusive, prefetch, priority, unacked: 0, stalled: false };
        let at = state.consumers.partition_point(|other| other.priority >= priority);
        state.consumers.insert(at, consumer);
        state.had_consumer = true;
        effects.consumers += 1;
        self.consumer_count.store(state.consumers.len() as u32, Ordering::Relaxed);
        self.serve(&mut state, &mut Fresh::none(), effects);
        Ok(())
    }

    /// Removes a consumer; nothing is delivered to it any more. True if the queue should go with it (auto-delete).
    pub fn leave(self: &Arc<Self>, consumer: u64, effects: &mut Effects) -> bool {
        let mut state = self.state();
        let Some(at) = state.consumers.iter().position(|found| found.id == consumer) else { return false };
        state.consumers.remove(at);
        effects.consumers -= 1;
        if state.turn > at {
            state.turn -= 1;
        }
        self.left(&mut state, effects)
    }

    fn left(self: &Arc<Self>, state: &mut State, effects: &mut Effects) -> bool {
        self.consumer_count.store(state.consumers.len() as u32, Ordering::Relaxed);
        if state.consumers.is_empty() {
            self.last_consumer_ms.store(effects.now.as_nanos() / 1_000_000 + 1, Ordering::Relaxed);
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
