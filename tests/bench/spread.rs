//! Publisher, broker and consumer as three hosts: network namespaces behind one bridge, joined by pairs of virtual interfaces.

use super::peers::{Peer, Place};
use super::{RUNS, options, print_short, run_with};
use reactor::cli::bench::{Summary, Workload};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

const BROKER: &str = "reactor-bench-broker";
const PUBLISHER: &str = "reactor-bench-publisher";
const CONSUMER: &str = "reactor-bench-consumer";
const NETWORK: [u8; 3] = [10, 203, 7];

/// The namespaces, gone when dropped.
struct Hosts;

impl Hosts {
    /// `None` where they cannot be made: that needs root and iproute2.
    fn make() -> Option<Hosts> {
        let hosts = Hosts;
        hosts.clear();
        for name in [BROKER, PUBLISHER, CONSUMER] {
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
        }
        ip(&["-n", BROKER, "link", "add", "bridge", "type", "bridge"])?;
        ip(&["-n", BROKER, "address", "add", &format!("{}/24", address(1)), "dev", "bridge"])?;
        ip(&["-n", BROKER, "link", "set", "bridge", "up"])?;
        for (name, port, last) in [(PUBLISHER, "publisher", 2), (CONSUMER, "consumer", 3)] {
            ip(&["-n", BROKER, "link", "add", port, "type", "veth", "peer", "name", "wire", "netns", name])?;
            ip(&["-n", BROKER, "link", "set", port, "master", "bridge", "up"])?;
            ip(&["-n", name, "address", "add", &format!("{}/24", address(last)), "dev", "wire"])?;
            ip(&["-n", name, "link", "set", "wire", "up"])?;
        }
        Some(hosts)
    }

    fn place(&self) -> Place {
        let path = |name: &str| PathBuf::from("/run/netns").join(name);
        Place { address: address(1), namespace: Some(BROKER), clients: Some((path(PUBLISHER), path(CONSUMER))) }
    }

    fn clear(&self) {
        for name in [BROKER, PUBLISHER, CONSUMER] {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.clear();
    }
}

fn address(last: u8) -> IpAddr {
    let [a, b, c] = NETWORK;
    IpAddr::from([a, b, c, last])
}

fn ip(arguments: &[&str]) -> Option<()> {
    let output = Command::new("ip").args(arguments).output().ok()?;
    if !output.status.success() {
        println!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        return None;
    }
    Some(())
}

/// Floods, a steady rate and the old benchmark between the three.
pub fn compare(binary: &Path) {
    println!("\nPublisher, broker and consumer in three network namespaces, {RUNS} runs in turns\n");
    let Some(hosts) = Hosts::make() else {
        println!("not measured: network namespaces need root and iproute2");
        return;
    };
    println!("| workload | reactor | RabbitMQ | × | lost, twice | broker CPU µs |\n|---|---|---|---|---|---|");
    let reactor = Peer::reactor_at(hosts.place(), binary, &[]);
    let rabbitmq = Peer::rabbitmq_at(hosts.place());
    for id in ["W1", "W3", "W8", "W24"] {
        let workload = Workload::find(id).expect("a workload");
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..RUNS {
            own.push(run_with(workload, &reactor, options(2.0)));
            other.extend(rabbitmq.as_ref().map(|peer| run_with(workload, peer, options(2.0))));
        }
        print_short(id, &Summary::of(workload, &own).expect("runs"), Summary::of(workload, &other).as_ref());
    }
}
