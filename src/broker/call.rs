//! One call on its way: who waits for it, where it is, and what ends it (contract §4, §5).

use super::config::ConnectionId;
use super::effects::{Effects, Notice};
use super::link::Link;
use super::queue::Queue;
use super::reply::Address;
use super::vhost::Vhost;
use crate::model::call::{CallEvent, CallFailure, CallObserver, Pressure, ReplyPart};
use crate::wire::amqp::Properties;
use bytes::Bytes;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

pub(super) struct CallState {
    pub address: Address,
    pub correlation: String,
    pub service: Arc<str>,
    observer: Arc<dyn CallObserver>,
    vhost: Weak<Vhost>,
    progress: Mutex<Progress>,
}

struct Progress {
    place: Place,
    instance: Arc<str>,
    /// The channel that sent the first part.
    answering: Option<(ConnectionId, u16)>,
}

enum Place {
    New,
    Queued { queue: Arc<Queue>, seq: u64 },
    Delivered,
    Over,
}

/// What the broker does with a message sent to a call's address.
pub(super) enum Answered {
    Taken,
    /// Reads of the replying connection must stop until notified, at most 10 s.
    Pause(Arc<tokio::sync::Notify>),
    /// Nobody waits: late, unknown or from a second worker.
    Dropped(&'static str),
}

impl CallState {
    pub fn new(service: Arc<str>, observer: Arc<dyn CallObserver>, vhost: &Arc<Vhost>) -> Arc<Self> {
        let progress = Progress { place: Place::New, instance: Arc::from(""), answering: None };
        Arc::new(CallState {
            address: Address::random(),
            correlation: crate::kernel::rng::token::<12>(),
            service,
            observer,
            vhost: Arc::downgrade(vhost),
            progress: Mutex::new(progress),
        })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn is_over(&self) -> bool {
        matches!(self.progress().place, Place::Over)
    }

    /// It stands in `queue` now, unless it was delivered from there already.
    pub fn queued(&self, queue: &Arc<Queue>, seq: u64) {
        let mut progress = self.progress();
        if let Place::New = progress.place {
            progress.place = Place::Queued { queue: queue.clone(), seq };
        }
    }

    /// Ends it; the address dies. False if it was over before.
    fn end(&self) -> bool {
        let place = std::mem::replace(&mut self.progress().place, Place::Over);
        if let Some(vhost) = self.vhost.upgrade() {
            vhost.replies.remove(&self.address);
            if let Place::Queued { queue, seq } = &place {
                let mut effects = Effects::new(vhost.shared.clock.now());
                queue.remove(*seq, &mut effects);
                effects.run_quietly(&vhost.shared);
            }
        }
        !matches!(place, Place::Over)
    }

    /// The caller is gone: a queued call is removed, a delivered one's address dies.
    pub fn cancel(&self) {
        self.end();
    }

    fn fail(&self, failure: CallFailure) {
        if self.end() {
            self.observer.on(CallEvent::Failed(failure));
        }
    }

    /// Takes news from the queues; called without any lock.
    pub fn notice(&self, notice: Notice) {
        let service = self.service.to_string();
        match notice {
            Notice::Delivered { link } => self.delivered(&link),
            Notice::FrameTooSmall { frame_max } => self.fail(CallFailure::FrameTooSmall { frame_max }),
            Notice::Dropped => {
                let queue = match &self.progress().place {
                    Place::Queued { queue, .. } => queue.name.to_string(),
                    Place::New | Place::Delivered | Place::Over => service,
                };
                self.fail(CallFailure::Full { queue });
            }
            Notice::Rejected => self.fail(CallFailure::Rejected { service }),
            Notice::WorkerGone => {
                let instance = self.progress().instance.to_string();
                self.fail(CallFailure::WorkerGone { service, instance });
            }
            Notice::Requeued { queue, seq } => {
                let mut progress = self.progress();
                if let Place::Delivered = progress.place {
                    progress.place = Place::Queued { queue, seq };
                }
            }
        }
    }

    fn delivered(&self, link: &Link) {
        let instance = link.resource().instance.clone();
        {
            let mut progress = self.progress();
            if let Place::Over = progress.place {
                return;
            }
            progress.place = Place::Delivered;
            progress.instance = instance.clone();
        }
        self.observer.on(CallEvent::Delivered { service: self.service.clone(), instance });
    }

    /// A message to its address, from `channel` of `link`.
    pub fn answer(&self, from: (ConnectionId, u16), properties: Properties<'_>, body: Bytes) -> Answered {
        if properties.correlation_id().is_some_and(|id| id != self.correlation) {
            return Answered::Dropped("its correlation_id is not the call's");
        }
        let headers = properties.headers();
        let more = headers.and_then(|headers| headers.get(":more")?.as_bool()).unwrap_or(false);
        {
            let mut progress = self.progress();
            if let Place::Over = progress.place {
                return Answered::Dropped("the call is over");
            }
            if *progress.answering.get_or_insert(from) != from {
                return Answered::Dropped("another channel answers this call already");
            }
        }
        if !more {
            self.end();
        }
        let part = ReplyPart {
            headers: headers.map(|headers| headers.to_table()).unwrap_or_default(),
            content_type: properties.content_type().map(str::to_owned),
            content_encoding: properties.content_encoding().map(str::to_owned),
            body,
            last: !more,
        };
        match self.observer.on(CallEvent::Part(part)) {
            Pressure::Continue => Answered::Taken,
            Pressure::Pause(until) => Answered::Pause(until),
            Pressure::Gone => {
                self.end();
                Answered::Taken
            }
        }
    }

    /// The caller took nothing for too long.
    pub fn stalled(&self) {
        self.fail(CallFailure::Stalled { service: self.service.to_string() });
    }
}

impl fmt::Debug for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "call to {} at {}", self.service, self.address.text())
    }
}

/// Keeps a call alive for its caller; dropping it cancels.
pub(super) struct Guard(pub Arc<CallState>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
