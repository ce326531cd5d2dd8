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
use crate::model::config::CertificateLogin;
use crate::wire::amqp::SessionConfig;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

pub use transport::Transport;

/// What every AMQP connection shares.
pub struct AmqpContext {
    pub broker: Arc<Broker>,
    pub access: Arc<Access>,
    pub clock: Clock,
    /// When it begins, connections are closed with 320; when it is cut, they are dropped.
    pub drain: Drain,
    pub sessions: Sessions,
    /// What of a client's certificate is its user.
    pub certificate_login: CertificateLogin,
}

/// What is offered to clients. All connections of one kind share one value: many rest.
pub struct Sessions {
    offered: SessionConfig,
    /// Under the name it was made for: without and with SASL EXTERNAL.
    made: Mutex<Option<Made>>,
}

type Made = (Arc<str>, [Arc<SessionConfig>; 2]);

impl Sessions {
    pub fn new(offered: SessionConfig) -> Self {
        Sessions { offered, made: Mutex::default() }
    }

    fn config(&self, cluster_name: Arc<str>, external: bool) -> Arc<SessionConfig> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if made.as_ref().is_none_or(|(name, _)| *name != cluster_name) {
            let config = |external| {
                let cluster_name = cluster_name.to_string();
                Arc::new(SessionConfig { cluster_name, external, ..self.offered.clone() })
            };
            *made = Some((cluster_name.clone(), [config(false), config(true)]));
        }
        let (_, configs) = made.as_ref().expect("it was just made");
        configs[usize::from(external)].clone()
    }
}

/// Serves one connection until it closes or drain ends it. Bytes that a sniffer has read are part of `stream`.
///
/// All that a connection at rest needs is in this one box: many connections rest.
pub fn serve<S: Transport>(stream: S, peer: SocketAddr, context: Arc<AmqpContext>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let mut connection = connection::Connection::new(stream, peer, context);
    // By reference to what the block holds already: a parameter of an `async fn` would be there twice.
    Box::pin(async move { connection.run().await })
}
