//! What a change sets off outside the locks under which it was made: wakes, news for calls, spans, the memory level.

use super::call::CallState;
use super::config::ConnectionId;
use super::journey::StepKind;
use super::letters::Dead;
use super::link::Link;
use super::queue::Queue;
use super::shared::Shared;
use super::tap::{Ended, Seen};
use crate::kernel::Instant;
use crate::model::emit;
use crate::model::signal::Span;
use smallvec::SmallVec;
use std::sync::Arc;

/// A batch that touched at most so many connections …
const WRITE_SELF_LINKS: usize = 2;
/// … and no more than so many bytes in each is written by the task that made it; else their own tasks are woken.
const WRITE_SELF_BYTES: usize = 64 * 1024;

pub(super) struct Effects {
    pub now: Instant,
    /// Change of the bytes held in queues.
    pub memory: i64,
    pub delivered: u64,
    /// Change of the number of consumers.
    pub consumers: i64,
    /// The longest ready list met, in bytes.
    pub backlog_max: u64,
    pub spans: Vec<Span>,
    /// The connection whose task this is: it sends its own outbox anyway.
    own: Option<ConnectionId>,
    touched: SmallVec<[Arc<Link>; 4]>,
    notices: Vec<(Arc<CallState>, Notice)>,
    /// For who looks at messages.
    seen: Vec<Seen>,
    /// What only queues with rules set off.
    rare: Option<Box<Rare>>,
}

/// A message that a full queue refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overflowed {
    /// As the batch counts its messages.
    pub at: u32,
    /// It is a dead letter of that queue now.
    pub buried: bool,
}

#[derive(Default)]
struct Rare {
    /// In the order of their deaths.
    dead: Vec<Dead>,
    /// Queues to be looked at, with the time asked for before and the time asked for now.
    due: Vec<(Arc<Queue>, Option<Instant>, Instant)>,
    /// Messages of the batch that a full queue refused.
    refused: Vec<Overflowed>,
}

/// What a call must know.
pub(super) enum Notice {
    Delivered {
        link: Arc<Link>,
    },
    FrameTooSmall {
        frame_max: u32,
    },
    /// It stands in the queue again.
    Requeued {
        queue: Arc<Queue>,
        seq: u64,
    },
    Rejected,
    /// Its queue was full, or had it back too often.
    Dropped,
    WorkerGone,
}

impl Effects {
    /// For whoever is no connection.
    pub fn new(now: Instant) -> Self {
        Effects {
            now,
            memory: 0,
            delivered: 0,
            consumers: 0,
            backlog_max: 0,
            spans: Vec::new(),
            own: None,
            touched: SmallVec::new(),
            notices: Vec::new(),
            rare: None,
            seen: Vec::new(),
        }
    }

    /// For the task of a connection.
    pub fn of(now: Instant, own: ConnectionId) -> Self {
        Effects { own: Some(own), ..Effects::new(now) }
    }

    /// `link` has something new to write and nobody else has taken on to say so.
    pub fn wake(&mut self, link: &Arc<Link>) {
        if self.own != Some(link.id) {
            self.touched.push(link.clone());
        }
    }

    /// Somebody looks at what a queue did with a message.
    pub fn see(&mut self, seen: Seen) -> Ended {
        self.seen.push(seen);
        Ended(self.seen.len() - 1)
    }

    /// What became of a dead letter. It is published before anything seen is told.
    pub fn see_letter(&mut self, Ended(at): Ended, step: StepKind) {
        if let Some(seen) = self.seen.get_mut(at) {
            seen.then = Some((seen.taps.number(), step));
        }
    }

    #[cold]
    fn tell_seen(&mut self) {
        // Telling makes messages, whose deliveries are seen in turn; of those nobody is told.
        while !self.seen.is_empty() {
            std::mem::take(&mut self.seen).into_iter().for_each(|seen| seen.tell(self));
        }
    }

    pub fn notify(&mut self, call: Arc<CallState>, notice: Notice) {
        self.notices.push((call, notice));
    }

    fn rare(&mut self) -> &mut Rare {
        self.rare.get_or_insert_default()
    }

    /// A queue gave a message up, and has somewhere for it to go.
    pub fn bury(&mut self, dead: Dead) {
        self.rare().dead.push(dead);
    }

    /// `queue` is to be looked at `at` a time, and not `instead_of` any more.
    pub fn look_at(&mut self, queue: Arc<Queue>, instead_of: Option<Instant>, at: Instant) {
        self.rare().due.push((queue, instead_of, at));
    }

    /// A full queue refused a message of the batch.
    pub fn refuse(&mut self, overflowed: Overflowed) {
        self.rare().refused.push(overflowed);
    }

    /// What was refused since the last time.
    // HOT
    #[inline]
    pub fn take_refused(&mut self) -> Vec<Overflowed> {
        match &mut self.rare {
            None => Vec::new(),
            Some(rare) => std::mem::take(&mut rare.refused),
        }
    }

    /// Publishes the dead letters, those included that their publishing makes, and asks for the queues to be looked at in time. To
    /// be called without any lock.
    // HOT
    #[inline]
    pub fn post(&mut self, shared: &Shared) {
        while let Some(rare) = self.rare.take() {
            self.post_rare(*rare, shared);
        }
    }

    #[cold]
    fn post_rare(&mut self, rare: Rare, shared: &Shared) {
        rare.due.iter().for_each(|(queue, instead_of, at)| shared.deadlines.set(queue, *instead_of, *at));
        rare.dead.into_iter().for_each(|dead| dead.publish(self));
    }

    /// Does it all, writing to few and barely filled connections from the calling task.
    // HOT
    pub fn run(mut self, shared: &Shared) {
        self.settle_books(shared);
        let few = self.touched.len() <= WRITE_SELF_LINKS;
        for link in self.touched {
            match few && link.waiting() <= WRITE_SELF_BYTES {
                true => link.write_now(),
                false => link.signal(),
            }
        }
    }

    /// Does it all, but only wakes other tasks: for callers that are in the middle of writing.
    pub fn run_quietly(mut self, shared: &Shared) {
        self.settle_books(shared);
        self.touched.iter().for_each(|link| link.signal());
    }

    fn settle_books(&mut self, shared: &Shared) {
        self.post(shared);
        // What one of them tells of, the other may have to tell of again.
        while !self.seen.is_empty() {
            self.tell_seen();
            self.post(shared);
        }
        shared.book(self.memory);
        if self.delivered > 0 {
            shared.counts.delivered.add(self.delivered);
        }
        if self.consumers != 0 {
            shared.counts.consumers.add(self.consumers);
        }
        for (call, notice) in self.notices.drain(..) {
            call.notice(notice);
        }
        self.spans.drain(..).for_each(emit::span);
    }
}
