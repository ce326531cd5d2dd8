//! Who may ask anything at all: every request passes here first, upgrades and the dashboard's files included.
//!
//! `access` decides (Host against DNS rebinding, Origin against foreign sites, the token against other machines); this door reads
//! what it decides by, and turns its answer into HTTP. A token may come as `Authorization: Bearer`, as cookie, or once in the
//! address: a page load with `?token=` gets the cookie and is sent to the address without it, so that the token stays out of
//! history, logs and Referer. `/healthz` is exempt: it says one word, and probes come by any name.

use super::context::ApiContext;
use super::health;
use super::problem::Problem;
use crate::access::{Access, WebRefusal, WebRequest};
use crate::model::identity::Principal;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use std::net::SocketAddr;

/// Twelve hours: a working day. The token itself changes with every start unless it is configured.
const COOKIE_SECONDS: u32 = 12 * 3_600;

pub async fn check(State(context): State<ApiContext>, mut request: Request, next: Next) -> Response {
    let mut response = if request.uri().path() == health::PATH {
        next.run(request).await
    } else {
        match admit(&context.access, &request) {
            Ok(Admitted { principal, login: None }) => {
                request.extensions_mut().insert(principal);
                forget_token(request.uri_mut());
                next.run(request).await
            }
            Ok(Admitted { login: Some(login), .. }) => login,
            Err(problem) => refused(problem, request.headers()),
        }
    };
    harden(response.headers_mut());
    response
}

struct Admitted {
    principal: Principal,
    /// The answer to a page load with a token in its address.
    login: Option<Response>,
}

fn admit(access: &Access, request: &Request) -> Result<Admitted, Problem> {
    let host = host(request.headers())?;
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>() else {
        return Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the door did not say who asks"));
    };
    let field = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let reads = request.method() == Method::GET || request.method() == Method::HEAD;
    let navigates = reads && field("sec-fetch-mode") == Some("navigate");
    let given = token_in_query(request.uri());
    let token = given.or_else(|| bearer(request.headers())).or_else(|| cookie(request.headers(), &cookie_name(&host)));
    let basic = basic(request.headers());
    let principal = access
        .admit(&WebRequest {
            peer: peer.ip(),
            host: Some(host.as_str()),
            origin: field("origin"),
            fetch_site: field("sec-fetch-site"),
            navigates,
            token,
            login: basic.as_ref().map(|(user, password)| (user.as_str(), password.as_str())),
        })
        .map_err(problem)?;
    let api = request.uri().path().starts_with("/api/");
    let login = given.filter(|given| reads && !api && access.is_token(given)).map(|given| logged_in(given, &host, request.uri()));
    Ok(Admitted { principal, login })
}

fn problem(refusal: WebRefusal) -> Problem {
    let status = match refusal {
        WebRefusal::ForeignHost | WebRefusal::ForeignOrigin => StatusCode::FORBIDDEN,
        WebRefusal::NoToken | WebRefusal::NoLogin => StatusCode::UNAUTHORIZED,
    };
    Problem::new(status, refusal.what()).next(refusal.next())
}

/// A person who opened the address without its token reads a sentence, a program a problem document.
fn refused(problem: Problem, headers: &HeaderMap) -> Response {
    let page = headers.get(header::ACCEPT).is_some_and(|accept| accept.to_str().is_ok_and(|text| text.starts_with("text/html")));
    let unknown = problem.status == StatusCode::UNAUTHORIZED.as_u16();
    let mut response = if page {
        let next = problem.next.as_deref().unwrap_or_default();
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::FORBIDDEN);
        (status, format!("reactor: {}.\n\n{next}\n", problem.detail)).into_response()
    } else {
        problem.into_response()
    };
    if unknown {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Takes the token out of the address, so that no handler meets it and no log line carries it.
fn forget_token(uri: &mut Uri) {
    let Some(query) = uri.query().filter(|query| query.split('&').any(|pair| pair.starts_with("token="))) else { return };
    let target = without_token(uri.path(), query);
    if let Ok(clean) = target.parse() {
        *uri = clean;
    }
}

fn without_token(path: &str, query: &str) -> String {
    let rest: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("token=")).collect();
    if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) }
}

/// The one authority a request is for: that of its Host field (RFC 9112 §3.2).
fn host(headers: &HeaderMap) -> Result<Authority, Problem> {
    let mut fields = headers.get_all(header::HOST).iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return Err(Problem::invalid("a request names its host exactly once").next("send one Host header"));
    };
    let authority = field.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
    authority
        .filter(|authority| !authority.as_str().contains('@'))
        .ok_or_else(|| Problem::invalid("the Host header is not a host and port"))
}

/// Tokens are URL-safe, so a percent-encoded one is a wrong one.
fn token_in_query(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("token=")).filter(|token| !token.is_empty())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// User and password of `Authorization: Basic`.
fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let (scheme, encoded) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

fn cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let fields = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    fields.flat_map(|text| text.split(';')).find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}

/// Cookies know no ports: two reactors of one machine must not log each other out.
fn cookie_name(host: &Authority) -> String {
    format!("reactor-{}", host.port_u16().unwrap_or(80))
}

fn logged_in(token: &str, host: &Authority, uri: &Uri) -> Response {
    // A path that begins with two slashes would name another host.
    let path = format!("/{}", uri.path().trim_start_matches('/'));
    let to = without_token(&path, uri.query().unwrap_or_default());
    let cookie = format!("{}={token}; Path=/; Max-Age={COOKIE_SECONDS}; HttpOnly; SameSite=Lax", cookie_name(host));
    let fields = [(header::LOCATION, HeaderValue::from_str(&to)), (header::SET_COOKIE, HeaderValue::from_str(&cookie))];
    let mut response = StatusCode::SEE_OTHER.into_response();
    for (name, value) in fields {
        let Ok(value) = value else { return Problem::invalid("the address is not one this dashboard has").into_response() };
        response.headers_mut().insert(name, value);
    }
    response
}

/// Fields that every answer carries; answers that chose their own keep them.
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
    use crate::model::config::{AccessMode, AccessSettings};

    fn access(mode: AccessMode) -> Access {
        Access::new(&AccessSettings { mode, token: Some("sesame".into()), ..AccessSettings::default() })
    }

    fn request(target: &str, fields: &[(&str, &str)], peer: &str) -> Request {
        let mut builder = http::Request::builder().uri(target);
        for (name, value) in fields {
            builder = builder.header(*name, *value);
        }
        let mut request = builder.body(axum::body::Body::empty()).expect("a valid request");
        let peer: SocketAddr = format!("{peer}:5000").parse().expect("an address");
        request.extensions_mut().insert(ConnectInfo(peer));
        request
    }

    fn status(mode: AccessMode, target: &str, fields: &[(&str, &str)], peer: &str) -> u16 {
        match admit(&access(mode), &request(target, fields, peer)) {
            Ok(Admitted { login: Some(login), .. }) => login.status().as_u16(),
            Ok(_) => 200,
            Err(problem) => problem.status,
        }
    }

    const HERE: (&str, &str) = ("host", "localhost:15000");
    const BOX: (&str, &str) = ("host", "box.lan:15000");

    #[test]
    fn this_machine_needs_no_token_in_dev_mode_and_others_do() {
        assert_eq!(status(AccessMode::Dev, "/", &[HERE], "127.0.0.1"), 200);
        assert_eq!(status(AccessMode::Dev, "/", &[HERE], "10.0.0.7"), 401);
        assert_eq!(status(AccessMode::Required, "/", &[HERE], "127.0.0.1"), 401);
        assert_eq!(status(AccessMode::Dev, "/", &[("host", "evil.example")], "127.0.0.1"), 403);
        assert_eq!(status(AccessMode::Dev, "/", &[HERE, ("origin", "http://evil.example")], "127.0.0.1"), 403);
    }

    #[test]
    fn a_host_that_is_missing_doubled_or_no_host_is_refused() {
        for fields in [&[][..], &[HERE, HERE], &[("host", "evil@localhost")], &[("host", "")]] {
            assert_eq!(status(AccessMode::Dev, "/", fields, "127.0.0.1"), 400, "{fields:?}");
        }
    }

    #[test]
    fn the_token_is_taken_as_bearer_as_cookie_and_in_the_address() {
        for (name, value) in
            [("authorization", "Bearer sesame"), ("authorization", "bearer sesame"), ("cookie", "a=1; reactor-15000=sesame")]
        {
            assert_eq!(status(AccessMode::Required, "/api/v1/overview", &[BOX, (name, value)], "10.0.0.7"), 200, "{value}");
        }
        assert_eq!(status(AccessMode::Required, "/api/v1/live?token=sesame", &[BOX], "10.0.0.7"), 200);
        for (name, value) in
            [("authorization", "Basic sesame"), ("authorization", "Bearer sesam"), ("cookie", "reactor-80=sesame")]
        {
            assert_eq!(status(AccessMode::Required, "/api/v1/overview", &[BOX, (name, value)], "10.0.0.7"), 401, "{value}");
        }
    }

    #[test]
    fn a_page_load_with_the_token_gets_a_cookie_and_a_clean_address() {
        let access = access(AccessMode::Required);
        let admitted =
            admit(&access, &request("//traces?range=5&token=sesame", &[BOX], "10.0.0.7")).unwrap_or_else(|_| panic!("admitted"));
        let login = admitted.login.expect("a login");
        assert_eq!(login.status(), 303);
        assert_eq!(login.headers()["location"], "/traces?range=5");
        let cookie = login.headers()["set-cookie"].to_str().expect("ascii");
        assert_eq!(cookie, "reactor-15000=sesame; Path=/; Max-Age=43200; HttpOnly; SameSite=Lax");
        assert_eq!(status(AccessMode::Dev, "/?token=wrong", &[BOX], "10.0.0.7"), 401);
    }
}
