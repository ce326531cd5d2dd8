//! This process: its version and its ports.

use crate::api::ApiContext;
use crate::api::params::PathParts;
use crate::api::problem::Problem;
use crate::api::view::{self, Door, Overview, Variable, Version};
use crate::model::identity::Principal;
use crate::model::space::Space;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use std::sync::Arc;

/// What runs here.
#[utoipa::path(get, path = "/api/v1/version", tag = "node", responses((status = 200, body = Version)))]
pub async fn version(State(context): State<ApiContext>) -> Json<Version> {
    Json(Version { name: "reactor", version: env!("CARGO_PKG_VERSION"), ui: context.ui.kind() })
}

/// Every port: what it speaks, where it listens or why it does not.
#[utoipa::path(get, path = "/api/v1/ports", tag = "node", responses((status = 200, body = [Door])))]
pub async fn ports(State(context): State<ApiContext>) -> Json<Vec<Door>> {
    Json(view::doors(&context.sources))
}

/// What a service started by hand on this machine should have in its environment: the lines of the start block.
#[utoipa::path(get, path = "/api/v1/environment", tag = "node", responses((status = 200, body = [Variable])))]
pub async fn environment(State(context): State<ApiContext>) -> Json<Vec<Variable>> {
    Json(context.variables.iter().map(|(name, value)| Variable { name, value: value.clone() }).collect())
}

/// The whole at a glance.
#[utoipa::path(get, path = "/api/v1/overview", tag = "node", responses((status = 200, body = Overview)))]
pub async fn overview(State(context): State<ApiContext>) -> Json<Overview> {
    let services = view::services(&context.sources);
    Json(view::overview(&context.sources, &services))
}

/// Makes a space (a virtual host).
#[utoipa::path(put, path = "/api/v1/spaces/{space}", tag = "node", params(("space" = String, Path)), responses(
    (status = 201, description = "created"), (status = 204, description = "it existed"), (status = 400, body = Problem)))]
pub async fn create_space(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts(space): PathParts<String>,
) -> Result<StatusCode, Problem> {
    if context.control.space(&space).is_some() {
        return Ok(StatusCode::NO_CONTENT);
    }
    context.control.put_space(Space::named(&space), &by)?;
    Ok(StatusCode::CREATED)
}

/// Deletes a space with all it holds; its connections are closed.
#[utoipa::path(delete, path = "/api/v1/spaces/{space}", tag = "node", params(("space" = String, Path)), responses(
    (status = 204, description = "deleted"), (status = 404, body = Problem)))]
pub async fn delete_space(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts(space): PathParts<String>,
) -> Result<StatusCode, Problem> {
    context.control.delete_space(&space, &by)?;
    Ok(StatusCode::NO_CONTENT)
}

/// The spaces (virtual hosts) there are.
#[utoipa::path(get, path = "/api/v1/spaces", tag = "node", responses((status = 200, body = [String])))]
pub async fn spaces(State(context): State<ApiContext>) -> Json<Vec<Arc<str>>> {
    Json(context.sources.broker.vhosts().iter().map(|vhost| vhost.name().clone()).collect())
}
