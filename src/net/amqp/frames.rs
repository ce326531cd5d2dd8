//! `REACTOR_TRACE=amqp`: every frame of a connection as one line in the log, `>` from the peer and `<` to it.

use crate::wire::trace::{AMQP_TARGET, Tracer};
use std::net::SocketAddr;
use tracing::Level;

/// One direction of one connection.
#[derive(Debug)]
pub(super) struct FrameLog {
    tracer: Tracer,
    peer: SocketAddr,
    mark: char,
}

impl FrameLog {
    /// Nothing unless somebody listens: the test is made once a connection.
    pub fn from_peer(peer: SocketAddr) -> Option<Box<Self>> {
        Self::new(peer, '>')
    }

    pub fn to_peer(peer: SocketAddr) -> Option<Box<Self>> {
        Self::new(peer, '<')
    }

    fn new(peer: SocketAddr, mark: char) -> Option<Box<Self>> {
        let wanted = tracing::enabled!(target: AMQP_TARGET, Level::TRACE);
        wanted.then(|| Box::new(FrameLog { tracer: Tracer::new(), peer, mark }))
    }

    pub fn pass(&mut self, bytes: &[u8]) {
        let (peer, mark) = (self.peer, self.mark);
        self.tracer.pass(bytes, |line| tracing::trace!(target: AMQP_TARGET, %peer, "{mark} {line}"));
    }
}
