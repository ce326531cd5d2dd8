//! Supervised HTTP services behind the gateway, through the real binary.

use crate::support::{DEADLINE, Reactor, http, wait_until};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Answers what it saw; `/die` ends the process, `/slow` streams with pauses.
const MIRROR: &str = r#"
import os, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Mirror(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def answer(self):
        if self.path == "/die": os._exit(1)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/slow":
            self.send_response(200); self.send_header("transfer-encoding", "chunked"); self.end_headers()
            while os.path.exists("go-" + str(getattr(self, "sent", 0))) or not hasattr(self, "sent"):
                self.sent = getattr(self, "sent", 0) + 1
                self.wfile.write(b"5\r\npart" + str(self.sent).encode() + b"\r\n"); self.wfile.flush()
                until = time.time() + 20
                while not os.path.exists("go-" + str(self.sent)) and time.time() < until: time.sleep(0.01)
                if self.sent == 2: break
            self.wfile.write(b"0\r\n\r\n"); return
        seen = "%s %s pid=%d\n%s\n%s" % (self.command, self.path, os.getpid(), str(self.headers).lower(), body.decode())
        self.send_response(200); self.send_header("content-length", str(len(seen))); self.end_headers()
        self.wfile.write(seen.encode())
    do_GET = do_POST = do_PUT = answer

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Mirror).serve_forever()
"#;

fn start(extra: &str) -> Reactor {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("mirror.py"), MIRROR).expect("written");
    let toml = format!("[services.mirror]\ncommand = [\"python3\", \"mirror.py\"]\nport = \"auto\"\n{extra}");
    Reactor::start_in(directory, &toml, &[], &[])
}

async fn get(reactor: &Reactor, path: &str) -> (u16, String) {
    let response = http().get(format!("{}{path}", reactor.gateway())).send().await.expect("an answer");
    let status = response.status().as_u16();
    (status, response.text().await.unwrap_or_default())
}

async fn until_ready(reactor: &Reactor) {
    wait_until("the service answers", DEADLINE, || async { get(reactor, "/mirror").await.0 == 200 }).await;
}

#[tokio::test]
async fn a_supervised_service_is_reached_under_its_name_and_told_its_prefix() {
    let reactor = start("");
    until_ready(&reactor).await;
    let (status, seen) = get(&reactor, "/Mirror/v2/items?x=1").await;
    assert_eq!(status, 200);
    assert!(seen.starts_with("GET /v2/items?x=1 "), "{seen}");
    for field in
        ["x-forwarded-prefix: /mirror", "x-forwarded-for: 127.0.0.1", "via: 1.1 reactor", "traceparent: 00-", "x-request-id: "]
    {
        assert!(seen.contains(field), "{field} in {seen}");
    }
    let sent = http().post(format!("{}/mirror/p", reactor.gateway())).body("a body").send().await.expect("an answer");
    assert!(sent.text().await.expect("a body").ends_with("a body"));
}

#[tokio::test]
async fn strip_prefix_false_keeps_the_prefix() {
    let reactor = start("strip_prefix = false\n");
    until_ready(&reactor).await;
    let (_, seen) = get(&reactor, "/mirror/items").await;
    assert!(seen.starts_with("GET /mirror/items ") && !seen.contains("x-forwarded-prefix"), "{seen}");
}

#[tokio::test]
async fn replicas_share_the_load() {
    let reactor = start("replicas = 2\n");
    until_ready(&reactor).await;
    let pids = std::sync::Mutex::new(std::collections::BTreeSet::new());
    wait_until("both replicas answered", DEADLINE, || async {
        let (_, seen) = get(&reactor, "/mirror").await;
        let pid = seen.split("pid=").nth(1).and_then(|rest| rest.lines().next()).map(str::to_owned);
        let mut pids = pids.lock().expect("not poisoned");
        pids.extend(pid);
        pids.len() == 2
    })
    .await;
}

#[tokio::test]
async fn a_process_that_dies_with_a_request_is_502_and_the_next_request_waits_for_its_restart() {
    let reactor = start("");
    until_ready(&reactor).await;
    assert_eq!(get(&reactor, "/mirror/die").await.0, 502);
    wait_until("a restart is not an error for long", DEADLINE, || async { get(&reactor, "/mirror").await.0 == 200 }).await;
}

#[tokio::test]
async fn a_response_is_streamed_as_it_comes() {
    let reactor = start("");
    until_ready(&reactor).await;
    let mut response = http().get(format!("{}/mirror/slow", reactor.gateway())).send().await.expect("an answer");
    assert_eq!(response.chunk().await.expect("good").expect("a part"), "part1");
    std::fs::write(reactor.directory().join("go-1"), "").expect("written");
    assert_eq!(response.chunk().await.expect("good").expect("a part"), "part2");
    std::fs::write(reactor.directory().join("go-2"), "").expect("written");
    assert_eq!(response.chunk().await.expect("a clean end"), None);
}

#[tokio::test]
async fn a_stopped_service_is_503_with_the_next_step() {
    let reactor = start("autostart = false\n");
    let (status, said) = get(&reactor, "/mirror").await;
    assert_eq!(status, 503);
    assert!(said.contains("is stopped") && said.contains("Start it in the dashboard"), "{said}");
}

#[tokio::test]
async fn own_certificate_files_are_served_over_tls_in_both_versions() {
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate =
        rcgen::CertificateParams::new(vec!["shop.test".to_owned()]).expect("a name").self_signed(&key).expect("signed");
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("chain.pem"), certificate.pem()).expect("written");
    std::fs::write(directory.path().join("key.pem"), key.serialize_pem()).expect("written");
    std::fs::write(directory.path().join("mirror.py"), MIRROR).expect("written");
    let toml = "[gateway]\ntls_certificate = \"chain.pem\"\ntls_key = \"key.pem\"\n\
        [services.mirror]\ncommand = [\"python3\", \"mirror.py\"]\nport = \"auto\"\n";
    let reactor = Reactor::start_in(directory, toml, &[], &[]);
    until_ready(&reactor).await;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.der().clone()).expect("a root");
    for (protocol, reply) in [("h2", None), ("http/1.1", Some("HTTP/1.1 200"))] {
        let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let mut config = builder.expect("versions").with_root_certificates(roots.clone()).with_no_client_auth();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        let stream = tokio::net::TcpStream::connect(("127.0.0.1", reactor.port("https"))).await.expect("connected");
        let name = "shop.test".try_into().expect("a name");
        let mut tls = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config)).connect(name, stream).await.expect("trusted");
        assert_eq!(tls.get_ref().1.alpn_protocol(), Some(protocol.as_bytes()));
        let Some(reply) = reply else { continue };
        tls.write_all(b"GET /mirror HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n\r\n").await.expect("written");
        let mut said = String::new();
        tls.read_to_string(&mut said).await.expect("an answer");
        assert!(said.starts_with(reply) && said.contains("x-forwarded-proto: https"), "{said}");
    }
}
