//! Who may use the management port, and what administrators define there.

use crate::management::{ask, get, send, send_as};
use crate::support::{DEADLINE, Reactor, http, wait_until};
use serde_json::{Value, json};

#[tokio::test]
async fn a_login_is_wanted_of_everybody_and_foreign_pages_get_nothing() {
    let reactor = Reactor::start("[auth]\ntoken = 'sesame'");
    let nobody = send_as(&reactor, "GET", "/api/overview", Value::Null, None).await;
    assert_eq!(nobody.status(), 401);
    assert!(nobody.headers()["www-authenticate"].to_str().expect("text").starts_with("Basic realm="));
    let wrong = send_as(&reactor, "GET", "/api/overview", Value::Null, Some(("guest", "wrong"))).await;
    assert_eq!(wrong.status(), 401);
    assert_eq!(wrong.json::<Value>().await.expect("JSON")["reason"], "Login failed");
    let token = http().get(format!("{}/api/whoami", reactor.management())).bearer_auth("sesame").send().await.expect("answers");
    assert_eq!(token.json::<Value>().await.expect("JSON")["tags"], json!(["administrator"]));

    let as_page = |name: &'static str, value: &'static str| {
        http().get(format!("{}/api/overview", reactor.management())).basic_auth("guest", Some("guest")).header(name, value)
    };
    for (name, value) in
        [("origin", "http://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site"), ("host", "evil.example")]
    {
        let answer = as_page(name, value).send().await.expect("answers");
        assert_eq!(answer.status(), 403, "{name}: {value}");
        assert!(answer.headers().get("access-control-allow-origin").is_none());
    }
    let answer = send(&reactor, "GET", "/api/overview", Value::Null).await;
    assert_eq!((answer.status().as_u16(), answer.headers()["cache-control"].to_str().expect("text")), (200, "no-cache"));
    assert!(answer.headers().get("etag").is_none());
}

#[tokio::test]
async fn wrong_methods_paths_and_bodies_are_answered_as_rabbitmq_does() {
    let reactor = Reactor::start("");
    let wrong = send(&reactor, "DELETE", "/api/overview", Value::Null).await;
    assert_eq!(wrong.status(), 405);
    assert!(wrong.headers()["allow"].to_str().expect("text").contains("GET"));
    assert_eq!(send(&reactor, "OPTIONS", "/api/queues/%2F/x", Value::Null).await.status(), 200);
    assert_eq!(send(&reactor, "HEAD", "/api/overview", Value::Null).await.status(), 200);
    assert_eq!(ask(&reactor, "GET", "/api/nothing", Value::Null).await.1["error"], "Object Not Found");
    let body = http().put(format!("{}/api/queues/%2F/q", reactor.management())).basic_auth("guest", Some("guest")).body("{nope");
    let refused = body.send().await.expect("answers");
    assert_eq!(refused.status(), 400);
    assert_eq!(refused.json::<Value>().await.expect("JSON")["reason"], "not_json");
    let page = send_as(&reactor, "GET", "/api/", Value::Null, None).await;
    assert!(page.text().await.expect("text").contains("/api/queues/{vhost}/{name}"));
    let script = send_as(&reactor, "GET", "/cli/rabbitmqadmin", Value::Null, None).await;
    assert_eq!(script.status(), 404);
    assert!(script.text().await.expect("text").contains("cargo install rabbitmqadmin"));
}

#[tokio::test]
async fn users_have_tags_that_open_doors_and_permissions_in_spaces() {
    let reactor = Reactor::start("");
    assert_eq!(ask(&reactor, "PUT", "/api/vhosts/shop", json!({ "description": "d", "tags": "one,two" })).await.0, 201);
    assert_eq!(get(&reactor, "/api/vhosts/shop").await["tags"], json!(["one", "two"]));
    assert_eq!(ask(&reactor, "PUT", "/api/users/ann", json!({ "password": "secret", "tags": "management" })).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/api/users/ann", json!({ "password": "secret", "tags": ["management"] })).await.0, 204);
    assert_eq!(ask(&reactor, "PUT", "/api/users/bob", json!({ "password": "b" })).await.1["reason"], "tags_not_present");
    assert_eq!(ask(&reactor, "PUT", "/api/users/bob", json!({ "password": "b", "tags": "" })).await.0, 201);
    let ann = get(&reactor, "/api/users/ann").await;
    assert_eq!((&ann["tags"], &ann["hashing_algorithm"]), (&json!(["management"]), &json!("rabbit_password_hashing_sha256")));
    assert_eq!(get(&reactor, "/api/users/without-permissions").await.as_array().expect("a list").len(), 2);

    let as_ann = async |method: &str, path: &str| {
        send_as(&reactor, method, path, Value::Null, Some(("ann", "secret"))).await.status().as_u16()
    };
    assert_eq!(as_ann("GET", "/api/queues/shop").await, 401);
    let wish = json!({ "configure": "^ann", "write": ".*", "read": ".*" });
    assert_eq!(ask(&reactor, "PUT", "/api/permissions/shop/ann", wish.clone()).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/api/permissions/shop/nobody", wish).await.0, 400);
    assert_eq!(get(&reactor, "/api/permissions/shop/ann").await["configure"], "^ann");
    assert_eq!(as_ann("GET", "/api/queues/shop").await, 200);
    assert_eq!(as_ann("GET", "/api/queues/%2F").await, 401);
    assert_eq!((as_ann("PUT", "/api/queues/shop/ann.q").await, as_ann("PUT", "/api/queues/shop/other").await), (201, 401));
    assert_eq!(
        (as_ann("GET", "/api/users").await, as_ann("GET", "/api/nodes").await, as_ann("GET", "/api/whoami").await),
        (401, 401, 200)
    );
    let bob = send_as(&reactor, "GET", "/api/whoami", Value::Null, Some(("bob", "b"))).await;
    assert_eq!(bob.json::<Value>().await.expect("JSON")["reason"], "Not management user");

    assert_eq!(ask(&reactor, "POST", "/api/users/bulk-delete", json!({ "users": ["bob"] })).await.0, 204);
    assert_eq!(ask(&reactor, "DELETE", "/api/users/bob", Value::Null).await.0, 404);
    assert_eq!(ask(&reactor, "POST", "/api/vhosts/shop/deletion/protection", Value::Null).await.0, 204);
    assert_eq!(ask(&reactor, "DELETE", "/api/vhosts/shop", Value::Null).await.0, 412);
    assert_eq!(ask(&reactor, "DELETE", "/api/vhosts/shop/deletion/protection", Value::Null).await.0, 204);
    assert_eq!(ask(&reactor, "DELETE", "/api/vhosts/shop", Value::Null).await.0, 204);
}

#[tokio::test]
async fn a_policy_whose_pattern_runs_away_is_put_and_named_and_the_next_one_holds() {
    let reactor = Reactor::start("");
    let long = format!("{}b", "a".repeat(200));
    assert_eq!(ask(&reactor, "PUT", &format!("/api/queues/%2F/{long}"), json!({})).await.0, 201);
    for (name, pattern, priority) in [("good", "^a", 0), ("bad", "^(a|aa)+(?!x)$", 1)] {
        let policy = json!({ "pattern": pattern, "definition": { "max-length": 5 }, "priority": priority });
        assert_eq!(ask(&reactor, "PUT", &format!("/api/policies/%2F/{name}"), policy).await.0, 201);
    }
    assert_eq!(get(&reactor, &format!("/api/queues/%2F/{long}")).await["policy"], "good");
    wait_until("the policy is named", DEADLINE, || async { reactor.stderr().contains("the pattern of policy bad in space /") })
        .await;
}

#[tokio::test]
async fn policies_limits_and_parameters_are_kept_and_policies_show_on_queues() {
    let reactor = Reactor::start("");
    let policy = json!({ "pattern": "^w", "definition": { "max-length": 5 }, "apply-to": "classic_queues", "priority": 1 });
    assert_eq!(ask(&reactor, "PUT", "/api/policies/%2F/short", policy.clone()).await.0, 201);
    assert_eq!(ask(&reactor, "PUT", "/api/policies/%2F/short", policy).await.0, 204);
    let operator = json!({ "pattern": "^w", "definition": { "max-length": 3 }, "apply-to": "queues", "priority": 1 });
    assert_eq!(ask(&reactor, "PUT", "/api/operator-policies/%2F/cap", operator).await.0, 201);
    for wrong in [
        json!({ "pattern": "^w", "definition": { "bogus": 1 } }),
        json!({ "pattern": "[", "definition": { "max-length": 1 } }),
        json!({ "pattern": "x", "definition": { "max-length": 1 }, "apply-to": "bogus" }),
        json!({ "pattern": "x" }),
    ] {
        assert_eq!(ask(&reactor, "PUT", "/api/policies/%2F/wrong", wrong.clone()).await.0, 400, "{wrong}");
    }
    assert_eq!(ask(&reactor, "PUT", "/api/queues/%2F/work", json!({})).await.0, 201);
    let queue = get(&reactor, "/api/queues/%2F/work").await;
    assert_eq!((&queue["policy"], &queue["operator_policy"]), (&json!("short"), &json!("cap")));
    assert_eq!(queue["effective_policy_definition"], json!({ "max-length": 3 }), "the lower limit holds");

    assert_eq!(ask(&reactor, "PUT", "/api/vhost-limits/%2F/max-queues", json!({ "value": 100 })).await.0, 204);
    assert_eq!(get(&reactor, "/api/vhost-limits").await, json!([{ "vhost": "/", "value": { "max-queues": 100 } }]));
    assert_eq!(ask(&reactor, "PUT", "/api/vhost-limits/%2F/max-queues", json!({ "value": "x" })).await.0, 400);
    assert_eq!(ask(&reactor, "DELETE", "/api/vhost-limits/%2F/max-queues", Value::Null).await.0, 204);
    assert_eq!(ask(&reactor, "PUT", "/api/user-limits/guest/max-channels", json!({ "value": 9 })).await.0, 204);
    assert_eq!(get(&reactor, "/api/user-limits/guest").await[0]["value"], json!({ "max-channels": 9 }));
    assert_eq!(ask(&reactor, "PUT", "/api/global-parameters/mine", json!({ "name": "mine", "value": { "a": 1 } })).await.0, 201);
    assert_eq!(get(&reactor, "/api/global-parameters/mine").await["value"], json!({ "a": 1 }));
    assert_eq!(ask(&reactor, "PUT", "/api/cluster-name", json!({ "name": "rabbit@mine" })).await.0, 204);
    assert_eq!(get(&reactor, "/api/cluster-name").await["name"], "rabbit@mine");
    assert_eq!(get(&reactor, "/api/overview").await["cluster_name"], "rabbit@mine");
}

#[tokio::test]
async fn definitions_go_out_and_come_in_again() {
    let reactor = Reactor::start("");
    for (path, body) in [
        ("/api/vhosts/shop", json!({})),
        ("/api/users/ann", json!({ "password": "secret", "tags": "management" })),
        ("/api/permissions/shop/ann", json!({ "configure": ".*", "write": ".*", "read": ".*" })),
        ("/api/queues/shop/work", json!({})),
        ("/api/exchanges/shop/prices", json!({ "type": "topic" })),
        ("/api/policies/shop/short", json!({ "pattern": "^w", "definition": { "max-length": 5 } })),
    ] {
        assert_eq!(ask(&reactor, "PUT", path, body).await.0, 201, "{path}");
    }
    assert_eq!(ask(&reactor, "POST", "/api/bindings/shop/e/prices/q/work", json!({ "routing_key": "#" })).await.0, 201);
    let exported = get(&reactor, "/api/definitions").await;
    assert_eq!((&exported["rabbit_version"], &exported["queues"][0]["name"]), (&json!("3.13.7"), &json!("work")));
    let of_shop = get(&reactor, "/api/definitions/shop").await;
    assert!(of_shop.get("users").is_none() && of_shop["queues"][0].get("vhost").is_none(), "{of_shop}");
    drop(reactor);

    let other = Reactor::start("");
    assert_eq!(ask(&other, "POST", "/api/definitions", exported.clone()).await, (204, Value::Null));
    assert_eq!(ask(&other, "POST", "/api/definitions", exported).await.0, 204, "twice is once");
    assert_eq!(get(&other, "/api/bindings/shop/e/prices/q/work").await[0]["routing_key"], "#");
    assert_eq!(get(&other, "/api/policies/shop").await[0]["name"], "short");
    let ann = send_as(&other, "GET", "/api/queues/shop", Value::Null, Some(("ann", "secret"))).await;
    assert_eq!(ann.status(), 200, "the password went with it");
    assert_eq!(ask(&other, "PUT", "/api/vhosts/copy", json!({})).await.0, 201);
    assert_eq!(ask(&other, "POST", "/api/definitions/copy", of_shop).await.0, 204);
    assert_eq!(get(&other, "/api/queues/copy/work").await["vhost"], "copy");
    let quorum = json!({
        "vhosts": [{ "name": "safe", "metadata": { "default_queue_type": "quorum" } }],
        "queues": [{ "vhost": "safe", "name": "imported" }, { "vhost": "safe", "name": "passing", "durable": false }],
    });
    for what in ["made", "there already"] {
        assert_eq!(ask(&other, "POST", "/api/definitions", quorum.clone()).await, (204, Value::Null), "{what}");
    }
    assert_eq!(ask(&other, "PUT", "/api/queues/safe/put", json!({})).await.0, 201);
    assert_eq!(ask(&other, "PUT", "/api/queues/safe/put", json!({})).await.0, 204);
    for (name, kind) in [("imported", "quorum"), ("passing", "classic"), ("put", "quorum")] {
        assert_eq!(get(&other, &format!("/api/queues/safe/{name}")).await["type"], kind, "{name}");
    }
    let nowhere = json!({ "queues": [{ "vhost": "nowhere", "name": "x" }] });
    assert_eq!(ask(&other, "POST", "/api/definitions", nowhere).await.0, 400);
}
