//! What the API, the sampler and the dashboard see of supervised services. Plain copies, taken under no lock that a process
//! could hold.

use super::core::State;
use crate::model::service::{InstanceName, InstanceState, ServiceName};
use std::net::SocketAddr;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct ServiceView {
    pub name: ServiceName,
    pub space: Arc<str>,
    pub command: Arc<str>,
    pub depends_on: Vec<ServiceName>,
    /// The worst of its instances.
    pub state: InstanceState,
    /// Why, in words; empty when ready.
    pub reason: Arc<str>,
    pub instances: Vec<InstanceView>,
}

#[derive(Clone, Debug)]
pub struct InstanceView {
    pub name: InstanceName,
    pub state: InstanceState,
    pub reason: Arc<str>,
    /// Of the program itself, not of the guard that watches over it.
    pub pid: Option<u32>,
    /// `PORT`, whether or not it listens there.
    pub port: Option<u16>,
    pub http: Option<SocketAddr>,
    pub restart_count: u32,
    /// When the state was entered, Unix nanoseconds.
    pub since_ns: u64,
    /// The last start, for the start-up waterfall.
    pub started: Option<StartTimes>,
    /// Of the whole process tree, in cores (1.0 is one core busy); `None` while nothing runs.
    pub cpu_share: Option<f64>,
    pub memory_bytes: Option<u64>,
    pub process_count: u32,
    pub last_line: Option<Arc<str>>,
}

/// Unix nanoseconds of the steps of one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartTimes {
    /// Wanted up; from here to `spawned_ns` it waited for its dependencies.
    pub wanted_ns: u64,
    pub spawned_ns: Option<u64>,
    pub ready_ns: Option<u64>,
}

/// One variable of an instance's environment, as people may see it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Variable {
    pub name: String,
    /// Secrets are replaced by dots.
    pub value: String,
    pub origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Set by reactor: ports, connection variables, names.
    Injected,
    /// From `env` in the definition.
    Definition,
}

/// The steps of the last start, as far as they are done. `before` is the state shown until now.
pub(super) fn start_times(known: Option<StartTimes>, before: InstanceState, state: &State, now_ns: u64) -> Option<StartTimes> {
    let starting = state.shown() == InstanceState::Starting;
    let fresh = StartTimes { wanted_ns: now_ns, spawned_ns: None, ready_ns: None };
    let mut times = if starting && before != InstanceState::Starting { fresh } else { known? };
    if state.pid().is_some() {
        times.spawned_ns.get_or_insert(now_ns);
    }
    if matches!(state, State::Ready(_)) {
        times.ready_ns.get_or_insert(now_ns);
    }
    Some(times)
}
