//! A door: one named port as it stands, with what came through it. Kept by `net`, read by views.

use super::config::PortName;
use crate::kernel::stats::{Counter, Gauge};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[derive(Debug)]
pub struct Door {
    pub name: PortName,
    /// Where it listens; more than one when both families are bound. Empty when it does not.
    pub addresses: Vec<SocketAddr>,
    pub state: DoorState,
    pub counts: DoorCounts,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoorState {
    Listening,
    Off,
    /// Wanted but not bound, with the reason.
    Unbound(String),
}

#[derive(Debug, Default)]
pub struct DoorCounts {
    pub accepted: Counter,
    /// Closed at once because a limit was reached.
    pub turned_away: Counter,
    pub open: Gauge,
    last_ns: AtomicU64,
}

impl DoorCounts {
    pub fn accept(&self, at_ns: u64) {
        self.accepted.add(1);
        self.last_ns.store(at_ns, Ordering::Relaxed);
    }

    /// Unix nanoseconds of the last accepted connection.
    pub fn last_ns(&self) -> Option<u64> {
        Some(self.last_ns.load(Ordering::Relaxed)).filter(|at| *at > 0)
    }
}

impl Door {
    pub fn port(&self) -> Option<u16> {
        self.addresses.first().map(SocketAddr::port)
    }
}

/// All doors of the process, in the order of the port table.
pub type Doors = Arc<Vec<Arc<Door>>>;
