//! What exists in the broker.

use super::services::SpaceParams;
use crate::api::ApiContext;
use crate::api::params::{Params, PathParts};
use crate::api::problem::Problem;
use crate::api::view::broker::{
    self as view, Binding, Connection, ConnectionDetail, Exchange, ExchangeDetail, Queue, QueueDetail,
};
use crate::broker::view::BindingView;
use crate::broker::{ConnectionId, Vhost};
use crate::model::identity::Principal;
use crate::model::topology::DestinationKind;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// What the default exchange is called in paths, where an empty part cannot be written.
const DEFAULT_EXCHANGE_ALIAS: &str = "amq.default";

/// Every queue.
#[utoipa::path(get, path = "/api/v1/queues", tag = "broker", params(SpaceParams), responses((status = 200, body = [Queue])))]
pub async fn queues(State(context): State<ApiContext>, Params(params): Params<SpaceParams>) -> Json<Vec<Queue>> {
    Json(view::queues(&context.sources).into_iter().filter(|queue| params.takes(&queue.space)).collect())
}

/// One queue with its bindings and consumers.
#[utoipa::path(get, path = "/api/v1/queues/{space}/{name}", tag = "broker", params(("space" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = QueueDetail), (status = 404, body = Problem)))]
pub async fn queue(
    State(context): State<ApiContext>,
    PathParts((space, name)): PathParts<(String, String)>,
) -> Result<Json<QueueDetail>, Problem> {
    let vhost = vhost(&context, &space)?;
    let found = vhost.queue(&name).ok_or_else(|| no_queue(&space, &name))?;
    let bindings = vhost
        .bindings()
        .into_iter()
        .filter(|binding| leads_to(binding, DestinationKind::Queue, &name))
        .map(view::binding)
        .collect();
    Ok(Json(QueueDetail {
        policy: found.policy.policy.clone(),
        operator_policy: found.policy.operator_policy.clone(),
        policy_sets: view::policy_sets(&found.policy),
        fates: view::fates(&found),
        kept: found.kept,
        active_consumer: found.active_consumer.clone(),
        queue: view::queue(found, &context.sources.board.rates()),
        bindings,
        consumer_list: vhost.queue_consumers(&name).into_iter().map(view::consumer).collect(),
    }))
}

/// Every exchange.
#[utoipa::path(get, path = "/api/v1/exchanges", tag = "broker", params(SpaceParams), responses((status = 200, body = [Exchange])))]
pub async fn exchanges(State(context): State<ApiContext>, Params(params): Params<SpaceParams>) -> Json<Vec<Exchange>> {
    Json(view::exchanges(&context.sources).into_iter().filter(|exchange| params.takes(&exchange.space)).collect())
}

/// Which bindings.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct BindingParams {
    /// The default space if absent.
    space: Option<String>,
    /// Only from this exchange.
    source: Option<String>,
    /// Only to this queue.
    queue: Option<String>,
    /// Only to this exchange.
    exchange: Option<String>,
}

/// The bindings of a space.
#[utoipa::path(get, path = "/api/v1/bindings", tag = "broker", params(BindingParams), responses(
    (status = 200, body = [Binding]), (status = 404, body = Problem)))]
pub async fn bindings(
    State(context): State<ApiContext>,
    Params(params): Params<BindingParams>,
) -> Result<Json<Vec<Binding>>, Problem> {
    let vhost = vhost(&context, params.space.as_deref().unwrap_or(crate::model::topology::DEFAULT_SPACE))?;
    let is = |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    let to = |wanted: &Option<String>, kind, binding: &BindingView| {
        wanted.as_deref().is_none_or(|wanted| leads_to(binding, kind, wanted))
    };
    let matching = vhost.bindings().into_iter().filter(|binding| {
        is(&params.source, &binding.source)
            && to(&params.queue, DestinationKind::Queue, binding)
            && to(&params.exchange, DestinationKind::Exchange, binding)
    });
    Ok(Json(matching.map(view::binding).collect()))
}

pub(super) fn leads_to(binding: &BindingView, kind: DestinationKind, name: &str) -> bool {
    binding.destination_kind == kind && *binding.destination == *name
}

/// Every client connection of the bus.
#[utoipa::path(get, path = "/api/v1/connections", tag = "broker", params(SpaceParams), responses((status = 200, body = [Connection])))]
pub async fn connections(State(context): State<ApiContext>, Params(params): Params<SpaceParams>) -> Json<Vec<Connection>> {
    Json(view::connections(&context.sources).into_iter().filter(|connection| params.takes(&connection.space)).collect())
}

/// One exchange with what leads to it and from it. The default exchange, which has no name, is `amq.default` here.
#[utoipa::path(get, path = "/api/v1/exchanges/{space}/{name}", tag = "broker", params(("space" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = ExchangeDetail), (status = 404, body = Problem)))]
pub async fn exchange(
    State(context): State<ApiContext>,
    PathParts((space, name)): PathParts<(String, String)>,
) -> Result<Json<ExchangeDetail>, Problem> {
    vhost(&context, &space)?;
    let own = if name == DEFAULT_EXCHANGE_ALIAS { "" } else { &name };
    view::exchange(&context.sources, &space, own).map(Json).ok_or_else(|| {
        Problem::not_found(format!("there is no exchange {name} in space {space}"))
            .next("GET /api/v1/exchanges lists those there are")
    })
}

/// One client connection with its channels and consumers.
#[utoipa::path(get, path = "/api/v1/connections/{id}", tag = "broker", params(("id" = u64, Path)), responses(
    (status = 200, body = ConnectionDetail), (status = 404, body = Problem)))]
pub async fn connection(
    State(context): State<ApiContext>,
    PathParts(id): PathParts<u64>,
) -> Result<Json<ConnectionDetail>, Problem> {
    view::connection(&context.sources, id).map(Json).ok_or_else(|| no_connection(id))
}

/// Why to close.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct CloseParams {
    /// Told to the client with the reply code; at most 200 bytes.
    reason: Option<String>,
}

const CLOSE_REASON_BYTES_MAX: usize = 200;

/// Closes a client's connection with 320 CONNECTION_FORCED. Most clients connect again.
#[utoipa::path(delete, path = "/api/v1/connections/{id}", tag = "broker", params(("id" = u64, Path), CloseParams), responses(
    (status = 202, description = "told to close"), (status = 404, body = Problem)))]
pub async fn close(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts(id): PathParts<u64>,
    Params(params): Params<CloseParams>,
) -> Result<StatusCode, Problem> {
    let why = match params.reason.filter(|reason| !reason.trim().is_empty()) {
        Some(reason) if reason.len() > CLOSE_REASON_BYTES_MAX => {
            let what = format!("reason has {} bytes", reason.len());
            return Err(Problem::invalid(what).next(format!("use at most {CLOSE_REASON_BYTES_MAX}")));
        }
        Some(reason) => reason,
        None => format!("closed from the dashboard by {}", by.user),
    };
    if !context.sources.broker.close_connection(ConnectionId(id), &why) {
        return Err(no_connection(id));
    }
    Ok(StatusCode::ACCEPTED)
}

pub(super) fn vhost(context: &ApiContext, space: &str) -> Result<Arc<Vhost>, Problem> {
    context.sources.broker.vhost(space).ok_or_else(|| no_space(space))
}

fn no_connection(id: u64) -> Problem {
    Problem::not_found(format!("there is no connection {id}")).next("GET /api/v1/connections lists those there are")
}

pub(super) fn no_space(space: &str) -> Problem {
    Problem::not_found(format!("there is no space {space}")).next("GET /api/v1/spaces lists them; / is written %2F in a path")
}

pub(super) fn no_queue(space: &str, name: &str) -> Problem {
    Problem::not_found(format!("there is no queue {name} in space {space}")).next("GET /api/v1/queues lists those there are")
}
