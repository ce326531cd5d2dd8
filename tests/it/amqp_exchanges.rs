//! Exchanges bound to exchanges, alternates, delays and transactions, through lapin against the real binary.

use crate::support::{DEADLINE, Reactor, wait_until};
use lapin::message::BasicGetMessage;
use lapin::options::*;
use lapin::types::{AMQPValue, FieldArray, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, ExchangeKind};
use std::time::{Duration, Instant};

async fn channel(reactor: &Reactor) -> (Connection, Channel) {
    let connection = Connection::connect(&reactor.amqp_url(), ConnectionProperties::default()).await.expect("connected");
    let channel = connection.create_channel().await.expect("a channel");
    (connection, channel)
}

fn table(fields: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in fields {
        table.insert((*name).into(), value.clone());
    }
    table
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}

async fn exchange(channel: &Channel, name: &str, kind: ExchangeKind, arguments: FieldTable) {
    let options = ExchangeDeclareOptions::default();
    channel.exchange_declare(name.into(), kind, options, arguments).await.expect("declared");
}

async fn queue(channel: &Channel, name: &str) {
    channel.queue_declare(name.into(), QueueDeclareOptions::default(), FieldTable::default()).await.expect("declared");
}

async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) {
    let (options, arguments) = (QueueBindOptions::default(), FieldTable::default());
    channel.queue_bind(queue.into(), exchange.into(), key.into(), options, arguments).await.expect("bound");
}

async fn publish(channel: &Channel, exchange: &str, key: &str, headers: FieldTable, body: &str) -> Confirmation {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let properties = BasicProperties::default().with_headers(headers);
    let sent = channel.basic_publish(exchange.into(), key.into(), options, body.as_bytes(), properties).await;
    sent.expect("published").await.expect("an answer")
}

async fn get(channel: &Channel, queue: &str) -> Option<BasicGetMessage> {
    channel.basic_get(queue.into(), BasicGetOptions { no_ack: true }).await.expect("asked")
}

async fn body(channel: &Channel, queue: &str) -> String {
    get(channel, queue).await.map_or_else(|| "(none)".into(), |message| String::from_utf8_lossy(&message.data).into_owned())
}

#[tokio::test]
async fn messages_pass_from_exchange_to_exchange_to_alternates_and_to_copied_keys() {
    let reactor = Reactor::start("");
    let (_connection, channel) = channel(&reactor).await;
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    exchange(&channel, "rest", ExchangeKind::Fanout, FieldTable::default()).await;
    exchange(&channel, "in", ExchangeKind::Topic, table(&[("alternate-exchange", text("rest"))])).await;
    exchange(&channel, "out", ExchangeKind::Fanout, FieldTable::default()).await;
    for name in ["q", "rest", "copy"] {
        queue(&channel, name).await;
    }
    bind(&channel, "q", "out", "").await;
    let (options, none) = (ExchangeBindOptions::default(), FieldTable::default());
    channel.exchange_bind("out".into(), "in".into(), "a.*".into(), options, none.clone()).await.expect("bound");
    let sent = publish(&channel, "in", "a.b", none.clone(), "1").await;
    assert!(matches!(sent, Confirmation::Ack(None)), "{sent:?}");
    assert_eq!(body(&channel, "q").await, "1");
    let sent = publish(&channel, "in", "b", none.clone(), "2").await;
    assert!(matches!(sent, Confirmation::Ack(Some(_))), "nothing is bound to the alternate: {sent:?}");
    bind(&channel, "rest", "rest", "").await;
    publish(&channel, "in", "b", none.clone(), "3").await;
    assert_eq!(body(&channel, "rest").await, "3");
    let keys = |key: &str| AMQPValue::FieldArray(FieldArray::from(vec![text(key)]));
    publish(&channel, "", "q", table(&[("CC", keys("copy")), ("BCC", keys("rest"))]), "4").await;
    assert_eq!((body(&channel, "q").await.as_str(), body(&channel, "copy").await.as_str()), ("4", "4"));
    let headers = get(&channel, "rest").await.expect("a copy").properties.headers().clone().expect("headers");
    assert_eq!(headers.inner().keys().map(ShortString::as_str).collect::<Vec<_>>(), ["CC"]);
    let options = ExchangeUnbindOptions::default();
    channel.exchange_unbind("out".into(), "in".into(), "a.*".into(), options, none.clone()).await.expect("unbound");
    publish(&channel, "in", "a.b", none, "5").await;
    assert_eq!((body(&channel, "q").await.as_str(), body(&channel, "rest").await.as_str()), ("(none)", "5"));
}

#[tokio::test]
async fn a_transaction_is_seen_by_others_from_its_commit_on() {
    let reactor = Reactor::start("");
    let (_one, publisher) = channel(&reactor).await;
    let (_other, reader) = channel(&reactor).await;
    queue(&publisher, "q").await;
    publisher.tx_select().await.expect("selected");
    let send = async |text: &str| {
        let (options, properties) = (BasicPublishOptions::default(), BasicProperties::default());
        let sent = publisher.basic_publish("".into(), "q".into(), options, text.as_bytes(), properties).await;
        drop(sent.expect("published"));
    };
    send("no").await;
    publisher.tx_rollback().await.expect("rolled back");
    send("yes").await;
    assert_eq!(body(&reader, "q").await, "(none)");
    publisher.tx_commit().await.expect("committed");
    assert_eq!(body(&reader, "q").await, "yes");
    assert_eq!(body(&reader, "q").await, "(none)");
}

#[tokio::test]
async fn a_delayed_message_comes_when_its_time_has_come() {
    let reactor = Reactor::start("");
    let (_connection, channel) = channel(&reactor).await;
    let kind = ExchangeKind::Custom("x-delayed-message".into());
    exchange(&channel, "late", kind, table(&[("x-delayed-type", text("direct"))])).await;
    queue(&channel, "q").await;
    bind(&channel, "q", "late", "k").await;
    let began = Instant::now();
    publish(&channel, "late", "k", table(&[("x-delay", AMQPValue::LongInt(300))]), "late").await;
    assert_eq!(body(&channel, "q").await, "(none)");
    let mut came = None;
    wait_until("the message came", DEADLINE, async || {
        came = get(&channel, "q").await;
        came.is_some()
    })
    .await;
    assert!(began.elapsed() >= Duration::from_millis(300), "{:?}", began.elapsed());
    let headers = came.expect("just got").properties.headers().clone().expect("headers");
    assert_eq!(headers.inner().get("x-delay"), Some(&AMQPValue::LongInt(-300)));
}
