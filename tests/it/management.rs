//! The management port as RabbitMQ's clients use it: what they declare, read and delete, and what they are told when it is wrong.

use crate::support::{DEADLINE, Reactor, http, wait_until};
use futures_util::StreamExt;
use lapin::options::*;
use lapin::types::{FieldTable, ShortString};
use lapin::{BasicProperties, Connection, ConnectionProperties};
use reqwest::{Method, Response};
use serde_json::{Value, json};

pub async fn send(reactor: &Reactor, method: &str, path: &str, body: Value) -> Response {
    send_as(reactor, method, path, body, Some(("guest", "guest"))).await
}

pub async fn send_as(reactor: &Reactor, method: &str, path: &str, body: Value, user: Option<(&str, &str)>) -> Response {
    let method: Method = method.parse().expect("a method");
    let mut request = http().request(method, format!("{}{path}", reactor.management()));
    if let Some((user, password)) = user {
        request = request.basic_auth(user, Some(password));
    }
    if !body.is_null() {
        request = request.json(&body);
    }
    request.send().await.expect("answers")
}

/// Status and JSON; null where there is none.
pub async fn ask(reactor: &Reactor, method: &str, path: &str, body: Value) -> (u16, Value) {
    let response = send(reactor, method, path, body).await;
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.expect("a body")).unwrap_or(Value::Null))
}

pub async fn get(reactor: &Reactor, path: &str) -> Value {
    let (status, body) = ask(reactor, "GET", path, Value::Null).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

async fn connect(reactor: &Reactor, name: &str) -> Connection {
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    Connection::connect(&reactor.amqp_url(), properties).await.expect("connected")
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn queues_exchanges_and_bindings_live_their_whole_life() {
    let reactor = Reactor::start("");
    let queue = json!({ "durable": "true", "auto_delete": false, "arguments": { "team": "sales" } });
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/work", queue.clone()).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/work", queue).await.0, 204);
    let (status, refused) = ask(&reactor, "PUT", "/api/queues/%2F/work", json!({ "durable": false })).await;
    assert_eq!((status, &refused["error"]), (400, &json!("bad_request")));
    let reason = refused["reason"].as_str().expect("a reason");
    assert!(reason.contains("inequivalent arg 'durable' for queue 'work' in vhost '/'"), "{reason}");
    assert_eq!(ask(&reactor, "PUT", "/api/queues/nowhere/work", json!({})).await.0, 404);
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/amq.mine", json!({})).await.0, 401);
    assert_eq!(
        ask(&reactor, "PUT", "/api/queues/%2F/odd", json!({ "durable": "maybe" })).await,
        (400, json!({ "error": "bad_request", "reason": ["not_boolean", "maybe"] }))
    );

    assert_eq!(ask(&reactor, "PUT", "/api/exchanges/%2F/prices", json!({ "type": "topic" })).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/api/exchanges/%2F/odd", json!({ "type": "x-odd" })).await.0, 400);
    let bound =
        send(&reactor, "POST", "/api/bindings/%2F/e/prices/q/work", json!({ "routing_key": "eu.#", "arguments": {} })).await;
    assert_eq!((bound.status().as_u16(), bound.headers()["location"].to_str().expect("text")), (201, "work/eu.%2523"));
    let binding = get(&reactor, "/api/bindings/%2F/e/prices/q/work/eu.%2523").await;
    let expected = json!({
        "source": "prices", "vhost": "/", "destination": "work", "destination_type": "queue", "routing_key": "eu.#",
        "arguments": {}, "properties_key": "eu.%23",
    });
    assert_eq!(binding, expected);
    assert_eq!(get(&reactor, "/api/exchanges/%2F/prices/bindings/source").await, json!([expected]));
    let of_queue = get(&reactor, "/api/queues/%2F/work/bindings").await;
    assert_eq!((&of_queue[0]["source"], &of_queue[1]["source"]), (&json!(""), &json!("prices")), "the default one is implied");
    assert_eq!(ask(&reactor, "POST", "/api/bindings/%2F/e/prices/q/gone", json!({})).await.0, 404);

    let exchange = get(&reactor, "/api/exchanges/%2F/prices").await;
    for (field, value) in [("type", json!("topic")), ("durable", json!(true)), ("internal", json!(false)), ("vhost", json!("/"))]
    {
        assert_eq!(exchange[field], value, "{field}");
    }
    assert_eq!(names(&get(&reactor, "/api/exchanges/%2F").await)[..2], ["", "amq.direct"]);

    assert_eq!(ask(&reactor, "DELETE", "/api/bindings/%2F/e/prices/q/work/eu.%23", Value::Null).await.0, 204);
    assert_eq!(ask(&reactor, "DELETE", "/api/exchanges/%2F/amq.topic", Value::Null).await.0, 401);
    for path in ["/api/exchanges/%2F/prices", "/api/queues/%2F/work"] {
        assert_eq!(ask(&reactor, "DELETE", path, Value::Null).await.0, 204, "{path}");
        let gone = json!({ "error": "Object Not Found", "reason": "Not Found" });
        assert_eq!(ask(&reactor, "DELETE", path, Value::Null).await, (404, gone.clone()), "{path}");
        assert_eq!(ask(&reactor, "GET", path, Value::Null).await, (404, gone), "{path}");
    }
}

#[tokio::test]
async fn messages_are_published_and_got_by_hand() {
    let reactor = Reactor::start("");
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/work", json!({})).await.0, 201);
    let publish = "/api/exchanges/%2F/amq.default/publish";
    let message = json!({
        "routing_key": "work", "payload": "héllo", "payload_encoding": "string",
        "properties": { "delivery_mode": 2, "content_type": "text/plain", "timestamp": 7, "headers": { "n": 1, "s": "t" } },
    });
    assert_eq!(ask(&reactor, "POST", publish, message).await, (200, json!({ "routed": true })));
    let bytes = json!({ "routing_key": "work", "payload": "/wA=", "payload_encoding": "base64", "properties": [] });
    assert_eq!(ask(&reactor, "POST", publish, bytes).await.1["routed"], true);
    let lost = json!({ "routing_key": "nowhere", "payload": "", "payload_encoding": "string", "properties": {} });
    assert_eq!(ask(&reactor, "POST", publish, lost).await, (200, json!({ "routed": false })));
    let wrong = json!({ "routing_key": "work", "payload": "?", "payload_encoding": "base64", "properties": {} });
    assert_eq!(ask(&reactor, "POST", publish, wrong).await.1["reason"], json!(["not_base64", "?"]));
    let none = ask(&reactor, "POST", publish, json!({ "payload": "", "payload_encoding": "string", "properties": {} })).await;
    assert_eq!(none.1["reason"], "[{key_missing,routing_key}]");

    let path = "/api/queues/%2F/work/get";
    let wish = json!({ "count": 5, "ackmode": "ack_requeue_true", "encoding": "auto" });
    let (status, got) = ask(&reactor, "POST", path, wish.clone()).await;
    assert_eq!((status, got.as_array().expect("a list").len()), (200, 2), "{got}");
    let expected = json!({
        "payload_bytes": 6, "redelivered": false, "exchange": "", "routing_key": "work", "message_count": 1,
        "properties": { "delivery_mode": 2, "content_type": "text/plain", "timestamp": 7, "headers": { "n": 1, "s": "t" } },
        "payload": "héllo", "payload_encoding": "string",
    });
    assert_eq!(got[0], expected);
    assert_eq!((&got[1]["payload"], &got[1]["payload_encoding"]), (&json!("/wA="), &json!("base64")));
    assert_eq!(ask(&reactor, "POST", path, wish).await.1[0]["redelivered"], true, "it went back and came again");
    let cut = json!({ "count": 1, "ackmode": "reject_requeue_true", "encoding": "base64", "truncate": 1 });
    assert_eq!(ask(&reactor, "POST", path, cut).await.1[0]["payload"], "aA==");
    let take = json!({ "count": 9, "ackmode": "ack_requeue_false", "encoding": "auto" });
    assert_eq!(ask(&reactor, "POST", path, take.clone()).await.1.as_array().expect("a list").len(), 2);
    assert_eq!(ask(&reactor, "POST", path, take.clone()).await, (200, json!([])));
    assert_eq!(ask(&reactor, "POST", path, json!({ "count": 1, "ackmode": "odd", "encoding": "auto" })).await.0, 400);
    let gone = ask(&reactor, "POST", "/api/queues/%2F/gone/get", take).await;
    assert_eq!((gone.0, &gone.1["error"]), (404, &json!("not_found")));
    assert!(get(&reactor, "/api/connections").await.as_array().expect("a list").is_empty(), "no client was there");
}

#[tokio::test]
async fn dead_letters_that_nobody_takes_are_counted_until_somebody_does() {
    let reactor = Reactor::start("");
    let arguments = json!({
        "x-queue-type": "quorum", "x-overflow": "reject-publish", "x-dead-letter-strategy": "at-least-once",
        "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead",
    });
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/jobs", json!({ "arguments": arguments })).await.0, 201);
    let message = json!({ "routing_key": "jobs", "payload": "x", "payload_encoding": "string", "properties": {} });
    ask(&reactor, "POST", "/api/exchanges/%2F/amq.default/publish", message).await;
    let reject = json!({ "count": 1, "ackmode": "reject_requeue_false", "encoding": "auto" });
    ask(&reactor, "POST", "/api/queues/%2F/jobs/get", reject).await;
    let queue = get(&reactor, "/api/queues/%2F/jobs").await;
    let counts = ["messages", "messages_ready", "messages_unacknowledged", "messages_dlx"].map(|name| queue[name].clone());
    assert_eq!((counts, &queue["message_bytes"]), ([1, 0, 0, 1].map(Value::from), &queue["message_bytes_dlx"]));
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/dead", json!({})).await.0, 201);
    let arrived = async || get(&reactor, "/api/queues/%2F/dead").await["messages"] == 1;
    wait_until("the letter arrives", DEADLINE, arrived).await;
    assert_eq!(get(&reactor, "/api/queues/%2F/jobs").await["messages"], 0);
}

#[tokio::test]
async fn what_a_user_may_not_get_or_publish_is_said_as_rabbitmq_says_it() {
    let reactor = Reactor::start("");
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/work", json!({})).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/api/users/ann", json!({ "password": "secret", "tags": "management" })).await.0, 201);
    let none = json!({ "configure": "", "write": "", "read": "" });
    assert_eq!(ask(&reactor, "PUT", "/api/permissions/%2F/ann", none).await.0, 201);
    let as_ann = async |path: &str, body: Value| {
        let answer = send_as(&reactor, "POST", path, body, Some(("ann", "secret"))).await;
        (answer.status().as_u16(), answer.json::<Value>().await.expect("JSON"))
    };
    let wish = json!({ "count": 1, "ackmode": "ack_requeue_true", "encoding": "auto" });
    let got = as_ann("/api/queues/%2F/work/get", wish).await;
    let reason = "ACCESS_REFUSED - read access to queue 'work' in vhost '/' refused for user 'ann'";
    assert_eq!(got, (401, json!({ "error": "not_authorised", "reason": reason })));
    let message = json!({ "routing_key": "work", "payload": "x", "payload_encoding": "string", "properties": {} });
    let published = as_ann("/api/exchanges/%2F/amq.topic/publish", message).await;
    let reason = "403 ACCESS_REFUSED - write access to exchange 'amq.topic' in vhost '/' refused for user 'ann'";
    assert_eq!(published, (400, json!({ "error": "bad_request", "reason": reason })));
}

#[tokio::test]
async fn no_message_is_taken_by_hand_while_the_memory_alarm_is_on() {
    let reactor = Reactor::start("[limits]\nqueue_bytes_max = \"1MiB\"\n");
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/work", json!({})).await.0, 201);
    let publish = "/api/exchanges/%2F/amq.default/publish";
    let message = |bytes: usize| json!({ "routing_key": "work", "payload": "x".repeat(bytes), "payload_encoding": "string", "properties": {} });
    assert_eq!(ask(&reactor, "POST", publish, message(2 << 20)).await.0, 200, "the one that raises it");
    let refused = send(&reactor, "POST", publish, message(1)).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"1".parse().expect("a value")));
    let said = refused.json::<Value>().await.expect("JSON");
    assert!(said["reason"].as_str().is_some_and(|reason| reason.starts_with("the memory alarm is on")), "{said}");
    let own = async || {
        let wish = json!({ "routing_key": "work", "body": "x" });
        let answer = http().post(format!("{}/api/v1/publish", reactor.api())).json(&wish).send().await.expect("answers");
        (answer.status().as_u16(), answer.json::<Value>().await.expect("JSON"))
    };
    let (status, problem) = own().await;
    assert_eq!((status, &problem["type"]), (503, &json!("/problems/exhausted")), "{problem}");
    assert_eq!(ask(&reactor, "DELETE", "/api/queues/%2F/work/contents", Value::Null).await.0, 204);
    assert_eq!((ask(&reactor, "POST", publish, message(1)).await.0, own().await.0), (200, 200));
}

#[tokio::test]
async fn connections_channels_and_consumers_are_shown_and_a_connection_can_be_closed() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor, "my app").await;
    let channel = connection.create_channel().await.expect("a channel");
    channel.queue_declare("work".into(), QueueDeclareOptions::default(), FieldTable::default()).await.expect("declared");
    channel.basic_qos(7, BasicQosOptions::default()).await.expect("limited");
    let consumer = channel
        .basic_consume("work".into(), ShortString::from("tag"), BasicConsumeOptions::default(), FieldTable::default())
        .await
        .expect("consuming");

    let listed = get(&reactor, "/api/connections").await;
    let one = &listed[0];
    let name = one["name"].as_str().expect("a name");
    assert!(name.contains(" -> ") && one["user_provided_name"] == "my app", "{one}");
    for (field, value) in [
        ("user", json!("guest")),
        ("vhost", json!("/")),
        ("state", json!("running")),
        ("protocol", json!("AMQP 0-9-1")),
        ("auth_mechanism", json!("PLAIN")),
        ("channels", json!(1)),
        ("type", json!("network")),
        ("ssl", json!(false)),
        ("peer_host", json!("127.0.0.1")),
        ("port", json!(reactor.port("amqp"))),
    ] {
        assert_eq!(one[field], value, "{field}");
    }
    assert!(one["recv_oct"].as_u64().expect("bytes") > 50 && one["recv_oct_details"]["rate"].is_number());
    let escaped = name.replace(' ', "%20").replace(':', "%3A").replace('>', "%3E");
    assert_eq!(get(&reactor, &format!("/api/connections/{escaped}")).await["name"], name);
    let channels = get(&reactor, &format!("/api/connections/{escaped}/channels")).await;
    assert_eq!((&channels[0]["prefetch_count"], &channels[0]["consumer_count"]), (&json!(7), &json!(1)));
    assert_eq!(channels[0]["connection_details"]["name"], name);
    let channel_path = format!("/api/channels/{escaped}%20(1)");
    assert_eq!(get(&reactor, &channel_path).await["consumer_details"][0]["consumer_tag"], "tag");
    let consumers = get(&reactor, "/api/consumers/%2F").await;
    assert_eq!(consumers[0]["queue"], json!({ "name": "work", "vhost": "/" }));
    assert_eq!((&consumers[0]["ack_required"], &consumers[0]["prefetch_count"]), (&json!(true), &json!(7)));
    assert_eq!(get(&reactor, "/api/queues/%2F/work").await["consumer_details"][0]["channel_details"]["connection_name"], name);
    assert_eq!(get(&reactor, "/api/connections/username/guest").await[0]["name"], name);

    assert_eq!(ask(&reactor, "DELETE", "/api/connections/nobody", Value::Null).await.0, 404);
    assert_eq!(ask(&reactor, "DELETE", &format!("/api/connections/{escaped}"), Value::Null).await.0, 204);
    let ended = tokio::time::timeout(DEADLINE, consumer.into_future()).await.expect("told in time").0;
    assert!(matches!(ended, None | Some(Err(_))), "the consumer learns that its connection ended");
    wait_until("the connection is gone", DEADLINE, async || {
        get(&reactor, "/api/connections").await.as_array().expect("a list").is_empty()
    })
    .await;
}

#[tokio::test]
async fn message_stats_and_rates_tell_what_moved() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor, "mover").await;
    let channel = connection.create_channel().await.expect("a channel");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("selected");
    channel.queue_declare("work".into(), QueueDeclareOptions::default(), FieldTable::default()).await.expect("declared");
    for _ in 0..20 {
        let sent = channel
            .basic_publish("".into(), "work".into(), BasicPublishOptions::default(), b"x", BasicProperties::default())
            .await
            .expect("published");
        sent.await.expect("confirmed");
    }
    for _ in 0..5 {
        let options = BasicGetOptions { no_ack: true };
        channel.basic_get("work".into(), options).await.expect("got").expect("a message");
    }
    let queue = get(&reactor, "/api/queues/%2F/work").await;
    assert_eq!(
        (&queue["messages"], &queue["messages_ready"], &queue["messages_unacknowledged"]),
        (&json!(15), &json!(15), &json!(0))
    );
    let stats = &queue["message_stats"];
    assert_eq!(
        (&stats["publish"], &stats["get_no_ack"], &stats["deliver_get"], &stats["ack"]),
        (&json!(20), &json!(5), &json!(5), &json!(0))
    );
    assert!(stats.get("confirm").is_none(), "queues confirm nothing");
    let channels = get(&reactor, "/api/channels").await;
    assert_eq!((&channels[0]["message_stats"]["publish"], &channels[0]["message_stats"]["confirm"]), (&json!(20), &json!(20)));
    let overview = get(&reactor, "/api/overview").await;
    assert_eq!((&overview["message_stats"]["publish"], &overview["queue_totals"]["messages"]), (&json!(20), &json!(15)));
    assert_eq!(overview["object_totals"]["connections"], 1);
    let default = get(&reactor, "/api/exchanges/%2F/amq.default").await;
    assert_eq!((&default["message_stats"]["publish_in"], &default["message_stats"]["publish_out"]), (&json!(20), &json!(20)));
    wait_until("the rates are known", DEADLINE, async || {
        let queue = get(&reactor, "/api/queues/%2F/work").await;
        let rate = |value: &Value| value["rate"].as_f64().unwrap_or(0.0);
        rate(&queue["message_stats"]["publish_details"]) > 0.0 && rate(&queue["messages_details"]) > 0.0
    })
    .await;
    let sampled = get(&reactor, "/api/queues/%2F/work?lengths_age=20&lengths_incr=5&msg_rates_age=20&msg_rates_incr=5").await;
    assert_eq!(sampled["messages_details"]["samples"].as_array().expect("samples").len(), 5);
    assert_eq!(sampled["message_stats"]["publish_details"]["samples"].as_array().expect("samples").len(), 5);
    let vhost = get(&reactor, "/api/vhosts/%2F").await;
    assert_eq!((&vhost["messages"], &vhost["message_stats"]["deliver_get"]), (&json!(15), &json!(5)));
}

/// A pool of workers that asks how long its queues are reads these fields of every queue.
#[tokio::test]
async fn a_poller_of_queues_finds_names_lengths_and_consumers_at_once() {
    let reactor = Reactor::start("");
    let connection = connect(&reactor, "poller").await;
    let channel = connection.create_channel().await.expect("a channel");
    for queue in ["a", "b"] {
        channel.queue_declare(queue.into(), QueueDeclareOptions::default(), FieldTable::default()).await.expect("declared");
    }
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("selected");
    for _ in 0..3 {
        let sent = channel
            .basic_publish("".into(), "b".into(), BasicPublishOptions::default(), b"x", BasicProperties::default())
            .await
            .expect("published");
        sent.await.expect("confirmed");
    }
    let mut consumer = channel
        .basic_consume("b".into(), ShortString::default(), BasicConsumeOptions::default(), FieldTable::default())
        .await
        .expect("consuming");
    consumer.next().await.expect("a delivery").expect("a delivery");
    let queues = get(&reactor, "/api/queues").await;
    let overview = get(&reactor, "/api/overview").await;
    let found: Vec<Value> = queues
        .as_array()
        .expect("a list")
        .iter()
        .map(|queue| {
            let fields = ["name", "vhost", "state", "messages", "messages_ready", "messages_unacknowledged", "consumers"];
            assert_eq!(queue["node"], overview["node"]);
            fields.into_iter().map(|field| queue[field].clone()).collect()
        })
        .collect();
    assert_eq!(found, [json!(["a", "/", "running", 0, 0, 0, 0]), json!(["b", "/", "running", 3, 0, 3, 1])]);
}

#[tokio::test]
async fn what_rabbitmqadmin_2_looks_for_is_there() {
    let reactor = Reactor::start("");
    // It lists bindings before it deletes one that may be gone.
    for gone in ["queues/%2F/gone/bindings", "exchanges/%2F/gone/bindings/source", "exchanges/%2F/gone/bindings/destination"] {
        assert_eq!(get(&reactor, &format!("/api/{gone}")).await, json!([]), "{gone}");
    }
    assert_eq!(ask(&reactor, "GET", "/api/queues/nowhere/gone/bindings", Value::Null).await.0, 404);
    assert_eq!(ask(&reactor, "PUT", "/api/feature-flags/detailed_queues_endpoint/enable", json!({})).await.0, 204);
    assert!(names(&get(&reactor, "/api/deprecated-features").await).contains(&"ram_node_type"));
}

#[tokio::test]
async fn lists_are_paged_sorted_filtered_and_narrowed() {
    let reactor = Reactor::start("");
    for name in ["alpha", "beta", "gamma", "delta"] {
        assert_eq!(ask(&reactor, "PUT", &format!("/api/queues/%2F/{name}"), json!({})).await.0, 201);
    }
    let page = get(&reactor, "/api/queues?page=2&page_size=3&sort=name").await;
    assert_eq!(names(&page["items"]), ["gamma"]);
    let counts =
        ["total_count", "filtered_count", "item_count", "page", "page_count", "page_size"].map(|field| page[field].clone());
    assert_eq!(counts, [json!(4), json!(4), json!(1), json!(2), json!(2), json!(3)]);
    assert_eq!(names(&get(&reactor, "/api/queues/%2F?page=1&name=ETA").await["items"]), ["beta"]);
    assert_eq!(names(&get(&reactor, "/api/queues?page=1&name=^(a|d)&use_regex=true").await["items"]), ["alpha", "delta"]);
    assert_eq!(get(&reactor, "/api/queues?columns=name&sort=name&sort_reverse=true").await[0], json!({ "name": "gamma" }));
    // Flower asks so.
    assert_eq!(names(&get(&reactor, "/api/queues/?columns=name&sort=name").await), ["alpha", "beta", "delta", "gamma"]);
    assert_eq!(get(&reactor, "/api/queues/%2F/beta/").await["name"], "beta");
    assert_eq!(ask(&reactor, "GET", "/api/queues//", Value::Null).await.0, 404);
    let lean = get(&reactor, "/api/queues/%2F/beta?disable_stats=true").await;
    assert!(lean.get("messages").is_none() && lean["name"] == "beta");
    assert_eq!(get(&reactor, "/api/queues/%2F/beta?disable_stats=true&enable_queue_totals=true").await["messages"], 0);
    let (status, refused) = ask(&reactor, "GET", "/api/queues?page=9", Value::Null).await;
    assert_eq!((status, &refused["error"]), (400, &json!("page_out_of_range")));
    assert_eq!(ask(&reactor, "GET", "/api/queues?page=0", Value::Null).await.1["error"], "invalid_pagination_parameters");
    assert_eq!(ask(&reactor, "GET", "/api/queues?lengths_age=60&lengths_incr=0", Value::Null).await.0, 400);
}

#[tokio::test]
async fn health_checks_answer_200_or_503_with_what_they_found() {
    let reactor = Reactor::start("");
    for path in [
        "alarms",
        "local-alarms",
        "virtual-hosts",
        "node-is-quorum-critical",
        "node-is-mirror-sync-critical",
        "protocol-listener/amqp",
        "protocol-listener/http",
        "ready-to-serve-clients",
        "below-node-connection-limit",
    ] {
        assert_eq!(get(&reactor, &format!("/api/health/checks/{path}")).await["status"], "ok", "{path}");
    }
    let port = reactor.port("amqp");
    assert_eq!(get(&reactor, &format!("/api/health/checks/port-listener/{port}")).await["port"], port);
    let (status, failed) = ask(&reactor, "GET", "/api/health/checks/port-listener/1", Value::Null).await;
    assert_eq!((status, &failed["reason"], &failed["missing"]), (503, &json!("No active listener"), &json!(1)));
    let (status, failed) = ask(&reactor, "GET", "/api/health/checks/protocol-listener/mqtt", Value::Null).await;
    assert_eq!((status, &failed["missing"]), (503, &json!("mqtt")));
    assert_eq!(get(&reactor, "/api/aliveness-test/%2F").await, json!({ "status": "ok" }));
    assert_eq!(ask(&reactor, "GET", "/api/aliveness-test/nowhere", Value::Null).await.0, 404);
    let node = get(&reactor, "/api/nodes").await[0].clone();
    let name = node["name"].as_str().expect("a name");
    assert!(name.starts_with("rabbit@") && node["running"] == true && node["mem_used"].as_u64().expect("bytes") > 1_000_000);
    assert_eq!(get(&reactor, &format!("/api/nodes/{name}")).await["os_pid"], reactor.pid().to_string());
    assert_eq!(ask(&reactor, "GET", "/api/nodes/rabbit@elsewhere", Value::Null).await.0, 404);
    assert!(
        get(&reactor, &format!("/api/nodes/{name}/memory")).await["memory"]["total"]["rss"].as_u64().expect("bytes") > 1_000_000
    );
}

#[tokio::test]
async fn metrics_have_rabbitmqs_names() {
    let reactor = Reactor::start("");
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/work", json!({})).await.0, 201);
    let message = json!({ "routing_key": "work", "payload": "x", "payload_encoding": "string", "properties": {} });
    assert_eq!(ask(&reactor, "POST", "/api/exchanges/%2F/amq.default/publish", message).await.0, 200);
    let read = async |path: &str| {
        let response =
            http().get(format!("http://127.0.0.1:{}{path}", reactor.port("prometheus"))).send().await.expect("answers");
        assert!(response.headers()["content-type"].to_str().expect("text").starts_with("text/plain"));
        response.text().await.expect("text")
    };
    let whole = read("/metrics").await;
    for line in
        ["rabbitmq_queue_messages_ready 1", "rabbitmq_queues 1", "rabbitmq_connections 0", "# TYPE rabbitmq_queue_messages gauge"]
    {
        assert!(whole.lines().any(|found| found == line), "{line} is not in\n{whole}");
    }
    let received = "rabbitmq_global_messages_received_total{protocol=\"amqp091\"} 1";
    assert!(whole.contains(received), "{whole}");
    let each = read("/metrics/per-object").await;
    assert!(each.contains("rabbitmq_queue_messages_ready{vhost=\"/\",queue=\"work\"} 1"), "{each}");
    let some = read("/metrics/detailed?family=queue_coarse_metrics&family=exchange_names").await;
    assert!(some.contains("rabbitmq_detailed_queue_messages{vhost=\"/\",queue=\"work\"} 1"), "{some}");
    assert!(some.contains("rabbitmq_cluster_exchange_name{vhost=\"/\",exchange=\"amq.topic\",type=\"topic\"} 1"));
    assert!(!some.contains("queue_consumers"));
    let foreign = http().get(format!("http://127.0.0.1:{}/metrics", reactor.port("prometheus"))).header("host", "evil.example");
    assert_eq!(foreign.send().await.expect("answers").status(), 401);
}
