//! Queues with rules: limits, times and policies; and looking at a queue when something in it is due.

use super::backlog::Fresh;
use super::rules::{Declared, Rules};
use super::{Queue, State};
use crate::broker::deadlines::Timed;
use crate::broker::effects::{Effects, Overflowed};
use crate::broker::message::Run;
use crate::broker::shared::Shared;
use crate::broker::tap::INTERNAL_USER;
use crate::kernel::Instant;
use crate::model::change::{Thing, Verb};
use crate::model::identity::{Permissions, Principal};
use crate::model::policy::{Overflow, QueuePolicy};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Queue {
    /// Lays down what the queue was declared as. Once, before anybody knows of it.
    pub fn rule(self: &Arc<Self>, declared: &Declared<'_>, policy: QueuePolicy, effects: &mut Effects) {
        let mut state = self.state();
        state.backlog.rules = Rules::of(self, declared, policy, effects.now);
        self.heed(&mut state, effects);
    }

    /// Other policies hold from now on, for what is in the queue too. False if they say of it what they said before.
    pub fn set_policy(self: &Arc<Self>, declared: &Declared<'_>, policy: QueuePolicy, effects: &mut Effects) -> bool {
        let mut state = self.state();
        if state.deleted {
            return false;
        }
        match &mut state.backlog.rules {
            Some(rules) if rules.policy == policy => return false,
            Some(rules) => {
                rules.set_policy(policy);
                rules.kept.hurry(effects.now);
            }
            none => *none = Rules::of(self, declared, policy, effects.now),
        }
        self.heed(&mut state, effects);
        self.turn(&mut state, effects);
        true
    }

    fn heed(self: &Arc<Self>, state: &mut State, effects: &mut Effects) {
        state.backlog.heed();
        let refuses = state.backlog.rules.as_ref().is_some_and(|rules| rules.settings.refuses());
        self.refuses.store(refuses, Ordering::Relaxed);
        self.look_ahead(state, effects);
    }

    /// Whether it may refuse what is published to it.
    // HOT
    #[inline]
    pub fn may_refuse(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }

    /// Being declared, asked for a message and consumed is use (`x-expires`).
    pub(super) fn used(&self, state: &mut State, effects: &mut Effects) {
        if let Some(rules) = &mut state.backlog.rules {
            rules.used = effects.now;
        }
    }

    /// Somebody declared it again.
    pub fn declared_again(self: &Arc<Self>, effects: &mut Effects) {
        let mut state = self.state();
        self.used(&mut state, effects);
        if state.backlog.timed || state.backlog.rules.is_some() {
            self.look_ahead(&mut state, effects);
        }
    }

    /// Takes back what was taken out of it, to its end; whether it is full does not matter. Nothing if it was deleted meanwhile.
    pub fn take_again(self: &Arc<Self>, run: &Run<'_>, effects: &mut Effects) {
        let mut state = self.state();
        if !state.deleted {
            state.touched = run.now;
            self.take_in_ruled(&mut state, run, effects);
            self.settle_down(&mut state, effects);
        }
    }

    /// As [`Queue::offer`], by the rules. The position is that of the first message that was not refused.
    #[cold]
    pub(super) fn offer_ruled(self: &Arc<Self>, state: &mut State, run: &Run<'_>, effects: &mut Effects) -> Option<u64> {
        let first = match self.may_refuse() && state.backlog.refuses(run.metas.len() as u64, run.body_bytes()) {
            true => self.offer_one_by_one(state, run, effects),
            false => Some(self.take_in_ruled(state, run, effects)),
        };
        self.settle_down(state, effects);
        first
    }

    /// Gives up what may not stay of what came.
    fn settle_down(self: &Arc<Self>, state: &mut State, effects: &mut Effects) {
        state.backlog.expire(effects);
        state.backlog.keep_to_length(effects);
        self.look_ahead(state, effects);
    }

    /// Not all of a run has room: each message takes what room consumers have made by then, or is refused.
    fn offer_one_by_one(self: &Arc<Self>, state: &mut State, run: &Run<'_>, effects: &mut Effects) -> Option<u64> {
        let mut first = None;
        for at in 0..run.metas.len() {
            let one = run.one(at);
            if !state.backlog.refuses(1, one.body_bytes()) {
                let seq = self.take_in_ruled(state, &one, effects);
                first.get_or_insert(seq);
                continue;
            }
            let Some(rules) = &mut state.backlog.rules else { continue };
            rules.fates.refused += 1;
            let buried = rules.settings.overflow == Some(Overflow::RejectPublishDlx) && rules.letters.is_some();
            effects.refuse(Overflowed { at: one.first, buried });
            match buried {
                true => state.backlog.bury_refused(&one, effects),
                false if state.backlog.is_tapped() => state.backlog.see_unwanted(&one, "the queue was full", effects),
                false => {}
            }
        }
        first
    }

    fn take_in_ruled(self: &Arc<Self>, state: &mut State, run: &Run<'_>, effects: &mut Effects) -> u64 {
        let Some(max) = state.backlog.rules.as_ref().and_then(|rules| rules.settings.max_priority) else {
            return self.take_in(state, run, effects);
        };
        let (fresh, weight) = state.backlog.admit(run);
        let first = fresh.first_seq();
        if state.backlog.is_tapped() {
            state.backlog.see_queued(run, effects);
        }
        effects.memory += weight as i64;
        effects.backlog_max = effects.backlog_max.max(state.backlog.ready_bytes);
        state.backlog.keep_by_priority(fresh, max);
        self.serve(state, &mut Fresh::none(), effects);
        first
    }

    /// Gives up what has expired and asks to be looked at again when the next message does, or the queue itself, or when it is time to
    /// send letters again.
    #[cold]
    pub(super) fn look_ahead(self: &Arc<Self>, state: &mut State, effects: &mut Effects) {
        let message = state.backlog.expire(effects);
        let kept = state.backlog.rules.as_ref().and_then(|rules| rules.kept.due);
        let due = [message, self.expiry(state), kept].into_iter().flatten().min();
        if let Some(at) = due
            && state.due.is_none_or(|before| at < before)
        {
            effects.look_at(self.clone(), state.due, at);
            state.due = Some(at);
        }
    }

    /// When it goes if nobody uses it.
    fn expiry(&self, state: &State) -> Option<Instant> {
        let rules = state.backlog.rules.as_ref().filter(|_| state.consumers.is_empty() && !state.deleted)?;
        Some(rules.used + rules.settings.expires?)
    }

    /// How long a consumer may keep a delivery, if this queue says so.
    pub fn consumer_timeout(&self) -> Option<Duration> {
        self.state().backlog.rules.as_ref()?.settings.consumer_timeout
    }

    /// It was asked to keep letters that are refused, and cannot.
    pub fn may_lose_letters(&self) -> bool {
        let state = self.state();
        let settings = state.backlog.rules.as_ref().map(|rules| &rules.settings);
        settings.is_some_and(|settings| settings.wants_to_keep_letters() && !settings.keeps_letters())
    }

    pub fn is_quorum(&self) -> bool {
        self.state().backlog.is_quorum()
    }

    /// Whether only one of its consumers gets messages.
    pub fn is_single_active(&self) -> bool {
        self.state().backlog.rules.as_ref().is_some_and(|rules| rules.settings.single_active_consumer)
    }
}

impl Timed for Queue {
    fn on_time(self: Arc<Self>, now: Instant, shared: &Shared) {
        let mut effects = Effects::new(now);
        self.try_kept(&mut effects);
        let unused = {
            let mut state = self.state();
            state.due = None;
            let unused = self.expiry(&state).is_some_and(|at| at <= now);
            if !unused {
                self.look_ahead(&mut state, &mut effects);
            }
            state.backlog.rules.as_ref().filter(|_| unused).and_then(|rules| rules.vhost.upgrade())
        };
        if let Some(vhost) = unused {
            vhost.end_queue(&self, true, &mut effects);
            if self.state().deleted {
                // A durable one is gone from what should exist, too.
                let nobody = Principal::new(INTERNAL_USER, Permissions::All);
                vhost.tell_change(Verb::Delete, Thing::Queue(self.spec.clone()), &nobody);
            }
        }
        effects.run(shared);
    }
}
