//! A request made fit to be passed on: addressed, normalised, cleaned; or refused.

use super::authority::Authority;
use super::config::GatewayConfig;
use super::engine::{ClientConn, Scheme};
use super::exchange::fresh_id;
use super::problem::Problem;
use super::{hygiene, path};
use crate::wire::http::FIELDS_MAX;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, header};
use hyper::upgrade::OnUpgrade;
use std::borrow::Cow;
use tokio_util::sync::CancellationToken;

const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// How a request asks to leave HTTP behind.
#[derive(Debug)]
pub(super) enum Switch {
    /// `Upgrade` of HTTP/1.1, to this protocol.
    Upgrade(HeaderValue),
    /// Extended CONNECT of HTTP/2 (RFC 8441), for WebSocket.
    Connect,
}

#[derive(Debug)]
pub(super) struct Inbound {
    pub(super) method: Method,
    uri: Uri,
    /// The path in normal form, where the received one was not.
    normal_path: Option<String>,
    pub(super) authority: Authority,
    pub(super) scheme: Scheme,
    /// Closes the client's connection, where nothing less would end a response that it does not read.
    pub(super) abort: Option<CancellationToken>,
    pub(super) headers: HeaderMap,
    pub(super) request_id: String,
    pub(super) switch: Option<(Switch, OnUpgrade)>,
}

/// What the request line and its fields demand before any service is looked for.
pub(super) enum Admitted {
    Request(Box<Inbound>),
    /// `OPTIONS *`: a question to the gateway itself.
    AskedGateway,
}

pub(super) fn admit(
    mut parts: http::request::Parts,
    on_upgrade: Option<OnUpgrade>,
    conn: &ClientConn,
    config: &GatewayConfig,
) -> Result<Admitted, Problem> {
    let switch = switch(&parts, on_upgrade)?;
    if parts.method == Method::TRACE {
        return Err(not_allowed("TRACE would show fields that clients cannot see"));
    }
    let authority = Authority::of(&parts.uri, &parts.headers, parts.version).map_err(Problem::bad_request)?;
    if parts.headers.len() > FIELDS_MAX {
        return Err(too_many_fields());
    }
    if parts.uri.path() == "*" {
        let asks_gateway = parts.method == Method::OPTIONS;
        return if asks_gateway {
            Ok(Admitted::AskedGateway)
        } else {
            Err(Problem::bad_request("`*` is a target of OPTIONS only"))
        };
    }
    let normal_path = match path::normalise(parts.uri.path()).map_err(|refused| Problem::bad_request(refused.to_string()))? {
        Cow::Borrowed(_) => None,
        Cow::Owned(normal) => Some(normal),
    };
    let headers = &mut parts.headers;
    hygiene::strip_hop_by_hop(headers);
    let client =
        hygiene::Client { peer: conn.peer.ip(), scheme: conn.scheme, authority: &authority, trusted: &config.trusted_proxies };
    hygiene::set_forwarded(headers, &client);
    hygiene::set_via(headers, parts.version);
    let request_id = hygiene::settle_request_id(headers, fresh_id);
    headers.remove(header::EXPECT);
    let (method, uri, headers) = (parts.method, parts.uri, parts.headers);
    Ok(Admitted::Request(Box::new(Inbound {
        method,
        uri,
        normal_path,
        authority,
        scheme: conn.scheme,
        abort: conn.abort_if_http1(parts.version),
        headers,
        request_id,
        switch,
    })))
}

impl Inbound {
    /// The path in normal form.
    pub(super) fn path(&self) -> &str {
        match &self.normal_path {
            Some(normal) => normal,
            None if self.uri.path().is_empty() => "/",
            None => self.uri.path(),
        }
    }

    pub(super) fn query(&self) -> Option<&str> {
        self.uri.query()
    }

    /// Path and query exactly as received.
    pub(super) fn target(&self) -> &str {
        self.uri.path_and_query().map_or("/", |target| target.as_str())
    }

    pub(super) fn content_length(&self) -> Option<u64> {
        self.headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }
}

fn switch(parts: &http::request::Parts, on_upgrade: Option<OnUpgrade>) -> Result<Option<(Switch, OnUpgrade)>, Problem> {
    if parts.method == Method::CONNECT {
        let protocol = parts.extensions.get::<hyper::ext::Protocol>();
        let is_websocket = protocol.is_some_and(|protocol| protocol.as_str().eq_ignore_ascii_case("websocket"));
        return match on_upgrade {
            Some(on_upgrade) if is_websocket => Ok(Some((Switch::Connect, on_upgrade))),
            _ => Err(not_allowed("CONNECT is for WebSocket over HTTP/2 (RFC 8441) only").closing()),
        };
    }
    let token = if parts.version == Version::HTTP_11 { hygiene::upgrade_token(&parts.headers) } else { None };
    Ok(token.map(Switch::Upgrade).zip(on_upgrade))
}

fn not_allowed(why: &str) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "The gateway does not pass this method on")
        .detail(why)
        .next(format!("Use one of {ALLOW}."))
        .field(header::ALLOW, ALLOW)
}

fn too_many_fields() -> Problem {
    Problem::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "too-many-fields", "The request has too many header fields")
        .detail(format!("at most {FIELDS_MAX} fields are taken"))
        .next("Send fewer fields; put large values into the body.")
}

pub(super) fn allow() -> HeaderValue {
    HeaderValue::from_static(ALLOW)
}
