//! Who may use the control port, asked over the wire.

use crate::support::Reactor;
use reqwest::{Client, RequestBuilder, redirect};
use serde_json::Value;

fn client() -> Client {
    Client::builder().redirect(redirect::Policy::none()).build().expect("a client")
}

async fn status(request: RequestBuilder) -> u16 {
    request.send().await.expect("answers").status().as_u16()
}

#[tokio::test]
async fn foreign_names_that_resolve_here_are_refused_on_every_path() {
    let reactor = Reactor::start("");
    let client = client();
    for path in ["/", "/api/v1/overview", "/api/v1/live", "/assets/x.js"] {
        for host in ["evil.example", "localhost.evil.example:15000", "10.1.2.3:15000"] {
            let response = client.get(format!("{}{path}", reactor.api())).header("host", host).send().await.expect("answers");
            assert_eq!(response.status(), 403, "{host} {path}");
            let problem: Value = response.json().await.expect("a problem");
            assert!(problem["next"].as_str().expect("a next step").contains("localhost"), "{problem}");
        }
    }
    assert_eq!(status(client.get(format!("{}/healthz", reactor.api())).header("host", "pod.cluster.local")).await, 200);
    assert_eq!(status(client.get(format!("http://localhost:{}/api/v1/overview", reactor.port("control")))).await, 200);
}

#[tokio::test]
async fn pages_of_other_sites_can_neither_read_nor_write() {
    let reactor = Reactor::start("");
    let client = client();
    let address = format!("{}/api/v1/overview", reactor.api());
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"] {
        assert_eq!(status(client.get(&address).header("origin", origin)).await, 403, "{origin}");
        let stop = client.post(format!("{}/api/v1/services/x/stop", reactor.api())).header("origin", origin);
        assert_eq!(status(stop).await, 403, "{origin}");
        let feed = client
            .get(format!("{}/api/v1/live", reactor.api()))
            .header("origin", origin)
            .header("connection", "upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(status(feed).await, 403, "{origin}");
    }
    assert_eq!(
        status(client.get(&address).header("sec-fetch-site", "cross-site").header("sec-fetch-mode", "no-cors")).await,
        403
    );
    assert_eq!(status(client.get(&address).header("origin", reactor.api())).await, 200);
    let answer = client.get(&address).send().await.expect("answers");
    assert!(answer.headers().get("access-control-allow-origin").is_none());
    assert_eq!(answer.headers()["x-content-type-options"], "nosniff");
    assert_eq!(answer.headers()["cache-control"], "no-store");
}

#[tokio::test]
async fn where_a_login_is_required_the_token_opens_as_bearer_and_by_the_printed_address() {
    let reactor = Reactor::start_with("", &[], &[("REACTOR_AUTH", "required"), ("REACTOR_AUTH_TOKEN", "open-sesame-1234567890")]);
    let client = client();
    let address = format!("{}/api/v1/overview", reactor.api());
    let refused = client.get(&address).send().await.expect("answers");
    assert_eq!(refused.status(), 401);
    let problem: Value = refused.json().await.expect("a problem");
    assert!(problem["next"].as_str().expect("a next step").contains("Bearer"), "{problem}");
    assert_eq!(status(client.get(&address).bearer_auth("wrong")).await, 401);
    assert_eq!(status(client.get(&address).bearer_auth("open-sesame-1234567890")).await, 200);

    let page = format!("{}/traces?range=5m&token=open-sesame-1234567890", reactor.api());
    let login = client.get(page).header("accept", "text/html").send().await.expect("answers");
    assert_eq!(login.status(), 303);
    assert_eq!(login.headers()["location"], "/traces?range=5m");
    let cookie = login.headers()["set-cookie"].to_str().expect("ascii").to_owned();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite"), "{cookie}");
    let pair = cookie.split(';').next().expect("a pair");
    assert_eq!(status(client.get(&address).header("cookie", pair)).await, 200);
    assert_eq!(status(client.get(format!("{}/healthz", reactor.api()))).await, 200);
    let by_address = format!("{}/api/v1/services?space=%2F&token=open-sesame-1234567890", reactor.api());
    assert_eq!(status(client.get(by_address)).await, 200);
    let person = client.get(reactor.api()).header("accept", "text/html,*/*").send().await.expect("answers");
    assert_eq!((person.status().as_u16(), &person.headers()["www-authenticate"]), (401, &"Bearer".parse().expect("a value")));
    assert!(person.text().await.expect("a sentence").contains("printed at start"));
}
