//! One message by hand: publishing to an exchange, getting from a queue.
//!
//! Both open a connection to the broker for the moment, as every other client does, so that permissions, counters and types of
//! queues hold here too. While the memory alarm holds publishers, a message is refused: nobody waits here.

use super::answer::{Answer, Failure, json};
use super::body::Fields;
use super::connections::OWN_PROTOCOL;
use super::context::ManagementContext;
use super::exchanges::name_of;
use super::guard::Caller;
use crate::api::view::json::table;
use crate::broker::{Client, ConnectionInfo, Failed, Got, Parcel, Refused, Settle, Verdict};
use crate::control;
use crate::kernel::limit::{AMQP_FRAME_BYTES_MAX, SHORT_STRING_BYTES_MAX};
use crate::model::table::Table;
use crate::wire::amqp::method::BasicNack;
use crate::wire::amqp::table::encoded;
use crate::wire::amqp::{self, Properties, PropertyList, RawTable};
use axum::extract::{Path, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Map, Value, json};

const CHANNEL: u16 = 1;
/// Messages and bytes of bodies that one answer holds; a get for more gets so many.
const MESSAGES_MAX: usize = 10_000;
const BYTES_MAX: usize = 64 << 20;

fn connect(context: &ManagementContext, caller: &Caller, space: &str) -> Result<Client, Failure> {
    let principal = caller.enter(context, space)?;
    let info = ConnectionInfo {
        name: "management API".into(),
        peer: "management".into(),
        protocol: OWN_PROTOCOL,
        client_properties: Table::new(),
        frame_max: AMQP_FRAME_BYTES_MAX,
        negotiated: Default::default(),
        supervised: None,
        consumer_cancel_notify: false,
        connection_blocked: false,
    };
    let mut client = context.broker.connect(space, principal, info).ok_or_else(Failure::no_object)?;
    client.begin(context.clock.now());
    client.open_channel(CHANNEL);
    Ok(client)
}

pub async fn publish(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, exchange)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    caller.enter(&context, &space)?;
    fields.must_have(&["routing_key", "payload", "payload_encoding", "properties"])?;
    let payload = fields.text("payload")?.unwrap_or_default();
    let body = match fields.text("payload_encoding")?.unwrap_or_default() {
        "string" => Bytes::copy_from_slice(payload.as_bytes()),
        "base64" => STANDARD.decode(payload).map_err(|_| Failure::bad(vec!["not_base64", payload]))?.into(),
        other => return Err(Failure::bad(vec!["unsupported_encoding", other])),
    };
    let properties = Wished::read(Fields(fields.object("properties")?))?.encoded();
    let routing_key = fields.text("routing_key")?.unwrap_or_default();
    let exchange = name_of(&exchange);
    if routing_key.len() > SHORT_STRING_BYTES_MAX || exchange.len() > SHORT_STRING_BYTES_MAX {
        return Err(Failure::bad("routing_key is longer than 255 bytes"));
    }
    context.broker.takes_messages()?;
    let mut client = connect(&context, &caller, &space)?;
    let message = amqp::Publish {
        channel: CHANNEL,
        exchange,
        routing_key,
        mandatory: true,
        immediate: false,
        properties: Properties::check(&properties).map_err(|_| Failure::bad("the properties are not sound"))?,
        body: amqp::Body::Collected(body),
    };
    let published = client.publish(message).and_then(|()| client.flush());
    let returned = client.link().take(&mut Parcel::default());
    client.close("published");
    published.map_err(refused_publish)?;
    Ok(json(json!({ "routed": !returned })))
}

/// RabbitMQ waits for the answer of a get, and tells what is not there and what is not allowed by their own statuses …
fn refused_get(failed: Failed) -> Failure {
    match &failed.refused {
        Refused::NotFound(what) => Failure::not_found(format!("NOT_FOUND - {what}")),
        Refused::AccessRefused(what) => Failure::not_authorised(format!("ACCESS_REFUSED - {what}")),
        _ => refused_publish(failed),
    }
}

/// … but learns of a publish only by the end of the channel it used, whose reply code it tells.
fn refused_publish(failed: Failed) -> Failure {
    let (code, name) = match &failed.refused {
        Refused::NotFound(_) => (404, "NOT_FOUND"),
        Refused::AccessRefused(_) => (403, "ACCESS_REFUSED"),
        Refused::Locked(_) => (405, "RESOURCE_LOCKED"),
        Refused::Precondition(_) => (406, "PRECONDITION_FAILED"),
        Refused::TooLarge(_) => (311, "CONTENT_TOO_LARGE"),
        Refused::NotImplemented(_) => (540, "NOT_IMPLEMENTED"),
        Refused::NotAllowed(_) => (530, "NOT_ALLOWED"),
        Refused::CommandInvalid(_) => (503, "COMMAND_INVALID"),
    };
    Failure::bad(format!("{code} {name} - {}", failed.refused))
}

/// Properties as a publisher wrote them in JSON.
#[derive(Default)]
struct Wished {
    texts: [Option<String>; 10],
    delivery_mode: Option<u8>,
    priority: Option<u8>,
    timestamp: Option<u64>,
    headers: Table,
}

const TEXTS: [&str; 10] = [
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
];

impl Wished {
    fn read(fields: Fields) -> Result<Self, Failure> {
        let mut wished = Wished::default();
        for (at, name) in TEXTS.into_iter().enumerate() {
            let text = match fields.get(name) {
                Some(Value::Number(number)) => Some(number.to_string()),
                _ => fields.text(name)?.map(str::to_owned),
            };
            if text.as_ref().is_some_and(|text| text.len() > SHORT_STRING_BYTES_MAX) {
                return Err(Failure::bad(format!("{name} is longer than 255 bytes")));
            }
            wished.texts[at] = text;
        }
        let small = |name| match fields.integer(name)? {
            None => Ok(None),
            Some(number) => u8::try_from(number).map(Some).map_err(|_| Failure::bad(vec!["not_int", name])),
        };
        wished.delivery_mode = small("delivery_mode")?;
        wished.priority = small("priority")?;
        wished.timestamp = fields.integer("timestamp")?.and_then(|seconds| u64::try_from(seconds).ok());
        let headers = fields.object("headers")?;
        if headers.keys().any(|name| name.len() > SHORT_STRING_BYTES_MAX) {
            return Err(Failure::bad("a header's name is longer than 255 bytes"));
        }
        wished.headers = control::arguments(&headers, "the message")?;
        Ok(wished)
    }

    fn encoded(&self) -> Vec<u8> {
        let headers = encoded(&self.headers);
        let [content_type, content_encoding, correlation_id, reply_to, expiration, message_id, kind, user_id, app_id, cluster_id] =
            self.texts.each_ref().map(|text| text.as_deref());
        PropertyList {
            content_type,
            content_encoding,
            headers: RawTable::check(&headers).ok().filter(|_| !self.headers.is_empty()),
            delivery_mode: self.delivery_mode,
            priority: self.priority,
            correlation_id,
            reply_to,
            expiration,
            message_id,
            timestamp: self.timestamp,
            kind,
            user_id,
            app_id,
            cluster_id,
        }
        .to_bytes()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum AckMode {
    Keep(Verdict),
    NoAck,
}

pub async fn get(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, queue)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    caller.enter(&context, &space)?;
    fields.must_have(
        &["count", "ackmode", "encoding"]
            .map(|name| if name == "ackmode" && fields.get("requeue").is_some() { "requeue" } else { name }),
    )?;
    let mode = match fields.text("ackmode")? {
        Some("ack_requeue_true" | "reject_requeue_true") => AckMode::Keep(Verdict::Requeue),
        Some("ack_requeue_false") => AckMode::NoAck,
        Some("reject_requeue_false") => AckMode::Keep(Verdict::Discard),
        None if fields.flag("requeue")? == Some(false) => AckMode::NoAck,
        None => AckMode::Keep(Verdict::Requeue),
        Some(_) => {
            let known = "ack_requeue_true, ack_requeue_false, reject_requeue_true or reject_requeue_false";
            return Err(Failure::bad(format!("Unsupported ackmode. Please use {known}.")));
        }
    };
    let as_base64 = match fields.text("encoding")?.unwrap_or_default() {
        "auto" => false,
        "base64" => true,
        _ => return Err(Failure::bad("Unsupported encoding. Please use auto or base64.")),
    };
    let count = fields.integer("count")?.and_then(|count| usize::try_from(count).ok()).unwrap_or(0).min(MESSAGES_MAX);
    let truncate = fields.integer("truncate")?.and_then(|bytes| usize::try_from(bytes).ok());
    if context.vhost(&space).and_then(|vhost| vhost.queue(&queue)).is_none() {
        return Err(Failure::not_found(format!("NOT_FOUND - no queue '{queue}' in vhost '{space}'")));
    }
    let mut client = connect(&context, &caller, &space)?;
    let taken = take(&mut client, &queue, count, mode);
    client.close("got");
    let messages = taken.map_err(refused_get)?;
    Ok(json(messages.iter().map(|message| message.value(as_base64, truncate)).collect::<Vec<_>>()))
}

fn take(client: &mut Client, queue: &str, count: usize, mode: AckMode) -> Result<Vec<Message>, Failed> {
    let (mut messages, mut bytes) = (Vec::new(), 0);
    while messages.len() < count && bytes < BYTES_MAX {
        if client.get(CHANNEL, queue, mode == AckMode::NoAck)? == Got::Empty {
            break;
        }
        let mut parcel = Parcel::default();
        client.link().take(&mut parcel);
        let Some(message) = Message::read(&whole(parcel)) else { break };
        bytes += message.body.len();
        messages.push(message);
    }
    if let AckMode::Keep(verdict) = mode {
        client.settle(CHANNEL, Settle { tag: 0, multiple: true, verdict, by: BasicNack::ID });
    }
    client.flush()?;
    Ok(messages)
}

/// The frames as they would go over the wire.
fn whole(parcel: Parcel) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(parcel.bytes.len() + parcel.large.iter().map(|(_, body)| body.len()).sum::<usize>());
    let mut from = 0;
    for (at, body) in &parcel.large {
        bytes.extend_from_slice(&parcel.bytes[from..*at]);
        bytes.extend_from_slice(body);
        from = *at;
    }
    bytes.extend_from_slice(&parcel.bytes[from..]);
    bytes
}

#[derive(Default)]
struct Message {
    redelivered: bool,
    exchange: String,
    routing_key: String,
    left: u32,
    properties: Vec<u8>,
    body: Vec<u8>,
}

impl Message {
    /// Reads what the broker wrote for one `basic.get`: the method, the content header, the body in frames.
    fn read(mut frames: &[u8]) -> Option<Self> {
        const METHOD: u8 = 1;
        const HEADER: u8 = 2;
        const BODY: u8 = 3;
        let mut message = Message::default();
        while let Some((head, rest)) = frames.split_at_checked(7) {
            let size = u32::from_be_bytes(head[3..7].try_into().ok()?) as usize;
            let (payload, after) = rest.split_at_checked(size)?;
            frames = after.get(1..)?;
            match head[0] {
                // Class 60, method 71: delivery tag, redelivered, exchange, key, count.
                METHOD if payload.get(..4)? == [0, 60, 0, 71] => {
                    message.redelivered = *payload.get(12)? != 0;
                    let (exchange, rest) = short_text(payload.get(13..)?)?;
                    let (key, rest) = short_text(rest)?;
                    (message.exchange, message.routing_key) = (exchange, key);
                    message.left = u32::from_be_bytes(rest.get(..4)?.try_into().ok()?);
                }
                HEADER => message.properties = payload.get(12..)?.to_vec(),
                BODY => message.body.extend_from_slice(payload),
                _ => {}
            }
        }
        Some(message)
    }

    fn value(&self, as_base64: bool, truncate: Option<usize>) -> Value {
        let shown = &self.body[..truncate.unwrap_or(usize::MAX).min(self.body.len())];
        let text = if as_base64 { None } else { std::str::from_utf8(shown).ok() };
        let (payload, encoding) = match text {
            Some(text) => (text.to_owned(), "string"),
            None => (STANDARD.encode(shown), "base64"),
        };
        json!({
            "payload_bytes": self.body.len(),
            "redelivered": self.redelivered,
            "exchange": self.exchange,
            "routing_key": self.routing_key,
            "message_count": self.left,
            "properties": self.properties_value(),
            "payload": payload,
            "payload_encoding": encoding,
        })
    }

    fn properties_value(&self) -> Map<String, Value> {
        let mut values = Map::new();
        let Ok(found) = Properties::check(&self.properties) else { return values };
        let texts = [
            found.content_type(),
            found.content_encoding(),
            found.correlation_id(),
            found.reply_to(),
            found.expiration(),
            found.message_id(),
            found.kind(),
            found.user_id(),
            found.app_id(),
            found.to_list().cluster_id,
        ];
        for (name, text) in TEXTS.into_iter().zip(texts) {
            values.extend(text.map(|text| (name.to_owned(), Value::from(text))));
        }
        values.extend(found.delivery_mode().map(|mode| ("delivery_mode".to_owned(), Value::from(mode))));
        values.extend(found.priority().map(|priority| ("priority".to_owned(), Value::from(priority))));
        values.extend(found.timestamp().map(|seconds| ("timestamp".to_owned(), Value::from(seconds))));
        values.extend(found.headers().map(|raw| ("headers".to_owned(), Value::Object(table(&raw.to_table())))));
        values
    }
}

fn short_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (text, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((String::from_utf8_lossy(text).into_owned(), rest))
}
