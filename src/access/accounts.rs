//! Accounts as they stand, and what they mean for one user in one space: compiled once a space is entered, exchanged under the
//! connections that are open when accounts change.

use super::login::Access;
use crate::kernel::pattern::Pattern;
use crate::model::account::UserLimits;
use crate::model::catalog::Accounts;
use crate::model::config::AccessMode;
use crate::model::identity::{Patterns, Permissions, Principal, Rules, TopicPatterns};
use crate::model::refusal::{Refusal, RefusalKind};
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Rules that connections hold, by user and space.
#[derive(Debug, Default)]
pub(super) struct Held(Mutex<HashMap<UserAndSpace, Weak<ArcSwap<Rules>>>>);

type UserAndSpace = (Arc<str>, Arc<str>);

impl Access {
    /// From now on these accounts count, also for connections that are open. Remembered answers are the caller's to drop.
    pub fn set_accounts(&self, accounts: Accounts) {
        let accounts = Arc::new(accounts);
        self.accounts.store(accounts.clone());
        let mut held = self.held.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|(user, space), rules| match rules.upgrade() {
            Some(rules) => {
                rules.store(Arc::new(self.rules(&accounts, user, space)));
                true
            }
            None => false,
        });
    }

    /// Lets a principal into a space: with the permissions it has there, or not at all.
    pub fn enter(&self, principal: Principal, space: &str) -> Result<Principal, Refusal> {
        let refuse = || {
            let what = format!("access to vhost '{space}' refused for user '{}'", principal.user);
            Err(Refusal::new(RefusalKind::Forbidden, what).hint("Give the user permissions there."))
        };
        match (&principal.instance, principal.permissions()) {
            (Some(identity), _) if *identity.space != *space => refuse(),
            (Some(_), _) | (None, Permissions::All) => Ok(principal),
            (None, Permissions::None | Permissions::Rules(_)) => {
                let rules = self.held_rules(&principal.user, space);
                if **rules.load() == Rules::None {
                    return refuse();
                }
                Ok(principal.with(Permissions::Rules(rules)))
            }
        }
    }

    /// What the user may have open at once.
    pub fn limits(&self, user: &str) -> UserLimits {
        self.accounts.load().users.get(user).map(|user| user.limits).unwrap_or_default()
    }

    /// Whether the user has any business in the space, so that it may be shown there.
    pub fn may_enter(&self, principal: &Principal, space: &str) -> bool {
        self.enter(principal.clone(), space).is_ok()
    }

    /// One value for all connections of a user to a space.
    fn held_rules(&self, user: &Arc<str>, space: &str) -> Arc<ArcSwap<Rules>> {
        let mut held = self.held.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (user.clone(), Arc::from(space));
        if let Some(rules) = held.get(&key).and_then(Weak::upgrade) {
            return rules;
        }
        let rules = Arc::new(ArcSwap::from_pointee(self.rules(&self.accounts.load(), user, space)));
        // Those of connections that ended go now and then, so that the map grows with what is open only.
        if held.len() == held.capacity() {
            held.retain(|_, rules| rules.strong_count() > 0);
        }
        held.insert(key, Arc::downgrade(&rules));
        rules
    }

    fn rules(&self, accounts: &Accounts, user: &str, space: &str) -> Rules {
        if !accounts.users.contains_key(user) {
            return Rules::None;
        }
        let Some(permission) = accounts.permissions.iter().find(|it| it.user == user && it.vhost == space) else {
            // Nobody sets up permissions before the first answer: where none are written down, guest may do everything.
            let is_free = self.mode() == AccessMode::Dev && user == super::login::GUEST;
            return if is_free { Rules::All } else { Rules::None };
        };
        let own_topics = accounts.topic_permissions.iter().filter(|it| it.user == user && it.vhost == space);
        let topics: HashMap<String, TopicPatterns> = own_topics
            .map(|it| {
                let pattern = |text: &str| compiled(&text.replace("{username}", user).replace("{vhost}", space));
                let exchange = if it.exchange.is_empty() { "amq.default".to_owned() } else { it.exchange.clone() };
                (exchange, TopicPatterns { write: pattern(&it.write), read: pattern(&it.read) })
            })
            .collect();
        let everything = [&permission.configure, &permission.write, &permission.read].iter().all(|text| *text == ".*");
        if everything && topics.is_empty() {
            return Rules::All;
        }
        let (configure, write, read) = (compiled(&permission.configure), compiled(&permission.write), compiled(&permission.read));
        Rules::Patterns(Box::new(Patterns { configure, write, read, topics }))
    }
}

/// Patterns were checked when they were put; one that a variable broke matches nothing.
fn compiled(text: &str) -> Pattern {
    Pattern::permission(text).or_else(|_| Pattern::new("^$")).expect("the second is a pattern")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Login;
    use crate::model::account::{Permission, TopicPermission, User};
    use crate::model::config::AccessSettings;
    use crate::model::identity::Action;

    fn access(mode: AccessMode) -> Access {
        Access::new(&AccessSettings { mode, token: Some("secret".into()), ..AccessSettings::default() })
    }

    fn accounts(configure: &str, write: &str, read: &str) -> Accounts {
        let user = User { name: "ann".into(), password_hash: super::super::password::hash("pass"), ..User::default() };
        let permission = Permission {
            user: "ann".into(),
            vhost: "/".into(),
            configure: configure.into(),
            write: write.into(),
            read: read.into(),
        };
        Accounts { users: [("ann".into(), user)].into(), permissions: vec![permission], topic_permissions: Vec::new() }
    }

    fn ann(access: &Access) -> Principal {
        let peer = "10.0.0.1".parse().expect("an address");
        access.login(Login { mechanism: "PLAIN", user: "ann", password: "pass", peer }).expect("admitted")
    }

    #[test]
    fn a_user_may_do_what_its_patterns_say_in_the_spaces_it_has_some() {
        let access = access(AccessMode::Required);
        access.set_accounts(accounts("^own", "^(own|amq\\.default)", ""));
        let ann = ann(&access);
        assert!(!ann.may(Action::Write, "own"), "nothing before a space is entered");
        assert!(access.enter(ann.clone(), "staging").is_err());
        let ann = access.enter(ann, "/").expect("has permissions there");
        assert!(ann.may(Action::Configure, "own.queue") && ann.may(Action::Write, "amq.default"));
        assert!(!ann.may(Action::Configure, "other") && !ann.may(Action::Read, "own"));
    }

    #[test]
    fn changes_reach_those_who_are_in_already() {
        let access = access(AccessMode::Required);
        access.set_accounts(accounts("", "", ".*"));
        let ann = access.enter(ann(&access), "/").expect("in");
        assert!(ann.may(Action::Read, "q") && !ann.may(Action::Write, "q"));
        access.set_accounts(accounts("", ".*", ""));
        assert!(!ann.may(Action::Read, "q") && ann.may(Action::Write, "q"));
        access.set_accounts(Accounts::default());
        assert!(!ann.may(Action::Write, "q"));
    }

    #[test]
    fn topic_permissions_restrict_their_exchange_only_and_know_the_user() {
        let access = access(AccessMode::Required);
        let topic = TopicPermission {
            user: "ann".into(),
            vhost: "/".into(),
            exchange: "events".into(),
            write: "^{username}\\.".into(),
            read: "^{vhost}".into(),
        };
        access.set_accounts(Accounts { topic_permissions: vec![topic], ..accounts(".*", ".*", ".*") });
        let ann = access.enter(ann(&access), "/").expect("in");
        assert!(ann.may_topic(Action::Write, "events", "ann.created") && !ann.may_topic(Action::Write, "events", "bob.created"));
        assert!(ann.may_topic(Action::Read, "events", "/x") && !ann.may_topic(Action::Read, "events", "x"));
        assert!(ann.may_topic(Action::Write, "other", "bob.created"));
    }

    #[test]
    fn guest_needs_no_permissions_in_dev_mode_and_obeys_those_it_has() {
        let access = access(AccessMode::Dev);
        let guest = User { name: "guest".into(), password_hash: super::super::password::hash("guest"), ..User::default() };
        let permission = Permission { user: "guest".into(), vhost: "strict".into(), ..Permission::default() };
        let accounts = Accounts { users: [("guest".into(), guest)].into(), permissions: vec![permission], ..Accounts::default() };
        access.set_accounts(accounts);
        let login = Login { mechanism: "PLAIN", user: "guest", password: "guest", peer: "::1".parse().expect("an address") };
        let guest = access.login(login).expect("admitted");
        assert!(access.enter(guest.clone(), "new").expect("in").may(Action::Configure, "q"));
        assert!(!access.enter(guest, "strict").expect("in").may(Action::Configure, "q"));
    }
}
