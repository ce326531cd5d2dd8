//! What became of messages: those the broker followed while somebody looks here.

use super::broker::vhost;
use crate::api::ApiContext;
use crate::api::params::{Params, PathParts};
use crate::api::problem::Problem;
use crate::api::view::journeys::{self as view, FollowedMessage};
use crate::broker::Vhost;
use crate::broker::journey::{Search, Watch};
use crate::kernel::Instant;
use crate::model::topology::DEFAULT_SPACE;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 500;
/// Messages of a space are followed for so long after the last question.
const FOLLOWED_FOR: Duration = Duration::from_secs(60);

/// The spaces whose messages are followed because somebody asked.
#[derive(Clone, Default)]
pub struct Followed(Arc<Mutex<HashMap<Arc<str>, Following>>>);

struct Following {
    watch: Watch,
    asked: Instant,
}

impl Followed {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Following>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows the space's messages from now on, until nobody has asked for a minute. True if they were not followed before.
    fn follow(&self, context: &ApiContext, vhost: &Vhost) -> bool {
        let (space, now) = (vhost.name(), context.clock.now());
        let mut followed = self.lock();
        if let Some(following) = followed.get_mut(space) {
            following.asked = now;
            let begins = !following.watch.is_of(vhost);
            if begins {
                following.watch = vhost.watch_journeys();
            }
            return begins;
        }
        followed.insert(space.clone(), Following { watch: vhost.watch_journeys(), asked: now });
        let (own, clock, space, drain) = (self.clone(), context.clock.clone(), space.clone(), context.drain.clone());
        context.tasks.spawn("journeys", async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(FOLLOWED_FOR) => {}
                    () = drain.begun() => break,
                }
                let mut followed = own.lock();
                if followed.get(&space).is_none_or(|following| clock.now().since(following.asked) >= FOLLOWED_FOR) {
                    followed.remove(&space);
                    return;
                }
            }
            own.lock().remove(&space);
        });
        true
    }
}

/// What to look for; everything given must hold.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields, default)]
#[into_params(parameter_in = Query)]
pub struct JourneyParams {
    /// The default space if absent.
    space: Option<String>,
    /// In the body, properties, headers or key: a message id, a trace id, a customer's number.
    text: Option<String>,
    /// Published to this exchange.
    exchange: Option<String>,
    /// Routed to, or seen in, this queue.
    queue: Option<String>,
    /// Only older ones: the id of the last of the page before.
    before: Option<u64>,
    /// 100 unless given, at most 500.
    limit: Option<usize>,
}

/// Messages that were followed, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct FollowedMessages {
    pub messages: Vec<FollowedMessage>,
    /// Kept of this space, over all.
    pub kept: u64,
    /// Passed while somebody watched, beyond what can be followed in a second.
    pub skipped: u64,
    /// This question began it: what passed before was not followed.
    pub began: bool,
}

/// Looks for messages and what became of them. Asking is what makes the broker follow the messages of a space: from the first
/// question until a minute after the last.
#[utoipa::path(get, path = "/api/v1/journeys", tag = "broker", params(JourneyParams), responses(
    (status = 200, body = FollowedMessages), (status = 404, body = Problem)))]
pub async fn journeys(
    State(context): State<ApiContext>,
    Params(params): Params<JourneyParams>,
) -> Result<Json<FollowedMessages>, Problem> {
    let vhost = vhost(&context, params.space.as_deref().unwrap_or(DEFAULT_SPACE))?;
    let began = context.followed.follow(&context, &vhost);
    let found = tokio::task::spawn_blocking(move || {
        vhost.search_journeys(Search {
            text: params.text.as_deref().filter(|text| !text.is_empty()),
            exchange: params.exchange.as_deref(),
            queue: params.queue.as_deref(),
            before: params.before,
            limit: params.limit.unwrap_or(LIMIT_DEFAULT).min(LIMIT_MAX),
        })
    });
    let found = found.await.map_err(|error| {
        tracing::error!(%error, "a search for journeys panicked");
        Problem::new(http::StatusCode::INTERNAL_SERVER_ERROR, "the search failed; reactor's log says why")
    })?;
    let messages = found.journeys.into_iter().map(view::followed).collect();
    Ok(Json(FollowedMessages { messages, kept: found.kept, skipped: found.skipped, began }))
}

/// One followed message.
#[utoipa::path(get, path = "/api/v1/journeys/{space}/{id}", tag = "broker", params(("space" = String, Path), ("id" = u64, Path)),
    responses((status = 200, body = FollowedMessage), (status = 404, body = Problem)))]
pub async fn journey(
    State(context): State<ApiContext>,
    PathParts((space, id)): PathParts<(String, u64)>,
) -> Result<Json<FollowedMessage>, Problem> {
    let vhost = vhost(&context, &space)?;
    context.followed.follow(&context, &vhost);
    vhost.journey(id).map(|journey| Json(view::followed(journey))).ok_or_else(|| {
        Problem::not_found(format!("no message {id} of space {space} is kept"))
            .next("newer ones have pushed it out; GET /api/v1/journeys searches those there are")
    })
}
