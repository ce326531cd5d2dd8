//! Engine: runs services as processes.

mod console;
mod env;
mod view;

pub use console::{Console, ConsoleLine, ConsolePage, LineKind};
pub use env::{Connections, Doors, Identity};
pub use view::{InstanceView, Origin, ServiceView, StartTimes, Variable};

use crate::kernel::{Clock, Drain};
use crate::model::refusal::Refusal;
use crate::model::service_spec::ServiceSpec;
use crate::registry::Registry;
use std::ffi::OsString;
use std::sync::Arc;

pub struct SupervisorConfig {
    /// The program and arguments that run [`guard_main`]: reactor itself with a hidden subcommand.
    pub guard: Vec<OsString>,
    pub doors: Arc<dyn Doors>,
}

/// The guard's `main`: `arguments` are those after the hidden subcommand. The process exits with what this returns.
/// Called before anything else of the program is set up: no runtime, no logging.
pub fn guard_main(_arguments: &[OsString]) -> i32 {
    0
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Start,
    Stop,
    Restart,
}

pub struct Supervisor {
    _config: SupervisorConfig,
}

impl Supervisor {
    pub fn new(config: SupervisorConfig, _registry: Arc<Registry>, _clock: Clock, _drain: Drain) -> Arc<Self> {
        Arc::new(Supervisor { _config: config })
    }

    /// Makes the running services those of `specs`: new ones start, gone ones stop, changed ones restart, unchanged ones keep
    /// their process. Nothing happens if any of them is refused. Needs a tokio runtime.
    pub fn apply(&self, _specs: Vec<ServiceSpec>) -> Result<(), Refusal> {
        Ok(())
    }

    /// To every instance of `service`, or to the one named. Returns at once; the views show the progress.
    pub fn command(&self, _service: &str, _instance: Option<&str>, _command: Command) -> Result<(), Refusal> {
        Ok(())
    }

    pub fn start(&self, service: &str) -> Result<(), Refusal> {
        self.command(service, None, Command::Start)
    }

    pub fn stop(&self, service: &str) -> Result<(), Refusal> {
        self.command(service, None, Command::Stop)
    }

    pub fn restart(&self, service: &str) -> Result<(), Refusal> {
        self.command(service, None, Command::Restart)
    }

    pub fn services(&self) -> Vec<ServiceView> {
        Vec::new()
    }

    /// Page through it with [`Console::page`], wait with [`Console::changes`].
    pub fn console(&self, _service: &str, _instance: &str) -> Option<Arc<Console>> {
        None
    }

    /// The variables reactor and the definition set for an instance, secrets masked.
    pub fn environment(&self, _service: &str, _instance: &str) -> Option<Vec<Variable>> {
        None
    }

    /// Stops everything, dependants before what they depend on; returns when no process is left. Cutting the drain kills.
    pub async fn shutdown(&self) {}
}
