//! What exists in the broker: queues, exchanges, bindings, consumers, connections, messages.

use super::Sources;
use super::board::{InOut, Rates};
use super::json;
use crate::broker::ConnectionId;
use crate::broker::view as from;
use crate::model::policy::QueuePolicy;
use crate::model::topology::DestinationKind;
use crate::telemetry::view::Tone;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
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
    /// The policy that rules it.
    pub policy: Option<Arc<str>>,
    /// The operator's policy that rules it as well.
    pub operator_policy: Option<Arc<str>>,
    /// What the two say of it, by the names policies use.
    pub policy_sets: Map<String, Value>,
    pub fates: Fates,
    /// Dead letters that were refused: they are sent again until somebody takes them.
    pub kept: u64,
    /// The consumer that gets everything, where the queue has a single active one.
    pub active_consumer: Option<Arc<str>>,
}

/// What became of messages besides being acked, since the queue was declared.
#[derive(Clone, Copy, Debug, Default, Serialize, ToSchema)]
pub struct Fates {
    pub expired: u64,
    pub purged: u64,
    pub requeued: u64,
    pub rejected: u64,
    /// Dropped from the head of a full queue.
    pub dropped: u64,
    /// Refused because the queue was full.
    pub refused: u64,
    pub dead_lettered: u64,
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
    pub space: Arc<str>,
    pub queue: Arc<str>,
    pub tag: Arc<str>,
    pub connection_id: u64,
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

/// An exchange with what leads to it and from it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExchangeDetail {
    #[serde(flatten)]
    pub exchange: Exchange,
    pub arguments: Map<String, Value>,
    /// At most 1,000; `bindings` has the whole number.
    pub leads_to: Vec<Binding>,
    /// From other exchanges.
    pub fed_by: Vec<Binding>,
}

/// A client's connection with all that is open on it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConnectionDetail {
    #[serde(flatten)]
    pub connection: Connection,
    /// What the client says of itself.
    pub client_properties: Map<String, Value>,
    pub channel_list: Vec<Channel>,
    pub consumer_list: Vec<Consumer>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Channel {
    pub connection_id: u64,
    pub connection: Arc<str>,
    pub space: Arc<str>,
    pub user: Arc<str>,
    pub service: Option<Arc<str>>,
    pub number: u16,
    pub consumers: u64,
    pub unacked: u64,
    /// Publishes on it are confirmed.
    pub confirms: bool,
    /// Unacked deliveries of all its consumers together; 0 is unlimited.
    pub prefetch_global: u32,
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

/// What policies say of a queue, by the names policies use.
pub fn policy_sets(policy: &QueuePolicy) -> Map<String, Value> {
    let numbers = [
        ("message-ttl", policy.message_ttl_ms),
        ("expires", policy.expires_ms),
        ("max-length", policy.max_length),
        ("max-length-bytes", policy.max_length_bytes),
        ("delivery-limit", policy.delivery_limit),
        ("consumer-timeout", policy.consumer_timeout_ms),
    ];
    let texts = [
        ("overflow", policy.overflow.map(|overflow| overflow.as_str())),
        ("dead-letter-exchange", policy.dead_letter_exchange.as_deref()),
        ("dead-letter-routing-key", policy.dead_letter_routing_key.as_deref()),
        ("dead-letter-strategy", policy.dead_letter_strategy.map(|strategy| strategy.as_str())),
    ];
    let numbers = numbers.into_iter().filter_map(|(name, number)| Some((name.to_owned(), Value::from(number?))));
    numbers.chain(texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), Value::from(text?))))).collect()
}

pub fn fates(view: &from::QueueView) -> Fates {
    let of = &view.fates;
    Fates {
        expired: view.counts.expired,
        purged: view.counts.purged,
        requeued: view.counts.requeued,
        rejected: view.counts.rejected,
        dropped: of.dropped,
        refused: of.refused,
        dead_lettered: of.dead_rejected + of.dead_expired + of.dead_maxlen + of.dead_delivery_limit,
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
        space: view.space,
        queue: view.queue,
        connection_id: view.connection.0,
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
    let vhosts = sources.broker.vhosts();
    let every = vhosts.iter().flat_map(|vhost| [vhost.default_exchange()].into_iter().chain(vhost.exchanges()));
    every.map(|view| shape_exchange(view, &rates)).collect()
}

fn shape_exchange(view: from::ExchangeView, rates: &Rates) -> Exchange {
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
}

/// One exchange; `None` if there is none of that name.
pub fn exchange(sources: &Sources, space: &str, name: &str) -> Option<ExchangeDetail> {
    const LISTED_MAX: usize = 1_000;
    let vhost = sources.broker.vhost(space)?;
    let view = match name.is_empty() {
        true => vhost.default_exchange(),
        false => vhost.exchanges().into_iter().find(|exchange| *exchange.name == *name)?,
    };
    let arguments = json::table(&view.arguments);
    let to = |found: &from::BindingView| found.destination_kind == DestinationKind::Exchange && *found.destination == *name;
    let (mut leads_to, mut fed_by) = (Vec::new(), Vec::new());
    for found in vhost.bindings() {
        if to(&found) && fed_by.len() < LISTED_MAX {
            fed_by.push(binding(found.clone()));
        }
        if *found.source == *name && leads_to.len() < LISTED_MAX {
            leads_to.push(binding(found));
        }
    }
    Some(ExchangeDetail { exchange: shape_exchange(view, &sources.board.rates()), arguments, leads_to, fed_by })
}

/// One connection with its channels and consumers; `None` if it is gone.
pub fn connection(sources: &Sources, id: u64) -> Option<ConnectionDetail> {
    let views = sources.broker.connections();
    let rates = sources.board.connection_rates(&views, &sources.clock);
    let (view, rate) = views.into_iter().zip(rates).find(|(view, _)| view.id.0 == id)?;
    let client_properties = json::table(&view.client_properties);
    let consumers = sources.broker.vhost(&view.space).map(|vhost| vhost.consumers()).unwrap_or_default();
    Some(ConnectionDetail {
        connection: shape_connection(view, rate),
        client_properties,
        channel_list: channels(sources).into_iter().filter(|channel| channel.connection_id == id).collect(),
        consumer_list: consumers.into_iter().filter(|found| found.connection.0 == id).map(consumer).collect(),
    })
}

pub fn channels(sources: &Sources) -> Vec<Channel> {
    let connections = sources.broker.connections().into_iter();
    let connections: HashMap<ConnectionId, from::ConnectionView> = connections.map(|view| (view.id, view)).collect();
    let shape = |view: from::ChannelView| {
        let connection = connections.get(&view.connection)?;
        Some(Channel {
            connection_id: view.connection.0,
            connection: connection.name.clone(),
            space: connection.space.clone(),
            user: connection.user.clone(),
            service: connection.services.first().cloned(),
            number: view.number,
            consumers: view.consumers,
            unacked: view.unacked,
            confirms: view.confirms,
            prefetch_global: view.prefetch_global,
        })
    };
    sources.broker.channels().into_iter().filter_map(shape).collect()
}

pub fn connections(sources: &Sources) -> Vec<Connection> {
    let views = sources.broker.connections();
    let rates = sources.board.connection_rates(&views, &sources.clock);
    views.into_iter().zip(rates).map(|(view, rate)| shape_connection(view, rate)).collect()
}

fn shape_connection(view: from::ConnectionView, rate: InOut) -> Connection {
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
}
