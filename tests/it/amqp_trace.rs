//! `REACTOR_TRACE=amqp`: what a client and reactor say to each other, readable.

use crate::support::{DEADLINE, Reactor, wait_until};
use lapin::options::{BasicPublishOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Connection, ConnectionProperties};

async fn say_something(reactor: &Reactor) -> lapin::Result<()> {
    let connection = Connection::connect(&reactor.amqp_url(), ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    channel.queue_declare("traced".into(), QueueDeclareOptions::default(), FieldTable::default()).await?;
    let properties = BasicProperties::default().with_content_type("text/plain".into());
    channel.basic_publish("".into(), "traced".into(), BasicPublishOptions::default(), b"hello", properties).await?;
    connection.close(200, "bye".into()).await
}

#[tokio::test]
async fn every_frame_of_a_connection_is_a_line_when_asked_for() {
    let reactor = Reactor::start_with("", &[], &[("REACTOR_TRACE", "amqp")]);
    say_something(&reactor).await.expect("lapin is served");
    let lines = [
        "> protocol [0, 0, 9, 1]",
        "< method 0 connection.start version_major=0 version_minor=9",
        "> method 0 connection.start-ok",
        "< method 0 connection.open-ok",
        "> method 1 queue.declare ticket=0 queue=\"traced\" passive=false",
        "< method 1 queue.declare-ok queue=\"traced\" message_count=0 consumer_count=0",
        "> header 1 body_size=5 content_type=\"text/plain\"",
        "> body 1 5 bytes \"hello\"",
        "> method 0 connection.close reply_code=200 reply_text=\"bye\"",
        "< method 0 connection.close-ok",
    ];
    wait_until("all lines are logged", DEADLINE, || async { lines.iter().all(|line| reactor.stderr().contains(line)) }).await;
    assert!(!reactor.stderr().contains("guest\\0guest"), "no password in a log");
}

#[tokio::test]
async fn without_asking_no_frame_is_logged() {
    let reactor = Reactor::start("");
    say_something(&reactor).await.expect("lapin is served");
    assert!(!reactor.stderr().contains("queue.declare"), "{}", reactor.stderr());
}
