//! Messages to a reply address: straight to the channel or the call that waits there, past all queues.

use super::{Client, Failed};
use crate::broker::call::{Answered, CallState};
use crate::broker::effects::Effects;
use crate::broker::link::Link;
use crate::broker::outbox::Open;
use crate::broker::record::{self, INLINE_BODY_MAX, Record};
use crate::broker::reply::{ReplyChannel, Target};
use crate::broker::shared::Shared;
use crate::broker::trace;
use crate::kernel::limit::REPLY_PAUSE_MS_MAX;
use crate::wire::amqp::{Properties, Publish};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;

/// Replies that wait for a connection that does not read, in bytes; the next is dropped, counted and told.
const REPLIES_WAITING_BYTES_MAX: usize = 16 << 20;

/// Why a connection must not be read for a while.
#[derive(Debug)]
pub enum Hold {
    /// Queues hold more than `limits.queue_bytes_max`: publishers wait until the level has fallen.
    Alarm,
    /// The connection it answers does not take its replies fast enough.
    Room(Arc<Link>),
    /// The caller of a streamed reply does not take its parts fast enough; it is given 10 s.
    Pause(Pause),
}

#[derive(Debug)]
pub struct Pause {
    until: Arc<Notify>,
    call: Arc<CallState>,
}

impl Hold {
    /// Resolves when reading may go on.
    pub async fn over(self, link: &Link) {
        let shared: &Shared = &link.shared;
        match self {
            Hold::Alarm => {
                while shared.has_alarm() {
                    let over = shared.alarm_over();
                    let notified = over.notified();
                    if shared.has_alarm() {
                        notified.await;
                    }
                }
            }
            Hold::Room(other) => {
                let limit = Duration::from_millis(REPLY_PAUSE_MS_MAX);
                let drained = async {
                    while other.is_full() {
                        let notified = other.drained.notified();
                        if other.is_full() {
                            notified.await;
                        }
                    }
                };
                // Too slow for ten seconds: later replies are dropped at the bound instead.
                let _ = tokio::time::timeout(limit, drained).await;
            }
            Hold::Pause(Pause { until, call }) => {
                let limit = Duration::from_millis(REPLY_PAUSE_MS_MAX);
                if tokio::time::timeout(limit, until.notified()).await.is_err() {
                    call.stalled();
                }
            }
        }
    }
}

impl Client {
    #[cold]
    pub(super) fn publish_reply(&mut self, message: Publish<'_>) -> Result<(), Failed> {
        let mut extra = Default::default();
        let examined = self.examine(&message, &mut extra).map_err(Self::fail(message.channel))?;
        self.reply(&message, examined.rewritten.as_deref().map_or(message.properties, Properties::trusted))
    }

    /// A reply whose properties have been examined.
    pub(super) fn reply(&mut self, message: &Publish<'_>, properties: Properties<'_>) -> Result<(), Failed> {
        let channel = message.channel;
        self.answered(message);
        match self.vhost.replies.find(message.routing_key) {
            Some(Target::Channel(target)) if !target.is_gone() => self.deliver_reply(&target, message, properties),
            Some(Target::Call(call)) => {
                let from = (self.link.id, channel);
                match call.answer(from, properties, message.body.clone().into_bytes()) {
                    Answered::Taken => {}
                    Answered::Pause(until) => self.hold = Some(Hold::Pause(Pause { until, call })),
                    Answered::Dropped(why) => self.drop_reply(message, properties, why),
                }
            }
            Some(Target::Channel(_)) | None => self.drop_reply(message, properties, "nobody waits at its address"),
        }
        self.count(channel)
    }

    fn drop_reply(&mut self, message: &Publish<'_>, properties: Properties<'_>, why: &str) {
        let name = &self.link.info.name;
        self.vhost.shared.reply_dropped(self.vhost.name(), || format!("reply from {name}: {why}"));
        self.unroutable(message, properties);
    }

    fn deliver_reply(&mut self, target: &Arc<ReplyChannel>, message: &Publish<'_>, properties: Properties<'_>) {
        let mut bytes =
            bytes::BytesMut::with_capacity(record::room("", message.routing_key, properties.as_bytes(), &message.body));
        let key_len = record::write_key(&mut bytes, "", message.routing_key);
        record::write_content(&mut bytes, properties.as_bytes(), &message.body);
        let large = (message.body.len() >= INLINE_BODY_MAX).then(|| message.body.clone().into_bytes());
        let mut outbox = target.link.outbox();
        let outbox = &mut *outbox;
        let waiting = outbox.frames.len();
        let lane = outbox.channels.get_mut(target.channel).filter(|_| !outbox.dead && waiting <= REPLIES_WAITING_BYTES_MAX);
        let Some(lane) = lane else {
            self.vhost.shared.reply_dropped(self.vhost.name(), || format!("{} does not read its replies", target.link.info.name));
            return;
        };
        let tag = lane.next_tag();
        lane.consumed.deliver_no_ack += 1;
        outbox.frames.room();
        outbox.frames.deliver(&target.head, tag, false, Record::new(&bytes, key_len), large.as_ref(), outbox.frame_max);
        target.link.set_waiting(outbox.frames.len());
        self.effects.delivered += 1;
        if target.link.is_full() && target.link.id != self.link.id {
            self.hold = Some(Hold::Room(target.link.clone()));
        }
        if !std::mem::replace(&mut outbox.signalled, true) {
            self.effects.wake(&target.link);
        }
    }

    /// Ends the span of an auto-acked delivery that this message answers: no ack will.
    fn answered(&mut self, message: &Publish<'_>) {
        if self.link.traced.load(Ordering::Relaxed) == 0 {
            return;
        }
        let correlation = message.properties.correlation_id();
        let mut outbox = self.link.outbox();
        for lane in outbox.channels.values_mut() {
            let found =
                lane.open.iter().find(|(_, open)| open.auto_acked && open.is_answered_by(message.routing_key, correlation));
            let Some(tag) = found.map(|(tag, _)| *tag) else { continue };
            if let Some(open) = lane.open.remove(&tag) {
                finish(open, &self.link, self.vhost.shared.epoch_ns, &mut self.effects);
            }
            return;
        }
    }
}

fn finish(open: Open, link: &Link, epoch_ns: u64, effects: &mut Effects) {
    if let Some(process) = open.process {
        link.traced.fetch_sub(1, Ordering::Relaxed);
        trace::finished(process, None, epoch_ns, effects);
    }
}
