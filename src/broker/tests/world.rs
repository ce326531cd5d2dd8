//! For tests: connections without sockets. A [`Peer`] speaks to the broker through its [`Client`] and reads what the broker wrote
//! into its outbox, decoded.

use crate::broker::client::{Client, Consume, Failed, Got, Settle, Verdict};
use crate::broker::config::{BrokerConfig, NoAttachments};
use crate::broker::core::Broker;
use crate::broker::declare::DeleteRule;
use crate::broker::link::{ConnectionInfo, Parcel};
use crate::broker::view::QueueView;
use crate::kernel::Clock;
use crate::model::identity::{Permissions, Principal};
use crate::model::table::{Field, Table};
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeKind, ExchangeSpec, QueueSpec};
use crate::wire::amqp::method::{BasicAck, BasicNack};
use crate::wire::amqp::{Body, Method, Properties, PropertyList, Publish};
use std::sync::Arc;
use std::time::Duration;

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

    pub fn view(&self, queue: &str) -> QueueView {
        self.broker.vhost("/").expect("the space").queue(queue).expect("the queue")
    }

    pub fn has_queue(&self, queue: &str) -> bool {
        self.broker.vhost("/").expect("the space").queue(queue).is_some()
    }

    /// Time passes, and what is due is done.
    pub fn wait(&self, millis: u64) {
        self.clock.advance(Duration::from_millis(millis));
        self.broker.run_due();
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
            negotiated: Default::default(),
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
    Refused {
        channel: u16,
        number: u64,
    },
    Cancelled {
        tag: String,
    },
    Other(String),
}

impl Peer {
    pub fn begin(&mut self) -> &mut Client {
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

    /// Declares a queue with arguments.
    pub fn declare_with<const N: usize>(&mut self, queue: &str, arguments: [(&str, Field); N]) {
        self.try_declare(queue, arguments_of(arguments)).expect("declared");
    }

    /// A durable quorum queue.
    pub fn declare_quorum<const N: usize>(&mut self, queue: &str, arguments: [(&str, Field); N]) {
        let arguments = arguments_of(arguments).with("x-queue-type", Field::text("quorum"));
        let spec = QueueSpec { name: queue.into(), durable: true, exclusive: false, auto_delete: false, arguments };
        self.declare_as(spec).expect("declared");
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

    pub fn cancel(&mut self, tag: &str) {
        self.begin().cancel(1, tag).expect("cancelled");
        self.flush().expect("flushed");
    }

    /// `basic.get` whose answer is left for [`Peer::hear`]; true if there is a message.
    pub fn ask(&mut self, queue: &str) -> bool {
        let got = self.begin().get(1, queue, false).expect("got");
        self.flush().expect("flushed");
        got == Got::Message
    }

    /// What `basic.get` answers, as its body (`*` behind it if redelivered) and its headers.
    pub fn fetch(&mut self, queue: &str) -> Option<(String, Table)> {
        let Said::Message { body, redelivered, properties, tag, .. } = self.get(queue)? else { panic!("a message was promised") };
        self.ack(tag);
        let headers = Properties::check(&properties).expect("good").headers().map(|headers| headers.to_table());
        let mark = if redelivered { "*" } else { "" };
        Some((format!("{}{mark}", String::from_utf8_lossy(&body)), headers.unwrap_or_default()))
    }

    /// Bodies of all that `basic.get` finds.
    pub fn drain(&mut self, queue: &str) -> String {
        let all: Vec<String> = std::iter::from_fn(|| self.fetch(queue)).map(|(body, _)| body).collect();
        all.join(" ")
    }

    pub fn consume_with(&mut self, queue: &str, tag: &str, prefetch: u16, arguments: Table) -> Result<(), Failed> {
        self.begin().limit_prefetch(1, prefetch, false)?;
        let consume = Consume { queue: queue.into(), tag: tag.into(), arguments, ..Consume::default() };
        self.client.consume(1, consume)?;
        self.flush()
    }

    pub fn settle(&mut self, tag: u64, multiple: bool, verdict: Verdict) -> Result<(), Failed> {
        let by = if verdict == Verdict::Ack { BasicAck::ID } else { BasicNack::ID };
        self.begin().settle(1, Settle { tag, multiple, verdict, by });
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

pub(super) fn arguments_of<const N: usize>(arguments: [(&str, Field); N]) -> Table {
    arguments.into_iter().fold(Table::new(), |table, (name, field)| table.with(name, field))
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
            Method::BasicNack(method) => {
                assert!(!method.multiple, "each refused message has its own nack");
                said.push(Said::Refused { channel, number: method.delivery_tag })
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
