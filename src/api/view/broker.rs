//! What exists in the broker: queues, exchanges, bindings, consumers, connections, messages.

use super::Sources;
use super::board::Rates;
use super::json;
use crate::broker::view as from;
use crate::telemetry::view::Tone;
use crate::wire::amqp::properties::Properties;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Queue {
    pub space: Arc<str>,
    pub name: Arc<str>,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub arguments: Map<String, Value>,
    /// Declared durable, but messages are kept in memory.
    pub not_on_disk: bool,
    pub ready: u64,
    pub unacked: u64,
    pub ready_bytes: u64,
    pub consumers: u64,
    pub in_rate: f64,
    pub out_rate: f64,
    pub ack_rate: f64,
    /// Messages delivered again since it was declared.
    pub redelivered: u64,
    pub wait_p95_ns: Option<u64>,
    pub oldest_unacked_ns: Option<u64>,
    pub tone: Tone,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct QueueDetail {
    #[serde(flatten)]
    pub queue: Queue,
    pub bindings: Vec<Binding>,
    pub consumer_list: Vec<Consumer>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Binding {
    pub source: Arc<str>,
    pub destination: Arc<str>,
    /// `queue` or `exchange`.
    pub destination_type: &'static str,
    pub routing_key: Arc<str>,
    pub arguments: Map<String, Value>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Consumer {
    pub tag: Arc<str>,
    pub connection: Arc<str>,
    pub channel: u16,
    pub service: Option<Arc<str>>,
    /// 0 is unlimited.
    pub prefetch: u32,
    pub no_ack: bool,
    pub exclusive: bool,
    pub unacked: u64,
    pub oldest_unacked_ns: Option<u64>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Exchange {
    pub space: Arc<str>,
    /// Empty for the default exchange.
    pub name: Arc<str>,
    pub kind: &'static str,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    pub bindings: u64,
    /// Messages published to it.
    pub in_rate: f64,
    /// Copies it put into queues.
    pub out_rate: f64,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Connection {
    pub id: u64,
    pub name: Arc<str>,
    pub space: Arc<str>,
    pub user: Arc<str>,
    pub peer: Arc<str>,
    pub protocol: &'static str,
    pub client: Arc<str>,
    pub service: Option<Arc<str>>,
    pub channels: u64,
    pub consumers: u64,
    pub in_bytes_rate: f64,
    pub out_bytes_rate: f64,
    pub since_us: u64,
    pub blocked: bool,
}

/// A message as it lies in its queue. Looking changes nothing.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PeekedMessage {
    /// 0 is the head.
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
}

pub fn queues(sources: &Sources) -> Vec<Queue> {
    let rates = sources.board.rates();
    sources.broker.vhosts().iter().flat_map(|vhost| vhost.queues()).map(|view| queue(view, &rates)).collect()
}

pub fn queue(view: from::QueueView, rates: &Rates) -> Queue {
    let rate = rates.queues.get(&(view.space.clone(), view.name.clone())).copied().unwrap_or_default();
    Queue {
        durable: view.durable,
        exclusive: view.exclusive,
        auto_delete: view.auto_delete,
        arguments: json::table(&view.arguments),
        not_on_disk: view.not_on_disk,
        ready: view.ready,
        unacked: view.unacked,
        ready_bytes: view.ready_bytes,
        consumers: view.consumers,
        in_rate: rate.in_rate,
        out_rate: rate.out_rate,
        ack_rate: rate.ack_rate,
        redelivered: view.counts.redelivered,
        wait_p95_ns: rate.wait_p95_ns,
        oldest_unacked_ns: view.oldest_unacked.map(json::nanos),
        tone: rate.tone,
        space: view.space,
        name: view.name,
    }
}

pub fn binding(view: from::BindingView) -> Binding {
    Binding {
        source: view.source,
        destination: view.destination,
        destination_type: view.destination_kind.as_str(),
        routing_key: view.routing_key,
        arguments: json::table(&view.arguments),
    }
}

pub fn consumer(view: from::ConsumerView) -> Consumer {
    Consumer {
        tag: view.tag,
        connection: view.connection_name,
        channel: view.channel,
        service: view.service,
        prefetch: view.prefetch,
        no_ack: view.no_ack,
        exclusive: view.exclusive,
        unacked: view.unacked,
        oldest_unacked_ns: view.oldest_unacked.map(json::nanos),
    }
}

pub fn exchanges(sources: &Sources) -> Vec<Exchange> {
    let rates = sources.board.rates();
    let shape = |view: from::ExchangeView| {
        let rate = rates.exchanges.get(&(view.space.clone(), view.name.clone())).copied().unwrap_or_default();
        Exchange {
            space: view.space,
            name: view.name,
            kind: view.kind.as_str(),
            durable: view.durable,
            auto_delete: view.auto_delete,
            internal: view.internal,
            bindings: view.bindings,
            in_rate: rate.in_rate,
            out_rate: rate.out_rate,
        }
    };
    sources.broker.vhosts().iter().flat_map(|vhost| vhost.exchanges()).map(shape).collect()
}

pub fn connections(sources: &Sources) -> Vec<Connection> {
    let rates = sources.board.rates();
    let shape = |view: from::ConnectionView| {
        let rate = rates.connections.get(&view.id).copied().unwrap_or_default();
        Connection {
            id: view.id.0,
            name: view.name,
            space: view.space,
            user: view.user,
            peer: view.peer,
            protocol: view.protocol,
            client: view.client,
            service: view.services.first().cloned(),
            channels: view.channels,
            consumers: view.consumers,
            in_bytes_rate: rate.in_rate,
            out_bytes_rate: rate.out_rate,
            since_us: view.since_ns / 1_000,
            blocked: view.blocked,
        }
    };
    sources.broker.connections().into_iter().map(shape).collect()
}

/// What is peeked shows its properties decoded, its body as text where it is text.
pub fn message(view: from::PeekedMessage) -> PeekedMessage {
    let header = header(&view.header);
    let (body, encoding) = json::text(&view.body);
    PeekedMessage {
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
    }
}

#[derive(Default)]
struct Header {
    properties: Map<String, Value>,
    headers: Map<String, Value>,
}

/// A content header as AMQP frames it: class, weight, body size, then properties (AMQP 0-9-1 §4.2.6.1).
fn header(bytes: &[u8]) -> Header {
    const FIXED: usize = 2 + 2 + 8;
    let Some(Ok(found)) = bytes.get(FIXED..).map(Properties::check) else { return Header::default() };
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
