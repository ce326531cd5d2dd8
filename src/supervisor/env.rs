//! The environment of an instance: what reactor injects, what the definition adds, `${NAME}` expansion, and the masked view.

use crate::model::service::{InstanceName, ServiceName};
use std::sync::Arc;

/// Which instance of which service, as its connections and telemetry are named.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    pub space: Arc<str>,
    pub service: ServiceName,
    /// `greeter-1`: also the user in its `AMQP_URL`.
    pub instance: InstanceName,
}

/// How a process reaches this reactor. Given by wiring, asked at every start, when the listeners are bound.
pub trait Doors: Send + Sync {
    fn connections(&self) -> Connections;
    /// The password of the user `identity.instance` in `AMQP_URL`, valid in its space until [`Doors::revoke`].
    fn token(&self, identity: &Identity) -> String;
    /// The instance is gone for good (removed or scaled down).
    fn revoke(&self, identity: &Identity);
}

/// Addresses as `host:port`; `None` where the door is off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    pub amqp: Option<String>,
    pub otlp_http: Option<String>,
    pub gateway: Option<String>,
    pub control: Option<String>,
}
