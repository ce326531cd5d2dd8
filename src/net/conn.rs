//! Accept loops: from a bound socket to a running connection task.
//!
//! Each accepted stream takes one permit of the process-wide connection limit and gives it back when its task ends. Beyond the
//! limit a stream is closed at once and counted; a process out of file descriptors pauses instead of spinning.

use super::listener::Bound;
use crate::kernel::Drain;
use crate::kernel::clock::Clock;
use crate::kernel::task::Tasks;
use crate::model::door::Door;
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::topology::DEFAULT_SPACE;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// Pause after a failed accept (out of descriptors or memory), so that the loop does not burn a core.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// At most one "turned away" happening per door in this time; the counter is exact.
const TURNED_AWAY_QUIET_NS: u64 = 10_000_000_000;

/// One stream, with where it came from and which door it came through.
#[derive(Debug)]
pub struct Accepted {
    pub stream: TcpStream,
    pub peer: SocketAddr,
    pub local: SocketAddr,
    pub door: Arc<Door>,
}

/// Runs one connection to its end.
pub trait Serve: Send + Sync + 'static {
    fn serve(&self, accepted: Accepted) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

impl<F, Fut> Serve for F
where
    F: Fn(Accepted) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = ()> + Send + 'static,
{
    fn serve(&self, accepted: Accepted) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self(accepted))
    }
}

/// What all accept loops share.
#[derive(Clone)]
pub struct Acceptor {
    pub clock: Clock,
    pub drain: Drain,
    pub tasks: Tasks,
    pub permits: Arc<Semaphore>,
}

impl Acceptor {
    /// Starts one accept loop per socket of the door. They end when the drain begins.
    pub fn open(&self, bound: Bound, door: Arc<Door>, serve: Arc<dyn Serve>) -> std::io::Result<()> {
        for socket in bound.sockets {
            let listener = TcpListener::from_std(socket)?;
            let (this, door, serve) = (self.clone(), door.clone(), serve.clone());
            self.tasks.spawn("accept", async move { this.accept_loop(listener, door, serve).await });
        }
        Ok(())
    }

    async fn accept_loop(&self, listener: TcpListener, door: Arc<Door>, serve: Arc<dyn Serve>) {
        let quiet_until = AtomicU64::new(0);
        loop {
            let accepted = tokio::select! {
                () = self.drain.begun() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => self.admit(stream, peer, &door, &serve, &quiet_until),
                Err(error) => {
                    tracing::warn!(door = door.name.as_str(), %error, "could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn admit(&self, stream: TcpStream, peer: SocketAddr, door: &Arc<Door>, serve: &Arc<dyn Serve>, quiet_until: &AtomicU64) {
        let now_ns = self.clock.unix_nanos();
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            door.counts.turned_away.add(1);
            if quiet_until.load(Ordering::Relaxed) <= now_ns {
                quiet_until.store(now_ns + TURNED_AWAY_QUIET_NS, Ordering::Relaxed);
                self.tell_turned_away(door, peer, now_ns);
            }
            return;
        };
        door.counts.accept(now_ns);
        // Every protocol here batches its own writes; Nagle's delay would only add to latency.
        let _ = stream.set_nodelay(true);
        let Ok(local) = stream.local_addr() else { return };
        let running = serve.serve(Accepted { stream, peer, local, door: door.clone() });
        let door = door.clone();
        self.tasks.spawn("connection", async move {
            let _open = Open::count(door);
            running.await;
            drop(permit);
        });
    }

    fn tell_turned_away(&self, door: &Door, peer: SocketAddr, at_ns: u64) {
        let what = What::ConnectionRefused {
            door: door.name.as_str(),
            peer: peer.to_string().into(),
            reason: "limits.connections_max is reached".into(),
        };
        emit::happening(Happening { at_ns, space: DEFAULT_SPACE.into(), what });
    }
}

/// Counts a connection as open until it is dropped, also when its task panics.
struct Open(Arc<Door>);

impl Open {
    fn count(door: Arc<Door>) -> Self {
        door.counts.open.add(1);
        Open(door)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counts.open.add(-1);
    }
}
