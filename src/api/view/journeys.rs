//! Followed messages: what they are and what became of them, step by step.

use super::json;
use super::messages::properties;
use crate::broker::journey::{Journey, Step, StepKind};
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use utoipa::ToSchema;

/// A message the broker followed.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FollowedMessage {
    /// Names it within its space.
    pub id: u64,
    pub exchange: Arc<str>,
    pub routing_key: Arc<str>,
    pub bytes: u64,
    pub properties: Map<String, Value>,
    pub headers: Map<String, Value>,
    pub body: String,
    /// `utf8` or `base64`.
    pub encoding: &'static str,
    /// `body` holds only the beginning.
    pub truncated: bool,
    /// It was routed to.
    pub queues: Vec<Arc<str>>,
    pub steps: Vec<JourneyStep>,
    pub steps_left_out: u32,
    /// Copies that are still in a queue or unacked.
    pub open: u32,
}

/// One thing that happened to a message.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct JourneyStep {
    /// To the batch.
    pub at_us: u64,
    /// `published`, `routed`, `queued`, `delivered`, `acked`, `rejected`, `requeued`, `expired`, `dropped`, `kept`,
    /// `dead-lettered`, `returned` or `unroutable`.
    pub what: &'static str,
    pub queue: Option<Arc<str>>,
    pub connection: Option<Arc<str>>,
    pub channel: Option<u16>,
    pub user: Option<Arc<str>>,
    /// The dead-letter exchange it goes on through.
    pub exchange: Option<Arc<str>>,
    pub reason: Option<&'static str>,
    /// Queues it was routed to.
    pub queues: Option<u64>,
    pub redelivered: bool,
    /// Delivered to a consumer that does not acknowledge.
    pub no_ack: bool,
}

pub fn followed(journey: Journey) -> FollowedMessage {
    let header = properties(&journey.properties);
    let (body, encoding) = json::text(&journey.body);
    FollowedMessage {
        id: journey.id,
        exchange: journey.exchange,
        routing_key: journey.routing_key,
        bytes: journey.body_len,
        properties: header.properties,
        headers: header.headers,
        body,
        encoding,
        truncated: (journey.body.len() as u64) < journey.body_len,
        queues: journey.queues,
        steps: journey.steps.into_iter().map(step).collect(),
        steps_left_out: journey.steps_left_out,
        open: journey.open,
    }
}

fn step(step: Step) -> JourneyStep {
    let queue = step.what.queue().cloned();
    let blank = JourneyStep { at_us: step.at_ns / 1_000, what: step.what.name(), queue, ..JourneyStep::default() };
    match step.what {
        StepKind::Published { connection, channel, user } => {
            JourneyStep { connection: Some(connection), channel: Some(channel), user: Some(user), ..blank }
        }
        StepKind::Routed { queues } => JourneyStep { queues: Some(queues as u64), ..blank },
        StepKind::Delivered { connection, channel, redelivered, no_ack, .. } => {
            JourneyStep { connection: Some(connection), channel: Some(channel), redelivered, no_ack, ..blank }
        }
        StepKind::Dropped { reason, .. } | StepKind::Kept { reason, .. } => JourneyStep { reason: Some(reason), ..blank },
        StepKind::DeadLettered { exchange, .. } => JourneyStep { exchange: Some(exchange), ..blank },
        StepKind::Queued { .. }
        | StepKind::Acked { .. }
        | StepKind::Rejected { .. }
        | StepKind::Requeued { .. }
        | StepKind::Expired { .. }
        | StepKind::Returned
        | StepKind::Unroutable => blank,
    }
}
