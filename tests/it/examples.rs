//! The examples in `assets/examples`, run from their own `reactor.toml`.

use crate::snippets::until_answer;
use crate::support::{DEADLINE, Reactor, http, repository, wait_until};
use serde_json::{Value, json};

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

#[tokio::test]
async fn the_hello_example_answers_as_the_system_we_follow() {
    let reactor = Reactor::start(&example("hello", &[]));
    until_answer(&reactor, "/HelloWorld/Greeter/SayHello", "Hello World").await;
}

#[tokio::test]
async fn the_math_example_computes_and_refuses_what_it_cannot() {
    let reactor = Reactor::start(&example("math", &[]));
    until_answer(&reactor, "/math/add?a=1&b=2", r#"{"result":3}"#).await;
    until_answer(&reactor, "/math/factor?n=360", r#"{"result":[2,2,2,3,3,5]}"#).await;
    for (path, status) in [("/math/divide?a=1&b=0", 400), ("/math/add?a=one", 400), ("/math/solve", 404)] {
        let response = http().get(format!("{}{path}", reactor.gateway())).send().await.expect("an answer");
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{path}");
    }
}

#[tokio::test]
async fn an_order_goes_through_every_service_of_the_shop() {
    let reactor = Reactor::start(&example("shop", &[("SHOP_TROUBLE", "0"), ("SHOP_RATE", "2")]));
    let services = || async {
        let answer = http().get(format!("{}/api/v1/services", reactor.api())).send().await.expect("an answer");
        answer.json::<Value>().await.expect("JSON")
    };
    wait_until("every service is ready", DEADLINE, || async {
        let services = services().await;
        let shop: Vec<&Value> = services.as_array().into_iter().flatten().filter(|service| service["owned"] == true).collect();
        shop.len() == 6 && shop.iter().all(|service| service["state"] == "ready")
    })
    .await;

    let products = http().get(format!("{}/catalog/products", reactor.gateway())).send().await.expect("an answer");
    assert_eq!(products.json::<Vec<Value>>().await.expect("JSON").len(), 7);
    let traceparent = format!("00-{TRACE_ID}-00f067aa0ba902b7-01");
    let order =
        |body: Value| http().post(format!("{}/orders", reactor.gateway())).header("traceparent", &traceparent).json(&body).send();
    let placed = order(json!({"product": "teapot", "quantity": 2})).await.expect("an answer");
    assert_eq!(placed.status(), 201);
    let placed: Value = placed.json().await.expect("JSON");
    assert_eq!(placed["total_cents"], 9800);
    assert!(placed["receipt"].is_string(), "it was paid");
    assert_eq!(order(json!({"product": "perpetuum", "quantity": 1})).await.expect("an answer").status(), 404);
    assert_eq!(order(json!({"product": "cup"})).await.expect("an answer").status(), 400);
    let payments = http().post(format!("{}/payments/charge", reactor.gateway())).send().await.expect("an answer");
    assert_eq!(payments.status(), 404, "payments is for the bus only");

    let id = placed["id"].as_str().expect("an id");
    wait_until("both letters about the order were sent", DEADLINE, || async {
        let url = format!("{}/api/v1/services/mailer/console", reactor.api());
        let console = http().get(url).send().await.expect("an answer").text().await.expect("a body");
        console.contains(&format!("Thank you for order {id}")) && console.contains(&format!("Order {id} is on its way"))
    })
    .await;
    wait_until("one trace holds the whole order, seen by reactor and by the SDK of payments", DEADLINE, || async {
        let answer = http().get(format!("{}/api/v1/traces/{TRACE_ID}", reactor.api())).send().await.expect("an answer");
        let trace: Value = answer.json().await.expect("JSON");
        let spans = trace["spans"].as_array().cloned().unwrap_or_default();
        let seen = |service: &str, own: bool| spans.iter().any(|span| span["service"] == service && span["own"] == own);
        ["gateway", "orders", "payments", "worker", "mailer"].iter().all(|service| seen(service, true)) && seen("payments", false)
    })
    .await;
    let status = reactor.stop();
    assert!(status.success(), "{status:?}");
}

/// An example's own `reactor.toml`, pointed at its directory and at the libraries of the tests.
fn example(name: &str, variables: &[(&str, &str)]) -> String {
    let directory = repository("assets/examples").join(name);
    let file = std::fs::read_to_string(directory.join("reactor.toml")).expect("it is there");
    let mut config: toml::Table = file.parse().expect("TOML");
    let services = config["services"].as_table_mut().expect("services");
    for (_, service) in services.iter_mut() {
        let service = service.as_table_mut().expect("a table");
        service.insert("cwd".into(), directory.display().to_string().into());
        let env = service.entry("env").or_insert_with(|| toml::Table::new().into()).as_table_mut().expect("a table");
        env.insert("PYTHON".into(), repository("target/venv/bin/python").display().to_string().into());
        env.insert("NODE_PATH".into(), repository("target/clients/node_modules").display().to_string().into());
        env.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())));
    }
    config.to_string()
}
