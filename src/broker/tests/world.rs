//! For tests: connections without sockets. A [`Peer`] speaks to the broker through its [`Client`] and reads what the broker wrote
//! into its outbox, decoded.

use crate::broker::client::{Client, Consume, Failed, Got, Verdict};
use crate::broker::config::{BrokerConfig, NoAttachments};
use crate::broker::core::Broker;
use crate::broker::declare::DeleteRule;
use crate::broker::link::{ConnectionInfo, Parcel};
use crate::kernel::Clock;
use crate::model::identity::{Permissions, Principal};
use crate::model::table::{Field, Table};
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeKind, ExchangeSpec, QueueSpec};
use crate::wire::amqp::{Body, Method, Properties, PropertyList, Publish};
use std::sync::Arc;

pub(super) struct World {
    pub clock: Clock,
    pub broker: Arc<Broker>,
}

impl World {
    pub fn new() -> Self {
        World::with(BrokerConfig::default())
    }

    pub fn with(config: BrokerConfig) -> Self {
        let clock = Clock::manual(1_700_000_000_000_000_000);
        World { broker: Broker::new(clock.clone(), config, Arc::new(NoAttachments)), clock }
    }

    pub fn connect(&self) -> Peer {
        self.connect_as(Table::new(), 131_072)
    }

    /// A connection with channel 1 open.
    pub fn connect_as(&self, client_properties: Table, frame_max: u32) -> Peer {
        let name = client_properties.get("connection_name").and_then(Field::as_str).unwrap_or("test");
        let info = ConnectionInfo {
            name: name.into(),
            peer: "127.0.0.1:1".into(),
            protocol: "test",
            client_properties,
            frame_max,
            supervised: None,
            consumer_cancel_notify: true,
            connection_blocked: true,
        };
        let client = self.broker.connect("/", Principal::new("guest", Permissions::All), info).expect("the default space");
        let mut peer = Peer { client, clock: self.clock.clone() };
        peer.client.open_channel(1);
        peer
    }
}

pub(super) struct Peer {
    pub client: Client,
    clock: Clock,
}

/// What a client reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// By a consumer's tag, or `get`.
    Message {
        channel: u16,
        by: String,
        tag: u64,
        redelivered: bool,
        exchange: String,
        key: String,
        properties: Vec<u8>,
        body: Vec<u8>,
    },
    Returned {
        code: u16,
        key: String,
        body: Vec<u8>,
    },
    Confirmed {
        channel: u16,
        up_to: u64,
        multiple: bool,
    },
    Cancelled {
        tag: String,
    },
    Other(String),
}

impl Peer {
    fn begin(&mut self) -> &mut Client {
        self.client.begin(self.clock.now());
        &mut self.client
    }

    pub fn flush(&mut self) -> Result<(), Failed> {
        self.client.flush()
    }

    pub fn declare(&mut self, queue: &str) {
        self.try_declare(queue, Table::new()).expect("declared");
    }

    pub fn try_declare(&mut self, queue: &str, arguments: Table) -> Result<(), Failed> {
        let spec = QueueSpec { name: queue.into(), durable: false, exclusive: false, auto_delete: false, arguments };
        self.declare_as(spec)
    }

    pub fn declare_as(&mut self, spec: QueueSpec) -> Result<(), Failed> {
        self.begin().declare_queue(1, spec)?;
        self.flush()
    }

    pub fn exchange(&mut self, name: &str, kind: ExchangeKind) {
        let name = name.to_owned();
        let spec = ExchangeSpec { name, kind, durable: false, auto_delete: false, internal: false, arguments: Table::new() };
        self.begin().declare_exchange(1, &spec).expect("declared");
    }

    pub fn bind(&mut self, queue: &str, exchange: &str, key: &str) -> Result<(), Failed> {
        self.begin().bind(1, binding(queue, exchange, key))?;
        self.flush()
    }

    pub fn delete(&mut self, queue: &str) -> Result<u64, Failed> {
        let count = self.begin().delete_queue(1, queue, DeleteRule::default());
        self.flush()?;
        count
    }

    /// Publishes without flushing.
    pub fn say(&mut self, exchange: &str, key: &str, body: &[u8]) {
        self.say_with(exchange, key, PropertyList::default(), false, body).expect("published");
    }

    pub fn say_with(
        &mut self,
        exchange: &str,
        key: &str,
        properties: PropertyList<'_>,
        mandatory: bool,
        body: &[u8],
    ) -> Result<(), Failed> {
        let bytes = properties.to_bytes();
        let publish = Publish {
            channel: 1,
            exchange,
            routing_key: key,
            mandatory,
            immediate: false,
            properties: Properties::check(&bytes).expect("good properties"),
            body: Body::Slice(body),
        };
        self.begin().publish(publish)
    }

    pub fn publish(&mut self, exchange: &str, key: &str, body: &str) {
        self.say(exchange, key, body.as_bytes());
        self.flush().expect("flushed");
    }

    pub fn consume(&mut self, queue: &str, tag: &str, prefetch: u16, no_ack: bool) -> Result<(), Failed> {
        self.begin().limit_prefetch(1, prefetch, false)?;
        let consume = Consume { queue: queue.into(), tag: tag.into(), no_ack, ..Consume::default() };
        self.client.consume(1, consume)?;
        self.flush()
    }

    pub fn get(&mut self, queue: &str) -> Option<Said> {
        let got = self.begin().get(1, queue, false).expect("got");
        self.flush().expect("flushed");
        match got {
            Got::Message => self.hear().pop(),
            Got::Empty => None,
        }
    }

    pub fn settle(&mut self, tag: u64, multiple: bool, verdict: Verdict) -> Result<(), Failed> {
        self.begin().settle(1, tag, multiple, verdict);
        self.flush()
    }

    pub fn ack(&mut self, tag: u64) {
        self.settle(tag, false, Verdict::Ack).expect("a known tag");
    }

    /// Takes all that waits in the outbox.
    pub fn hear(&mut self) -> Vec<Said> {
        let mut said = Vec::new();
        let mut parcel = Parcel::default();
        while self.client.link().clone().take(&mut parcel) {
            let mut bytes = Vec::new();
            let mut at = 0;
            for (position, large) in &parcel.large {
                bytes.extend_from_slice(&parcel.bytes[at..*position]);
                bytes.extend_from_slice(large);
                at = *position;
            }
            bytes.extend_from_slice(&parcel.bytes[at..]);
            decode(&bytes, &mut said);
        }
        said
    }

    /// As [`Peer::hear`], without the answers that every operation has.
    pub fn news(&mut self) -> Vec<Said> {
        self.hear().into_iter().filter(|said| !matches!(said, Said::Other(_))).collect()
    }

    /// Bodies of the messages among what waits, as `body` or `body*` if redelivered.
    pub fn bodies(&mut self) -> String {
        let body = |said: Said| match said {
            Said::Message { body, redelivered, .. } => {
                Some(format!("{}{}", String::from_utf8_lossy(&body), if redelivered { "*" } else { "" }))
            }
            _ => None,
        };
        self.hear().into_iter().filter_map(body).collect::<Vec<_>>().join(" ")
    }
}

fn decode(mut bytes: &[u8], said: &mut Vec<Said>) {
    while !bytes.is_empty() {
        let (kind, channel, payload) = frame(&mut bytes);
        assert_eq!(kind, 1, "a method begins every message");
        match Method::decode(payload).expect("a well-formed method") {
            Method::BasicDeliver(method) => {
                let (properties, body) = content(&mut bytes, channel);
                said.push(Said::Message {
                    channel,
                    by: method.consumer_tag.into(),
                    tag: method.delivery_tag,
                    redelivered: method.redelivered,
                    exchange: method.exchange.into(),
                    key: method.routing_key.into(),
                    properties,
                    body,
                });
            }
            Method::BasicGetOk(method) => {
                let (properties, body) = content(&mut bytes, channel);
                said.push(Said::Message {
                    channel,
                    by: "get".into(),
                    tag: method.delivery_tag,
                    redelivered: method.redelivered,
                    exchange: method.exchange.into(),
                    key: method.routing_key.into(),
                    properties,
                    body,
                });
            }
            Method::BasicReturn(method) => {
                let (code, key) = (method.reply_code, method.routing_key.into());
                said.push(Said::Returned { code, key, body: content(&mut bytes, channel).1 });
            }
            Method::BasicAck(method) => {
                said.push(Said::Confirmed { channel, up_to: method.delivery_tag, multiple: method.multiple })
            }
            Method::BasicCancel(method) => said.push(Said::Cancelled { tag: method.consumer_tag.into() }),
            other => said.push(Said::Other(other.name().into())),
        }
    }
}

/// A queue's binding without arguments.
pub(super) fn binding(queue: &str, exchange: &str, key: &str) -> BindingSpec {
    BindingSpec {
        source: exchange.into(),
        destination: queue.into(),
        destination_kind: DestinationKind::Queue,
        routing_key: key.into(),
        arguments: Table::new(),
    }
}

fn frame<'b>(bytes: &mut &'b [u8]) -> (u8, u16, &'b [u8]) {
    let size = u32::from_be_bytes(bytes[3..7].try_into().expect("four bytes")) as usize;
    let (kind, channel) = (bytes[0], u16::from_be_bytes([bytes[1], bytes[2]]));
    let payload = &bytes[7..7 + size];
    assert_eq!(bytes[7 + size], 0xCE, "a frame ends where it says");
    *bytes = &bytes[8 + size..];
    (kind, channel, payload)
}

fn content(bytes: &mut &[u8], channel: u16) -> (Vec<u8>, Vec<u8>) {
    let (kind, of, header) = frame(bytes);
    assert_eq!((kind, of), (2, channel), "a header follows");
    let size = u64::from_be_bytes(header[4..12].try_into().expect("eight bytes")) as usize;
    let mut body = Vec::new();
    while body.len() < size {
        let (kind, of, piece) = frame(bytes);
        assert_eq!((kind, of), (3, channel), "the body follows");
        body.extend_from_slice(piece);
    }
    (header[12..].to_vec(), body)
}
