//! The smallest AMQP 0-9-1 client that can saturate a broker: a blocking socket, prebuilt frames, one thread a connection. It knows
//! only what the workloads need and speaks to any broker.

use super::target::Target;
use crate::kernel::dial;
use crate::wire::amqp::encode;
use crate::wire::amqp::frame::{FRAME_BODY, FRAME_HEADER, FRAME_METHOD, FrameHead, PROTOCOL_HEADER};
use crate::wire::amqp::method::{
    BasicConsume, BasicPublish, BasicQos, ChannelOpen, ConfirmSelect, ConnectionClose, ConnectionOpen, ConnectionStart,
    ConnectionStartOk, ConnectionTuneOk, ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare, QueueDelete,
};
use crate::wire::amqp::{Encode, LongStr, Method, MethodId, PropertyList, RawTable};
use anyhow::{Context, anyhow, bail};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const DIAL_LIMIT: Duration = Duration::from_secs(10);
/// A broker that says nothing for so long has lost something.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 256 * 1024;
const FRAME_MAX: u32 = 131_072;
/// Bytes at the front of every body: the message's number, then its time of sending.
pub const BODY_BYTES_MIN: usize = 16;

pub struct Client {
    pub stream: TcpStream,
    input: Vec<u8>,
    at: usize,
    filled: usize,
}

/// One frame that came in.
pub struct Frame<'a> {
    pub kind: u8,
    pub channel: u16,
    pub payload: &'a [u8],
}

impl Frame<'_> {
    pub fn is(&self, id: MethodId) -> bool {
        self.kind == FRAME_METHOD && self.payload.starts_with(&id_bytes(id))
    }

    /// The body of a message, in one piece: the workloads' bodies fit a frame.
    pub fn is_body(&self) -> bool {
        self.kind == FRAME_BODY
    }

    pub fn is_header(&self) -> bool {
        self.kind == FRAME_HEADER
    }

    /// Tag and `multiple` of an ack or nack.
    pub fn settled(&self) -> (u64, bool) {
        (be64(&self.payload[4..]), self.payload[12] & 1 == 1)
    }

    /// The delivery tag of a `basic.deliver`.
    pub fn delivery_tag(&self) -> u64 {
        be64(&self.payload[5 + usize::from(self.payload[4])..])
    }
}

fn id_bytes(id: MethodId) -> [u8; 4] {
    let (class, method) = (id.class.to_be_bytes(), id.method.to_be_bytes());
    [class[0], class[1], method[0], method[1]]
}

pub fn be64(bytes: &[u8]) -> u64 {
    bytes.first_chunk::<8>().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

/// One publish as the frames that go over the wire, to be copied and numbered.
pub struct Template {
    frames: Vec<u8>,
    body_at: usize,
}

impl Template {
    pub fn new(channel: u16, exchange: &str, key: &str, properties: PropertyList<'_>, body_bytes: usize) -> Self {
        let mut frames = Vec::new();
        let body = vec![b'x'; body_bytes.max(BODY_BYTES_MIN)];
        let publish = BasicPublish { exchange, routing_key: key, ..BasicPublish::default() };
        let content = encode::Content { properties: &properties.to_bytes(), body: &body };
        encode::content(&mut frames, channel, &publish, content, FRAME_MAX);
        let body_at = frames.len() - 1 - body.len();
        Template { frames, body_at }
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Appends the message with its number and time of sending in the body.
    pub fn write(&self, out: &mut Vec<u8>, number: u64, sent_ns: u64) {
        let at = out.len() + self.body_at;
        out.extend_from_slice(&self.frames);
        out[at..at + 8].copy_from_slice(&number.to_be_bytes());
        out[at + 8..at + 16].copy_from_slice(&sent_ns.to_be_bytes());
    }
}

/// What a consumer asks for.
#[derive(Clone, Copy)]
pub struct Consume<'a> {
    pub channel: u16,
    pub queue: &'a str,
    pub prefetch: u16,
    pub no_ack: bool,
}

impl Client {
    /// A connection with `channels` open channels, numbered from 1.
    pub fn connect(to: &Target, channels: u16) -> anyhow::Result<Self> {
        let stream = match &to.namespace {
            None => dial::tcp_blocking(to.address, DIAL_LIMIT),
            Some(namespace) => {
                File::open(namespace).and_then(|open| dial::tcp_blocking_from(open.into(), to.address, DIAL_LIMIT))
            }
        };
        let from = || to.namespace.as_ref().map_or(String::new(), |namespace| format!(" from {}", namespace.display()));
        let stream = stream.with_context(|| format!("no broker answers on {}{}", to.address, from()))?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        let mut client = Client { stream, input: vec![0; READ_BYTES], at: 0, filled: 0 };
        client.stream.write_all(PROTOCOL_HEADER)?;
        client.expect(MethodId { class: 10, method: 10 })?;
        let response = format!("\0{}\0{}", to.user, to.password);
        let start_ok = ConnectionStartOk {
            client_properties: RawTable::default(),
            mechanism: "PLAIN",
            response: LongStr(response.as_bytes()),
            locale: "en_US",
        };
        client.send(0, &start_ok)?;
        let tune = client.expect(MethodId { class: 10, method: 30 }).context("the broker refused the login")?;
        let Ok(Method::ConnectionTune(tune)) = Method::decode(&tune) else { bail!("a broken connection.tune") };
        let frame_max = if tune.frame_max == 0 { FRAME_MAX } else { tune.frame_max.min(FRAME_MAX) };
        client.send(0, &ConnectionTuneOk { channel_max: tune.channel_max, frame_max, heartbeat: 0 })?;
        let open = ConnectionOpen { virtual_host: &to.space, ..ConnectionOpen::default() };
        client.ask(0, &open, MethodId { class: 10, method: 41 })?;
        for channel in 1..=channels {
            client.ask(channel, &ChannelOpen::default(), MethodId { class: 20, method: 11 })?;
        }
        Ok(client)
    }

    pub fn send(&mut self, channel: u16, method: &impl Encode) -> anyhow::Result<()> {
        let mut out = Vec::new();
        encode::method(&mut out, channel, method);
        Ok(self.stream.write_all(&out)?)
    }

    /// Sends a method and waits for its answer.
    pub fn ask(&mut self, channel: u16, method: &impl Encode, answer: MethodId) -> anyhow::Result<Vec<u8>> {
        self.send(channel, method)?;
        self.expect(answer)
    }

    fn expect(&mut self, id: MethodId) -> anyhow::Result<Vec<u8>> {
        loop {
            match self.frame()? {
                Some(frame) if frame.is(id) => return Ok(frame.payload.to_vec()),
                Some(_) => {}
                None => _ = self.fill()?,
            }
        }
    }

    /// The next whole frame already read, if there is one. The broker's close is an error.
    pub fn frame(&mut self) -> anyhow::Result<Option<Frame<'_>>> {
        let have = &self.input[self.at..self.filled];
        let Some(head) = FrameHead::read(have).filter(|head| have.len() >= head.frame_bytes()) else {
            if let Some(head) = FrameHead::read(have)
                && head.frame_bytes() > READ_BYTES
            {
                bail!("the broker sent a frame of {} bytes, more than was negotiated", head.size);
            }
            return Ok(None);
        };
        let start = self.at + 7;
        self.at += head.frame_bytes();
        let payload = &self.input[start..start + head.size as usize];
        if head.kind == FRAME_METHOD && matches!(payload, [0, 10, 0, 50, ..] | [0, 20, 0, 40, ..]) {
            return Err(closed(payload));
        }
        Ok(Some(Frame { kind: head.kind, channel: head.channel, payload }))
    }

    /// Reads once and returns how many bytes came; 0 when none came within the read timeout.
    pub fn fill_or_time_out(&mut self) -> anyhow::Result<usize> {
        self.input.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => bail!("the broker closed the connection without a word"),
            Ok(count) => {
                self.filled += count;
                Ok(count)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    pub fn fill(&mut self) -> anyhow::Result<usize> {
        match self.fill_or_time_out()? {
            0 => bail!("the broker said nothing for {} s", SILENCE_MAX.as_secs()),
            count => Ok(count),
        }
    }

    pub fn declare_queue(&mut self, queue: &str) -> anyhow::Result<()> {
        let declare = QueueDeclare { queue, ..QueueDeclare::default() };
        self.ask(1, &declare, MethodId { class: 50, method: 11 }).map(drop)
    }

    pub fn delete_queue(&mut self, queue: &str) -> anyhow::Result<()> {
        self.ask(1, &QueueDelete { queue, ..QueueDelete::default() }, MethodId { class: 50, method: 41 }).map(drop)
    }

    pub fn declare_exchange(&mut self, exchange: &str, kind: &str) -> anyhow::Result<()> {
        let declare = ExchangeDeclare { exchange, kind, ..ExchangeDeclare::default() };
        self.ask(1, &declare, MethodId { class: 40, method: 11 }).map(drop)
    }

    pub fn delete_exchange(&mut self, exchange: &str) -> anyhow::Result<()> {
        self.ask(1, &ExchangeDelete { exchange, ..ExchangeDelete::default() }, MethodId { class: 40, method: 21 }).map(drop)
    }

    pub fn bind(&mut self, queue: &str, exchange: &str, routing_key: &str) -> anyhow::Result<()> {
        let bind = QueueBind { queue, exchange, routing_key, ..QueueBind::default() };
        self.ask(1, &bind, MethodId { class: 50, method: 21 }).map(drop)
    }

    pub fn select_confirms(&mut self, channel: u16) -> anyhow::Result<()> {
        self.ask(channel, &ConfirmSelect::default(), MethodId { class: 85, method: 11 }).map(drop)
    }

    pub fn consume(&mut self, wish: Consume<'_>) -> anyhow::Result<()> {
        let qos = BasicQos { prefetch_count: wish.prefetch, ..BasicQos::default() };
        self.ask(wish.channel, &qos, MethodId { class: 60, method: 11 })?;
        let tag = format!("c{}", wish.channel);
        let consume = BasicConsume { queue: wish.queue, consumer_tag: &tag, no_ack: wish.no_ack, ..BasicConsume::default() };
        self.ask(wish.channel, &consume, MethodId { class: 60, method: 21 }).map(drop)
    }

    pub fn close(mut self) -> anyhow::Result<()> {
        let close = ConnectionClose { reply_code: 200, ..ConnectionClose::default() };
        self.ask(0, &close, MethodId { class: 10, method: 51 }).map(drop)
    }
}

/// Name and version of the broker, as it introduces itself.
pub fn product(to: &Target) -> anyhow::Result<String> {
    let mut stream =
        dial::tcp_blocking(to.address, DIAL_LIMIT).with_context(|| format!("no broker answers on {}", to.address))?;
    stream.set_read_timeout(Some(SILENCE_MAX))?;
    stream.write_all(PROTOCOL_HEADER)?;
    let mut client = Client { stream, input: vec![0; READ_BYTES], at: 0, filled: 0 };
    let start = client.expect(ConnectionStart::ID)?;
    let Ok(Method::ConnectionStart(start)) = Method::decode(&start) else { bail!("a broken connection.start") };
    let text = |name: &str| start.server_properties.get(name).and_then(|field| field.as_str()).unwrap_or_default().to_owned();
    // reactor introduces itself as the RabbitMQ it stands in for; its own name is the platform's.
    let platform = text("platform");
    let product = format!("{} {}", text("product"), text("version")).trim().to_owned();
    Ok(if platform.starts_with("reactor ") { platform } else { product })
}

fn closed(payload: &[u8]) -> anyhow::Error {
    match Method::decode(payload) {
        Ok(Method::ConnectionClose(close)) => {
            anyhow!("the broker closed the connection: {} {}", close.reply_code, close.reply_text)
        }
        Ok(Method::ChannelClose(close)) => anyhow!("the broker closed a channel: {} {}", close.reply_code, close.reply_text),
        _ => anyhow!("the broker closed with words nobody understands"),
    }
}
