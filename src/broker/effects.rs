//! What a change sets off outside the locks under which it was made: wakes, news for calls, spans, the memory level.

use super::call::CallState;
use super::config::ConnectionId;
use super::link::Link;
use super::queue::Queue;
use super::shared::Shared;
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

    pub fn notify(&mut self, call: Arc<CallState>, notice: Notice) {
        self.notices.push((call, notice));
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
