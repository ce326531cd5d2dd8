//! The messages of a queue: looking at them, and what an operator does with them.

use super::broker::{no_queue, vhost};
use crate::api::ApiContext;
use crate::api::params::{Body, Params, PathParts};
use crate::api::problem::Problem;
use crate::api::view::messages::{self as view, Messages, PeekedMessage};
use crate::broker::{Actor, Moved, Peek, Vhost, Which};
use crate::kernel::counted;
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::identity::Principal;
use crate::model::refusal::Refusal;
use axum::extract::State;
use axum::{Extension, Json};
use http::StatusCode;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

const PEEK_DEFAULT: usize = 50;
const PEEK_MAX: usize = 500;
/// Places that may be skipped from the head.
const PEEK_FROM_MAX: usize = 1_000_000;
/// Of each body; the rest of a longer one is not sent and the message says so.
const PEEK_BODY_BYTES_DEFAULT: usize = 16 * 1024;
const PEEK_BODY_BYTES_MAX: usize = 1024 * 1024;
/// Over all bodies of one answer, and of a single message asked for by its id.
const PEEK_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Where a message stands in its life.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    #[default]
    Ready,
    Unacked,
}

/// How much to look at.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct PeekParams {
    /// `ready` unless given, or `unacked`: delivered, and held by a consumer.
    #[param(inline)]
    standing: Standing,
    /// Places skipped from the head: none unless given, at most 1,000,000.
    from: Option<usize>,
    /// Messages: 50 unless given, at most 500.
    count: Option<usize>,
    /// Of each body, in bytes: 16 KiB unless given, at most 1 MiB.
    body_bytes: Option<usize>,
    /// Only messages with this text in their exchange, key, properties, headers or body. The search ends after 100,000 messages
    /// and says how far it came.
    find: Option<String>,
}

/// The messages of a queue. Looking changes nothing: order, counts and consumers stay as they are.
#[utoipa::path(get, path = "/api/v1/queues/{space}/{name}/messages", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path), PeekParams),
    responses((status = 200, body = Messages), (status = 400, body = Problem), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub async fn messages(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Params(params): Params<PeekParams>,
) -> Result<Json<Messages>, Problem> {
    let vhost = vhost(&context, &space)?;
    vhost.must_read(&name, actor(&by)).map_err(Refusal::from)?;
    let count = params.count.unwrap_or(PEEK_DEFAULT).min(PEEK_MAX);
    let each = params.body_bytes.unwrap_or(PEEK_BODY_BYTES_DEFAULT).min(PEEK_BODY_BYTES_MAX).min(PEEK_BYTES_MAX / count.max(1));
    let from = params.from.unwrap_or(0);
    if from > PEEK_FROM_MAX {
        return Err(Problem::invalid(format!("from is {from}, at most {PEEK_FROM_MAX}")).next("search with find instead"));
    }
    // A search may walk a hundred thousand messages, and the message path runs on the runtime's workers.
    let looked = tokio::task::spawn_blocking(move || {
        let find = params.find.as_deref().filter(|text| !text.is_empty());
        let peek = Peek { from, count, body_bytes_max: each, find };
        look(&vhost, &name, &peek, params.standing)
    });
    let looked = looked.await.map_err(|error| {
        tracing::error!(%error, "a look at messages panicked");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the look failed; reactor's log says why")
    })?;
    Ok(Json(looked?))
}

fn look(vhost: &Vhost, name: &str, peek: &Peek<'_>, standing: Standing) -> Result<Messages, Problem> {
    let queue = vhost.queue(name).ok_or_else(|| no_queue(vhost.name(), name))?;
    match standing {
        Standing::Ready => {
            let peeked = vhost.peek(name, peek).map_err(Refusal::from)?;
            Ok(Messages {
                messages: peeked.messages.into_iter().map(view::message).collect(),
                looked_at: peeked.looked_at as u64,
                ready: peeked.ready,
                unacked: queue.unacked,
            })
        }
        Standing::Unacked => {
            let unacked = vhost.peek_unacked(name, peek).map_err(Refusal::from)?;
            Ok(Messages {
                looked_at: queue.unacked,
                messages: unacked.into_iter().map(view::unacked).collect(),
                ready: queue.ready,
                unacked: queue.unacked,
            })
        }
    }
}

/// One ready message with its whole body (at most 16 MiB of it).
#[utoipa::path(get, path = "/api/v1/queues/{space}/{name}/messages/{id}", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path), ("id" = u64, Path)),
    responses((status = 200, body = PeekedMessage), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub async fn message(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name, id)): PathParts<(String, String, u64)>,
) -> Result<Json<PeekedMessage>, Problem> {
    let vhost = vhost(&context, &space)?;
    vhost.must_read(&name, actor(&by)).map_err(Refusal::from)?;
    let found = vhost.peek_one(&name, id, PEEK_BYTES_MAX).map_err(Refusal::from)?;
    found.map(|message| Json(view::message(message))).ok_or_else(|| gone(&name, id))
}

/// Drops one ready message for good.
#[utoipa::path(delete, path = "/api/v1/queues/{space}/{name}/messages/{id}", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path), ("id" = u64, Path)),
    responses((status = 204, description = "dropped"), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub async fn delete_message(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name, id)): PathParts<(String, String, u64)>,
) -> Result<StatusCode, Problem> {
    let vhost = vhost(&context, &space)?;
    if !vhost.delete_message(&name, id, actor(&by)).map_err(Refusal::from)? {
        return Err(gone(&name, id));
    }
    tell(&context, &vhost, &name, "one message dropped".into(), &by);
    Ok(StatusCode::NO_CONTENT)
}

/// Which messages, and where to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveWish {
    /// The queue they go to; the same one to send them to its back.
    to: String,
    /// So many from the head.
    #[serde(default)]
    first: Option<u64>,
    /// Stretches of ids, first and last.
    #[serde(default)]
    ids: Option<Vec<(u64, u64)>>,
}

/// Messages that have moved.
#[derive(Debug, Serialize, ToSchema)]
pub struct MovedMessages {
    pub moved: u64,
    /// Asked for and not moved: gone meanwhile, calls that wait for this queue's consumers, dead letters without a way back.
    pub left: u64,
    /// Where they are now; naming these moves them back.
    pub placed: Vec<Placed>,
}

/// A stretch of ids in one queue.
#[derive(Debug, Serialize, ToSchema)]
pub struct Placed {
    pub queue: Arc<str>,
    pub first: u64,
    pub last: u64,
}

impl From<Moved> for MovedMessages {
    fn from(moved: Moved) -> Self {
        let placed = moved.placed.into_iter().map(|(queue, first, last)| Placed { queue, first, last });
        MovedMessages { moved: moved.moved, left: moved.left, placed: placed.collect() }
    }
}

/// Moves ready messages to the back of another queue, or of the same one. They keep their properties, headers, exchange and key.
#[utoipa::path(post, path = "/api/v1/queues/{space}/{name}/move", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path)), request_body = MoveWish,
    responses((status = 200, body = MovedMessages), (status = 400, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem)))]
pub async fn move_messages(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Body(wish): Body<MoveWish>,
) -> Result<Json<MovedMessages>, Problem> {
    let vhost = vhost(&context, &space)?;
    let which = which(wish.first, wish.ids)?;
    let (from, to, who, at) = (name.clone(), wish.to.clone(), by.clone(), vhost.clone());
    let moved = off_the_path(move || at.move_messages(&from, &to, &which, actor(&who))).await?;
    let words = match name == wish.to {
        true => format!("{} sent to its back", counted(moved.moved, "message")),
        false => format!("{} moved to {}", counted(moved.moved, "message"), wish.to),
    };
    tell(&context, &vhost, &name, words, &by);
    Ok(Json(moved.into()))
}

/// Where the dead letters of a queue came from.
#[derive(Debug, Serialize, ToSchema)]
pub struct RedrivePlan {
    /// Looked at, of `ready`: the first 100,000.
    pub looked_at: u64,
    pub ready: u64,
    pub origins: Vec<RedriveOrigin>,
    /// Without a record of where they died.
    pub without: u64,
}

/// Messages that died in one queue for one reason.
#[derive(Debug, Serialize, ToSchema)]
pub struct RedriveOrigin {
    pub queue: Arc<str>,
    /// `rejected`, `expired`, `maxlen` or `delivery_limit`.
    pub reason: Arc<str>,
    pub messages: u64,
    /// The queue is there to take them back.
    pub exists: bool,
}

/// Counts where the dead letters of a queue came from, as their `x-death` says. Changes nothing.
#[utoipa::path(get, path = "/api/v1/queues/{space}/{name}/redrive", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path)),
    responses((status = 200, body = RedrivePlan), (status = 403, body = Problem), (status = 404, body = Problem)))]
pub async fn redrive_plan(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
) -> Result<Json<RedrivePlan>, Problem> {
    let vhost = vhost(&context, &space)?;
    vhost.must_read(&name, actor(&by)).map_err(Refusal::from)?;
    let plan = off_the_path(move || vhost.redrive_plan(&name)).await?;
    let origin = |origin: crate::broker::Origin| RedriveOrigin {
        queue: origin.queue,
        reason: origin.reason,
        messages: origin.messages,
        exists: origin.exists,
    };
    let origins = plan.origins.into_iter().map(origin).collect();
    Ok(Json(RedrivePlan { looked_at: plan.looked_at, ready: plan.ready, origins, without: plan.without }))
}

/// Which dead letters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RedriveWish {
    /// Only those that died in this queue.
    #[serde(default)]
    only: Option<String>,
    /// So many from the head.
    #[serde(default)]
    first: Option<u64>,
    /// Stretches of ids, first and last.
    #[serde(default)]
    ids: Option<Vec<(u64, u64)>>,
}

/// Sends dead letters back into the queues they died in, under the exchange and key they had there.
#[utoipa::path(post, path = "/api/v1/queues/{space}/{name}/redrive", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path)), request_body = RedriveWish,
    responses((status = 200, body = MovedMessages), (status = 400, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem), (status = 413, body = Problem)))]
pub async fn redrive(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Body(wish): Body<RedriveWish>,
) -> Result<Json<MovedMessages>, Problem> {
    let vhost = vhost(&context, &space)?;
    let which = which(wish.first, wish.ids)?;
    let (from, who, at) = (name.clone(), by.clone(), vhost.clone());
    let moved = off_the_path(move || at.redrive(&from, wish.only.as_deref(), &which, actor(&who))).await?;
    tell(&context, &vhost, &name, format!("{} dead letters sent back", moved.moved), &by);
    Ok(Json(moved.into()))
}

/// How many messages it was.
#[derive(Debug, Serialize, ToSchema)]
pub struct Purged {
    pub messages: u64,
}

/// How many to remove.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct PurgeParams {
    /// From the head; every ready message unless given.
    first: Option<u64>,
}

/// Removes the messages that are ready; unacked ones stay with their consumers.
#[utoipa::path(post, path = "/api/v1/queues/{space}/{name}/purge", tag = "broker",
    params(("space" = String, Path), ("name" = String, Path), PurgeParams),
    responses((status = 200, body = Purged), (status = 403, body = Problem), (status = 404, body = Problem), (status = 409, body = Problem)))]
pub async fn purge_queue(
    State(context): State<ApiContext>,
    Extension(by): Extension<Principal>,
    PathParts((space, name)): PathParts<(String, String)>,
    Params(params): Params<PurgeParams>,
) -> Result<Json<Purged>, Problem> {
    let vhost = vhost(&context, &space)?;
    let (queue, who, at) = (name.clone(), by.clone(), vhost.clone());
    let messages = off_the_path(move || match params.first {
        Some(count) => at.purge_oldest(&queue, count, actor(&who)),
        None => at.purge_queue(&queue, actor(&who)),
    });
    let messages = messages.await?;
    tell(&context, &vhost, &name, format!("purged of {}", counted(messages, "message")), &by);
    Ok(Json(Purged { messages }))
}

fn actor(by: &Principal) -> Actor<'_> {
    Actor { principal: by, connection: None }
}

fn which(first: Option<u64>, ids: Option<Vec<(u64, u64)>>) -> Result<Which, Problem> {
    match (first, ids) {
        (Some(first), None) => Ok(Which::First(first)),
        (None, Some(ids)) => Ok(Which::These(ids)),
        _ => Err(Problem::invalid("which messages is not said").next("give either first, a count, or ids, stretches of them")),
    }
}

/// A queue of a million messages is worked through slice by slice, and the message path runs on the runtime's workers.
async fn off_the_path<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, crate::broker::Refused> + Send + 'static,
) -> Result<T, Problem> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(|refused| Refusal::from(refused).into()),
        Err(error) => {
            tracing::error!(%error, "work on messages panicked");
            Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the work on messages failed; reactor's log says why"))
        }
    }
}

fn tell(context: &ApiContext, vhost: &Vhost, queue: &str, change: String, by: &Principal) {
    let name: Arc<str> = queue.into();
    let what = What::DefinitionChanged {
        kind: "queue",
        name: name.clone(),
        change: change.into(),
        by: by.user.clone(),
        queue: Some(name),
    };
    emit::happening(Happening { at_ns: context.clock.unix_nanos(), space: vhost.name().clone(), what });
}

fn gone(queue: &str, id: u64) -> Problem {
    Problem::not_found(format!("no message {id} is ready in queue {queue}"))
        .next("it was delivered, expired or removed meanwhile; look again")
}
