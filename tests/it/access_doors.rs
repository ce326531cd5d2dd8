//! Who is at the door: clients that show a certificate, and load balancers that say whose connections they bring.

use crate::support::{DEADLINE, Reactor, http, run};
use reactor::wire::amqp::frame::PROTOCOL_HEADER;
use reactor::wire::amqp::method::*;
use reactor::wire::amqp::{LongStr, encode};
use reactor::wire::trace;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Logs in by `mechanism`, opens `/`, and returns the frames that were answered, one a line.
async fn log_in(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), mechanism: &str, response: &[u8]) -> Vec<String> {
    let mut out = PROTOCOL_HEADER.to_vec();
    let start_ok = ConnectionStartOk { mechanism, response: LongStr(response), locale: "en_US", ..Default::default() };
    encode::method(&mut out, 0, &start_ok);
    encode::method(&mut out, 0, &ConnectionTuneOk { channel_max: 10, frame_max: 131_072, heartbeat: 0 });
    encode::method(&mut out, 0, &ConnectionOpen { virtual_host: "/", ..Default::default() });
    stream.write_all(&out).await.expect("sent");
    let (mut heard, mut lines) = (Vec::new(), Vec::new());
    let read = async {
        while !lines.iter().any(|line: &String| line.contains("connection.open-ok") || line.contains("connection.close")) {
            let mut piece = [0; 4_096];
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(count) => heard.extend_from_slice(&piece[..count]),
            }
            let mut rest = heard.as_slice();
            while let Some(line) = trace::next_line(&mut rest) {
                lines.push(line);
            }
            let used = heard.len() - rest.len();
            heard.drain(..used);
        }
    };
    tokio::time::timeout(DEADLINE, read).await.expect("an answer in time");
    lines
}

fn is_in(lines: &[String]) -> bool {
    lines.iter().any(|line| line.contains("connection.open-ok"))
}

async fn dial(reactor: &Reactor, port: &str) -> TcpStream {
    TcpStream::connect(("127.0.0.1", reactor.port(port))).await.expect("the door is open")
}

#[tokio::test]
async fn a_trusted_load_balancer_says_whose_connection_it_brings() {
    let reactor = Reactor::start("[auth]\ntoken = \"sesame\"\n[proxy]\nports = \"amqp\"\ntrusted = \"127.0.0.0/8\"\n");
    let from_afar = b"PROXY TCP4 203.0.113.7 10.0.0.2 51234 5672\r\n";
    let mut stream = dial(&reactor, "amqp").await;
    stream.write_all(from_afar).await.expect("sent");
    assert!(!is_in(&log_in(&mut stream, "PLAIN", b"\0guest\0guest").await), "guest is for this machine only");
    let mut stream = dial(&reactor, "amqp").await;
    stream.write_all(from_afar).await.expect("sent");
    assert!(is_in(&log_in(&mut stream, "PLAIN", b"\0ann\0sesame").await));
    let answer = http().get(format!("{}/api/v1/connections", reactor.api())).send().await.expect("an answer");
    let connections: Value = answer.json().await.expect("JSON");
    assert!(connections.to_string().contains("203.0.113.7:51234"), "{connections}");

    let mut two = dial(&reactor, "amqp").await;
    two.write_all(b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x7f\0\0\x01\x0a\0\0\x02\xc8\x22\x16\x28").await.expect("sent");
    assert!(is_in(&log_in(&mut two, "PLAIN", b"\0guest\0guest").await), "127.0.0.1 as version 2 says it");
    let mut none = dial(&reactor, "amqp").await;
    assert!(log_in(&mut none, "PLAIN", b"\0guest\0guest").await.is_empty(), "a header is expected");
    // A port that is not listed takes none.
    assert!(is_in(&log_in(&mut dial(&reactor, "bus").await, "PLAIN", b"\0guest\0guest").await));
}

/// An authority, and files of what it signed: `name.pem` holds certificate and key.
struct Authority {
    issuer: rcgen::CertifiedIssuer<'static, rcgen::KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key");
        Authority { issuer: rcgen::CertifiedIssuer::self_signed(params, key).expect("signed") }
    }

    fn sign(&self, name: &str) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("names");
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages.push(rcgen::ExtendedKeyUsagePurpose::ClientAuth);
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes()).expect("a key");
        (certificate.der().clone(), key)
    }
}

/// A TLS connection to `amqps`, trusting the authority's own file of the server's certificate; `None` if it is turned away.
async fn tls(
    reactor: &Reactor,
    server: &Path,
    client: Option<(CertificateDer<'static>, PrivateKeyDer<'static>)>,
) -> Option<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(server).expect("the server's certificate")).expect("a root");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.expect("versions").with_root_certificates(roots);
    let config = match client {
        Some((certificate, key)) => builder.with_client_auth_cert(vec![certificate], key).expect("a pair"),
        None => builder.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").expect("a name");
    tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, dial(reactor, "amqps").await).await.ok()
}

#[tokio::test]
async fn a_client_certificate_is_a_login() {
    let directory = tempfile::tempdir().expect("a directory");
    let (ours, theirs) = (Authority::new(), Authority::new());
    let authorities = directory.path().join("ca.pem");
    std::fs::write(&authorities, ours.issuer.pem()).expect("written");
    let key = rcgen::KeyPair::generate().expect("a key");
    let server = rcgen::CertificateParams::new(vec!["localhost".into()]).expect("names").self_signed(&key).expect("signed");
    let (chain, key_file) = (directory.path().join("server.pem"), directory.path().join("server.key"));
    std::fs::write(&chain, server.pem()).expect("written");
    std::fs::write(&key_file, key.serialize_pem()).expect("written");
    let toml = format!(
        "[auth]\nclient_certificates = \"optional\"\nclient_authorities = {authorities:?}\ncertificate_login = \"common_name\"\n\
         [gateway]\ntls_certificate = {chain:?}\ntls_key = {key_file:?}\n[users.ann]\n[users.ann.permissions.'/']\n"
    );
    let reactor = Reactor::start(&toml);
    let mut ann = tls(&reactor, &chain, Some(ours.sign("ann"))).await.expect("a good certificate");
    let lines = log_in(&mut ann, "EXTERNAL", b"").await;
    let offers = |mechanisms: &str| format!("mechanisms=<{} bytes>", mechanisms.len());
    assert!(lines[0].contains(&offers("PLAIN AMQPLAIN EXTERNAL")), "{}", lines[0]);
    assert!(is_in(&lines), "{lines:?}");
    let mut bob = tls(&reactor, &chain, Some(ours.sign("bob"))).await.expect("a good certificate");
    assert!(!is_in(&log_in(&mut bob, "EXTERNAL", b"").await), "there is no such user");
    let mut nobody = tls(&reactor, &chain, None).await.expect("none is fine too");
    let lines = log_in(&mut nobody, "EXTERNAL", b"ann").await;
    assert!(!is_in(&lines) && lines[0].contains(&offers("PLAIN AMQPLAIN")), "{lines:?}");
    if let Some(mut stranger) = tls(&reactor, &chain, Some(theirs.sign("ann"))).await {
        // TLS 1.3 tells the client only after its handshake.
        assert!(log_in(&mut stranger, "EXTERNAL", b"").await.is_empty());
    }
}

#[test]
fn files_of_certificates_that_are_wrong_are_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("reactor.toml");
    std::fs::write(&file, "[auth]\nclient_certificates = \"required\"\nclient_authorities = \"missing-ca.pem\"\n")
        .expect("written");
    let (code, _, told) = run(&["up", "--ephemeral", "--port-offset", "11000", "-c", file.to_str().expect("a path")]);
    assert_ne!(code, 0);
    assert!(told.contains("missing-ca.pem"), "{told}");
    std::fs::write(&file, "[auth]\nclient_certificates = \"required\"\n").expect("written");
    let (code, _, told) = run(&["check", file.to_str().expect("a path")]);
    assert!(code != 0 && told.contains("auth.client_authorities is empty"), "{told}");
}
