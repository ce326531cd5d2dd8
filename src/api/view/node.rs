//! The process itself.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Version {
    pub name: &'static str,
    pub version: &'static str,
    /// `built`, or `fallback` where the binary carries no dashboard.
    pub ui: &'static str,
}

/// A port under its name in `[ports]`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Door {
    pub name: String,
    pub speaks: String,
    pub address: Option<String>,
    /// `off`, `listening`, or why not.
    pub state: String,
    /// Connections accepted since the start.
    pub accepted: u64,
    /// When the last one was accepted.
    pub last_us: Option<u64>,
}
