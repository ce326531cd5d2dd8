//! The catalogue: everything that should exist and is neither queue, exchange nor binding. Entries by key, in an order in which
//! they can be made: what another needs comes before it.

use super::account::{Permission, TopicPermission, User};
use super::policy_spec::Policy;
use super::space::{GlobalParameter, LIMITS_COMPONENT, LIMITS_NAME, Parameter, Space, SpaceLimits};
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    Space(Space),
    User(User),
    Permission(Permission),
    TopicPermission(TopicPermission),
    GlobalParameter(GlobalParameter),
    Parameter(Parameter),
    Policy(Policy),
    OperatorPolicy(Policy),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKey {
    Space(String),
    User(String),
    Permission { space: String, user: String },
    TopicPermission { space: String, user: String, exchange: String },
    GlobalParameter(String),
    Parameter { space: String, component: String, name: String },
    Policy { space: String, name: String },
    OperatorPolicy { space: String, name: String },
}

impl Entry {
    pub fn key(&self) -> EntryKey {
        match self {
            Entry::Space(space) => EntryKey::Space(space.name.clone()),
            Entry::User(user) => EntryKey::User(user.name.clone()),
            Entry::Permission(it) => EntryKey::Permission { space: it.vhost.clone(), user: it.user.clone() },
            Entry::TopicPermission(it) => {
                EntryKey::TopicPermission { space: it.vhost.clone(), user: it.user.clone(), exchange: it.exchange.clone() }
            }
            Entry::GlobalParameter(it) => EntryKey::GlobalParameter(it.name.clone()),
            Entry::Parameter(it) => {
                EntryKey::Parameter { space: it.vhost.clone(), component: it.component.clone(), name: it.name.clone() }
            }
            Entry::Policy(it) => EntryKey::Policy { space: it.vhost.clone(), name: it.name.clone() },
            Entry::OperatorPolicy(it) => EntryKey::OperatorPolicy { space: it.vhost.clone(), name: it.name.clone() },
        }
    }
}

impl EntryKey {
    /// The space it belongs to; users and global parameters belong to none.
    pub fn space(&self) -> Option<&str> {
        match self {
            EntryKey::User(_) | EntryKey::GlobalParameter(_) => None,
            EntryKey::Space(space)
            | EntryKey::Permission { space, .. }
            | EntryKey::TopicPermission { space, .. }
            | EntryKey::Parameter { space, .. }
            | EntryKey::Policy { space, .. }
            | EntryKey::OperatorPolicy { space, .. } => Some(space),
        }
    }

    /// The user it belongs to.
    pub fn user(&self) -> Option<&str> {
        match self {
            EntryKey::User(user) | EntryKey::Permission { user, .. } | EntryKey::TopicPermission { user, .. } => Some(user),
            _ => None,
        }
    }

    pub fn kind(&self) -> &'static str {
        match self {
            EntryKey::Space(_) => "space",
            EntryKey::User(_) => "user",
            EntryKey::Permission { .. } => "permission",
            EntryKey::TopicPermission { .. } => "topic permission",
            EntryKey::GlobalParameter(_) => "global parameter",
            EntryKey::Parameter { .. } => "parameter",
            EntryKey::Policy { .. } => "policy",
            EntryKey::OperatorPolicy { .. } => "operator policy",
        }
    }

    /// What people call it within its space.
    pub fn name(&self) -> String {
        match self {
            EntryKey::Space(name) | EntryKey::User(name) | EntryKey::GlobalParameter(name) => name.clone(),
            EntryKey::Permission { space, user } => format!("{user} in {space}"),
            EntryKey::TopicPermission { user, exchange, .. } => format!("{user} on {exchange}"),
            EntryKey::Parameter { component, name, .. } => format!("{component} {name}"),
            EntryKey::Policy { name, .. } | EntryKey::OperatorPolicy { name, .. } => name.clone(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    entries: BTreeMap<EntryKey, Entry>,
}

/// The users' part of a catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accounts {
    pub users: BTreeMap<Arc<str>, User>,
    pub permissions: Vec<Permission>,
    pub topic_permissions: Vec<TopicPermission>,
}

/// What holds in one space.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpaceRules {
    pub space: Space,
    pub limits: SpaceLimits,
    pub policies: Vec<Policy>,
    pub operator_policies: Vec<Policy>,
}

/// Lists one kind of entry.
macro_rules! lists {
    ($($name:ident, $kind:ident, $item:ty;)*) => {
        $(pub fn $name(&self) -> impl Iterator<Item = &$item> {
            self.entries.values().filter_map(|entry| match entry {
                Entry::$kind(item) => Some(item),
                _ => None,
            })
        })*
    };
}

impl Catalog {
    lists! {
        spaces, Space, Space;
        users, User, User;
        permissions, Permission, Permission;
        topic_permissions, TopicPermission, TopicPermission;
        global_parameters, GlobalParameter, GlobalParameter;
        parameters, Parameter, Parameter;
        policies, Policy, Policy;
        operator_policies, OperatorPolicy, Policy;
    }

    pub fn get(&self, key: &EntryKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub fn contains(&self, key: &EntryKey) -> bool {
        self.entries.contains_key(key)
    }

    /// The entry that was there before.
    pub fn put(&mut self, entry: Entry) -> Option<Entry> {
        self.entries.insert(entry.key(), entry)
    }

    pub fn remove(&mut self, key: &EntryKey) -> Option<Entry> {
        self.entries.remove(key)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&EntryKey, &Entry)> {
        self.entries.iter()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&EntryKey) -> bool) {
        self.entries.retain(|key, _| keep(key));
    }

    pub fn has_space(&self, name: &str) -> bool {
        self.contains(&EntryKey::Space(name.to_owned()))
    }

    pub fn has_user(&self, name: &str) -> bool {
        self.contains(&EntryKey::User(name.to_owned()))
    }

    /// Entries that go with `of`: those of a space, or of a user.
    pub fn dependents(&self, of: &EntryKey) -> Vec<&Entry> {
        let depends = |key: &EntryKey| match of {
            EntryKey::Space(space) => key.space() == Some(space),
            EntryKey::User(user) => key.user() == Some(user),
            _ => false,
        };
        self.iter().filter(|(key, _)| *key != of && depends(key)).map(|(_, entry)| entry).collect()
    }

    pub fn accounts(&self) -> Accounts {
        Accounts {
            users: self.users().map(|user| (user.name.as_str().into(), user.clone())).collect(),
            permissions: self.permissions().cloned().collect(),
            topic_permissions: self.topic_permissions().cloned().collect(),
        }
    }

    /// Limits as set; entries that are no limits were refused before they came here.
    pub fn limits(&self, space: &str) -> SpaceLimits {
        let (space, component, name) = (space.to_owned(), LIMITS_COMPONENT.to_owned(), LIMITS_NAME.to_owned());
        match self.get(&EntryKey::Parameter { space, component, name }) {
            Some(Entry::Parameter(parameter)) => serde_json::from_value(parameter.value.clone()).unwrap_or_default(),
            _ => SpaceLimits::default(),
        }
    }

    /// What holds in `space`; `None` if there is no such space.
    pub fn rules(&self, space: &str) -> Option<SpaceRules> {
        let Some(Entry::Space(settings)) = self.get(&EntryKey::Space(space.to_owned())) else { return None };
        Some(SpaceRules {
            space: settings.clone(),
            limits: self.limits(space),
            policies: self.policies().filter(|policy| policy.vhost == space).cloned().collect(),
            operator_policies: self.operator_policies().filter(|policy| policy.vhost == space).cloned().collect(),
        })
    }
}

impl FromIterator<Entry> for Catalog {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        Catalog { entries: entries.into_iter().map(|entry| (entry.key(), entry)).collect() }
    }
}
