//! What exists and what flows, as values: read-only snapshots for the API and the live feed. Taking one changes nothing.
//!
//! Counters only grow; whoever shows rates keeps the previous snapshot.

use super::config::ConnectionId;
use super::flow::Flow;
use super::link::Negotiated;
use super::queue::Waits;
use crate::model::policy::{QueueKind, QueuePolicy};
use crate::model::table::Table;
use crate::model::topology::{DestinationKind, ExchangeKind};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct QueueView {
    pub space: Arc<str>,
    pub name: Arc<str>,
    pub durable: bool,
    pub exclusive: bool,
    /// Whose exclusive queue it is.
    pub owner: Option<ConnectionId>,
    pub auto_delete: bool,
    pub arguments: Table,
    pub kind: QueueKind,
    /// What policies make of it, with their names.
    pub policy: QueuePolicy,
    /// The only consumer that gets messages, if the queue knows such a one.
    pub active_consumer: Option<Arc<str>>,
    /// Its exclusive consumer.
    pub exclusive_consumer: Option<Arc<str>>,
    /// When the message at its head says it was sent, in Unix seconds.
    pub head_timestamp: Option<u64>,
    /// Since when nothing was published to it, delivered or settled, in Unix nanoseconds.
    pub idle_since_ns: u64,
    /// Declared durable, yet messages are kept in memory only.
    pub not_on_disk: bool,
    pub ready: u64,
    pub unacked: u64,
    /// Dead letters that were refused and will be sent again.
    pub kept: u64,
    pub ready_bytes: u64,
    pub unacked_bytes: u64,
    pub kept_bytes: u64,
    pub consumers: u64,
    pub counts: QueueCounts,
    pub fates: QueueFates,
    /// How long delivered messages had waited; two views give the distribution in between.
    pub waits: Waits,
    /// How long the message that waits longest for its ack has been out.
    pub oldest_unacked: Option<Duration>,
    /// How long the message at the head has waited.
    pub oldest_ready: Option<Duration>,
}

impl QueueView {
    pub fn messages(&self) -> u64 {
        self.ready + self.unacked + self.kept
    }

    pub fn message_bytes(&self) -> u64 {
        self.ready_bytes + self.unacked_bytes + self.kept_bytes
    }
}

/// What of a queue moves, without what it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueueLoad {
    pub ready: u64,
    pub unacked: u64,
    pub kept: u64,
    pub counts: QueueCounts,
}

/// What of a connection moves.
#[derive(Clone, Debug)]
pub struct LinkLoad {
    pub id: ConnectionId,
    pub space: Arc<str>,
    pub in_bytes: u64,
    pub out_bytes: u64,
    pub channels: Vec<(u16, Flow)>,
}

/// Counters of one queue since it was declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueCounts {
    pub published: u64,
    /// By consumers and `basic.get`.
    pub delivered: u64,
    /// Of `delivered`, those to consumers that do not acknowledge.
    pub delivered_no_ack: u64,
    /// Of `delivered`, those by `basic.get` with and without acknowledgement.
    pub got: u64,
    pub got_no_ack: u64,
    /// `basic.get` that found nothing.
    pub got_empty: u64,
    pub acked: u64,
    pub redelivered: u64,
    pub expired: u64,
    pub purged: u64,
    /// Put back after having been delivered.
    pub requeued: u64,
    /// By clients, without asking for them back.
    pub rejected: u64,
}

/// What became of messages in queues that have rules, since the queue was declared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFates {
    /// The queue was full and they were its oldest.
    pub dropped: u64,
    /// The queue was full and told their publishers so.
    pub refused: u64,
    /// Came back more often than the delivery limit allows.
    pub over_limit: u64,
    /// Sent to the dead-letter exchange, by reason.
    pub dead_rejected: u64,
    pub dead_expired: u64,
    pub dead_maxlen: u64,
    pub dead_delivery_limit: u64,
}

#[derive(Clone, Debug)]
pub struct ExchangeView {
    pub space: Arc<str>,
    pub name: Arc<str>,
    pub kind: ExchangeKind,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    pub arguments: Table,
    pub bindings: u64,
    /// Name of the policy that applies.
    pub policy: Option<Arc<str>>,
    /// Messages that wait in it for their time.
    pub delayed: u64,
    /// Messages published to it.
    pub published: u64,
    /// Copies it put into queues.
    pub routed: u64,
}

#[derive(Clone, Debug)]
pub struct BindingView {
    pub space: Arc<str>,
    pub source: Arc<str>,
    pub destination: Arc<str>,
    pub destination_kind: DestinationKind,
    pub routing_key: Arc<str>,
    pub arguments: Table,
}

#[derive(Clone, Debug)]
pub struct ConnectionView {
    pub id: ConnectionId,
    /// `peer -> local`, or the client's own `connection_name`.
    pub name: Arc<str>,
    pub space: Arc<str>,
    pub user: Arc<str>,
    pub peer: Arc<str>,
    pub protocol: &'static str,
    pub negotiated: Negotiated,
    pub frame_max: u32,
    /// Product and version from the client's properties.
    pub client: Arc<str>,
    pub client_properties: Table,
    /// The services this connection is an instance of, or the one it names itself after.
    pub services: Vec<Arc<str>>,
    pub channels: u64,
    pub consumers: u64,
    pub in_bytes: u64,
    pub out_bytes: u64,
    /// Unix nanoseconds.
    pub since_ns: u64,
    /// Bytes that wait to be sent.
    pub waiting_bytes: u64,
    /// Reads are stopped by the memory alarm.
    pub blocked: bool,
}

#[derive(Clone, Debug)]
pub struct ChannelView {
    pub connection: ConnectionId,
    pub number: u16,
    pub consumers: u64,
    pub unacked: u64,
    pub confirms: bool,
    pub transactional: bool,
    /// What a new consumer gets; 0 is unlimited.
    pub prefetch: u32,
    pub flow: Flow,
    pub prefetch_global: u32,
}

#[derive(Clone, Debug)]
pub struct ConsumerView {
    pub space: Arc<str>,
    pub queue: Arc<str>,
    pub tag: Arc<str>,
    pub connection: ConnectionId,
    pub connection_name: Arc<str>,
    pub channel: u16,
    pub service: Option<Arc<str>>,
    /// 0 is unlimited.
    pub prefetch: u32,
    pub no_ack: bool,
    pub exclusive: bool,
    /// Waits for its turn to be the queue's single active consumer.
    pub waiting: bool,
    pub priority: i64,
    pub arguments: Table,
    pub unacked: u64,
    pub oldest_unacked: Option<Duration>,
    /// How long it may keep a delivery; then its channel is closed.
    pub timeout: Duration,
}

/// A message as it lies in its queue; reading it changes nothing.
#[derive(Clone, Debug)]
pub struct PeekedMessage {
    /// Names it within its queue for as long as it is there.
    pub id: u64,
    /// 0 is the head; of unacked messages, the one that is held longest.
    pub position: u64,
    pub exchange: String,
    pub routing_key: String,
    pub redelivered: bool,
    /// The content header as received: class, weight, body size, property flags and properties.
    pub header: Bytes,
    pub body_len: u64,
    /// Cut where the caller asked.
    pub body: Bytes,
    /// Unix nanoseconds.
    pub queued_ns: u64,
}

/// Who holds a delivered message.
#[derive(Clone, Debug)]
pub struct Holder {
    pub connection: ConnectionId,
    pub connection_name: Arc<str>,
    pub service: Arc<str>,
    pub channel: u16,
    /// Its tag; `None` for `basic.get`, and for a consumer that was cancelled and left its deliveries unacked.
    pub consumer: Option<Arc<str>>,
    pub delivery_tag: u64,
    pub held: Duration,
}

/// A delivered message that waits for its ack.
#[derive(Clone, Debug)]
pub struct UnackedMessage {
    pub message: PeekedMessage,
    pub holder: Holder,
}

/// What came and went since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Churn {
    pub connections_opened: u64,
    pub connections_closed: u64,
    pub channels_opened: u64,
    pub channels_closed: u64,
    /// Declarations, of what existed too.
    pub queues_declared: u64,
    pub queues_created: u64,
    pub queues_deleted: u64,
}

/// Totals of the whole broker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    pub spaces: u64,
    pub queues: u64,
    pub exchanges: u64,
    pub connections: u64,
    pub channels: u64,
    pub consumers: u64,
    pub published: u64,
    pub confirmed: u64,
    pub delivered: u64,
    pub acked: u64,
    pub unroutable: u64,
    /// Replies to an address nobody waits at.
    pub replies_dropped: u64,
    /// Messages held, in bytes, ready and unacked.
    pub queue_bytes: u64,
    pub queue_bytes_max: u64,
    /// Publishers are being held.
    pub alarm: bool,
}
