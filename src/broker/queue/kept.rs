//! Dead letters that somebody refused, of a queue that promises to deliver them at least once (`x-dead-letter-strategy`).
//!
//! They stay with their queue, out of its consumers' reach, until everybody they are routed to has taken them. They count towards the
//! queue's limits and go with it; a purge leaves them, as RabbitMQ's does. The queue's timer tries them again, in rounds:
//!
//! ```text
//!   somebody took some   ─► next round after PAUSE_MIN, from the oldest
//!   nobody took anything ─► next round after twice the pause, from where this one ended
//! ```
//!
//! New letters do not wait behind these: each is sent once when its message dies.

use super::Queue;
use super::backlog::Backlog;
use crate::broker::effects::Effects;
use crate::broker::letters::Dead;
use crate::kernel::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// Letters sent in one round, so that other timers get their turn.
const TRIES_MAX: usize = 1024;
/// Refusals in one round after something was taken: what follows likely goes to the same full queue.
const REFUSALS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// Oldest first.
    letters: BTreeMap<u64, Letter>,
    next_id: u64,
    pub bytes: u64,
    pub body_bytes: u64,
    /// Where the next round begins.
    from: u64,
    /// How long the next round that is in vain makes them wait.
    pause: Duration,
    /// When the next round is.
    pub due: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Letter {
    dead: Dead,
    /// Queues that have it already.
    already: Vec<Arc<str>>,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    from: u64,
    /// The first that it has not come to yet.
    at: u64,
    tried: usize,
    taken: usize,
}

impl Kept {
    pub fn count(&self) -> u64 {
        self.letters.len() as u64
    }

    fn add(&mut self, dead: Dead, already: Vec<Arc<str>>, now: Instant) {
        if self.letters.is_empty() {
            (self.from, self.pause, self.due) = (0, PAUSE_MIN * 2, Some(now + PAUSE_MIN));
        }
        self.bytes += dead.weight();
        self.body_bytes += dead.body_len();
        self.letters.insert(self.next_id, Letter { dead, already });
        self.next_id += 1;
    }

    /// Returns its bytes.
    fn remove(&mut self, id: u64) -> Option<u64> {
        let Letter { dead, .. } = self.letters.remove(&id)?;
        self.bytes -= dead.weight();
        self.body_bytes -= dead.body_len();
        Some(dead.weight())
    }

    /// Something is different: they are tried again at once, all of them.
    pub fn hurry(&mut self, now: Instant) {
        if !self.letters.is_empty() {
            (self.from, self.pause, self.due) = (0, PAUSE_MIN, Some(now));
        }
    }

    fn begin(&mut self, now: Instant) -> Option<Round> {
        self.due.take_if(|due| *due <= now)?;
        Some(Round { from: self.from, at: self.from, tried: 0, taken: 0 })
    }

    fn next(&self, round: &Round) -> Option<(u64, &Letter)> {
        let (refused, began_late) = (round.tried - round.taken, round.from > 0);
        let is_over = round.tried == TRIES_MAX || round.taken > 0 && (began_late || refused >= REFUSALS_MAX);
        let (id, letter) = self.letters.range(round.at..).next().filter(|_| !is_over)?;
        Some((*id, letter))
    }

    fn end(&mut self, round: Round, now: Instant) {
        if self.letters.is_empty() {
            self.due = None;
        } else if round.taken > 0 {
            let is_cut_short = round.from > 0 || round.tried == TRIES_MAX;
            (self.from, self.pause) = (0, PAUSE_MIN);
            self.due = Some(if is_cut_short { now } else { now + PAUSE_MIN });
        } else {
            let is_at_end = self.letters.range(round.at..).next().is_none();
            self.from = if is_at_end { 0 } else { round.at };
            self.due = Some(now + self.pause);
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }
}

impl Backlog {
    pub fn kept_count(&self) -> u64 {
        self.rules.as_ref().map_or(0, |rules| rules.kept.count())
    }

    pub fn kept_bytes(&self) -> u64 {
        self.rules.as_ref().map_or(0, |rules| rules.kept.bytes)
    }

    /// Returns their bytes.
    pub fn drop_kept(&mut self) -> u64 {
        self.rules.as_mut().map_or(0, |rules| std::mem::take(&mut rules.kept).bytes)
    }
}

impl Queue {
    /// Keeps a letter that not everybody took who should have. False if there is no queue any more to keep it in.
    pub fn keep(self: &Arc<Self>, dead: Dead, already: Vec<Arc<str>>, effects: &mut Effects) -> bool {
        let mut state = self.state();
        let is_deleted = state.deleted;
        let Some(rules) = state.backlog.rules.as_mut().filter(|_| !is_deleted) else { return false };
        effects.memory += dead.weight() as i64;
        rules.kept.add(dead, already, effects.now);
        self.look_ahead(&mut state, effects);
        true
    }

    /// One round, if it is time for one. To be called without any lock, by one at a time.
    pub(super) fn try_kept(self: &Arc<Self>, effects: &mut Effects) {
        let mut round = {
            let mut state = self.state();
            let Some(rules) = &mut state.backlog.rules else { return };
            let Some(round) = rules.kept.begin(effects.now) else { return };
            if rules.letters.is_none() {
                effects.memory -= state.backlog.drop_kept() as i64;
                return;
            }
            round
        };
        while let Some((id, Letter { dead, already })) = self.next_kept(&round) {
            let placed = dead.send(&already, effects);
            let is_taken = dead.refusal(&placed, &already).is_none();
            round = Round { at: id + 1, tried: round.tried + 1, taken: round.taken + usize::from(is_taken), ..round };
            let mut state = self.state();
            let Some(rules) = &mut state.backlog.rules else { return };
            if is_taken || dead.letters.keeper.is_none() {
                effects.memory -= rules.kept.remove(id).unwrap_or(0) as i64;
            } else if let Some(letter) = rules.kept.letters.get_mut(&id) {
                letter.already.extend(placed.took);
            }
        }
        if let Some(rules) = &mut self.state().backlog.rules {
            rules.kept.end(round, effects.now);
        }
    }

    /// The next letter of a round, to be sent as the queue's rules are now.
    fn next_kept(&self, round: &Round) -> Option<(u64, Letter)> {
        let state = self.state();
        let rules = state.backlog.rules.as_ref()?;
        let (id, letter) = rules.kept.next(round)?;
        let dead = Dead { letters: rules.letters.clone()?, ..letter.dead.clone() };
        Some((id, Letter { dead, already: letter.already.clone() }))
    }
}
