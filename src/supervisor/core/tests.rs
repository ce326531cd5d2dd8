use super::*;
use crate::kernel::rng::Rng;
use proptest::prelude::*;

fn rules(readiness: Readiness) -> Rules {
    Rules {
        restart: RestartPolicy::Always,
        grace: Duration::from_secs(5),
        readiness,
        probe_interval: Duration::from_secs(2),
        ready_within: Duration::from_secs(60),
    }
}

/// A core with a clock moved by hand.
struct Bench {
    core: Core,
    now: Instant,
}

impl Bench {
    fn new(rules: Rules) -> Self {
        Bench { core: Core::new(rules, Rng::seeded(3)), now: Instant::ZERO }
    }

    fn give(&mut self, input: Input) -> Vec<Effect> {
        self.core.handle(self.now, input)
    }

    fn wait(&mut self, time: Duration) -> Vec<Effect> {
        self.now = self.now + time;
        self.give(Input::Timer)
    }

    /// Waits exactly until the next deadline.
    fn wait_until_due(&mut self) -> Vec<Effect> {
        self.now = self.core.deadline().expect("something is due");
        self.give(Input::Timer)
    }

    /// Starts, spawns with pid 7 and makes it ready. Returns the run.
    fn make_ready(&mut self) -> u64 {
        let effects = self.give(Input::Start);
        let [Effect::Spawn { run }] = effects[..] else { panic!("{effects:?}") };
        self.give(Input::Spawned { run, pid: 7 });
        if self.core.rules.readiness == Readiness::Lives {
            self.wait(SETTLE);
        } else {
            self.wait(PROBE_FIRST);
            self.give(Input::ProbeOk { run });
        }
        assert!(matches!(self.core.state(), State::Ready(_)));
        run
    }

    /// The process of `run` ends by itself and leaves nothing behind.
    fn crash(&mut self, run: u64, exit: Exit) -> Vec<Effect> {
        let first = self.give(Input::Exited { run, exit });
        assert_eq!(first, [Effect::Terminate], "what it left behind is ended");
        self.give(Input::Empty { run })
    }

    fn shown(&self) -> InstanceState {
        self.core.state().shown()
    }
}

#[test]
fn an_instance_waits_for_its_dependencies_and_then_starts() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    bench.give(Input::Dependencies(Some("payments".into())));
    assert_eq!(bench.give(Input::Start), []);
    assert_eq!(bench.core.state().reason(), "waiting for payments");
    assert_eq!(bench.give(Input::Dependencies(Some("catalog".into()))), []);
    assert_eq!(bench.core.state().reason(), "waiting for catalog");
    assert_eq!(bench.give(Input::Dependencies(None)), [Effect::Spawn { run: 1 }]);
}

#[test]
fn without_a_probe_it_is_ready_after_living_for_a_moment() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    bench.give(Input::Start);
    assert_eq!(bench.give(Input::Spawned { run: 1, pid: 7 }), [Effect::Emit(Event::Starting { pid: 7 })]);
    assert_eq!(bench.wait(SETTLE / 2), []);
    assert_eq!(bench.wait(SETTLE / 2), [Effect::Emit(Event::Ready { after: SETTLE })]);
    assert_eq!(bench.core.deadline(), None);
}

#[test]
fn probes_come_fast_while_starting_and_at_the_interval_once_ready() {
    let mut bench = Bench::new(rules(Readiness::Answers));
    bench.give(Input::Start);
    bench.give(Input::Spawned { run: 1, pid: 7 });
    let mut gaps = Vec::new();
    for _ in 0..5 {
        let before = bench.now;
        assert_eq!(bench.wait_until_due(), [Effect::Probe { run: 1 }]);
        gaps.push(bench.now.since(before).as_millis());
        assert_eq!(bench.give(Input::ProbeFailed { run: 1, why: "refused".into() }), []);
    }
    assert_eq!(gaps, [50, 100, 200, 400, 400]);
    bench.wait_until_due();
    let effects = bench.give(Input::ProbeOk { run: 1 });
    assert!(matches!(effects[..], [Effect::Emit(Event::Ready { .. })]), "{effects:?}");
    let before = bench.now;
    bench.wait_until_due();
    assert_eq!(bench.now.since(before), Duration::from_secs(2));
}

#[test]
fn one_that_never_answers_is_degraded_and_asked_on() {
    let mut bench = Bench::new(rules(Readiness::Answers));
    bench.give(Input::Start);
    bench.give(Input::Spawned { run: 1, pid: 7 });
    bench.wait(PROBE_FIRST);
    let effects = bench.wait(Duration::from_secs(60));
    assert!(matches!(effects[..], [Effect::Emit(Event::Degraded { .. })]), "{effects:?}");
    bench.give(Input::ProbeFailed { run: 1, why: "connection refused".into() });
    assert_eq!(bench.core.state().reason(), "connection refused");
    assert_eq!(bench.wait_until_due(), [Effect::Probe { run: 1 }]);
    bench.give(Input::ProbeOk { run: 1 });
    assert_eq!(bench.shown(), InstanceState::Ready);
}

#[test]
fn three_failed_probes_degrade_a_ready_instance_and_one_good_one_mends_it() {
    let mut bench = Bench::new(rules(Readiness::Answers));
    let run = bench.make_ready();
    for failure in 1..=3 {
        assert_eq!(bench.wait_until_due(), [Effect::Probe { run }]);
        bench.give(Input::ProbeFailed { run, why: "timed out".into() });
        let expected = if failure < 3 { InstanceState::Ready } else { InstanceState::Degraded };
        assert_eq!(bench.shown(), expected, "after {failure}");
    }
    bench.wait_until_due();
    bench.give(Input::ProbeOk { run });
    assert_eq!(bench.shown(), InstanceState::Ready);
}

#[test]
fn an_offered_port_that_is_not_used_degrades_nothing() {
    let mut bench = Bench::new(rules(Readiness::LivesAndMayAnswer));
    bench.give(Input::Start);
    bench.give(Input::Spawned { run: 1, pid: 7 });
    while bench.now < Instant::ZERO + Duration::from_secs(60) {
        if bench.wait_until_due().contains(&Effect::Probe { run: 1 }) {
            bench.give(Input::ProbeFailed { run: 1, why: "refused".into() });
        }
    }
    assert_eq!(bench.shown(), InstanceState::Ready);
}

#[test]
fn a_stop_is_term_then_kill_after_the_grace_and_ends_when_nothing_is_left() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    let run = bench.make_ready();
    assert_eq!(bench.give(Input::Stop), [Effect::Terminate]);
    assert_eq!(bench.give(Input::Exited { run, exit: Exit::Signal(15) }), []);
    assert_eq!(bench.shown(), InstanceState::Stopping, "a child that ignores TERM is still there");
    assert_eq!(bench.wait(Duration::from_secs(4)), []);
    assert_eq!(bench.wait(Duration::from_secs(1)), [Effect::Kill]);
    assert_eq!(bench.give(Input::Empty { run }), [Effect::Emit(Event::Stopped)]);
    assert_eq!(bench.shown(), InstanceState::Stopped);
    assert_eq!(bench.core.deadline(), None);
}

#[test]
fn a_restart_spawns_only_when_the_old_processes_are_gone() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    let run = bench.make_ready();
    assert_eq!(bench.give(Input::Restart), [Effect::Terminate]);
    assert_eq!(bench.give(Input::Restart), []);
    assert_eq!(bench.give(Input::Exited { run, exit: Exit::Code(0) }), []);
    assert_eq!(bench.give(Input::Empty { run }), [Effect::Emit(Event::Stopped), Effect::Spawn { run: run + 1 }]);
    assert_eq!(bench.core.restart_count(), 0, "asked for, so not counted as a restart");
}

#[test]
fn an_exit_is_retried_with_growing_delays_and_said_to_be_failing_at_the_third() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    bench.give(Input::Start);
    let mut delays = Vec::new();
    for run in 1..=4 {
        bench.give(Input::Spawned { run, pid: 7 });
        let effects = bench.crash(run, Exit::Code(1));
        let failing = effects.iter().any(|effect| matches!(effect, Effect::Emit(Event::Failing { .. })));
        assert_eq!(failing, run >= 3, "{effects:?}");
        let before = bench.now;
        assert_eq!(bench.wait_until_due(), [Effect::Spawn { run: run + 1 }]);
        delays.push(bench.now.since(before));
    }
    assert!(delays.is_sorted(), "{delays:?}");
    assert_eq!(bench.core.restart_count(), 4);
}

#[test]
fn a_healthy_run_forgives_earlier_exits() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    let run = bench.make_ready();
    for run in run..run + 3 {
        bench.crash(run, Exit::Code(1));
        bench.wait_until_due();
        bench.give(Input::Spawned { run: run + 1, pid: 7 });
    }
    assert!(matches!(bench.core.state(), State::Starting(_)));
    bench.wait(SETTLE);
    bench.wait(HEALTHY);
    bench.crash(run + 3, Exit::Code(1));
    assert!(matches!(bench.core.state(), State::Backoff { .. }), "{:?}", bench.core.state());
}

#[test]
fn a_program_that_cannot_be_started_is_retried_and_says_why() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    bench.give(Input::Start);
    bench.give(Input::SpawnFailed { run: 1, why: "pyhton3 was not found".into() });
    assert_eq!(bench.shown(), InstanceState::Failing);
    assert!(bench.core.state().reason().contains("pyhton3 was not found"));
    assert_eq!(bench.wait_until_due(), [Effect::Spawn { run: 2 }]);
}

#[test]
fn a_finished_task_satisfies_its_dependants_and_a_failed_one_does_not() {
    for (exit, satisfied, shown) in
        [(Exit::Code(0), true, InstanceState::Stopped), (Exit::Code(2), false, InstanceState::Failing)]
    {
        let mut bench = Bench::new(Rules { restart: RestartPolicy::Never, ..rules(Readiness::Lives) });
        bench.give(Input::Start);
        bench.give(Input::Spawned { run: 1, pid: 7 });
        bench.crash(1, exit);
        assert_eq!((bench.core.state().satisfies_dependants(), bench.shown()), (satisfied, shown));
    }
}

#[test]
fn start_during_backoff_tries_at_once_and_stop_gives_up() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    let run = bench.make_ready();
    bench.crash(run, Exit::Code(1));
    assert_eq!(bench.give(Input::Start), [Effect::Spawn { run: 2 }]);
    bench.crash(2, Exit::Code(1));
    assert_eq!(bench.give(Input::Stop), [Effect::Emit(Event::Stopped)]);
    assert_eq!(bench.wait(Duration::from_secs(100)), []);
    assert_eq!(bench.shown(), InstanceState::Stopped);
}

#[test]
fn a_stop_before_the_process_exists_still_ends_it() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    bench.give(Input::Start);
    assert_eq!(bench.give(Input::Stop), [Effect::Terminate]);
    assert_eq!(bench.give(Input::Spawned { run: 1, pid: 7 }), []);
    bench.give(Input::Exited { run: 1, exit: Exit::Signal(15) });
    assert_eq!(bench.give(Input::Empty { run: 1 }), [Effect::Emit(Event::Stopped)]);
}

#[test]
fn a_cut_kills_without_grace() {
    let mut bench = Bench::new(rules(Readiness::Lives));
    bench.make_ready();
    assert_eq!(bench.give(Input::Cut), [Effect::Terminate, Effect::Kill]);
}

#[test]
fn what_an_earlier_run_reports_changes_nothing() {
    let mut bench = Bench::new(rules(Readiness::Answers));
    let run = bench.make_ready();
    bench.crash(run, Exit::Code(1));
    bench.wait_until_due();
    let before = bench.core.state().clone();
    for stale in [
        Input::Spawned { run, pid: 9 },
        Input::Exited { run, exit: Exit::Code(0) },
        Input::Empty { run },
        Input::ProbeOk { run },
        Input::ProbeFailed { run, why: "late".into() },
        Input::SpawnFailed { run, why: "late".into() },
    ] {
        assert_eq!(bench.give(stale), []);
    }
    assert_eq!(bench.core.state(), &before);
}

/// What can happen to an instance at any moment, whatever its state.
#[derive(Clone, Debug)]
enum Step {
    Start,
    Stop,
    Restart,
    Cut,
    Dependencies { met: bool },
    WorldMoves { exit_code: i32 },
    ProbeAnswers { ok: bool },
    TimePasses { ms: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        Just(Step::Start),
        Just(Step::Stop),
        Just(Step::Restart),
        Just(Step::Cut),
        any::<bool>().prop_map(|met| Step::Dependencies { met }),
        (0..3).prop_map(|exit_code| Step::WorldMoves { exit_code }),
        any::<bool>().prop_map(|ok| Step::ProbeAnswers { ok }),
        (0u64..40_000).prop_map(|ms| Step::TimePasses { ms }),
    ]
}

/// Stands in for the operating system: at most one process tree, which ends in steps.
#[derive(Default)]
struct World {
    live: Option<Live>,
    probing: Option<u64>,
}

struct Live {
    run: u64,
    phase: Phase,
    killed: bool,
}

#[derive(PartialEq)]
enum Phase {
    Requested,
    Running,
    ProgramGone,
}

impl World {
    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Spawn { run } => {
                    assert!(self.live.is_none(), "two processes for one instance");
                    self.live = Some(Live { run, phase: Phase::Requested, killed: false });
                }
                Effect::Terminate => assert!(self.live.is_some(), "TERM to nobody"),
                Effect::Kill => self.live.as_mut().expect("KILL to nobody").killed = true,
                Effect::Probe { run } => {
                    assert_eq!(self.probing, None, "two probes at once");
                    self.probing = Some(run);
                }
                Effect::Emit(_) => {}
            }
        }
    }

    /// The next thing the process does by itself.
    fn advance(&mut self, exit_code: i32) -> Option<Input> {
        let live = self.live.as_mut()?;
        let run = live.run;
        match live.phase {
            Phase::Requested if exit_code == 2 => {
                self.live = None;
                self.probing = None;
                Some(Input::SpawnFailed { run, why: "not found".into() })
            }
            Phase::Requested => {
                live.phase = Phase::Running;
                Some(Input::Spawned { run, pid: 7 })
            }
            Phase::Running => {
                live.phase = Phase::ProgramGone;
                let exit = if live.killed { Exit::Signal(9) } else { Exit::Code(exit_code) };
                Some(Input::Exited { run, exit })
            }
            Phase::ProgramGone => {
                self.live = None;
                self.probing = None;
                Some(Input::Empty { run })
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Row M-32: whatever happens in whatever order, there are never two processes, and a stop always converges.
    #[test]
    fn there_is_never_a_second_process_and_a_stop_always_converges(
        steps in prop::collection::vec(step(), 0..120),
        readiness in prop_oneof![Just(Readiness::Answers), Just(Readiness::LivesAndMayAnswer), Just(Readiness::Lives)],
        restart in prop_oneof![Just(RestartPolicy::Always), Just(RestartPolicy::OnFailure), Just(RestartPolicy::Never)],
    ) {
        let mut bench = Bench::new(Rules { restart, ..rules(readiness) });
        let mut world = World::default();
        for step in steps {
            let input = match step {
                Step::Start => Some(Input::Start),
                Step::Stop => Some(Input::Stop),
                Step::Restart => Some(Input::Restart),
                Step::Cut => Some(Input::Cut),
                Step::Dependencies { met } => Some(Input::Dependencies((!met).then(|| Arc::from("other")))),
                Step::WorldMoves { exit_code } => world.advance(exit_code),
                Step::ProbeAnswers { ok } => world.probing.take().map(|run| {
                    if ok { Input::ProbeOk { run } } else { Input::ProbeFailed { run, why: "refused".into() } }
                }),
                Step::TimePasses { ms } => {
                    bench.now = bench.now + Duration::from_millis(ms);
                    Some(Input::Timer)
                }
            };
            if let Some(input) = input {
                let effects = bench.give(input);
                world.take(effects);
            }
            prop_assert_eq!(bench.core.state().has_process(), world.live.is_some());
            let overdue = bench.core.deadline().is_some_and(|at| at <= bench.now);
            if overdue {
                let effects = bench.give(Input::Timer);
                world.take(effects);
                prop_assert!(bench.core.deadline().is_none_or(|at| at > bench.now), "a timer that is always due is a busy loop");
            }
        }
        let effects = bench.give(Input::Stop);
        world.take(effects);
        for _ in 0..3 {
            if let Some(input) = world.advance(0) {
                let effects = bench.give(input);
                world.take(effects);
            }
        }
        prop_assert_eq!(bench.shown() , match bench.core.state() {
            State::Stopped(Halt::Finished(exit)) if !exit.is_success() => InstanceState::Failing,
            _ => InstanceState::Stopped,
        });
        prop_assert!(world.live.is_none());
        prop_assert_eq!(bench.core.deadline(), None, "nothing is left to wait for");
    }
}
