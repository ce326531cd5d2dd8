//! The door of the live feed: one WebSocket, many subscriptions.
//!
//! ```text
//!   browser ──{op: subscribe, ack, unsubscribe, ping}──►  socket ──► telemetry::live::Session   (states and streams)
//!           ◄─{kind: hello, state, rows, refused, pong}──        └─► console::Consoles          (what instances print)
//! ```
//!
//! `telemetry::live` decides what is sent next; this door parses, frames, and keeps the socket honest. A delta is made only when the
//! last one of its subscription was acknowledged and is written out whole before the next is made, so a socket holds at most one
//! frame and its kernel buffers: a frozen tab costs nothing. A peer that takes no bytes, or says nothing while it is pinged, is
//! closed.

mod console;
mod frame;
mod socket;

use super::context::ApiContext;
use super::problem::Problem;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Sockets of the feed at once; 503 beyond.
const SOCKETS_MAX: usize = 512;
/// Longest frame a client may send, in bytes; the socket is closed with 1009 beyond.
const CLIENT_FRAME_BYTES_MAX: usize = 64 * 1024;

/// Counts the open sockets.
#[derive(Clone, Debug)]
pub struct LiveSockets(Arc<Semaphore>);

impl Default for LiveSockets {
    fn default() -> Self {
        LiveSockets(Arc::new(Semaphore::new(SOCKETS_MAX)))
    }
}

/// The live feed: a WebSocket that carries JSON text frames, described in `ui/src/api/types`.
#[utoipa::path(get, path = "/api/v1/live", tag = "live", responses(
    (status = 101, description = "the feed begins with a `hello` frame"),
    (status = 400, description = "not a WebSocket handshake", body = Problem),
    (status = 503, description = "too many feeds are open", body = Problem)))]
pub async fn live(
    State(context): State<ApiContext>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let upgrade = upgrade.map_err(|rejection| {
        Problem::invalid(format!("this is a WebSocket: {}", rejection.body_text()))
            .next("connect with ws://, or read /api/v1/overview")
    })?;
    let permit = context.live_sockets.0.clone().try_acquire_owned().map_err(|_| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, format!("{SOCKETS_MAX} live feeds are open")).next("close a dashboard")
    })?;
    let upgrade = upgrade.max_message_size(CLIENT_FRAME_BYTES_MAX).max_frame_size(CLIENT_FRAME_BYTES_MAX).write_buffer_size(0);
    Ok(upgrade
        .on_upgrade(async move |socket| {
            // A task of its own, so that shutdown knows of it and waits.
            let tasks = context.tasks.clone();
            let _ = tasks.spawn("live", socket::run(socket, context)).await;
            drop(permit);
        })
        .into_response())
}
