//! Who is acting, and what they may do. `access` makes principals; engines only ask them.

use super::service::{InstanceName, ServiceName};
use serde::Serialize;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Principal {
    pub user: Arc<str>,
    /// Raised whenever the permissions behind this principal change, so that cached answers can be dropped.
    pub version: u64,
    /// The supervised instance whose login this is; valid in its space only (service contract §7).
    pub instance: Option<Arc<InstanceIdentity>>,
    permissions: Permissions,
}

/// One instance that the supervisor started, as its connections name it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InstanceIdentity {
    pub space: Arc<str>,
    pub service: ServiceName,
    /// `greeter-1`: the user it logs in as.
    pub instance: InstanceName,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Configure,
    Write,
    Read,
}

/// What a principal may do. Pattern-based permissions join when users do; until then a login is everything or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permissions {
    All,
    None,
}

impl Principal {
    pub fn new(user: &str, permissions: Permissions) -> Self {
        Principal { user: user.into(), version: 0, instance: None, permissions }
    }

    /// A supervised instance, under its own name.
    pub fn of_instance(identity: Arc<InstanceIdentity>) -> Self {
        Principal { user: identity.instance.clone(), version: 0, instance: Some(identity), permissions: Permissions::All }
    }

    /// The runtime itself: publishes calls as `reactor.gateway`, a user nobody can log in as.
    pub fn gateway() -> Self {
        Principal::new("reactor.gateway", Permissions::All)
    }

    /// The configuration file: what it defines is changed in its name.
    pub fn configuration() -> Self {
        Principal::new("configuration", Permissions::All)
    }

    /// Whether `action` on the queue or exchange `name` (with routing key `key`, where one is given) is allowed.
    pub fn may(&self, _action: Action, _name: &str, _key: Option<&str>) -> bool {
        match self.permissions {
            Permissions::All => true,
            Permissions::None => false,
        }
    }
}
