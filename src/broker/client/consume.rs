//! Consuming and getting.

use super::channel::{ReplyConsumer, unopened};
use super::{Client, Failed};
use crate::broker::outbox::LaneConsumer;
use crate::broker::queue::{NewConsumer, Queue};
use crate::broker::record::deliver_head;
use crate::broker::refused::Refused;
use crate::broker::reply::{Address, REPLY_QUEUE, ReplyChannel, Target};
use crate::kernel::{limit, rng};
use crate::model::identity::Action;
use crate::model::table::{Field, Table};
use crate::wire::amqp::encode;
use crate::wire::amqp::method::BasicConsumeOk;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct Consume {
    pub queue: String,
    /// Empty asks for a generated one.
    pub tag: String,
    pub no_ack: bool,
    pub exclusive: bool,
    pub no_wait: bool,
    pub arguments: Table,
}

/// What `basic.get` found; a message is in the outbox already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    Message,
    Empty,
}

impl Client {
    /// Begins to consume; `basic.consume-ok` is written before the first delivery (unless `no_wait`). Returns the consumer's tag.
    pub fn consume(&mut self, channel: u16, consume: Consume) -> Result<Arc<str>, Failed> {
        self.sync(channel)?;
        let tag: Arc<str> = match consume.tag.is_empty() {
            true => format!("amq.ctag-{}", rng::token::<16>()).into(),
            false => consume.tag.as_str().into(),
        };
        self.check_tag(channel, &tag)?;
        let name = self.queue_name(channel, &consume.queue)?;
        let announce = |out: &mut Vec<u8>| {
            if !consume.no_wait {
                encode::method(out, channel, &BasicConsumeOk { consumer_tag: &tag });
            }
        };
        if *name == *REPLY_QUEUE {
            self.consume_replies(channel, &tag, consume.no_ack)?;
            self.link.append(announce);
            return Ok(tag);
        }
        let (space, actor) = (self.vhost.name(), self.actor());
        let queue = actor.must(Action::Read, "queue", &name, space).and_then(|()| self.vhost.queue_for(&name, actor));
        let queue = queue.map_err(Self::fail(channel))?;
        self.check_quorum_consumer(channel, &queue)?;
        let new = NewConsumer {
            id: self.vhost.shared.next_id(),
            link: self.link.clone(),
            channel,
            tag: tag.clone(),
            no_ack: consume.no_ack,
            exclusive: consume.exclusive,
            prefetch: if consume.no_ack { 0 } else { self.channel(channel)?.prefetch },
            priority: self.priority(&name, &consume.arguments).map_err(Self::fail(channel))?,
            arguments: consume.arguments.clone(),
        };
        self.consumes = true;
        let (prefetch, no_ack) = (new.prefetch, new.no_ack);
        queue.join(new, announce, &mut self.effects).map_err(Self::fail(channel))?;
        self.vhost.shared.announce("consumer.created", || {
            self.link
                .consumer_event(channel, &tag, &queue.name)
                .with("exclusive", Field::Bool(consume.exclusive))
                .with("ack_required", Field::Bool(!no_ack))
                .with("prefetch_count", Field::I32(i32::try_from(prefetch).unwrap_or(i32::MAX)))
                .with("arguments", Field::Table(consume.arguments.clone()))
        });
        if !queue.services().is_empty() {
            self.vhost.reattach(&self.link, "it stopped consuming");
        }
        Ok(tag)
    }

    /// A quorum queue does not know of a limit that several consumers share.
    fn check_quorum_consumer(&self, channel: u16, queue: &Queue) -> Result<(), Failed> {
        let limited = queue.is_quorum() && self.link.outbox().channels.get(channel).is_some_and(|lane| lane.prefetch_global > 0);
        if !limited {
            return Ok(());
        }
        let text = format!("queue '{}' in vhost '{}' does not support global qos", queue.name, self.vhost.name());
        Err(Failed::new(channel, Refused::NotImplemented(text)))
    }

    fn priority(&self, queue: &str, arguments: &Table) -> Result<i64, Refused> {
        if let Some(stream) = ["x-stream-offset", "x-stream-filter"].into_iter().find(|name| arguments.get(name).is_some()) {
            return Err(Refused::NotImplemented(format!("consumer argument '{stream}' is not available yet")));
        }
        let refuse = |name: &str, why: String| {
            let space = self.vhost.name();
            Err(Refused::Precondition(format!("invalid arg '{name}' for queue '{queue}' in vhost '{space}': {why}")))
        };
        if let Some(field) = arguments.get("x-cancel-on-ha-failover").filter(|field| field.as_bool().is_none()) {
            return refuse("x-cancel-on-ha-failover", format!("{{unacceptable_type,{}}}", field.spelled().1));
        }
        match arguments.get("x-priority") {
            None => Ok(0),
            Some(field) => match field.as_integer() {
                Some(priority) => Ok(priority),
                None => refuse("x-priority", format!("\"expected integer, got {}\"", field.spelled().1)),
            },
        }
    }

    fn check_tag(&self, channel: u16, tag: &str) -> Result<(), Failed> {
        let taken_by_replies = self.channel(channel)?.reply.as_ref().is_some_and(|reply| *reply.tag == *tag);
        let outbox = self.link.outbox();
        let lane = outbox.channels.get(channel).ok_or_else(|| unopened(channel))?;
        if taken_by_replies || lane.consumers.contains_key(tag) {
            let refused = Refused::NotAllowed(format!("attempt to reuse consumer tag '{tag}'"));
            return Err(Failed::new(channel, refused));
        }
        if lane.consumers.len() >= limit::CONSUMERS_PER_CHANNEL_MAX {
            let text = format!("reached maximum ({}) of consumers per channel", limit::CONSUMERS_PER_CHANNEL_MAX);
            return Err(Failed::new(channel, Refused::NotAllowed(text)));
        }
        Ok(())
    }

    /// Direct reply-to: the channel gets an address.
    fn consume_replies(&mut self, channel: u16, tag: &Arc<str>, no_ack: bool) -> Result<(), Failed> {
        let refuse = |text: &str| Err(Failed::new(channel, Refused::Precondition(text.into())));
        if !no_ack {
            return refuse("reply consumer cannot acknowledge");
        }
        if self.channel(channel)?.reply.is_some() {
            return refuse("reply consumer already set");
        }
        let target = Arc::new(ReplyChannel::new(self.link.clone(), channel, deliver_head(channel, tag)));
        let address = Address::random();
        self.vhost.replies.insert(address, Target::Channel(target.clone()));
        let reply = ReplyConsumer { tag: tag.clone(), text: address.text(), address, target };
        self.channel_mut(channel)?.reply = Some(reply);
        Ok(())
    }

    /// Stops consuming; nothing is delivered to `tag` after this. An unknown tag is no error.
    pub fn cancel(&mut self, channel: u16, tag: &str) -> Result<(), Failed> {
        self.sync(channel)?;
        let state = self.channel_mut(channel)?;
        if let Some(reply) = state.reply.take_if(|reply| *reply.tag == *tag) {
            reply.target.go();
            self.vhost.replies.remove(&reply.address);
            return Ok(());
        }
        let Some(LaneConsumer { queue, id, slot }) = self.forget_tag(channel, tag) else { return Ok(()) };
        let auto_delete = queue.leave(id, &mut self.effects);
        self.vhost.shared.announce("consumer.deleted", || self.link.consumer_event(channel, tag, &queue.name));
        {
            let mut outbox = self.link.outbox();
            if let Some(lane) = outbox.channels.get_mut(channel) {
                lane.cancel_slot(slot);
                lane.free_slot(slot);
            }
        }
        if !queue.services().is_empty() {
            self.vhost.reattach(&self.link, "it stopped consuming");
        }
        match auto_delete {
            true => self.vhost.end_queue(&queue, true, &mut self.effects),
            false => queue.go_on(&mut self.effects),
        }
        Ok(())
    }

    fn forget_tag(&self, channel: u16, tag: &str) -> Option<LaneConsumer> {
        self.link.outbox().channels.get_mut(channel)?.consumers.remove(tag)
    }

    /// `basic.get`: writes `get-ok` with the message; the caller answers an empty queue.
    pub fn get(&mut self, channel: u16, queue: &str, no_ack: bool) -> Result<Got, Failed> {
        self.sync(channel)?;
        let name = self.queue_name(channel, queue)?;
        let (space, actor) = (self.vhost.name(), self.actor());
        let queue = actor.must(Action::Read, "queue", &name, space).and_then(|()| self.vhost.queue_for(&name, actor));
        let queue = queue.map_err(Self::fail(channel))?;
        if queue.is_quorum() && queue.is_single_active() {
            let text = format!(
                "cannot obtain access to locked queue '{name}' in vhost '{space}'. basic.get operations are not supported by quorum \
                 queues with single active consumer"
            );
            return Err(Failed::new(channel, Refused::Locked(text)));
        }
        self.consumes = true;
        Ok(queue.get(&self.link, channel, no_ack, &mut self.effects))
    }
}
