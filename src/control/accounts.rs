//! Users, permissions and topic permissions, as the API sees them.

use super::apply::Control;
use super::entries::Put;
use crate::access::password;
use crate::model::account::{HashingAlgorithm, Permission, TopicPermission, User, UserLimits};
use crate::model::catalog::{Entry, EntryKey};
use crate::model::identity::Principal;
use crate::model::refusal::{Refusal, RefusalKind};
use serde::Deserialize;
use std::fmt;
use utoipa::ToSchema;

/// A user as somebody asks for it: RabbitMQ's body of `PUT /api/users/NAME`.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct UserWish {
    /// Neither this nor a hash: no password opens the account.
    pub password: Option<String>,
    pub password_hash: Option<String>,
    pub hashing_algorithm: Option<HashingAlgorithm>,
    #[serde(deserialize_with = "crate::model::account::tags")]
    pub tags: Vec<String>,
    /// Those it has when absent.
    pub limits: Option<UserLimits>,
}

impl fmt::Debug for UserWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UserWish").field("tags", &self.tags).finish_non_exhaustive()
    }
}

impl UserWish {
    fn user(self, name: &str, known: Option<&User>) -> Result<User, Refusal> {
        let own = |algorithm| (String::new(), algorithm);
        let (password_hash, hashing_algorithm) = match (self.password.filter(|text| !text.is_empty()), self.password_hash) {
            (Some(_), Some(_)) => {
                let what = format!("user {name} is given both a password and a password_hash");
                return Err(Refusal::new(RefusalKind::Invalid, what).hint("Give one of them."));
            }
            (Some(password), None) => (password::hash(&password), HashingAlgorithm::default()),
            (None, Some(hash)) => (hash, self.hashing_algorithm.unwrap_or_default()),
            (None, None) => own(HashingAlgorithm::default()),
        };
        let limits = self.limits.or(known.map(|user| user.limits)).unwrap_or_default();
        Ok(User { name: name.to_owned(), password_hash, hashing_algorithm, tags: self.tags, limits })
    }
}

impl Control {
    pub fn users(&self) -> Vec<User> {
        self.catalog().users().cloned().collect()
    }

    pub fn user(&self, name: &str) -> Option<User> {
        match self.catalog().get(&EntryKey::User(name.to_owned())) {
            Some(Entry::User(user)) => Some(user.clone()),
            _ => None,
        }
    }

    /// Makes or replaces a user; what it may do stays.
    pub fn put_user(&self, name: &str, wish: UserWish, by: &Principal) -> Result<Put, Refusal> {
        let user = wish.user(name, self.user(name).as_ref())?;
        self.put_entry(Entry::User(user), by)
    }

    /// With its permissions; its connections are closed.
    pub fn delete_user(&self, name: &str, by: &Principal) -> Result<(), Refusal> {
        self.delete_entry(&EntryKey::User(name.to_owned()), by)
    }

    /// Sets or clears one limit of a user, by RabbitMQ's name of it.
    pub fn set_user_limit(&self, user: &str, limit: &str, value: Option<i64>, by: &Principal) -> Result<Put, Refusal> {
        let mut user = self.user(user).ok_or_else(|| super::check::no_user(user))?;
        match limit {
            "max-connections" => user.limits.max_connections = value,
            "max-channels" => user.limits.max_channels = value,
            other => {
                let what = format!("'{other}' is no limit of a user");
                return Err(Refusal::new(RefusalKind::Invalid, what).hint("Use max-connections or max-channels."));
            }
        }
        self.put_entry(Entry::User(user), by)
    }

    pub fn permissions(&self) -> Vec<Permission> {
        self.catalog().permissions().cloned().collect()
    }

    pub fn permission(&self, space: &str, user: &str) -> Option<Permission> {
        match self.catalog().get(&EntryKey::Permission { space: space.to_owned(), user: user.to_owned() }) {
            Some(Entry::Permission(permission)) => Some(permission.clone()),
            _ => None,
        }
    }

    pub fn put_permission(&self, permission: Permission, by: &Principal) -> Result<Put, Refusal> {
        self.put_entry(Entry::Permission(permission), by)
    }

    pub fn delete_permission(&self, space: &str, user: &str, by: &Principal) -> Result<(), Refusal> {
        self.delete_entry(&EntryKey::Permission { space: space.to_owned(), user: user.to_owned() }, by)
    }

    pub fn topic_permissions(&self) -> Vec<TopicPermission> {
        self.catalog().topic_permissions().cloned().collect()
    }

    pub fn put_topic_permission(&self, permission: TopicPermission, by: &Principal) -> Result<Put, Refusal> {
        self.put_entry(Entry::TopicPermission(permission), by)
    }

    /// Those of one exchange, or all of the user's in the space.
    pub fn delete_topic_permissions(
        &self,
        space: &str,
        user: &str,
        exchange: Option<&str>,
        by: &Principal,
    ) -> Result<(), Refusal> {
        let catalog = self.catalog();
        let own = catalog.topic_permissions().filter(|it| it.vhost == space && it.user == user);
        let keys: Vec<EntryKey> = own
            .filter(|it| exchange.is_none_or(|exchange| it.exchange == exchange))
            .map(|it| Entry::TopicPermission(it.clone()).key())
            .collect();
        if keys.is_empty() {
            let what = format!("user {user} has no topic permission in space {space}");
            return Err(Refusal::new(RefusalKind::NotFound, what));
        }
        keys.iter().try_for_each(|key| self.delete_entry(key, by))
    }
}
