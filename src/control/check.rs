//! Check: whether an entry of the catalogue may stand as it is written. No effects.

use super::{parameters, policies};
use crate::access::password;
use crate::kernel::limit::SHORT_STRING_BYTES_MAX;
use crate::kernel::pattern::Pattern;
use crate::model::account::{Permission, TopicPermission, User};
use crate::model::catalog::{Catalog, Entry};
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::space::Space;

/// Names under this prefix are the runtime's own.
const RESERVED_USERS: &str = "reactor.";
/// What a queue may be when its declaration does not say.
const QUEUE_TYPES: [&str; 3] = ["classic", "quorum", "stream"];
/// Tags of a user or a space, and bytes of each.
const TAGS_MAX: usize = 64;

/// `after` is the catalogue with the entry, and all it comes with, in it.
pub(super) fn entry(entry: &Entry, after: &Catalog) -> Result<(), Refusal> {
    match entry {
        Entry::Space(space) => check_space(space),
        Entry::User(user) => check_user(user),
        Entry::Permission(it) => check_permission(it, after),
        Entry::TopicPermission(it) => check_topic_permission(it, after),
        Entry::GlobalParameter(it) => name("global parameter", &it.name),
        Entry::Parameter(it) => {
            in_space(&it.vhost, "parameter", &it.name, after)?;
            parameters::check(it)
        }
        Entry::Policy(policy) => {
            in_space(&policy.vhost, "policy", &policy.name, after)?;
            policies::check(policy)
        }
        Entry::OperatorPolicy(policy) => {
            in_space(&policy.vhost, "operator policy", &policy.name, after)?;
            policies::check_operator(policy)
        }
    }
}

fn name(kind: &str, name: &str) -> Result<(), Refusal> {
    match name.len() {
        0 => Err(Refusal::new(RefusalKind::Invalid, format!("a {kind} has no name")).hint("Give it one.")),
        1..=SHORT_STRING_BYTES_MAX => Ok(()),
        bytes => {
            Err(Refusal::new(RefusalKind::Invalid, format!("the name of a {kind} has {bytes} bytes")).hint("Use at most 255."))
        }
    }
}

fn check_tags(kind: &str, of: &str, tags: &[String]) -> Result<(), Refusal> {
    if tags.len() > TAGS_MAX {
        let what = format!("{kind} {of} has {} tags, more than {TAGS_MAX}", tags.len());
        return Err(Refusal::new(RefusalKind::TooLarge, what));
    }
    tags.iter().try_for_each(|tag| name("tag", tag))
}

fn in_space(space: &str, kind: &str, of: &str, after: &Catalog) -> Result<(), Refusal> {
    name(kind, of)?;
    match after.has_space(space) {
        true => Ok(()),
        false => Err(no_space(space)),
    }
}

pub(super) fn no_space(space: &str) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("there is no space {space}")).hint("Create the space first.")
}

pub(super) fn no_user(user: &str) -> Refusal {
    Refusal::new(RefusalKind::NotFound, format!("there is no user {user}")).hint("Create the user first.")
}

fn check_space(space: &Space) -> Result<(), Refusal> {
    name("space", &space.name)?;
    check_tags("space", &space.name, &space.tags)?;
    match space.default_queue_type.as_deref() {
        Some(kind) if !QUEUE_TYPES.contains(&kind) => {
            let what = format!("space {} has the default queue type '{kind}'", space.name);
            Err(Refusal::new(RefusalKind::Invalid, what).hint("Use classic, quorum or stream."))
        }
        _ => Ok(()),
    }
}

fn check_user(user: &User) -> Result<(), Refusal> {
    name("user", &user.name)?;
    if user.name.starts_with(RESERVED_USERS) {
        let what = format!("user {} begins with {RESERVED_USERS}, which is reserved", user.name);
        return Err(Refusal::new(RefusalKind::Invalid, what).hint("Choose another name."));
    }
    check_tags("user", &user.name, &user.tags)?;
    if user.password_hash.is_empty() || password::is_hash(&user.password_hash, user.hashing_algorithm) {
        return Ok(());
    }
    let what = format!("user {} has a password hash that is not one of its hashing algorithm", user.name);
    Err(Refusal::new(RefusalKind::Invalid, what)
        .hint("It is base64 of 4 bytes of salt and the hash of salt and password; hashing_algorithm says by which."))
}

fn must_exist(user: &str, space: &str, after: &Catalog) -> Result<(), Refusal> {
    if !after.has_user(user) {
        return Err(no_user(user));
    }
    if after.has_space(space) { Ok(()) } else { Err(no_space(space)) }
}

fn check_permission(it: &Permission, after: &Catalog) -> Result<(), Refusal> {
    must_exist(&it.user, &it.vhost, after)?;
    let of = format!("of user {} in space {}", it.user, it.vhost);
    [("configure", &it.configure), ("write", &it.write), ("read", &it.read)]
        .into_iter()
        .try_for_each(|(action, text)| pattern(text, || format!("the {action} permission {of}")))
}

fn check_topic_permission(it: &TopicPermission, after: &Catalog) -> Result<(), Refusal> {
    must_exist(&it.user, &it.vhost, after)?;
    if it.exchange.len() > SHORT_STRING_BYTES_MAX {
        return name("exchange", &it.exchange);
    }
    let of = format!("of user {} on exchange {} in space {}", it.user, it.exchange, it.vhost);
    [("write", &it.write), ("read", &it.read)]
        .into_iter()
        .try_for_each(|(action, text)| pattern(text, || format!("the {action} topic permission {of}")))
}

pub(super) fn pattern(text: &str, of: impl FnOnce() -> String) -> Result<(), Refusal> {
    Pattern::new(text).map(drop).map_err(|wrong| {
        let what = format!("{} is no regular expression ({text:.80}): {wrong}", of());
        Refusal::new(RefusalKind::Invalid, what).hint("Correct the pattern; \".*\" matches every name, \"^$\" none.")
    })
}
