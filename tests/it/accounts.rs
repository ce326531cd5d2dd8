//! Users, permissions, spaces, limits and policies, as clients on the wire meet them.

use crate::support::{DEADLINE, Reactor, http, wait_until};
use lapin::options::*;
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties};
use serde_json::{Value, json};

const ANN: &str = "[users.ann]\npassword = 'pass'\n[users.ann.permissions.'/']\nconfigure = '^ann'\nread = '^ann'\n\
    write = '^(ann|amq\\.default|reactor\\.event)'\n";

async fn connect(reactor: &Reactor, user: &str, space: &str) -> Result<Connection, String> {
    let url = format!("amqp://{user}:pass@127.0.0.1:{}/{space}", reactor.port("amqp"));
    Connection::connect(&url, ConnectionProperties::default()).await.map_err(|error| error.to_string())
}

async fn channel(reactor: &Reactor, user: &str) -> Channel {
    let connection = connect(reactor, user, "%2f").await.expect("connected");
    connection.create_channel().await.expect("a channel")
}

/// Applies a definitions document.
async fn define(reactor: &Reactor, document: Value) {
    let answer =
        http().post(format!("{}/api/v1/definitions/apply", reactor.api())).json(&document).send().await.expect("an answer");
    let status = answer.status();
    assert!(status.is_success(), "{status}: {}", answer.text().await.unwrap_or_default());
}

async fn declare(channel: &Channel, queue: &str) -> Result<(), String> {
    let declared = channel.queue_declare(queue.into(), QueueDeclareOptions::default(), FieldTable::default()).await;
    declared.map(drop).map_err(|error| error.to_string())
}

/// With confirms on: whether the broker took it.
async fn publish(channel: &Channel, exchange: &str, key: &str) -> Result<(), String> {
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    let said = channel.basic_publish(exchange.into(), key.into(), options, b"x", BasicProperties::default()).await;
    match said.map_err(|error| error.to_string())?.await {
        Ok(Confirmation::Ack(None)) => Ok(()),
        Ok(Confirmation::Ack(Some(returned))) => Err(returned.reply_text.to_string()),
        Ok(other) => Err(format!("{other:?}")),
        Err(error) => Err(error.to_string()),
    }
}

fn says(result: Result<(), String>, text: &str) {
    let error = result.expect_err("refused");
    assert!(error.contains(text), "{text}\nnot in\n{error}");
}

#[tokio::test]
async fn a_user_does_what_its_permissions_say_and_changes_take_effect_at_once() {
    let reactor = Reactor::start(ANN);
    let open = channel(&reactor, "ann").await;
    declare(&open, "ann.q").await.expect("its own");
    open.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    publish(&open, "", "ann.q").await.expect("allowed");
    says(
        declare(&channel(&reactor, "ann").await, "other").await,
        "configure access to queue 'other' in vhost '/' refused for user 'ann'",
    );
    let get = channel(&reactor, "ann").await.basic_get("other".into(), BasicGetOptions::default()).await;
    says(get.map(drop).map_err(|error| error.to_string()), "read access to queue 'other' in vhost '/' refused for user 'ann'");
    let elsewhere = channel(&reactor, "ann").await;
    elsewhere.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    says(publish(&elsewhere, "amq.topic", "x").await, "write access to exchange 'amq.topic' in vhost '/' refused for user 'ann'");

    // The route is known to the connection by now; it counts no more once the permission is gone.
    publish(&open, "", "ann.q").await.expect("still allowed");
    let permission = json!({"user": "ann", "vhost": "/", "configure": ".*", "write": "^$", "read": ".*"});
    define(&reactor, json!({"permissions": [permission]})).await;
    says(publish(&open, "", "ann.q").await, "write access to exchange 'amq.default' in vhost '/' refused for user 'ann'");
    declare(&channel(&reactor, "ann").await, "other").await.expect("allowed by now");
}

#[tokio::test]
async fn topic_permissions_go_by_the_routing_key() {
    let topic = "[[users.ann.topic_permissions]]\nexchange = 'reactor.event'\nwrite = '^{username}\\.'\n";
    let reactor = Reactor::start(&format!("{ANN}{topic}"));
    let channel = channel(&reactor, "ann").await;
    let options = BasicPublishOptions::default();
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    let sent = channel.basic_publish("reactor.event".into(), "ann.born".into(), options, b"", BasicProperties::default()).await;
    assert!(matches!(sent.expect("sent").await, Ok(Confirmation::Ack(_))));
    says(
        publish(&channel, "reactor.event", "bob.born").await,
        "write access to topic 'bob.born' in exchange 'reactor.event' in vhost '/' refused for user 'ann'",
    );
}

#[tokio::test]
async fn a_space_is_entered_with_permissions_there_and_a_login_needs_its_password() {
    let reactor = Reactor::start(&format!("{ANN}[spaces.staging]\n"));
    let refused = async |user: &str, space: &str| connect(&reactor, user, space).await.map(drop);
    says(refused("ann", "staging").await, "access to vhost 'staging' refused for user 'ann'");
    says(refused("ann", "nowhere").await, "vhost nowhere not found");
    let said = "Login was refused using authentication mechanism PLAIN. For details see the broker logfile.";
    says(refused("bob", "%2f").await, said);
    let url = format!("amqp://ann:hush-hush@127.0.0.1:{}", reactor.port("amqp"));
    assert!(Connection::connect(&url, ConnectionProperties::default()).await.is_err());
    assert!(reactor.stderr().contains("login of user 'ann'") && !reactor.stderr().contains("hush"), "passwords are never logged");
}

#[tokio::test]
async fn a_deleted_space_closes_its_connections_and_is_gone() {
    let reactor =
        Reactor::start("[spaces.staging.queues.work]\n[users.ann]\npassword = 'pass'\n[users.ann.permissions.staging]\n");
    let connection = connect(&reactor, "ann", "staging").await.expect("connected");
    let channel = connection.create_channel().await.expect("a channel");
    declare(&channel, "mine").await.expect("declared");
    let url = format!("{}/api/v1/spaces/staging", reactor.api());
    assert_eq!(http().delete(&url).send().await.expect("an answer").status(), 204);
    wait_until("the connection is closed", DEADLINE, async || !connection.status().connected()).await;
    says(declare(&channel, "mine").await, "");
    says(connect(&reactor, "ann", "staging").await.map(drop), "vhost staging not found");
    assert_eq!(http().delete(&url).send().await.expect("an answer").status(), 404);
    // Made again, it is empty, and who had permissions has none.
    assert_eq!(http().put(&url).send().await.expect("an answer").status(), 201);
    says(connect(&reactor, "ann", "staging").await.map(drop), "access to vhost 'staging' refused for user 'ann'");
}

#[tokio::test]
async fn limits_of_spaces_and_users_hold() {
    let toml = "[spaces.small]\nmax_queues = 1\nmax_connections = 2\n[users.ann]\npassword = 'pass'\nmax_connections = 3\n\
        max_channels = 2\n[users.ann.permissions.small]\n[users.ann.permissions.'/']\n";
    let reactor = Reactor::start(toml);
    let first = connect(&reactor, "ann", "small").await.expect("the first");
    let _second = connect(&reactor, "ann", "small").await.expect("the second");
    says(
        connect(&reactor, "ann", "small").await.map(drop),
        "access to vhost 'small' refused for user 'ann': connection limit (2) is reached",
    );
    let third = connect(&reactor, "ann", "%2f").await.expect("the third of the user");
    says(
        connect(&reactor, "ann", "%2f").await.map(drop),
        "connection refused for user 'ann': user connection limit (3) is reached",
    );
    let channel = first.create_channel().await.expect("a channel");
    declare(&channel, "one").await.expect("the first queue");
    says(declare(&channel, "two").await, "cannot declare queue 'two': queue limit in vhost 'small' (1) is reached");
    let mut opened = Vec::new();
    let error = loop {
        match third.create_channel().await {
            Ok(channel) if channel.status().connected() && opened.len() < 10 => opened.push(channel),
            Ok(_) => continue,
            Err(error) => break error.to_string(),
        }
    };
    assert!(opened.len() <= 3, "{} channels were opened: {error}", opened.len());
    wait_until("the connection is closed", DEADLINE, async || !third.status().connected()).await;
}

#[tokio::test]
async fn limits_and_topic_permissions_are_set_changed_and_cleared_over_the_api() {
    let reactor = Reactor::start("[users.ann]\npassword = 'pass'\n[users.ann.permissions.'/']\n");
    let api = format!("{}/api/v1", reactor.api());
    let put = async |path: &str, body: serde_json::Value| {
        http().put(format!("{api}/{path}")).json(&body).send().await.expect("an answer").status().as_u16()
    };
    let get = async |path: &str| -> serde_json::Value {
        http().get(format!("{api}/{path}")).send().await.expect("an answer").json().await.expect("JSON")
    };
    let most = async || {
        let users = get("users").await;
        let ann = users.as_array().expect("a list").iter().find(|user| user["name"] == "ann").expect("ann").clone();
        (ann["max_connections"].as_i64(), ann["max_channels"].as_i64(), ann["has_password"] == true)
    };
    assert_eq!(put("users/ann", json!({ "limits": { "max_connections": 0, "max_channels": 5 } })).await, 204);
    assert_eq!(most().await, (Some(0), Some(5), true));
    says(connect(&reactor, "ann", "%2f").await.map(drop), "user connection limit (0) is reached");
    assert_eq!(put("users/ann", json!({ "tags": ["monitoring"] })).await, 204);
    assert_eq!(most().await, (Some(0), Some(5), true), "not said, not changed");
    assert_eq!(put("users/ann", json!({ "limits": {} })).await, 204);
    assert_eq!(most().await, (None, None, true));
    connect(&reactor, "ann", "%2f").await.expect("let in again");

    assert_eq!(put("spaces/%2F/limits", json!({ "max_queues": 7 })).await, 204);
    assert_eq!(get("spaces/%2F").await["max_queues"], 7);
    assert_eq!(put("spaces/%2F/limits", json!({ "max_connections": 3 })).await, 204);
    let space = get("spaces/%2F").await;
    assert_eq!((&space["max_connections"], &space["max_queues"]), (&json!(3), &json!(null)));
    assert_eq!(put("spaces/nowhere/limits", json!({})).await, 404);

    let path = "topic-permissions/%2F/ann?exchange=amq.topic";
    assert_eq!(put(path, json!({ "write": "^a", "read": ".*" })).await, 201);
    assert_eq!(put(path, json!({ "write": "^b", "read": ".*" })).await, 204);
    let row = json!({ "user": "ann", "space": "/", "exchange": "amq.topic", "write": "^b", "read": ".*" });
    assert_eq!(get("topic-permissions").await, json!([row]));
    for status in [204, 404] {
        let answer = http().delete(format!("{api}/{path}")).send().await.expect("an answer");
        assert_eq!(answer.status(), status);
    }
}

#[tokio::test]
async fn definitions_of_the_file_are_exported_and_mistakes_in_it_are_told() {
    let policy = "[spaces.'/'.policies.short]\npattern = '^tmp'\ndefinition = { max-length = 5 }\n";
    let reactor = Reactor::start(&format!("{ANN}{policy}"));
    let export = http().get(format!("{}/api/v1/definitions", reactor.api())).send().await.expect("an answer");
    let export: Value = export.json().await.expect("JSON");
    let named = |list: &str| export[list].as_array().expect("a list").iter().map(|it| it["name"].clone()).collect::<Vec<_>>();
    assert_eq!(named("users"), ["ann", "guest"]);
    assert_eq!(named("policies"), ["short"]);
    assert_eq!(export["policies"][0]["definition"], json!({"max-length": 5}));
    // What was exported is what is there.
    let answer = http().post(format!("{}/api/v1/definitions/plan", reactor.api())).json(&export).send().await.expect("an answer");
    let plan: Value = answer.json().await.expect("JSON");
    assert_eq!((&plan["changes"], &plan["refusals"]), (&json!([]), &json!([])));

    let file = reactor.directory().join("wrong.toml");
    let wrong = "[users.ann]\npasword = 'x'\n[users.ann.permissions.'/']\nread = '('\n[spaces.'/'.policies.p]\n\
        definition = { max-lenght = 1 }\n[proxy]\nports = 'amqp'\n";
    std::fs::write(&file, wrong).expect("written");
    let (code, _, told) = crate::support::run(&["check", file.to_str().expect("a path")]);
    assert_ne!(code, 0);
    for part in [
        "users.ann.pasword is not a known key",
        "read is no regular expression",
        "[max-lenght] are not recognised policy settings",
        "proxy.trusted is empty",
    ] {
        assert!(told.contains(part), "{part}\nnot in\n{told}");
    }
}

#[tokio::test]
async fn a_policy_gives_an_exchange_its_alternate_at_once() {
    let reactor = Reactor::start(&ANN.replace("'^ann'", "'.*'").replace("write = '", "write = '.*|"));
    let channel = channel(&reactor, "ann").await;
    declare(&channel, "lost").await.expect("declared");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    says(publish(&channel, "amq.direct", "nowhere").await, "NO_ROUTE");
    let bound =
        channel.queue_bind("lost".into(), "amq.fanout".into(), "".into(), QueueBindOptions::default(), FieldTable::default());
    bound.await.expect("bound");
    let policy = json!({"vhost": "/", "name": "ae", "pattern": "^amq.direct$", "apply-to": "exchanges",
        "definition": {"alternate-exchange": "amq.fanout"}});
    define(&reactor, json!({"policies": [policy]})).await;
    publish(&channel, "amq.direct", "nowhere").await.expect("taken by the alternate");
}

#[tokio::test]
async fn a_policy_bounds_queues_that_exist_and_an_operator_lowers_it() {
    let reactor = Reactor::start(ANN);
    let channel = channel(&reactor, "ann").await;
    declare(&channel, "ann.q").await.expect("declared");
    channel.confirm_select(ConfirmSelectOptions::default()).await.expect("confirms");
    for _ in 0..5 {
        publish(&channel, "", "ann.q").await.expect("taken");
    }
    let passive = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let count = async || {
        let declared = channel.queue_declare("ann.q".into(), passive, FieldTable::default()).await;
        declared.expect("there").message_count()
    };
    assert_eq!(count().await, 5);
    let policy = json!({"vhost": "/", "name": "short", "pattern": "^(?!amq\\.)", "apply-to": "queues",
        "definition": {"max-length": 3}});
    define(&reactor, json!({"policies": [policy]})).await;
    assert_eq!(count().await, 3);
    let value = json!({"pattern": "^ann", "apply-to": "classic_queues", "definition": {"max-length": 1}, "priority": 1});
    let operator = json!({"vhost": "/", "component": "operator_policy", "name": "least", "value": value});
    define(&reactor, json!({"parameters": [operator]})).await;
    assert_eq!(count().await, 1);
    publish(&channel, "", "ann.q").await.expect("taken");
    assert_eq!(count().await, 1);
}
