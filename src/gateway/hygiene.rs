//! Which header fields cross the gateway: what belongs to one connection stays there, what names the client is written by us and
//! not by the client, what the runtime reads is never taken from outside (reference: RFC 9110 §7.6, W3C Trace Context).

use super::authority::Authority;
use super::config::Cidr;
use super::engine::Scheme;
use crate::model::broker_header::is_broker_header;
use crate::model::trace_context::TraceContext;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::net::IpAddr;

/// Longest `X-Request-Id` taken over from a client, in bytes.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Longest `tracestate` passed on, in bytes (W3C Trace Context §3.3.1.5 asks for at least 512).
const TRACESTATE_BYTES_MAX: usize = 1024;

pub(super) const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
pub(super) const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
pub(super) const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
pub(super) const FORWARDED_PORT: HeaderName = HeaderName::from_static("x-forwarded-port");
pub(super) const FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Fields of one connection, whether or not `Connection` names them.
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("http2-settings"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Fields that `Connection` may name without losing them: they frame or address the message.
const NEVER_DROPPED: [HeaderName; 4] = [header::HOST, header::CONTENT_LENGTH, header::CONTENT_TYPE, header::CONTENT_ENCODING];

/// Removes what belongs to the connection the message came over, everything that its `Connection` field names included.
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        for name in connection_options(headers) {
            if !NEVER_DROPPED.contains(&name) {
                headers.remove(name);
            }
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

fn connection_options(headers: &HeaderMap) -> Vec<HeaderName> {
    let values = headers.get_all(header::CONNECTION).iter();
    let words = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    words.filter_map(|word| HeaderName::from_bytes(word.trim_ascii()).ok()).collect()
}

/// The protocol a request asks to switch to, if it does so properly. `h2c` is not one: RFC 9113 withdrew it, and clients that send
/// it go on in HTTP/1.1.
pub(super) fn upgrade_token(headers: &HeaderMap) -> Option<HeaderValue> {
    let token = headers.get(header::UPGRADE)?;
    if token.as_bytes().is_empty() || token.as_bytes().eq_ignore_ascii_case(b"h2c") {
        return None;
    }
    connection_options(headers).contains(&header::UPGRADE).then(|| token.clone())
}

/// Removes fields that only the runtime may set. Over the bus that is everything the broker reads; to an HTTP service the
/// broker's names mean nothing and pass.
pub(super) fn strip_internal(headers: &mut HeaderMap, to_bus: bool) {
    let is_internal = |name: &&HeaderName| match to_bus {
        true => is_broker_header(name.as_str()),
        false => name.as_str().starts_with("x-reactor-"),
    };
    let found: Vec<HeaderName> = headers.keys().filter(is_internal).cloned().collect();
    for name in found {
        headers.remove(name);
    }
}

/// Who asks, as told to services.
#[derive(Debug)]
pub(super) struct Client<'a> {
    pub(super) peer: IpAddr,
    pub(super) scheme: Scheme,
    pub(super) authority: &'a Authority,
    pub(super) trusted: &'a [Cidr],
}

/// Writes `X-Forwarded-For`, `-Proto`, `-Host` and `-Port`. What a trusted proxy already said is kept and extended; from anybody
/// else it is replaced.
pub(super) fn set_forwarded(headers: &mut HeaderMap, client: &Client<'_>) {
    let trusted = client.trusted.iter().any(|block| block.contains(client.peer));
    if !trusted {
        for name in [FORWARDED_FOR, FORWARDED_PROTO, FORWARDED_HOST, FORWARDED_PORT, FORWARDED_PREFIX, header::FORWARDED] {
            headers.remove(name);
        }
    }
    let mut forwarded_for = Vec::new();
    for value in headers.get_all(FORWARDED_FOR) {
        forwarded_for.extend_from_slice(value.as_bytes());
        forwarded_for.extend_from_slice(b", ");
    }
    forwarded_for.extend_from_slice(client.peer.to_canonical().to_string().as_bytes());
    if let Ok(value) = HeaderValue::from_bytes(&forwarded_for) {
        headers.insert(FORWARDED_FOR, value);
    }
    let default_port = match client.scheme {
        Scheme::Http => 80,
        Scheme::Https => 443,
    };
    if !headers.contains_key(FORWARDED_PROTO) {
        headers.insert(FORWARDED_PROTO, HeaderValue::from_static(client.scheme.as_str()));
    }
    if !headers.contains_key(FORWARDED_HOST)
        && let Ok(host) = HeaderValue::from_str(&client.authority.text)
    {
        headers.insert(FORWARDED_HOST, host);
    }
    if !headers.contains_key(FORWARDED_PORT) {
        headers.insert(FORWARDED_PORT, HeaderValue::from(client.authority.port.unwrap_or(default_port)));
    }
}

/// Adds ourselves to `Via`.
pub(super) fn set_via(headers: &mut HeaderMap, version: http::Version) {
    let ours = match version {
        http::Version::HTTP_2 => "2 reactor",
        http::Version::HTTP_10 => "1.0 reactor",
        _ => "1.1 reactor",
    };
    headers.append(header::VIA, HeaderValue::from_static(ours));
}

/// The request's id: the client's if it is short and plain, else `fresh`. It is written to the headers.
pub(super) fn settle_request_id(headers: &mut HeaderMap, fresh: impl FnOnce() -> String) -> String {
    let is_plain = |id: &&str| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic() && !b"\"\\,;".contains(&b))
    };
    let mut given = headers.get_all(REQUEST_ID).iter();
    let (first, second) = (given.next(), given.next());
    if let (Some(id), None) = (first.and_then(|id| id.to_str().ok()).filter(is_plain), second) {
        return id.to_owned();
    }
    let id = fresh();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    id
}

/// The trace a request belongs to. A malformed or doubled `traceparent` is none, and its `tracestate` goes with it.
pub(super) fn incoming_trace(headers: &mut HeaderMap) -> Option<TraceContext> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    let parent = match (given.next(), given.next()) {
        (Some(only), None) => only.to_str().ok().and_then(TraceContext::parse),
        _ => None,
    };
    let state_bytes: usize = headers.get_all(TRACESTATE).iter().map(HeaderValue::len).sum();
    if parent.is_none() || state_bytes > TRACESTATE_BYTES_MAX {
        headers.remove(TRACESTATE);
    }
    parent
}

/// Writes whose child the receiver's spans are.
pub(super) fn set_trace(headers: &mut HeaderMap, context: TraceContext) {
    let value = HeaderValue::from_str(&context.to_string()).expect("hexadecimal digits and dashes are a field value");
    headers.insert(TRACEPARENT, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn headers(fields: &[(&str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a field name");
            map.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a field value"));
        }
        map
    }

    fn names(map: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<&str> = map.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn everything_that_connection_names_is_stripped() {
        let mut map = headers(&[
            ("connection", "x-auth, close"),
            ("connection", "X-Other"),
            ("x-auth", "secret"),
            ("x-other", "1"),
            ("te", "trailers"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("upgrade", "h2c"),
            ("trailer", "x"),
            ("accept", "*/*"),
        ]);
        strip_hop_by_hop(&mut map);
        assert_eq!(names(&map), ["accept"]);
    }

    #[test]
    fn connection_cannot_take_framing_or_host_away() {
        let mut map = headers(&[("connection", "content-length, host"), ("content-length", "3"), ("host", "x")]);
        strip_hop_by_hop(&mut map);
        assert_eq!(names(&map), ["content-length", "host"]);
    }

    #[test]
    fn an_upgrade_needs_both_fields_and_h2c_is_none() {
        assert!(upgrade_token(&headers(&[("connection", "Upgrade"), ("upgrade", "websocket")])).is_some());
        assert!(upgrade_token(&headers(&[("connection", "keep-alive, upgrade"), ("upgrade", "x/1")])).is_some());
        assert!(upgrade_token(&headers(&[("upgrade", "websocket")])).is_none());
        assert!(upgrade_token(&headers(&[("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c")])).is_none());
    }

    #[test]
    fn clients_cannot_set_what_the_runtime_reads() {
        let fields = [("x-reactor-subject", "root"), ("x-death", "1"), ("x-delay", "9"), ("cc", "a"), ("x-mine", "1")];
        let mut bus = headers(&fields);
        strip_internal(&mut bus, true);
        assert_eq!(names(&bus), ["cc", "x-mine"]);
        let mut http = headers(&fields);
        strip_internal(&mut http, false);
        assert_eq!(names(&http), ["cc", "x-death", "x-delay", "x-mine"]);
    }

    fn forwarded(peer: &str, fields: &[(&str, &str)]) -> HeaderMap {
        let mut map = headers(fields);
        let authority = Authority::parse("shop.example:8080").expect("good");
        let trusted = Cidr::loopback();
        let peer = peer.parse().expect("an address");
        set_forwarded(&mut map, &Client { peer, scheme: Scheme::Https, authority: &authority, trusted: &trusted });
        map
    }

    const SPOOFED: &[(&str, &str)] = &[
        ("x-forwarded-for", "6.6.6.6"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "evil"),
        ("x-forwarded-port", "1"),
        ("x-forwarded-prefix", "/evil"),
        ("forwarded", "for=6.6.6.6"),
    ];

    #[test]
    fn forwarded_fields_of_strangers_are_replaced() {
        let map = forwarded("192.0.2.7", SPOOFED);
        assert_eq!(map["x-forwarded-for"], "192.0.2.7");
        assert_eq!(map["x-forwarded-proto"], "https");
        assert_eq!(map["x-forwarded-host"], "shop.example:8080");
        assert_eq!(map["x-forwarded-port"], "8080");
        assert!(!map.contains_key("x-forwarded-prefix") && !map.contains_key("forwarded"));
    }

    #[test]
    fn forwarded_fields_of_trusted_proxies_are_extended() {
        let map = forwarded("127.0.0.1", SPOOFED);
        assert_eq!(map["x-forwarded-for"], "6.6.6.6, 127.0.0.1");
        assert_eq!(map["x-forwarded-proto"], "http");
        assert_eq!(map["x-forwarded-host"], "evil");
    }

    #[test]
    fn request_ids_are_kept_if_plain_and_made_otherwise() {
        let fresh = || "fresh".to_owned();
        assert_eq!(settle_request_id(&mut headers(&[("x-request-id", "abc-1")]), fresh), "abc-1");
        for bad in ["", "a b", "a,b", &"x".repeat(129)] {
            let mut map = headers(&[("x-request-id", bad)]);
            assert_eq!(settle_request_id(&mut map, fresh), "fresh", "{bad}");
            assert_eq!(map["x-request-id"], "fresh");
        }
        assert_eq!(settle_request_id(&mut headers(&[("x-request-id", "a"), ("x-request-id", "b")]), fresh), "fresh");
        assert_eq!(settle_request_id(&mut HeaderMap::new(), fresh), "fresh");
    }

    #[test]
    fn a_valid_traceparent_is_continued_with_its_tracestate() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let mut map = headers(&[("traceparent", parent), ("tracestate", "a=1")]);
        assert_eq!(incoming_trace(&mut map).expect("valid").to_string(), parent);
        assert!(map.contains_key("tracestate"));
    }

    #[test]
    fn an_invalid_traceparent_is_dropped_with_its_tracestate() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for fields in
            [&[("traceparent", "nonsense"), ("tracestate", "a=1")][..], &[("traceparent", parent), ("traceparent", parent)]]
        {
            let mut map = headers(fields);
            assert_eq!(incoming_trace(&mut map), None);
            assert!(!map.contains_key("tracestate"));
        }
    }

    proptest! {
        #[test]
        fn no_connection_field_survives_any_connection_value(value in "[a-z, -]{0,30}") {
            let mut map = headers(&[("connection", &value), ("te", "x"), ("accept", "y"), ("content-length", "1")]);
            strip_hop_by_hop(&mut map);
            prop_assert!(!map.contains_key("connection") && !map.contains_key("te") && map.contains_key("content-length"));
        }
    }
}
