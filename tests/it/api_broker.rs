//! Changing and looking at the broker over REST, beside a real AMQP client.

use crate::support::{DEADLINE, Reactor, wait_until};
use reqwest::{Client, Method};
use serde_json::{Value, json};

/// Method, path below `/api/v1`, body; returns status and JSON (null where there is none).
async fn ask(reactor: &Reactor, method: &str, path: &str, body: Value) -> (u16, Value) {
    let method: Method = method.parse().expect("a method");
    let mut request = Client::new().request(method, format!("{}/api/v1{path}", reactor.api()));
    if !body.is_null() {
        request = request.json(&body);
    }
    let response = request.send().await.expect("answers");
    let status = response.status().as_u16();
    (status, serde_json::from_str(&response.text().await.expect("a body")).unwrap_or(Value::Null))
}

async fn get(reactor: &Reactor, path: &str) -> Value {
    let (status, body) = ask(reactor, "GET", path, Value::Null).await;
    assert_eq!(status, 200, "{path}: {body}");
    body
}

#[tokio::test]
async fn a_queue_lives_its_whole_life_over_rest() {
    let reactor = Reactor::start("");
    assert_eq!(ask(&reactor, "PUT", "/queues/%2F/work", json!({"arguments": {"team": "sales"}})).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/queues/%2F/work", json!({"arguments": {"team": "sales"}})).await.0, 204);
    assert_eq!(ask(&reactor, "PUT", "/queues/%2F/work", json!({"durable": false})).await.0, 409);
    let later = ask(&reactor, "PUT", "/queues/%2F/later", json!({"arguments": {"x-queue-type": "stream"}})).await;
    assert_eq!(later.0, 501, "what is not there yet says so: {}", later.1);
    assert_eq!(ask(&reactor, "PUT", "/queues/%2F/amq.mine", json!({})).await.0, 403);
    assert_eq!(ask(&reactor, "PUT", "/queues/nowhere/work", json!({})).await.0, 404);
    assert_eq!(ask(&reactor, "PUT", "/queues/%2F/work", json!({"colour": "red"})).await.0, 422);

    assert_eq!(ask(&reactor, "PUT", "/exchanges/%2F/prices", json!({"kind": "topic"})).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/exchanges/%2F/odd", json!({"kind": "x-odd"})).await.0, 400);
    let binding = json!({"source": "prices", "queue": "work", "routing_key": "eu.#"});
    assert_eq!(ask(&reactor, "POST", "/bindings", binding).await.0, 201);
    assert_eq!(get(&reactor, "/bindings?source=prices").await[0]["routing_key"], "eu.#");

    let message = json!({
        "exchange": "prices", "routing_key": "eu.gold", "body": "1,900", "headers": {"tries": 2},
        "properties": {"content_type": "text/plain", "type": "price"}
    });
    assert_eq!(ask(&reactor, "POST", "/publish", message.clone()).await, (200, json!({"routed": true})));
    let mut lost = message.clone();
    lost["routing_key"] = "us.gold".into();
    assert_eq!(ask(&reactor, "POST", "/publish", lost).await, (200, json!({"routed": false})));
    assert_eq!(ask(&reactor, "POST", "/publish", json!({"exchange": "nowhere", "body": ""})).await.0, 404);
    assert_eq!(ask(&reactor, "POST", "/publish", json!({"encoding": "base64", "body": "?"})).await.0, 400);

    let queue = get(&reactor, "/queues/%2F/work").await;
    assert_eq!((&queue["ready"], &queue["arguments"]), (&json!(1), &json!({"team": "sales"})), "{queue}");
    assert_eq!(queue["not_on_disk"], true, "declared durable, kept in memory: said, not hidden");
    for _ in 0..2 {
        let peeked = get(&reactor, "/queues/%2F/work/messages").await;
        let first = &peeked["messages"][0];
        assert_eq!(
            (&first["body"], &first["encoding"], &first["bytes"]),
            (&json!("1,900"), &json!("utf8"), &json!(5)),
            "{first}"
        );
        assert_eq!((&first["headers"]["tries"], &first["properties"]["type"]), (&json!(2), &json!("price")), "{first}");
        assert_eq!((&first["redelivered"], &first["truncated"]), (&json!(false), &json!(false)), "looking changes nothing");
    }
    let cut = get(&reactor, "/queues/%2F/work/messages?body_bytes=2").await;
    let cut = &cut["messages"][0];
    assert_eq!((&cut["body"], &cut["truncated"], &cut["bytes"]), (&json!("1,"), &json!(true), &json!(5)));

    assert_eq!(ask(&reactor, "POST", "/queues/%2F/work/purge", Value::Null).await, (200, json!({"messages": 1})));
    assert_eq!(ask(&reactor, "DELETE", "/bindings?source=prices&queue=work&routing_key=eu.%23", Value::Null).await.0, 204);
    assert_eq!(ask(&reactor, "DELETE", "/bindings?source=prices&queue=work&routing_key=eu.%23", Value::Null).await.0, 404);
    assert_eq!(ask(&reactor, "DELETE", "/exchanges/%2F/prices", Value::Null).await.0, 204);
    assert_eq!(ask(&reactor, "DELETE", "/exchanges/%2F/reactor.call", Value::Null).await.0, 403);
    assert_eq!(ask(&reactor, "DELETE", "/queues/%2F/work", Value::Null).await.0, 204);
    assert_eq!(ask(&reactor, "DELETE", "/queues/%2F/work", Value::Null).await.0, 404);
    let changes = get(&reactor, "/changes").await;
    let newest = &changes["rows"][0];
    assert_eq!((&newest["name"], &newest["outcome"]), (&json!("work"), &json!("deleted")), "{changes}");
}

#[tokio::test]
async fn a_space_is_made_and_holds_its_own_queues() {
    let reactor = Reactor::start("");
    assert_eq!(ask(&reactor, "PUT", "/spaces/staging%2Feu", Value::Null).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/spaces/staging%2Feu", Value::Null).await.0, 204);
    assert_eq!(get(&reactor, "/spaces").await, json!(["/", "staging/eu"]));
    assert_eq!(ask(&reactor, "PUT", "/queues/staging%2Feu/work", json!({})).await.0, 201);
    assert_eq!(get(&reactor, "/queues?space=staging%2Feu").await[0]["name"], "work");
    assert_eq!(get(&reactor, "/queues?space=%2F").await, json!([]));
}

#[tokio::test]
async fn definitions_move_from_one_reactor_to_another() {
    let one = Reactor::start("");
    ask(&one, "PUT", "/queues/%2F/work", json!({})).await;
    ask(&one, "PUT", "/exchanges/%2F/prices", json!({"kind": "fanout"})).await;
    ask(&one, "POST", "/bindings", json!({"source": "prices", "queue": "work"})).await;
    let exported = get(&one, "/definitions").await;

    let other = Reactor::start("");
    let (status, plan) = ask(&other, "POST", "/definitions/plan", exported.clone()).await;
    assert_eq!(status, 200, "{plan}");
    let kinds: Vec<&str> =
        plan["changes"].as_array().expect("changes").iter().filter_map(|change| change["kind"].as_str()).collect();
    // The user is of both, under another salt.
    assert_eq!(kinds, ["user", "exchange", "queue", "binding"]);
    assert_eq!(get(&other, "/queues").await, json!([]), "a plan has no effect");
    assert_eq!(ask(&other, "POST", "/definitions/apply", exported.clone()).await.0, 200);
    assert_eq!(get(&other, "/definitions").await, exported);
    let (_, again) = ask(&other, "POST", "/definitions/plan", exported).await;
    assert_eq!(again["changes"], json!([]));

    let (status, refused) = ask(&other, "POST", "/definitions/apply", json!({"bindings": [
        {"source": "nowhere", "vhost": "/", "destination": "work", "destination_type": "queue", "routing_key": "", "arguments": {}}
    ]}))
    .await;
    assert_eq!(status, 404, "{refused}");
    assert!(refused["detail"].as_str().expect("a detail").contains("nowhere"), "{refused}");
}

#[tokio::test]
async fn a_client_connection_is_seen_and_can_be_closed() {
    let reactor = Reactor::start("");
    let connection =
        lapin::Connection::connect(&reactor.amqp_url(), lapin::ConnectionProperties::default()).await.expect("connects");
    let channel = connection.create_channel().await.expect("a channel");
    channel.queue_declare("work".into(), Default::default(), Default::default()).await.expect("a queue");
    let seen = get(&reactor, "/connections").await;
    let row = &seen[0];
    assert_eq!((&row["space"], &row["user"], &row["channels"]), (&json!("/"), &json!("guest"), &json!(1)), "{row}");
    let (status, _) = ask(&reactor, "DELETE", &format!("/connections/{}", row["id"]), Value::Null).await;
    assert_eq!(status, 202);
    wait_until("the client notices", DEADLINE, async || !connection.status().connected()).await;
    wait_until("it is gone", DEADLINE, async || get(&reactor, "/connections").await == json!([])).await;
    assert_eq!(ask(&reactor, "DELETE", "/connections/99999", Value::Null).await.0, 404);
}

#[tokio::test]
async fn messages_are_followed_in_a_space_that_was_made_anew() {
    let reactor = Reactor::start("");
    let space = |method: &'static str| {
        let url = format!("{}/api/vhosts/%2F", reactor.management());
        async move {
            let request = Client::new().request(method.parse().expect("a method"), url).basic_auth("guest", Some("guest"));
            request.json(&json!({})).send().await.expect("answers").status().as_u16()
        }
    };
    let ask_twice = async || {
        let first = get(&reactor, "/journeys").await["began"].clone();
        (first, get(&reactor, "/journeys").await["began"].clone())
    };
    assert_eq!(ask_twice().await, (json!(true), json!(false)));
    assert_eq!((space("DELETE").await, space("PUT").await), (204, 201));
    assert_eq!(ask_twice().await, (json!(true), json!(false)));
    assert_eq!(ask(&reactor, "PUT", "/queues/%2F/work", json!({})).await.0, 201);
    assert_eq!(ask(&reactor, "POST", "/publish", json!({"routing_key": "work", "body": "order 17"})).await.0, 200);
    let found = get(&reactor, "/journeys?text=order").await;
    assert_eq!((&found["kept"], &found["messages"][0]["queues"]), (&json!(1), &json!(["work"])), "{found}");
}
