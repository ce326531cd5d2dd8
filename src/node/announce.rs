//! What control changed in its catalogue, as events of RabbitMQ's event exchange: users, permissions, policies, parameters. Spaces,
//! queues, exchanges and bindings are the broker's own to tell of.

use crate::model::catalog::{Entry, EntryKey};
use crate::model::change::EntryChange;
use crate::model::space::LIMITS_COMPONENT;
use crate::model::table::{Field, Table};

/// Keys and headers of the events that a change of the catalogue is.
pub(super) fn events(change: &EntryChange, by: &str) -> Vec<(&'static str, Table)> {
    let made = change.is.is_some();
    let either = |set: &'static str, cleared: &'static str| if made { set } else { cleared };
    let told =
        |fields: &[(&str, &str)]| fields.iter().fold(Table::new(), |table, (name, value)| table.with(name, Field::text(*value)));
    let mut events = match (&change.key, &change.is) {
        (EntryKey::Space(_), _) => Vec::new(),
        (EntryKey::User(name), _) => user(change, name),
        (EntryKey::Permission { space, user }, is) => {
            let mut table = told(&[("user", user), ("vhost", space)]);
            if let Some(Entry::Permission(it)) = is {
                table.0.extend(told(&[("configure", &it.configure), ("write", &it.write), ("read", &it.read)]).0);
            }
            vec![(either("permission.created", "permission.deleted"), table)]
        }
        (EntryKey::TopicPermission { space, user, exchange }, is) => {
            let mut table = told(&[("user", user), ("vhost", space), ("exchange", exchange)]);
            if let Some(Entry::TopicPermission(it)) = is {
                table.0.extend(told(&[("write", &it.write), ("read", &it.read)]).0);
            }
            vec![(either("topic.permission.created", "topic.permission.deleted"), table)]
        }
        (EntryKey::Policy { space, name } | EntryKey::OperatorPolicy { space, name }, is) => {
            let mut table = told(&[("name", name), ("vhost", space)]);
            if let Some(Entry::Policy(it) | Entry::OperatorPolicy(it)) = is {
                table.0.extend(told(&[("pattern", &it.pattern), ("apply_to", it.apply_to.as_str())]).0);
                table = table.with("priority", Field::I64(it.priority)).with("definition", json(&it.definition));
            }
            vec![(either("policy.set", "policy.cleared"), table)]
        }
        (EntryKey::Parameter { space, component, .. }, is) if component == LIMITS_COMPONENT => {
            let mut table = told(&[("name", space)]);
            if let Some(Entry::Parameter(it)) = is {
                table = table.with("limits", json(&it.value));
            }
            vec![(either("vhost.limits.set", "vhost.limits.cleared"), table)]
        }
        (EntryKey::Parameter { space, component, name }, _) => {
            let table = told(&[("component", component), ("name", name), ("vhost", space)]);
            vec![(either("parameter.set", "parameter.cleared"), table)]
        }
        (EntryKey::GlobalParameter(name), _) => vec![(either("parameter.set", "parameter.cleared"), told(&[("name", name)]))],
    };
    for (_, table) in &mut events {
        table.0.push(("user_who_performed_action".to_owned(), Field::text(by)));
    }
    events
}

fn user(change: &EntryChange, name: &str) -> Vec<(&'static str, Table)> {
    let named = || Table::new().with("name", Field::text(name));
    let (was, is) = match (&change.was, &change.is) {
        (_, None) => return vec![("user.deleted", named())],
        (Some(Entry::User(was)), Some(Entry::User(is))) => (Some(was), is),
        (_, Some(Entry::User(is))) => (None, is),
        (_, Some(_)) => return Vec::new(),
    };
    let mut events = Vec::new();
    if was.is_none() {
        events.push(("user.created", named()));
    }
    if was.is_some_and(|was| was.password_hash != is.password_hash) {
        events.push((if is.password_hash.is_empty() { "user.password.cleared" } else { "user.password.changed" }, named()));
    }
    if was.map_or(!is.tags.is_empty(), |was| was.tags != is.tags) {
        let tags = Field::Array(is.tags.iter().map(|tag| Field::text(tag.as_str())).collect());
        events.push(("user.tags.set", named().with("tags", tags)));
    }
    events
}

/// As text: RabbitMQ's events hold terms of its own here, which nobody can read elsewhere.
fn json(value: &impl serde::Serialize) -> Field {
    Field::text(serde_json::to_string(value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::account::{Permission, User};

    fn keys(was: Option<Entry>, is: Option<Entry>) -> Vec<&'static str> {
        let key = is.as_ref().or(was.as_ref()).expect("something").key();
        events(&EntryChange { key, was, is }, "admin").into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn a_user_is_told_of_as_rabbitmq_tells_of_it() {
        let user = |hash: &str, tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Some(Entry::User(User { name: "ann".into(), password_hash: hash.into(), tags, ..User::default() }))
        };
        assert_eq!(keys(None, user("a", &["monitoring"])), ["user.created", "user.tags.set"]);
        assert_eq!(keys(user("a", &[]), user("b", &[])), ["user.password.changed"]);
        assert_eq!(keys(user("a", &[]), user("", &["x"])), ["user.password.cleared", "user.tags.set"]);
        assert_eq!(keys(user("a", &[]), None), ["user.deleted"]);
    }

    #[test]
    fn who_did_it_stands_in_every_event() {
        let permission = Permission { user: "ann".into(), vhost: "/".into(), write: ".*".into(), ..Permission::default() };
        let is = Some(Entry::Permission(permission));
        let change = EntryChange { key: is.as_ref().expect("one").key(), was: None, is };
        let (key, table) = events(&change, "admin").remove(0);
        let said = |name: &str| table.get(name).and_then(Field::as_str).unwrap_or("(none)").to_owned();
        let words = ["user", "vhost", "write", "user_who_performed_action"].map(said);
        assert_eq!((key, words), ("permission.created", ["ann", "/", ".*", "admin"].map(str::to_owned)));
    }
}
