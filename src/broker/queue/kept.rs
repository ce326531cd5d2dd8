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
//! A round that found takers behind letters nobody took is followed by one look at the oldest, and then goes on where it was.
//!
//! New letters do not wait behind these: each is sent once when its message dies.

use super::Queue;
use super::backlog::Backlog;
use crate::broker::effects::Effects;
use crate::broker::letters::Dead;
use crate::broker::republish::Placed;
use crate::kernel::Instant;
use bytes::Bytes;
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
    /// Where takers were found behind letters that nobody took.
    resume: Option<u64>,
    /// The oldest were looked at before the next round, in vain.
    is_resumed: bool,
    /// How long the next round that is in vain makes them wait.
    pause: Duration,
    /// When the next round is.
    pub due: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Letter {
    dead: Dead,
    /// Who took it already.
    before: Placed,
}

#[derive(Clone, Copy, Debug)]
struct Round {
    from: u64,
    /// Ends when something was taken, so that the oldest get their chance first.
    is_search: bool,
    /// The first that it has not come to yet.
    at: u64,
    tried: usize,
    taken: usize,
}

impl Kept {
    pub fn count(&self) -> u64 {
        self.letters.len() as u64
    }

    fn add(&mut self, dead: Dead, before: Placed, now: Instant) {
        if self.letters.is_empty() {
            (self.from, self.resume, self.is_resumed) = (0, None, false);
            (self.pause, self.due) = (PAUSE_MIN * 2, Some(now + PAUSE_MIN));
        }
        self.bytes += dead.weight();
        self.body_bytes += dead.body_len();
        self.letters.insert(self.next_id, Letter { dead, before });
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
            (self.from, self.resume, self.is_resumed) = (0, None, false);
            (self.pause, self.due) = (PAUSE_MIN, Some(now));
        }
    }

    fn begin(&mut self, now: Instant) -> Option<Round> {
        self.due.take_if(|due| *due <= now)?;
        let is_search = self.from > 0 && !std::mem::take(&mut self.is_resumed);
        Some(Round { from: self.from, is_search, at: self.from, tried: 0, taken: 0 })
    }

    fn next(&self, round: &Round) -> Option<(u64, &Letter)> {
        let refused = round.tried - round.taken;
        let is_over = round.tried == TRIES_MAX || round.taken > 0 && (round.is_search || refused >= REFUSALS_MAX);
        let (id, letter) = self.letters.range(round.at..).next().filter(|_| !is_over)?;
        Some((*id, letter))
    }

    fn end(&mut self, round: Round, now: Instant) {
        if self.letters.is_empty() {
            self.due = None;
        } else if self.due.is_some() {
            // Hurried meanwhile: the next round is to begin as was said then.
        } else if round.taken > 0 {
            let is_cut_short = round.from > 0 || round.tried == TRIES_MAX;
            self.resume = (round.from > 0).then_some(round.from);
            (self.from, self.pause) = (0, PAUSE_MIN);
            self.due = Some(if is_cut_short { now } else { now + PAUSE_MIN });
        } else if let Some(from) = self.resume.take() {
            (self.from, self.is_resumed, self.due) = (from, true, Some(now));
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
    pub fn keep(self: &Arc<Self>, dead: Dead, before: Placed, effects: &mut Effects) -> bool {
        // By itself: what it was published with may be long gone, and would stay with it.
        let dead = Dead { record: Bytes::copy_from_slice(&dead.record), ..dead };
        let mut state = self.state();
        let is_deleted = state.deleted;
        let Some(rules) = state.backlog.rules.as_mut().filter(|_| !is_deleted) else { return false };
        effects.memory += dead.weight() as i64;
        rules.kept.add(dead, before, effects.now);
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
        while let Some((id, Letter { dead, before })) = self.next_kept(&round) {
            let placed = dead.send(Some(&before), effects);
            // Where the promise was taken back this was the last try.
            let is_done = dead.letters.keeper.is_none() || dead.refusal(&placed, Some(&before)).is_none();
            round = Round { at: id + 1, tried: round.tried + 1, taken: round.taken + usize::from(is_done), ..round };
            let mut state = self.state();
            let Some(rules) = &mut state.backlog.rules else { return };
            if is_done {
                effects.memory -= rules.kept.remove(id).unwrap_or(0) as i64;
            } else if let Some(letter) = rules.kept.letters.get_mut(&id) {
                letter.before.took.extend(placed.took);
                letter.before.delayed |= placed.delayed;
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
        Some((id, Letter { dead, before: letter.before.clone() }))
    }
}
