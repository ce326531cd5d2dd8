//! What exists in a space's broker: exchanges, queues and bindings as declared.

use super::table::Table;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ExchangeKind {
    Direct,
    Topic,
    Fanout,
    Headers,
}

impl ExchangeKind {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "direct" => ExchangeKind::Direct,
            "topic" => ExchangeKind::Topic,
            "fanout" => ExchangeKind::Fanout,
            "headers" => ExchangeKind::Headers,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ExchangeKind::Direct => "direct",
            ExchangeKind::Topic => "topic",
            ExchangeKind::Fanout => "fanout",
            ExchangeKind::Headers => "headers",
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeSpec {
    pub name: String,
    pub kind: ExchangeKind,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    pub arguments: Table,
}

#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    pub name: String,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub arguments: Table,
}

#[derive(Clone, Debug, PartialEq)]
pub struct BindingSpec {
    /// Exchange messages come from.
    pub source: String,
    /// Queue messages go to.
    pub queue: String,
    pub routing_key: String,
    pub arguments: Table,
}

/// Exchange that delivers each call to exactly one queue.
pub const CALL_EXCHANGE: &str = "reactor.call";
/// Topic exchange on which services publish events.
pub const EVENT_EXCHANGE: &str = "reactor.event";
/// The space, or virtual host, that exists without being created.
pub const DEFAULT_SPACE: &str = "/";
