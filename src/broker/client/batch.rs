//! The publishes of one read batch: records in one segment, grouped into runs of one route.
//!
//! The working memory belongs to the thread and is borrowed for the batch, so that an idle connection holds none of it.

use crate::broker::message::{Extra, Meta};
use crate::broker::record::SEGMENT_BYTES;
use crate::broker::routing::Route;
use bytes::BytesMut;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(super) struct Batch {
    pub work: Option<Box<Work>>,
    pub routes: RouteCache,
    /// Channels whose publishes are not booked yet.
    pub publishing: SmallVec<[u16; 4]>,
    /// Channels that owe a confirm.
    pub confirming: SmallVec<[u16; 4]>,
    /// By channel and number: messages that are confirmed with a nack, since a full queue refused them.
    pub refused: Vec<(u16, u64)>,
    pub published: u64,
}

#[derive(Debug, Default)]
pub(super) struct Work {
    pub segment: BytesMut,
    pub metas: Vec<Meta>,
    pub extras: Vec<(u32, Extra)>,
    pub runs: Vec<OpenRun>,
    /// Whose messages those are that a queue may refuse and somebody wants confirmed: index in `metas`, channel, number.
    pub tickets: Vec<(u32, u16, u64)>,
}

/// A run that may still grow.
#[derive(Debug)]
pub(super) struct OpenRun {
    pub route: Arc<Route>,
    /// Its first message in `Work::metas`; it ends where the next begins.
    pub first: u32,
    /// Where in the segment its key stands, to compare the next message's with.
    pub key_at: u32,
    pub key_len: u16,
    /// One of its queues may refuse it.
    pub may_be_refused: bool,
    /// Of its first message, for who looks at them.
    pub channel: u16,
}

thread_local!(static WORK: RefCell<Option<Box<Work>>> = const { RefCell::new(None) });

impl Batch {
    // HOT
    #[inline]
    pub fn work(&mut self) -> &mut Work {
        self.work.get_or_insert_with(|| WORK.take().unwrap_or_default())
    }

    /// Gives the working memory back to the thread.
    pub fn rest(&mut self) {
        if let Some(mut work) = self.work.take() {
            work.metas.clear();
            work.extras.clear();
            work.runs.clear();
            work.tickets.clear();
            WORK.set(Some(work));
        }
    }
}

impl Work {
    /// Begins a run with the message whose key stands at `at`.
    pub fn begin(&mut self, route: Arc<Route>, channel: u16, at: usize, key_len: u16) {
        let may_be_refused = route.queues.iter().any(|queue| queue.may_refuse());
        let (first, key_at) = (self.metas.len() as u32, at as u32);
        self.runs.push(OpenRun { route, first, key_at, key_len, may_be_refused, channel });
    }

    /// Makes room for one more record in the segment; false if the runs so far must go first.
    // HOT
    #[inline]
    pub fn has_room(&mut self, bytes: usize) -> bool {
        if self.segment.capacity() - self.segment.len() >= bytes {
            return true;
        }
        if !self.segment.is_empty() {
            return false;
        }
        self.segment = BytesMut::with_capacity(bytes.max(SEGMENT_BYTES));
        true
    }

    /// Whether the message whose key was just written at `key_at` goes the way of the run before it.
    // HOT
    #[inline]
    pub fn joins(&self, key_at: usize, key_len: u16) -> bool {
        let Some(run) = self.runs.last() else { return false };
        let at = run.key_at as usize;
        run.key_len == key_len
            && run.route.lasting
            && self.segment[at..at + usize::from(key_len)] == self.segment[key_at..key_at + usize::from(key_len)]
    }
}

const SLOTS: usize = 64;

/// The bytes a route was asked by, and the route.
type Known = (Box<[u8]>, Arc<Route>);

/// Routes by exchange and key, as they stand at the front of a record. Of two keys in one slot the later stays; all go when the
/// topology changes.
#[derive(Debug, Default)]
pub(super) struct RouteCache {
    slots: Vec<Option<Known>>,
    generation: u64,
}

impl RouteCache {
    // HOT
    #[inline]
    pub fn find(&mut self, key: &[u8], generation: u64) -> Option<Arc<Route>> {
        if self.generation != generation {
            self.slots = Vec::new();
            self.generation = generation;
        }
        let (known, route) = self.slots.get(slot(key))?.as_ref()?;
        (**known == *key).then(|| route.clone())
    }

    /// Remembers a route that was found while the topology was at `generation`, as `find` was told.
    pub fn insert(&mut self, key: &[u8], route: &Arc<Route>) {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, || None);
        }
        self.slots[slot(key)] = Some((key.into(), route.clone()));
    }
}

/// A quick mix; collisions cost a look-up, nothing else.
fn slot(key: &[u8]) -> usize {
    let mut mixed = 0u64;
    for chunk in key.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mixed = (mixed ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
    (mixed >> 32) as usize % SLOTS
}
