//! What stands behind each port: from an accepted stream to the protocol's own connection code.
//!
//! Every plain door looks at the first bytes before it hands the stream on: on `bus` to choose, elsewhere to tell a client that
//! came to the wrong port where the right one is.

use super::build::{Drains, Engines};
use crate::gateway::Scheme;
use crate::kernel::{Clock, Drain};
use crate::model::config::{PortName, ProxySettings};
use crate::model::door::Doors;
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::topology::DEFAULT_SPACE;
use crate::net::bodies::Bodies;
use crate::net::web::{self, Serving, Speaks};
use crate::net::{Accepted, Serve, amqp, http, peek, proxy, tls};
use crate::wire::sniff::Sniffed;
use axum::Router;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One advice per port in this time: a client that retries does not fill the list.
const ADVICE_QUIET_NS: u64 = 5_000_000_000;

/// What all doors share.
pub struct Shared {
    pub engines: Arc<Engines>,
    pub doors: Doors,
    pub clock: Clock,
    pub drains: Drains,
    pub handshake: Duration,
    pub proxy: ProxySettings,
    /// Two bounds, so that whoever sends telemetry cannot keep the APIs from reading.
    pub api_bodies: Arc<Bodies>,
    pub otlp_bodies: Arc<Bodies>,
}

/// Serves one port.
pub struct DoorServer {
    name: PortName,
    shared: Arc<Shared>,
    quiet_until_ns: Arc<AtomicU64>,
}

impl DoorServer {
    pub fn new(name: PortName, shared: Arc<Shared>) -> Self {
        DoorServer { name, shared, quiet_until_ns: Arc::default() }
    }
}

impl Serve for DoorServer {
    fn serve(&self, accepted: Accepted) -> Served {
        let visit = Visit { name: self.name, shared: self.shared.clone(), quiet_until_ns: self.quiet_until_ns.clone() };
        Box::pin(async move {
            // In two boxes, so that the first is gone while the second runs: a connection at rest holds no more than it needs.
            let rest = Box::pin(visit.begin(accepted)).await;
            rest.await;
        })
    }
}

type Served = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Visit {
    name: PortName,
    shared: Arc<Shared>,
    quiet_until_ns: Arc<AtomicU64>,
}

impl Visit {
    /// Looks what the peer speaks, and says how to go on.
    async fn begin(self, mut accepted: Accepted) -> Served {
        let drain = self.shared.drains.of(self.name).clone();
        if self.shared.proxy.expects(self.name, accepted.peer.ip()) && !self.hear_proxy(&mut accepted, &drain).await {
            return Box::pin(std::future::ready(()));
        }
        let spoke = tokio::select! {
            spoke = peek::protocol(&accepted.stream, self.shared.handshake) => spoke,
            () = drain.begun() => None,
        };
        match spoke {
            Some(spoke) => self.go_on(accepted, spoke, drain),
            // A peer that said nothing within the limit, or left: closed without a word, there is nobody to read it.
            None => Box::pin(std::future::ready(())),
        }
    }

    fn go_on(self, accepted: Accepted, spoke: Sniffed, drain: Drain) -> Served {
        let engines = self.shared.engines.clone();
        match (self.name, spoke) {
            (PortName::Amqp | PortName::Bus, Sniffed::Amqp) => amqp::serve(accepted.stream, accepted.peer, self.amqp()),
            // An AMQP server answers garbage with the header it does speak.
            (PortName::Amqp, Sniffed::Garbage) => {
                self.advise(&accepted, spoke);
                amqp::serve(accepted.stream, accepted.peer, self.amqp())
            }
            (PortName::Amqps, Sniffed::Tls) => Box::pin(self.amqps(accepted)),
            (PortName::Http | PortName::Ingress, Sniffed::Http1 | Sniffed::Http2 | Sniffed::Garbage) => {
                Box::pin(http::serve_gateway(accepted.stream, accepted.peer, Scheme::Http, engines.gateway.clone()))
            }
            (PortName::Https, Sniffed::Tls) => Box::pin(self.https(accepted)),
            (PortName::Control, Sniffed::Http1 | Sniffed::Http2 | Sniffed::Garbage) => {
                let serving = self.serving(&engines.control, Speaks::Http1, drain);
                Box::pin(web::serve_router(accepted.stream, accepted.peer, serving))
            }
            (PortName::Management | PortName::Prometheus, Sniffed::Http1 | Sniffed::Http2 | Sniffed::Garbage) => {
                let router = if self.name == PortName::Management { &engines.management } else { &engines.prometheus };
                let serving = self.serving(router, Speaks::Http1, drain);
                Box::pin(web::serve_router(accepted.stream, accepted.peer, serving))
            }
            (PortName::Bus | PortName::OtlpGrpc | PortName::OtlpHttp, Sniffed::Http1 | Sniffed::Http2) => {
                let serving = self.serving(&engines.otlp, Speaks::Both, self.shared.drains.bus.clone());
                Box::pin(web::serve_router(accepted.stream, accepted.peer, serving))
            }
            _ => {
                let what = self.advise(&accepted, spoke);
                Box::pin(async move { peek::turn_away(accepted.stream, spoke, &what).await })
            }
        }
    }

    /// Takes whose connection a trusted load balancer brings. False if it does not say so: taken for its own, everybody would be this
    /// machine.
    async fn hear_proxy(&self, accepted: &mut Accepted, drain: &Drain) -> bool {
        let told = tokio::select! {
            told = proxy::read(&mut accepted.stream, self.shared.handshake) => told,
            () = drain.begun() => return false,
        };
        match told {
            Ok(peer) => accepted.peer = peer.unwrap_or(accepted.peer),
            Err(error) => {
                let (peer, reason) = (accepted.peer.to_string(), format!("expected a PROXY header (proxy.ports): {error}"));
                let what = What::ConnectionRefused { door: self.name.as_str(), peer: peer.into(), reason: reason.into() };
                emit::happening(Happening { at_ns: self.shared.clock.unix_nanos(), space: DEFAULT_SPACE.into(), what });
                return false;
            }
        }
        true
    }

    fn amqp(&self) -> Arc<amqp::AmqpContext> {
        self.shared.engines.amqp.clone()
    }

    async fn amqps(self, accepted: Accepted) {
        match tls::accept(&self.shared.engines.tls_amqp, accepted.stream, self.shared.handshake).await {
            Ok(stream) => amqp::serve(stream, accepted.peer, self.amqp()).await,
            Err(error) => tracing::debug!(door = self.name.as_str(), peer = %accepted.peer, %error, "TLS handshake failed"),
        }
    }

    async fn https(self, accepted: Accepted) {
        match tls::accept(&self.shared.engines.tls_http, accepted.stream, self.shared.handshake).await {
            Ok(stream) => {
                http::serve_gateway(stream, accepted.peer, Scheme::Https, self.shared.engines.gateway.clone()).await;
            }
            Err(error) => tracing::debug!(door = self.name.as_str(), peer = %accepted.peer, %error, "TLS handshake failed"),
        }
    }

    fn serving(&self, router: &Router, speaks: Speaks, drain: Drain) -> Serving {
        let bodies = match speaks {
            Speaks::Http1 => self.shared.api_bodies.clone(),
            Speaks::Both => self.shared.otlp_bodies.clone(),
        };
        Serving { router: router.clone(), speaks, header_limit: self.shared.handshake, bodies, drain }
    }

    /// Says what was seen and where that protocol is served, as a happening (at most one in a while) and for the peer.
    fn advise(&self, accepted: &Accepted, spoke: Sniffed) -> String {
        let seen = format!(
            "{} from {} came to port {} ({})",
            spoken(spoke),
            accepted.peer.ip(),
            accepted.local.port(),
            self.name.as_str()
        );
        let fix = self.fix(spoke);
        let now_ns = self.shared.clock.unix_nanos();
        let quiet_until = self.quiet_until_ns.load(Ordering::Relaxed);
        if now_ns >= quiet_until {
            self.quiet_until_ns.store(now_ns + ADVICE_QUIET_NS, Ordering::Relaxed);
            let what = What::Advice { seen: seen.clone().into(), fix: fix.clone().into() };
            emit::happening(Happening { at_ns: now_ns, space: DEFAULT_SPACE.into(), what });
        }
        format!("{seen}. {fix}")
    }

    fn fix(&self, spoke: Sniffed) -> String {
        let right: &[PortName] = match (self.name, spoke) {
            (_, Sniffed::Amqp) if self.name == PortName::Amqps => &[PortName::Amqp],
            (_, Sniffed::Amqp) => &[PortName::Amqp, PortName::Bus],
            (PortName::Amqp | PortName::Bus, Sniffed::Tls) => &[PortName::Amqps],
            (_, Sniffed::Tls) => &[PortName::Https],
            (PortName::Https, Sniffed::Http1 | Sniffed::Http2) => &[PortName::Https, PortName::Http, PortName::Ingress],
            (_, Sniffed::Http1 | Sniffed::Http2) => &[PortName::Http, PortName::Ingress, PortName::Control],
            (_, Sniffed::Garbage | Sniffed::NeedMore) => &[],
        };
        let places: Vec<String> = right
            .iter()
            .filter_map(|name| self.shared.doors.iter().find(|door| door.name == *name))
            .filter_map(|door| Some(format!("{} on port {}", door.name.speaks(), door.port()?)))
            .collect();
        match places.is_empty() {
            false => format!("Use {}.", places.join(", or ")),
            true => format!("This port speaks: {}.", self.name.speaks()),
        }
    }
}

fn spoken(spoke: Sniffed) -> &'static str {
    match spoke {
        Sniffed::Amqp => "an AMQP client",
        Sniffed::Http1 => "an HTTP client",
        Sniffed::Http2 => "an HTTP/2 client",
        Sniffed::Tls => "a TLS client",
        Sniffed::Garbage | Sniffed::NeedMore => "an unknown protocol",
    }
}
