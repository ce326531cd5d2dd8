//! Floor 5, a door: what the `control` port answers. REST under `/api/v1` with its OpenAPI document, the live feed, `/healthz` and
//! the dashboard.
//!
//! [`router`] builds it all from an [`ApiContext`]; `net::web` serves it. Handlers read engines' snapshots and shape them by
//! [`view`], which the node's sampler uses too, so that REST and live feed never disagree. Every request passes `guard` first (Host, Origin, login); every refusal is `application/problem+json`.
//!
//! [`management`] is another port's: RabbitMQ's own management API and its metrics.
//!
//! Knows nothing of sockets being bound, of AMQP or of configuration.

mod aside;
mod context;
mod guard;
mod health;
mod live;
pub mod management;
mod openapi;
mod params;
mod problem;
mod routes;
mod ui;
mod v1;
pub mod view;

pub use context::{ApiContext, Ready};
pub use live::LiveSockets;
pub use openapi::document;
pub use routes::router;
pub use ui::Ui;
pub use v1::journeys::Followed;
