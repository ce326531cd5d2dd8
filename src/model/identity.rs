//! Who is acting, and what they may do. `access` makes principals; engines only ask them.

use super::service::{InstanceName, ServiceName};
use crate::kernel::pattern::Pattern;
use arc_swap::ArcSwap;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct Principal {
    pub user: Arc<str>,
    /// `administrator`, `monitoring`, …: what the management doors go by.
    pub tags: Arc<[String]>,
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

impl Action {
    pub fn as_str(self) -> &'static str {
        match self {
            Action::Configure => "configure",
            Action::Write => "write",
            Action::Read => "read",
        }
    }
}

/// What a principal may do in the space it is in.
#[derive(Clone, Debug)]
pub enum Permissions {
    All,
    None,
    /// By name; `access` changes the rules under a connection that is open. Who remembers an answer drops it when the space's
    /// topology generation moves, which it does after such a change.
    Rules(Arc<ArcSwap<Rules>>),
}

/// Permissions of one user in one space.
#[derive(Clone, Debug, PartialEq)]
pub enum Rules {
    All,
    None,
    Patterns(Box<Patterns>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Patterns {
    pub configure: Pattern,
    pub write: Pattern,
    pub read: Pattern,
    /// By topic exchange: keys to publish with, and keys to bind with. Others are not restricted.
    pub topics: HashMap<String, TopicPatterns>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TopicPatterns {
    pub write: Pattern,
    pub read: Pattern,
}

impl Principal {
    pub fn new(user: &str, permissions: Permissions) -> Self {
        Principal { user: user.into(), tags: Arc::default(), instance: None, permissions }
    }

    /// A supervised instance, under its own name.
    pub fn of_instance(identity: Arc<InstanceIdentity>) -> Self {
        let user = identity.instance.clone();
        Principal { user, tags: Arc::default(), instance: Some(identity), permissions: Permissions::All }
    }

    /// The runtime itself: publishes calls as `reactor.gateway`, a user nobody can log in as.
    pub fn gateway() -> Self {
        Principal::new("reactor.gateway", Permissions::All)
    }

    /// The configuration file: what it defines is changed in its name.
    pub fn configuration() -> Self {
        Principal::new("configuration", Permissions::All)
    }

    pub fn tagged(self, tags: &[String]) -> Self {
        Principal { tags: tags.into(), ..self }
    }

    /// The same one, with these permissions: those of the space it is about to enter.
    pub fn with(self, permissions: Permissions) -> Self {
        Principal { permissions, ..self }
    }

    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    pub fn permissions(&self) -> &Permissions {
        &self.permissions
    }

    /// Whether its messages may carry another user's name (RabbitMQ's tag `impersonator`).
    pub fn may_impersonate(&self) -> bool {
        self.has_tag("impersonator")
    }

    /// Whether `action` on the queue or exchange `name` is allowed. The default exchange is called `amq.default` here.
    pub fn may(&self, action: Action, name: &str) -> bool {
        match &self.permissions {
            Permissions::All => true,
            Permissions::None => false,
            Permissions::Rules(rules) => rules.load().may(action, name),
        }
    }

    /// Whether `action` on the topic exchange `exchange` is allowed with the routing key `key`.
    pub fn may_topic(&self, action: Action, exchange: &str, key: &str) -> bool {
        match &self.permissions {
            Permissions::All => true,
            Permissions::None => false,
            Permissions::Rules(rules) => rules.load().may_topic(action, exchange, key),
        }
    }
}

impl Rules {
    fn may(&self, action: Action, name: &str) -> bool {
        match self {
            Rules::All => true,
            Rules::None => false,
            Rules::Patterns(patterns) => match action {
                Action::Configure => patterns.configure.is_match(name),
                Action::Write => patterns.write.is_match(name),
                Action::Read => patterns.read.is_match(name),
            },
        }
    }

    fn may_topic(&self, action: Action, exchange: &str, key: &str) -> bool {
        match self {
            Rules::All => true,
            Rules::None => false,
            Rules::Patterns(patterns) => match (patterns.topics.get(exchange), action) {
                (Some(topic), Action::Write) => topic.write.is_match(key),
                (Some(topic), Action::Read) => topic.read.is_match(key),
                (None, _) | (_, Action::Configure) => true,
            },
        }
    }
}
