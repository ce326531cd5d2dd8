//! Who is acting, and what they may do. `access` makes principals; engines only ask them.

use serde::Serialize;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Principal {
    pub user: Arc<str>,
    /// Raised whenever the permissions behind this principal change, so that cached answers can be dropped.
    pub version: u64,
    permissions: Permissions,
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
        Principal { user: user.into(), version: 0, permissions }
    }

    /// The runtime itself: publishes calls as `reactor.gateway`, a user nobody can log in as.
    pub fn gateway() -> Self {
        Principal::new("reactor.gateway", Permissions::All)
    }

    /// Whether `action` on the queue or exchange `name` (with routing key `key`, where one is given) is allowed.
    pub fn may(&self, _action: Action, _name: &str, _key: Option<&str>) -> bool {
        match self.permissions {
            Permissions::All => true,
            Permissions::None => false,
        }
    }
}
