//! Spaces and their limits, as the API sees them.

use super::apply::Control;
use super::check::no_space;
use super::entries::Put;
use crate::model::account::Permission;
use crate::model::catalog::{Entry, EntryKey};
use crate::model::identity::Principal;
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::space::{LIMITS_COMPONENT, LIMITS_NAME, Parameter, Space, SpaceLimits};
use serde::Serialize;
use utoipa::ToSchema;

/// The limits of one space, as RabbitMQ lists them.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct LimitsOfSpace {
    pub vhost: String,
    pub value: SpaceLimits,
}

impl Control {
    pub fn spaces(&self) -> Vec<Space> {
        self.catalog().spaces().cloned().collect()
    }

    pub fn space(&self, name: &str) -> Option<Space> {
        match self.catalog().get(&EntryKey::Space(name.to_owned())) {
            Some(Entry::Space(space)) => Some(space.clone()),
            _ => None,
        }
    }

    /// Makes a space, or changes what is said of it. As in RabbitMQ, a user who makes one may do everything in it.
    pub fn put_space(&self, space: Space, by: &Principal) -> Result<Put, Refusal> {
        let vhost = space.name.clone();
        let put = self.put_entry(Entry::Space(space), by)?;
        if put == Put::Created && self.catalog().has_user(&by.user) {
            let [configure, write, read] = [".*"; 3].map(str::to_owned);
            let user = by.user.to_string();
            self.put_permission(Permission { user, vhost, configure, write, read }, by)?;
        }
        Ok(put)
    }

    /// With all it holds; its connections are closed.
    pub fn delete_space(&self, name: &str, by: &Principal) -> Result<(), Refusal> {
        self.delete_entry(&EntryKey::Space(name.to_owned()), by)
    }

    /// The spaces that have limits.
    pub fn space_limits(&self) -> Vec<LimitsOfSpace> {
        let catalog = self.catalog();
        let limits =
            catalog.spaces().map(|space| LimitsOfSpace { value: catalog.limits(&space.name), vhost: space.name.clone() });
        limits.filter(|limits| limits.value != SpaceLimits::default()).collect()
    }

    /// Sets or clears one limit of a space, by RabbitMQ's name of it.
    pub fn set_space_limit(&self, space: &str, limit: &str, value: Option<i64>, by: &Principal) -> Result<(), Refusal> {
        let catalog = self.catalog();
        if !catalog.has_space(space) {
            return Err(no_space(space));
        }
        let mut limits = catalog.limits(space);
        match limit {
            "max-connections" => limits.max_connections = value,
            "max-queues" => limits.max_queues = value,
            other => {
                let what = format!("'{other}' is no limit of a space");
                return Err(Refusal::new(RefusalKind::Invalid, what).hint("Use max-connections or max-queues."));
            }
        }
        let (vhost, component, name) = (space.to_owned(), LIMITS_COMPONENT.to_owned(), LIMITS_NAME.to_owned());
        if limits == SpaceLimits::default() {
            let key = EntryKey::Parameter { space: vhost, component, name };
            return if catalog.contains(&key) { self.delete_entry(&key, by) } else { Ok(()) };
        }
        let value = serde_json::to_value(limits).expect("numbers are JSON");
        self.put_entry(Entry::Parameter(Parameter { vhost, component, name, value }), by).map(drop)
    }
}
