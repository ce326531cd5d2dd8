//! What queues can be asked to do, through lapin against the real binary: times, limits, dead letters, priorities, one active
//! consumer, quorum queues.

use crate::support::{DEADLINE, Reactor, wait_until};
use futures_util::StreamExt;
use lapin::message::Delivery;
use lapin::options::*;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ErrorKind};

async fn channel(reactor: &Reactor) -> Channel {
    let connection = Connection::connect(&reactor.amqp_url(), ConnectionProperties::default()).await.expect("connected");
    connection.create_channel().await.expect("a channel")
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

fn table<const N: usize>(arguments: [(&str, AMQPValue); N]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in arguments {
        table.insert(name.into(), value);
    }
    table
}

async fn declare<const N: usize>(channel: &Channel, queue: &str, arguments: [(&str, AMQPValue); N]) -> lapin::Result<()> {
    let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), durable, table(arguments)).await.map(drop)
}

async fn publish(channel: &Channel, queue: &str, properties: BasicProperties, body: &[u8]) -> Confirmation {
    let sent = channel.basic_publish("".into(), queue.into(), BasicPublishOptions::default(), body, properties).await;
    sent.expect("published").await.expect("confirmed or not asked for")
}

async fn consume(channel: &Channel, queue: &str, arguments: FieldTable) -> Consumer {
    let options = BasicConsumeOptions::default();
    channel.basic_consume(queue.into(), ShortString::default(), options, arguments).await.expect("consuming")
}

async fn next(consumer: &mut Consumer) -> Delivery {
    let next = tokio::time::timeout(DEADLINE, consumer.next()).await.expect("a delivery in time");
    next.expect("not cancelled").expect("a delivery")
}

fn header(delivery: &Delivery, name: &str) -> Option<AMQPValue> {
    delivery.properties.headers().as_ref()?.inner().get(name).cloned()
}

#[tokio::test]
async fn a_message_dies_in_time_and_tells_its_story_to_the_reader_of_dead_letters() {
    let reactor = Reactor::start("");
    let channel = channel(&reactor).await;
    let letters = [("x-dead-letter-exchange", text("")), ("x-dead-letter-routing-key", text("dead"))];
    let [exchange, key] = letters;
    declare(&channel, "dead", []).await.expect("declared");
    declare(&channel, "brief", [exchange, key, ("x-message-ttl", AMQPValue::LongInt(50))]).await.expect("declared");
    let mut reader = consume(&channel, "dead", FieldTable::default()).await;
    publish(&channel, "brief", BasicProperties::default().with_expiration("30".into()), b"soon").await;
    publish(&channel, "brief", BasicProperties::default(), b"later").await;
    for (body, expiration) in [(&b"soon"[..], Some(text("30"))), (b"later", None)] {
        let letter = next(&mut reader).await;
        assert_eq!(letter.data, body);
        assert_eq!(letter.properties.expiration(), &None);
        assert_eq!(header(&letter, "x-first-death-reason"), Some(text("expired")));
        let Some(AMQPValue::FieldArray(deaths)) = header(&letter, "x-death") else { panic!("no story") };
        let [AMQPValue::FieldTable(death)] = deaths.as_slice() else { panic!("{deaths:?}") };
        let told = death.inner();
        assert_eq!((told.get("queue"), told.get("count")), (Some(&text("brief")), Some(&AMQPValue::LongLongInt(1))));
        assert_eq!(told.get("original-expiration").cloned(), expiration);
        assert!(matches!(told.get("time"), Some(AMQPValue::Timestamp(at)) if *at > 1_600_000_000));
    }
}

#[tokio::test]
async fn a_full_queue_that_refuses_nacks_through_a_real_client() {
    let reactor = Reactor::start("");
    let channel = channel(&reactor).await;
    let full = [("x-max-length", AMQPValue::LongInt(2)), ("x-overflow", text("reject-publish"))];
    declare(&channel, "full", full).await.expect("declared");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    let mut refused = 0;
    for _ in 0..5 {
        refused += usize::from(publish(&channel, "full", BasicProperties::default(), b"x").await.is_nack());
    }
    assert_eq!(refused, 3);
    channel.basic_get("full".into(), BasicGetOptions { no_ack: true }).await.expect("got").expect("a message");
    assert!(publish(&channel, "full", BasicProperties::default(), b"x").await.is_ack());
}

#[tokio::test]
async fn priorities_and_counts_of_returns_come_through() {
    let reactor = Reactor::start("");
    let channel = channel(&reactor).await;
    declare(&channel, "levels", [("x-max-priority", AMQPValue::LongInt(9))]).await.expect("declared");
    for (priority, body) in [(1, b"low"), (9, b"top"), (5, b"mid")] {
        publish(&channel, "levels", BasicProperties::default().with_priority(priority), body).await;
    }
    let mut reader = consume(&channel, "levels", FieldTable::default()).await;
    for body in [b"top", b"mid", b"low"] {
        let delivery = next(&mut reader).await;
        assert_eq!(delivery.data, body);
        delivery.acker.ack(BasicAckOptions::default()).await.expect("acked");
    }
    let limited = [("x-queue-type", text("quorum")), ("x-delivery-limit", AMQPValue::LongInt(1))];
    declare(&channel, "limited", limited).await.expect("declared");
    publish(&channel, "limited", BasicProperties::default(), b"poison").await;
    let mut reader = consume(&channel, "limited", FieldTable::default()).await;
    for count in [0, 1] {
        let delivery = next(&mut reader).await;
        assert_eq!(header(&delivery, "x-delivery-count"), Some(AMQPValue::LongLongInt(count)));
        delivery.acker.nack(BasicNackOptions { requeue: true, ..BasicNackOptions::default() }).await.expect("returned");
    }
    publish(&channel, "limited", BasicProperties::default(), b"good").await;
    assert_eq!(next(&mut reader).await.data, b"good", "the poison is gone");
}

#[tokio::test]
async fn the_next_consumer_takes_over_when_the_active_one_goes() {
    let reactor = Reactor::start("");
    let (sender, other) = (channel(&reactor).await, channel(&reactor).await);
    declare(&sender, "single", [("x-single-active-consumer", AMQPValue::Boolean(true))]).await.expect("declared");
    let active = consume(&other, "single", FieldTable::default()).await;
    let mut waiting = consume(&sender, "single", FieldTable::default()).await;
    publish(&sender, "single", BasicProperties::default(), b"1").await;
    other.close(200, "".into()).await.expect("closed");
    drop(active);
    let taken = next(&mut waiting).await;
    assert_eq!((taken.data.as_slice(), taken.redelivered), (&b"1"[..], true));
}

#[tokio::test]
async fn a_queue_expires_and_its_consumer_and_bad_arguments_are_told_in_rabbitmqs_words() {
    let reactor = Reactor::start("");
    let (first, second) = (channel(&reactor).await, channel(&reactor).await);
    declare(&first, "gone", [("x-expires", AMQPValue::LongInt(50))]).await.expect("declared");
    // Asked beside the protocol: a passive declare is a use, which puts the end off.
    let view = format!("{}/api/v1/queues/%2F/gone", reactor.api());
    wait_until("the queue has expired", DEADLINE, || async {
        reqwest::get(&view).await.is_ok_and(|response| response.status() == 404)
    })
    .await;
    let refused = declare(&second, "bad", [("x-max-length", AMQPValue::LongInt(-1))]).await.expect_err("refused");
    let ErrorKind::ProtocolError(error) = refused.kind() else { panic!("{refused:?}") };
    let said = "PRECONDITION_FAILED - invalid arg 'x-max-length' for queue 'bad' in vhost '/': {value_negative,-1}";
    assert_eq!((error.get_id(), error.get_message().as_str()), (406, said));
}

#[tokio::test]
async fn a_channel_that_keeps_a_delivery_too_long_is_closed_and_the_message_goes_on() {
    let reactor = Reactor::start("");
    let (slow, other) = (channel(&reactor).await, channel(&reactor).await);
    declare(&slow, "strict", [("x-consumer-timeout", AMQPValue::LongInt(200))]).await.expect("declared");
    publish(&slow, "strict", BasicProperties::default(), b"x").await;
    let mut reader = consume(&slow, "strict", FieldTable::default()).await;
    let kept = next(&mut reader).await;
    let mut waiting = consume(&other, "strict", FieldTable::default()).await;
    let again = next(&mut waiting).await;
    assert!(again.redelivered);
    wait_until("the first channel is closed", DEADLINE, || async { !slow.status().connected() }).await;
    again.acker.ack(BasicAckOptions::default()).await.expect("acked");
    drop(kept);
}
