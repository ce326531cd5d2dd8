//! `POST /api/v1/publish`: one message by hand, for trying things out.

use super::broker::no_space;
use crate::api::ApiContext;
use crate::api::params::Body;
use crate::api::problem::Problem;
use crate::broker::{Actor, Client, ConnectionInfo, Parcel};
use crate::control;
use crate::kernel::limit::{AMQP_FRAME_BYTES_MAX, SHORT_STRING_BYTES_MAX};
use crate::model::identity::Principal;
use crate::model::refusal::Refusal;
use crate::model::table::Table;
use crate::model::topology::DEFAULT_SPACE;
use crate::wire::amqp::table::encoded;
use crate::wire::amqp::{self, Properties, PropertyList, RawTable};
use axum::extract::{ConnectInfo, State};
use axum::{Extension, Json};
use base64::Engine as _;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::net::SocketAddr;
use std::sync::Arc;
use utoipa::ToSchema;

const CHANNEL: u16 = 1;

/// A message and where to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishWish {
    #[serde(default = "default_space")]
    #[schema(default = "/")]
    space: String,
    /// Empty is the default exchange, which routes to the queue named by the key.
    #[serde(default)]
    exchange: String,
    #[serde(default)]
    routing_key: String,
    #[serde(default)]
    body: String,
    /// Whether `body` is text or base64.
    #[serde(default)]
    #[schema(inline)]
    encoding: BodyEncoding,
    #[serde(default)]
    properties: WishedProperties,
    #[serde(default)]
    headers: Map<String, Value>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum BodyEncoding {
    #[default]
    Utf8,
    Base64,
}

/// The basic properties of AMQP 0-9-1 that a publisher may set.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WishedProperties {
    content_type: Option<String>,
    content_encoding: Option<String>,
    delivery_mode: Option<u8>,
    priority: Option<u8>,
    correlation_id: Option<String>,
    reply_to: Option<String>,
    /// Milliseconds, as text.
    expiration: Option<String>,
    message_id: Option<String>,
    /// Seconds since 1970.
    timestamp: Option<u64>,
    #[serde(rename = "type")]
    kind: Option<String>,
    app_id: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct Published {
    /// At least one queue took it.
    pub routed: bool,
}

fn default_space() -> String {
    DEFAULT_SPACE.to_owned()
}

/// Publishes one message. A message that no queue takes is dropped and said so; none is taken while publishers are held.
#[utoipa::path(post, path = "/api/v1/publish", tag = "broker", request_body = PublishWish, responses(
    (status = 200, body = Published), (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 503, description = "the memory alarm is on", body = Problem)))]
pub async fn publish(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    Body(wish): Body<PublishWish>,
) -> Result<Json<Published>, Problem> {
    wish.check()?;
    context.sources.broker.takes_messages()?;
    let body = wish.body()?;
    let headers = control::arguments(&wish.headers, "the message")?;
    let properties = wish.properties.encoded(&headers);
    let mut client = context.sources.broker.connect(&wish.space, by, info(peer)).ok_or_else(|| no_space(&wish.space))?;
    let routed = send(&mut client, &context, &wish, &properties, body);
    client.close("published");
    Ok(Json(Published { routed: routed? }))
}

/// Where a message might go.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteWish {
    #[serde(default = "default_space")]
    #[schema(default = "/")]
    space: String,
    /// Empty is the default exchange.
    #[serde(default)]
    exchange: String,
    #[serde(default)]
    routing_key: String,
    #[serde(default)]
    headers: Map<String, Value>,
}

/// Where a message would go.
#[derive(Debug, Serialize, ToSchema)]
pub struct WouldRoute {
    /// None: it would be dropped, or returned if it is mandatory.
    pub queues: Vec<Arc<str>>,
    /// The key it would be delivered with, if not the one given.
    pub routing_key: Option<String>,
}

/// Says which queues a message would reach, without publishing it.
#[utoipa::path(post, path = "/api/v1/route", tag = "broker", request_body = RouteWish, responses(
    (status = 200, body = WouldRoute), (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub async fn route(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    Body(wish): Body<RouteWish>,
) -> Result<Json<WouldRoute>, Problem> {
    let vhost = context.sources.broker.vhost(&wish.space).ok_or_else(|| no_space(&wish.space))?;
    let headers = control::arguments(&wish.headers, "the message")?;
    let properties = WishedProperties::default().encoded(&headers);
    let properties = Properties::check(&properties).expect("properties just encoded are sound");
    let actor = Actor { principal: &by, connection: None };
    let would = vhost.would_route(&wish.exchange, &wish.routing_key, properties, actor).map_err(Refusal::from)?;
    Ok(Json(WouldRoute { queues: would.queues, routing_key: would.key }))
}

impl PublishWish {
    fn check(&self) -> Result<(), Problem> {
        let properties = &self.properties;
        let texts = [
            ("exchange", Some(&self.exchange)),
            ("routing_key", Some(&self.routing_key)),
            ("content_type", properties.content_type.as_ref()),
            ("content_encoding", properties.content_encoding.as_ref()),
            ("correlation_id", properties.correlation_id.as_ref()),
            ("reply_to", properties.reply_to.as_ref()),
            ("expiration", properties.expiration.as_ref()),
            ("message_id", properties.message_id.as_ref()),
            ("type", properties.kind.as_ref()),
            ("app_id", properties.app_id.as_ref()),
        ];
        let names = self.headers.keys().map(|name| ("a header's name", Some(name)));
        for (name, text) in texts.into_iter().chain(names) {
            if let Some(length) = text.map(String::len).filter(|length| *length > SHORT_STRING_BYTES_MAX) {
                return Err(Problem::invalid(format!("{name} has {length} bytes")).next("use at most 255"));
            }
        }
        Ok(())
    }

    fn body(&self) -> Result<Bytes, Problem> {
        match self.encoding {
            BodyEncoding::Utf8 => Ok(Bytes::copy_from_slice(self.body.as_bytes())),
            BodyEncoding::Base64 => base64::engine::general_purpose::STANDARD
                .decode(&self.body)
                .map(Bytes::from)
                .map_err(|error| Problem::invalid(format!("body is not base64: {error}")).next("or send encoding: utf8")),
        }
    }
}

impl WishedProperties {
    fn encoded(&self, headers: &Table) -> Vec<u8> {
        let headers = (!headers.is_empty()).then(|| encoded(headers));
        let list = PropertyList {
            content_type: self.content_type.as_deref(),
            content_encoding: self.content_encoding.as_deref(),
            headers: headers.as_deref().map(|bytes| RawTable::check(bytes).expect("a table just encoded is sound")),
            delivery_mode: self.delivery_mode,
            priority: self.priority,
            correlation_id: self.correlation_id.as_deref(),
            reply_to: self.reply_to.as_deref(),
            expiration: self.expiration.as_deref(),
            message_id: self.message_id.as_deref(),
            timestamp: self.timestamp,
            kind: self.kind.as_deref(),
            user_id: None,
            app_id: self.app_id.as_deref(),
            cluster_id: None,
        };
        list.to_bytes()
    }
}

/// Publishes as mandatory: what comes back was not routed.
fn send(client: &mut Client, context: &ApiContext, wish: &PublishWish, properties: &[u8], body: Bytes) -> Result<bool, Problem> {
    client.open_channel(CHANNEL);
    client.begin(context.clock.now());
    let message = amqp::Publish {
        channel: CHANNEL,
        exchange: &wish.exchange,
        routing_key: &wish.routing_key,
        mandatory: true,
        immediate: false,
        properties: Properties::check(properties).expect("properties just encoded are sound"),
        body: amqp::Body::Collected(body),
    };
    let published = client.publish(message).and_then(|()| client.flush());
    published.map_err(|failed| Problem::from(Refusal::from(failed.refused)))?;
    Ok(!client.link().take(&mut Parcel::default()))
}

fn info(peer: SocketAddr) -> ConnectionInfo {
    ConnectionInfo {
        name: "control API".into(),
        peer: peer.to_string().into(),
        protocol: "HTTP",
        client_properties: Table::new(),
        frame_max: AMQP_FRAME_BYTES_MAX,
        negotiated: Default::default(),
        supervised: None,
        consumer_cancel_notify: false,
        connection_blocked: false,
    }
}
