//! The exchanges of RabbitMQ's tutorials, and what surrounds them, through lapin against the real binary.

use crate::support::{DEADLINE, Reactor, wait_until};
use futures_util::StreamExt;
use lapin::message::{BasicReturnMessage, Delivery};
use lapin::options::*;
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer, ErrorKind, ExchangeKind};

async fn connect(reactor: &Reactor) -> Connection {
    Connection::connect(&reactor.amqp_url(), ConnectionProperties::default()).await.expect("connected")
}

async fn channel(connection: &Connection) -> Channel {
    connection.create_channel().await.expect("a channel")
}

async fn declare(channel: &Channel, queue: &str) -> String {
    let exclusive = QueueDeclareOptions { exclusive: queue.is_empty(), ..QueueDeclareOptions::default() };
    let declared = channel.queue_declare(queue.into(), exclusive, FieldTable::default()).await;
    declared.expect("declared").name().to_string()
}

async fn exchange(channel: &Channel, name: &str, kind: ExchangeKind) {
    channel
        .exchange_declare(name.into(), kind, ExchangeDeclareOptions::default(), FieldTable::default())
        .await
        .expect("declared");
}

async fn bind(channel: &Channel, queue: &str, exchange: &str, key: &str) {
    let bound =
        channel.queue_bind(queue.into(), exchange.into(), key.into(), QueueBindOptions::default(), FieldTable::default()).await;
    bound.expect("bound");
}

async fn publish(channel: &Channel, exchange: &str, key: &str, body: &[u8]) -> Confirmation {
    publish_with(channel, exchange, key, BasicPublishOptions::default(), BasicProperties::default(), body).await
}

async fn publish_with(
    channel: &Channel,
    exchange: &str,
    key: &str,
    options: BasicPublishOptions,
    properties: BasicProperties,
    body: &[u8],
) -> Confirmation {
    let sent = channel.basic_publish(exchange.into(), key.into(), options, body, properties).await.expect("published");
    sent.await.expect("confirmed or not asked for")
}

async fn consume(channel: &Channel, queue: &str, no_ack: bool) -> Consumer {
    let options = BasicConsumeOptions { no_ack, ..BasicConsumeOptions::default() };
    channel.basic_consume(queue.into(), ShortString::default(), options, FieldTable::default()).await.expect("consuming")
}

async fn next(consumer: &mut Consumer) -> Delivery {
    let next = tokio::time::timeout(DEADLINE, consumer.next()).await.expect("a delivery in time");
    next.expect("not cancelled").expect("a delivery")
}

fn text(delivery: &Delivery) -> &str {
    std::str::from_utf8(&delivery.data).expect("text")
}

async fn ready(channel: &Channel, queue: &str) -> u32 {
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    channel.queue_declare(queue.into(), passive, FieldTable::default()).await.expect("there").message_count()
}

/// The reply code and text with which the broker closed.
fn closed_with<T: std::fmt::Debug>(result: lapin::Result<T>) -> (u16, String) {
    match result.expect_err("refused").kind() {
        ErrorKind::ProtocolError(error) => (error.get_id(), error.get_message().to_string()),
        other => panic!("not a protocol error: {other:?}"),
    }
}

#[tokio::test]
async fn hello_world_and_work_queues_share_the_load_fairly() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let (sender, one, two) = (channel(&connection).await, channel(&connection).await, channel(&connection).await);
    declare(&sender, "task_queue").await;
    for worker in [&one, &two] {
        worker.basic_qos(1, BasicQosOptions::default()).await.expect("limited");
    }
    let (mut first, mut second) = (consume(&one, "task_queue", false).await, consume(&two, "task_queue", false).await);
    let persistent = BasicProperties::default().with_delivery_mode(2);
    for body in ["1", "2", "3"] {
        publish_with(&sender, "", "task_queue", BasicPublishOptions::default(), persistent.clone(), body.as_bytes()).await;
    }
    let (a, b) = (next(&mut first).await, next(&mut second).await);
    let mut got = [text(&a), text(&b)];
    got.sort_unstable();
    assert_eq!(got, ["1", "2"]);
    assert_eq!(a.properties.delivery_mode(), &Some(2));
    // Only who acks gets more.
    b.acker.ack(BasicAckOptions::default()).await.expect("acked");
    assert_eq!(text(&next(&mut second).await), "3");
    drop(a);
    one.close(200, "".into()).await.expect("closed");
    let mut back = consume(&sender, "task_queue", true).await;
    assert!(next(&mut back).await.redelivered);
}

#[tokio::test]
async fn publish_subscribe_gives_each_queue_a_copy_and_temporary_queues_go() {
    let reactor = Reactor::start("");
    let (connection, leaving) = (connect(&reactor).await, connect(&reactor).await);
    let (sender, listener) = (channel(&connection).await, channel(&leaving).await);
    exchange(&sender, "logs", ExchangeKind::Fanout).await;
    let (mine, theirs) = (declare(&sender, "").await, declare(&listener, "").await);
    assert!(mine.starts_with("amq.gen-") && mine != theirs);
    for (channel, queue) in [(&sender, &mine), (&listener, &theirs)] {
        bind(channel, queue, "logs", "").await;
    }
    let (mut here, mut there) = (consume(&sender, &mine, true).await, consume(&listener, &theirs, true).await);
    publish(&sender, "logs", "", b"info: hello").await;
    assert_eq!(text(&next(&mut here).await), "info: hello");
    assert_eq!(text(&next(&mut there).await), "info: hello");
    leaving.close(200, "bye".into()).await.expect("closed");
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    wait_until("the temporary queue is gone", DEADLINE, || async {
        let probe = channel(&connection).await;
        probe.queue_declare(theirs.as_str().into(), passive, FieldTable::default()).await.is_err()
    })
    .await;
}

#[tokio::test]
async fn routing_and_topics_pick_by_key_and_pattern() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    exchange(&channel, "direct_logs", ExchangeKind::Direct).await;
    exchange(&channel, "topic_logs", ExchangeKind::Topic).await;
    for (queue, exchange, key) in [
        ("errors", "direct_logs", "error"),
        ("all", "direct_logs", "error"),
        ("all", "direct_logs", "info"),
        ("kern", "topic_logs", "kern.*"),
        ("critical", "topic_logs", "*.critical"),
        ("everything", "topic_logs", "#"),
    ] {
        declare(&channel, queue).await;
        bind(&channel, queue, exchange, key).await;
    }
    for (exchange, key) in [("direct_logs", "error"), ("direct_logs", "info"), ("direct_logs", "debug")] {
        publish(&channel, exchange, key, b"x").await;
    }
    for key in ["kern.critical", "kern.info", "cron.critical", "a.b.c"] {
        publish(&channel, "topic_logs", key, b"x").await;
    }
    for (queue, count) in [("errors", 1), ("all", 2), ("kern", 2), ("critical", 2), ("everything", 4)] {
        assert_eq!(ready(&channel, queue).await, count, "{queue}");
    }
}

#[tokio::test]
async fn headers_exchanges_match_by_value_and_type() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    declare(&channel, "pdf").await;
    let mut arguments = FieldTable::default();
    arguments.insert("x-match".into(), AMQPValue::LongString("all".into()));
    arguments.insert("format".into(), AMQPValue::LongString("pdf".into()));
    arguments.insert("pages".into(), AMQPValue::LongInt(3));
    let bound = channel.queue_bind("pdf".into(), "amq.headers".into(), "".into(), QueueBindOptions::default(), arguments);
    bound.await.expect("bound");
    for (format, pages) in
        [("pdf", AMQPValue::LongInt(3)), ("pdf", AMQPValue::LongString("3".into())), ("txt", AMQPValue::LongInt(3))]
    {
        let mut headers = FieldTable::default();
        headers.insert("format".into(), AMQPValue::LongString(format.into()));
        headers.insert("pages".into(), pages);
        let properties = BasicProperties::default().with_headers(headers);
        publish_with(&channel, "amq.headers", "any", BasicPublishOptions::default(), properties, b"x").await;
    }
    assert_eq!(ready(&channel, "pdf").await, 1);
}

#[tokio::test]
async fn request_and_reply_work_over_a_queue_and_over_direct_reply_to() {
    let reactor = Reactor::start("");
    let (connection, other) = (connect(&reactor).await, connect(&reactor).await);
    let (client, server) = (channel(&connection).await, channel(&other).await);
    declare(&server, "rpc_queue").await;
    let mut requests = consume(&server, "rpc_queue", false).await;
    let callback = declare(&client, "").await;
    for reply_to in [callback.as_str(), "amq.rabbitmq.reply-to"] {
        let mut replies = consume(&client, reply_to, true).await;
        let ask = BasicProperties::default().with_reply_to(reply_to.into()).with_correlation_id("7".into());
        publish_with(&client, "", "rpc_queue", BasicPublishOptions::default(), ask, b"30").await;
        let request = next(&mut requests).await;
        let address = request.properties.reply_to().clone().expect("an address");
        let answer = BasicProperties::default().with_correlation_id(request.properties.correlation_id().clone().expect("an id"));
        publish_with(&server, "", address.as_str(), BasicPublishOptions::default(), answer, b"832040").await;
        request.acker.ack(BasicAckOptions::default()).await.expect("acked");
        let reply = next(&mut replies).await;
        assert_eq!((text(&reply), reply.properties.correlation_id().as_ref().map(|id| id.as_str())), ("832040", Some("7")));
    }
}

#[tokio::test]
async fn publishers_learn_what_arrived_and_what_went_nowhere() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    declare(&channel, "q").await;
    let mut waiting = Vec::new();
    for number in 0..500u32 {
        let options = BasicPublishOptions::default();
        let body = number.to_be_bytes();
        waiting
            .push(channel.basic_publish("".into(), "q".into(), options, &body, BasicProperties::default()).await.expect("sent"));
    }
    for confirm in waiting {
        assert_eq!(confirm.await.expect("answered"), Confirmation::Ack(None));
    }
    assert_eq!(ready(&channel, "q").await, 500);
    let mandatory = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let confirm = publish_with(&channel, "", "nowhere", mandatory, BasicProperties::default(), b"lost").await;
    let Confirmation::Ack(Some(BasicReturnMessage { reply_code, reply_text, delivery })) = confirm else {
        panic!("not returned: {confirm:?}")
    };
    assert_eq!((reply_code, reply_text.as_str(), &delivery.data[..]), (312, "NO_ROUTE", &b"lost"[..]));
}

#[tokio::test]
async fn a_batch_of_publishes_is_in_its_queue_once_it_is_confirmed() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    declare(&channel, "q").await;
    for batch in 1..=10 {
        for number in 0..100u32 {
            let properties = BasicProperties::default().with_delivery_mode(2);
            let options = BasicPublishOptions { mandatory: number == 99, ..BasicPublishOptions::default() };
            let key = if number == 99 { "nowhere" } else { "q" };
            // Not awaited one by one: the channel keeps them for `wait_for_confirms`.
            drop(channel.basic_publish("".into(), key.into(), options, b"x", properties).await.expect("sent"));
        }
        let returned = channel.wait_for_confirms().await.expect("confirmed");
        assert_eq!(returned.len(), 1, "only the mandatory one without a queue comes back");
        assert_eq!(ready(&channel, "q").await, batch * 99);
    }
}

#[tokio::test]
async fn get_nack_and_requeue_keep_the_order() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    declare(&channel, "q").await;
    for body in ["a", "b", "c"] {
        publish(&channel, "", "q", body.as_bytes()).await;
    }
    let get = || async { channel.basic_get("q".into(), BasicGetOptions::default()).await.expect("asked") };
    let (a, b) = (get().await.expect("a"), get().await.expect("b"));
    assert_eq!((a.message_count, b.message_count), (2, 1));
    let requeue = BasicNackOptions { requeue: true, multiple: true };
    channel.basic_nack(b.delivery.delivery_tag, requeue).await.expect("nacked");
    for (body, redelivered) in [("a", true), ("b", true), ("c", false)] {
        let got = get().await.expect("there");
        assert_eq!((text(&got.delivery), got.delivery.redelivered), (body, redelivered));
        got.acker.ack(BasicAckOptions::default()).await.expect("acked");
    }
    assert!(get().await.is_none());
}

#[tokio::test]
async fn a_consumer_is_told_when_its_queue_is_deleted() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    declare(&channel, "q").await;
    let mut consumer = consume(&channel, "q", true).await;
    channel.queue_delete("q".into(), QueueDeleteOptions::default()).await.expect("deleted");
    let ended = tokio::time::timeout(DEADLINE, consumer.next()).await.expect("told in time");
    assert!(ended.is_none(), "{ended:?}");
}

#[tokio::test]
async fn large_bodies_survive_small_frames_and_many_frames() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    declare(&channel, "q").await;
    for length in [0usize, 1, 8_191, 8_192, 131_064, 131_065, 3_000_000] {
        let body: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        publish(&channel, "", "q", &body).await;
        let got = channel.basic_get("q".into(), BasicGetOptions { no_ack: true }).await.expect("asked").expect("there");
        assert!(got.delivery.data == body, "{length} bytes came back as {}", got.delivery.data.len());
    }
    let mut consumer = consume(&channel, "q", true).await;
    let body: Vec<u8> = (0..5_000_000).map(|at| (at % 249) as u8).collect();
    publish(&channel, "", "q", &body).await;
    assert!(next(&mut consumer).await.data == body);
}

#[tokio::test]
async fn errors_close_the_channel_or_the_connection_with_rabbitmqs_words() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let missing = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let result = channel(&connection).await.queue_declare("q".into(), missing, FieldTable::default()).await;
    assert_eq!(closed_with(result), (404, "NOT_FOUND - no queue 'q' in vhost '/'".into()));
    let result = channel(&connection)
        .await
        .exchange_declare(
            "x".into(),
            ExchangeKind::Custom("nonsense".into()),
            ExchangeDeclareOptions::default(),
            FieldTable::default(),
        )
        .await;
    assert_eq!(closed_with(result), (406, "PRECONDITION_FAILED - unknown exchange type 'nonsense'".into()));
    declare(&channel(&connection).await, "q").await;
    let result =
        channel(&connection).await.queue_declare("q".into(), QueueDeclareOptions::durable(), FieldTable::default()).await;
    let text =
        "PRECONDITION_FAILED - inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'";
    assert_eq!(closed_with(result), (406, text.into()));
    let probe = channel(&connection).await;
    probe.basic_ack(99, BasicAckOptions::default()).await.expect("sent");
    wait_until("the channel is closed", DEADLINE, || async { !probe.status().connected() }).await;
    // Everything above closed a channel only; this closes the connection.
    let result = channel(&connection).await.channel_flow(ChannelFlowOptions { active: false }).await;
    assert_eq!(closed_with(result).0, 540);
    let anew = connect(&reactor).await;
    declare(&channel(&anew).await, "q").await;
}

#[tokio::test]
async fn everything_received_before_a_dropped_connection_is_routed() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor).await;
    let channel = channel(&connection).await;
    declare(&channel, "q").await;
    let hasty = std::process::Command::new("python3")
        .arg("-c")
        .arg(HASTY_PUBLISHER)
        .arg(reactor.port("amqp").to_string())
        .status()
        .expect("python3 runs");
    assert!(hasty.success());
    wait_until("all 2,000 are there", DEADLINE, || async { ready(&channel, "q").await == 2_000 }).await;
}

/// Publishes and closes the socket at once, without `connection.close`.
const HASTY_PUBLISHER: &str = r#"
import socket, struct, sys
def frame(kind, channel, payload): return struct.pack('>BHI', kind, channel, len(payload)) + payload + b'\xce'
def short(text): return bytes([len(text)]) + text
def method(channel, a, b, rest): return frame(1, channel, struct.pack('>HH', a, b) + rest)
s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))
s.sendall(b'AMQP\0\0\x09\x01')
s.sendall(method(0, 10, 11, struct.pack('>I', 0) + short(b'PLAIN') + struct.pack('>I', 12) + b'\0guest\0guest' + short(b'en_US')))
s.sendall(method(0, 10, 31, struct.pack('>HIH', 2047, 131072, 0)) + method(0, 10, 40, short(b'/') + short(b'') + b'\0'))
s.sendall(method(1, 20, 10, short(b'')))
one = method(1, 60, 40, b'\0\0' + short(b'') + short(b'q') + b'\0') + frame(2, 1, struct.pack('>HHQH', 60, 0, 4, 0)) + frame(3, 1, b'body')
s.sendall(one * 2000)
s.shutdown(socket.SHUT_WR)
while s.recv(4096): pass
"#;
