//! Speed, as ratios to peers measured in the same run. `tests/run bench` builds what is measured and calls this;
//! `README.md` beside it holds the dated results.
//!
//! `cargo bench --bench bench -- [start|flood|call|telemetry]…` runs a part.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod amqp;
mod call;
mod flood;
mod peers;

use flood::{Outcome, Shape};
use peers::Peer;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const RUNS: usize = 5;

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted == part);
    let binary = std::env::var_os("REACTOR_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_reactor")), PathBuf::from);
    println!("reactor: {}", binary.display());
    if wanted("start") {
        start(&binary);
    }
    if wanted("flood") {
        floods(&binary);
    }
    if wanted("call") {
        calls(&binary);
    }
    if wanted("telemetry") {
        telemetry(&binary);
    }
}

fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    (values[values.len() / 2], values[0], values[values.len() - 1])
}

/// W22: start until AMQP open-ok, idle memory, and what 5,000 idle connections cost.
fn start(binary: &std::path::Path) {
    println!("\nW22 start until open-ok, idle memory, idle CPU with 5,000 connections\n");
    println!("| peer | start ms, median (min-max) | idle MB | CPU % of a core, 5,000 idle | MB then |\n|---|---|---|---|---|");
    let starts = (0..RUNS).map(|_| Peer::reactor(binary, &[]).started_in.as_secs_f64() * 1e3).collect();
    idle_row(&Peer::reactor(binary, &[]), starts);
    if let Some(peer) = Peer::rabbitmq() {
        let starts = vec![peer.started_in.as_secs_f64() * 1e3];
        idle_row(&peer, starts);
    }
}

fn idle_row(peer: &Peer, starts: Vec<f64>) {
    std::thread::sleep(Duration::from_secs(3));
    let idle = peer.resident();
    let connections: Vec<_> = (0..5_000).map(|_| amqp::Client::connect(peer.amqp).expect("an idle connection")).collect();
    std::thread::sleep(Duration::from_secs(2));
    let (before, begun) = (peer.cpu(), Instant::now());
    std::thread::sleep(Duration::from_secs(20));
    let share = peer.cpu().since(before).total().as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
    let (middle, low, high) = median(starts);
    println!(
        "| {} | {middle:.0} ({low:.0}-{high:.0}) | {:.0} | {share:.2} | {:.0} |",
        peer.name,
        idle as f64 / 1e6,
        peer.resident() as f64 / 1e6
    );
    drop(connections);
}

fn floods(binary: &std::path::Path) {
    let shapes = [
        ("W1 direct, confirms, ack every 100", Shape { confirms: true, acks: true }),
        ("W3 direct, no confirms, auto-ack", Shape { confirms: false, acks: false }),
    ];
    for (title, shape) in shapes {
        println!("\n{title}, {} B\n", flood::BODY_BYTES);
        println!("| peer | msg/s, median (min-max) | × RabbitMQ | lost | dup | broker CPU µs | client CPU µs | first ms | MB |");
        println!("|---|---|---|---|---|---|---|---|---|");
        let reactor = Peer::reactor(binary, &[]);
        let rabbitmq = Peer::rabbitmq();
        flood::run(&reactor, shape, 200_000);
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            ours.push(flood::run(&reactor, shape, 2_000_000));
            if let Some(peer) = &rabbitmq {
                theirs.push(flood::run(peer, shape, 200_000));
            }
        }
        let base = (!theirs.is_empty()).then(|| median(theirs.iter().map(|run| run.per_second).collect()).0);
        flood_row(&reactor, &ours, base);
        if let Some(peer) = &rabbitmq {
            flood_row(peer, &theirs, base);
        }
    }
}

fn flood_row(peer: &Peer, runs: &[Outcome], base: Option<f64>) {
    let column = |value: fn(&Outcome) -> f64| median(runs.iter().map(value).collect());
    let (middle, low, high) = column(|run| run.per_second);
    let ratio = base.map_or("-".to_owned(), |base| format!("{:.1}", middle / base));
    println!(
        "| {} | {:.0} k ({:.0}-{:.0}) | {ratio} | {} | {} | {:.2} | {:.2} | {:.2} | {:.0} |",
        peer.name,
        middle / 1e3,
        low / 1e3,
        high / 1e3,
        runs.iter().map(|run| run.lost).sum::<u64>(),
        runs.iter().map(|run| run.duplicated).sum::<u64>(),
        column(|run| run.broker_us).0,
        column(|run| run.client_us).0,
        column(|run| run.first_delivery.as_secs_f64() * 1e3).0,
        peer.resident() as f64 / 1e6
    );
}

fn calls(binary: &std::path::Path) {
    println!("\nHTTP → gateway → AMQP consumer → reply, one at a time over one keep-alive connection\n");
    println!("| peer | p50 µs | p95 µs | p99 µs | max µs |\n|---|---|---|---|---|");
    let peer = Peer::reactor(binary, &[]);
    call::run(&peer, 1_000);
    let times = call::run(&peer, 20_000);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_micros();
    println!("| reactor | {} | {} | {} | {} |", at(0.5), at(0.95), at(0.99), at(1.0));
}

/// What telemetry adds to W1 in flood: user CPU per message with its own spans on and off, in interleaved pairs.
fn telemetry(binary: &std::path::Path) {
    const PAIRS: usize = 9;
    println!("\nTelemetry's cost in W1: broker user CPU µs per message, {PAIRS} interleaved pairs of 2,000,000\n");
    let shape = Shape { confirms: true, acks: true };
    let on = Peer::reactor(binary, &[]);
    let off = Peer::reactor(binary, &[("REACTOR_TELEMETRY_SPANS_PER_SECOND_MAX", "0")]);
    for peer in [&on, &off] {
        flood::run(peer, shape, 500_000);
    }
    let mut differences = Vec::new();
    println!("| pair | on | off | difference |\n|---|---|---|---|");
    for pair in 1..=PAIRS {
        let order: [&Peer; 2] = if pair % 2 == 0 { [&on, &off] } else { [&off, &on] };
        let costs: Vec<f64> = order.iter().map(|peer| flood::run(peer, shape, 2_000_000).broker_user_us).collect();
        let (with, without) = if pair % 2 == 0 { (costs[0], costs[1]) } else { (costs[1], costs[0]) };
        println!("| {pair} | {with:.3} | {without:.3} | {:+.3} |", with - without);
        differences.push(with - without);
    }
    let (middle, low, high) = median(differences);
    println!("| median (min-max) | | | {middle:+.3} ({low:+.3} to {high:+.3}) |");
}
