//! `/api/v1`, a file a resource. Each handler is documented where it stands.

pub mod access;
pub mod broker;
pub mod definitions;
pub mod journeys;
pub mod lists;
pub mod messages;
pub mod node;
pub mod publish;
pub mod services;
pub mod snippets;
pub mod telemetry;
pub mod topology;
