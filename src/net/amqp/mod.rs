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
#[cfg(test)]
mod tests;
mod transport;
mod writer;

use crate::access::Access;
use crate::broker::Broker;
use crate::kernel::{Clock, Drain};
use crate::wire::amqp::SessionConfig;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

pub use transport::Transport;

/// What every AMQP connection shares.
pub struct AmqpContext {
    pub broker: Arc<Broker>,
    pub access: Arc<Access>,
    pub clock: Clock,
    /// When it begins, connections are closed with 320; when it is cut, they are dropped.
    pub drain: Drain,
    pub session: Arc<SessionConfig>,
}

/// Serves one connection until it closes or drain ends it. Bytes that a sniffer has read are part of `stream`.
///
/// All that a connection at rest needs is in this one box: many connections rest.
pub fn serve<S: Transport>(stream: S, peer: SocketAddr, context: Arc<AmqpContext>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let mut connection = connection::Connection::new(stream, peer, context);
    // By reference to what the block holds already: a parameter of an `async fn` would be there twice.
    Box::pin(async move { connection.run().await })
}
