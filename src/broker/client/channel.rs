//! Channels of a connection, as its own task knows them; their outgoing side is the outbox's `Lane`.

use super::tx::Tx;
use super::{Client, Failed};
use crate::broker::effects::{Effects, Notice};
use crate::broker::flow::Publishes;
use crate::broker::message::Extra;
use crate::broker::outbox::{Lane, LaneConsumer, Open, Unacked};
use crate::broker::queue::{Entry, Queue, Settled, Settling, Then};
use crate::broker::refused::Refused;
use crate::broker::reply::{Address, ReplyChannel};
use crate::broker::trace;
use std::sync::Arc;
use std::sync::atomic::Ordering;

#[derive(Debug, Default)]
pub(super) struct Channel {
    pub confirms: bool,
    /// Messages published since `confirm.select`.
    pub published: u64,
    pub confirmed: u64,
    /// Messages published that stand in no count yet.
    pub unbooked: u64,
    /// For consumers to come (`basic.qos` without `global`).
    pub prefetch: u32,
    /// What an empty queue name means.
    last_queue: Option<Arc<str>>,
    pub reply: Option<ReplyConsumer>,
    /// Since `tx.select`.
    pub tx: Option<Box<Tx>>,
    pub counts: Arc<Publishes>,
}

/// The channel's consumer of `amq.rabbitmq.reply-to`.
#[derive(Debug)]
pub(super) struct ReplyConsumer {
    pub tag: Arc<str>,
    pub address: Address,
    pub text: String,
    pub target: Arc<ReplyChannel>,
}

impl Client {
    pub fn open_channel(&mut self, channel: u16) {
        if self.channels.get(channel).is_none() {
            self.vhost.shared.counts.channels.add(1);
        }
        let counts = Arc::<Publishes>::default();
        self.link.outbox().channels.insert(channel, Lane::new(counts.clone()));
        self.channels.insert(channel, Channel { counts, ..Channel::default() });
        self.vhost.shared.counts.channels_opened.add(1);
        self.vhost.shared.announce("channel.created", || self.link.channel_event(channel));
    }

    pub fn has_channel(&self, channel: u16) -> bool {
        self.channels.get(channel).is_some()
    }

    /// Ends a channel: nothing more is delivered on it, and what it had not settled goes back where it was.
    pub fn close_channel(&mut self, channel: u16) {
        self.take_effect();
        // What was wrong on it cannot matter any more.
        self.late_failures.retain(|failed| failed.channel != channel);
        let Some(state) = self.channels.remove(channel) else { return };
        self.vhost.shared.counts.channels.add(-1);
        self.confirm();
        self.stop_replies(state);
        let mut queues = self.leave_queues(channel);
        let lane = self.link.outbox().channels.remove(channel);
        if let Some(lane) = lane {
            self.count_ended(&lane);
            queues.extend(self.give_back(lane));
        }
        self.let_go_on(queues);
        self.vhost.reattach(&self.link, "its channel closed");
        self.vhost.shared.announce("channel.closed", || self.link.channel_event(channel));
    }

    /// Ends the connection. Idempotent; dropping does the same.
    pub fn close(&mut self, reason: &str) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        // It may have been silent for long.
        self.effects.now = self.vhost.shared.clock.now();
        self.take_effect();
        self.late_failures.clear();
        let numbers = self.channels.numbers();
        let mut queues = Vec::new();
        for number in &numbers {
            if let Some(state) = self.channels.remove(*number) {
                self.vhost.shared.counts.channels.add(-1);
                self.stop_replies(state);
            }
            queues.extend(self.leave_queues(*number));
        }
        for name in std::mem::take(&mut self.exclusive) {
            let queue = self.vhost.find_queue(&name).filter(|queue| queue.owner == Some(self.link.id));
            if let Some(queue) = queue {
                self.vhost.end_queue(&queue, false, &mut self.effects);
            }
        }
        let lanes: Vec<Lane> = {
            let mut outbox = self.link.outbox();
            outbox.dead = true;
            outbox.stalled = Vec::new();
            numbers.iter().filter_map(|number| outbox.channels.remove(*number)).collect()
        };
        for lane in lanes {
            self.count_ended(&lane);
            queues.extend(self.give_back(lane));
        }
        self.let_go_on(queues);
        self.run_effects();
        self.vhost.reattach(&self.link, reason);
        self.vhost.shared.links().remove(&self.link.id);
        self.vhost.shared.counts.connections_closed.add(1);
        for number in numbers {
            self.vhost.shared.announce("channel.closed", || self.link.channel_event(number));
        }
        self.vhost.shared.announce("connection.closed", || self.link.event());
        self.link.drained.notify_waiters();
    }

    fn count_ended(&self, lane: &Lane) {
        self.vhost.ended().add(&lane.flow());
        self.vhost.shared.counts.channels_closed.add(1);
    }

    fn stop_replies(&mut self, state: Channel) {
        if let Some(reply) = state.reply {
            reply.target.go();
            self.vhost.replies.remove(&reply.address);
        }
    }

    /// No queue delivers to the channel any more after this. Returns those it left.
    fn leave_queues(&mut self, channel: u16) -> Vec<Arc<Queue>> {
        let consumers: Vec<(Arc<str>, LaneConsumer)> = {
            let mut outbox = self.link.outbox();
            let Some(lane) = outbox.channels.get_mut(channel) else { return Vec::new() };
            lane.consumers.drain().collect()
        };
        let mut left = Vec::new();
        for (tag, consumer) in consumers {
            let shared = &self.vhost.shared;
            shared.announce("consumer.deleted", || self.link.consumer_event(channel, &tag, &consumer.queue.name));
            match consumer.queue.leave(consumer.id, &mut self.effects) {
                true => self.vhost.end_queue(&consumer.queue, true, &mut self.effects),
                false => left.push(consumer.queue),
            }
        }
        left
    }

    /// Requeues what a closed channel had not settled, and returns the queues. A call it was working on is never redelivered: its
    /// caller learns at once.
    fn give_back(&mut self, mut lane: Lane) -> Vec<Arc<Queue>> {
        let (mut taken, mut queues) = (Vec::new(), Vec::new());
        lane.settle_all(&mut taken);
        let mut from = 0;
        while let Some(first) = taken.get(from) {
            let until = from + taken[from..].iter().take_while(|unacked| unacked.slot == first.slot).count();
            if let Some(slot) = lane.slot(first.slot) {
                let (queue, consumer) = (slot.queue.clone(), slot.consumer);
                self.give_back_to(&queue, consumer, &taken[from..until], &mut lane);
                queues.push(queue);
            }
            from = until;
        }
        // Auto-acked ones: nobody will answer them.
        for (_, open) in std::mem::take(&mut lane.open) {
            self.abandon(open);
        }
        queues
    }

    fn let_go_on(&mut self, mut queues: Vec<Arc<Queue>>) {
        queues.sort_unstable_by_key(|queue| Arc::as_ptr(queue) as usize);
        queues.dedup_by(|a, b| Arc::ptr_eq(a, b));
        queues.iter().for_each(|queue| queue.go_on(&mut self.effects));
    }

    fn give_back_to(&mut self, queue: &Arc<Queue>, consumer: u64, taken: &[Unacked], lane: &mut Lane) {
        let (mut entries, mut extras): (Vec<Entry>, Vec<(u64, Extra)>) = Default::default();
        let (mut dropped, mut dropped_extras): (Vec<Entry>, Vec<(u64, Extra)>) = Default::default();
        for unacked in taken {
            let extra = lane.open.remove(&unacked.tag).map(|open| self.abandon(open));
            let is_call = extra.as_ref().is_some_and(|extra| extra.call.is_some());
            let (entries, extras) = if is_call { (&mut dropped, &mut dropped_extras) } else { (&mut entries, &mut extras) };
            entries.push(unacked.entry);
            extras.extend(extra.map(|extra| (unacked.entry.seq, extra)));
        }
        let both = [(&dropped, dropped_extras, Settling::Forgotten), (&entries, extras, Settling::Returned)];
        for (entries, extras, settling) in both.into_iter().filter(|(entries, ..)| !entries.is_empty()) {
            let settled = Settled { consumer, entries, extras, settling, then: Then::Wait };
            queue.settle(settled, &mut self.effects);
        }
    }

    /// A delivery whose channel is gone: its span ends, its call fails.
    fn abandon(&mut self, open: Open) -> Extra {
        abandon(open, &self.link, self.vhost.shared.epoch_ns, &mut self.effects)
    }

    pub(super) fn channel(&self, channel: u16) -> Result<&Channel, Failed> {
        self.channels.get(channel).ok_or_else(|| unopened(channel))
    }

    pub(super) fn channel_mut(&mut self, channel: u16) -> Result<&mut Channel, Failed> {
        self.channels.get_mut(channel).ok_or_else(|| unopened(channel))
    }

    pub(super) fn name_last_queue(&mut self, channel: u16, name: &Arc<str>) {
        if let Some(state) = self.channels.get_mut(channel) {
            state.last_queue = Some(name.clone());
        }
    }

    /// An empty name means the queue declared last on the channel.
    pub(super) fn queue_name(&self, channel: u16, name: &str) -> Result<Arc<str>, Failed> {
        if !name.is_empty() {
            return Ok(name.into());
        }
        let last = self.channel(channel)?.last_queue.clone();
        let refused = || Refused::NotFound("no previously declared queue".to_owned());
        last.ok_or_else(|| Failed::new(channel, refused()))
    }

    /// `confirm.select`
    pub fn select_confirms(&mut self, channel: u16) -> Result<(), Failed> {
        self.sync(channel)?;
        let state = self.channel_mut(channel)?;
        if state.tx.is_some() {
            let refused = Refused::Precondition("cannot switch from tx to confirm mode".into());
            return Err(Failed::new(channel, refused));
        }
        state.confirms = true;
        if let Some(lane) = self.link.outbox().channels.get_mut(channel) {
            lane.confirms = true;
        }
        Ok(())
    }

    /// `basic.qos`
    pub fn limit_prefetch(&mut self, channel: u16, count: u16, global: bool) -> Result<(), Failed> {
        self.sync(channel)?;
        if !global {
            self.channel_mut(channel)?.prefetch = count.into();
            if let Some(lane) = self.link.outbox().channels.get_mut(channel) {
                lane.prefetch = count.into();
            }
            return Ok(());
        }
        let waiting = {
            let mut outbox = self.link.outbox();
            let lane = outbox.channels.get_mut(channel).ok_or_else(|| unopened(channel))?;
            lane.prefetch_global = count.into();
            std::mem::take(&mut lane.waiting)
        };
        self.link.resume(waiting, &mut self.effects);
        Ok(())
    }
}

fn abandon(open: Open, link: &crate::broker::link::Link, epoch_ns: u64, effects: &mut Effects) -> Extra {
    if let Some(process) = open.process {
        link.traced.fetch_sub(1, Ordering::Relaxed);
        let failure = (!open.auto_acked).then_some("the channel closed before the ack");
        trace::finished(process, failure, epoch_ns, effects);
    }
    if let Some(call) = &open.extra.call {
        effects.notify(call.clone(), Notice::WorkerGone);
    }
    open.extra
}

pub(super) fn unopened(channel: u16) -> Failed {
    Failed::new(channel, Refused::NotAllowed(format!("channel {channel} is not open")))
}

impl Drop for Client {
    fn drop(&mut self) {
        self.close("its connection ended");
    }
}
