//! The promise on the first page: a script attaches, `curl` gets its answer, and the request is one trace.

use crate::support::{DEADLINE, Reactor, http, wait_until};
use futures_util::StreamExt;
use lapin::options::{BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};

/// A service in the fewest lines: answers every call with what was asked.
async fn echo(url: &str, name: &str) -> Connection {
    let connection = Connection::connect(url, ConnectionProperties::default()).await.expect("connected");
    let channel = connection.create_channel().await.expect("a channel");
    let declare = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(name.into(), declare, FieldTable::default()).await.expect("declared");
    let (exchange, key) = ("reactor.call".into(), format!("{name}.#").into());
    channel.queue_bind(name.into(), exchange, key, QueueBindOptions::default(), FieldTable::default()).await.expect("bound");
    let options = BasicConsumeOptions::default();
    let mut calls = channel.basic_consume(name.into(), "".into(), options, FieldTable::default()).await.expect("consuming");
    tokio::spawn(async move {
        while let Some(Ok(call)) = calls.next().await {
            let properties = call.properties.clone();
            let reply_to = properties.reply_to().clone().expect("a call has an address to answer");
            let mut reply = BasicProperties::default();
            if let Some(correlation) = properties.correlation_id() {
                reply = reply.with_correlation_id(correlation.clone());
            }
            let body = format!("you asked {}", call.routing_key);
            let options = BasicPublishOptions::default();
            channel.basic_publish("".into(), reply_to, options, body.as_bytes(), reply).await.expect("published");
            call.ack(BasicAckOptions::default()).await.expect("acked");
        }
    });
    connection
}

#[tokio::test]
async fn a_request_is_answered_by_a_script_that_dialled_out() {
    let reactor = Reactor::start("");
    for (port, name) in [("amqp", "greeter"), ("bus", "other")] {
        let url = format!("amqp://guest:guest@127.0.0.1:{}", reactor.port(port));
        let service = echo(&url, name).await;
        let address = format!("{}/{name}/Hello?x=1", reactor.gateway());
        let answer = http().get(&address).send().await.expect("an answer");
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.text().await.expect("text"), format!("you asked {name}.hello"));
        let _ = service.close(200, "done".into()).await;
    }
}

#[tokio::test]
async fn the_request_is_one_trace_though_nobody_instrumented_anything() {
    let reactor = Reactor::start("");
    let service = echo(&reactor.amqp_url(), "greeter").await;
    let answer = http().get(format!("{}/greeter/hello", reactor.gateway())).send().await.expect("an answer");
    assert_eq!(answer.status(), 200);
    let list = format!("{}/api/v1/traces", reactor.api());
    let mut found = serde_json::Value::Null;
    wait_until("the trace is there with its spans", DEADLINE, async || {
        let page: serde_json::Value = http().get(&list).send().await.expect("an answer").json().await.expect("JSON");
        let Some(id) = page["rows"].as_array().and_then(|rows| rows.first()).and_then(|row| row["trace_id"].as_str()) else {
            return false;
        };
        let trace = http().get(format!("{list}/{id}")).send().await.expect("an answer");
        found = trace.json().await.expect("JSON");
        found["spans"].as_array().is_some_and(|spans| spans.len() >= 4)
    })
    .await;
    let spans = found["spans"].as_array().expect("spans");
    let services: Vec<&str> = spans.iter().filter_map(|span| span["service"].as_str()).collect();
    assert!(services.contains(&"gateway") && services.contains(&"greeter"), "{services:?}");
    assert!(spans.iter().any(|span| span["wait"] == true), "the wait in the queue is shown: {spans:#?}");
    let roots = spans.iter().filter(|span| span["parent"].is_null()).count();
    assert_eq!(roots, 1, "{spans:#?}");
    let _ = service.close(200, "done".into()).await;
}

#[tokio::test]
async fn the_service_appears_in_the_list_while_it_is_attached() {
    let reactor = Reactor::start("");
    let listed = async || -> Option<String> {
        let services = http().get(format!("{}/api/v1/services", reactor.api())).send().await.expect("an answer");
        let services: serde_json::Value = services.json().await.expect("JSON");
        let service = services.as_array()?.iter().find(|service| service["name"] == "greeter")?;
        Some(format!("{} {}", service["state"].as_str()?, service["route"].as_str()?))
    };
    assert_eq!(listed().await, None);
    let service = echo(&reactor.amqp_url(), "greeter").await;
    wait_until("it is listed", DEADLINE, async || listed().await.as_deref() == Some("ready /greeter")).await;
    let _ = service.close(200, "done".into()).await;
    wait_until("it is gone or shown as gone", DEADLINE, async || listed().await.is_none_or(|text| text.starts_with("detached")))
        .await;
}

#[tokio::test]
async fn a_stopping_reactor_closes_amqp_connections_with_320() {
    let reactor = Reactor::start("");
    let service = echo(&reactor.amqp_url(), "greeter").await;
    let mut events = service.events_listener();
    assert!(tokio::task::spawn_blocking(move || reactor.stop()).await.expect("no panic").success());
    let error = loop {
        if let lapin::Event::Error(error) = events.next().await.expect("the client is told") {
            break error.to_string();
        }
    };
    assert!(error.contains("CONNECTION_FORCED") || error.contains("CONNECTION-FORCED"), "{error}");
}
