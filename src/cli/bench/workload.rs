//! The workloads by name, and one run of each.

use super::flood::{self, Exchange, Outcome, Shape};
use super::memory;
use super::request::{self, Paced};
use super::target::{Target, own_cost};
use crate::kernel::Clock;
use std::time::Duration;

/// What may be asked of every workload that it makes sense for.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub duration: Duration,
    pub body_bytes: usize,
    /// Consumers of each queue in floods.
    pub consumers: u16,
    /// Messages, connections or queues of workloads that count rather than last (W13, W20, W21).
    pub count: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    pub id: &'static str,
    pub title: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Topic,
    Unconfirmed(Exchange),
    Channels(u16),
    AckEach,
    Fan(u16),
    Pairs(u16),
    Paced { per_second: u64 },
    Calls { concurrency: u64 },
    Get,
    Idle,
    Backlog,
    Mail,
    First,
}

pub const WORKLOADS: &[Workload] = &[
    workload("W1", "direct, one publishing and one consuming connection, confirms, an ack every 100", Kind::Plain),
    workload("W2", "W1 over a topic exchange", Kind::Topic),
    workload("W3", "direct, no confirms, auto-ack", Kind::Unconfirmed(Exchange::Direct)),
    workload("W3-topic", "topic, no confirms, auto-ack", Kind::Unconfirmed(Exchange::Topic)),
    workload("W4", "W1 on 40 channels of each connection", Kind::Channels(40)),
    workload("W5", "W1, every message acked by itself, prefetch 1,000", Kind::AckEach),
    workload("W6", "fan-out 1 to 4, deliveries", Kind::Fan(4)),
    workload("W6-10", "fan-out 1 to 10, deliveries", Kind::Fan(10)),
    workload("W7", "4 queues, 4 producers, 4 consumers", Kind::Pairs(4)),
    workload("W8", "W1 at 20,000 messages a second", Kind::Paced { per_second: 20_000 }),
    workload("W12", "request and reply through direct reply-to, one at a time", Kind::Calls { concurrency: 1 }),
    workload("W12-10", "request and reply, 10 at a time", Kind::Calls { concurrency: 10 }),
    workload("W12-100", "request and reply, 100 at a time", Kind::Calls { concurrency: 100 }),
    workload("W13", "basic.get and its ack, one at a time, 24 bytes", Kind::Get),
    workload("W20", "memory of an idle connection with one channel, and of an idle queue", Kind::Idle),
    workload("W21", "a backlog of transient messages filled, then drained", Kind::Backlog),
    workload("W24", "one thread, fanout exchange, 24 bytes: publish 1,000, consume, get", Kind::Mail),
    workload("W25", "from the first publish to the first delivery", Kind::First),
];

const fn workload(id: &'static str, title: &'static str, kind: Kind) -> Workload {
    Workload { id, title, kind }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    PerSecond,
    Micros,
    Bytes,
}

impl Unit {
    /// Whether more is better.
    pub fn more_is_better(self) -> bool {
        self == Unit::PerSecond
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub name: &'static str,
    pub unit: Unit,
    pub value: f64,
}

/// One run of one workload.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The first is the one that counts.
    pub figures: Vec<Figure>,
    pub lost: u64,
    pub duplicated: u64,
    /// Processor time of the broker per delivery or round trip.
    pub broker_us: Option<f64>,
    pub broker_user_us: Option<f64>,
    pub client_us: f64,
    /// Cores the load generator kept busy: near the machine's, it is what was measured.
    pub client_cores: f64,
    pub resident_bytes: Option<u64>,
}

impl Workload {
    /// By its id, in either case.
    pub fn find(id: &str) -> Option<Workload> {
        WORKLOADS.iter().find(|workload| workload.id.eq_ignore_ascii_case(id)).copied()
    }

    pub fn run(self, to: &Target, options: Options) -> anyhow::Result<Row> {
        let plain = Shape { consumers_per_queue: options.consumers, ..Shape::plain(options.body_bytes, options.duration) };
        match self.kind {
            Kind::Plain => flooded(to, plain),
            Kind::Topic => flooded(to, Shape { exchange: Exchange::Topic, ..plain }),
            Kind::Unconfirmed(exchange) => flooded(to, Shape { exchange, confirms: false, ack_every: 0, ..plain }),
            Kind::Channels(channels) => flooded(to, Shape { channels, ..plain }),
            Kind::AckEach => flooded(to, Shape { ack_every: 1, prefetch: 1_000, ..plain }),
            Kind::Fan(queues) => flooded(to, Shape { exchange: Exchange::Fanout, queues, ..plain }),
            Kind::Pairs(count) => flooded(to, Shape { queues: count, producers: count, ..plain }),
            Kind::Paced { per_second } => flood::run(to, Shape { rate: Some(per_second), ..plain }).map(paced_flood),
            Kind::First => {
                let short = Shape { duration: Duration::from_millis(50), ..plain };
                let outcome = flood::run(to, short)?;
                let first = Figure { name: "first", unit: Unit::Micros, value: micros(outcome.first_delivery) };
                Ok(Row { figures: vec![first], ..row(outcome) })
            }
            Kind::Calls { concurrency } => timed(to, |to| request::calls(to, concurrency, options.duration, options.body_bytes)),
            Kind::Get => timed(to, |to| request::gets(to, options.count.unwrap_or(20_000), 24)),
            Kind::Idle => idle(to, options.count),
            Kind::Backlog => backlog(to, options),
            Kind::Mail => mail(to, options.count.unwrap_or(1_000)),
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn flooded(to: &Target, shape: Shape) -> anyhow::Result<Row> {
    flood::run(to, shape).map(row)
}

fn row(outcome: Outcome) -> Row {
    Row {
        figures: vec![
            Figure { name: "rate", unit: Unit::PerSecond, value: outcome.per_second },
            Figure { name: "first", unit: Unit::Micros, value: micros(outcome.first_delivery) },
        ],
        lost: outcome.lost,
        duplicated: outcome.duplicated,
        broker_us: outcome.broker_us,
        broker_user_us: outcome.broker_user_us,
        client_us: outcome.client_us,
        client_cores: outcome.client_cores,
        resident_bytes: outcome.resident_bytes,
    }
}

fn paced_flood(mut outcome: Outcome) -> Row {
    let latencies = std::mem::take(&mut outcome.latencies);
    let rate = Figure { name: "rate", unit: Unit::PerSecond, value: outcome.per_second };
    Row { figures: [percentiles(&latencies), vec![rate]].concat(), ..row(outcome) }
}

fn percentiles(sorted: &[Duration]) -> Vec<Figure> {
    let at = |share: f64| sorted.get((sorted.len().saturating_sub(1) as f64 * share) as usize).copied().unwrap_or_default();
    [("p50", 0.5), ("p99", 0.99)].map(|(name, share)| Figure { name, unit: Unit::Micros, value: micros(at(share)) }).to_vec()
}

/// One after the other, with what it cost.
fn timed(to: &Target, run: impl FnOnce(&Target) -> anyhow::Result<Paced>) -> anyhow::Result<Row> {
    let (clock, broker, own) = (Clock::system(), to.cost(), own_cost());
    let begun = clock.now();
    let paced = run(to)?;
    let wall = clock.now().since(begun);
    let own = own_cost().cpu_since(own).as_secs_f64();
    let count = paced.count.max(1) as f64;
    let after = to.cost();
    let rate = Figure { name: "rate", unit: Unit::PerSecond, value: paced.per_second };
    Ok(Row {
        figures: [vec![rate], percentiles(&paced.latencies)].concat(),
        lost: paced.lost,
        duplicated: paced.duplicated,
        broker_us: broker.zip(after).map(|(before, after)| after.cpu_since(before).as_secs_f64() * 1e6 / count),
        broker_user_us: None,
        client_us: own * 1e6 / count,
        client_cores: own / wall.as_secs_f64().max(1e-9),
        resident_bytes: after.map(|cost| cost.resident_bytes),
    })
}

fn idle(to: &Target, count: Option<u64>) -> anyhow::Result<Row> {
    let connections = u32::try_from(count.unwrap_or(5_000))?;
    let idle = memory::idle(to, connections, u32::try_from(count.unwrap_or(10_000))?)?;
    let bytes = |name, value| Figure { name, unit: Unit::Bytes, value };
    let figures = vec![bytes("connection", idle.connection_bytes), bytes("queue", idle.queue_bytes)];
    Ok(Row { figures, resident_bytes: to.cost().map(|cost| cost.resident_bytes), ..Row::default() })
}

fn backlog(to: &Target, options: Options) -> anyhow::Result<Row> {
    let backlog = memory::backlog(to, options.count.unwrap_or(2_000_000), options.body_bytes)?;
    let figures = vec![
        Figure { name: "message", unit: Unit::Bytes, value: backlog.message_bytes },
        Figure { name: "in", unit: Unit::PerSecond, value: backlog.in_per_second },
        Figure { name: "out", unit: Unit::PerSecond, value: backlog.out_per_second },
        Figure { name: "kept", unit: Unit::Bytes, value: backlog.kept_bytes as f64 },
    ];
    Ok(Row { figures, lost: backlog.lost, resident_bytes: to.cost().map(|cost| cost.resident_bytes), ..Row::default() })
}

fn mail(to: &Target, count: u64) -> anyhow::Result<Row> {
    let mail = request::mail(to, count)?;
    let steps = [
        ("publish", "slowest publish", mail.publish),
        ("consume", "slowest consume", mail.consume),
        ("get", "slowest get", mail.get),
    ];
    let figures = steps.into_iter().flat_map(|(name, slowest, (rate, longest))| {
        [
            Figure { name, unit: Unit::PerSecond, value: rate },
            Figure { name: slowest, unit: Unit::Micros, value: micros(longest) },
        ]
    });
    Ok(Row { figures: figures.collect(), ..Row::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_are_found_by_their_id_in_either_case_and_none_stands_twice() {
        for (at, workload) in WORKLOADS.iter().enumerate() {
            assert_eq!(Workload::find(&workload.id.to_lowercase()), Some(*workload));
            assert!(WORKLOADS[..at].iter().all(|other| other.id != workload.id), "{} stands twice", workload.id);
        }
        assert_eq!(Workload::find("W99"), None);
    }

    #[test]
    fn percentiles_are_read_from_sorted_times() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_micros).collect();
        let values: Vec<f64> = percentiles(&times).iter().map(|figure| figure.value.round()).collect();
        assert_eq!(values, [50.0, 99.0]);
        assert_eq!(percentiles(&[])[0].value, 0.0);
    }
}
