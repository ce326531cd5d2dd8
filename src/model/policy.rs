//! What policies make of one queue or exchange. Matching names, priorities and the definitions' own form are the policies'; here is
//! what comes out, which the broker merges with the arguments something was declared with.

use std::fmt;
use std::sync::Arc;

/// Queues of each type behave differently, and policies may apply to one type only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum QueueKind {
    #[default]
    Classic,
    Quorum,
}

impl QueueKind {
    /// `classic`
    pub fn as_str(self) -> &'static str {
        match self {
            QueueKind::Classic => "classic",
            QueueKind::Quorum => "quorum",
        }
    }
}

/// What a queue does with a message that is one too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The oldest ready message goes.
    #[default]
    DropHead,
    /// The new one is refused to its publisher.
    RejectPublish,
    /// The new one is refused to its publisher and dead-lettered.
    RejectPublishDlx,
}

impl Overflow {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "drop-head" => Overflow::DropHead,
            "reject-publish" => Overflow::RejectPublish,
            "reject-publish-dlx" => Overflow::RejectPublishDlx,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Overflow::DropHead => "drop-head",
            Overflow::RejectPublish => "reject-publish",
            Overflow::RejectPublishDlx => "reject-publish-dlx",
        }
    }
}

/// What becomes of a quorum queue's dead letter that is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeadLetterStrategy {
    /// It is lost.
    #[default]
    AtMostOnce,
    /// The queue keeps it and tries again, if the queue itself refuses what is too much ([`Overflow::RejectPublish`]).
    AtLeastOnce,
}

impl DeadLetterStrategy {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "at-most-once" => DeadLetterStrategy::AtMostOnce,
            "at-least-once" => DeadLetterStrategy::AtLeastOnce,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            DeadLetterStrategy::AtMostOnce => "at-most-once",
            DeadLetterStrategy::AtLeastOnce => "at-least-once",
        }
    }
}

/// What one policy, or a user's and an operator's together, says of a queue. `None` says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueuePolicy {
    /// Name of the user's policy that applies.
    pub policy: Option<Arc<str>>,
    /// Name of the operator's policy that applies.
    pub operator_policy: Option<Arc<str>>,
    pub message_ttl_ms: Option<u64>,
    pub expires_ms: Option<u64>,
    pub max_length: Option<u64>,
    pub max_length_bytes: Option<u64>,
    pub delivery_limit: Option<u64>,
    pub consumer_timeout_ms: Option<u64>,
    pub overflow: Option<Overflow>,
    pub dead_letter_exchange: Option<Arc<str>>,
    pub dead_letter_routing_key: Option<Arc<str>>,
    pub dead_letter_strategy: Option<DeadLetterStrategy>,
}

impl QueuePolicy {
    /// The user's policy under the operator's: of two numbers the lower holds, of anything else the operator's word.
    pub fn under(self, operator: QueuePolicy) -> QueuePolicy {
        QueuePolicy {
            policy: self.policy,
            operator_policy: operator.operator_policy,
            message_ttl_ms: lowest(self.message_ttl_ms, operator.message_ttl_ms),
            expires_ms: lowest(self.expires_ms, operator.expires_ms),
            max_length: lowest(self.max_length, operator.max_length),
            max_length_bytes: lowest(self.max_length_bytes, operator.max_length_bytes),
            delivery_limit: lowest(self.delivery_limit, operator.delivery_limit),
            consumer_timeout_ms: lowest(self.consumer_timeout_ms, operator.consumer_timeout_ms),
            overflow: operator.overflow.or(self.overflow),
            dead_letter_exchange: operator.dead_letter_exchange.or(self.dead_letter_exchange),
            dead_letter_routing_key: operator.dead_letter_routing_key.or(self.dead_letter_routing_key),
            dead_letter_strategy: operator.dead_letter_strategy.or(self.dead_letter_strategy),
        }
    }
}

/// What a policy says of an exchange. `None` says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangePolicy {
    /// Name of the policy that applies.
    pub policy: Option<Arc<str>>,
    pub alternate_exchange: Option<Arc<str>>,
}

/// Of two limits the one that bites first.
pub fn lowest(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The policies of one space, as the broker asks them: when something is declared, and again for all when they change.
pub trait Policies: Send + Sync + fmt::Debug {
    fn of_queue(&self, name: &str, kind: QueueKind) -> QueuePolicy;

    fn of_exchange(&self, _name: &str) -> ExchangePolicy {
        ExchangePolicy::default()
    }
}

/// A space without policies.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPolicies;

impl Policies for NoPolicies {
    fn of_queue(&self, _: &str, _: QueueKind) -> QueuePolicy {
        QueuePolicy::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_lowers_numbers_and_has_the_last_word() {
        let user = QueuePolicy {
            policy: Some("mine".into()),
            max_length: Some(10),
            message_ttl_ms: Some(5),
            overflow: Some(Overflow::DropHead),
            ..QueuePolicy::default()
        };
        let operator = QueuePolicy {
            operator_policy: Some("theirs".into()),
            max_length: Some(3),
            message_ttl_ms: Some(50),
            expires_ms: Some(7),
            overflow: Some(Overflow::RejectPublish),
            ..QueuePolicy::default()
        };
        let both = user.under(operator);
        assert_eq!((both.max_length, both.message_ttl_ms, both.expires_ms), (Some(3), Some(5), Some(7)));
        assert_eq!(both.overflow, Some(Overflow::RejectPublish));
        assert_eq!((both.policy.as_deref(), both.operator_policy.as_deref()), (Some("mine"), Some("theirs")));
    }
}
