//! Messages as they lie in their queues, decoded for people to read.

use super::json;
use crate::broker::view as from;
use crate::wire::amqp::properties::Properties;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

/// Messages, and how far the look went.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Messages {
    pub messages: Vec<PeekedMessage>,
    /// Messages looked at: more than there are here where a text was searched for.
    pub looked_at: u64,
    pub ready: u64,
    pub unacked: u64,
}

/// A message as it lies in its queue. Looking changes nothing.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PeekedMessage {
    /// Names it within its queue for as long as it is there.
    pub id: u64,
    /// 0 is the head; of unacked messages, the one that is held longest.
    pub position: u64,
    pub exchange: String,
    pub routing_key: String,
    pub redelivered: bool,
    /// Of the whole body.
    pub bytes: u64,
    pub properties: Map<String, Value>,
    pub headers: Map<String, Value>,
    pub body: String,
    /// `utf8` or `base64`.
    pub encoding: &'static str,
    /// `body` holds only the beginning.
    pub truncated: bool,
    pub queued_us: Option<u64>,
    /// Who holds it, if it is unacked.
    pub holder: Option<Holder>,
}

/// Who holds a delivered message that is not acked.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Holder {
    pub connection_id: u64,
    pub connection: Arc<str>,
    pub service: Arc<str>,
    pub channel: u16,
    /// Null for `basic.get`, and for a consumer that was cancelled and left its deliveries unacked.
    pub consumer: Option<Arc<str>>,
    pub delivery_tag: u64,
    pub held_ns: u64,
}

/// What is peeked shows its properties decoded, its body as text where it is text.
pub fn message(view: from::PeekedMessage) -> PeekedMessage {
    let header = header(&view.header);
    let (body, encoding) = json::text(&view.body);
    PeekedMessage {
        id: view.id,
        position: view.position,
        exchange: view.exchange,
        routing_key: view.routing_key,
        redelivered: view.redelivered,
        bytes: view.body_len,
        properties: header.properties,
        headers: header.headers,
        body,
        encoding,
        truncated: (view.body.len() as u64) < view.body_len,
        queued_us: Some(view.queued_ns / 1_000),
        holder: None,
    }
}

pub fn unacked(view: from::UnackedMessage) -> PeekedMessage {
    let from::Holder { connection, connection_name, service, channel, consumer, delivery_tag, held } = view.holder;
    let held_ns = json::nanos(held);
    let holder =
        Holder { connection_id: connection.0, connection: connection_name, service, channel, consumer, delivery_tag, held_ns };
    PeekedMessage { holder: Some(holder), ..message(view.message) }
}

#[derive(Default)]
pub(super) struct Header {
    pub properties: Map<String, Value>,
    pub headers: Map<String, Value>,
}

/// A content header as AMQP frames it: class, weight, body size, then properties (AMQP 0-9-1 §4.2.6.1).
fn header(bytes: &[u8]) -> Header {
    const FIXED: usize = 2 + 2 + 8;
    bytes.get(FIXED..).map(properties).unwrap_or_default()
}

/// Encoded properties, flags first. What is no properties has none.
pub(super) fn properties(bytes: &[u8]) -> Header {
    let Ok(found) = Properties::check(bytes) else { return Header::default() };
    let mut properties = Map::new();
    let texts = [
        ("content_type", found.content_type()),
        ("content_encoding", found.content_encoding()),
        ("correlation_id", found.correlation_id()),
        ("reply_to", found.reply_to()),
        ("expiration", found.expiration()),
        ("message_id", found.message_id()),
        ("type", found.kind()),
        ("user_id", found.user_id()),
        ("app_id", found.app_id()),
    ];
    for (name, value) in texts {
        properties.extend(value.map(|value| (name.to_owned(), Value::from(value))));
    }
    properties.extend(found.delivery_mode().map(|mode| ("delivery_mode".to_owned(), Value::from(mode))));
    properties.extend(found.priority().map(|priority| ("priority".to_owned(), Value::from(priority))));
    properties.extend(found.timestamp().map(|seconds| ("timestamp".to_owned(), Value::from(seconds))));
    let headers = found.headers().map(|raw| json::table(&raw.to_table())).unwrap_or_default();
    Header { properties, headers }
}
