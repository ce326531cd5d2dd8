//! One queue: what is ready, who consumes, and how one becomes the other.
//!
//! One lock, taken after the topology's and before any outbox's. Whatever a change sets off elsewhere goes into [`Effects`].

mod backlog;
mod blocks;
mod consumer;
mod entry;
mod kept;
mod look;
mod pick;
mod ruled;
mod rules;
mod serve;
mod settings;
mod tapped;
mod waits;

pub(super) use consumer::{Consumer, NewConsumer};
pub(super) use entry::Entry;
pub(super) use pick::{Seen, SeenUnacked, Taken};
pub(super) use rules::Declared;
pub(super) use settings::QueueSettings;
pub use waits::Waits;

use super::effects::{Effects, Notice};
use super::letters::Reason;
use super::message::{Extra, Run};
use crate::broker::config::{AttachmentHow, ConnectionId};
use crate::kernel::Instant;
use crate::model::service::ServiceName;
use crate::model::topology::QueueSpec;
use backlog::{Backlog, Fresh};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
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
    /// When it is full it may refuse what is published to it; for a look without the lock.
    refuses: AtomicBool,
    state: Mutex<State>,
}

struct State {
    backlog: Backlog,
    consumers: Vec<Consumer>,
    /// Whose turn it is.
    turn: usize,
    deleted: bool,
    had_consumer: bool,
    /// When it asked to be looked at.
    due: Option<Instant>,
    /// When something was last published to it, delivered or settled.
    touched: Instant,
}

/// What becomes of deliveries that leave the unacked state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Settling {
    Acked,
    /// By a client that does not want it back.
    Rejected,
    /// By a client that wants it back.
    Requeued,
    /// Its channel is gone.
    Returned,
    /// Nobody can want it any more.
    Forgotten,
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
    pub fn new(spec: QueueSpec, owner: Option<ConnectionId>, now: Instant) -> Arc<Self> {
        Arc::new(Queue {
            name: spec.name.as_str().into(),
            spec,
            owner,
            services: RwLock::default(),
            consumer_count: AtomicU32::new(0),
            last_consumer_ms: AtomicU64::new(0),
            refuses: AtomicBool::new(false),
            state: Mutex::new(State {
                backlog: Backlog::new(),
                consumers: Vec::new(),
                turn: 0,
                deleted: false,
                had_consumer: false,
                due: None,
                touched: now,
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
            if state.backlog.is_tapped() {
                state.backlog.see_unwanted(run, DELETED, effects);
            }
            return None;
        }
        state.touched = run.now;
        if state.backlog.rules.is_some() {
            return self.offer_ruled(&mut state, run, effects);
        }
        let first = self.take_in(&mut state, run, effects);
        if state.backlog.timed {
            self.look_ahead(&mut state, effects);
        }
        Some(first)
    }

    // HOT
    #[inline]
    fn take_in(self: &Arc<Self>, state: &mut State, run: &Run<'_>, effects: &mut Effects) -> u64 {
        let (mut fresh, weight) = state.backlog.admit(run);
        let first = fresh.first_seq();
        if state.backlog.is_tapped() {
            state.backlog.see_queued(run, effects);
        }
        effects.memory += weight as i64;
        effects.backlog_max = effects.backlog_max.max(state.backlog.ready_bytes);
        self.serve(state, &mut fresh, effects);
        state.backlog.keep(fresh);
        first
    }

    /// Settles deliveries of one consumer (or of `basic.get`, consumer 0).
    // HOT
    pub fn settle(self: &Arc<Self>, settled: Settled<'_>, effects: &mut Effects) {
        let Settled { consumer, entries, extras, settling, then } = settled;
        let mut state = self.state();
        let state = &mut *state;
        if state.backlog.is_tapped() {
            match settling {
                Settling::Rejected | Settling::Requeued | Settling::Returned if state.deleted => {
                    state.backlog.see_gone(entries.iter(), DELETED, effects)
                }
                Settling::Rejected => {}
                _ => entries.iter().for_each(|entry| state.backlog.see_settled(entry, settling, effects)),
            }
        }
        let mut extras = extras.into_iter().peekable();
        let mut freed = 0;
        let forget = state.deleted || matches!(settling, Settling::Acked | Settling::Forgotten);
        for entry in entries {
            let extra = extras.next_if(|(seq, _)| *seq == entry.seq).map(|(_, extra)| extra);
            let weight = u64::from(entry.len) + extra.as_ref().map_or(0, Extra::body_len);
            state.backlog.unacked_count -= 1;
            state.backlog.unacked_bytes -= weight;
            if forget {
                freed += weight;
                state.backlog.segments.release(entry.segment, 1);
            } else {
                self.take_back(&mut state.backlog, *entry, extra, settling, effects);
            }
        }
        if settling == Settling::Acked {
            state.backlog.counts.acked += entries.len() as u64;
        }
        state.touched = effects.now;
        effects.memory -= freed as i64;
        if let Some(found) = state.consumers.iter_mut().find(|found| found.id == consumer) {
            found.unacked -= entries.len() as u32;
        }
        if then == Then::Serve {
            self.turn(state, effects);
        }
    }

    /// A delivery that comes back, or is given up.
    #[cold]
    fn take_back(
        self: &Arc<Self>,
        backlog: &mut Backlog,
        entry: Entry,
        extra: Option<Extra>,
        settling: Settling,
        effects: &mut Effects,
    ) {
        if settling == Settling::Rejected {
            return backlog.bury(entry, extra, Reason::Rejected, effects);
        }
        let call = extra.as_ref().and_then(|extra| extra.call.clone());
        let seq = if backlog.is_quorum() {
            backlog.put_back_counted(entry, extra, settling == Settling::Requeued, effects)
        } else {
            backlog.put_back(entry, extra, true);
            Some(entry.seq)
        };
        if let (Some(call), Some(seq)) = (call, seq) {
            effects.notify(call, Notice::Requeued { queue: self.clone(), seq });
        }
    }

    /// Hands out what consumers have room for, once what may not stay is gone.
    // HOT
    #[inline]
    fn turn(self: &Arc<Self>, state: &mut State, effects: &mut Effects) {
        let ruled = state.backlog.timed || state.backlog.rules.is_some();
        if ruled {
            state.backlog.keep_to_length(effects);
            state.backlog.expire(effects);
        }
        self.serve(state, &mut Fresh::none(), effects);
        if ruled {
            self.look_ahead(state, effects);
        }
    }

    /// Hands out what consumers have room for.
    pub fn go_on(self: &Arc<Self>, effects: &mut Effects) {
        self.turn(&mut self.state(), effects);
    }

    /// Goes on delivering to a connection whose outbox was full or whose channel was at its limit.
    pub fn resume(self: &Arc<Self>, connection: ConnectionId, effects: &mut Effects) {
        let mut state = self.state();
        for consumer in state.consumers.iter_mut().filter(|consumer| consumer.link.id == connection) {
            consumer.go_on();
        }
        self.turn(&mut state, effects);
    }

    /// Drops ready messages; returns how many.
    pub fn purge(&self, effects: &mut Effects) -> u64 {
        let (count, bytes) = self.state().backlog.purge("purged", effects);
        effects.memory -= bytes as i64;
        count
    }

    /// Removes one ready message, wherever it stands.
    pub fn remove(&self, seq: u64, effects: &mut Effects) -> bool {
        let removed = self.state().backlog.remove(seq, "its caller is gone", effects);
        effects.memory -= removed.unwrap_or(0) as i64;
        removed.is_some()
    }

    /// Ends the queue: drops what is ready and hands back its consumers, who must be told. `Err` says what keeps it alive.
    pub fn close(&self, if_unused: bool, if_empty: bool, effects: &mut Effects) -> Result<(u64, Vec<Consumer>), InUse> {
        let mut state = self.state();
        state.backlog.expire(effects);
        if if_unused && !state.consumers.is_empty() {
            return Err(InUse::Consumed);
        }
        if if_empty && state.backlog.ready_count + state.backlog.kept_count() > 0 {
            return Err(InUse::NotEmpty);
        }
        if std::mem::replace(&mut state.deleted, true) {
            return Ok((0, Vec::new()));
        }
        let (count, bytes) = state.backlog.purge(DELETED, effects);
        effects.memory -= (bytes + state.backlog.drop_kept()) as i64;
        self.consumer_count.store(0, Ordering::Relaxed);
        effects.consumers -= state.consumers.len() as i64;
        Ok((count, std::mem::take(&mut state.consumers)))
    }
}

/// Why messages went that were in it, or came too late.
const DELETED: &str = "its queue was deleted";

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
