//! What the handlers stand on.

use super::samples::Samples;
use crate::access::Access;
use crate::api::view::Sources;
use crate::broker::{Broker, Vhost};
use crate::control::Control;
use crate::kernel::Clock;
use crate::model::config::PortName;
use crate::model::door::Doors;
use std::path::PathBuf;
use std::sync::Arc;

/// Everything this API reads and asks. Cheap to clone.
#[derive(Clone)]
pub struct ManagementContext {
    pub clock: Clock,
    pub access: Arc<Access>,
    pub control: Arc<Control>,
    pub broker: Arc<Broker>,
    pub doors: Doors,
    pub samples: Arc<Samples>,
    pub facts: Arc<Facts>,
}

/// What does not change while the process runs.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// `rabbit@HOST`
    pub node: String,
    pub data_dir: Option<PathBuf>,
    pub config_file: Option<PathBuf>,
    /// Sockets over all doors.
    pub connections_max: u64,
    pub open_files_max: Option<u64>,
    pub heartbeat_s: u64,
    /// When the certificate of the TLS doors ends, in Unix seconds, where that is known.
    pub certificate_ends_s: Option<u64>,
}

impl ManagementContext {
    pub fn new(sources: &Sources, access: Arc<Access>, control: Arc<Control>, samples: Arc<Samples>, facts: Facts) -> Self {
        ManagementContext {
            clock: sources.clock.clone(),
            access,
            control,
            broker: sources.broker.clone(),
            doors: sources.doors.clone(),
            samples,
            facts: Arc::new(facts),
        }
    }

    pub fn node(&self) -> &str {
        &self.facts.node
    }

    pub fn vhost(&self, space: &str) -> Option<Arc<Vhost>> {
        self.broker.vhost(space)
    }

    pub fn uptime_ms(&self) -> u64 {
        self.clock.now().as_nanos() / 1_000_000
    }

    pub fn port(&self, name: PortName) -> Option<u16> {
        self.doors.iter().find(|door| door.name == name).and_then(|door| door.port())
    }
}
