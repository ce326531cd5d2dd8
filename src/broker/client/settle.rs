//! Acks, nacks and rejects, gathered and then told queue by queue.

use super::channel::unopened;
use super::{Client, Failed};
use crate::broker::effects::Notice;
use crate::broker::message::Extra;
use crate::broker::outbox::{Lane, Unacked};
use crate::broker::queue::{Entry, Queue, Settling};
use crate::broker::refused::Refused;
use crate::broker::trace;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a client says about deliveries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Ack,
    /// Back to its queue.
    Requeue,
    /// Dropped, since there is no dead-lettering yet.
    Discard,
}

#[derive(Debug, Default)]
pub(super) struct Settles {
    pending: Vec<Pending>,
    groups: Vec<Group>,
    taken: Vec<Unacked>,
    entries: Vec<Entry>,
    extras: Vec<(u64, Extra)>,
    /// Queues that stood still because a channel was at its limit.
    waiting: Vec<Arc<Queue>>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    channel: u16,
    tag: u64,
    multiple: bool,
    verdict: Verdict,
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

/// Room kept for the next batch, in deliveries.
const KEEP_MAX: usize = 4096;

impl Client {
    /// Says what became of one delivery, or of all up to `tag`.
    // HOT
    #[inline]
    pub fn settle(&mut self, channel: u16, tag: u64, multiple: bool, verdict: Verdict) {
        self.settles.pending.push(Pending { channel, tag, multiple, verdict });
    }

    /// `basic.recover` with requeue: everything unacked on the channel goes back.
    pub fn recover(&mut self, channel: u16) -> Result<(), Failed> {
        self.sync()?;
        self.settle(channel, 0, true, Verdict::Requeue);
        self.sync()
    }

    // HOT
    pub(super) fn settle_pending(&mut self) -> Result<(), Failed> {
        if self.settles.pending.is_empty() {
            return Ok(());
        }
        let result = self.take_out();
        let mut settles = std::mem::take(&mut self.settles);
        let (mut entry, mut acked) = (0, 0);
        let mut extras = settles.extras.drain(..);
        for group in settles.groups.drain(..) {
            let entries = &settles.entries[entry..entry + group.entries];
            entry += group.entries;
            acked += if group.verdict == Verdict::Ack { entries.len() as u64 } else { 0 };
            let settling = if group.verdict == Verdict::Requeue { Settling::Requeue } else { Settling::Done };
            let extras = extras.by_ref().take(group.extras).collect();
            group.queue.settle(group.consumer, entries, extras, settling, &mut self.effects);
        }
        drop(extras);
        settles.entries.clear();
        settles.waiting.drain(..).for_each(|queue| queue.resume(self.link.id, &mut self.effects));
        if settles.entries.capacity() <= KEEP_MAX {
            self.settles = settles;
        }
        if acked > 0 {
            self.vhost.shared.counts.acked.add(acked);
        }
        result
    }

    /// Takes the settled deliveries out of the lanes, under one lock of the outbox. Stops at the first unknown tag.
    // HOT
    fn take_out(&mut self) -> Result<(), Failed> {
        let mut outbox = self.link.outbox();
        let outbox = &mut *outbox;
        let Settles { pending, groups, taken, entries, extras, waiting } = &mut self.settles;
        let mut result = Ok(());
        for settle in pending.drain(..) {
            let Some(lane) = outbox.channels.get_mut(settle.channel) else {
                result = Err(unopened(settle.channel));
                continue;
            };
            taken.clear();
            if !lane.settle(settle.tag, settle.multiple, taken) {
                let refused = Refused::Precondition(format!("unknown delivery tag {}", settle.tag));
                result = result.and(Err(Failed { channel: settle.channel, refused }));
                continue;
            }
            if outbox.settles_in_order
                && taken.first().is_some_and(|first| lane.unsettled().next().is_some_and(|left| left.tag < first.tag))
            {
                outbox.settles_in_order = false;
            }
            for unacked in taken.iter() {
                let Some(slot) = lane.slot(unacked.slot) else { continue };
                let joins = groups.last().is_some_and(|group: &Group| {
                    group.consumer == slot.consumer && group.verdict == settle.verdict && Arc::ptr_eq(&group.queue, &slot.queue)
                });
                if !joins {
                    let (queue, consumer) = (slot.queue.clone(), slot.consumer);
                    groups.push(Group { queue, consumer, verdict: settle.verdict, entries: 0, extras: 0 });
                }
                let group = groups.last_mut().expect("one was just made");
                entries.push(unacked.entry);
                group.entries += 1;
                if unacked.entry.has(Entry::EXTRA)
                    && let Some(extra) =
                        settle_open(&self.link, lane, unacked.tag, settle.verdict, self.vhost.shared.epoch_ns, &mut self.effects)
                {
                    extras.push((unacked.entry.seq, extra));
                    group.extras += 1;
                }
                lane.free_slot(unacked.slot);
            }
            if !lane.is_at_limit() {
                waiting.append(&mut lane.waiting);
            }
        }
        result
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
