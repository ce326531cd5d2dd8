//! Looking at a queue without changing it.

use super::Queue;
use crate::broker::view::{QueueLoad, QueueView};
use crate::kernel::Instant;
use std::sync::Arc;

impl Queue {
    pub fn ready_count(&self) -> u64 {
        self.state().backlog.ready_count
    }

    pub fn load(&self) -> QueueLoad {
        let state = self.state();
        let backlog = &state.backlog;
        let (ready, unacked, kept) = (backlog.ready_count, backlog.unacked_count, backlog.kept_count());
        QueueLoad { ready, unacked, kept, counts: backlog.counts }
    }

    /// Nothing ever came and nobody waits: there is nothing to measure.
    pub fn is_untouched(&self) -> bool {
        let state = self.state();
        state.consumers.is_empty()
            && state.backlog.counts.published == 0
            && state.backlog.ready_count + state.backlog.unacked_count == 0
    }

    pub fn view(&self, space: &Arc<str>, now: Instant, epoch_ns: u64) -> QueueView {
        let (mut view, unacked_by) = {
            let state = self.state();
            let backlog = &state.backlog;
            let rules = backlog.rules.as_deref();
            let tag_of = |wanted: &dyn Fn(&super::Consumer) -> bool| {
                state.consumers.iter().find(|consumer| wanted(consumer)).map(|consumer| consumer.tag.clone())
            };
            let single = rules.is_some_and(|rules| rules.settings.single_active_consumer);
            let view = QueueView {
                space: space.clone(),
                name: self.name.clone(),
                durable: self.spec.durable,
                exclusive: self.spec.exclusive,
                owner: self.owner,
                auto_delete: self.spec.auto_delete,
                arguments: self.spec.arguments.clone(),
                kind: rules.map(|rules| rules.settings.kind).unwrap_or_default(),
                policy: rules.map(|rules| rules.policy.clone()).unwrap_or_default(),
                active_consumer: tag_of(&|consumer| single && !consumer.is_waiting()),
                exclusive_consumer: tag_of(&|consumer| consumer.exclusive),
                head_timestamp: backlog.head_timestamp(),
                idle_since_ns: epoch_ns + state.touched.as_nanos(),
                not_on_disk: self.spec.durable,
                ready: backlog.ready_count,
                unacked: backlog.unacked_count,
                kept: backlog.kept_count(),
                ready_bytes: backlog.ready_bytes,
                unacked_bytes: backlog.unacked_bytes,
                kept_bytes: backlog.kept_bytes(),
                consumers: state.consumers.len() as u64,
                counts: backlog.counts,
                fates: rules.map(|rules| rules.fates).unwrap_or_default(),
                waits: backlog.waits.clone(),
                oldest_unacked: None,
                oldest_ready: backlog.oldest_ready().map(|at| now.since(at)),
            };
            let consumers = state.consumers.iter().filter(|consumer| consumer.unacked > 0);
            let unacked_by: Vec<_> = consumers.map(|consumer| (consumer.link.clone(), consumer.channel, consumer.slot)).collect();
            (view, unacked_by)
        };
        let ages = unacked_by.iter().filter_map(|(link, channel, slot)| link.oldest_unacked(*channel, *slot, now));
        view.oldest_unacked = ages.max();
        view
    }

    /// Consumers with where to find their unacked deliveries.
    pub(in crate::broker) fn with_consumers<T>(&self, look: impl FnMut(&super::Consumer) -> T) -> Vec<T> {
        self.state().consumers.iter().map(look).collect()
    }
}
