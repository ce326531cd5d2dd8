//! The live feed without its socket: what a browser subscribed to, how far it has acknowledged, what it gets next.
//!
//! A [`Session`] is one WebSocket's subscriptions. The server keeps a cursor per subscription and no rows: a delta is made when
//! the last one was acknowledged, so a frozen tab costs nothing.
//!
//! ```text
//!   session.subscribe(…)   then, whenever session.ready() resolves:  while let Some(frame) = session.poll(now) { send }
//!   on {op: ack}           session.ack(id, cursor)
//! ```

use super::query::QueryError;
use crate::kernel::{Clock, Instant};
use crate::model::refusal::Refusal;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Channel {
    Overview,
    Services,
    Map,
    Tape,
    Queues,
    Exchanges,
    Connections,
    Doors,
    Logs,
    Traces,
    Happenings,
    Console,
}

impl Channel {
    /// Whether it is a last-value map; the others are streams of rows.
    pub fn is_state(self) -> bool {
        !matches!(self, Channel::Logs | Channel::Traces | Channel::Happenings | Channel::Console)
    }
}

/// What a browser asks for with `op: subscribe`.
#[derive(Clone, Debug, Deserialize)]
pub struct Subscribe {
    pub id: u64,
    pub channel: Channel,
    #[serde(default)]
    pub query: Option<String>,
    #[serde(default)]
    pub service: Option<String>,
    #[serde(default)]
    pub instance: Option<String>,
    #[serde(default)]
    pub space: Option<String>,
    /// Continue after this row or version; `null` starts at the live end.
    #[serde(default)]
    pub cursor: Option<u64>,
    /// Matching rows before the live end to begin with.
    #[serde(default)]
    pub backfill: Option<usize>,
}

/// The two data frames of the feed, ready to serialise.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Delta {
    State { id: u64, cursor: u64, full: bool, set: BTreeMap<Arc<str>, Arc<RawValue>>, gone: Vec<Arc<str>> },
    Rows { id: u64, cursor: u64, rows: Vec<Box<RawValue>>, skipped: u64, evicted: u64 },
}

/// Why a subscription is refused.
#[derive(Clone, Debug)]
pub enum SubscribeError {
    Query(QueryError),
    Refused(Refusal),
}

#[derive(Debug)]
pub struct Live {
    _clock: Clock,
}

impl Live {
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Live { _clock: clock })
    }

    /// Sets the value of `key` on a state channel. An equal value changes nothing and wakes nobody.
    pub fn set(&self, _channel: Channel, _key: &str, _value: Arc<RawValue>) {}

    pub fn remove(&self, _channel: Channel, _key: &str) {}

    /// Sets every key of the channel at once; keys not given are removed.
    pub fn replace(&self, _channel: Channel, _values: BTreeMap<Arc<str>, Arc<RawValue>>) {}

    pub fn session(self: &Arc<Self>) -> Session {
        Session { _live: self.clone() }
    }
}

pub struct Session {
    _live: Arc<Live>,
}

impl Session {
    pub fn subscribe(&mut self, _wish: Subscribe) -> Result<(), SubscribeError> {
        Ok(())
    }

    /// The browser has taken everything up to `cursor`; the next delta may be made.
    pub fn ack(&mut self, _id: u64, _cursor: u64) {}

    pub fn unsubscribe(&mut self, _id: u64) {}

    /// The next delta that may be sent now, of whichever subscription. Call until `None`.
    pub fn poll(&mut self, _now: Instant) -> Option<Delta> {
        None
    }

    /// Resolves when [`Session::poll`] may have something.
    pub async fn ready(&mut self) {
        std::future::pending().await
    }
}
