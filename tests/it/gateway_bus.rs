//! HTTP requests answered by AMQP workers: the service contract through the real binary, workers on lapin.

use crate::support::{DEADLINE, Reactor, http, wait_until};
use futures_util::StreamExt as _;
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldArray, FieldTable, LongString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A worker: one connection, one channel, one durable queue bound to `reactor.call`.
struct Worker {
    _connection: Connection,
    channel: Channel,
    queue: String,
}

/// What a worker does with one call.
enum Act {
    Reply(FieldTable, &'static str),
    /// Parts, of which the last ends the reply.
    Parts(&'static [&'static str]),
    /// One part, and then the channel closes.
    PartAndDie(&'static str),
    Nothing,
    Ack,
    Nack {
        requeue: bool,
    },
    Die,
}

/// Where and how a worker connects.
trait Bus {
    fn url(&self) -> String;
}

impl Bus for Reactor {
    fn url(&self) -> String {
        self.amqp_url()
    }
}

/// With the smallest frames AMQP allows.
struct Small<'a>(&'a Reactor);

impl Bus for Small<'_> {
    fn url(&self) -> String {
        format!("{}/%2f?frame_max=4096", self.0.amqp_url())
    }
}

impl Worker {
    async fn attach(bus: &impl Bus, key: &str, act: impl Fn(&Delivery) -> Act + Send + Sync + 'static) -> Worker {
        let worker = Worker::bind(bus, key).await;
        worker.consume(act).await;
        worker
    }

    /// Declares and binds, and does not consume.
    async fn bind(bus: &impl Bus, key: &str) -> Worker {
        let connection = Connection::connect(&bus.url(), ConnectionProperties::default()).await.expect("connected");
        let channel = connection.create_channel().await.expect("a channel");
        let queue = format!("{}.call", key.replace(['#', '*'], "all"));
        let durable = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
        channel.queue_declare(queue.as_str().into(), durable, FieldTable::default()).await.expect("declared");
        let bound = QueueBindOptions::default();
        channel
            .queue_bind(queue.as_str().into(), "reactor.call".into(), key.into(), bound, FieldTable::default())
            .await
            .expect("bound");
        Worker { _connection: connection, channel, queue }
    }

    async fn consume(&self, act: impl Fn(&Delivery) -> Act + Send + Sync + 'static) {
        let options = BasicConsumeOptions::default();
        let consumer = self.channel.basic_consume(self.queue.as_str().into(), "".into(), options, FieldTable::default());
        let mut consumer = consumer.await.expect("consuming");
        let channel = self.channel.clone();
        tokio::spawn(async move {
            while let Some(Ok(delivery)) = consumer.next().await {
                perform(&channel, &delivery, act(&delivery)).await;
            }
        });
    }
}

async fn perform(channel: &Channel, delivery: &Delivery, act: Act) {
    match act {
        Act::Reply(headers, body) => {
            publish(channel, delivery, headers, body).await;
            delivery.ack(BasicAckOptions::default()).await.expect("acked");
        }
        Act::Parts(parts) => {
            for (at, part) in parts.iter().enumerate() {
                let more = AMQPValue::Boolean(at + 1 < parts.len());
                publish(channel, delivery, table(&[(":more", more)]), part).await;
            }
            delivery.ack(BasicAckOptions::default()).await.expect("acked");
        }
        Act::PartAndDie(part) => {
            publish(channel, delivery, table(&[(":more", AMQPValue::Boolean(true))]), part).await;
            channel.close(200, "dies".into()).await.expect("closed");
        }
        Act::Nothing => {}
        Act::Ack => delivery.ack(BasicAckOptions::default()).await.map(|_| ()).expect("acked"),
        Act::Nack { requeue } => {
            let options = BasicNackOptions { requeue, ..BasicNackOptions::default() };
            delivery.nack(options).await.map(|_| ()).expect("nacked");
        }
        Act::Die => channel.close(200, "dies".into()).await.expect("closed"),
    }
}

async fn publish(channel: &Channel, delivery: &Delivery, headers: FieldTable, body: &str) {
    let properties = BasicProperties::default()
        .with_correlation_id(delivery.properties.correlation_id().clone().expect("a correlation id"))
        .with_headers(headers);
    let to = delivery.properties.reply_to().clone().expect("an address");
    let published = channel.basic_publish("".into(), to, BasicPublishOptions::default(), body.as_bytes(), properties);
    published.await.expect("published");
}

fn table(entries: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (name, value) in entries {
        table.insert((*name).into(), value.clone());
    }
    table
}

fn status(code: i32) -> FieldTable {
    table(&[(":status", AMQPValue::LongInt(code))])
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(LongString::from(value))
}

fn reply(body: &'static str) -> Act {
    Act::Reply(FieldTable::default(), body)
}

fn header(delivery: &Delivery, name: &str) -> Option<String> {
    match delivery.properties.headers().as_ref()?.inner().get(name)? {
        AMQPValue::LongString(text) => Some(text.to_string()),
        other => Some(format!("{other:?}")),
    }
}

/// What the call looked like to its worker, as JSON.
fn seen(delivery: &Delivery) -> Act {
    let properties = &delivery.properties;
    let headers =
        properties.headers().as_ref().map(|headers| headers.inner().keys().map(|name| name.to_string()).collect::<Vec<_>>());
    let json = serde_json::json!({
        "key": delivery.routing_key.as_str(),
        "body": String::from_utf8_lossy(&delivery.data),
        "headers": headers,
        "path": header(delivery, ":path"),
        "method": header(delivery, ":method"),
        "authority": header(delivery, ":authority"),
        "scheme": header(delivery, ":scheme"),
        "accept": header(delivery, "accept"),
        "cookie": header(delivery, "cookie"),
        "cc": header(delivery, "cc"),
        "traceparent": header(delivery, "traceparent"),
        "reply_to": properties.reply_to().as_ref().map(|text| text.as_str()),
        "correlation_id": properties.correlation_id().as_ref().map(|text| text.as_str()),
        "expiration": properties.expiration().as_ref().map(|text| text.as_str()),
        "message_id": properties.message_id().as_ref().map(|text| text.as_str()),
        "content_type": properties.content_type().as_ref().map(|text| text.as_str()),
        "type": properties.kind().as_ref().map(|text| text.as_str()),
        "app_id": properties.app_id().as_ref().map(|text| text.as_str()),
        "user_id": properties.user_id().as_ref().map(|text| text.as_str()),
        "delivery_mode": *properties.delivery_mode(),
    });
    Act::Reply(FieldTable::default(), json.to_string().leak())
}

async fn get(reactor: &Reactor, path: &str) -> (u16, String) {
    let response = http().get(format!("{}{path}", reactor.gateway())).send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.text().await.expect("a body"))
}

async fn problem(reactor: &Reactor, path: &str) -> (u16, Value, reqwest::header::HeaderMap) {
    let response = http().get(format!("{}{path}", reactor.gateway())).send().await.expect("an answer");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    assert_eq!(headers["content-type"], "application/problem+json");
    let json: Value = response.json().await.expect("JSON");
    assert_eq!(json["trace_id"].as_str().map(str::len), Some(32), "{json}");
    assert!(json["next"].as_str().is_some_and(|next| !next.is_empty()), "{json}");
    (status, json, headers)
}

#[tokio::test]
async fn a_call_reaches_its_worker_with_key_fields_and_properties_as_the_contract_says() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", seen).await;
    let request = http()
        .post(format!("{}/Greeter/Say//He.llo?x=%20", reactor.gateway()))
        .header("accept", "a")
        .header("accept", "b")
        .header("cookie", "x=1")
        .header("cookie", "y=2")
        .header("cc", "other.queue")
        .header("x-reactor-subject", "root")
        .header("x-death", "1")
        .header("content-type", "text/plain");
    let json: Value = request.body("hello").send().await.expect("an answer").json().await.expect("JSON");
    assert_eq!(json["key"], "greeter.say.he%2ello");
    assert_eq!(
        (&json["method"], &json["path"], &json["scheme"]),
        (&"POST".into(), &"/Greeter/Say//He.llo?x=%20".into(), &"http".into())
    );
    assert_eq!(json["authority"], format!("127.0.0.1:{}", reactor.port("ingress")));
    assert_eq!((&json["body"], &json["accept"], &json["cookie"]), (&"hello".into(), &"a, b".into(), &"x=1; y=2".into()));
    assert_eq!(json["cc"], "other.queue");
    let headers = json["headers"].as_array().expect("names");
    assert!(!headers.iter().any(|name| name == "x-reactor-subject" || name == "x-death" || name == "host"), "{headers:?}");
    assert!(
        json["reply_to"].as_str().is_some_and(|to| to.starts_with("amq.rabbitmq.reply-to.") && to.len() >= 22 + 22),
        "{json}"
    );
    assert!(json["correlation_id"].is_string() && json["message_id"].is_string() && json["traceparent"].is_string());
    let left: u64 = json["expiration"].as_str().and_then(|text| text.parse().ok()).expect("milliseconds");
    assert!((25_000..=30_000).contains(&left), "{left}");
    assert_eq!(
        (&json["type"], &json["app_id"], &json["user_id"]),
        (&"http.request".into(), &"reactor.gateway".into(), &"reactor.gateway".into())
    );
    assert_eq!((&json["delivery_mode"], &json["content_type"]), (&1.into(), &"text/plain".into()));
}

#[tokio::test]
async fn status_fields_and_body_of_the_reply_go_back() {
    let reactor = Reactor::start("");
    let cookies = AMQPValue::FieldArray(FieldArray::from(vec![text("a=1"), text("b=2")]));
    let headers = table(&[
        (":status", text("201")),
        ("Set-Cookie", cookies),
        ("x-n", AMQPValue::LongInt(7)),
        ("content-length", text("99")),
    ]);
    let _worker = Worker::attach(&reactor, "greeter.#", move |_| Act::Reply(headers.clone(), "made")).await;
    let response = http().get(format!("{}/greeter", reactor.gateway())).send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 201);
    assert_eq!(response.headers().get_all("set-cookie").iter().collect::<Vec<_>>(), ["a=1", "b=2"]);
    assert_eq!(
        (&response.headers()["x-n"], &response.headers()["content-length"]),
        (&"7".parse().expect("a value"), &"4".parse().expect("a value"))
    );
    assert_eq!(response.headers()["content-type"], "text/plain; charset=utf-8");
    assert_eq!(response.headers()["x-content-type-options"], "nosniff");
    assert_eq!(response.text().await.expect("a body"), "made");
}

#[tokio::test]
async fn a_reply_that_cannot_be_http_is_502_and_told() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", |delivery| match delivery.routing_key.as_str() {
        "greeter.status" => Act::Reply(status(42), ""),
        "greeter.line" => Act::Reply(table(&[("x", text("a\r\nb"))]), ""),
        "greeter.type" => Act::Reply(table(&[("x", AMQPValue::Boolean(true))]), ""),
        _ => Act::Reply(table(&[(":wrong", text("a"))]), ""),
    })
    .await;
    for path in ["/greeter/status", "/greeter/line", "/greeter/type", "/greeter/name"] {
        let (status, json, _) = problem(&reactor, path).await;
        assert_eq!((status, json["type"].as_str()), (502, Some("/problems/bad-reply")), "{path}: {json}");
    }
}

#[tokio::test]
async fn a_reply_in_parts_is_streamed_and_ends_with_the_part_that_says_so() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", |_| Act::Parts(&["one ", "two ", "three", ""])).await;
    let (status, body) = get(&reactor, "/greeter").await;
    assert_eq!((status, body.as_str()), (200, "one two three"));
}

#[tokio::test]
async fn a_worker_that_dies_midway_resets_the_stream_and_never_ends_it_cleanly() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", |_| Act::PartAndDie("half")).await;
    let response = http().get(format!("{}/greeter", reactor.gateway())).send().await;
    // The cut may come before or after the head is out; either way it is an error.
    if let Ok(response) = response {
        assert!(response.status().as_u16() == 200 && response.text().await.is_err());
    }
}

#[tokio::test]
async fn no_binding_is_404_and_lists_what_is_attached() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", seen).await;
    let (status, json, _) = problem(&reactor, "/nobody/x").await;
    assert_eq!((status, &json["attached"]), (404, &serde_json::json!(["greeter"])));
    let stranger =
        http().get(format!("{}/nobody", reactor.gateway())).header("host", "evil.example").send().await.expect("an answer");
    assert!(!stranger.text().await.expect("a body").contains("attached\":"));
}

#[tokio::test]
async fn bound_without_consumer_is_503_with_retry_after() {
    let reactor = Reactor::start("");
    let _worker = Worker::bind(&reactor, "greeter.#").await;
    let (status, json, headers) = problem(&reactor, "/greeter").await;
    assert_eq!(
        (status, json["type"].as_str(), &headers["retry-after"]),
        (503, Some("/problems/no-consumer"), &"1".parse().expect("a value"))
    );
}

#[tokio::test]
async fn a_restart_of_a_worker_is_not_an_error() {
    let reactor = Reactor::start("");
    let first = Worker::attach(&reactor, "greeter.#", |_| reply("first")).await;
    assert_eq!(get(&reactor, "/greeter").await.1, "first");
    first._connection.close(200, "bye".into()).await.expect("closed");
    let url = format!("{}/greeter", reactor.gateway());
    let waiting = tokio::spawn(async move { http().get(url).send().await.expect("an answer").text().await.expect("a body") });
    let _second = Worker::attach(&reactor, "greeter.#", |_| reply("second")).await;
    assert_eq!(waiting.await.expect("joined"), "second");
}

#[tokio::test]
async fn no_reply_and_an_ack_without_one_are_504_at_the_deadline() {
    let reactor = Reactor::start("[gateway]\ncall_timeout = \"300ms\"\n");
    let _worker = Worker::attach(&reactor, "greeter.#", |delivery| match delivery.routing_key.as_str() {
        "greeter.ack" => Act::Ack,
        _ => Act::Nothing,
    })
    .await;
    for path in ["/greeter/silence", "/greeter/ack"] {
        let begun = Instant::now();
        let (status, json, _) = problem(&reactor, path).await;
        assert_eq!((status, json["type"].as_str()), (504, Some("/problems/no-reply")), "{json}");
        assert!(begun.elapsed() >= Duration::from_millis(300), "an ack is no reply, and ends nothing early");
    }
}

#[tokio::test]
async fn a_worker_whose_channel_closes_is_502_at_once() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", |_| Act::Die).await;
    let begun = Instant::now();
    let (status, json, _) = problem(&reactor, "/greeter").await;
    assert_eq!((status, json["type"].as_str()), (502, Some("/problems/worker-gone")), "{json}");
    assert!(begun.elapsed() < Duration::from_secs(10), "long before the deadline");
}

#[tokio::test]
async fn a_rejected_call_is_502_and_a_requeued_one_goes_to_another_consumer() {
    let reactor = Reactor::start("");
    let worker =
        Worker::attach(&reactor, "greeter.#", |delivery| Act::Nack { requeue: delivery.routing_key.as_str() == "greeter.again" })
            .await;
    let (status, json, _) = problem(&reactor, "/greeter").await;
    assert_eq!((status, json["type"].as_str()), (502, Some("/problems/rejected")), "{json}");
    worker.consume(|_| reply("other")).await;
    assert_eq!(get(&reactor, "/greeter/again").await, (200, "other".to_owned()));
}

#[tokio::test]
async fn a_client_that_leaves_takes_its_queued_call_along() {
    let reactor = Reactor::start("");
    // One call occupies the only worker; the second stays queued until its client leaves.
    let worker = Worker::bind(&reactor, "greeter.#").await;
    worker.channel.basic_qos(1, lapin::options::BasicQosOptions::default()).await.expect("a prefetch");
    let taken = Arc::new(AtomicUsize::new(0));
    let counter = taken.clone();
    worker
        .consume(move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            Act::Nothing
        })
        .await;
    let ask = || async {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", reactor.port("ingress"))).await.expect("connected");
        stream.write_all(b"GET /greeter HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("written");
        stream
    };
    let ready = || async {
        let declared = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
        worker
            .channel
            .queue_declare(worker.queue.as_str().into(), declared, FieldTable::default())
            .await
            .expect("declared")
            .message_count()
    };
    let _first = ask().await;
    wait_until("the first call is taken", DEADLINE, || async { taken.load(Ordering::SeqCst) == 1 }).await;
    let second = ask().await;
    wait_until("the second call is queued", DEADLINE, || async { ready().await == 1 }).await;
    drop(second);
    wait_until("the queued call is removed", DEADLINE, || async { ready().await == 0 }).await;
}

#[tokio::test]
async fn versions_resolve_to_their_bindings_and_the_highest_with_a_consumer() {
    let reactor = Reactor::start("");
    let _one = Worker::attach(&reactor, "greeter.v1.#", |_| reply("one")).await;
    let _two = Worker::attach(&reactor, "greeter.v2.#", |_| reply("two")).await;
    let _three = Worker::bind(&reactor, "greeter.v3.#").await;
    for (path, answer) in [("/greeter/v1/x", "one"), ("/greeter/v2/x", "two"), ("/greeter/x", "two"), ("/greeter/v0/x", "two")] {
        assert_eq!(get(&reactor, path).await, (200, answer.to_owned()), "{path}");
    }
    let (status, json, _) = problem(&reactor, "/greeter/v9/x").await;
    assert_eq!((status, &json["attached"]), (404, &serde_json::json!(["v1", "v2", "v3"])));
}

#[tokio::test]
async fn the_default_service_takes_what_no_other_does() {
    let reactor = Reactor::start("");
    let _default = Worker::attach(&reactor, "#", |_| reply("default")).await;
    let _greeter = Worker::attach(&reactor, "greeter.#", |_| reply("greeter")).await;
    for (path, answer) in [("/", "default"), ("/index.html", "default"), ("/greeter/x", "greeter")] {
        assert_eq!(get(&reactor, path).await, (200, answer.to_owned()), "{path}");
    }
}

#[tokio::test]
async fn bodies_over_the_limit_are_413_and_fields_over_32_kib_431() {
    let reactor = Reactor::start("[limits]\ncall_body_bytes_max = \"1KiB\"\n");
    let _worker = Worker::attach(&reactor, "greeter.#", seen).await;
    let url = format!("{}/greeter", reactor.gateway());
    let large = http().post(&url).body(vec![b'x'; 100_000]).send().await.expect("an answer");
    assert_eq!(large.status().as_u16(), 413);
    let stream = futures_util::stream::iter((0..100).map(|_| Ok::<_, std::io::Error>(vec![b'x'; 1000])));
    let chunked = http().post(&url).body(reqwest::Body::wrap_stream(stream)).send().await.expect("an answer");
    assert_eq!(chunked.status().as_u16(), 413);
    let fields = http().get(&url).header("x", "y".repeat(33_000)).send().await.expect("an answer");
    assert_eq!(fields.status().as_u16(), 431);
}

#[tokio::test]
async fn head_has_no_body_and_trace_is_405_and_upgrades_are_501() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", |_| reply("hello")).await;
    let url = format!("{}/greeter", reactor.gateway());
    let head = http().head(&url).send().await.expect("an answer");
    assert_eq!((head.status().as_u16(), head.headers()["content-length"].to_str().expect("text")), (200, "5"));
    assert_eq!(head.text().await.expect("nothing"), "");
    let trace = http().request(reqwest::Method::TRACE, &url).send().await.expect("an answer");
    assert_eq!(trace.status().as_u16(), 405);
    let upgrade =
        http().get(&url).header("connection", "upgrade").header("upgrade", "websocket").send().await.expect("an answer");
    assert_eq!(upgrade.status().as_u16(), 501);
    assert!(upgrade.text().await.expect("a body").contains("reactor attach greeter"));
}

#[tokio::test]
async fn http2_with_prior_knowledge_reaches_the_same_services() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", seen).await;
    let h2c = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().expect("a client");
    let response = h2c.get(format!("{}/greeter/a", reactor.gateway())).send().await.expect("an answer");
    assert_eq!(response.version(), reqwest::Version::HTTP_2);
    let json: Value = response.json().await.expect("JSON");
    assert_eq!((&json["key"], &json["scheme"]), (&"greeter.a".into(), &"http".into()));
}

#[tokio::test]
async fn bare_lf_and_ambiguous_lengths_are_refused_by_the_real_door() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", seen).await;
    for request in [
        "GET /greeter HTTP/1.1\nHost: x\n\n",
        "POST /greeter HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /greeter HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", reactor.port("ingress"))).await.expect("connected");
        stream.write_all(request.as_bytes()).await.expect("written");
        let mut said = String::new();
        stream.read_to_string(&mut said).await.expect("closed in order");
        assert!(
            said.starts_with("HTTP/1.1 400 ") && said.matches("HTTP/1.1 4").count() == 1 && !said.contains("HTTP/1.1 200"),
            "{said}"
        );
    }
}

#[tokio::test]
async fn a_request_through_a_plain_worker_is_one_trace() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&reactor, "greeter.#", seen).await;
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let request =
        http().get(format!("{}/greeter/a?secret=1", reactor.gateway())).header("traceparent", format!("00-{trace}-{caller}-01"));
    let json: Value = request.header("user-agent", "curl/8").send().await.expect("an answer").json().await.expect("JSON");
    let sent = json["traceparent"].as_str().expect("sent on").to_owned();
    let spans = || async {
        let response = http().get(format!("{}/api/v1/traces/{trace}", reactor.api())).send().await.expect("an answer");
        let json: Value = response.json().await.unwrap_or_default();
        json["spans"].as_array().cloned().unwrap_or_default()
    };
    wait_until("the gateway's two spans are kept", DEADLINE, || async {
        spans().await.iter().filter(|span| span["service"] == "gateway").count() == 2
    })
    .await;
    let spans = spans().await;
    let span = |name: &str| spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name} in {spans:?}"));
    let (server, client) = (span("GET /greeter"), span("call greeter"));
    assert_eq!((&server["kind"], &server["parent"], &server["own"]), (&"server".into(), &caller.into(), &true.into()));
    assert_eq!((&client["kind"], &client["parent"]), (&"client".into(), &server["span_id"]));
    assert_eq!(sent, format!("00-{trace}-{}-01", client["span_id"].as_str().expect("an id")), "the worker is the call's child");
    let attributes = &server["attributes"];
    assert_eq!((&attributes["http.request.method"], &attributes["url.path"]), (&"GET".into(), &"/greeter/a".into()));
    assert_eq!(
        (&attributes["http.response.status_code"], &attributes["network.peer.address"]),
        (&200.into(), &"127.0.0.1".into())
    );
    assert!(!server.to_string().contains("secret"), "queries may hold secrets: {server}");
    assert!(
        spans.iter().any(|span| span["service"] == "greeter" || span["parent"] == client["span_id"]),
        "the bus adds its own: {spans:?}"
    );
}

#[tokio::test]
async fn a_key_marked_for_the_bus_alone_is_absent_for_the_gateway() {
    let reactor = Reactor::start("");
    let worker = Worker::attach(&reactor, "greeter.#", |_| reply("open")).await;
    let private = table(&[("x-reactor-http", AMQPValue::Boolean(false))]);
    let inner = Worker::bind(&reactor, "inner.all").await;
    inner
        .channel
        .queue_unbind(inner.queue.as_str().into(), "reactor.call".into(), "inner.all".into(), FieldTable::default())
        .await
        .expect("unbound");
    let bound = QueueBindOptions::default();
    inner
        .channel
        .queue_bind(inner.queue.as_str().into(), "reactor.call".into(), "inner.#".into(), bound, private)
        .await
        .expect("bound");
    inner.consume(|_| reply("private")).await;
    assert_eq!(problem(&reactor, "/inner/x").await.0, 404);
    assert_eq!(get(&reactor, "/greeter").await.1, "open");
    drop(worker);
}

#[tokio::test]
async fn fields_that_do_not_fit_the_consumers_frames_are_502_and_name_frame_max() {
    let reactor = Reactor::start("");
    let _worker = Worker::attach(&Small(&reactor), "greeter.#", seen).await;
    assert_eq!(get(&reactor, "/greeter").await.0, 200);
    let request = http().get(format!("{}/greeter", reactor.gateway())).header("x", "y".repeat(8_000));
    let response = request.send().await.expect("an answer");
    assert_eq!(response.status().as_u16(), 502);
    assert!(response.text().await.expect("a body").contains("frame_max of 4096"));
}

#[tokio::test]
async fn the_reply_to_a_client_that_left_comes_back_to_a_worker_that_insists() {
    let reactor = Reactor::start("");
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let worker = Worker::attach(&reactor, "greeter.#", move |delivery| {
        let properties = &delivery.properties;
        let _ =
            tell.send((properties.reply_to().clone().expect("an address"), properties.correlation_id().clone().expect("an id")));
        Act::Nothing
    })
    .await;
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", reactor.port("ingress"))).await.expect("connected");
    stream.write_all(b"GET /greeter HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("written");
    let (address, id) = tokio::time::timeout(DEADLINE, told.recv()).await.expect("in time").expect("a call");
    drop(stream);
    worker.channel.confirm_select(lapin::options::ConfirmSelectOptions::default()).await.expect("confirms");
    wait_until("a mandatory reply is returned", DEADLINE, || async {
        let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
        let properties = BasicProperties::default().with_correlation_id(id.clone());
        let published =
            worker.channel.basic_publish("".into(), address.clone(), options, b"late", properties).await.expect("published");
        published.await.expect("confirmed").take_message().is_some_and(|returned| returned.reply_code == 312)
    })
    .await;
}

#[tokio::test]
async fn a_stream_that_its_client_does_not_read_is_held_within_bounds_and_then_ended() {
    let reactor = Reactor::start("");
    let part: &'static str = "x".repeat(256 * 1024).leak();
    let parts: &'static [&'static str] = vec![part; 400].leak();
    let _worker = Worker::attach(&reactor, "greeter.#", move |_| Act::Parts(parts)).await;
    let before = reactor.memory_bytes();
    let mut stream = tokio::net::TcpStream::connect(("127.0.0.1", reactor.port("ingress"))).await.expect("connected");
    stream.write_all(b"GET /greeter HTTP/1.1\r\nHost: x\r\n\r\n").await.expect("written");
    wait_until("the stream is ended", DEADLINE, || async {
        let held = reactor.memory_bytes().saturating_sub(before);
        assert!(held < 64 * 1024 * 1024, "{held} bytes are held of a 100 MiB stream");
        reactor.stderr().contains("read too slowly")
    })
    .await;
    let mut said = Vec::new();
    let ended = stream.read_to_end(&mut said).await;
    assert!(ended.is_err() || !said.ends_with(b"0\r\n\r\n"), "never a clean end");
    assert!(said.len() < 100 * 1024 * 1024);
}
