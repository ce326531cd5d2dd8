//! Engines' snapshots as the JSON that `ui/src/api/types` describes. REST handlers and the node's sampler share it.
//!
//! Times are Unix microseconds (`_us`), durations nanoseconds (`_ns`), rates per second. What telemetry keeps has its shape in
//! `telemetry::view` and passes through unchanged.

mod board;
pub mod broker;
mod console;
pub mod journeys;
pub mod json;
pub mod messages;
mod node;
mod service;
mod state;

pub use board::{Board, InOut, QueueRate, Rates};
pub use console::{ConsoleLine, console};
pub use node::{Door, Overview, Variable, Version, doors, overview};
pub use service::{Instance, Service, services};

use crate::broker::Broker;
use crate::gateway::Gateway;
use crate::kernel::Clock;
use crate::model::door::Doors;
use crate::registry::Registry;
use crate::supervisor::Supervisor;
use crate::telemetry::Telemetry;
use std::sync::Arc;

/// The engines that views are made of. Cheap to clone.
#[derive(Clone)]
pub struct Sources {
    pub clock: Clock,
    pub registry: Arc<Registry>,
    pub broker: Arc<Broker>,
    pub gateway: Arc<Gateway>,
    pub supervisor: Arc<Supervisor>,
    pub telemetry: Arc<Telemetry>,
    pub doors: Doors,
    pub board: Arc<Board>,
    pub ui_kind: &'static str,
}

impl Sources {
    /// When this process's clock began, in Unix microseconds.
    pub fn started_us(&self) -> u64 {
        self.clock.unix_nanos_at(crate::kernel::Instant::ZERO) / 1_000
    }
}
