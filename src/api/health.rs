//! `GET /healthz`: whether everything that should listen does. Says nothing else, so it needs no login.

use super::context::ApiContext;
use super::problem::Problem;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

pub const PATH: &str = "/healthz";

/// 200 once every listener is bound, 503 before and while draining.
#[utoipa::path(get, path = "/healthz", tag = "node", responses(
    (status = 200, description = "every listener is bound", body = String, content_type = "text/plain"),
    (status = 503, description = "starting or draining", body = Problem, content_type = "application/problem+json"),
))]
pub async fn healthz(State(context): State<ApiContext>) -> Response {
    if context.drain.has_begun() {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "reactor is shutting down").into_response();
    }
    if !context.ready.is_set() {
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, "reactor is starting: not every listener is bound yet")
            .into_response();
    }
    (StatusCode::OK, "ok\n").into_response()
}
