//! A running reactor as the other commands see it: its REST API and its live feed.

use crate::kernel::dial;
use crate::node::config;
use anyhow::{Context, anyhow, bail};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

const DIAL_LIMIT: Duration = Duration::from_secs(3);
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
/// Largest answer read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Where a reactor's control port is, and what it takes to be let in.
#[derive(Clone, Debug)]
pub struct Remote {
    /// `localhost:15000`
    pub authority: String,
    token: Option<String>,
}

/// Nothing listens there: exit code 3.
#[derive(Debug)]
pub struct NobodyThere(String);

impl fmt::Display for NobodyThere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no reactor answers at http://{}. Start one with `reactor`, or name another with --url.", self.0)
    }
}

impl std::error::Error for NobodyThere {}

impl Remote {
    /// By `--url` (the dashboard's address, token and all), else the control port of the configuration that `up` would use.
    pub fn find(url: Option<&str>, file: Option<&Path>, port_offset: Option<u16>) -> anyhow::Result<Remote> {
        if let Some(url) = url {
            return Remote::parse(url);
        }
        let flags = config::Flags { port_offset, ..config::Flags::default() };
        let resolved = config::gather(file, flags).and_then(|inputs| config::resolve(&inputs));
        let config =
            resolved.map_err(|problems| anyhow!(problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")))?.config;
        let host = crate::node::url_host(&config);
        use crate::model::config::{PortName, PortSetting};
        match config.port(PortName::Control) {
            PortSetting::Fixed(port) => Ok(Remote { authority: format!("{host}:{port}"), token: config.access.token }),
            PortSetting::Ephemeral => bail!("ports.control is 0, any free port. Name the dashboard's address with --url."),
            PortSetting::Off => bail!("ports.control is off, so there is nothing to ask. Set it to a port."),
        }
    }

    fn parse(url: &str) -> anyhow::Result<Remote> {
        let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
        let uri: http::Uri = whole.parse().with_context(|| format!("--url {url} is no address"))?;
        if uri.scheme_str() != Some("http") {
            bail!("--url {url} is not http://: the control port speaks plain HTTP");
        }
        let authority = uri.authority().ok_or_else(|| anyhow!("--url {url} names no host"))?;
        let port = authority.port_u16().unwrap_or(80);
        let token =
            uri.query().and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("token="))).map(str::to_owned);
        Ok(Remote { authority: format!("{}:{port}", authority.host()), token })
    }

    pub fn url(&self) -> String {
        match &self.token {
            Some(token) => format!("http://{}/?token={token}", self.authority),
            None => format!("http://{}", self.authority),
        }
    }

    async fn connect(&self) -> anyhow::Result<TcpStream> {
        let addresses = tokio::net::lookup_host(&self.authority).await;
        let addresses = addresses.with_context(|| format!("{} is no known host", self.authority))?;
        for address in addresses {
            if let Ok(stream) = dial::tcp(address, DIAL_LIMIT).await {
                return Ok(stream);
            }
        }
        Err(NobodyThere(self.authority.clone()).into())
    }

    /// `GET path`, as JSON.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        let body = self.bytes(path).await?;
        serde_json::from_slice(&body).with_context(|| format!("{} answered {path} with something else than JSON", self.authority))
    }

    /// Fine once every port is bound.
    pub async fn health(&self) -> anyhow::Result<()> {
        self.bytes("/healthz").await.map(drop)
    }

    async fn bytes(&self, path: &str) -> anyhow::Result<Bytes> {
        let stream = self.connect().await?;
        let answer = tokio::time::timeout(ANSWER_LIMIT, self.ask(stream, path)).await;
        let (status, body) = answer.map_err(|_| anyhow!("{} gave no answer within {ANSWER_LIMIT:?}", self.authority))??;
        match status.is_success() {
            true => Ok(body),
            false => Err(refused(&body).unwrap_or_else(|| anyhow!("{} answered {status} to {path}", self.authority))),
        }
    }

    async fn ask(&self, stream: TcpStream, path: &str) -> anyhow::Result<(http::StatusCode, Bytes)> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let mut request = http::Request::builder().uri(path).header("host", &self.authority);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Empty::<Bytes>::new())?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            let status = response.status();
            let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await.map_err(|error| anyhow!(error))?;
            anyhow::Ok((status, body.to_bytes()))
        };
        tokio::pin!(exchange);
        tokio::pin!(connection);
        tokio::select! {
            answer = &mut exchange => answer,
            ended = &mut connection => {
                ended?;
                exchange.await
            }
        }
    }

    /// Opens the live feed.
    pub async fn live(&self) -> anyhow::Result<Live> {
        let stream = self.connect().await?;
        let mut request = format!("ws://{}/api/v1/live", self.authority).into_client_request()?;
        if let Some(token) = &self.token {
            request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
        }
        let opened = tokio::time::timeout(ANSWER_LIMIT, tokio_tungstenite::client_async(request, stream)).await;
        let (socket, _) = opened
            .map_err(|_| anyhow!("{} gave no answer within {ANSWER_LIMIT:?}", self.authority))?
            .map_err(|error| handshake_error(error, &self.authority))?;
        Ok(Live { socket })
    }
}

/// The words of a problem document.
fn refused(body: &[u8]) -> Option<anyhow::Error> {
    let problem: Value = serde_json::from_slice(body).ok()?;
    let detail = problem.get("detail").or(problem.get("title"))?.as_str()?;
    Some(match problem.get("next").and_then(Value::as_str) {
        Some(next) => anyhow!("{detail}. {next}"),
        None => anyhow!("{detail}"),
    })
}

fn handshake_error(error: tokio_tungstenite::tungstenite::Error, authority: &str) -> anyhow::Error {
    if let tokio_tungstenite::tungstenite::Error::Http(response) = &error
        && let Some(refused) = response.body().as_deref().and_then(refused)
    {
        return refused;
    }
    anyhow!(error).context(format!("the live feed of {authority} did not open"))
}

/// The live feed, frame by frame.
pub struct Live {
    socket: WebSocketStream<TcpStream>,
}

impl Live {
    pub async fn send(&mut self, frame: &Value) -> anyhow::Result<()> {
        self.socket.send(Message::text(frame.to_string())).await.context("the live feed has ended")
    }

    /// Says that everything up to the frame's cursor is taken, which asks for the next.
    pub async fn acknowledge(&mut self, frame: &Value) -> anyhow::Result<()> {
        let ack = serde_json::json!({ "op": "ack", "id": frame["id"], "cursor": frame["cursor"] });
        self.send(&ack).await
    }

    /// The next frame; `None` when the feed has ended.
    pub async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        while let Some(message) = self.socket.next().await {
            match message {
                Ok(Message::Text(text)) => return Ok(Some(serde_json::from_str(&text)?)),
                Ok(Message::Close(_)) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dashboards_address_with_its_token_names_a_reactor() {
        let remote = Remote::parse("http://box.lan:15000/?token=abc").expect("an address");
        assert_eq!((remote.authority.as_str(), remote.token.as_deref()), ("box.lan:15000", Some("abc")));
        let remote = Remote::parse("localhost:25000").expect("an address");
        assert_eq!((remote.authority.as_str(), remote.url().as_str()), ("localhost:25000", "http://localhost:25000"));
        assert!(Remote::parse("https://localhost").is_err());
        assert!(Remote::parse("::::").is_err());
    }

    #[test]
    fn a_refusal_is_told_in_its_own_words() {
        let problem = br#"{"title":"Unauthorized","status":401,"detail":"this request carries no valid token","next":"Use it"}"#;
        assert_eq!(refused(problem).expect("words").to_string(), "this request carries no valid token. Use it");
        assert!(refused(b"<html>").is_none());
    }
}
