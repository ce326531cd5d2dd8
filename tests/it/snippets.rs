//! The ten-line services that the dashboard and the README show, run as they are: each attaches, answers through the gateway and
//! leaves. Python and Node use the client libraries that `tests/run` installs; the Rust one is compiled into this very test.

use crate::support::{DEADLINE, Reactor, http, repository, wait_until};
use std::process::{Child, Command, Stdio};

#[allow(dead_code)]
mod rust {
    include!("../../assets/snippets/rust.rs");

    pub fn run() {
        main().expect("the snippet runs until it is killed");
    }
}

/// Kills its process when the test is over, however it ends.
struct Script(Child);

impl Script {
    fn start(command: &mut Command, reactor: &Reactor) -> Script {
        let command = command.env("AMQP_URL", reactor.amqp_url()).stdin(Stdio::null());
        Script(command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}; tests/run installs it")))
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn python(script: &str) -> Command {
    let mut command = Command::new(repository("target/venv/bin/python"));
    command.arg(repository(script));
    command
}

fn node(script: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(repository(script)).env("NODE_PATH", repository("target/clients/node_modules"));
    command
}

/// The request is answered 200 with `expected`, once the service has attached.
pub async fn until_answer(reactor: &Reactor, path: &str, expected: &str) {
    let url = format!("{}{path}", reactor.gateway());
    wait_until(&format!("{path} is answered {expected:?}"), DEADLINE, || async {
        let Ok(response) = http().get(&url).send().await else { return false };
        response.status() == 200 && response.text().await.is_ok_and(|body| body == expected)
    })
    .await;
}

#[tokio::test]
async fn the_python_snippet_answers_through_the_gateway() {
    let reactor = Reactor::start("");
    let _greeter = Script::start(&mut python("assets/snippets/python.py"), &reactor);
    until_answer(&reactor, "/greeter/hello/ann", "Hello, ann").await;
}

#[tokio::test]
async fn the_node_snippet_answers_through_the_gateway() {
    let reactor = Reactor::start("");
    let _greeter = Script::start(&mut node("assets/snippets/node.js"), &reactor);
    until_answer(&reactor, "/greeter/hello/ann", "Hello, ann").await;
}

#[tokio::test]
async fn the_rust_snippet_answers_through_the_gateway() {
    let reactor = Reactor::start("");
    let mut this_test = Command::new(std::env::current_exe().expect("this test has a file"));
    this_test.args(["--exact", "snippets::the_rust_snippet_itself"]).env("RUN_RUST_SNIPPET", "1").stdout(Stdio::null());
    let _greeter = Script::start(&mut this_test, &reactor);
    until_answer(&reactor, "/greeter/hello/ann", "Hello, ann").await;
}

/// Not a test but the process that the test above starts; by itself it does nothing.
#[test]
fn the_rust_snippet_itself() {
    if std::env::var_os("RUN_RUST_SNIPPET").is_some() {
        rust::run();
    }
}

#[tokio::test]
async fn snippets_in_different_languages_share_one_queue() {
    let reactor = Reactor::start("");
    let _python = Script::start(&mut python("assets/snippets/python.py"), &reactor);
    let _node = Script::start(&mut node("assets/snippets/node.js"), &reactor);
    until_answer(&reactor, "/greeter/hello/ann", "Hello, ann").await;
    wait_until("two instances of one service are attached", DEADLINE, || async {
        let url = format!("{}/api/v1/services", reactor.api());
        let Ok(response) = http().get(url).send().await else { return false };
        let services: serde_json::Value = response.json().await.unwrap_or_default();
        let greeter = services.as_array().into_iter().flatten().find(|service| service["name"] == "greeter");
        greeter.is_some_and(|greeter| greeter["instances"].as_array().is_some_and(|instances| instances.len() == 2))
    })
    .await;
}

#[test]
fn every_snippet_is_listed_with_its_file() {
    let list = std::fs::read_to_string(repository("assets/snippets/snippets.json")).expect("it is there");
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let languages: Vec<&str> = list.as_array().expect("a list").iter().filter_map(|entry| entry["language"].as_str()).collect();
    assert_eq!(languages, ["python", "node", "go", "java", "dotnet", "rust"]);
    for entry in list.as_array().expect("a list") {
        let source = entry["source"].as_str().expect("a file");
        let text = std::fs::read_to_string(repository("assets/snippets").join(source)).expect("it is there");
        assert!(text.contains("greeter.#") && text.contains("AMQP_URL"), "{source}");
        assert!(entry["install"].is_string() && entry["run"].is_string() && entry["file"].is_string());
    }
}
