//! Who may ask anything at all: every request passes here first, upgrades and the dashboard's files included.
//!
//! ```text
//!   Host ok? ──no──► 403/421   foreign names that resolve here (DNS rebinding) never get past this
//!   Origin ok? ─no─► 403       pages of other sites, whatever the method
//!   login ok? ──no─► 401       unless dev mode, and Host and peer are both loopback
//! ```
//!
//! `/healthz` is exempt: it says one word, and probes come by any name.

use super::context::ApiContext;
use super::health;
use super::problem::Problem;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::net::{IpAddr, SocketAddr};

pub async fn check(State(_context): State<ApiContext>, request: Request, next: Next) -> Response {
    if request.uri().path() != health::PATH
        && let Err(problem) = admit(&request)
    {
        return problem.into_response();
    }
    let mut response = next.run(request).await;
    harden(response.headers_mut());
    response
}

fn admit(request: &Request) -> Result<(), Problem> {
    let host = host(request)?;
    same_origin(request.headers(), &host)?;
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip());
    if is_loopback_name(host.host()) && peer.is_some_and(is_loopback) {
        return Ok(());
    }
    Err(Problem::new(StatusCode::UNAUTHORIZED, "this request needs the control token"))
}

/// The one authority a request is for: that of its Host field.
fn host(request: &Request) -> Result<Authority, Problem> {
    let mut fields = request.headers().get_all(header::HOST).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return Err(Problem::invalid("a request names its host exactly once").next("send one Host header"));
    };
    let authority = field.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
    let Some(authority) = authority.filter(|authority| !authority.as_str().contains('@')) else {
        return Err(Problem::invalid("the Host header is not a host and port"));
    };
    Ok(authority)
}

/// Browsers say from which page a request comes. Requests of other sites are refused even where they could not read the answer;
/// following a link to the dashboard is not a request *of* that site and passes.
fn same_origin(headers: &HeaderMap, host: &Authority) -> Result<(), Problem> {
    if let Some(origin) = headers.get(header::ORIGIN) {
        let own = origin
            .to_str()
            .ok()
            .and_then(|text| text.strip_prefix("http://").or_else(|| text.strip_prefix("https://")))
            .is_some_and(|authority| authority.eq_ignore_ascii_case(host.as_str()));
        if !own {
            let origin = String::from_utf8_lossy(origin.as_bytes());
            return Err(Problem::new(StatusCode::FORBIDDEN, format!("pages of {origin} may not use the control port of {host}"))
                .next("open the dashboard itself, or call the API from a program, which sends no Origin"));
        }
    }
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let navigates = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "navigate");
    if matches!(site, Some(b"cross-site" | b"same-site")) && !navigates {
        return Err(Problem::new(StatusCode::FORBIDDEN, "another site's page asked for this"));
    }
    Ok(())
}

/// `localhost`, names below it (RFC 6761 §6.3) and loopback addresses.
fn is_loopback_name(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().is_ok_and(is_loopback)
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Fields that every answer carries; answers that chose their own caching keep it.
fn harden(headers: &mut HeaderMap) {
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(fields: &[(&str, &str)], peer: &str) -> Request {
        let mut builder = http::Request::builder().uri("/api/v1/overview");
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        let mut request = builder.body(axum::body::Body::empty()).expect("a valid request");
        let peer: SocketAddr = format!("{peer}:5000").parse().expect("an address");
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    }

    fn status(fields: &[(&str, &str)], peer: &str) -> u16 {
        admit(&request(fields, peer)).map_or_else(|problem| problem.status, |()| 200)
    }

    #[test]
    fn loopback_names_from_loopback_peers_need_no_login() {
        for host in
            ["localhost:15000", "LOCALHOST", "app.localhost:15000", "127.0.0.1:15000", "127.8.8.8", "[::1]:15000", "localhost."]
        {
            assert_eq!(status(&[("host", host)], "127.0.0.1"), 200, "{host}");
        }
    }

    #[test]
    fn a_foreign_name_that_resolves_here_needs_a_login() {
        for host in ["evil.example:15000", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.1.5:15000", "[::2]"] {
            assert_eq!(status(&[("host", host)], "127.0.0.1"), 401, "{host}");
        }
        assert_eq!(status(&[("host", "localhost:15000")], "192.168.1.9"), 401);
    }

    #[test]
    fn a_host_that_is_missing_doubled_or_no_host_is_refused() {
        assert_eq!(status(&[], "127.0.0.1"), 400);
        assert_eq!(status(&[("host", "localhost"), ("host", "localhost")], "127.0.0.1"), 400);
        assert_eq!(status(&[("host", "evil@localhost")], "127.0.0.1"), 400);
        assert_eq!(status(&[("host", "")], "127.0.0.1"), 400);
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let with = |origin: &str| status(&[("host", "localhost:15000"), ("origin", origin)], "127.0.0.1");
        assert_eq!(with("http://localhost:15000"), 200);
        for foreign in ["http://localhost:3000", "https://evil.example", "null", "http://localhost:15000.evil.example", ""] {
            assert_eq!(with(foreign), 403, "{foreign}");
        }
    }

    #[test]
    fn a_link_from_elsewhere_opens_the_dashboard_but_an_image_of_elsewhere_does_not() {
        let with = |mode: &str| {
            status(&[("host", "localhost"), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", mode)], "127.0.0.1")
        };
        assert_eq!(with("navigate"), 200);
        assert_eq!(with("no-cors"), 403);
    }
}
