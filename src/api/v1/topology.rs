//! Changing single things of the broker: queues, exchanges and bindings, each through control.

use super::broker::{leads_to, no_queue, vhost};
use crate::api::ApiContext;
use crate::api::params::{Body, Params, PathParts};
use crate::api::problem::Problem;
use crate::broker::{Actor, DeleteRule, Vhost};
use crate::control::{BindingDocument, ExchangeDocument, QueueDocument};
use crate::model::change::{Change, Thing};
use crate::model::identity::Principal;
use crate::model::refusal::Refusal;
use crate::model::topology::{BindingSpec, DEFAULT_SPACE, DestinationKind, ExchangeSpec, QueueSpec};
use axum::Extension;
use axum::extract::State;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

/// How a queue should be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QueueWish {
    #[serde(default = "yes")]
    #[schema(default = true)]
    durable: bool,
    #[serde(default)]
    auto_delete: bool,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// How an exchange should be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExchangeWish {
    /// `direct`, `topic`, `fanout`, `headers`, `x-consistent-hash`, `x-random`, `x-local-random` or `x-delayed-message`.
    kind: String,
    #[serde(default = "yes")]
    #[schema(default = true)]
    durable: bool,
    #[serde(default)]
    auto_delete: bool,
    #[serde(default)]
    internal: bool,
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// A binding that should be.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BindingWish {
    #[serde(default = "default_space")]
    #[schema(default = "/")]
    space: String,
    source: String,
    /// The queue it leads to; else name an exchange.
    queue: Option<String>,
    exchange: Option<String>,
    #[serde(default)]
    routing_key: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

fn yes() -> bool {
    true
}
fn default_space() -> String {
    DEFAULT_SPACE.to_owned()
}

/// Declares a queue. One that exists must be equal.
#[utoipa::path(put, path = "/api/v1/queues/{space}/{name}", tag = "broker", params(("space" = String, Path), ("name" = String, Path)),
    request_body = QueueWish, responses((status = 201, description = "created"), (status = 204, description = "it existed"),
    (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn declare_queue(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Body(wish): Body<QueueWish>,
) -> Result<StatusCode, Problem> {
    let existed = vhost(&context, &space)?.queue(&name).is_some();
    let QueueWish { durable, auto_delete, arguments } = wish;
    let spec = QueueDocument { name, vhost: space.clone(), durable, auto_delete, arguments }.spec()?;
    context.control.change(vec![Change::create(&space.into(), Thing::Queue(spec))], &by)?;
    Ok(created(existed))
}

/// When not to delete.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct DeleteParams {
    /// Refuse if messages are ready.
    if_empty: bool,
    /// Refuse if anybody consumes.
    if_unused: bool,
}

/// Deletes a queue with the messages it holds.
#[utoipa::path(delete, path = "/api/v1/queues/{space}/{name}", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path), DeleteParams),
    responses((status = 204, description = "deleted"), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn delete_queue(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Params(params): Params<DeleteParams>,
) -> Result<StatusCode, Problem> {
    let vhost = vhost(&context, &space)?;
    let known = vhost.queue(&name).ok_or_else(|| no_queue(&space, &name))?;
    let rule = DeleteRule { if_unused: params.if_unused, if_empty: params.if_empty };
    if rule != DeleteRule::default() {
        // Here, since only the queue itself can tell and go in one step; the change that follows finds it gone and is written down.
        vhost.delete_queue(&name, rule, Actor { principal: &by, connection: None }).map_err(Refusal::from)?;
    }
    let spec = QueueSpec {
        name,
        durable: known.durable,
        exclusive: known.exclusive,
        auto_delete: known.auto_delete,
        arguments: known.arguments,
    };
    context.control.change(vec![Change::delete(&space.into(), Thing::Queue(spec))], &by)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Declares an exchange. One that exists must be equal.
#[utoipa::path(put, path = "/api/v1/exchanges/{space}/{name}", tag = "broker", params(("space" = String, Path), ("name" = String, Path)),
    request_body = ExchangeWish, responses((status = 201, description = "created"), (status = 204, description = "it existed"),
    (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn declare_exchange(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Body(wish): Body<ExchangeWish>,
) -> Result<StatusCode, Problem> {
    let existed = has_exchange(&*vhost(&context, &space)?, &name);
    let ExchangeWish { kind, durable, auto_delete, internal, arguments } = wish;
    let spec = ExchangeDocument { name, vhost: space.clone(), kind, durable, auto_delete, internal, arguments }.spec()?;
    context.control.change(vec![Change::create(&space.into(), Thing::Exchange(spec))], &by)?;
    Ok(created(existed))
}

/// Deletes an exchange with its bindings. Those that belong to every space stay.
#[utoipa::path(delete, path = "/api/v1/exchanges/{space}/{name}", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path)),
    responses((status = 204, description = "deleted"), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub async fn delete_exchange(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
) -> Result<StatusCode, Problem> {
    let exchanges = vhost(&context, &space)?.exchanges();
    let known = exchanges.into_iter().find(|exchange| *exchange.name == *name).ok_or_else(|| {
        Problem::not_found(format!("there is no exchange {name} in space {space}"))
            .next("GET /api/v1/exchanges lists those there are")
    })?;
    let spec = ExchangeSpec {
        name,
        kind: known.kind,
        durable: known.durable,
        auto_delete: known.auto_delete,
        internal: known.internal,
        arguments: known.arguments,
    };
    context.control.change(vec![Change::delete(&space.into(), Thing::Exchange(spec))], &by)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Binds a queue to an exchange. Binding twice is one binding.
#[utoipa::path(post, path = "/api/v1/bindings", tag = "broker", request_body = BindingWish, responses(
    (status = 201, description = "bound"), (status = 400, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn bind(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    Body(wish): Body<BindingWish>,
) -> Result<StatusCode, Problem> {
    let (destination, kind) = destination(wish.queue, wish.exchange)?;
    let spec = BindingDocument {
        source: wish.source,
        vhost: wish.space.clone(),
        destination,
        destination_type: kind.as_str().to_owned(),
        routing_key: wish.routing_key,
        arguments: wish.arguments,
    }
    .spec()?;
    context.control.change(vec![Change::create(&wish.space.into(), Thing::Binding(spec))], &by)?;
    Ok(StatusCode::CREATED)
}

/// Which binding.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct UnbindParams {
    #[serde(default = "default_space")]
    #[param(default = "/")]
    space: String,
    source: String,
    /// The queue it leads to; else name an exchange.
    queue: Option<String>,
    exchange: Option<String>,
    #[serde(default)]
    routing_key: String,
}

/// One of a queue and an exchange.
fn destination(queue: Option<String>, exchange: Option<String>) -> Result<(String, DestinationKind), Problem> {
    match (queue, exchange) {
        (Some(queue), None) => Ok((queue, DestinationKind::Queue)),
        (None, Some(exchange)) => Ok((exchange, DestinationKind::Exchange)),
        (None, None) => Err(Problem::invalid("a binding leads somewhere").next("Name a queue or an exchange")),
        (Some(_), Some(_)) => Err(Problem::invalid("a binding leads to a queue or to an exchange").next("Name one of them")),
    }
}

/// Removes a binding; where several differ only in their arguments, all of them.
#[utoipa::path(delete, path = "/api/v1/bindings", tag = "broker", params(UnbindParams), responses(
    (status = 204, description = "removed"), (status = 400, body = Problem), (status = 404, body = Problem)))]
pub async fn unbind(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    Params(params): Params<UnbindParams>,
) -> Result<StatusCode, Problem> {
    let vhost = vhost(&context, &params.space)?;
    let UnbindParams { source, queue, exchange, routing_key, .. } = params;
    let (destination, kind) = destination(queue, exchange)?;
    let matching = vhost
        .bindings()
        .into_iter()
        .filter(|known| *known.source == *source && *known.routing_key == *routing_key && leads_to(known, kind, &destination));
    let changes: Vec<Change> = matching
        .map(|known| BindingSpec {
            source: known.source.to_string(),
            destination: known.destination.to_string(),
            destination_kind: known.destination_kind,
            routing_key: known.routing_key.to_string(),
            arguments: known.arguments,
        })
        .map(|spec| Change::delete(vhost.name(), Thing::Binding(spec)))
        .collect();
    if changes.is_empty() {
        let what = format!("{} {destination} is not bound to exchange {source} with the key {routing_key:?}", kind.as_str());
        return Err(Problem::not_found(what));
    }
    context.control.change(changes, &by)?;
    Ok(StatusCode::NO_CONTENT)
}

fn has_exchange(vhost: &Vhost, name: &str) -> bool {
    vhost.exchanges().iter().any(|exchange| *exchange.name == *name)
}

fn created(existed: bool) -> StatusCode {
    if existed { StatusCode::NO_CONTENT } else { StatusCode::CREATED }
}
