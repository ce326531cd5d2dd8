//! Policies as people write them: arguments given to queues and exchanges by pattern, and the limits that operators set above
//! them. What they make of one queue is worked out elsewhere.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A policy or an operator policy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vhost: String,
    #[serde(default)]
    pub name: String,
    pub pattern: String,
    #[serde(rename = "apply-to", default)]
    pub apply_to: ApplyTo,
    /// `max-length`, `message-ttl`, `alternate-exchange`, …
    #[schema(value_type = Object)]
    pub definition: Map<String, Value>,
    /// Of those that match the highest counts, alone.
    #[serde(default)]
    pub priority: i64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ApplyTo {
    #[default]
    All,
    Queues,
    ClassicQueues,
    QuorumQueues,
    Streams,
    Exchanges,
}

impl ApplyTo {
    pub const ALL: [ApplyTo; 6] =
        [ApplyTo::All, ApplyTo::Queues, ApplyTo::ClassicQueues, ApplyTo::QuorumQueues, ApplyTo::Streams, ApplyTo::Exchanges];

    pub fn as_str(self) -> &'static str {
        match self {
            ApplyTo::All => "all",
            ApplyTo::Queues => "queues",
            ApplyTo::ClassicQueues => "classic_queues",
            ApplyTo::QuorumQueues => "quorum_queues",
            ApplyTo::Streams => "streams",
            ApplyTo::Exchanges => "exchanges",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    pub fn takes_exchanges(self) -> bool {
        matches!(self, ApplyTo::All | ApplyTo::Exchanges)
    }

    /// `kind` is a queue's `x-queue-type`.
    pub fn takes_queues(self, kind: &str) -> bool {
        match self {
            ApplyTo::All | ApplyTo::Queues => true,
            ApplyTo::ClassicQueues => kind == "classic",
            ApplyTo::QuorumQueues => kind == "quorum",
            ApplyTo::Streams => kind == "stream",
            ApplyTo::Exchanges => false,
        }
    }
}
