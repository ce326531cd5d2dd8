//! Publishers and consumers as fast as they go, or at a given rate: W1 to W8.
//!
//! Every message carries its publisher and number, so that what was lost or came twice is counted, not guessed.

use super::client::{Client, Consume, SILENCE_MAX, Template, be64};
use super::target::{Target, own_cost};
use crate::kernel::{Clock, Instant};
use crate::wire::amqp::method::{BasicAck, BasicNack};
use crate::wire::amqp::{PropertyList, encode};
use anyhow::{Context, bail};
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// Publishes on their way without a confirm.
const WINDOW: u64 = 10_000;
/// Publishes written with one system call, as an efficient client library batches them.
const BATCH: u64 = 100;
/// How often a waiting consumer looks whether all is over.
const LOOK: Duration = Duration::from_millis(20);
/// Consumers have long waited when publishing begins, as real ones have.
const SETTLE: Duration = Duration::from_millis(50);
/// How long a publisher with a rate sleeps between messages that are due.
const PACE: Duration = Duration::from_micros(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    Direct,
    Topic,
    Fanout,
}

/// What publishes and what consumes.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub exchange: Exchange,
    pub queues: u16,
    /// Connections that publish; number n to queue n modulo `queues`, with [`Exchange::Fanout`] to all.
    pub producers: u16,
    pub consumers_per_queue: u16,
    /// Of every connection; a publisher takes them in turn.
    pub channels: u16,
    pub confirms: bool,
    /// 0 is auto-ack, 1 acks each message by itself, n all so far after every n-th.
    pub ack_every: u32,
    pub prefetch: u16,
    /// Messages a second of each producer; as fast as it goes without.
    pub rate: Option<u64>,
    pub body_bytes: usize,
    /// How long to publish.
    pub duration: Duration,
}

impl Shape {
    /// W1: one publishing and one consuming connection over a direct exchange.
    pub fn plain(body_bytes: usize, duration: Duration) -> Shape {
        Shape {
            exchange: Exchange::Direct,
            queues: 1,
            producers: 1,
            consumers_per_queue: 1,
            channels: 1,
            confirms: true,
            ack_every: 100,
            prefetch: 2_000,
            rate: None,
            body_bytes,
            duration,
        }
    }

    fn is_fan(&self) -> bool {
        self.exchange == Exchange::Fanout
    }
}

/// What one run showed.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub delivered: u64,
    /// Deliveries a second, from the first publish to the last delivery.
    pub per_second: f64,
    pub lost: u64,
    pub duplicated: u64,
    /// From the first publish to the first delivery.
    pub first_delivery: Duration,
    /// From publish to delivery, sorted; only with a rate.
    pub latencies: Vec<Duration>,
    /// Processor time per delivery, user and all, where the broker's process can be seen.
    pub broker_us: Option<f64>,
    pub broker_user_us: Option<f64>,
    pub client_us: f64,
    /// Cores the load generator kept busy.
    pub client_cores: f64,
    pub resident_bytes: Option<u64>,
}

/// What the threads of one run share.
struct Run<'a> {
    to: &'a Target,
    shape: Shape,
    clock: Clock,
    name: String,
    /// Messages published so far, by producer.
    sent: Vec<AtomicU64>,
    /// By queue.
    received: Vec<AtomicU64>,
    producing: AtomicU64,
    failed: AtomicBool,
    /// When the first message was written; the greatest number before that.
    begun_ns: AtomicU64,
}

/// What one consumer saw.
struct Seen {
    queue: usize,
    numbers: Vec<Numbers>,
    duplicated: u64,
    first: Option<Instant>,
    last: Instant,
    latencies: Vec<Duration>,
}

/// A set of message numbers.
#[derive(Clone, Debug, Default)]
struct Numbers(Vec<u64>);

impl Numbers {
    /// False if it was there.
    fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if word >= self.0.len() {
            self.0.resize((word + 1).next_power_of_two(), 0);
        }
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    /// Adds the others; returns how many were there before.
    fn merge(&mut self, others: &Numbers) -> u64 {
        self.0.resize(self.0.len().max(others.0.len()), 0);
        let pairs = self.0.iter_mut().zip(&others.0);
        pairs.map(|(own, other)| u64::from((std::mem::replace(own, *own | other) & other).count_ones())).sum()
    }

    fn count(&self) -> u64 {
        self.0.iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// Declares what the shape needs, runs it and takes it away again.
pub fn run(to: &Target, shape: Shape) -> anyhow::Result<Outcome> {
    static RUNS: AtomicU64 = AtomicU64::new(0);
    let name = format!("bench-{}-{}", std::process::id(), RUNS.fetch_add(1, Ordering::Relaxed));
    let counters = |count: u16| (0..count).map(|_| AtomicU64::new(0)).collect();
    let run = Run {
        to,
        shape,
        clock: Clock::system(),
        name,
        sent: counters(shape.producers),
        received: counters(shape.queues),
        producing: AtomicU64::new(shape.producers.into()),
        failed: AtomicBool::new(false),
        begun_ns: AtomicU64::new(u64::MAX),
    };
    let mut setup = Client::connect(to, 1)?;
    run.declare(&mut setup)?;
    let outcome = run.go();
    run.clear(&mut setup)?;
    setup.close()?;
    outcome
}

impl Run<'_> {
    fn queue(&self, index: u16) -> String {
        format!("{}-{index}", self.name)
    }

    /// Exchange and key of a producer.
    fn aim(&self, producer: u16) -> (String, String) {
        let queue = producer % self.shape.queues;
        match self.shape.exchange {
            Exchange::Direct => ("amq.direct".into(), self.queue(queue)),
            Exchange::Topic => ("amq.topic".into(), format!("bench.{}.x", self.queue(queue))),
            Exchange::Fanout => (self.name.clone(), String::new()),
        }
    }

    fn declare(&self, client: &mut Client) -> anyhow::Result<()> {
        if self.shape.is_fan() {
            client.declare_exchange(&self.name, "fanout")?;
        }
        for index in 0..self.shape.queues {
            let queue = self.queue(index);
            client.declare_queue(&queue)?;
            match self.shape.exchange {
                Exchange::Direct => client.bind(&queue, "amq.direct", &queue)?,
                Exchange::Topic => client.bind(&queue, "amq.topic", &format!("bench.{queue}.*"))?,
                Exchange::Fanout => client.bind(&queue, &self.name, "")?,
            }
        }
        Ok(())
    }

    fn clear(&self, client: &mut Client) -> anyhow::Result<()> {
        (0..self.shape.queues).try_for_each(|index| client.delete_queue(&self.queue(index)))?;
        if self.shape.is_fan() {
            client.delete_exchange(&self.name)?;
        }
        Ok(())
    }

    fn go(&self) -> anyhow::Result<Outcome> {
        let shape = self.shape;
        let for_consumers = self.to.for_consumers();
        let mut consumers = Vec::new();
        for queue in 0..shape.queues {
            for _ in 0..shape.consumers_per_queue {
                let mut client = Client::connect(&for_consumers, shape.channels)?;
                for channel in 1..=shape.channels {
                    let (name, no_ack) = (self.queue(queue), shape.ack_every == 0);
                    client.consume(Consume {
                        channel,
                        queue: &name,
                        prefetch: if no_ack { 0 } else { shape.prefetch },
                        no_ack,
                    })?;
                }
                consumers.push((queue, client));
            }
        }
        let mut producers = Vec::new();
        for producer in 0..shape.producers {
            let mut client = Client::connect(self.to, shape.channels)?;
            if shape.confirms {
                (1..=shape.channels).try_for_each(|channel| client.select_confirms(channel))?;
            }
            producers.push((producer, client));
        }
        let (broker, own) = (self.to.cost(), own_cost());
        let seen = thread::scope(|scope| {
            let consuming: Vec<_> = consumers
                .into_iter()
                .map(|(queue, client)| scope.spawn(move || self.guard(self.consume(queue, client))))
                .collect();
            thread::sleep(SETTLE);
            let producing: Vec<_> = producers
                .into_iter()
                .map(|(number, client)| scope.spawn(move || self.guard(self.produce(number, client))))
                .collect();
            for handle in producing {
                handle.join().map_err(|_| anyhow::anyhow!("a publisher broke"))??;
            }
            consuming
                .into_iter()
                .map(|handle| handle.join().map_err(|_| anyhow::anyhow!("a consumer broke"))?)
                .collect::<anyhow::Result<Vec<Seen>>>()
        })?;
        // All threads have ended.
        let begun = Instant::from_nanos(self.begun_ns.load(Ordering::Relaxed));
        let mut outcome = self.judge(&seen, begun);
        let wall = seen.iter().map(|seen| seen.last).max().unwrap_or(begun).since(begun);
        let count = outcome.delivered.max(1) as f64;
        if let (Some(before), Some(after)) = (broker, self.to.cost()) {
            outcome.broker_us = Some(after.cpu_since(before).as_secs_f64() * 1e6 / count);
            outcome.broker_user_us = Some(after.user.saturating_sub(before.user).as_secs_f64() * 1e6 / count);
            outcome.resident_bytes = Some(after.resident_bytes);
        }
        let own = own_cost().cpu_since(own);
        outcome.client_us = own.as_secs_f64() * 1e6 / count;
        outcome.client_cores = own.as_secs_f64() / wall.as_secs_f64().max(1e-9);
        Ok(outcome)
    }

    /// Lets the others stop when one fails.
    fn guard<T>(&self, result: anyhow::Result<T>) -> anyhow::Result<T> {
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn produce(&self, producer: u16, mut client: Client) -> anyhow::Result<()> {
        let (exchange, key) = self.aim(producer);
        let properties = || PropertyList { delivery_mode: Some(1), ..PropertyList::default() };
        let templates: Vec<Template> = (1..=self.shape.channels)
            .map(|channel| Template::new(channel, &exchange, &key, properties(), self.shape.body_bytes))
            .collect();
        let mut confirms = Confirms { by_channel: vec![0; templates.len()], total: 0 };
        let result = match self.shape.rate {
            None => self.produce_flat_out(producer, &mut client, &templates, &mut confirms),
            Some(rate) => self.produce_at(rate, producer, &mut client, &templates, &mut confirms),
        };
        // Whatever happened: consumers must not wait for more.
        self.producing.fetch_sub(1, Ordering::Release);
        result?;
        client.close()
    }

    fn produce_flat_out(
        &self,
        producer: u16,
        client: &mut Client,
        templates: &[Template],
        confirms: &mut Confirms,
    ) -> anyhow::Result<()> {
        let mut batch = Vec::with_capacity(templates[0].len() * BATCH as usize);
        let (mut sent, mut open) = (0, true);
        let end = self.clock.now() + self.shape.duration;
        while open || (self.shape.confirms && confirms.total < sent) {
            open = open && self.clock.now() < end && !self.failed.load(Ordering::Relaxed);
            let room = if self.shape.confirms { WINDOW - (sent - confirms.total) } else { BATCH };
            let now = if open { room.min(BATCH) } else { 0 };
            if now > 0 {
                self.write(producer, sent, now, templates, &mut batch);
                client.stream.write_all(&batch)?;
                sent += now;
                self.sent[usize::from(producer)].store(sent, Ordering::Release);
            }
            if self.shape.confirms && (sent - confirms.total > WINDOW - BATCH || !open) && confirms.total < sent {
                client.fill()?;
                confirms.read(client)?;
            }
        }
        Ok(())
    }

    /// Sends what is due and sleeps a moment; so late messages count as late.
    fn produce_at(
        &self,
        rate: u64,
        producer: u16,
        client: &mut Client,
        templates: &[Template],
        confirms: &mut Confirms,
    ) -> anyhow::Result<()> {
        client.stream.set_nonblocking(true)?;
        let mut batch = Vec::new();
        let mut sent = 0;
        let begun = self.clock.now();
        loop {
            let passed = self.clock.now().since(begun);
            if passed >= self.shape.duration || self.failed.load(Ordering::Relaxed) {
                break;
            }
            let due = (passed.as_secs_f64() * rate as f64) as u64;
            if due > sent {
                self.write(producer, sent, due - sent, templates, &mut batch);
                client.stream.write_all(&batch).context("the broker does not keep up with the rate")?;
                sent = due;
                self.sent[usize::from(producer)].store(sent, Ordering::Release);
            } else {
                thread::sleep(PACE);
            }
            if self.shape.confirms {
                client.fill_or_time_out()?;
                confirms.read(client)?;
            }
        }
        client.stream.set_nonblocking(false)?;
        while self.shape.confirms && confirms.total < sent {
            client.fill()?;
            confirms.read(client)?;
        }
        Ok(())
    }

    fn write(&self, producer: u16, sent: u64, count: u64, templates: &[Template], batch: &mut Vec<u8>) {
        batch.clear();
        let at = self.clock.now().as_nanos();
        if sent == 0 {
            self.begun_ns.fetch_min(at, Ordering::Relaxed);
        }
        for number in sent..sent + count {
            let template = &templates[number as usize % templates.len()];
            template.write(batch, u64::from(producer) << 48 | number, at);
        }
    }

    fn consume(&self, queue: u16, mut client: Client) -> anyhow::Result<Seen> {
        client.stream.set_read_timeout(Some(LOOK))?;
        let mut seen = Seen {
            queue: queue.into(),
            numbers: vec![Numbers::default(); self.shape.producers.into()],
            duplicated: 0,
            first: None,
            last: self.clock.now(),
            latencies: Vec::new(),
        };
        let mut acks = Acks::new(self.shape);
        let mut heard = self.clock.now();
        loop {
            let bytes = client.fill_or_time_out()?;
            let now = self.clock.now();
            if bytes == 0 {
                if self.is_over(queue) {
                    acks.send(&mut client, true)?;
                    break;
                }
                if now.since(heard) > SILENCE_MAX {
                    bail!("no message came for {} s", SILENCE_MAX.as_secs());
                }
                continue;
            }
            heard = now;
            let count = self.take(&mut client, &mut seen, &mut acks, now)?;
            if count > 0 {
                seen.first.get_or_insert(now);
                seen.last = now;
                self.received[usize::from(queue)].fetch_add(count, Ordering::AcqRel);
            }
            let over = self.is_over(queue);
            acks.send(&mut client, over)?;
            if over {
                break;
            }
        }
        client.stream.set_read_timeout(Some(SILENCE_MAX))?;
        client.close()?;
        Ok(seen)
    }

    /// Reads every frame that has come; returns how many messages.
    fn take(&self, client: &mut Client, seen: &mut Seen, acks: &mut Acks, now: Instant) -> anyhow::Result<u64> {
        let mut count = 0;
        while let Some(frame) = client.frame()? {
            if frame.is_body() {
                let word = be64(frame.payload);
                let (producer, number) = ((word >> 48) as usize, word & 0xffff_ffff_ffff);
                let Some(numbers) = seen.numbers.get_mut(producer) else { bail!("a message nobody sent came") };
                seen.duplicated += u64::from(!numbers.insert(number));
                if self.shape.rate.is_some() {
                    seen.latencies.push(now.since(Instant::from_nanos(be64(&frame.payload[8..]))));
                }
                count += 1;
            } else if frame.payload.starts_with(&[0, 60, 0, 60]) && !frame.is_header() {
                acks.delivered(frame.channel, frame.delivery_tag());
            }
        }
        Ok(count)
    }

    fn is_over(&self, queue: u16) -> bool {
        if self.failed.load(Ordering::Relaxed) {
            return true;
        }
        self.producing.load(Ordering::Acquire) == 0
            && self.received[usize::from(queue)].load(Ordering::Acquire) >= self.expected(queue)
    }

    fn expected(&self, queue: u16) -> u64 {
        let mine = |producer: u16| self.shape.is_fan() || producer % self.shape.queues == queue;
        let producers = (0..self.shape.producers).filter(|producer| mine(*producer));
        producers.map(|producer| self.sent[usize::from(producer)].load(Ordering::Acquire)).sum()
    }

    fn judge(&self, seen: &[Seen], begun: Instant) -> Outcome {
        let mut outcome = Outcome::default();
        for queue in 0..self.shape.queues {
            let mut union = vec![Numbers::default(); self.shape.producers.into()];
            for consumer in seen.iter().filter(|seen| seen.queue == usize::from(queue)) {
                let pairs = union.iter_mut().zip(&consumer.numbers);
                outcome.duplicated += consumer.duplicated + pairs.map(|(all, own)| all.merge(own)).sum::<u64>();
            }
            let distinct: u64 = union.iter().map(Numbers::count).sum();
            outcome.lost += self.expected(queue).saturating_sub(distinct);
            outcome.delivered += self.received[usize::from(queue)].load(Ordering::Acquire);
        }
        let last = seen.iter().map(|seen| seen.last).max().unwrap_or(begun);
        outcome.per_second = outcome.delivered as f64 / last.since(begun).as_secs_f64().max(1e-9);
        outcome.first_delivery =
            seen.iter().filter_map(|seen| seen.first).min().map_or(Duration::ZERO, |first| first.since(begun));
        outcome.latencies = seen.iter().flat_map(|seen| seen.latencies.iter().copied()).collect();
        outcome.latencies.sort_unstable();
        outcome
    }
}

/// What a publisher's channels have had confirmed.
struct Confirms {
    by_channel: Vec<u64>,
    total: u64,
}

impl Confirms {
    fn read(&mut self, client: &mut Client) -> anyhow::Result<()> {
        while let Some(frame) = client.frame()? {
            if frame.is(BasicNack::ID) {
                bail!("the broker refused a message it was to confirm");
            }
            if frame.is(BasicAck::ID) {
                let (tag, multiple) = frame.settled();
                let Some(confirmed) = self.by_channel.get_mut(usize::from(frame.channel) - 1) else { continue };
                let before = *confirmed;
                *confirmed = if multiple { before.max(tag) } else { before + 1 };
                self.total += *confirmed - before;
            }
        }
        Ok(())
    }
}

/// What a consumer's channels owe.
struct Acks {
    every: u32,
    by_channel: Vec<Owed>,
    out: Vec<u8>,
}

#[derive(Clone, Copy, Default)]
struct Owed {
    tag: u64,
    acked: u64,
}

impl Acks {
    fn new(shape: Shape) -> Acks {
        Acks { every: shape.ack_every, by_channel: vec![Owed::default(); shape.channels.into()], out: Vec::new() }
    }

    fn delivered(&mut self, channel: u16, tag: u64) {
        if let Some(owed) = self.by_channel.get_mut(usize::from(channel) - 1) {
            owed.tag = tag;
        }
        if self.every == 1 {
            encode::ack(&mut self.out, channel, tag, false);
        }
    }

    /// Sends what is due, at the end everything.
    fn send(&mut self, client: &mut Client, all: bool) -> anyhow::Result<()> {
        if self.every > 1 {
            for (at, owed) in self.by_channel.iter_mut().enumerate() {
                if owed.tag - owed.acked >= u64::from(self.every) || (all && owed.tag > owed.acked) {
                    encode::ack(&mut self.out, at as u16 + 1, owed.tag, true);
                    owed.acked = owed.tag;
                }
            }
        }
        if !self.out.is_empty() {
            client.stream.write_all(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_and_what_came_twice_is_seen() {
        let (mut a, mut b) = (Numbers::default(), Numbers::default());
        assert!(a.insert(0) && a.insert(130) && !a.insert(130));
        assert!(b.insert(130) && b.insert(5_000));
        assert_eq!(a.merge(&b), 1);
        assert_eq!(a.count(), 3);
    }

    #[test]
    fn each_message_is_acked_by_itself_when_asked_and_on_its_channel() {
        let mut acks = Acks::new(Shape { channels: 2, ack_every: 1, ..Shape::plain(16, Duration::ZERO) });
        acks.delivered(2, 7);
        let mut expected = Vec::new();
        encode::ack(&mut expected, 2, 7, false);
        assert_eq!(acks.out, expected);
        assert_eq!((acks.by_channel[0].tag, acks.by_channel[1].tag), (0, 7));
    }
}
