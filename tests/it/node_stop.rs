//! Stopping: what is in flight is finished, what would wait for ever is cut, nothing is left behind.

use crate::support::{DEADLINE, Reactor, http, wait_until_blocking};
use futures_util::StreamExt;
use lapin::options::{BasicConsumeOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer};
use std::time::Duration;

/// Attaches as `slow` and hands out the calls instead of answering them.
async fn attach(reactor: &Reactor) -> (Connection, Channel, Consumer) {
    let connection = Connection::connect(&reactor.amqp_url(), ConnectionProperties::default()).await.expect("connected");
    let channel = connection.create_channel().await.expect("a channel");
    let declare = QueueDeclareOptions { exclusive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare("slow".into(), declare, FieldTable::default()).await.expect("declared");
    let bind = QueueBindOptions::default();
    channel.queue_bind("slow".into(), "reactor.call".into(), "slow.#".into(), bind, FieldTable::default()).await.expect("bound");
    let consume = BasicConsumeOptions { no_ack: true, ..BasicConsumeOptions::default() };
    let calls = channel.basic_consume("slow".into(), "".into(), consume, FieldTable::default()).await.expect("consuming");
    (connection, channel, calls)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_flight_is_answered_before_reactor_stops() {
    let mut reactor = Reactor::start("");
    let (_connection, channel, mut calls) = attach(&reactor).await;
    let url = format!("{}/slow/x", reactor.gateway());
    let asked = tokio::spawn(async move { http().get(url).send().await });
    let call = calls.next().await.expect("a call").expect("a delivery");
    reactor.signal("TERM");
    wait_until_blocking("the stop has begun", DEADLINE, || reactor.stderr().contains("stopping"));
    let reply_to = call.properties.reply_to().clone().expect("an address");
    let correlation = call.properties.correlation_id().clone().expect("an id");
    let reply = BasicProperties::default().with_correlation_id(correlation);
    channel
        .basic_publish("".into(), reply_to, BasicPublishOptions::default(), b"late but whole", reply)
        .await
        .expect("published");
    let answer = asked.await.expect("no panic").expect("an answer");
    assert_eq!((answer.status().as_u16(), answer.text().await.expect("text").as_str()), (200, "late but whole"));
    assert!(reactor.wait().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_never_answered_holds_the_stop_no_longer_than_its_limit() {
    let mut reactor = Reactor::start("[limits]\ndrain = \"300ms\"\n");
    let (_connection, _channel, mut calls) = attach(&reactor).await;
    let url = format!("{}/slow/x", reactor.gateway());
    let asked = tokio::spawn(async move { http().get(url).send().await });
    calls.next().await.expect("a call").expect("a delivery");
    let begun = std::time::Instant::now();
    reactor.signal("TERM");
    assert!(reactor.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(reactor.stderr().contains("requests were cut at shutdown"), "{}", reactor.stderr());
    let _ = asked.await.expect("no panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_only_stand_there_do_not_hold_the_stop() {
    let mut reactor = Reactor::start("");
    let idle: Vec<std::net::TcpStream> = ["http", "control", "bus", "amqp", "https", "otlp_http"]
        .iter()
        .map(|door| std::net::TcpStream::connect(("127.0.0.1", reactor.port(door))).expect("the door is open"))
        .collect();
    let kept_alive = http();
    kept_alive.get(format!("{}/healthz", reactor.api())).send().await.expect("an answer");
    kept_alive.get(format!("{}/nothing", reactor.gateway())).send().await.expect("an answer");
    let begun = std::time::Instant::now();
    reactor.signal("TERM");
    assert!(reactor.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    drop(idle);
}
