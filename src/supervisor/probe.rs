//! Asks an instance whether it answers: one TCP connection, or one `GET`. IPv4 loopback first, then IPv6, since some runtimes
//! listen on `localhost` as `::1` only.

use super::core::Readiness;
use crate::kernel::dial;
use crate::model::service_spec::{Port, Probe, ServiceSpec};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::header::{HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Tcp { port: u16 },
    Http { port: u16, path: String },
}

impl Target {
    pub fn port(&self) -> u16 {
        match self {
            Target::Tcp { port } | Target::Http { port, .. } => *port,
        }
    }
}

/// What a probe means for being ready.
pub fn readiness(spec: &ServiceSpec) -> Readiness {
    match (&spec.ready.probe, spec.port) {
        (Probe::Implied, Port::Off) => Readiness::Lives,
        (Probe::Implied, Port::Offered) => Readiness::LivesAndMayAnswer,
        (Probe::Implied, Port::Auto | Port::Fixed(_)) => Readiness::Answers,
        (Probe::Tcp { .. } | Probe::Http { .. } | Probe::Attached, _) => Readiness::Answers,
    }
}

/// Where it answered, or why not.
pub async fn ask(target: &Target, timeout: Duration) -> Result<SocketAddr, Arc<str>> {
    let answer = tokio::time::timeout(timeout, ask_once(target, timeout)).await;
    answer.unwrap_or_else(|_| Err(format!("port {} did not answer within {} ms", target.port(), timeout.as_millis()).into()))
}

async fn ask_once(target: &Target, timeout: Duration) -> Result<SocketAddr, Arc<str>> {
    let (stream, address) = connect(target.port(), timeout).await?;
    match target {
        Target::Tcp { .. } => Ok(address),
        Target::Http { path, .. } => get(stream, address, path).await.map(|()| address),
    }
}

async fn connect(port: u16, timeout: Duration) -> Result<(TcpStream, SocketAddr), Arc<str>> {
    let mut last_error = None;
    for ip in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let address = SocketAddr::new(ip, port);
        match dial::tcp(address, timeout).await {
            Ok(stream) => return Ok((stream, address)),
            Err(error) => last_error = last_error.or(Some(error)),
        }
    }
    match last_error {
        Some(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            Err(format!("nothing listens on port {port}").into())
        }
        Some(error) => Err(format!("port {port}: {error}").into()),
        None => unreachable!("two addresses were tried"),
    }
}

async fn get(stream: TcpStream, address: SocketAddr, path: &str) -> Result<(), Arc<str>> {
    let fault = |error: &dyn std::fmt::Display| Arc::<str>::from(format!("GET {path} on {address}: {error}"));
    let request = hyper::Request::get(path)
        .header(HOST, format!("localhost:{}", address.port()))
        .header(USER_AGENT, concat!("reactor-probe/", env!("CARGO_PKG_VERSION")))
        .body(Empty::<Bytes>::new())
        .map_err(|error| fault(&error))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| fault(&error))?;
    let answer = sender.send_request(request);
    tokio::pin!(answer);
    let response = tokio::select! {
        response = &mut answer => response,
        // The connection may end in the very step that brought the answer.
        _ = connection => answer.await,
    };
    let response = response.map_err(|error| fault(&error))?;
    match response.status().as_u16() {
        200..=399 => Ok(()),
        status => Err(fault(&format_args!("answered {status}; ready is 200 to 399"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    const TIMEOUT: Duration = Duration::from_secs(5);

    /// Answers every connection with `reply` and returns its port.
    async fn server(reply: &'static str) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = [0; 1024];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(reply.as_bytes()).await;
            }
        });
        port
    }

    #[tokio::test]
    async fn a_good_status_is_ready_and_a_bad_one_says_which() {
        let port = server("HTTP/1.1 204 No Content\r\n\r\n").await;
        let http = |port| Target::Http { port, path: "/healthz".into() };
        assert_eq!(ask(&http(port), TIMEOUT).await.map(|address| address.port()), Ok(port));
        let port = server("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await;
        let why = ask(&http(port), TIMEOUT).await.expect_err("not ready");
        assert!(why.contains("GET /healthz") && why.contains("answered 503"), "{why}");
        let port = server("what?").await;
        assert!(ask(&http(port), TIMEOUT).await.is_err());
    }

    #[tokio::test]
    async fn a_closed_port_is_said_in_words() {
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
            listener.local_addr().expect("bound").port()
        };
        let why = ask(&Target::Tcp { port }, TIMEOUT).await.expect_err("closed");
        assert_eq!(why.as_ref(), format!("nothing listens on port {port}"));
    }

    #[tokio::test]
    async fn one_that_accepts_and_says_nothing_times_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        assert!(ask(&Target::Tcp { port }, TIMEOUT).await.is_ok());
        let why = ask(&Target::Http { port, path: "/".into() }, Duration::from_millis(50)).await.expect_err("silent");
        assert!(why.contains("within 50 ms"), "{why}");
    }
}
