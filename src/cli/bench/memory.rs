//! What connections, queues and waiting messages cost in memory: W20 and W21.

use super::client::{Client, Consume, Template};
use super::target::Target;
use crate::kernel::Clock;
use crate::wire::amqp::method::{BasicAck, QueueDeclareOk};
use crate::wire::amqp::{PropertyList, encode};
use anyhow::Context;
use std::io::Write;
use std::thread;
use std::time::Duration;

const BATCH: u64 = 100;
const WINDOW: u64 = 10_000;
/// How long memory may take to settle, for instance until buffers at rest are given back.
const SETTLE: Duration = Duration::from_secs(3);

/// Bytes of resident memory for each idle connection with one channel, and for each idle queue.
#[derive(Clone, Copy, Debug)]
pub struct Idle {
    pub connection_bytes: f64,
    pub queue_bytes: f64,
}

pub fn idle(to: &Target, connections: u32, queues: u32) -> anyhow::Result<Idle> {
    let mut setup = Client::connect(to, 1)?;
    let before = resident(to)?;
    let name = |at: u32| format!("bench-idle-{}-{at}", std::process::id());
    (0..queues).try_for_each(|at| setup.declare_queue(&name(at)))?;
    let with_queues = resident(to)?;
    // The queues stay meanwhile: what they gave back would hide what the connections take.
    let held = (0..connections).map(|_| Client::connect(to, 1)).collect::<anyhow::Result<Vec<_>>>()?;
    let with_connections = resident(to)?;
    drop(held);
    (0..queues).try_for_each(|at| setup.delete_queue(&name(at)))?;
    setup.close()?;
    let each = |more: u64, less: u64, count: u32| more.saturating_sub(less) as f64 / f64::from(count.max(1));
    Ok(Idle {
        connection_bytes: each(with_connections, with_queues, connections),
        queue_bytes: each(with_queues, before, queues),
    })
}

fn resident(to: &Target) -> anyhow::Result<u64> {
    thread::sleep(SETTLE);
    let cost = to.cost().context("the broker's process cannot be seen from here: memory is measured only on one machine")?;
    Ok(cost.resident_bytes)
}

/// W21: messages into a queue nobody reads, and out of it again.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    pub message_bytes: f64,
    pub in_per_second: f64,
    pub out_per_second: f64,
    /// Resident memory above that before, after the drain.
    pub kept_bytes: u64,
    pub lost: u64,
}

pub fn backlog(to: &Target, count: u64, body_bytes: usize) -> anyhow::Result<Backlog> {
    let clock = Clock::system();
    let queue = format!("bench-backlog-{}", std::process::id());
    let mut client = Client::connect(to, 1)?;
    client.declare_queue(&queue)?;
    client.select_confirms(1)?;
    let before = resident(to)?;
    let begun = clock.now();
    fill(&mut client, &queue, count, body_bytes)?;
    let in_seconds = clock.now().since(begun).as_secs_f64();
    let full = resident(to)?;
    let mut consumer = Client::connect(to, 1)?;
    let begun = clock.now();
    consumer.consume(Consume { channel: 1, queue: &queue, prefetch: 2_000, no_ack: false })?;
    drain(&mut consumer, count)?;
    let out_seconds = clock.now().since(begun).as_secs_f64();
    consumer.close()?;
    let after = resident(to)?;
    let left = depth(&mut client, &queue)?;
    client.delete_queue(&queue)?;
    client.close()?;
    Ok(Backlog {
        message_bytes: full.saturating_sub(before) as f64 / count as f64,
        in_per_second: count as f64 / in_seconds,
        out_per_second: count as f64 / out_seconds,
        kept_bytes: after.saturating_sub(before),
        lost: left,
    })
}

fn fill(client: &mut Client, queue: &str, count: u64, body_bytes: usize) -> anyhow::Result<()> {
    let transient = PropertyList { delivery_mode: Some(1), ..PropertyList::default() };
    let template = Template::new(1, "", queue, transient, body_bytes);
    let (mut sent, mut confirmed, mut batch) = (0, 0, Vec::new());
    while confirmed < count {
        let now = BATCH.min(count - sent).min(WINDOW - (sent - confirmed));
        batch.clear();
        (sent..sent + now).for_each(|number| template.write(&mut batch, number, 0));
        client.stream.write_all(&batch)?;
        sent += now;
        if sent - confirmed > WINDOW - BATCH || sent == count {
            client.fill()?;
            while let Some(frame) = client.frame()? {
                if frame.is(BasicAck::ID) {
                    let (tag, multiple) = frame.settled();
                    confirmed = if multiple { confirmed.max(tag) } else { confirmed + 1 };
                }
            }
        }
    }
    Ok(())
}

fn drain(client: &mut Client, count: u64) -> anyhow::Result<()> {
    let (mut taken, mut tag, mut acked, mut out) = (0, 0, 0, Vec::new());
    while taken < count {
        // The first ones may have come with the answer to the consume.
        while let Some(frame) = client.frame()? {
            if frame.is_body() {
                taken += 1;
            } else if frame.payload.starts_with(&[0, 60, 0, 60]) && !frame.is_header() {
                tag = frame.delivery_tag();
            }
        }
        if tag - acked >= BATCH || taken == count {
            encode::ack(&mut out, 1, tag, true);
            client.stream.write_all(&out)?;
            out.clear();
            acked = tag;
        }
        if taken < count {
            client.fill()?;
        }
    }
    Ok(())
}

/// Messages a queue holds.
fn depth(client: &mut Client, queue: &str) -> anyhow::Result<u64> {
    use crate::wire::amqp::Method;
    use crate::wire::amqp::method::QueueDeclare;
    let declare = QueueDeclare { queue, ..QueueDeclare::default() };
    let answer = client.ask(1, &declare, QueueDeclareOk::ID)?;
    match Method::decode(&answer) {
        Ok(Method::QueueDeclareOk(ok)) => Ok(ok.message_count.into()),
        _ => anyhow::bail!("a broken queue.declare-ok"),
    }
}
