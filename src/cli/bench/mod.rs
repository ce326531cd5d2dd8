//! `reactor bench`: a load generator for any AMQP 0-9-1 broker, with the workloads that reactor's own figures are made of.
//!
//! Blocking sockets and one thread a connection, so that it stays cheaper than what it measures; it prints what it cost itself.

mod client;
mod flood;
mod html;
mod memory;
mod report;
mod request;
mod target;
mod workload;

pub use client::Client;
pub use report::{HEADINGS, Measured, Spread, Summary, figure_text};
pub use request::Server;
pub use target::{Cost, Target};
pub use workload::{Figure, Options, Row, Unit, WORKLOADS, Workload};

use super::{Outcome, print};
use crate::kernel::counted;
use anyhow::{Context, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, Args)]
pub struct BenchArguments {
    /// Workloads to run, by id; all of `reactor bench --list` with `all`.
    #[arg(value_name = "WORKLOAD", default_value = "W1")]
    workloads: Vec<String>,
    /// The broker.
    #[arg(long, value_name = "URL", default_value = "amqp://guest:guest@localhost:5672/%2F")]
    to: String,
    /// How often to run each; the median counts.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Seconds of publishing in one run.
    #[arg(long, value_name = "S", default_value_t = 3.0)]
    seconds: f64,
    /// Bytes of a message's body; at least 16.
    #[arg(long, value_name = "BYTES", default_value_t = 250, value_parser = clap::value_parser!(u32).range(16..=131_000))]
    size: u32,
    /// Consumers of each queue.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    consumers: u16,
    /// Messages, connections or queues where a workload counts instead of lasting.
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Network namespace that clients dial from: a name as `ip netns` lists them, or a path. Needs root.
    #[arg(long, value_name = "NETNS", value_parser = namespace)]
    from: Option<PathBuf>,
    /// Another one that the consumers of W1 to W8 dial from.
    #[arg(long, value_name = "NETNS", value_parser = namespace)]
    consume_from: Option<PathBuf>,
    /// Show the workloads and end.
    #[arg(long)]
    list: bool,
    /// One JSON object a workload, for programs.
    #[arg(long)]
    json: bool,
    /// Draw the results into this file as well.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs what is asked for and prints it.
pub fn run(arguments: &BenchArguments) -> Outcome {
    match bench(arguments) {
        Ok(outcome) => outcome,
        Err(error) => {
            print::error(&format!("{error:#}"));
            Outcome::Failed
        }
    }
}

fn bench(arguments: &BenchArguments) -> anyhow::Result<Outcome> {
    if arguments.list {
        let rows: Vec<_> =
            WORKLOADS.iter().map(|known| vec![print::Cell::new(known.id), print::Cell::new(known.title)]).collect();
        print::raw(&print::table(&["WORKLOAD", "WHAT"], &rows, print::colours()));
        return Ok(Outcome::Done);
    }
    let workloads = chosen(&arguments.workloads)?;
    if !(0.05..=3_600.0).contains(&arguments.seconds) {
        bail!("--seconds {} makes no sense: give a time from 0.05 to 3600", arguments.seconds);
    }
    let (namespace, consumers_namespace) = (arguments.from.clone(), arguments.consume_from.clone());
    let to = Target { namespace, consumers_namespace, ..Target::parse(&arguments.to)? };
    let options = Options {
        duration: Duration::from_secs_f64(arguments.seconds),
        body_bytes: arguments.size as usize,
        consumers: arguments.consumers,
        count: arguments.count,
    };
    let broker = client::product(&to)?;
    let mut summaries = Vec::new();
    if !arguments.json {
        print::line(&format!(
            "{broker} on {}, {}, {}",
            to.address,
            counted(arguments.size, "byte"),
            counted(arguments.runs, "run")
        ));
    }
    for workload in workloads {
        let summary = measure(workload, &to, options, arguments.runs)?;
        if arguments.json {
            print::line(&summary.json(&broker).to_string());
        } else {
            print::error(&format!("{} {}", workload.id, workload.title));
        }
        summaries.push(summary);
    }
    if !arguments.json {
        let rows: Vec<_> = summaries.iter().map(Summary::cells).collect();
        print::raw(&print::table(HEADINGS, &rows, print::colours()));
    }
    if let Some(file) = &arguments.html {
        let page = html::page(&[(broker, summaries.clone())]);
        std::fs::write(file, page).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let wrong = summaries.iter().any(|summary| summary.lost + summary.duplicated > 0);
    Ok(if wrong { Outcome::Failed } else { Outcome::Done })
}

fn namespace(given: &str) -> Result<PathBuf, String> {
    let path = Path::new("/run/netns").join(given);
    match path.exists() {
        true => Ok(path),
        false => Err(format!("there is no {}; `ip netns add {given}` makes one", path.display())),
    }
}

fn chosen(ids: &[String]) -> anyhow::Result<Vec<Workload>> {
    if ids.iter().any(|id| id == "all") {
        return Ok(WORKLOADS.to_vec());
    }
    let find = |id: &String| {
        let known = || WORKLOADS.iter().map(|workload| workload.id).collect::<Vec<_>>().join(", ");
        Workload::find(id).with_context(|| format!("there is no workload '{id}'; there are {} (and all)", known()))
    };
    ids.iter().map(find).collect()
}

/// Runs a workload so many times.
pub fn measure(workload: Workload, to: &Target, options: Options, runs: u32) -> anyhow::Result<Summary> {
    let rows = (0..runs).map(|_| workload.run(to, options)).collect::<anyhow::Result<Vec<_>>>();
    let rows = rows.with_context(|| format!("{} could not be run", workload.id))?;
    Summary::of(workload, &rows).context("no run at all")
}

/// A page with one chart a workload, a bar for each broker.
pub fn html_page(results: &[(String, Vec<Summary>)]) -> String {
    html::page(results)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_namespace_is_refused_with_how_to_make_it() {
        let error = namespace("nowhere").expect_err("refused");
        assert_eq!(error, "there is no /run/netns/nowhere; `ip netns add nowhere` makes one");
        assert_eq!(namespace("/proc/self/ns/net"), Ok(PathBuf::from("/proc/self/ns/net")));
    }

    #[test]
    fn an_unknown_workload_is_refused_with_the_known_ones() {
        let error = chosen(&["w1".into(), "W99".into()]).expect_err("refused").to_string();
        assert!(error.contains("'W99'") && error.contains("W12-100"), "{error}");
        assert_eq!(chosen(&["w3".into()]).expect("known")[0].id, "W3");
        assert_eq!(chosen(&["all".into()]).expect("known").len(), WORKLOADS.len());
    }
}
