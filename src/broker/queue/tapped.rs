//! What a queue tells whoever looks at its messages; nothing while nobody does.

use super::backlog::Backlog;
use super::entry::Entry;
use super::{Queue, Settling};
use crate::broker::effects::Effects;
use crate::broker::journey::StepKind;
use crate::broker::letters::Reason;
use crate::broker::link::Link;
use crate::broker::tap::{HandedOver, QueueTap, Seen, Taps};
use bytes::Bytes;
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
        let record = self.segments.record(entry).as_ptr() as usize;
        effects.see(Seen { taps: tap.taps.clone(), record, step, then: None, handed });
    }

    /// Its record must still be here. What is rejected is seen when it is buried.
    #[cold]
    pub fn see_settled(&self, entry: &Entry, settling: Settling, effects: &mut Effects) {
        let Some(queue) = self.tap.as_ref().map(|tap| tap.queue.clone()) else { return };
        let step = match settling {
            Settling::Acked => StepKind::Acked { queue },
            Settling::Forgotten => StepKind::Dropped { queue, reason: "its worker is gone" },
            Settling::Requeued | Settling::Returned => StepKind::Requeued { queue },
            Settling::Rejected => return,
        };
        self.see(entry, step, None, effects);
    }

    #[cold]
    pub fn see_buried(&self, entry: &Entry, reason: Reason, effects: &mut Effects) {
        let Some(queue) = self.tap.as_ref().map(|tap| tap.queue.clone()) else { return };
        let letters = self.rules.as_ref().and_then(|rules| rules.letters.as_ref());
        let then = letters.map(|letters| StepKind::DeadLettered { queue: queue.clone(), exchange: letters.exchange.clone() });
        let step = match reason {
            Reason::Rejected => StepKind::Rejected { queue },
            Reason::Expired => StepKind::Expired { queue },
            Reason::MaxLen | Reason::DeliveryLimit => StepKind::Dropped { queue, reason: reason.as_str() },
        };
        self.see(entry, step, then, effects);
    }

    fn see(&self, entry: &Entry, step: StepKind, then: Option<StepKind>, effects: &mut Effects) {
        let Some(tap) = &self.tap else { return };
        let record = self.segments.record(entry).as_ptr() as usize;
        effects.see(Seen { taps: tap.taps.clone(), record, step, then, handed: None });
    }
}
