//! This process: its version and its ports.

use crate::api::ApiContext;
use crate::api::view::{Door, Version};
use axum::Json;
use axum::extract::State;

/// What runs here.
#[utoipa::path(get, path = "/api/v1/version", tag = "node", responses((status = 200, body = Version)))]
pub async fn version(State(context): State<ApiContext>) -> Json<Version> {
    Json(Version { name: "reactor", version: env!("CARGO_PKG_VERSION"), ui: context.ui.kind() })
}

/// Every port: what it speaks, where it listens or why it does not.
#[utoipa::path(get, path = "/api/v1/ports", tag = "node", responses((status = 200, body = [Door])))]
pub async fn ports(State(context): State<ApiContext>) -> Json<Vec<Door>> {
    Json(context.ports.ports())
}
