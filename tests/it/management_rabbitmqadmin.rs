//! The classic `rabbitmqadmin`, unchanged, through everything it can do. It is RabbitMQ's own program: where Debian's package is not
//! installed there is nothing to run.

use crate::support::Reactor;
use std::path::Path;
use std::process::{Command, Output};

const SCRIPTS: [&str; 2] = [
    "/usr/bin/rabbitmqadmin",
    "/usr/lib/rabbitmq/lib/rabbitmq_server-3.10.8/plugins/rabbitmq_management-3.10.8/priv/www/cli/rabbitmqadmin",
];

fn run(reactor: &Reactor, arguments: &[&str]) -> Option<Output> {
    let script = SCRIPTS.into_iter().find(|script| Path::new(script).exists())?;
    let port = reactor.port("management").to_string();
    let output = Command::new("python3").args([script, "-H", "localhost", "-P", &port]).args(arguments).output();
    Some(output.expect("python3 runs"))
}

/// Runs it and returns what it printed; `None` where it is not installed.
fn admin(reactor: &Reactor, arguments: &[&str]) -> Option<String> {
    let output = run(reactor, arguments)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "rabbitmqadmin {arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
    Some(text(&output.stdout))
}

#[test]
fn the_classic_rabbitmqadmin_does_all_it_can() {
    let reactor = Reactor::start("");
    let Some(overview) = admin(&reactor, &["show", "overview"]) else { return };
    assert!(overview.contains("3.13.7"), "{overview}");
    let admin = |arguments: &[&str]| admin(&reactor, arguments).expect("installed");
    for declared in [
        &["declare", "vhost", "name=shop"][..],
        &["declare", "user", "name=ann", "password=secret", "tags=administrator"],
        &["declare", "permission", "vhost=shop", "user=ann", "configure=.*", "write=.*", "read=.*"],
        &["-V", "shop", "declare", "queue", "name=inner"],
        &["declare", "queue", "name=work", "durable=true"],
        &["declare", "queue", "name=safe", "queue_type=quorum"],
        &["declare", "exchange", "name=prices", "type=topic"],
        &["declare", "binding", "source=prices", "destination=work", "routing_key=eu.#"],
        &["declare", "policy", "name=short", "pattern=^w", "definition={\"max-length\":5}", "apply-to=queues"],
        &["declare", "operator_policy", "name=cap", "pattern=^w", "definition={\"max-length\":9}", "apply-to=queues"],
        &["declare", "vhost_limit", "vhost=shop", "name=max-queues", "value=10"],
    ] {
        assert!(admin(declared).contains("declared"), "{declared:?}");
    }
    let published =
        admin(&["publish", "exchange=prices", "routing_key=eu.gold", "payload=1,900", "properties={\"delivery_mode\":2}"]);
    assert!(published.contains("Message published") && !published.contains("NOT routed"), "{published}");
    assert!(admin(&["publish", "routing_key=nowhere", "payload=x"]).contains("NOT routed"));
    let got = admin(&["get", "queue=work", "count=2"]);
    assert!(got.contains("1,900") && got.contains("eu.gold"), "{got}");
    for (listed, part) in [
        ("connections", "No items"),
        ("channels", "No items"),
        ("consumers", "No items"),
        ("exchanges", "prices"),
        ("queues", "work"),
        ("bindings", "eu.#"),
        ("users", "ann"),
        ("vhosts", "shop"),
        ("permissions", "ann"),
        ("nodes", "rabbit@"),
        ("parameters", "vhost-limits"),
        ("policies", "short"),
        ("operator_policies", "cap"),
        ("vhost_limits", "max-queues"),
    ] {
        let list = admin(&["list", listed]);
        assert!(list.contains(part), "{part} is not in the list of {listed}:\n{list}");
    }
    let columns = admin(&["-f", "tsv", "-q", "list", "queues", "name", "messages", "message_stats.publish"]);
    assert!(columns.lines().any(|line| line.split_whitespace().eq(["work", "1", "1"])), "{columns}");
    let inner = admin(&["-V", "shop", "list", "queues", "vhost", "name"]);
    assert!(inner.contains("inner") && !inner.contains("work"), "{inner}");

    let file = reactor.directory().join("definitions.json");
    let file = file.to_str().expect("a path");
    admin(&["export", file]);
    assert!(std::fs::read_to_string(file).expect("written").contains("\"prices\""));
    admin(&["purge", "queue", "name=work"]);
    for deleted in [
        &["delete", "binding", "source=prices", "destination_type=queue", "destination=work", "properties_key=eu.%23"][..],
        &["delete", "exchange", "name=prices"],
        &["delete", "queue", "name=work"],
        &["delete", "queue", "name=safe"],
        &["delete", "policy", "name=short"],
        &["delete", "operator_policy", "name=cap"],
        &["delete", "vhost_limit", "vhost=shop", "name=max-queues"],
        &["delete", "permission", "vhost=shop", "user=ann"],
        &["delete", "user", "name=ann"],
        &["delete", "vhost", "name=shop"],
    ] {
        assert!(admin(deleted).contains("deleted"), "{deleted:?}");
    }
    assert!(!run(&reactor, &["delete", "queue", "name=work"]).expect("installed").status.success(), "it is gone");
    admin(&["import", file]);
    assert!(admin(&["list", "bindings"]).contains("eu.#"), "the definitions came back");
}
