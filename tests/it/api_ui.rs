//! The dashboard's files, whichever the binary carries.

use crate::support::Reactor;
use reqwest::Client;

#[tokio::test]
async fn a_browser_gets_the_page_at_every_address_and_programs_do_not() {
    let reactor = Reactor::start("");
    let client = Client::new();
    for path in ["/", "/traces", "/queues/%2F/worker.orders"] {
        let response =
            client.get(format!("{}{path}", reactor.api())).header("accept", "text/html").send().await.expect("answers");
        assert_eq!(response.status(), 200, "{path}");
    }
    let page = client.get(reactor.api()).header("accept", "text/html").send().await.expect("answers");
    assert_eq!(page.headers()["cache-control"], "no-cache");
    let policy = page.headers()["content-security-policy"].to_str().expect("ascii").to_owned();
    assert!(policy.contains("default-src 'self'") && policy.contains("frame-ancestors 'none'"), "{policy}");
    let tag = page.headers()["etag"].clone();
    let text = page.text().await.expect("a page");
    assert!(text.contains("<title>reactor</title>"), "{text}");
    assert!(!text.contains("<script>"), "an inline script would be stopped by the page's own policy");
    let again =
        client.get(reactor.api()).header("accept", "text/html").header("if-none-match", tag).send().await.expect("answers");
    assert_eq!(again.status(), 304);
    assert_eq!(
        client.get(format!("{}/traces", reactor.api())).header("accept", "*/*").send().await.expect("answers").status(),
        404
    );
    assert_eq!(client.post(reactor.api()).send().await.expect("answers").status(), 405);
}

#[tokio::test]
async fn every_file_the_page_names_is_served_with_its_type() {
    let reactor = Reactor::start("");
    let page = reqwest::Client::new().get(reactor.api()).header("accept", "text/html").send().await.expect("answers");
    let text = page.text().await.expect("a page");
    let names = text
        .split(['"', '\''])
        .filter(|part| part.starts_with('/') && part.rsplit('/').next().is_some_and(|name| name.contains('.')));
    let mut count = 0;
    for name in names.filter(|name| !name.starts_with("/api/")) {
        let response = reqwest::get(format!("{}{name}", reactor.api())).await.expect("answers");
        assert_eq!(response.status(), 200, "{name}");
        let kind = response.headers()["content-type"].to_str().expect("ascii").to_owned();
        let expected = match name.rsplit('.').next() {
            Some("js") => "text/javascript",
            Some("css") => "text/css",
            Some("svg") => "image/svg+xml",
            _ => "",
        };
        assert!(kind.starts_with(expected), "{name} is {kind}");
        count += 1;
    }
    assert!(count >= 2, "the page names its script and its style");
}
