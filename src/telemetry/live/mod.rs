//! The live feed without its socket: what a browser subscribed to, how far it has acknowledged, what it gets next.
//!
//! A [`Session`] is one WebSocket's subscriptions. The server keeps a cursor per subscription and no rows: a delta is made when
//! the last one was acknowledged, so a frozen tab costs nothing and what it missed is counted exactly.
//!
//! ```text
//!   set / remove ──▶ state maps: last value of each key, with the version of its last change; kept while somebody watches
//!   store, rings ──▶ streams: rows with sequence numbers, read from a position by a tail
//!
//!   session.subscribe(…)   then, whenever session.ready() resolves:  while let Some(delta) = session.poll(now) { send }
//!   on {op: ack}           session.ack(id, cursor)
//! ```

mod ring;
mod session;
mod state;

pub use ring::{RingRow, RingStream};
pub use session::Session;

use super::query::QueryError;
use crate::kernel::Clock;
use crate::model::refusal::{Refusal, RefusalKind};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use state::StateMap;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tokio::sync::watch;

/// Rows of one delta at most; what is older is skipped and counted.
pub const ROWS_PER_DELTA_MAX: usize = 500;
/// Bytes of rows in one delta at most, save that there is always one row.
pub const DELTA_BYTES_MAX: usize = 256 * 1024;

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

const CHANNELS: usize = 12;

impl Channel {
    /// Those that are last-value maps; the others are streams of rows.
    pub const STATES: [Channel; 8] = [
        Channel::Overview,
        Channel::Services,
        Channel::Map,
        Channel::Tape,
        Channel::Queues,
        Channel::Exchanges,
        Channel::Connections,
        Channel::Doors,
    ];

    pub fn is_state(self) -> bool {
        Self::STATES.contains(&self)
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
    /// Matching rows before the live end to begin with, if there is no cursor.
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

impl Delta {
    pub fn cursor(&self) -> u64 {
        match self {
            Delta::State { cursor, .. } | Delta::Rows { cursor, .. } => *cursor,
        }
    }
}

/// Why a subscription is refused.
#[derive(Clone, Debug)]
pub enum SubscribeError {
    Query(QueryError),
    Refused(Refusal),
}

impl From<QueryError> for SubscribeError {
    fn from(error: QueryError) -> Self {
        SubscribeError::Query(error)
    }
}

/// Rows that a browser can follow.
pub trait Stream: Send + Sync {
    /// Begins to follow the rows that `wish` asks for.
    fn open(&self, wish: &Subscribe) -> Result<Box<dyn Tail>, SubscribeError>;
}

/// One follower's position. Dropping it ends the following.
pub trait Tail: Send {
    /// Everything matching after the position, newest `rows_max` rows and at most `bytes_max` bytes of them; moves the position to
    /// the end.
    fn read(&mut self, rows_max: usize, bytes_max: usize) -> Batch;
}

/// What a tail read.
#[derive(Debug, Default)]
pub struct Batch {
    /// The last row considered.
    pub cursor: u64,
    /// Oldest first.
    pub rows: Vec<Box<RawValue>>,
    /// Matching rows that are older than these and still kept.
    pub skipped: u64,
    /// Matching rows that went before they could be read.
    pub evicted: u64,
}

pub struct Live {
    clock: Clock,
    states: Mutex<HashMap<Channel, StateMap>>,
    streams: RwLock<HashMap<Channel, Arc<dyn Stream>>>,
    /// Raised on every change of a channel; a session compares before it reads.
    versions: [AtomicU64; CHANNELS],
    changed: watch::Sender<u64>,
}

impl Live {
    pub fn new(clock: Clock) -> Arc<Self> {
        Arc::new(Live {
            clock,
            states: Mutex::default(),
            streams: RwLock::default(),
            versions: [const { AtomicU64::new(0) }; CHANNELS],
            changed: watch::Sender::new(0),
        })
    }

    /// Sets the value of `key` on a state channel. An equal value changes nothing and wakes nobody.
    pub fn set(&self, channel: Channel, key: &str, value: Arc<RawValue>) {
        let changed = self.states().entry(channel).or_default().set(key, value);
        self.touch_if(channel, changed);
    }

    pub fn remove(&self, channel: Channel, key: &str) {
        let changed = self.states().entry(channel).or_default().remove(key);
        self.touch_if(channel, changed);
    }

    /// Sets every key of the channel at once; keys not given are removed.
    pub fn replace(&self, channel: Channel, values: BTreeMap<Arc<str>, Arc<RawValue>>) {
        let changed = self.states().entry(channel).or_default().replace(values);
        self.touch_if(channel, changed);
    }

    /// Whether anybody follows the channel. Values of a state channel that nobody watches need not be made.
    pub fn is_watched(&self, channel: Channel) -> bool {
        self.states().get(&channel).is_some_and(StateMap::is_watched)
    }

    /// Whether the channel has no values yet since somebody began to watch it: who subscribes has it filled first.
    pub fn is_blank(&self, channel: Channel) -> bool {
        self.states().get(&channel).is_none_or(StateMap::is_blank)
    }

    /// Makes a stream available; its owner calls [`Live::touch`] when there are new rows.
    pub fn register(&self, channel: Channel, stream: Arc<dyn Stream>) {
        self.streams.write().unwrap_or_else(PoisonError::into_inner).insert(channel, stream);
    }

    /// Wakes sessions that follow the channel.
    pub fn touch(&self, channel: Channel) {
        self.versions[channel as usize].fetch_add(1, Ordering::Release);
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }

    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(self.clone())
    }

    /// Counts a watcher until it is dropped; with the last one the values go.
    fn watch(self: &Arc<Self>, channel: Channel) -> Watch {
        self.states().entry(channel).or_default().watch();
        Watch { live: self.clone(), channel }
    }

    fn touch_if(&self, channel: Channel, changed: bool) {
        if changed {
            self.touch(channel);
        }
    }

    fn states(&self) -> MutexGuard<'_, HashMap<Channel, StateMap>> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn version(&self, channel: Channel) -> u64 {
        self.versions[channel as usize].load(Ordering::Acquire)
    }

    fn open(&self, wish: &Subscribe) -> Result<Box<dyn Tail>, SubscribeError> {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        match streams.get(&wish.channel) {
            Some(stream) => stream.open(wish),
            None => Err(SubscribeError::Refused(Refusal::new(RefusalKind::NotFound, "this channel has no rows in this process"))),
        }
    }
}

/// One subscription's interest in a state channel.
struct Watch {
    live: Arc<Live>,
    channel: Channel,
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.live.states().entry(self.channel).or_default().unwatch();
    }
}
