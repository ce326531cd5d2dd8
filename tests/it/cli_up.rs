//! `reactor up` as a user meets it: the start block, ports, signals.

use crate::support::{Reactor, run};

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
        assert!(stderr.contains(&format!(":{port} is taken by reactor (pid {})", taken.pid())), "{stderr}");
    }
    assert!(stderr.contains("ports.amqp") && stderr.contains("REACTOR_PORTS_BUS"), "{stderr}");
}
