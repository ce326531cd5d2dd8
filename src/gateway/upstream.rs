//! One instance that answers HTTP: its connections, kept for reuse, and how busy it is.
//!
//! A connection is lent to one request and comes back when the answer has been read to its end; one that is dropped before that is
//! closed, which is also how a cancelled request reaches the service.

use super::body::PassedOn;
use super::hold::is_recent;
use crate::kernel::stats::{Counter, Gauge};
use crate::kernel::task::Tasks;
use crate::kernel::{Instant, dial};
use crate::model::service::InstanceName;
use crate::registry::InstanceId;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const CONNECT_LIMIT: Duration = Duration::from_secs(2);
/// Idle connections kept per instance; further ones are closed when their answer ends.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// Idle connections are not used after this: below the 5 s after which common servers (Node, uvicorn) close theirs, so that a
/// request rarely meets a connection that is just being closed.
const IDLE_MAX: Duration = Duration::from_secs(4);
/// How long an instance that refused a connection is avoided while others are there.
const SUSPECT_FOR: Duration = Duration::from_secs(1);

/// What the pool tells the sampler.
#[derive(Debug, Default)]
pub(super) struct UpstreamStats {
    pub(super) open: Gauge,
    pub(super) opened: Counter,
}

#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) id: InstanceId,
    pub(super) name: InstanceName,
    pub(super) address: SocketAddr,
    in_flight: AtomicI64,
    /// Nanoseconds of the clock; zero when trusted.
    suspect_until: AtomicU64,
    /// When it began to refuse connections; zero when it takes them.
    refuses_since: AtomicU64,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug)]
struct Idle {
    sender: SendRequest<PassedOn>,
    since: Instant,
}

/// A connection lent to one request.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) sender: SendRequest<PassedOn>,
    /// Served a request before, so it may have been closed by the other side meanwhile.
    pub(super) reused: bool,
}

/// What dialling needs.
#[derive(Clone, Debug)]
pub(super) struct Dialler {
    pub(super) tasks: Tasks,
    pub(super) stats: Arc<UpstreamStats>,
}

impl Endpoint {
    pub(super) fn new(id: InstanceId, name: InstanceName, address: SocketAddr) -> Self {
        Endpoint {
            id,
            name,
            address,
            in_flight: AtomicI64::new(0),
            suspect_until: AtomicU64::new(0),
            refuses_since: AtomicU64::new(0),
            idle: Mutex::new(Vec::new()),
        }
    }

    /// Counts a request as in flight until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    pub(super) fn in_flight(&self) -> i64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn suspect(&self, now: Instant) {
        self.suspect_until.store((now + SUSPECT_FOR).as_nanos(), Ordering::Relaxed);
        let _ = self.refuses_since.compare_exchange(0, now.as_nanos().max(1), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// A connection was taken: whatever refused before is over.
    pub(super) fn took_connection(&self) {
        if self.refuses_since.load(Ordering::Relaxed) != 0 {
            self.refuses_since.store(0, Ordering::Relaxed);
        }
    }

    /// Whether it refuses connections, and only began to a moment ago: it may just be restarting.
    pub(super) fn refuses_since_recently(&self, now: Instant) -> bool {
        let since = self.refuses_since.load(Ordering::Relaxed);
        since != 0 && is_recent(now.since(Instant::from_nanos(since)))
    }

    pub(super) fn is_suspect(&self, now: Instant) -> bool {
        now.as_nanos() < self.suspect_until.load(Ordering::Relaxed)
    }

    /// An idle connection, the most recently used first, so that the others can grow old.
    pub(super) fn reuse(&self, now: Instant) -> Option<Lent> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|idle| !idle.sender.is_closed() && now.since(idle.since) < IDLE_MAX);
        let at = idle.iter().rposition(|idle| idle.sender.is_ready())?;
        Some(Lent { sender: idle.remove(at).sender, reused: true })
    }

    /// A new connection.
    pub(super) async fn dial(&self, dialler: &Dialler) -> io::Result<Lent> {
        let stream = dial::tcp(self.address, CONNECT_LIMIT).await?;
        let (sender, connection) = http1::Builder::new().handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let stats = dialler.stats.clone();
        stats.opened.add(1);
        stats.open.add(1);
        dialler.tasks.spawn("gateway upstream", async move {
            // Its failures reach the request that was using it.
            let _ = connection.with_upgrades().await;
            stats.open.add(-1);
        });
        Ok(Lent { sender, reused: false })
    }

    /// Takes a connection back whose answer was read to its end.
    pub(super) fn give_back(&self, sender: SendRequest<PassedOn>, now: Instant) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push(Idle { sender, since: now });
        }
    }
}

#[derive(Debug)]
pub(super) struct InFlight(Arc<Endpoint>);

impl InFlight {
    pub(super) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.0
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
