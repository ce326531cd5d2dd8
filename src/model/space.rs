//! A space (virtual host) as it should be, besides the queues and exchanges in it; and the parameters people keep in one.

use super::account::tags;
use super::table::Field;
use super::topology::{QUEUE_TYPE, QueueSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What is said of a space.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Space {
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[serde(default, deserialize_with = "tags")]
    pub tags: Vec<String>,
    /// The `x-queue-type` of queues declared without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_queue_type: Option<String>,
    /// Whether what passes through is copied to `amq.rabbitmq.trace`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub tracing: bool,
    /// What else people keep with it; RabbitMQ repeats description, tags and queue type here.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// What a space may hold; nothing is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpaceLimits {
    #[serde(rename = "max-connections", default, skip_serializing_if = "Option::is_none")]
    pub max_connections: Option<i64>,
    #[serde(rename = "max-queues", default, skip_serializing_if = "Option::is_none")]
    pub max_queues: Option<i64>,
}

/// A runtime parameter of a space.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Parameter {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub vhost: String,
    /// `vhost-limits`, `operator_policy`, or a plugin's.
    #[serde(default)]
    pub component: String,
    #[serde(default)]
    pub name: String,
    #[schema(value_type = Object)]
    pub value: Value,
}

/// A parameter of the whole broker: `cluster_name` and whatever people keep there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GlobalParameter {
    #[serde(default)]
    pub name: String,
    #[schema(value_type = Object)]
    pub value: Value,
}

impl Space {
    pub fn named(name: &str) -> Self {
        Space { name: name.to_owned(), ..Space::default() }
    }

    /// A declaration that names no type gets the space's, unless that type cannot be what is asked.
    pub fn give_type(&self, spec: &mut QueueSpec) {
        let Some(kind) = self.default_queue_type.as_deref() else { return };
        let suits = kind == "classic" || (spec.durable && !spec.exclusive && !spec.auto_delete);
        if suits && spec.arguments.get(QUEUE_TYPE).is_none() {
            spec.arguments.0.push((QUEUE_TYPE.to_owned(), Field::text(kind)));
        }
    }
}

/// The component under which the limits of a space are kept, and their name in it.
pub const LIMITS_COMPONENT: &str = "vhost-limits";
/// The component that operator policies are parameters of.
pub const OPERATOR_POLICY_COMPONENT: &str = "operator_policy";
pub const LIMITS_NAME: &str = "limits";
/// The global parameter that names this broker to its clients.
pub const CLUSTER_NAME: &str = "cluster_name";
/// What the broker and its node are called when nobody says.
pub const CLUSTER_NAME_DEFAULT: &str = "rabbit@reactor";
/// The RabbitMQ that clients and tools are told they speak to; they gate features on it.
pub const RABBITMQ_VERSION: &str = "3.13.7";
