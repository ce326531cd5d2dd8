//! One browser's subscriptions.
//!
//! ```text
//!   idle ── something new, and not before its time ──▶ awaiting ack ── ack ──▶ idle
//! ```

use super::{Batch, Channel, DELTA_BYTES_MAX, Delta, Live, ROWS_PER_DELTA_MAX, Subscribe, SubscribeError, Tail, Watch};
use crate::kernel::Instant;
use crate::model::refusal::{Refusal, RefusalKind};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Subscriptions of one session at most.
const SUBSCRIPTIONS_MAX: usize = 64;
/// Between two deltas of one subscription: faster than eyes need, slow enough to gather rows.
const PACE: Duration = Duration::from_millis(100);

pub struct Session {
    live: Arc<Live>,
    changed: watch::Receiver<u64>,
    subscriptions: Vec<Subscription>,
    /// Where the next poll begins, so that a busy channel does not starve the others.
    turn: usize,
}

struct Subscription {
    id: u64,
    channel: Channel,
    kind: Kind,
    /// Cursor of the delta that was sent and not yet acknowledged.
    awaiting: Option<u64>,
    /// Version of the channel when it was last read; `None` before the first delta, which is always sent.
    seen: Option<u64>,
    not_before: Instant,
}

enum Kind {
    State { cursor: Option<u64>, space: Option<String>, _watch: Watch },
    Stream(Box<dyn Tail>),
}

impl Session {
    pub(super) fn new(live: Arc<Live>) -> Self {
        let changed = live.changed.subscribe();
        Session { live, changed, subscriptions: Vec::new(), turn: 0 }
    }

    /// A second subscription of the same id replaces the first.
    pub fn subscribe(&mut self, wish: Subscribe) -> Result<(), SubscribeError> {
        self.unsubscribe(wish.id);
        if self.subscriptions.len() >= SUBSCRIPTIONS_MAX {
            let refusal = Refusal::new(RefusalKind::Exhausted, "this connection has 64 subscriptions already");
            return Err(SubscribeError::Refused(refusal.hint("Unsubscribe from some first")));
        }
        let kind = if wish.channel.is_state() {
            Kind::State { cursor: wish.cursor, space: wish.space.clone(), _watch: self.live.watch(wish.channel) }
        } else {
            Kind::Stream(self.live.open(&wish)?)
        };
        self.subscriptions.push(Subscription {
            id: wish.id,
            channel: wish.channel,
            kind,
            awaiting: None,
            seen: None,
            not_before: Instant::ZERO,
        });
        Ok(())
    }

    /// The browser has taken everything up to `cursor`; the next delta may be made.
    pub fn ack(&mut self, id: u64, cursor: u64) {
        let found = self.subscriptions.iter_mut().find(|subscription| subscription.id == id);
        if let Some(subscription) = found.filter(|subscription| subscription.awaiting.is_some_and(|sent| cursor >= sent)) {
            subscription.awaiting = None;
        }
    }

    pub fn unsubscribe(&mut self, id: u64) {
        self.subscriptions.retain(|subscription| subscription.id != id);
    }

    /// The next delta that may be sent now, of whichever subscription. Call until `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Delta> {
        for _ in 0..self.subscriptions.len() {
            self.turn = (self.turn + 1) % self.subscriptions.len();
            let subscription = &mut self.subscriptions[self.turn];
            let is_due = subscription.due(&self.live).is_some_and(|at| at <= now);
            if let Some(delta) = is_due.then(|| subscription.read(&self.live)).flatten() {
                subscription.awaiting = Some(delta.cursor());
                subscription.not_before = now + PACE;
                return Some(delta);
            }
        }
        None
    }

    /// Resolves when [`Session::poll`] may have something.
    pub async fn ready(&mut self) {
        loop {
            self.changed.borrow_and_update();
            let now = self.live.clock.now();
            match self.subscriptions.iter().filter_map(|subscription| subscription.due(&self.live)).min() {
                Some(at) if at <= now => return,
                Some(at) => tokio::time::sleep(at.since(now)).await,
                // The sender lives in `self.live`, so waiting cannot fail.
                None => _ = self.changed.changed().await,
            }
        }
    }
}

impl Subscription {
    /// When it may be read, if it has cause to.
    fn due(&self, live: &Live) -> Option<Instant> {
        let fresh = self.seen != Some(live.version(self.channel));
        (self.awaiting.is_none() && fresh).then_some(self.not_before)
    }

    fn read(&mut self, live: &Live) -> Option<Delta> {
        // Before reading: a change meanwhile makes it due again rather than being missed.
        let version = live.version(self.channel);
        let is_first = self.seen.replace(version).is_none();
        match &mut self.kind {
            Kind::State { cursor, space, .. } => {
                let prefix = space.as_ref().map(|space| format!("{space} "));
                let wanted = |key: &str| prefix.as_ref().is_none_or(|prefix| key.starts_with(prefix));
                let changes = live.states().entry(self.channel).or_default().since(*cursor, &wanted);
                *cursor = Some(changes.version);
                if !is_first && changes.set.is_empty() && changes.gone.is_empty() && !changes.full {
                    return None;
                }
                let (cursor, full) = (changes.version, changes.full);
                Some(Delta::State { id: self.id, cursor, full, set: changes.set, gone: changes.gone })
            }
            Kind::Stream(tail) => {
                let Batch { cursor, rows, skipped, evicted } = tail.read(ROWS_PER_DELTA_MAX, DELTA_BYTES_MAX);
                if !is_first && rows.is_empty() && skipped == 0 && evicted == 0 {
                    return None;
                }
                Some(Delta::Rows { id: self.id, cursor, rows, skipped, evicted })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Clock;
    use serde_json::value::RawValue;

    fn json(text: &str) -> Arc<RawValue> {
        RawValue::from_string(text.to_owned()).expect("valid").into()
    }

    fn wish(id: u64, channel: Channel) -> Subscribe {
        Subscribe { id, channel, query: None, service: None, instance: None, space: None, cursor: None, backfill: None }
    }

    fn keys(delta: &Delta) -> Vec<&str> {
        match delta {
            Delta::State { set, .. } => set.keys().map(|key| &**key).collect(),
            Delta::Rows { .. } => panic!("a state delta"),
        }
    }

    #[test]
    fn the_next_delta_waits_for_the_acknowledgement_and_holds_only_what_changed() {
        let clock = Clock::manual(0);
        let live = Live::new(clock.clone());
        live.set(Channel::Services, "/ a", json("1"));
        let mut session = live.session();
        session.subscribe(wish(7, Channel::Services)).expect("taken");
        let first = session.poll(clock.now()).expect("everything at first");
        assert!(matches!(first, Delta::State { id: 7, full: true, .. }));
        for value in 0..50 {
            live.set(Channel::Services, "/ b", json(&value.to_string()));
            clock.advance(PACE);
            assert!(session.poll(clock.now()).is_none(), "not acknowledged");
        }
        session.ack(7, first.cursor());
        let second = session.poll(clock.now()).expect("acknowledged");
        assert_eq!(keys(&second), ["/ b"]);
        assert!(matches!(&second, Delta::State { full: false, set, .. } if set["/ b"].get() == "49"));
        session.ack(7, second.cursor());
        clock.advance(PACE);
        assert!(session.poll(clock.now()).is_none(), "nothing new");
    }

    #[test]
    fn an_acknowledgement_of_less_than_was_sent_is_none() {
        let clock = Clock::manual(0);
        let live = Live::new(clock.clone());
        live.set(Channel::Queues, "/ q", json("1"));
        let mut session = live.session();
        session.subscribe(wish(1, Channel::Queues)).expect("taken");
        let first = session.poll(clock.now()).expect("first");
        live.set(Channel::Queues, "/ q", json("2"));
        clock.advance(PACE);
        session.ack(1, first.cursor() - 1);
        session.ack(2, first.cursor());
        assert!(session.poll(clock.now()).is_none());
        session.ack(1, first.cursor());
        assert!(session.poll(clock.now()).is_some());
    }

    #[test]
    fn deltas_of_one_subscription_keep_their_distance() {
        let clock = Clock::manual(0);
        let live = Live::new(clock.clone());
        let mut session = live.session();
        session.subscribe(wish(1, Channel::Map)).expect("taken");
        let first = session.poll(clock.now()).expect("first, even if empty");
        session.ack(1, first.cursor());
        live.set(Channel::Map, "map", json("{}"));
        assert!(session.poll(clock.now()).is_none(), "too soon");
        clock.advance(PACE);
        assert!(session.poll(clock.now()).is_some());
    }

    #[test]
    fn a_space_filter_hides_the_keys_of_others() {
        let clock = Clock::manual(0);
        let live = Live::new(clock.clone());
        live.set(Channel::Queues, "/ a", json("1"));
        live.set(Channel::Queues, "blue a", json("1"));
        let mut session = live.session();
        session.subscribe(Subscribe { space: Some("blue".into()), ..wish(1, Channel::Queues) }).expect("taken");
        assert_eq!(keys(&session.poll(clock.now()).expect("first")), ["blue a"]);
    }

    #[test]
    fn a_resumed_state_subscription_gets_only_what_it_missed() {
        let clock = Clock::manual(0);
        let live = Live::new(clock.clone());
        live.set(Channel::Queues, "/ a", json("1"));
        live.set(Channel::Queues, "/ b", json("1"));
        let mut session = live.session();
        session.subscribe(wish(1, Channel::Queues)).expect("taken");
        let cursor = session.poll(clock.now()).expect("first").cursor();
        live.remove(Channel::Queues, "/ a");
        let mut later = live.session();
        later.subscribe(Subscribe { cursor: Some(cursor), ..wish(1, Channel::Queues) }).expect("taken");
        let delta = later.poll(clock.now()).expect("what it missed");
        assert!(matches!(&delta, Delta::State { full: false, set, gone, .. } if set.is_empty() && gone.len() == 1));
        let mut foreign = live.session();
        foreign.subscribe(Subscribe { cursor: Some(999), ..wish(1, Channel::Queues) }).expect("taken");
        assert!(matches!(foreign.poll(clock.now()), Some(Delta::State { full: true, .. })), "a cursor of another life is void");
    }

    #[test]
    fn a_stream_that_nobody_registered_is_refused() {
        let live = Live::new(Clock::manual(0));
        assert!(matches!(live.session().subscribe(wish(1, Channel::Console)), Err(SubscribeError::Refused(_))));
    }

    #[tokio::test]
    async fn ready_resolves_on_a_change_and_not_before() {
        let live = Live::new(Clock::system());
        let mut session = live.session();
        session.subscribe(wish(1, Channel::Map)).expect("taken");
        session.ready().await;
        let first = session.poll(live.clock.now()).expect("first");
        session.ack(1, first.cursor());
        let idle = tokio::time::timeout(Duration::from_millis(150), session.ready()).await;
        assert!(idle.is_err(), "nothing changed");
        live.set(Channel::Map, "map", json("{}"));
        session.ready().await;
        assert!(session.poll(live.clock.now()).is_some());
    }
}
