//! `reactor up` as a user meets it: the start block, ports, signals.

use crate::support::{DEADLINE, Reactor, http, run, wait_until, wait_until_blocking};

#[test]
fn the_start_block_names_every_port_and_ends_with_the_line_harnesses_wait_for() {
    let reactor = Reactor::start("");
    for door in ["http", "https", "ingress", "control", "bus", "amqp", "amqps", "otlp_grpc", "otlp_http"] {
        assert!(reactor.port(door) > 0);
    }
    let block = reactor.start_block();
    assert!(block.contains("messages are kept in memory, not on disk"), "{block}");
    assert!(block.contains(&format!("AMQP_URL=amqp://guest:guest@localhost:{}", reactor.port("amqp"))), "{block}");
    assert!(block.ends_with("Server startup complete\n"));
    assert!(!block.contains('\x1b'), "colours belong on terminals only");
}

#[test]
fn a_terminated_reactor_ends_well() {
    let reactor = Reactor::start("");
    assert!(reactor.stop().success());
}

#[test]
fn every_busy_port_is_named_at_once_with_who_holds_it() {
    let taken = Reactor::start("");
    let (amqp, bus) = (taken.port("amqp"), taken.port("bus"));
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("reactor.toml");
    let ports = format!(
        "[ports]\namqp = {amqp}\nbus = {bus}\nhttp = 0\nhttps = 0\ningress = 0\ncontrol = 0\namqps = 0\notlp_grpc = 0\notlp_http = false\n"
    );
    std::fs::write(&file, ports).expect("written");
    let (code, _, stderr) = run(&["up", "--ephemeral", "-c", file.to_str().expect("a path")]);
    assert_eq!(code, 1, "{stderr}");
    for port in [amqp, bus] {
        let line = stderr.lines().find(|line| line.contains(&format!(":{port} "))).unwrap_or_else(|| panic!("{port}: {stderr}"));
        assert!(line.ends_with(&format!("taken by reactor (pid {})", taken.pid())), "{stderr}");
    }
    assert!(stderr.contains("--port-offset") && stderr.contains("REACTOR_PORTS_BUS"), "{stderr}");
}

#[test]
fn a_second_reactor_says_that_the_first_runs_and_where() {
    for settings in ["", "auth = \"required\"\n"] {
        let first = Reactor::start(settings);
        let control = first.port("control");
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("reactor.toml");
        std::fs::write(&file, format!("[ports]\ncontrol = {control}\nhttp = 0\nhttps = 0\namqp = {}\nbus = 0\ningress = 0\namqps = 0\notlp_grpc = 0\notlp_http = 0\nmanagement = 0\nprometheus = 0\n", first.port("amqp")))
            .expect("written");
        let (code, _, stderr) = run(&["up", "--ephemeral", "-c", file.to_str().expect("a path")]);
        let pid = first.pid();
        assert_eq!(code, 1, "{stderr}");
        assert_eq!(
            stderr,
            format!(
                "reactor already runs here (pid {pid}): dashboard http://localhost:{control}\n\
                 Stop it, or start another beside it with --port-offset 20000.\n"
            )
        );
    }
}

#[tokio::test]
async fn a_hang_up_takes_over_changed_services_and_a_broken_file_changes_nothing() {
    let reactor = Reactor::start("[services.one]\ncommand = \"sleep 1000\"\n");
    let file = reactor.directory().join("reactor.toml");
    let url = format!("{}/api/v1/services", reactor.api());
    let has = async |name: &str| {
        let services: serde_json::Value = http().get(&url).send().await.expect("an answer").json().await.expect("JSON");
        services.as_array().expect("a list").iter().any(|service| service["name"] == name && service["owned"] == true)
    };
    assert!(has("one").await);
    std::fs::write(&file, "[services.two]\ncommand = \"sleep 1000\"\n").expect("written");
    reactor.signal("HUP");
    wait_until("the new service is there", DEADLINE, || has("two")).await;
    std::fs::write(&file, "[services.three]\n").expect("written");
    reactor.signal("HUP");
    wait_until_blocking("the mistake is told", DEADLINE, || reactor.stderr().contains("services.three.command is missing"));
    assert!(has("two").await && !has("three").await);
}

#[test]
fn a_second_signal_cuts_what_the_first_would_wait_for() {
    // The service ignores TERM and has a long grace: a patient stop would take a minute.
    let mut reactor = Reactor::start(
        "[services.stubborn]\ncommand = ['sh', '-c', 'trap \"\" TERM; echo up; while :; do sleep 1; done']\ngrace = \"60s\"\n",
    );
    wait_until_blocking("it runs", DEADLINE, || {
        run(&["status", "--json", "--url", &reactor.api()]).1.contains("\"last_line\":\"up\"")
    });
    reactor.signal("TERM");
    wait_until_blocking("the stop has begun", DEADLINE, || reactor.stderr().contains("stopping"));
    reactor.signal("TERM");
    assert!(reactor.wait().success());
}
