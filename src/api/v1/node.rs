//! This process: its version and its ports.

use crate::api::ApiContext;
use crate::api::view::{self, Door, Overview, Version};
use axum::Json;
use axum::extract::State;
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

/// The whole at a glance.
#[utoipa::path(get, path = "/api/v1/overview", tag = "node", responses((status = 200, body = Overview)))]
pub async fn overview(State(context): State<ApiContext>) -> Json<Overview> {
    let services = view::services(&context.sources);
    Json(view::overview(&context.sources, &services))
}

/// The spaces (virtual hosts) there are.
#[utoipa::path(get, path = "/api/v1/spaces", tag = "node", responses((status = 200, body = [String])))]
pub async fn spaces(State(context): State<ApiContext>) -> Json<Vec<Arc<str>>> {
    Json(context.sources.broker.vhosts().iter().map(|vhost| vhost.name().clone()).collect())
}
