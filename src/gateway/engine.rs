//! The gateway itself: what the doors call.

use super::GatewayConfig;
use super::body::GatewayBody;
use super::stats::{Stats, StatsSnapshot};
use crate::kernel::{Clock, Drain};
use crate::model::call::CallBus;
use crate::registry::Registry;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use std::net::SocketAddr;
use std::sync::Arc;

/// How the client reached us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Http,
    Https,
}

/// What is known of a client's connection.
#[derive(Clone, Debug)]
pub struct ClientConn {
    pub peer: SocketAddr,
    pub scheme: Scheme,
}

pub struct Gateway {
    config: GatewayConfig,
    bus: Arc<dyn CallBus>,
    registry: Arc<Registry>,
    clock: Clock,
    drain: Drain,
    stats: Stats,
}

impl Gateway {
    /// Starts the gateway's own task on the current runtime; it ends with `drain`.
    pub fn new(
        config: GatewayConfig,
        bus: Arc<dyn CallBus>,
        registry: Arc<Registry>,
        clock: Clock,
        drain: Drain,
    ) -> Arc<Gateway> {
        Arc::new(Gateway { config, bus, registry, clock, drain, stats: Stats::default() })
    }

    pub fn drain(&self) -> &Drain {
        &self.drain
    }

    /// Requests, failures, latencies and callers so far; counts only grow, so the sampler takes differences.
    pub fn stats(&self) -> StatsSnapshot {
        self.stats.snapshot()
    }

    /// Answers one request.
    pub async fn handle(self: Arc<Self>, _request: Request<Incoming>, _conn: Arc<ClientConn>) -> Response<GatewayBody> {
        let _ = (&self.config, &self.bus, &self.registry, &self.clock);
        let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = StatusCode::NOT_FOUND;
        response
    }
}
