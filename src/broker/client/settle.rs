//! Acks, nacks and rejects, gathered and then told queue by queue.

use super::channel::unopened;
use super::{Client, Failed};
use crate::broker::effects::Notice;
use crate::broker::message::Extra;
use crate::broker::outbox::{Lane, Unacked};
use crate::broker::queue::{Entry, Queue, Settled, Settling, Then};
use crate::broker::refused::Refused;
use crate::broker::trace;
use crate::wire::amqp::MethodId;
use crate::wire::amqp::method::BasicRecover;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a client says about deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ack,
    /// Back to its queue.
    Requeue,
    /// Dropped, or sent to the queue's dead-letter exchange.
    Discard,
}

/// One `basic.ack`, `basic.nack` or `basic.reject`.
#[derive(Clone, Copy, Debug)]
pub struct Settle {
    pub tag: u64,
    /// All up to `tag`, or all there are if that is 0.
    pub multiple: bool,
    pub verdict: Verdict,
    /// The method to blame if the tag is unknown.
    pub by: MethodId,
}

#[derive(Debug, Default)]
pub(super) struct Settles {
    pending: Vec<Pending>,
    taken: Vec<Unacked>,
    gathered: Gathered,
    /// Queues that stood still because a channel was at its limit.
    waiting: Vec<Arc<Queue>>,
}

/// Settled deliveries, queue by queue.
#[derive(Debug, Default)]
struct Gathered {
    groups: Vec<Group>,
    entries: Vec<Entry>,
    extras: Vec<(u64, Extra)>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    channel: u16,
    settle: Settle,
}

/// Consecutive deliveries of one consumer with one verdict: a range of `entries` and of `extras`.
#[derive(Debug)]
struct Group {
    queue: Arc<Queue>,
    consumer: u64,
    verdict: Verdict,
    entries: usize,
    extras: usize,
}

impl Settles {
    /// Past any transaction.
    pub fn push(&mut self, channel: u16, settle: Settle) {
        self.pending.push(Pending { channel, settle });
    }
}

/// Room kept for the next batch, in deliveries.
const KEEP_MAX: usize = 4096;

impl Client {
    /// Says what became of one delivery, or of all up to `tag`.
    // HOT
    #[inline]
    pub fn settle(&mut self, channel: u16, settle: Settle) {
        if self.transacts && self.hold_settle(channel, settle) {
            return;
        }
        self.settles.push(channel, settle);
    }

    /// `basic.recover` with requeue: everything unacked on the channel goes back.
    pub fn recover(&mut self, channel: u16) -> Result<(), Failed> {
        self.sync(channel)?;
        let all = Settle { tag: 0, multiple: true, verdict: Verdict::Requeue, by: BasicRecover::ID };
        match self.recoverable(channel) {
            Some(tags) => tags.into_iter().for_each(|tag| self.settles.push(channel, Settle { tag, multiple: false, ..all })),
            None => self.settles.push(channel, all),
        }
        self.sync(channel)
    }

    // HOT
    pub(super) fn settle_pending(&mut self) {
        if self.settles.pending.is_empty() {
            return;
        }
        self.take_out();
        let mut settles = std::mem::take(&mut self.settles);
        let Gathered { groups, entries, extras } = &mut settles.gathered;
        let (mut from, mut acked) = (0, 0);
        let mut extras = extras.drain(..);
        let one_queue = groups.windows(2).all(|pair| Arc::ptr_eq(&pair[0].queue, &pair[1].queue));
        let last = groups.len().wrapping_sub(1);
        for (at, group) in groups.iter().enumerate() {
            let of_group = &entries[from..from + group.entries];
            from += group.entries;
            acked += if group.verdict == Verdict::Ack { group.entries as u64 } else { 0 };
            let settled = Settled {
                consumer: group.consumer,
                entries: of_group,
                extras: extras.by_ref().take(group.extras).collect(),
                settling: match group.verdict {
                    Verdict::Ack => Settling::Acked,
                    Verdict::Requeue => Settling::Requeued,
                    Verdict::Discard => Settling::Rejected,
                },
                then: if one_queue && at == last { Then::Serve } else { Then::Wait },
            };
            group.queue.settle(settled, &mut self.effects);
        }
        drop(extras);
        if !one_queue {
            groups.sort_unstable_by_key(|group| Arc::as_ptr(&group.queue) as usize);
            groups.dedup_by(|a, b| Arc::ptr_eq(&a.queue, &b.queue));
            groups.iter().for_each(|group| group.queue.go_on(&mut self.effects));
        }
        groups.clear();
        entries.clear();
        if !settles.waiting.is_empty() {
            self.link.resume(std::mem::take(&mut settles.waiting), &mut self.effects);
        }
        if settles.gathered.entries.capacity() <= KEEP_MAX {
            self.settles = settles;
        }
        if acked > 0 {
            self.vhost.shared.counts.acked.add(acked);
        }
    }

    /// Takes the settled deliveries out of the lanes, under one lock of the outbox; of each channel those before its first unknown
    /// tag.
    // HOT
    fn take_out(&mut self) {
        let mut outbox = self.link.outbox();
        let outbox = &mut *outbox;
        let Settles { pending, taken, gathered, waiting } = &mut self.settles;
        let late = &mut self.late_failures;
        for Pending { channel, settle } in pending.drain(..) {
            if !late.is_empty() && late.iter().any(|failed| failed.channel == channel) {
                continue;
            }
            let Some(lane) = outbox.channels.get_mut(channel) else {
                late.push(unopened(channel));
                continue;
            };
            taken.clear();
            if !lane.settle(settle.tag, settle.multiple, taken) {
                late.push(settle.unknown(channel));
                continue;
            }
            if settle.verdict == Verdict::Ack {
                lane.consumed.ack += taken.len() as u64;
            }
            if outbox.settles_in_order
                && taken.first().is_some_and(|first| lane.unsettled().next().is_some_and(|left| left.tag < first.tag))
            {
                outbox.settles_in_order = false;
            }
            gathered.add(lane, taken, settle.verdict, |lane, tag| {
                settle_open(&self.link, lane, tag, settle.verdict, self.vhost.shared.epoch_ns, &mut self.effects)
            });
            if !lane.is_at_limit() {
                waiting.append(&mut lane.waiting);
            }
        }
    }
}

impl Settle {
    pub(super) fn unknown(&self, channel: u16) -> Failed {
        let refused = Refused::Precondition(format!("unknown delivery tag {}", self.tag));
        Failed { cause: Some(self.by), ..Failed::new(channel, refused) }
    }
}

impl Gathered {
    /// Adds what was taken out of `lane`. `open` ends what stood beside a delivery.
    // HOT
    fn add(
        &mut self,
        lane: &mut Lane,
        taken: &[Unacked],
        verdict: Verdict,
        mut open: impl FnMut(&mut Lane, u64) -> Option<Extra>,
    ) {
        for unacked in taken {
            let Some(slot) = lane.slot(unacked.slot) else { continue };
            let joins = self.groups.last().is_some_and(|group| {
                group.consumer == slot.consumer && group.verdict == verdict && Arc::ptr_eq(&group.queue, &slot.queue)
            });
            if !joins {
                let (queue, consumer) = (slot.queue.clone(), slot.consumer);
                self.groups.push(Group { queue, consumer, verdict, entries: 0, extras: 0 });
            }
            let group = self.groups.last_mut().expect("one was just made");
            self.entries.push(unacked.entry);
            group.entries += 1;
            if unacked.entry.has(Entry::EXTRA)
                && let Some(extra) = open(lane, unacked.tag)
            {
                self.extras.push((unacked.entry.seq, extra));
                group.extras += 1;
            }
        }
        // Only now: several of them may share a slot whose consumer is gone.
        taken.iter().for_each(|unacked| lane.free_slot(unacked.slot));
    }
}

/// Ends what stood beside a delivery and returns what goes back with it.
#[cold]
fn settle_open(
    link: &crate::broker::link::Link,
    lane: &mut Lane,
    tag: u64,
    verdict: Verdict,
    epoch_ns: u64,
    effects: &mut crate::broker::effects::Effects,
) -> Option<Extra> {
    let open = lane.open.remove(&tag)?;
    if let Some(process) = open.process {
        link.traced.fetch_sub(1, Ordering::Relaxed);
        let failure = match verdict {
            Verdict::Ack => None,
            Verdict::Requeue => Some("requeued"),
            Verdict::Discard => Some("rejected"),
        };
        trace::finished(process, failure, epoch_ns, effects);
    }
    if let (Some(call), Verdict::Discard) = (&open.extra.call, verdict) {
        effects.notify(call.clone(), Notice::Rejected);
    }
    Some(open.extra)
}
