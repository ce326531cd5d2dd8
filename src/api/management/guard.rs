//! Who asks, and what they may do here.
//!
//! As RabbitMQ's, this API wants HTTP Basic authentication of every request, with a user that has one of its tags; the control
//! token as a Bearer token is an administrator. Browsers attach remembered credentials to whatever a page asks for, so a request
//! that a page of another site sent is refused, and no cross-origin header is ever given. `guest`'s password is known to everybody,
//! so where it opens the door the Host must name this machine: a rebound name could use it otherwise.

use super::answer::{Failure, harden};
use super::context::ManagementContext;
use crate::access::{WebRefusal, WebRequest};
use crate::model::identity::{Permissions, Principal};
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use std::net::SocketAddr;
use std::sync::Arc;

const REALM: &str = "Basic realm=\"RabbitMQ Management\"";
/// RabbitMQ's default user, whose password is its name.
/// Tags that open this API; each next one may more.
const TAGS: [&str; 4] = ["management", "policymaker", "monitoring", "administrator"];

/// Who asks: admitted, with at least one of the tags.
#[derive(Clone, Debug)]
pub struct Caller {
    pub principal: Principal,
}

/// Admits every request below `/api`.
pub async fn check(State(context): State<ManagementContext>, mut request: Request, next: Next) -> Response {
    let mut response = match admit(&context, &request) {
        Ok(caller) => {
            request.extensions_mut().insert(caller);
            next.run(request).await
        }
        Err(refused) => *refused,
    };
    harden(response.headers_mut());
    response
}

fn admit(context: &ManagementContext, request: &Request) -> Result<Caller, Box<Response>> {
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>().copied() else {
        return Err(Box::new(
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the door did not say who asks").into_response(),
        ));
    };
    let headers = request.headers();
    let field = |name: header::HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    let web = WebRequest {
        peer: peer.ip(),
        host: field(header::HOST),
        origin: field(header::ORIGIN),
        fetch_site: headers.get("sec-fetch-site").map(|value| value.to_str().unwrap_or("unreadable")),
        navigates: false,
        token: bearer(headers),
        login: None,
    };
    if context.access.is_foreign(&web) {
        return Err(Box::new(Failure::new(StatusCode::FORBIDDEN, "forbidden", WebRefusal::ForeignOrigin.what()).into_response()));
    }
    if web.token.is_some_and(|token| context.access.is_token(token)) {
        return Ok(Caller { principal: Principal::new("operator", Permissions::All).tagged(&["administrator".to_owned()]) });
    }
    let Some((user, password)) = basic(headers) else {
        return Err(Box::new(login_wanted(StatusCode::UNAUTHORIZED.into_response())));
    };
    let principal = match context.access.login_by_web(&user, &password, peer.ip(), web.host) {
        Ok(principal) => principal,
        Err(WebRefusal::ForeignHost) => {
            let failure = Failure::new(StatusCode::FORBIDDEN, "forbidden", WebRefusal::ForeignHost.what());
            return Err(Box::new(failure.into_response()));
        }
        Err(_) => {
            let failure = Failure::new(StatusCode::UNAUTHORIZED, "not_authorized", "Login failed");
            return Err(Box::new(login_wanted(failure.into_response())));
        }
    };
    let caller = Caller { principal };
    match caller.has_any(&TAGS) {
        true => Ok(caller),
        false => Err(Box::new(Failure::not_authorised("Not management user").into_response())),
    }
}

fn login_wanted(mut response: Response) -> Response {
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(REALM));
    response
}

fn credentials<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let (scheme, value) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case(wanted).then(|| value.trim())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    credentials(headers, "bearer")
}

fn basic(headers: &HeaderMap) -> Option<(String, String)> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(credentials(headers, "basic")?).ok()?;
    let (user, password) = std::str::from_utf8(&decoded).ok()?.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

impl Caller {
    fn has_any(&self, tags: &[&str]) -> bool {
        tags.iter().any(|tag| self.principal.has_tag(tag))
    }

    pub fn is_administrator(&self) -> bool {
        self.has_any(&["administrator"])
    }

    pub fn is_monitor(&self) -> bool {
        self.has_any(&["monitoring", "administrator"])
    }

    pub fn must_administer(&self) -> Result<(), Failure> {
        self.is_administrator().then_some(()).ok_or_else(|| Failure::not_authorised("Not administrator user"))
    }

    pub fn must_monitor(&self) -> Result<(), Failure> {
        self.is_monitor().then_some(()).ok_or_else(|| Failure::not_authorised("Not monitor user"))
    }

    pub fn must_make_policies(&self) -> Result<(), Failure> {
        let may = self.has_any(&["policymaker", "administrator"]);
        may.then_some(()).ok_or_else(|| Failure::not_authorised("User not authorised to access policies"))
    }

    /// With the permissions it has in a space that exists.
    pub fn enter(&self, context: &ManagementContext, space: &str) -> Result<Principal, Failure> {
        if context.broker.vhost(space).is_none() {
            return Err(Failure::no_object());
        }
        let entered = context.access.enter(self.principal.clone(), space);
        entered.map_err(|_| Failure::not_authorised("User not authorised to access virtual host"))
    }

    /// Spaces whose things it is shown in lists.
    pub fn sees(&self, context: &ManagementContext, space: &str) -> bool {
        context.access.may_enter(&self.principal, space)
    }

    /// As `sees`, for connections and channels, which monitors see everywhere.
    pub fn sees_traffic(&self, context: &ManagementContext, space: &str) -> bool {
        self.is_monitor() || self.sees(context, space)
    }

    pub fn user(&self) -> &Arc<str> {
        &self.principal.user
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(|| Failure::not_authorised("Login failed"))
    }
}
