//! `/api/users`, permissions, topic permissions and user limits: for administrators.

use super::answer::{Answer, Failure, done, json, put};
use super::body::Fields;
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::{Columns, Listing, Query};
use super::vhosts::{find as find_space, limit_value};
use crate::control::{Put, UserWish};
use crate::model::account::{Permission, TopicPermission, User, UserLimits};
use axum::extract::{Path, State};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};

fn answer<T: Serialize>(items: Vec<T>, name: impl Fn(&T) -> &str, listing: Listing) -> Answer {
    listing.answer(items, name, |item, columns: &Columns| columns.pick(json!(item)))
}

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    caller.must_administer()?;
    answer(context.control.users(), |user: &User| user.name.as_str(), Listing::of(&query)?)
}

pub async fn without_permissions(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    caller.must_administer()?;
    let permissions = context.control.permissions();
    let without = context.control.users().into_iter().filter(|user| !permissions.iter().any(|it| it.user == user.name));
    answer(without.collect(), |user: &User| user.name.as_str(), Listing::of(&query)?)
}

fn find(context: &ManagementContext, name: &str) -> Result<User, Failure> {
    context.control.user(name).ok_or_else(Failure::no_object)
}

pub async fn one(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    Ok(json(find(&context, &name)?))
}

pub async fn declare(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(name): Path<String>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    if !fields.0.contains_key("tags") && !fields.0.contains_key("administrator") {
        return Err(Failure::bad("tags_not_present"));
    }
    let mut fields = fields;
    name_algorithm(&mut fields);
    let wish: UserWish =
        serde_json::from_value(Value::Object(fields.0)).map_err(|wrong| Failure::bad(format!("user {name}: {wrong}")))?;
    Ok(put(context.control.put_user(&name, wish, &caller.principal)? == Put::Updated))
}

/// A hash as long as SHA-512's is one, also when the request does not say so.
fn name_algorithm(fields: &mut Fields) {
    const SALTED_SHA512_BYTES: usize = 4 + 64;
    let hash = fields.get("password_hash").and_then(Value::as_str).and_then(|text| STANDARD.decode(text).ok());
    if hash.is_some_and(|hash| hash.len() == SALTED_SHA512_BYTES) && fields.get("hashing_algorithm").is_none() {
        fields.0.insert("hashing_algorithm".to_owned(), "rabbit_password_hashing_sha512".into());
    }
}

pub async fn delete(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    find(&context, &name)?;
    context.control.delete_user(&name, &caller.principal)?;
    Ok(done())
}

pub async fn bulk_delete(State(context): State<ManagementContext>, caller: Caller, fields: Fields) -> Answer {
    caller.must_administer()?;
    let Some(Value::Array(names)) = fields.get("users") else { return Err(Failure::bad("[{key_missing,users}]")) };
    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
    if let Some(unknown) = names.iter().find(|name| context.control.user(name).is_none()) {
        return Err(Failure::bad(vec!["no_such_user", *unknown]));
    }
    for name in names {
        context.control.delete_user(name, &caller.principal)?;
    }
    Ok(done())
}

pub async fn permissions_of(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    find(&context, &name)?;
    Ok(json(context.control.permissions().into_iter().filter(|it| it.user == name).collect::<Vec<_>>()))
}

pub async fn topic_permissions_of(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    find(&context, &name)?;
    Ok(json(context.control.topic_permissions().into_iter().filter(|it| it.user == name).collect::<Vec<_>>()))
}

pub async fn permissions(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    caller.must_administer()?;
    answer(context.control.permissions(), |it: &Permission| it.user.as_str(), Listing::whole(&query))
}

pub async fn permissions_in(State(context): State<ManagementContext>, caller: Caller, Path(space): Path<String>) -> Answer {
    caller.must_administer()?;
    find_space(&context, &space)?;
    Ok(json(context.control.permissions().into_iter().filter(|it| it.vhost == space).collect::<Vec<_>>()))
}

pub async fn permission(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, user)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    Ok(json(context.control.permission(&space, &user).ok_or_else(Failure::no_object)?))
}

/// What permissions are given to must be there; RabbitMQ says so with 400.
fn both_exist(context: &ManagementContext, space: &str, user: &str) -> Result<(), Failure> {
    match context.control.space(space).is_some() && context.control.user(user).is_some() {
        true => Ok(()),
        false => Err(Failure::bad("vhost_or_user_not_found")),
    }
}

pub async fn set_permission(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((vhost, user)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    fields.must_have(&["configure", "write", "read"])?;
    both_exist(&context, &vhost, &user)?;
    let text = |name| Ok::<_, Failure>(fields.text(name)?.unwrap_or_default().to_owned());
    let permission = Permission { configure: text("configure")?, write: text("write")?, read: text("read")?, user, vhost };
    Ok(put(context.control.put_permission(permission, &caller.principal)? == Put::Updated))
}

pub async fn clear_permission(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, user)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    context.control.permission(&space, &user).ok_or_else(Failure::no_object)?;
    context.control.delete_permission(&space, &user, &caller.principal)?;
    Ok(done())
}

pub async fn topic_permissions(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    caller.must_administer()?;
    answer(context.control.topic_permissions(), |it: &TopicPermission| it.user.as_str(), Listing::whole(&query))
}

pub async fn topic_permissions_in(State(context): State<ManagementContext>, caller: Caller, Path(space): Path<String>) -> Answer {
    caller.must_administer()?;
    find_space(&context, &space)?;
    Ok(json(context.control.topic_permissions().into_iter().filter(|it| it.vhost == space).collect::<Vec<_>>()))
}

fn topic_permissions_at(context: &ManagementContext, space: &str, user: &str) -> Result<Vec<TopicPermission>, Failure> {
    let all = context.control.topic_permissions().into_iter();
    let found: Vec<TopicPermission> = all.filter(|it| it.vhost == space && it.user == user).collect();
    if found.is_empty() { Err(Failure::no_object()) } else { Ok(found) }
}

pub async fn topic_permission(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, user)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    Ok(json(topic_permissions_at(&context, &space, &user)?))
}

pub async fn set_topic_permission(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((vhost, user)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    fields.must_have(&["exchange", "write", "read"])?;
    both_exist(&context, &vhost, &user)?;
    let text = |name| Ok::<_, Failure>(fields.text(name)?.unwrap_or_default().to_owned());
    let permission = TopicPermission { exchange: text("exchange")?, write: text("write")?, read: text("read")?, user, vhost };
    Ok(put(context.control.put_topic_permission(permission, &caller.principal)? == Put::Updated))
}

pub async fn clear_topic_permission(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, user)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    topic_permissions_at(&context, &space, &user)?;
    context.control.delete_topic_permissions(&space, &user, None, &caller.principal)?;
    Ok(done())
}

pub async fn clear_topic_permission_on(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, user, exchange)): Path<(String, String, String)>,
) -> Answer {
    caller.must_administer()?;
    topic_permissions_at(&context, &space, &user)?;
    context.control.delete_topic_permissions(&space, &user, Some(&exchange), &caller.principal)?;
    Ok(done())
}

fn limits_value(user: &User) -> Option<Value> {
    (user.limits != UserLimits::default()).then(|| json!({ "user": user.name, "value": user.limits }))
}

pub async fn limits(State(context): State<ManagementContext>, caller: Caller) -> Answer {
    caller.must_administer()?;
    Ok(json(context.control.users().iter().filter_map(limits_value).collect::<Vec<_>>()))
}

pub async fn limits_of(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    Ok(json(limits_value(&find(&context, &name)?).into_iter().collect::<Vec<_>>()))
}

pub async fn set_limit(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((user, limit)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    if context.control.user(&user).is_none() {
        return Err(Failure::bad(vec!["no_such_user", &user]));
    }
    let value = limit_value(&fields, &limit)?;
    context.control.set_user_limit(&user, &limit, Some(value), &caller.principal)?;
    Ok(done())
}

pub async fn clear_limit(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((user, limit)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    find(&context, &user)?;
    context.control.set_user_limit(&user, &limit, None, &caller.principal)?;
    Ok(done())
}
