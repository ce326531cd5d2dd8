//! Metrics as text, on a port of their own: RabbitMQ's names, so that dashboards and alerts made for it read ours.
//!
//! `/metrics` sums over objects, `/metrics/per-object` names each, `/metrics/detailed` gives the families asked for
//! (`?family=queue_coarse_metrics&vhost=…`). What an Erlang process would be counted by is left out. Nobody logs in who could open
//! the dashboard without; others show the control token or a user's password.

mod families;
mod text;

use super::context::ManagementContext;
use crate::api::aside::aside;
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use base64::Engine as _;
use families::{Families, Wanted};
use http::{HeaderValue, StatusCode, header};
use std::net::SocketAddr;

/// The router of the Prometheus port.
pub fn prometheus_router(context: ManagementContext) -> Router {
    Router::new()
        .route("/metrics", get(aggregated))
        .route("/metrics/", get(aggregated))
        .route("/metrics/per-object", get(per_object))
        .route("/metrics/detailed", get(detailed))
        .route("/metrics/memory-breakdown", get(memory))
        .fallback(async || (StatusCode::NOT_FOUND, "metrics are at /metrics, /metrics/per-object and /metrics/detailed\n"))
        .layer(axum::middleware::from_fn(aside))
        .layer(axum::middleware::from_fn_with_state(context.clone(), check))
        .with_state(context)
}

async fn check(State(context): State<ManagementContext>, request: Request, next: Next) -> Response {
    if may_read(&context, &request) {
        return next.run(request).await;
    }
    let text =
        "reactor: metrics are open to this machine; from elsewhere show the control token (Authorization: Bearer) or a user.\n";
    let mut response = (StatusCode::UNAUTHORIZED, text).into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"RabbitMQ Prometheus\""));
    response
}

fn may_read(context: &ManagementContext, request: &Request) -> bool {
    let Some(ConnectInfo(peer)) = request.extensions().get::<ConnectInfo<SocketAddr>>().copied() else { return false };
    let field = |name: header::HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
    let is_here = field(header::HOST).is_some_and(|host| context.access.sees_dashboard(peer.ip(), host));
    if is_here && field(header::ORIGIN).is_none() {
        return true;
    }
    let Some((scheme, value)) = field(header::AUTHORIZATION).and_then(|text| text.split_once(' ')) else { return false };
    if scheme.eq_ignore_ascii_case("bearer") {
        return context.access.is_token(value.trim());
    }
    let decoded = base64::engine::general_purpose::STANDARD.decode(value.trim()).unwrap_or_default();
    let pair = std::str::from_utf8(&decoded).ok().and_then(|text| text.split_once(':'));
    pair.is_some_and(|(user, password)| {
        let login = context.access.login_by_web(user, password, peer.ip(), field(header::HOST));
        login.is_ok_and(|principal| principal.has_tag("monitoring") || principal.has_tag("administrator"))
    })
}

fn answer(text: String) -> Response {
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

async fn aggregated(State(context): State<ManagementContext>) -> Response {
    answer(Families::new(&context, Wanted::all("rabbitmq_", false)).write())
}

async fn per_object(State(context): State<ManagementContext>) -> Response {
    answer(Families::new(&context, Wanted::all("rabbitmq_", true)).write())
}

async fn detailed(State(context): State<ManagementContext>, query: super::list::Query) -> Response {
    answer(Families::new(&context, Wanted::named(query.all("family"), query.all("vhost"))).write())
}

async fn memory(State(context): State<ManagementContext>) -> Response {
    answer(Families::new(&context, Wanted::all("rabbitmq_", false)).write_memory())
}
