//! What a queue tells whoever looks at its messages; nothing while nobody does.

use super::backlog::Backlog;
use super::entry::Entry;
use super::{Queue, Settling};
use crate::broker::effects::Effects;
use crate::broker::journey::StepKind;
use crate::broker::letters::Reason;
use crate::broker::link::Link;
use crate::broker::message::Run;
use crate::broker::tap::{Ended, HandedOver, QueueTap, Seen, Taps};
use bytes::Bytes;
use smallvec::smallvec;
use std::sync::Arc;

impl Queue {
    /// To be called once, when it joins a space.
    pub fn be_seen_by(&self, taps: &Arc<Taps>) {
        self.state().backlog.tap = Some(Box::new(QueueTap { queue: self.name.clone(), taps: taps.clone() }));
    }
}

impl Backlog {
    // HOT
    #[inline]
    pub fn is_tapped(&self) -> bool {
        self.tap.as_ref().is_some_and(|tap| tap.taps.is_on())
    }

    /// Its extra must still be here.
    #[cold]
    pub fn see_delivered(&self, entry: &Entry, link: &Arc<Link>, channel: u16, no_ack: bool, effects: &mut Effects) {
        let Some(tap) = &self.tap else { return };
        let redelivered = entry.has(Entry::REDELIVERED);
        let handed = tap.taps.has_firehose().then(|| {
            Box::new(HandedOver {
                link: link.clone(),
                channel,
                record: Bytes::copy_from_slice(self.segments.record(entry)),
                key_len: entry.key_len,
                large: self.extra(entry).and_then(|extra| extra.body.clone()),
                redelivered,
            })
        });
        let connection = link.info.name.clone();
        let step = StepKind::Delivered { queue: tap.queue.clone(), connection, channel, redelivered, no_ack };
        let (taps, number, records) = (tap.taps.clone(), tap.taps.number(), smallvec![self.address(entry)]);
        effects.see(Seen { taps, records, number, step, then: None, handed });
    }

    /// A run that was just taken in.
    #[cold]
    pub fn see_queued(&self, run: &Run<'_>, effects: &mut Effects) {
        self.see(run.addresses(), |queue| StepKind::Queued { queue }, effects);
    }

    /// A run that was offered, and was not taken.
    #[cold]
    pub fn see_unwanted(&self, run: &Run<'_>, reason: &'static str, effects: &mut Effects) {
        self.see(run.addresses(), |queue| StepKind::Dropped { queue, reason }, effects);
    }

    /// Messages that are taken out of the queue, ready ones or unacked ones. Their records must still be here.
    #[cold]
    pub fn see_gone<'e>(&self, entries: impl Iterator<Item = &'e Entry>, reason: &'static str, effects: &mut Effects) {
        self.see(entries.map(|entry| self.address(entry)), |queue| StepKind::Dropped { queue, reason }, effects);
    }

    /// Its record must still be here. What is rejected is told when it is buried.
    #[cold]
    pub fn see_settled(&self, entry: &Entry, settling: Settling, effects: &mut Effects) {
        let step = |queue| match settling {
            Settling::Acked => StepKind::Acked { queue },
            Settling::Forgotten => StepKind::Dropped { queue, reason: "its worker is gone" },
            Settling::Requeued | Settling::Returned => StepKind::Requeued { queue },
            Settling::Rejected => StepKind::Rejected { queue },
        };
        self.see(std::iter::once(self.address(entry)), step, effects);
    }

    #[cold]
    pub fn see_buried(&self, entry: &Entry, reason: Reason, effects: &mut Effects) -> Option<Ended> {
        let step = |queue| match reason {
            Reason::Rejected => StepKind::Rejected { queue },
            Reason::Expired => StepKind::Expired { queue },
            Reason::MaxLen | Reason::DeliveryLimit => StepKind::Dropped { queue, reason: reason.as_str() },
        };
        self.see(std::iter::once(self.address(entry)), step, effects)
    }

    fn address(&self, entry: &Entry) -> usize {
        self.segments.record(entry).as_ptr() as usize
    }

    /// Only who follows messages is told.
    fn see(
        &self,
        records: impl Iterator<Item = usize>,
        step: impl FnOnce(Arc<str>) -> StepKind,
        effects: &mut Effects,
    ) -> Option<Ended> {
        let tap = self.tap.as_ref().filter(|tap| tap.taps.is_watched())?;
        let (taps, number, step) = (tap.taps.clone(), tap.taps.number(), step(tap.queue.clone()));
        Some(effects.see(Seen { taps, records: records.collect(), number, step, then: None, handed: None }))
    }
}
