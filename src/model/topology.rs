//! What exists in a space's broker: exchanges, queues and bindings as declared.

use super::table::Table;
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum ExchangeKind {
    Direct,
    Topic,
    Fanout,
    Headers,
    /// `x-consistent-hash`: one queue, by a hash of the key, a header or a property.
    ConsistentHash,
    /// `x-random`: any one queue.
    Random,
    /// `x-local-random`: the same, queues only.
    LocalRandom,
    /// `x-delayed-message`: routes as its `x-delayed-type` once the header `x-delay` has passed.
    Delayed,
}

impl ExchangeKind {
    pub const ALL: [ExchangeKind; 8] = [
        ExchangeKind::Direct,
        ExchangeKind::Topic,
        ExchangeKind::Fanout,
        ExchangeKind::Headers,
        ExchangeKind::ConsistentHash,
        ExchangeKind::Random,
        ExchangeKind::LocalRandom,
        ExchangeKind::Delayed,
    ];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ExchangeKind::Direct => "direct",
            ExchangeKind::Topic => "topic",
            ExchangeKind::Fanout => "fanout",
            ExchangeKind::Headers => "headers",
            ExchangeKind::ConsistentHash => "x-consistent-hash",
            ExchangeKind::Random => "x-random",
            ExchangeKind::LocalRandom => "x-local-random",
            ExchangeKind::Delayed => "x-delayed-message",
        }
    }
}

impl From<ExchangeKind> for &'static str {
    fn from(kind: ExchangeKind) -> Self {
        kind.as_str()
    }
}

/// What a binding leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DestinationKind {
    #[default]
    Queue,
    Exchange,
}

impl DestinationKind {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "queue" => Some(DestinationKind::Queue),
            "exchange" => Some(DestinationKind::Exchange),
            _ => None,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            DestinationKind::Queue => "queue",
            DestinationKind::Exchange => "exchange",
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
    /// Queue or exchange messages go to.
    pub destination: String,
    pub destination_kind: DestinationKind,
    pub routing_key: String,
    pub arguments: Table,
}

/// Exchange that delivers each call to exactly one queue.
pub const CALL_EXCHANGE: &str = "reactor.call";
/// Topic exchange on which services publish events.
pub const EVENT_EXCHANGE: &str = "reactor.event";
/// Topic exchange of every space that tells of its messages while its tracing is on (RabbitMQ's firehose).
pub const TRACE_EXCHANGE: &str = "amq.rabbitmq.trace";
/// Topic exchange of the default space that tells what is created, deleted, connected and so on, wherever.
pub const EVENTS_EXCHANGE: &str = "amq.rabbitmq.event";
/// The argument that says what kind of queue is wanted.
pub const QUEUE_TYPE: &str = "x-queue-type";

/// Whether an exchange exists in every space without being declared.
pub fn is_built_in(exchange: &str) -> bool {
    exchange.is_empty() || exchange.starts_with("amq.") || exchange == CALL_EXCHANGE || exchange == EVENT_EXCHANGE
}

/// The space, or virtual host, that exists without being created.
pub const DEFAULT_SPACE: &str = "/";
