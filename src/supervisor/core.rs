//! The life of one instance as a pure state machine: inputs and `now` in, effects out. It starts nothing, waits for nothing and
//! reads no clock.
//!
//! ```text
//!             start                dependencies met            probe ok / has lived a moment
//!  Stopped ─────────▶ Waiting ────────────────────▶ Starting ────────────────────▶ Ready ◀──▶ Degraded
//!     ▲                  ▲                              │ exit, stop, restart        │            │
//!     │ stop, or the     │ restart, or the delay is     ▼                            ▼            ▼
//!     │ policy is done   │ over                      Stopping (TERM, after the grace KILL) ◀──────┘
//!     └──────────────────┴───────────────────────────────┤ no process left
//!                        └── Backoff / Failing ◀─────────┘ the policy wants another try
//! ```
//!
//! Invariants: a process is spawned only when the last one and all its descendants are gone (`Empty`), so there are never two;
//! an input that carries the number of an earlier run changes nothing; from every state a `Stop` leads to `Stopped`.

use super::restart::{Backoff, Exit, HEALTHY, wants_restart};
use crate::kernel::Instant;
use crate::kernel::rng::Rng;
use crate::model::service::InstanceState;
use crate::model::service_spec::RestartPolicy;
use std::sync::Arc;
use std::time::Duration;

/// Without a probe that must answer, an instance is ready after living this long.
const SETTLE: Duration = Duration::from_secs(1);
const PROBE_FIRST: Duration = Duration::from_millis(50);
/// While starting, the time between two probes doubles up to this.
const PROBE_STARTING_MAX: Duration = Duration::from_millis(400);
/// Failed probes in a row that make a ready instance degraded.
const PROBE_FAILURES_MAX: u32 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    pub restart: RestartPolicy,
    pub grace: Duration,
    pub readiness: Readiness,
    pub probe_interval: Duration,
    /// Not ready after this: degraded.
    pub ready_within: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// The probe must answer.
    Answers,
    /// Living for a moment is enough; a probe looks whether it answers at all, and once it has, it must go on doing so.
    LivesAndMayAnswer,
    /// Living for a moment is enough; there is nothing to probe.
    Lives,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    Start,
    Stop,
    Restart,
    /// Stop without grace.
    Cut,
    /// The first unmet dependency, in words; `None` when all are met.
    Dependencies(Option<Arc<str>>),
    Spawned {
        run: u64,
        pid: u32,
    },
    SpawnFailed {
        run: u64,
        why: Arc<str>,
    },
    /// The program ended; descendants may live on.
    Exited {
        run: u64,
        exit: Exit,
    },
    /// No process of the run is left.
    Empty {
        run: u64,
    },
    ProbeOk {
        run: u64,
    },
    ProbeFailed {
        run: u64,
        why: Arc<str>,
    },
    /// [`Core::deadline`] may have passed.
    Timer,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    Spawn {
        run: u64,
    },
    /// TERM to every process of the run.
    Terminate,
    /// KILL to every process of the run, until none is left.
    Kill,
    Probe {
        run: u64,
    },
    Emit(Event),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Starting {
        pid: u32,
    },
    Ready {
        after: Duration,
    },
    Degraded {
        why: Arc<str>,
    },
    /// It ended without being asked to.
    Exited {
        exit: Exit,
        next: Next,
    },
    /// It ended again and again.
    Failing {
        exit: Exit,
        exits_in_a_row: u32,
    },
    /// It ended because it was asked to.
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Retry { after: Duration },
    StaysStopped,
}

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    Stopped(Halt),
    Waiting { on: Arc<str> },
    Starting(Run),
    Ready(Run),
    Degraded(Run, Arc<str>),
    Stopping { run: Run, kill_at: Option<Instant>, then: Then },
    Backoff { until: Instant, after: Duration, exit: Exit },
    Failing { until: Instant, after: Duration, exit: Exit },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Halt {
    NeverStarted,
    Asked,
    /// It ended by itself and the policy leaves it so.
    Finished(Exit),
}

/// What follows when the last process is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Halt,
    StartAgain,
    /// It ended by itself: the policy decides.
    Decide,
}

/// One process, from the request to spawn it until nothing of it is left.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    id: u64,
    pid: Option<u32>,
    since: Instant,
    ready_since: Option<Instant>,
    exit: Option<Exit>,
    /// `None` while a probe is under way, or before the process exists.
    probe_at: Option<Instant>,
    probe_delay: Duration,
    probe_failures: u32,
    /// A probe was answered at least once.
    answered: bool,
}

#[derive(Debug)]
pub struct Core {
    rules: Rules,
    state: State,
    unmet: Option<Arc<str>>,
    backoff: Backoff,
    last_run: u64,
    restart_count: u32,
}

impl Core {
    pub fn new(rules: Rules, rng: Rng) -> Self {
        Core {
            rules,
            state: State::Stopped(Halt::NeverStarted),
            unmet: None,
            backoff: Backoff::new(rng),
            last_run: 0,
            restart_count: 0,
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Starts after an exit against its will.
    pub fn restart_count(&self) -> u32 {
        self.restart_count
    }

    /// New rules for the same instance; they hold from the next decision on.
    pub fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
    }

    pub fn handle(&mut self, now: Instant, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match input {
            Input::Start => self.start(now, &mut effects),
            Input::Stop => self.end(now, Then::Halt, &mut effects),
            Input::Restart => self.end(now, Then::StartAgain, &mut effects),
            Input::Cut => self.cut(now, &mut effects),
            Input::Dependencies(unmet) => self.dependencies(now, unmet, &mut effects),
            Input::Spawned { run, pid } => self.spawned(now, run, pid, &mut effects),
            Input::SpawnFailed { run, why } => self.spawn_failed(now, run, why, &mut effects),
            Input::Exited { run, exit } => self.exited(now, run, exit, &mut effects),
            Input::Empty { run } => self.empty(now, run, &mut effects),
            Input::ProbeOk { run } => self.probe_ok(now, run, &mut effects),
            Input::ProbeFailed { run, why } => self.probe_failed(now, run, why, &mut effects),
            Input::Timer => self.timer(now, &mut effects),
        }
        effects
    }

    /// When [`Input::Timer`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.state {
            State::Stopped(_) | State::Waiting { .. } => None,
            State::Starting(run) if run.pid.is_none() => None,
            State::Starting(run) => {
                let by_itself = match self.rules.readiness {
                    Readiness::Answers => run.since + self.rules.ready_within,
                    Readiness::LivesAndMayAnswer | Readiness::Lives => run.since + SETTLE,
                };
                Some(run.probe_at.map_or(by_itself, |probe_at| probe_at.min(by_itself)))
            }
            State::Ready(run) | State::Degraded(run, _) => run.probe_at,
            State::Stopping { kill_at, .. } => *kill_at,
            State::Backoff { until, .. } | State::Failing { until, .. } => Some(*until),
        }
    }

    fn start(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match &mut self.state {
            State::Stopped(_) | State::Backoff { .. } | State::Failing { .. } => {
                self.backoff.reset();
                self.bring_up(now, effects);
            }
            State::Waiting { .. } | State::Starting(_) | State::Ready(_) | State::Degraded(..) => {}
            State::Stopping { then, .. } => *then = Then::StartAgain,
        }
    }

    /// Stop or restart, by what `then` says.
    fn end(&mut self, now: Instant, then: Then, effects: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.state, State::Stopped(Halt::Asked)) {
            State::Starting(run) | State::Ready(run) | State::Degraded(run, _) => {
                self.state = State::Stopping { run, kill_at: Some(now + self.rules.grace), then };
                effects.push(Effect::Terminate);
            }
            State::Stopping { run, kill_at, .. } => self.state = State::Stopping { run, kill_at, then },
            without_process @ (State::Stopped(_) | State::Waiting { .. } | State::Backoff { .. } | State::Failing { .. }) => {
                match then {
                    Then::StartAgain => {
                        self.backoff.reset();
                        self.bring_up(now, effects);
                    }
                    Then::Halt | Then::Decide => {
                        if !matches!(without_process, State::Stopped(_)) {
                            effects.push(Effect::Emit(Event::Stopped));
                        }
                    }
                }
            }
        }
    }

    fn cut(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.end(now, Then::Halt, effects);
        if let State::Stopping { kill_at, .. } = &mut self.state {
            *kill_at = None;
            effects.push(Effect::Kill);
        }
    }

    fn dependencies(&mut self, now: Instant, unmet: Option<Arc<str>>, effects: &mut Vec<Effect>) {
        self.unmet = unmet;
        if matches!(self.state, State::Waiting { .. }) {
            self.bring_up(now, effects);
        }
    }

    /// From a state without a process.
    fn bring_up(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if let Some(on) = &self.unmet {
            self.state = State::Waiting { on: on.clone() };
            return;
        }
        self.last_run += 1;
        self.state = State::Starting(Run {
            id: self.last_run,
            pid: None,
            since: now,
            ready_since: None,
            exit: None,
            probe_at: None,
            probe_delay: PROBE_FIRST,
            probe_failures: 0,
            answered: false,
        });
        effects.push(Effect::Spawn { run: self.last_run });
    }

    fn spawned(&mut self, now: Instant, run: u64, pid: u32, effects: &mut Vec<Effect>) {
        let probes = self.rules.readiness != Readiness::Lives;
        let starting = matches!(self.state, State::Starting(_));
        let Some(running) = self.running(run) else { return };
        running.pid = Some(pid);
        if starting {
            running.since = now;
            running.probe_at = probes.then(|| now + PROBE_FIRST);
            effects.push(Effect::Emit(Event::Starting { pid }));
        }
    }

    fn spawn_failed(&mut self, now: Instant, run: u64, why: Arc<str>, effects: &mut Vec<Effect>) {
        if let Some(running) = self.running(run) {
            running.exit = Some(Exit::NotStarted(why));
        }
        self.empty(now, run, effects);
    }

    fn exited(&mut self, now: Instant, run: u64, exit: Exit, effects: &mut Vec<Effect>) {
        let Some(running) = self.running(run) else { return };
        running.exit = Some(exit);
        if !matches!(self.state, State::Stopping { .. }) {
            self.end(now, Then::Decide, effects);
        }
    }

    fn empty(&mut self, now: Instant, run: u64, effects: &mut Vec<Effect>) {
        if self.running(run).is_none() {
            return;
        }
        match std::mem::replace(&mut self.state, State::Stopped(Halt::Asked)) {
            State::Starting(run) | State::Ready(run) | State::Degraded(run, _) => self.ended(now, run, Then::Decide, effects),
            State::Stopping { run, then, .. } => self.ended(now, run, then, effects),
            State::Stopped(_) | State::Waiting { .. } | State::Backoff { .. } | State::Failing { .. } => {
                unreachable!("a state without a process has no run")
            }
        }
    }

    /// Nothing of `run` is left.
    fn ended(&mut self, now: Instant, run: Run, then: Then, effects: &mut Vec<Effect>) {
        if run.ready_since.is_some_and(|since| now.since(since) >= HEALTHY) {
            self.backoff.reset();
        }
        match then {
            Then::Halt => {
                self.state = State::Stopped(Halt::Asked);
                effects.push(Effect::Emit(Event::Stopped));
            }
            Then::StartAgain => {
                self.backoff.reset();
                effects.push(Effect::Emit(Event::Stopped));
                self.bring_up(now, effects);
            }
            Then::Decide => self.decide(now, run.exit.unwrap_or(Exit::Lost), effects),
        }
    }

    fn decide(&mut self, now: Instant, exit: Exit, effects: &mut Vec<Effect>) {
        if !wants_restart(self.rules.restart, &exit) {
            effects.push(Effect::Emit(Event::Exited { exit: exit.clone(), next: Next::StaysStopped }));
            self.state = State::Stopped(Halt::Finished(exit));
            return;
        }
        let after = self.backoff.next_delay();
        let until = now + after;
        effects.push(Effect::Emit(Event::Exited { exit: exit.clone(), next: Next::Retry { after } }));
        if self.backoff.is_failing() {
            let exits_in_a_row = self.backoff.exits_in_a_row();
            effects.push(Effect::Emit(Event::Failing { exit: exit.clone(), exits_in_a_row }));
            self.state = State::Failing { until, after, exit };
        } else {
            self.state = State::Backoff { until, after, exit };
        }
    }

    fn probe_ok(&mut self, now: Instant, run: u64, effects: &mut Vec<Effect>) {
        let next = now + self.rules.probe_interval;
        let Some(running) = self.running(run) else { return };
        running.answered = true;
        running.probe_failures = 0;
        running.probe_at = Some(next);
        match self.state {
            State::Starting(_) | State::Degraded(..) => self.become_ready(now, effects),
            State::Ready(_) | State::Stopping { .. } => {}
            State::Stopped(_) | State::Waiting { .. } | State::Backoff { .. } | State::Failing { .. } => {}
        }
    }

    fn become_ready(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.state, State::Stopped(Halt::Asked)) {
            State::Starting(mut run) | State::Degraded(mut run, _) => {
                effects.push(Effect::Emit(Event::Ready { after: now.since(run.since) }));
                run.ready_since.get_or_insert(now);
                self.state = State::Ready(run);
            }
            other => self.state = other,
        }
    }

    fn probe_failed(&mut self, now: Instant, run: u64, why: Arc<str>, effects: &mut Vec<Effect>) {
        let (interval, within) = (self.rules.probe_interval, self.rules.ready_within);
        let starting = matches!(self.state, State::Starting(_));
        let Some(running) = self.running(run) else { return };
        // One that was ready by living may still be about to listen; it should not be found late.
        let young = !running.answered && now.since(running.since) < within;
        if starting || young {
            running.probe_delay = (running.probe_delay * 2).min(PROBE_STARTING_MAX).min(interval);
            running.probe_at = Some(now + running.probe_delay);
        } else {
            running.probe_at = Some(now + interval);
        }
        if running.answered {
            running.probe_failures = running.probe_failures.saturating_add(1);
        }
        let too_many = running.probe_failures >= PROBE_FAILURES_MAX;
        let late = starting && self.is_late(now);
        match &mut self.state {
            State::Starting(_) if late => self.become_degraded(why, effects),
            State::Ready(_) if too_many => self.become_degraded(why, effects),
            State::Degraded(_, reason) => *reason = why,
            State::Starting(_) | State::Ready(_) | State::Stopping { .. } => {}
            State::Stopped(_) | State::Waiting { .. } | State::Backoff { .. } | State::Failing { .. } => {}
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        let waits_for_answer = self.rules.readiness == Readiness::Answers;
        matches!(&self.state, State::Starting(run) if waits_for_answer && now.since(run.since) >= self.rules.ready_within)
    }

    fn become_degraded(&mut self, why: Arc<str>, effects: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.state, State::Stopped(Halt::Asked)) {
            State::Starting(run) | State::Ready(run) => {
                effects.push(Effect::Emit(Event::Degraded { why: why.clone() }));
                self.state = State::Degraded(run, why);
            }
            other => self.state = other,
        }
    }

    fn timer(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        match &mut self.state {
            State::Stopped(_) | State::Waiting { .. } => {}
            State::Starting(run) => {
                probe_if_due(now, run, effects);
                let since = run.since;
                match self.rules.readiness {
                    Readiness::Answers => {
                        if self.is_late(now) {
                            let seconds = self.rules.ready_within.as_secs_f64();
                            self.become_degraded(Arc::from(format!("not ready {seconds} s after its start")), effects);
                        }
                    }
                    Readiness::LivesAndMayAnswer | Readiness::Lives => {
                        if run.pid.is_some() && now.since(since) >= SETTLE {
                            self.become_ready(now, effects);
                        }
                    }
                }
            }
            State::Ready(run) | State::Degraded(run, _) => probe_if_due(now, run, effects),
            State::Stopping { kill_at, .. } => {
                if kill_at.is_some_and(|at| now >= at) {
                    *kill_at = None;
                    effects.push(Effect::Kill);
                }
            }
            State::Backoff { until, .. } | State::Failing { until, .. } => {
                if now >= *until {
                    self.restart_count = self.restart_count.saturating_add(1);
                    self.bring_up(now, effects);
                }
            }
        }
    }

    /// The process of this run, if it is the current one.
    fn running(&mut self, id: u64) -> Option<&mut Run> {
        let run = match &mut self.state {
            State::Starting(run) | State::Ready(run) | State::Degraded(run, _) | State::Stopping { run, .. } => run,
            State::Stopped(_) | State::Waiting { .. } | State::Backoff { .. } | State::Failing { .. } => return None,
        };
        (run.id == id).then_some(run)
    }
}

fn probe_if_due(now: Instant, run: &mut Run, effects: &mut Vec<Effect>) {
    if run.probe_at.is_some_and(|at| now >= at) {
        run.probe_at = None;
        effects.push(Effect::Probe { run: run.id });
    }
}

impl State {
    /// As the registry and the views name it.
    pub fn shown(&self) -> InstanceState {
        match self {
            State::Stopped(Halt::NeverStarted | Halt::Asked) => InstanceState::Stopped,
            State::Stopped(Halt::Finished(exit)) if exit.is_success() => InstanceState::Stopped,
            State::Stopped(Halt::Finished(_)) => InstanceState::Failing,
            State::Waiting { .. } | State::Starting(_) => InstanceState::Starting,
            State::Ready(_) => InstanceState::Ready,
            State::Degraded(..) => InstanceState::Degraded,
            State::Stopping { .. } => InstanceState::Stopping,
            State::Backoff { .. } | State::Failing { .. } => InstanceState::Failing,
        }
    }

    /// Why, in words; empty when ready.
    pub fn reason(&self) -> String {
        match self {
            State::Stopped(Halt::NeverStarted) => "not started; autostart is off".into(),
            State::Stopped(Halt::Asked) => "stopped on request".into(),
            State::Stopped(Halt::Finished(exit)) if exit.is_success() => format!("finished: exited {exit}"),
            State::Stopped(Halt::Finished(exit)) => format!("exited {exit}; its restart policy leaves it so"),
            State::Waiting { on } => format!("waiting for {on}"),
            State::Starting(_) => "starting".into(),
            State::Ready(_) => String::new(),
            State::Degraded(_, why) => why.to_string(),
            State::Stopping { run, kill_at, .. } => match (&run.exit, kill_at) {
                (Some(exit), _) => format!("exited {exit}; ending the processes it left"),
                (None, Some(_)) => "asked to end by TERM".into(),
                (None, None) => "ended by KILL: it did not end within its grace".into(),
            },
            State::Backoff { after, exit, .. } | State::Failing { after, exit, .. } => {
                format!("exited {exit}; next try after {:.1} s", after.as_secs_f64())
            }
        }
    }

    pub fn pid(&self) -> Option<u32> {
        match self {
            State::Starting(run) | State::Ready(run) | State::Degraded(run, _) | State::Stopping { run, .. } => run.pid,
            State::Stopped(_) | State::Waiting { .. } | State::Backoff { .. } | State::Failing { .. } => None,
        }
    }

    /// A process exists or is being made.
    pub fn has_process(&self) -> bool {
        match self {
            State::Starting(_) | State::Ready(_) | State::Degraded(..) | State::Stopping { .. } => true,
            State::Stopped(_) | State::Waiting { .. } | State::Backoff { .. } | State::Failing { .. } => false,
        }
    }

    /// What a dependant may count on: it answers, or it did its work and ended well.
    pub fn satisfies_dependants(&self) -> bool {
        match self {
            State::Ready(_) => true,
            State::Stopped(Halt::Finished(exit)) => exit.is_success(),
            State::Stopped(Halt::NeverStarted | Halt::Asked) => false,
            State::Waiting { .. } | State::Starting(_) | State::Degraded(..) | State::Stopping { .. } => false,
            State::Backoff { .. } | State::Failing { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests;
