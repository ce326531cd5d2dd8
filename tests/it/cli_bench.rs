//! `reactor bench` against the real binary: every workload ends, with every message once.

use crate::support::{Reactor, http, run};
use reactor::cli::bench::{Server, Target, WORKLOADS};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn every_workload_ends_with_every_message_once() {
    let reactor = Reactor::start("");
    let short = ["--runs", "1", "--seconds", "0.1", "--count", "200", "--json"];
    let (code, stdout, stderr) = run(&[&["bench", "all", "--to", &reactor.amqp_url()][..], &short].concat());
    assert_eq!(code, 0, "{stderr}");
    let rows: Vec<serde_json::Value> = stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rows.len(), WORKLOADS.len(), "{stdout}");
    for (row, workload) in rows.iter().zip(WORKLOADS) {
        assert_eq!((&row["workload"], &row["lost"], &row["duplicated"]), (&workload.id.into(), &0.into(), &0.into()), "{row}");
        assert!(row["figures"].as_object().is_some_and(|figures| !figures.is_empty()), "{row}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn its_server_answers_calls_with_and_without_a_body() {
    let reactor = Reactor::start("");
    let to = Target::parse(&reactor.amqp_url()).expect("an address");
    let over = AtomicBool::new(false);
    let server = Server::new(&to, "benchecho", Some(("reactor.call", "benchecho.#"))).expect("a worker");
    let address = format!("{}/benchecho/x", reactor.gateway());
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(&over));
        let asked = tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                let empty = http().get(&address).send().await?.error_for_status()?.text().await?;
                let full = http().post(&address).body("twelve bytes").send().await?.error_for_status()?.text().await?;
                Ok::<_, reqwest::Error>((empty, full))
            })
        });
        over.store(true, Ordering::Release);
        serving.join().expect("it does not break").expect("it serves to the end");
        assert_eq!(asked.expect("answers"), (String::new(), "twelve bytes".to_owned()));
    });
}
