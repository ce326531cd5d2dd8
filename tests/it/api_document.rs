//! The OpenAPI document against the running binary, both ways.

use crate::schema::Document;
use crate::support::{DEADLINE, Reactor, wait_until};
use lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use reqwest::{Client, Method, StatusCode};
use serde_json::Value;
use std::collections::BTreeMap;

/// A reactor with something of everything: a supervised service, a queue with a message, a trace, log records.
const BUSY: &str = r#"
[services.echo]
command = ["sh", "-c", "echo hello; echo trouble >&2; exec sleep 600"]
"#;

async fn busy() -> (Reactor, lapin::Connection) {
    let reactor = Reactor::start(BUSY);
    let connection =
        lapin::Connection::connect(&reactor.amqp_url(), lapin::ConnectionProperties::default()).await.expect("connects");
    let channel = connection.create_channel().await.expect("a channel");
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare("worker.orders".into(), options, FieldTable::default()).await.expect("a queue");
    // Asked for once, so that the message is followed.
    reqwest::get(format!("{}/api/v1/journeys", reactor.api())).await.expect("answers");
    let publish =
        channel.basic_publish("".into(), "worker.orders".into(), BasicPublishOptions::default(), b"one", Default::default());
    publish.await.expect("published");
    reqwest::get(format!("{}/nobody/here", reactor.gateway())).await.expect("the gateway answers");
    (reactor, connection)
}

async fn document(reactor: &Reactor) -> Document {
    let response = reqwest::get(format!("{}/api/v1/openapi.json", reactor.api())).await.expect("answers");
    Document(response.json().await.expect("JSON"))
}

/// Values for path parameters that name something the busy reactor has.
async fn path_values(reactor: &Reactor) -> BTreeMap<&'static str, String> {
    let newest = async || {
        let page: Value =
            reqwest::get(format!("{}/api/v1/traces", reactor.api())).await.expect("answers").json().await.expect("JSON");
        page["rows"][0]["trace_id"].as_str().map(str::to_owned)
    };
    wait_until("a trace of the gateway's request", DEADLINE, async || newest().await.is_some()).await;
    let trace = newest().await.expect("it was there");
    wait_until("the first metric points", DEADLINE, async || {
        let address = format!("{}/api/v1/metrics/query?name=reactor.gateway.requests", reactor.api());
        reqwest::get(address).await.expect("answers").status() == 200
    })
    .await;
    BTreeMap::from([("trace_id", trace), ("space", "%2F".into()), ("command", "start".into()), ("id", "1".into())])
}

fn filled(path: &str, values: &BTreeMap<&str, String>) -> String {
    let mut filled = path.to_owned();
    if path.contains("/messages/{id}") || path.contains("/journeys/") {
        // The first of its queue, and of its space.
        filled = filled.replace("{id}", "0");
    }
    for (name, value) in values {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    let name = match path {
        path if path.contains("/services/") => "echo",
        path if path.contains("/exchanges/") => "amq.topic",
        _ => "worker.orders",
    };
    filled.replace("{name}", name)
}

/// Query strings of the operations that require one.
fn query(path: &str) -> &'static str {
    match path {
        "/api/v1/metrics/query" => "?name=reactor.gateway.requests",
        _ => "",
    }
}

#[tokio::test]
async fn every_documented_read_answers_in_the_shape_it_promises() {
    let (reactor, _connection) = busy().await;
    let document = document(&reactor).await;
    let values = path_values(&reactor).await;
    let mut wrong = Vec::new();
    for (path, item) in document.0["paths"].as_object().expect("paths") {
        let operation = &item["get"];
        if operation.is_null() || path == "/api/v1/live" {
            continue;
        }
        let address = format!("{}{}{}", reactor.api(), filled(path, &values), query(path));
        let response = reqwest::get(&address).await.expect("answers");
        let status = response.status();
        let promised = &operation["responses"][status.as_str()];
        if promised.is_null() {
            wrong.push(format!("GET {address}: {status} is not documented"));
            continue;
        }
        let content_type =
            response.headers()["content-type"].to_str().expect("ascii").split(';').next().expect("a type").to_owned();
        let schema = &promised["content"][&content_type]["schema"];
        if !schema.is_object() {
            wrong.push(format!("GET {address}: {status} as {content_type} is not documented"));
            continue;
        }
        if status != 200 {
            wrong.push(format!("GET {address}: {status} {}", response.text().await.expect("a body")));
            continue;
        }
        if content_type.ends_with("json") {
            let body: Value = response.json().await.expect("JSON");
            wrong.extend(document.faults(schema, &body).into_iter().map(|fault| format!("GET {address}: {fault}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_documented_method_is_served_and_no_other() {
    let (reactor, _connection) = busy().await;
    let document = document(&reactor).await;
    let values = path_values(&reactor).await;
    let client = Client::new();
    for (path, item) in document.0["paths"].as_object().expect("paths") {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
            let documented = item.get(method.as_str().to_ascii_lowercase()).is_some();
            let address = format!("{}{}", reactor.api(), filled(path, &values));
            let response = client.request(method.clone(), &address).send().await.expect("answers");
            let status = response.status();
            assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{method} {address}");
            assert_eq!(documented, status != StatusCode::METHOD_NOT_ALLOWED, "{method} {address}: {status}");
            let body = response.text().await.expect("a body");
            assert!(!body.contains("no such resource"), "{method} {address} is documented and not served");
        }
    }
}

#[tokio::test]
async fn what_is_not_there_and_what_cannot_be_read_is_said_as_a_problem() {
    let reactor = Reactor::start("");
    for (path, status, named) in [
        ("/api/v1/weather", 404, "weather"),
        ("/api", 404, "/api"),
        ("/api/v1/queues/%2F/nothing", 404, "nothing"),
        ("/api/v1/queues/elsewhere/nothing", 404, "elsewhere"),
        ("/api/v1/services/nobody", 404, "nobody"),
        ("/api/v1/services/nobody/console", 404, "nobody"),
        ("/api/v1/traces/xyz", 400, "xyz"),
        ("/api/v1/traces/4bf92f3577b34da6a3ce929d0e0e4736", 404, "4bf92f35"),
        ("/api/v1/logs?limit=many", 400, "limit"),
        ("/api/v1/logs?colour=red", 400, "colour"),
        ("/api/v1/logs?from_us=9&to_us=3", 400, "from_us"),
        ("/api/v1/logs?query=severity%3E%3D", 400, ""),
        ("/api/v1/tape?range_s=0", 400, "range_s"),
        ("/api/v1/metrics/query", 400, "name"),
        ("/api/v1/metrics/query?name=no.such.metric", 404, "no.such.metric"),
        ("/api/v1/live", 400, "WebSocket"),
    ] {
        let response = reqwest::get(format!("{}{path}", reactor.api())).await.expect("answers");
        assert_eq!(response.status().as_u16(), status, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{path}");
        let problem: Value = response.json().await.expect("JSON");
        assert_eq!(problem["status"], status, "{path}");
        let detail = problem["detail"].as_str().expect("a detail");
        assert!(detail.contains(named), "{path}: {detail}");
    }
}

#[tokio::test]
async fn it_is_healthy_once_everything_listens_and_says_what_it_is() {
    let reactor = Reactor::start("");
    let response = reqwest::get(format!("{}/healthz", reactor.api())).await.expect("answers");
    assert_eq!(response.status(), 200);
    let version: Value =
        reqwest::get(format!("{}/api/v1/version", reactor.api())).await.expect("answers").json().await.expect("JSON");
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    if std::env::var("REACTOR_UI").is_ok_and(|wish| wish == "require") {
        assert_eq!(version["ui"], "built", "the dashboard was required");
    }
    let ports: Value =
        reqwest::get(format!("{}/api/v1/ports", reactor.api())).await.expect("answers").json().await.expect("JSON");
    let control = ports.as_array().expect("a list").iter().find(|door| door["name"] == "control").expect("the control port");
    assert_eq!(control["state"], "listening");
    assert!(control["address"].as_str().expect("an address").contains(&reactor.port("control").to_string()));
    assert!(control["accepted"].as_u64().expect("a count") >= 1);
}
