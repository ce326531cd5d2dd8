//! Who may do what, and the policies: users, permissions, spaces. All of it through control; passwords and hashes are never sent.

use super::broker::vhost;
use crate::api::ApiContext;
use crate::api::params::{Body, Params, PathParts};
use crate::api::problem::Problem;
use crate::api::v1::services::SpaceParams;
use crate::control::{Put, UserWish};
use crate::kernel::pattern::{Pattern, Repeated};
use crate::model::account::{Permission, TopicPermission, User, UserLimits};
use crate::model::identity::Principal;
use crate::model::policy_spec::{ApplyTo, Policy};
use crate::model::space::{Space, SpaceLimits};
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// A policy, and how much it is about now.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PolicyRow {
    pub space: String,
    pub name: String,
    pub pattern: String,
    /// `all`, `queues`, `classic_queues`, `quorum_queues`, `streams` or `exchanges`.
    pub apply_to: &'static str,
    pub definition: Map<String, Value>,
    pub priority: i64,
    /// An operator's: its limits hold whatever other policies say.
    pub operator: bool,
    /// Queues whose names match.
    pub queues: u64,
    /// Exchanges whose names match.
    pub exchanges: u64,
}

/// How a policy should be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyWish {
    /// A regular expression over names.
    pattern: String,
    #[serde(default)]
    #[schema(value_type = String)]
    apply_to: ApplyTo,
    #[serde(default)]
    definition: Map<String, Value>,
    #[serde(default)]
    priority: i64,
}

/// Which of the two.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct PolicyParams {
    /// An operator's policy.
    operator: bool,
}

/// The policies, users' and operators', by name.
#[utoipa::path(get, path = "/api/v1/policies", tag = "access", params(SpaceParams), responses((status = 200, body = [PolicyRow])))]
pub async fn policies(State(context): State<ApiContext>, Params(params): Params<SpaceParams>) -> Json<Vec<PolicyRow>> {
    let own = context.control.policies().into_iter().map(|policy| (policy, false));
    let all = own.chain(context.control.operator_policies().into_iter().map(|policy| (policy, true)));
    let rows =
        all.filter(|(policy, _)| params.takes(&policy.vhost)).map(|(policy, operator)| policy_row(&context, policy, operator));
    Json(rows.collect())
}

fn policy_row(context: &ApiContext, policy: Policy, operator: bool) -> PolicyRow {
    let (mut queues, mut exchanges) = (0, 0);
    if let (Some(vhost), Ok(pattern)) = (context.sources.broker.vhost(&policy.vhost), Pattern::new(&policy.pattern)) {
        let pattern = Repeated::new(pattern);
        let takes = |name: &str| pattern.try_match(name).unwrap_or(false);
        let takes_queues = !matches!(policy.apply_to, ApplyTo::Exchanges);
        let names = if takes_queues { vhost.queue_names() } else { Vec::new() };
        queues = names.iter().filter(|name| takes(name)).count() as u64;
        if policy.apply_to.takes_exchanges() {
            exchanges = vhost.exchanges().iter().filter(|exchange| takes(&exchange.name)).count() as u64;
        }
    }
    PolicyRow {
        space: policy.vhost,
        name: policy.name,
        pattern: policy.pattern,
        apply_to: policy.apply_to.as_str(),
        definition: policy.definition,
        priority: policy.priority,
        operator,
        queues,
        exchanges,
    }
}

/// Makes or replaces a policy.
#[utoipa::path(put, path = "/api/v1/policies/{space}/{name}", tag = "access",
    params(("space" = String, Path), ("name" = String, Path), PolicyParams), request_body = PolicyWish,
    responses((status = 201, description = "created"), (status = 204, description = "replaced"), (status = 400, body = Problem),
    (status = 404, body = Problem)))]
pub async fn put_policy(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Params(params): Params<PolicyParams>,
    Body(wish): Body<PolicyWish>,
) -> Result<StatusCode, Problem> {
    let PolicyWish { pattern, apply_to, definition, priority } = wish;
    let policy = Policy { vhost: space, name, pattern, apply_to, definition, priority };
    let put = match params.operator {
        true => context.control.put_operator_policy(policy, &by)?,
        false => context.control.put_policy(policy, &by)?,
    };
    Ok(status(put))
}

/// Deletes a policy; what it ruled is ruled by the next that matches.
#[utoipa::path(delete, path = "/api/v1/policies/{space}/{name}", tag = "access",
    params(("space" = String, Path), ("name" = String, Path), PolicyParams),
    responses((status = 204, description = "deleted"), (status = 404, body = Problem)))]
pub async fn delete_policy(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Params(params): Params<PolicyParams>,
) -> Result<StatusCode, Problem> {
    match params.operator {
        true => context.control.delete_operator_policy(&space, &name, &by)?,
        false => context.control.delete_policy(&space, &name, &by)?,
    }
    Ok(StatusCode::NO_CONTENT)
}

/// A user without its password.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct UserRow {
    pub name: String,
    pub tags: Vec<String>,
    /// A password opens it.
    pub has_password: bool,
    pub max_connections: Option<i64>,
    pub max_channels: Option<i64>,
    /// Open now.
    pub connections: u64,
    /// Spaces it has permissions in.
    pub spaces: Vec<String>,
}

/// The users.
#[utoipa::path(get, path = "/api/v1/users", tag = "access", responses((status = 200, body = [UserRow])))]
pub async fn users(State(context): State<ApiContext>) -> Json<Vec<UserRow>> {
    let permissions = context.control.permissions();
    let connections = context.sources.broker.connections();
    let row = |user: User| UserRow {
        connections: connections.iter().filter(|connection| *connection.user == *user.name).count() as u64,
        spaces: permissions.iter().filter(|it| it.user == user.name).map(|it| it.vhost.clone()).collect(),
        has_password: !user.password_hash.is_empty(),
        max_connections: user.limits.max_connections,
        max_channels: user.limits.max_channels,
        tags: user.tags,
        name: user.name,
    };
    Json(context.control.users().into_iter().map(row).collect())
}

/// How a user should be.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountWish {
    /// The one it has is kept when absent.
    #[serde(default)]
    password: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// Those it has are kept when absent.
    #[serde(default)]
    limits: Option<AccountLimits>,
}

/// How much a user may have open; null is no limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccountLimits {
    #[serde(default)]
    max_connections: Option<i64>,
    #[serde(default)]
    max_channels: Option<i64>,
}

/// Makes or changes a user.
#[utoipa::path(put, path = "/api/v1/users/{name}", tag = "access", params(("name" = String, Path)), request_body = AccountWish,
    responses((status = 201, description = "created"), (status = 204, description = "changed"), (status = 400, body = Problem)))]
pub async fn put_user(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts(name): PathParts<String>,
    Body(wish): Body<AccountWish>,
) -> Result<StatusCode, Problem> {
    let known = context.control.user(&name).filter(|_| wish.password.is_none());
    let wish = UserWish {
        password: wish.password,
        hashing_algorithm: known.as_ref().map(|user| user.hashing_algorithm),
        password_hash: known.map(|user| user.password_hash),
        tags: wish.tags,
        limits: wish.limits.map(|AccountLimits { max_connections, max_channels }| UserLimits { max_connections, max_channels }),
    };
    Ok(status(context.control.put_user(&name, wish, &by)?))
}

/// Deletes a user with its permissions; its connections are closed.
#[utoipa::path(delete, path = "/api/v1/users/{name}", tag = "access", params(("name" = String, Path)),
    responses((status = 204, description = "deleted"), (status = 404, body = Problem)))]
pub async fn delete_user(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts(name): PathParts<String>,
) -> Result<StatusCode, Problem> {
    context.control.delete_user(&name, &by)?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a user may do in a space: regular expressions over names of queues and exchanges.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PermissionRow {
    pub user: String,
    pub space: String,
    pub configure: String,
    pub write: String,
    pub read: String,
}

/// The permissions, user by user.
#[utoipa::path(get, path = "/api/v1/permissions", tag = "access", responses((status = 200, body = [PermissionRow])))]
pub async fn permissions(State(context): State<ApiContext>) -> Json<Vec<PermissionRow>> {
    let row = |it: Permission| {
        let Permission { user, vhost, configure, write, read } = it;
        PermissionRow { user, space: vhost, configure, write, read }
    };
    Json(context.control.permissions().into_iter().map(row).collect())
}

/// What a user should be allowed to do in a space. An empty pattern allows nothing, `.*` everything.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionWish {
    configure: String,
    write: String,
    read: String,
}

/// Gives a user permissions in a space.
#[utoipa::path(put, path = "/api/v1/permissions/{space}/{user}", tag = "access",
    params(("space" = String, Path), ("user" = String, Path)), request_body = PermissionWish,
    responses((status = 201, description = "given"), (status = 204, description = "changed"), (status = 400, body = Problem),
    (status = 404, body = Problem)))]
pub async fn put_permission(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, user)): PathParts<(String, String)>,
    Body(wish): Body<PermissionWish>,
) -> Result<StatusCode, Problem> {
    let PermissionWish { configure, write, read } = wish;
    Ok(status(context.control.put_permission(Permission { user, vhost: space, configure, write, read }, &by)?))
}

/// Takes a user's permissions in a space away; it may not open it any more.
#[utoipa::path(delete, path = "/api/v1/permissions/{space}/{user}", tag = "access",
    params(("space" = String, Path), ("user" = String, Path)),
    responses((status = 204, description = "taken away"), (status = 404, body = Problem)))]
pub async fn delete_permission(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, user)): PathParts<(String, String)>,
) -> Result<StatusCode, Problem> {
    context.control.delete_permission(&space, &user, &by)?;
    Ok(StatusCode::NO_CONTENT)
}

/// A space and how much is in it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SpaceRow {
    pub name: String,
    pub description: String,
    pub tags: Vec<String>,
    pub default_queue_type: Option<String>,
    pub max_connections: Option<i64>,
    pub max_queues: Option<i64>,
    pub queues: u64,
    pub exchanges: u64,
    pub connections: u64,
    pub ready: u64,
    pub unacked: u64,
}

/// One space and how much is in it.
#[utoipa::path(get, path = "/api/v1/spaces/{space}", tag = "access", params(("space" = String, Path)),
    responses((status = 200, body = SpaceRow), (status = 404, body = Problem)))]
pub async fn space(State(context): State<ApiContext>, PathParts(name): PathParts<String>) -> Result<Json<SpaceRow>, Problem> {
    let vhost = vhost(&context, &name)?;
    let said = context.control.space(&name).unwrap_or_else(|| Space::named(&name));
    let limits = context.control.space_limits().into_iter().find(|limits| limits.vhost == name);
    let SpaceLimits { max_connections, max_queues } = limits.map(|limits| limits.value).unwrap_or_default();
    let queues = vhost.queues();
    let connections = context.sources.broker.connections();
    Ok(Json(SpaceRow {
        description: said.description,
        tags: said.tags,
        default_queue_type: said.default_queue_type,
        max_connections,
        max_queues,
        queues: queues.len() as u64,
        exchanges: vhost.exchanges().len() as u64,
        connections: connections.iter().filter(|connection| *connection.space == *name).count() as u64,
        ready: queues.iter().map(|queue| queue.ready).sum(),
        unacked: queues.iter().map(|queue| queue.unacked).sum(),
        name,
    }))
}

/// How much a space may hold; null is no limit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SpaceLimitsWish {
    #[serde(default)]
    max_connections: Option<i64>,
    #[serde(default)]
    max_queues: Option<i64>,
}

/// Sets a space's limits; what is there already stays.
#[utoipa::path(put, path = "/api/v1/spaces/{space}/limits", tag = "access", params(("space" = String, Path)),
    request_body = SpaceLimitsWish, responses((status = 204, description = "set"), (status = 400, body = Problem),
    (status = 404, body = Problem)))]
pub async fn put_space_limits(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts(space): PathParts<String>,
    Body(wish): Body<SpaceLimitsWish>,
) -> Result<StatusCode, Problem> {
    context.control.set_space_limit(&space, "max-connections", wish.max_connections, &by)?;
    context.control.set_space_limit(&space, "max-queues", wish.max_queues, &by)?;
    Ok(StatusCode::NO_CONTENT)
}

/// What a user may do through a topic exchange, besides its permissions: regular expressions over routing keys.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TopicPermissionRow {
    pub user: String,
    pub space: String,
    pub exchange: String,
    pub write: String,
    pub read: String,
}

/// The topic permissions, user by user.
#[utoipa::path(get, path = "/api/v1/topic-permissions", tag = "access", responses((status = 200, body = [TopicPermissionRow])))]
pub async fn topic_permissions(State(context): State<ApiContext>) -> Json<Vec<TopicPermissionRow>> {
    let row = |it: TopicPermission| {
        let TopicPermission { user, vhost, exchange, write, read } = it;
        TopicPermissionRow { user, space: vhost, exchange, write, read }
    };
    Json(context.control.topic_permissions().into_iter().map(row).collect())
}

/// Which routing keys a user should be held to. An empty pattern allows nothing, `.*` everything.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicPermissionWish {
    write: String,
    read: String,
}

/// Which exchange's.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ExchangeParams {
    /// Name of the topic exchange.
    exchange: String,
}

/// Holds a user to routing keys at a topic exchange.
#[utoipa::path(put, path = "/api/v1/topic-permissions/{space}/{user}", tag = "access",
    params(("space" = String, Path), ("user" = String, Path), ExchangeParams), request_body = TopicPermissionWish,
    responses((status = 201, description = "held"), (status = 204, description = "changed"), (status = 400, body = Problem),
    (status = 404, body = Problem)))]
pub async fn put_topic_permission(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, user)): PathParts<(String, String)>,
    Params(ExchangeParams { exchange }): Params<ExchangeParams>,
    Body(wish): Body<TopicPermissionWish>,
) -> Result<StatusCode, Problem> {
    let TopicPermissionWish { write, read } = wish;
    Ok(status(context.control.put_topic_permission(TopicPermission { user, vhost: space, exchange, write, read }, &by)?))
}

/// Lets a user use any routing key at a topic exchange again.
#[utoipa::path(delete, path = "/api/v1/topic-permissions/{space}/{user}", tag = "access",
    params(("space" = String, Path), ("user" = String, Path), ExchangeParams),
    responses((status = 204, description = "taken away"), (status = 404, body = Problem)))]
pub async fn delete_topic_permission(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, user)): PathParts<(String, String)>,
    Params(ExchangeParams { exchange }): Params<ExchangeParams>,
) -> Result<StatusCode, Problem> {
    context.control.delete_topic_permissions(&space, &user, Some(&exchange), &by)?;
    Ok(StatusCode::NO_CONTENT)
}

fn status(put: Put) -> StatusCode {
    match put {
        Put::Created => StatusCode::CREATED,
        Put::Updated => StatusCode::NO_CONTENT,
    }
}
