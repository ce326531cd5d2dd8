//! When something in the broker is due next: one ordered list, and one task that waits for its front.

use super::shared::Shared;
use crate::kernel::Instant;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// Something that asks to be called at a time.
pub(super) trait Timed: Send + Sync {
    /// Called without any lock, at or after the time asked for.
    fn on_time(self: Arc<Self>, now: Instant, shared: &Shared);
}

/// Each thing stands once among those that are due at one time.
type Key = (Instant, usize);

#[derive(Default)]
pub(super) struct Deadlines {
    due: Mutex<BTreeMap<Key, Weak<dyn Timed>>>,
    sooner: Notify,
}

impl Deadlines {
    fn due(&self) -> MutexGuard<'_, BTreeMap<Key, Weak<dyn Timed>>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `thing` at `at`, and not at `instead_of` any more.
    pub fn set<T: Timed + 'static>(&self, thing: &Arc<T>, instead_of: Option<Instant>, at: Instant) {
        let id = Arc::as_ptr(thing) as usize;
        let thing: Arc<dyn Timed> = thing.clone();
        let mut due = self.due();
        if let Some(before) = instead_of {
            due.remove(&(before, id));
        }
        due.insert((at, id), Arc::downgrade(&thing));
        let is_first = due.keys().next() == Some(&(at, id));
        drop(due);
        if is_first {
            self.sooner.notify_one();
        }
    }

    /// The things that are due.
    pub fn take(&self, now: Instant) -> Vec<Arc<dyn Timed>> {
        let mut due = self.due();
        let mut taken = Vec::new();
        while let Some(first) = due.first_entry()
            && first.key().0 <= now
        {
            taken.extend(first.remove().upgrade());
        }
        taken
    }

    pub fn next(&self) -> Option<Instant> {
        self.due().keys().next().map(|(at, _)| *at)
    }

    /// Resolves when something became due sooner than what was.
    pub async fn sooner(&self) {
        self.sooner.notified().await;
    }
}

/// When to look for deliveries that are kept too long: the rarer, the longer they may be.
#[derive(Debug)]
pub(super) struct Timeouts {
    shortest_ms: AtomicU64,
    next_ns: AtomicU64,
}

impl Timeouts {
    pub fn new(common: Duration) -> Self {
        Timeouts { shortest_ms: AtomicU64::new(common.as_millis() as u64), next_ns: AtomicU64::new(0) }
    }

    /// Somewhere deliveries may be kept for so long at most.
    pub fn note(&self, timeout: Option<Duration>) {
        let Some(millis) = timeout.map(|timeout| timeout.as_millis() as u64) else { return };
        if self.shortest_ms.fetch_min(millis, Ordering::Relaxed) > millis {
            self.next_ns.store(0, Ordering::Relaxed);
        }
    }

    pub fn is_time_to_look(&self, now: Instant) -> bool {
        if now.as_nanos() < self.next_ns.load(Ordering::Relaxed) {
            return false;
        }
        let pause = Duration::from_millis((self.shortest_ms.load(Ordering::Relaxed) / 10).min(60_000));
        self.next_ns.store((now + pause).as_nanos(), Ordering::Relaxed);
        true
    }
}

impl fmt::Debug for Deadlines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} deadlines", self.due().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::config::{BrokerConfig, NoAttachments};
    use crate::kernel::Clock;

    #[derive(Default)]
    struct Bell(AtomicU64);

    impl Timed for Bell {
        fn on_time(self: Arc<Self>, _: Instant, _: &Shared) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_due_comes_once_and_what_is_gone_never() {
        let at = Instant::from_nanos;
        let deadlines = Deadlines::default();
        let (early, late) = (Arc::new(Bell::default()), Arc::new(Bell::default()));
        deadlines.set(&late, None, at(50));
        deadlines.set(&early, None, at(40));
        deadlines.set(&early, Some(at(40)), at(20));
        assert_eq!((deadlines.next(), deadlines.take(at(19)).len()), (Some(at(20)), 0));
        let shared = Shared::new(Clock::manual(0), BrokerConfig::default(), Arc::new(NoAttachments));
        let ring = |now| deadlines.take(at(now)).into_iter().for_each(|thing| thing.on_time(at(now), &shared));
        ring(45);
        assert_eq!((early.0.load(Ordering::Relaxed), late.0.load(Ordering::Relaxed)), (1, 0));
        drop(late);
        ring(60);
        assert_eq!(deadlines.next(), None);
    }
}
