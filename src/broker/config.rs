//! What the broker is given when it is made: its limits and the port to whoever keeps track of attached services.

use crate::kernel::limit;
use crate::model::service::{InstanceName, ServiceName};
use crate::model::space::CLUSTER_NAME_DEFAULT;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct BrokerConfig {
    /// What events and the firehose call this broker.
    pub node: String,
    /// Bytes of messages over all queues, ready and unacked. Beyond it publishers are blocked (`connection.blocked`) until the
    /// level is back at four fifths (`limits.queue_bytes_max`).
    pub queue_bytes_max: u64,
    /// How long a consumer may keep a delivery unacked before its channel is closed; queues may say otherwise
    /// (`limits.consumer_timeout`).
    pub consumer_timeout: Duration,
    /// Whether a publish without `traceparent` may inherit one from what its connection is working on (contract §8).
    pub infer_parents: bool,
    /// Messages of one space that wait in delaying exchanges; the next one is refused.
    pub delayed_messages_max: usize,
}

impl Default for BrokerConfig {
    fn default() -> Self {
        let consumer_timeout = Duration::from_millis(limit::CONSUMER_TIMEOUT_MS);
        let delayed_messages_max = limit::DELAYED_MESSAGES_MAX;
        let node = CLUSTER_NAME_DEFAULT.to_owned();
        BrokerConfig { node, queue_bytes_max: 1 << 30, consumer_timeout, infer_parents: true, delayed_messages_max }
    }
}

/// Names one connection for as long as the process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
pub struct ConnectionId(pub u64);

/// A connection that has become an instance of a service (contract §7): it consumes a queue bound to `reactor.call` or
/// `reactor.event`. One connection may be an instance of several services.
#[derive(Clone, Debug, PartialEq)]
pub struct Attachment {
    pub space: Arc<str>,
    pub service: ServiceName,
    pub instance: InstanceName,
    pub connection: ConnectionId,
    /// The supervisor started this process, so the instance already stands in the registry under this name.
    pub supervised: bool,
    pub how: AttachmentHow,
    /// From the client's properties: `python`, `node`, `rust`, ….
    pub language: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AttachmentHow {
    /// Answers calls: its queue is bound to `reactor.call`.
    Calls,
    /// Only listens: its queue is bound to `reactor.event`.
    Events,
}

/// Learns who attached. Called without any broker lock held; must not block.
pub trait Attachments: Send + Sync {
    fn attached(&self, attachment: &Attachment);
    /// Names an attachment given to `attached` before; `reason` in words.
    fn detached(&self, attachment: &Attachment, reason: &str);
}

/// For tests and benches: nobody keeps track.
pub struct NoAttachments;

impl Attachments for NoAttachments {
    fn attached(&self, _: &Attachment) {}
    fn detached(&self, _: &Attachment, _: &str) {}
}
