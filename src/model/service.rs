//! Services and their running copies.

use crate::kernel::name;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;
use utoipa::ToSchema;

/// A checked service name; see [`name::is_service`].
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ServiceName(Arc<str>);

impl ServiceName {
    pub fn new(text: &str) -> Option<Self> {
        name::is_service(text).then(|| ServiceName(text.into()))
    }

    /// The runtime's own parts (`gateway`, `reactor`), which no user service may claim.
    pub fn built_in(text: &'static str) -> Self {
        ServiceName(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn shared(&self) -> Arc<str> {
        self.0.clone()
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How an instance is called in views and logs: `greeter-1`, or the connection's own name.
pub type InstanceName = Arc<str>;

/// How an instance became reachable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Part of the runtime.
    BuiltIn,
    /// A process that reactor started.
    Supervised,
    /// An AMQP connection that consumes a call or event queue.
    Amqp,
    /// `reactor attach`.
    Tunnel,
    /// Known only from the telemetry it sends.
    Telemetry,
}

/// State of an instance, worst last. The shape beside it in every view follows this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum InstanceState {
    Ready,
    Starting,
    Stopping,
    Stopped,
    Detached,
    /// Runs, but its probe fails or errors are above the usual band.
    Degraded,
    /// Exited against its will, or cannot be started; waiting for its next try.
    Failing,
}
