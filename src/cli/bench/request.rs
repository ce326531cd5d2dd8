//! Request and reply through direct reply-to (W12), and one message at a time: `basic.get` (W13) and the mailing list's test of
//! 2009 (W24).

use super::client::{Client, Consume, Frame, SILENCE_MAX, Template, be64};
use super::target::Target;
use crate::kernel::{Clock, Instant};
use crate::wire::amqp::frame::ContentHeader;
use crate::wire::amqp::method::{BasicAck, BasicGet, BasicGetEmpty, BasicGetOk, BasicPublish};
use crate::wire::amqp::{Properties, PropertyList, encode};
use anyhow::{anyhow, bail};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const REPLY_TO: &str = "amq.rabbitmq.reply-to";
const FRAME_MAX: u32 = 131_072;
/// How often the answering thread looks whether all is over.
const LOOK: Duration = Duration::from_millis(20);

/// One after the other, or so many at once.
#[derive(Clone, Debug, Default)]
pub struct Paced {
    pub count: u64,
    pub per_second: f64,
    /// Sorted.
    pub latencies: Vec<Duration>,
    /// Answers that never came or came twice.
    pub lost: u64,
    pub duplicated: u64,
}

impl Paced {
    fn of(begun: Instant, ended: Instant, mut latencies: Vec<Duration>) -> Paced {
        latencies.sort_unstable();
        let count = latencies.len() as u64;
        Paced { count, per_second: count as f64 / ended.since(begun).as_secs_f64().max(1e-9), latencies, lost: 0, duplicated: 0 }
    }
}

/// Calls with `concurrency` requests under way, for `duration`.
pub fn calls(to: &Target, concurrency: u64, duration: Duration, body_bytes: usize) -> anyhow::Result<Paced> {
    let queue = format!("bench-call-{}", std::process::id());
    let server = Server::new(to, &queue, None)?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&over));
        let result = call(to, &queue, concurrency, duration, body_bytes);
        over.store(true, Ordering::Release);
        serving.join().map_err(|_| anyhow!("the answering thread broke"))??;
        result
    })
}

/// Answers every message of a queue at its reply address, with the message's own body.
pub struct Server {
    client: Client,
    queue: String,
}

impl Server {
    /// Declares `queue`, and binds it to an exchange by a key if there is one.
    pub fn new(to: &Target, queue: &str, bound: Option<(&str, &str)>) -> anyhow::Result<Server> {
        let mut client = Client::connect(to, 1)?;
        client.declare_queue(queue)?;
        if let Some((exchange, key)) = bound {
            client.bind(queue, exchange, key)?;
        }
        client.consume(Consume { channel: 1, queue, prefetch: 0, no_ack: true })?;
        Ok(Server { client, queue: queue.to_owned() })
    }

    /// Goes on until `over`, then takes its queue away.
    pub fn serve(mut self, over: &AtomicBool) -> anyhow::Result<()> {
        self.client.stream.set_read_timeout(Some(LOOK))?;
        serve(&mut self.client, over)?;
        self.client.stream.set_read_timeout(Some(SILENCE_MAX))?;
        self.client.delete_queue(&self.queue)?;
        self.client.close()
    }
}

fn call(to: &Target, queue: &str, concurrency: u64, duration: Duration, body_bytes: usize) -> anyhow::Result<Paced> {
    let clock = Clock::system();
    let mut client = Client::connect(to, 1)?;
    client.consume(Consume { channel: 1, queue: REPLY_TO, prefetch: 0, no_ack: true })?;
    let properties = PropertyList { reply_to: Some(REPLY_TO), correlation_id: Some("bench"), ..PropertyList::default() };
    let template = Template::new(1, "", queue, properties, body_bytes);
    let (mut sent, mut answered, mut duplicated) = (0, 0, 0);
    let mut under_way = std::collections::HashMap::new();
    let mut latencies = Vec::new();
    let mut out = Vec::new();
    let begun = clock.now();
    let end = begun + duration;
    let mut now = begun;
    while now < end || answered < sent {
        while now < end && sent - answered < concurrency {
            template.write(&mut out, sent, now.as_nanos());
            under_way.insert(sent, now);
            sent += 1;
        }
        if !out.is_empty() {
            client.stream.write_all(&out)?;
            out.clear();
        }
        client.fill()?;
        now = clock.now();
        while let Some(frame) = client.frame()? {
            if frame.is_body() {
                match under_way.remove(&be64(frame.payload)) {
                    Some(at) => {
                        latencies.push(now.since(at));
                        answered += 1;
                    }
                    None => duplicated += 1,
                }
            }
        }
    }
    let paced = Paced { lost: under_way.len() as u64, duplicated, ..Paced::of(begun, now, latencies) };
    client.close()?;
    Ok(paced)
}

/// Answers every request with its own body, a read's worth with one write.
fn serve(client: &mut Client, over: &AtomicBool) -> anyhow::Result<()> {
    let (mut out, mut reply_to, mut correlation) = (Vec::new(), String::new(), String::new());
    while !over.load(Ordering::Acquire) {
        client.fill_or_time_out()?;
        while let Some(frame) = client.frame()? {
            let mut body: &[u8] = &[];
            if frame.is_header() {
                let header = header_of(&frame)?;
                let properties = Properties::check(header.properties).map_err(|_| anyhow!("broken properties came"))?;
                reply_to = properties.reply_to().unwrap_or_default().to_owned();
                correlation = properties.correlation_id().unwrap_or_default().to_owned();
                if header.body_size > 0 {
                    continue;
                }
            } else if frame.is_body() {
                body = frame.payload;
            } else {
                continue;
            }
            let properties = PropertyList { correlation_id: Some(&correlation), ..PropertyList::default() }.to_bytes();
            let publish = BasicPublish { routing_key: &reply_to, ..BasicPublish::default() };
            encode::content(&mut out, 1, &publish, encode::Content { properties: &properties, body }, FRAME_MAX);
        }
        if !out.is_empty() {
            client.stream.write_all(&out)?;
            out.clear();
        }
    }
    Ok(())
}

fn header_of<'a>(frame: &Frame<'a>) -> anyhow::Result<ContentHeader<'a>> {
    ContentHeader::decode(frame.payload).map_err(|_| anyhow!("a broken content header came"))
}

/// `basic.get` and its ack, one at a time, of `count` messages that stand in the queue.
pub fn gets(to: &Target, count: u64, body_bytes: usize) -> anyhow::Result<Paced> {
    let clock = Clock::system();
    let queue = format!("bench-get-{}", std::process::id());
    let mut client = Client::connect(to, 1)?;
    client.declare_queue(&queue)?;
    publish(&mut client, "", &queue, count, body_bytes)?;
    let begun = clock.now();
    let mut latencies = Vec::new();
    let mut numbers = Vec::new();
    for _ in 0..count {
        let asked = clock.now();
        numbers.push(get(&mut client, &queue)?);
        latencies.push(clock.now().since(asked));
    }
    let mut paced = Paced::of(begun, clock.now(), latencies);
    numbers.sort_unstable();
    numbers.dedup();
    paced.duplicated = count - numbers.len() as u64;
    client.delete_queue(&queue)?;
    client.close()?;
    Ok(paced)
}

/// Gets and acks one message; its number.
fn get(client: &mut Client, queue: &str) -> anyhow::Result<u64> {
    client.send(1, &BasicGet { queue, ..BasicGet::default() })?;
    let mut tag = 0;
    loop {
        while let Some(frame) = client.frame()? {
            if frame.is(BasicGetOk::ID) {
                tag = be64(&frame.payload[4..]);
            } else if frame.is(BasicGetEmpty::ID) {
                bail!("the queue is empty, though messages were put into it");
            } else if frame.is_body() {
                let number = be64(frame.payload);
                client.send(1, &BasicAck { delivery_tag: tag, multiple: false })?;
                return Ok(number);
            }
        }
        client.fill()?;
    }
}

/// Publishes messages one write each, as a simple client does; the slowest write.
fn publish(client: &mut Client, exchange: &str, key: &str, count: u64, body_bytes: usize) -> anyhow::Result<Duration> {
    let clock = Clock::system();
    let template = Template::new(1, exchange, key, PropertyList::default(), body_bytes);
    let (mut out, mut slowest) = (Vec::new(), Duration::ZERO);
    for number in 0..count {
        out.clear();
        let at = clock.now();
        template.write(&mut out, number, at.as_nanos());
        client.stream.write_all(&out)?;
        slowest = slowest.max(clock.now().since(at));
    }
    Ok(slowest)
}

/// W24: messages a second of each step, and the slowest message of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mail {
    pub publish: (f64, Duration),
    pub consume: (f64, Duration),
    pub get: (f64, Duration),
}

/// The mailing list's test: one client in one thread, a fanout exchange, 24 bytes; publish `count`, consume them with an ack each,
/// publish again and get them.
pub fn mail(to: &Target, count: u64) -> anyhow::Result<Mail> {
    const BODY_BYTES: usize = 24;
    let clock = Clock::system();
    let name = format!("bench-mail-{}", std::process::id());
    let mut client = Client::connect(to, 1)?;
    client.declare_exchange(&name, "fanout")?;
    client.declare_queue(&name)?;
    client.bind(&name, &name, "")?;
    let rate = |begun: Instant| count as f64 / clock.now().since(begun).as_secs_f64().max(1e-9);
    let mut mail = Mail::default();

    let begun = clock.now();
    let slowest = publish(&mut client, &name, "", count, BODY_BYTES)?;
    mail.publish = (rate(begun), slowest);

    let begun = clock.now();
    client.consume(Consume { channel: 1, queue: &name, prefetch: 0, no_ack: false })?;
    let slowest = take(&mut client, count, &clock)?;
    mail.consume = (rate(begun), slowest);
    // The queue goes with its consumer, so that the messages below are got, not delivered.
    client.delete_queue(&name)?;
    client.declare_queue(&name)?;
    client.bind(&name, &name, "")?;

    publish(&mut client, &name, "", count, BODY_BYTES)?;
    let begun = clock.now();
    let mut slowest = Duration::ZERO;
    for _ in 0..count {
        let asked = clock.now();
        get(&mut client, &name)?;
        slowest = slowest.max(clock.now().since(asked));
    }
    mail.get = (rate(begun), slowest);
    client.delete_queue(&name)?;
    client.delete_exchange(&name)?;
    client.close()?;
    Ok(mail)
}

/// Consumes `count` messages with one ack each; the longest wait between two of them.
fn take(client: &mut Client, count: u64, clock: &Clock) -> anyhow::Result<Duration> {
    let (mut taken, mut slowest, mut last) = (0, Duration::ZERO, clock.now());
    let mut out = Vec::new();
    while taken < count {
        while let Some(frame) = client.frame()? {
            if frame.is_body() {
                taken += 1;
                let now = clock.now();
                slowest = slowest.max(now.since(last));
                last = now;
            } else if frame.payload.starts_with(&[0, 60, 0, 60]) && !frame.is_header() {
                encode::ack(&mut out, 1, frame.delivery_tag(), false);
            }
        }
        if !out.is_empty() {
            client.stream.write_all(&out)?;
            out.clear();
        }
        if taken < count {
            client.fill()?;
        }
    }
    Ok(slowest)
}
