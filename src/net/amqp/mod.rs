//! The AMQP 0-9-1 door: one task a connection, over any stream that a listener hands in.
//!
//! ```text
//!   readable ─► Session ─► events ─► broker::Client ─► flush ─┐
//!   signal (somebody wrote into our outbox) ──────────────────┼─► Writer: outbox ─► socket
//!   time (heartbeats, handshake) ─────────────────────────────┘
//! ```
//!
//! Knows frames only through `wire::amqp` and messages only through [`crate::broker`]; owns the socket, the login and the mapping
//! of refusals to reply codes. A connection at rest holds no buffer.

mod connection;
mod dispatch;
mod frames;
mod login;
mod transport;
mod writer;

use crate::access::Access;
use crate::broker::Broker;
use crate::kernel::{Clock, Drain};
use crate::wire::amqp::SessionConfig;
use std::net::SocketAddr;
use std::sync::Arc;

pub use transport::Transport;

/// What every AMQP connection shares.
pub struct AmqpContext {
    pub broker: Arc<Broker>,
    pub access: Arc<Access>,
    pub clock: Clock,
    /// When it begins, connections are closed with 320; when it is cut, they are dropped.
    pub drain: Drain,
    pub session: SessionConfig,
}

/// Serves one connection until it closes or drain ends it. Bytes that a sniffer has read are part of `stream`.
pub async fn serve<S: Transport>(stream: S, peer: SocketAddr, context: Arc<AmqpContext>) {
    let connection = connection::Connection::new(stream, peer, context);
    // The state of a connection is large and moves no more once it is boxed.
    Box::pin(connection.run()).await;
}
