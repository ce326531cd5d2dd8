//! One queue: what is ready, who consumes, and how one becomes the other.
//!
//! One lock, taken after the topology's and before any outbox's. Whatever a change sets off elsewhere goes into [`Effects`].

mod backlog;
mod blocks;
mod consumer;
mod entry;
mod look;
mod pick;
mod serve;
mod waits;

pub(super) use consumer::{Consumer, NewConsumer};
pub(super) use entry::Entry;
pub(super) use pick::{Seen, SeenUnacked, Taken};
pub use waits::Waits;

use super::effects::{Effects, Notice};
use super::message::{Extra, Run};
use crate::broker::config::{AttachmentHow, ConnectionId};
use crate::model::service::ServiceName;
use crate::model::topology::QueueSpec;
use backlog::Backlog;
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

pub(super) struct Queue {
    pub name: Arc<str>,
    pub spec: QueueSpec,
    /// Whose exclusive queue it is.
    pub owner: Option<ConnectionId>,
    /// The services whose calls or events it takes, as its bindings say (contract §1).
    services: RwLock<Vec<(ServiceName, AttachmentHow)>>,
    /// For a look without the lock.
    consumer_count: AtomicU32,
    /// Milliseconds of the clock when the last consumer left, plus one; 0 if there never was one.
    last_consumer_ms: AtomicU64,
    state: Mutex<State>,
}

struct State {
    backlog: Backlog,
    consumers: Vec<Consumer>,
    /// Whose turn it is.
    turn: usize,
    deleted: bool,
    had_consumer: bool,
}

/// What becomes of deliveries that leave the unacked state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settling {
    Done,
    Requeue,
}

/// Deliveries of one consumer that leave the unacked state.
pub(super) struct Settled<'a> {
    pub consumer: u64,
    pub entries: &'a [Entry],
    /// Of those entries that carry something, in order.
    pub extras: Vec<(u64, Extra)>,
    pub settling: Settling,
    pub then: Then,
}

/// Whether the queue hands out at once. What comes back together must be back before any of it goes out again, or it would lose its
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Serve,
    Wait,
}

impl Queue {
    pub fn new(spec: QueueSpec, owner: Option<ConnectionId>) -> Arc<Self> {
        Arc::new(Queue {
            name: spec.name.as_str().into(),
            spec,
            owner,
            services: RwLock::default(),
            consumer_count: AtomicU32::new(0),
            last_consumer_ms: AtomicU64::new(0),
            state: Mutex::new(State {
                backlog: Backlog::new(),
                consumers: Vec::new(),
                turn: 0,
                deleted: false,
                had_consumer: false,
            }),
        })
    }

    pub fn services(&self) -> Vec<(ServiceName, AttachmentHow)> {
        self.services.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_services(&self, services: Vec<(ServiceName, AttachmentHow)>) {
        *self.services.write().unwrap_or_else(PoisonError::into_inner) = services;
    }

    /// The service whose calls it takes.
    pub fn called_service(&self) -> Option<ServiceName> {
        let services = self.services.read().unwrap_or_else(PoisonError::into_inner);
        services.iter().find(|(_, how)| *how == AttachmentHow::Calls).map(|(service, _)| service.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn consumer_count(&self) -> u32 {
        self.consumer_count.load(Ordering::Relaxed)
    }

    /// Since when nobody consumes, in milliseconds of the clock.
    pub fn last_consumer_ms(&self) -> Option<u64> {
        self.last_consumer_ms.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Takes a run in and hands out what consumers have room for. Returns the first message's position; `None` if the queue was
    /// deleted meanwhile: the run is gone with it, as if it had come a moment earlier.
    // HOT
    pub fn offer(self: &Arc<Self>, run: &Run<'_>, effects: &mut Effects) -> Option<u64> {
        let mut state = self.state();
        if state.deleted {
            return None;
        }
        let (mut fresh, weight) = state.backlog.admit(run);
        let first = fresh.first_seq();
        effects.memory += weight as i64;
        effects.backlog_max = effects.backlog_max.max(state.backlog.ready_bytes);
        self.serve(&mut state, &mut fresh, effects);
        state.backlog.keep(fresh);
        Some(first)
    }

    /// Settles deliveries of one consumer (or of `basic.get`, consumer 0).
    // HOT
    pub fn settle(self: &Arc<Self>, settled: Settled<'_>, effects: &mut Effects) {
        let Settled { consumer, entries, extras, settling, then } = settled;
        let mut state = self.state();
        let state = &mut *state;
        let mut extras = extras.into_iter().peekable();
        let mut freed = 0;
        for entry in entries {
            let extra = extras.next_if(|(seq, _)| *seq == entry.seq).map(|(_, extra)| extra);
            let weight = u64::from(entry.len) + extra.as_ref().map_or(0, Extra::body_len);
            state.backlog.unacked_count -= 1;
            state.backlog.unacked_bytes -= weight;
            match settling {
                Settling::Requeue if !state.deleted => {
                    if let Some(call) = extra.as_ref().and_then(|extra| extra.call.clone()) {
                        effects.notify(call, Notice::Requeued { queue: self.clone(), seq: entry.seq });
                    }
                    state.backlog.put_back(*entry, extra, true);
                }
                Settling::Requeue | Settling::Done => {
                    freed += weight;
                    state.backlog.segments.release(entry.segment, 1);
                }
            }
        }
        if settling == Settling::Done {
            state.backlog.counts.acked += entries.len() as u64;
        }
        effects.memory -= freed as i64;
        if let Some(found) = state.consumers.iter_mut().find(|found| found.id == consumer) {
            found.unacked -= entries.len() as u32;
        }
        if then == Then::Serve {
            self.serve(state, &mut backlog::Fresh::none(), effects);
        }
    }

    /// Hands out what consumers have room for.
    pub fn go_on(self: &Arc<Self>, effects: &mut Effects) {
        self.serve(&mut self.state(), &mut backlog::Fresh::none(), effects);
    }

    /// Goes on delivering to a connection whose outbox was full or whose channel was at its limit.
    pub fn resume(self: &Arc<Self>, connection: ConnectionId, effects: &mut Effects) {
        let mut state = self.state();
        for consumer in state.consumers.iter_mut().filter(|consumer| consumer.link.id == connection) {
            consumer.stalled = false;
        }
        self.serve(&mut state, &mut backlog::Fresh::none(), effects);
    }

    /// Drops ready messages; returns how many.
    pub fn purge(&self, effects: &mut Effects) -> u64 {
        let (count, bytes) = self.state().backlog.purge();
        effects.memory -= bytes as i64;
        count
    }

    /// Removes one ready message, wherever it stands.
    pub fn remove(&self, seq: u64, effects: &mut Effects) -> bool {
        let removed = self.state().backlog.remove(seq);
        effects.memory -= removed.unwrap_or(0) as i64;
        removed.is_some()
    }

    /// Drops what has expired at the head.
    pub fn expire(&self, effects: &mut Effects) {
        effects.memory -= self.state().backlog.expire(effects.now) as i64;
    }

    /// Ends the queue: drops what is ready and hands back its consumers, who must be told. `Err` says what keeps it alive.
    pub fn close(&self, if_unused: bool, if_empty: bool, effects: &mut Effects) -> Result<(u64, Vec<Consumer>), InUse> {
        let mut state = self.state();
        effects.memory -= state.backlog.expire(effects.now) as i64;
        if if_unused && !state.consumers.is_empty() {
            return Err(InUse::Consumed);
        }
        if if_empty && state.backlog.ready_count > 0 {
            return Err(InUse::NotEmpty);
        }
        if std::mem::replace(&mut state.deleted, true) {
            return Ok((0, Vec::new()));
        }
        let (count, bytes) = state.backlog.purge();
        effects.memory -= bytes as i64;
        self.consumer_count.store(0, Ordering::Relaxed);
        effects.consumers -= state.consumers.len() as i64;
        Ok((count, std::mem::take(&mut state.consumers)))
    }
}

/// Why a conditional delete was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InUse {
    Consumed,
    NotEmpty,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue '{}'", self.name)
    }
}
