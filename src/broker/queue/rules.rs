//! What rules a queue beyond order: its settings as they hold now, and what must be remembered to keep to them. A plain queue has
//! none of this.

use super::Queue;
use super::kept::Kept;
use super::settings::QueueSettings;
use crate::broker::letters::{Letters, Reason};
use crate::broker::vhost::Vhost;
use crate::broker::view::QueueFates;
use crate::kernel::Instant;
use crate::model::policy::{QueueKind, QueuePolicy};
use std::sync::{Arc, Weak};

#[derive(Debug)]
pub(super) struct Rules {
    /// As declared.
    asked: QueueSettings,
    pub policy: QueuePolicy,
    /// What holds: both, merged.
    pub settings: QueueSettings,
    pub vhost: Weak<Vhost>,
    queue: Weak<Queue>,
    name: Arc<str>,
    pub letters: Option<Arc<Letters>>,
    /// Letters that were refused.
    pub kept: Kept,
    /// Bodies of ready messages, in bytes; kept while there is a limit to them.
    pub body_bytes: u64,
    /// Where the next message returned to a quorum queue stands among those that were.
    pub next_return: u64,
    /// When it was last declared, asked for a message, or left by its last consumer (`x-expires`).
    pub used: Instant,
    pub fates: QueueFates,
}

impl Rules {
    /// `None` for a plain queue that no policy is meant for.
    pub fn of(queue: &Arc<Queue>, declared: &Declared<'_>, policy: QueuePolicy, now: Instant) -> Option<Box<Rules>> {
        if declared.settings.is_plain() && policy == QueuePolicy::default() {
            return None;
        }
        let mut rules = Rules {
            asked: declared.settings.clone(),
            policy: QueuePolicy::default(),
            settings: QueueSettings::default(),
            vhost: declared.vhost.clone(),
            queue: Arc::downgrade(queue),
            name: queue.name.clone(),
            letters: None,
            kept: Kept::default(),
            body_bytes: 0,
            next_return: 0,
            used: now,
            fates: QueueFates::default(),
        };
        rules.set_policy(policy);
        Some(Box::new(rules))
    }

    pub fn set_policy(&mut self, policy: QueuePolicy) {
        self.settings = self.asked.under(&policy);
        self.policy = policy;
        let letters = |exchange: Arc<str>| {
            let key = self.settings.dead_letter_routing_key.clone();
            let keeper = self.settings.keeps_letters().then(|| self.queue.clone());
            Arc::new(Letters { vhost: self.vhost.clone(), queue: self.name.clone(), exchange, key, keeper })
        };
        self.letters = self.settings.dead_letter_exchange.clone().map(letters);
    }

    pub fn is_quorum(&self) -> bool {
        self.settings.kind == QueueKind::Quorum
    }

    /// More is ready than may be, and the head must make room for it. A queue that refuses what is too much keeps what it took: more
    /// than its limit may be ready once deliveries come back.
    pub fn is_over(&self, ready_count: u64) -> bool {
        !self.settings.refuses()
            && (self.settings.max_length.is_some_and(|max| ready_count > max)
                || self.settings.max_length_bytes.is_some_and(|max| self.body_bytes > max))
    }

    /// A message becomes a dead letter, if the queue has somewhere for it to go.
    pub fn count(&mut self, reason: Reason) {
        let fates = &mut self.fates;
        if self.letters.is_some() {
            let counter = match reason {
                Reason::Rejected => &mut fates.dead_rejected,
                Reason::Expired => &mut fates.dead_expired,
                Reason::MaxLen => &mut fates.dead_maxlen,
                Reason::DeliveryLimit => &mut fates.dead_delivery_limit,
            };
            *counter += 1;
        }
    }
}

/// What a queue was declared as.
pub(in crate::broker) struct Declared<'a> {
    pub settings: &'a QueueSettings,
    pub vhost: Weak<Vhost>,
}
