//! Speed, as ratios to peers measured in the same run. `tests/run bench` builds what is measured and calls this;
//! `README.md` beside it holds the dated results.
//!
//! `cargo bench --bench bench -- [start|call|telemetry|consumers|spread|nats|W1|W2|…]…` runs a part. `BENCH_HTML=FILE` draws the workloads' results.

#![allow(clippy::print_stdout, reason = "a bench prints its table")]

mod call;
mod nats;
mod peers;
mod spread;

use peers::Peer;
use reactor::cli::bench::{self, Client, Options, Row, Summary, WORKLOADS, Workload};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const RUNS: usize = 5;

/// How many times RabbitMQ's figure a workload must reach, and should: the first figure of each.
const RATIOS: &[(&str, f64, f64)] = &[
    ("W1", 25.0, 45.0),
    ("W2", 32.0, 60.0),
    ("W3", 18.0, 32.0),
    ("W3-topic", 18.0, 32.0),
    ("W4", 45.0, 80.0),
    ("W5", 22.0, 40.0),
    ("W6", 35.0, 75.0),
    ("W6-10", 35.0, 75.0),
    ("W7", 18.0, 30.0),
    ("W12", 2.5, 3.3),
    ("W12-10", 4.0, 5.0),
    ("W12-100", 10.0, 15.0),
    ("W13", 2.0, 2.8),
];

fn main() {
    let parts: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted = |part: &str| parts.is_empty() || parts.iter().any(|wanted| wanted.eq_ignore_ascii_case(part));
    let binary = std::env::var_os("REACTOR_BIN").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_reactor")), PathBuf::from);
    println!("reactor: {}", binary.display());
    if wanted("start") {
        start(&binary);
    }
    workloads(&binary, &wanted);
    if wanted("consumers") {
        consumers(&binary);
    }
    if wanted("spread") {
        spread::compare(&binary);
    }
    if wanted("nats") {
        nats::compare(&binary);
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
fn start(binary: &Path) {
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
    let connections: Vec<_> = (0..5_000).map(|_| Client::connect(&peer.target, 1).expect("an idle connection")).collect();
    std::thread::sleep(Duration::from_secs(2));
    let (before, begun) = (peer.cpu(), Instant::now());
    std::thread::sleep(Duration::from_secs(20));
    let share = peer.cpu().since(before).as_secs_f64() / begun.elapsed().as_secs_f64() * 100.0;
    let (middle, low, high) = median(starts);
    println!(
        "| {} | {middle:.0} ({low:.0}-{high:.0}) | {:.0} | {share:.2} | {:.0} |",
        peer.name,
        idle as f64 / 1e6,
        peer.resident() as f64 / 1e6
    );
    drop(connections);
}

fn options(seconds: f64) -> Options {
    Options { duration: Duration::from_secs_f64(seconds), body_bytes: 250, consumers: 1, count: None }
}

/// Every workload asked for, in turns with RabbitMQ.
fn workloads(binary: &Path, wanted: &dyn Fn(&str) -> bool) {
    let chosen: Vec<Workload> = WORKLOADS.iter().filter(|workload| wanted(workload.id)).copied().collect();
    if chosen.is_empty() {
        return;
    }
    println!("\nWorkloads, 250 bytes unless said, {RUNS} runs in turns\n");
    println!("| | workload | reactor | RabbitMQ | × | must / aim | lost, twice | broker CPU µs | client CPU µs | client cores |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let rabbitmq = Peer::rabbitmq();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for workload in chosen {
        // A fresh one each, so that memory and warmth of one workload do not colour the next.
        let reactor = Peer::reactor(binary, &[]);
        let warm = !["W20", "W21"].contains(&workload.id);
        if warm {
            let _ = workload.run(&reactor.target, options(0.3));
        }
        let runs = match workload.id {
            _ if !warm => 1,
            // Over in a moment, and the operating system's mood decides much of it.
            "W25" => 8 * RUNS,
            _ => RUNS,
        };
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            own.push(run(workload, &reactor));
            other.extend(rabbitmq.as_ref().and_then(|peer| run_or_tell(workload, peer)));
        }
        let own = Summary::of(workload, &own).expect("runs");
        let other = Summary::of(workload, &other);
        print_row(&own, other.as_ref());
        ours.push(own);
        theirs.extend(other);
    }
    if let Some(file) = std::env::var_os("BENCH_HTML") {
        let page = bench::html_page(&[("reactor".into(), ours), ("RabbitMQ".into(), theirs)]);
        std::fs::write(&file, page).expect("a writable file");
    }
}

/// W1 with more consumers of its queue.
fn consumers(binary: &Path) {
    println!("\nW1 with one to eight consuming connections, {RUNS} runs in turns\n");
    println!("| consumers | reactor | RabbitMQ | × | lost, twice | broker CPU µs |\n|---|---|---|---|---|---|");
    let workload = Workload::find("W1").expect("W1");
    let (reactor, rabbitmq) = (Peer::reactor(binary, &[]), Peer::rabbitmq());
    for count in 1..=8 {
        let once = |peer: &Peer| run_with(workload, peer, Options { consumers: count, ..options(2.0) });
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            own.push(once(&reactor));
            other.extend(rabbitmq.as_ref().map(once));
        }
        let own = Summary::of(workload, &own).expect("runs");
        print_short(&count.to_string(), &own, Summary::of(workload, &other).as_ref());
    }
}

/// A row of those tables that compare one workload under several conditions.
pub fn print_short(what: &str, own: &Summary, other: Option<&Summary>) {
    let rate = |summary: &Summary| summary.figures.first().map_or("-".into(), bench::figure_text);
    println!(
        "| {what} | {} | {} | {} | {}, {} | {} |",
        rate(own),
        other.map_or("-".into(), rate),
        other.and_then(|other| own.ratio(other)).map_or("-".into(), |ratio| format!("{ratio:.1}")),
        own.lost,
        own.duplicated,
        own.broker_us.map_or("-".into(), |us| format!("{us:.2}")),
    );
}

/// Of a peer that did not get through it, one line says so, and the others' figures stand.
fn run_or_tell(workload: Workload, peer: &Peer) -> Option<Row> {
    let row = workload.run(&peer.target, options(2.0));
    row.inspect_err(|error| println!("{} against {}: {error:#}", workload.id, peer.name)).ok()
}

fn run(workload: Workload, peer: &Peer) -> Row {
    run_with(workload, peer, options(2.0))
}

fn run_with(workload: Workload, peer: &Peer, options: Options) -> Row {
    workload.run(&peer.target, options).unwrap_or_else(|error| panic!("{} against {}: {error:#}", workload.id, peer.name))
}

fn print_row(own: &Summary, other: Option<&Summary>) {
    let figures = |summary: &Summary| summary.figures.iter().map(bench::figure_text).collect::<Vec<_>>().join(", ");
    let ratio = other.and_then(|other| own.ratio(other)).map_or("-".into(), |ratio| format!("{ratio:.1}"));
    let goal = RATIOS.iter().find(|(id, ..)| *id == own.workload.id);
    println!(
        "| {} | {} | {} | {} | {ratio} | {} | {}, {} | {} | {:.2} | {:.2} |",
        own.workload.id,
        own.workload.title,
        figures(own),
        other.map_or("-".into(), figures),
        goal.map_or("-".into(), |(_, must, aim)| format!("{must} / {aim}")),
        own.lost,
        own.duplicated,
        own.broker_us.map_or("-".into(), |us| format!("{us:.2}")),
        own.client_us,
        own.client_cores,
    );
}

fn calls(binary: &Path) {
    println!("\nHTTP → gateway → AMQP consumer → reply, one at a time over one keep-alive connection\n");
    println!("| peer | p50 µs | p95 µs | p99 µs | max µs |\n|---|---|---|---|---|");
    let peer = Peer::reactor(binary, &[]);
    call::run(&peer, 1_000);
    let times = call::run(&peer, 20_000);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_micros();
    println!("| reactor | {} | {} | {} | {} |", at(0.5), at(0.95), at(0.99), at(1.0));
}

/// What telemetry adds to W1 in flood: user CPU per message with its own spans on and off, in interleaved pairs.
fn telemetry(binary: &Path) {
    const PAIRS: usize = 9;
    println!("\nTelemetry's cost in W1: broker user CPU µs per message, {PAIRS} interleaved pairs of 1 s\n");
    let plain = Workload::find("W1").expect("W1");
    let on = Peer::reactor(binary, &[]);
    let off = Peer::reactor(binary, &[("REACTOR_TELEMETRY_SPANS_PER_SECOND_MAX", "0")]);
    let cost = |peer: &Peer| {
        let row = plain.run(&peer.target, options(1.0)).unwrap_or_else(|error| panic!("W1 against {}: {error:#}", peer.name));
        row.broker_user_us.expect("the broker runs on this machine")
    };
    for peer in [&on, &off] {
        cost(peer);
    }
    let mut differences = Vec::new();
    println!("| pair | on | off | difference |\n|---|---|---|---|");
    for pair in 1..=PAIRS {
        let (with, without) = match pair % 2 {
            0 => (cost(&on), cost(&off)),
            _ => {
                let without = cost(&off);
                (cost(&on), without)
            }
        };
        println!("| {pair} | {with:.3} | {without:.3} | {:+.3} |", with - without);
        differences.push(with - without);
    }
    let (middle, low, high) = median(differences);
    println!("| median (min-max) | | | {middle:+.3} ({low:+.3} to {high:+.3}) |");
}
