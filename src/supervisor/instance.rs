//! One instance at work: the task that feeds its state machine with what happens and carries out what it decides.
//!
//! Everything that changes an instance arrives here, one thing at a time: orders, reports of the guard, answers of probes, the
//! passing of time, and news of the services it waits for.

use super::board::{Board, Standing};
use super::console::{Console, LineKind};
use super::core::{Core, Effect, Event, Input, Next, Rules, State};
use super::env::{self, Doors, Identity};
use super::guard::Report;
use super::output::Output;
use super::port::{Ports, is_free};
use super::probe::{self, Target};
use super::process::{self, Launch, Process};
use super::usage::Usage;
use super::view::{InstanceView, Variable, start_times};
use crate::kernel::limit::CONSOLE_BYTES_MAX;
use crate::kernel::rng::Rng;
use crate::kernel::size::spelled;
use crate::kernel::task::Tasks;
use crate::kernel::{Clock, Drain, Instant, counted};
use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::service::{InstanceName, InstanceState, ServiceName, Source};
use crate::model::service_spec::{Port, Probe, ServiceSpec};
use crate::registry::{InstanceId, NewInstance, Registry};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Commands that wait for one instance; beyond it they are refused. Orders that follow from definitions are always taken.
const COMMANDS_MAX: usize = 64;
/// After the last process is gone its pipes are at their end; the reader gets this long to say so.
const LAST_LINES_WAIT: Duration = Duration::from_millis(500);

/// What all instances share.
pub struct Shared {
    pub guard: Vec<OsString>,
    pub doors: Arc<dyn Doors>,
    pub registry: Arc<Registry>,
    pub clock: Clock,
    pub drain: Drain,
    pub board: Board,
    pub ports: Ports,
    pub tasks: Tasks,
}

#[derive(Debug)]
pub enum Order {
    Start,
    Stop,
    Restart,
    /// Work by this definition from now on; a running process is restarted, one that was given up is wanted again.
    Revise(Box<ServiceSpec>),
    /// Stop and be gone from every view, until revised.
    Retire,
    /// Stop, answer when stopped, and end.
    Close(oneshot::Sender<()>),
}

/// An instance as everyone else sees it: orders in, views out.
pub struct Slot {
    pub service: ServiceName,
    pub name: InstanceName,
    pub console: Arc<Console>,
    orders: mpsc::UnboundedSender<Order>,
    orders_waiting: AtomicUsize,
    shown: Mutex<Shown>,
}

#[derive(Clone)]
struct Shown {
    view: InstanceView,
    env: Vec<Variable>,
    guard_pid: Option<u32>,
    /// Retired, and nothing of it runs.
    hidden: bool,
}

impl Slot {
    /// Starts the task of instance `number` (from 1) of a service.
    pub fn open(shared: &Arc<Shared>, spec: ServiceSpec, number: u32) -> Arc<Slot> {
        let name: InstanceName = format!("{}-{number}", spec.name).into();
        let (orders, inbox) = mpsc::unbounded_channel();
        let console = Arc::new(Console::new(CONSOLE_BYTES_MAX));
        let view = InstanceView {
            name: name.clone(),
            // Until its task has looked around.
            state: if spec.autostart { InstanceState::Starting } else { InstanceState::Stopped },
            reason: Arc::from("about to start"),
            pid: None,
            port: None,
            http: None,
            restart_count: 0,
            since_ns: shared.clock.unix_nanos(),
            started: None,
            cpu_share: None,
            memory_bytes: None,
            process_count: 0,
            last_line: None,
        };
        let shown = Mutex::new(Shown { view, env: Vec::new(), guard_pid: None, hidden: false });
        let slot =
            Arc::new(Slot { service: spec.name.clone(), name, console, orders, orders_waiting: AtomicUsize::new(0), shown });
        let worker = Worker::new(shared.clone(), slot.clone(), spec);
        shared.tasks.spawn("instance", worker.run(inbox));
        slot
    }

    /// What a person asked for. Whether it was taken; it is not while too many wait.
    pub fn command(&self, order: Order) -> bool {
        let taken = self.orders_waiting.load(Ordering::Relaxed) < COMMANDS_MAX;
        if taken {
            self.order(order);
        }
        taken
    }

    /// An instance that was closed takes no more orders and needs none.
    pub fn order(&self, order: Order) {
        self.orders_waiting.fetch_add(1, Ordering::Relaxed);
        let _ = self.orders.send(order);
    }

    /// Stops it and waits until nothing of it runs.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.order(Order::Close(done));
        // An error means that its task is gone, and with it the process.
        let _ = closed.await;
    }

    pub fn view(&self) -> Option<InstanceView> {
        let shown = self.lock();
        (!shown.hidden).then(|| InstanceView { last_line: self.console.last_output(), ..shown.view.clone() })
    }

    pub fn env(&self) -> Vec<Variable> {
        self.lock().env.clone()
    }

    pub fn guard_pid(&self) -> Option<u32> {
        self.lock().guard_pid
    }

    pub fn set_usage(&self, usage: Option<Usage>) {
        let view = &mut self.lock().view;
        view.cpu_share = usage.map(|usage| usage.cpu_share);
        view.memory_bytes = usage.map(|usage| usage.memory_bytes);
        view.process_count = usage.map_or(0, |usage| usage.process_count);
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The process of the current run and what reads its output.
struct Running {
    run: u64,
    process: Process,
    /// Read once the start was told, so that no line of the program stands before it.
    unread: Option<(ChildStdout, ChildStderr)>,
    pumps: Vec<JoinHandle<()>>,
}

/// Where it answered, if anywhere; being attached to the bus is an answer without a place.
type ProbeAnswer = (u64, Result<Option<SocketAddr>, Arc<str>>);

struct Worker {
    shared: Arc<Shared>,
    slot: Arc<Slot>,
    spec: ServiceSpec,
    core: Core,
    output: Arc<Output>,
    running: Option<Running>,
    port: Option<u16>,
    language: Option<&'static str>,
    registered: Option<InstanceId>,
    retired: bool,
    closing: Vec<oneshot::Sender<()>>,
    probe_answers: mpsc::Sender<ProbeAnswer>,
    probing: Option<JoinHandle<()>>,
}

impl Worker {
    fn new(shared: Arc<Shared>, slot: Arc<Slot>, spec: ServiceSpec) -> Self {
        let identity = Identity { space: spec.space.clone(), service: slot.service.clone(), instance: slot.name.clone() };
        let output = Arc::new(Output::new(shared.clock.clone(), identity, slot.console.clone()));
        let core = Core::new(rules(&spec), Rng::unseeded());
        // One probe is under way at a time; its answer may meet one of an earlier run.
        let (probe_answers, _) = mpsc::channel(1);
        Worker {
            shared,
            slot,
            spec,
            core,
            output,
            running: None,
            port: None,
            language: None,
            registered: None,
            retired: false,
            closing: Vec::new(),
            probe_answers,
            probing: None,
        }
    }

    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let (probe_answers, mut answers) = mpsc::channel(4);
        self.probe_answers = probe_answers;
        let mut board = self.shared.board.changes();
        let drain = self.shared.drain.clone();
        let mut cut = false;
        self.publish();
        self.look_at_dependencies();
        if self.spec.autostart {
            self.give(Input::Start);
        }
        while self.closing.is_empty() || self.core.state().has_process() {
            let due = self.core.deadline();
            let now = self.shared.clock.now();
            tokio::select! {
                order = orders.recv() => match order {
                    Some(order) => self.take(order),
                    None => break,
                },
                report = report_of(&mut self.running) => self.reported(report).await,
                Some((run, answer)) = answers.recv() => self.probed(run, answer),
                () = drain.is_cut(), if !cut => {
                    cut = true;
                    self.give(Input::Cut);
                }
                _ = board.changed() => self.look_at_dependencies(),
                () = sleep_until(due, now) => self.give(Input::Timer),
            }
        }
        if let Some(probing) = self.probing.take() {
            probing.abort();
        }
        self.leave_views();
        for done in self.closing.drain(..) {
            // Whoever asked may have stopped waiting.
            let _ = done.send(());
        }
    }

    fn take(&mut self, order: Order) {
        self.slot.orders_waiting.fetch_sub(1, Ordering::Relaxed);
        match order {
            Order::Start => self.give(Input::Start),
            Order::Stop => self.give(Input::Stop),
            Order::Restart => self.give(Input::Restart),
            Order::Revise(spec) => self.revise(*spec),
            Order::Retire => {
                self.retired = true;
                self.give(Input::Stop);
            }
            Order::Close(done) => {
                self.closing.push(done);
                self.give(Input::Stop);
            }
        }
    }

    fn revise(&mut self, spec: ServiceSpec) {
        let was_retired = std::mem::take(&mut self.retired);
        self.core.set_rules(rules(&spec));
        self.spec = spec;
        self.publish();
        self.look_at_dependencies();
        let unwanted = matches!(self.core.state(), State::Stopped(_)) && !was_retired;
        if !unwanted && (self.spec.autostart || !was_retired) {
            self.give(Input::Restart);
        }
    }

    fn look_at_dependencies(&mut self) {
        let unmet = self.shared.board.unmet(&self.spec.depends_on);
        self.give(Input::Dependencies(unmet));
    }

    async fn reported(&mut self, report: Report) {
        let Some(run) = self.running.as_ref().map(|running| running.run) else { return };
        match report {
            Report::Spawned(pid) => {
                self.give(Input::Spawned { run, pid });
                self.read_output();
            }
            Report::Exited(exit) => self.give(Input::Exited { run, exit }),
            Report::NotSpawned(why) => {
                self.finish_run().await;
                self.give(Input::SpawnFailed { run, why: why.into() });
            }
            Report::Empty => {
                self.finish_run().await;
                self.give(Input::Empty { run });
            }
        }
    }

    /// Waits for the last lines, so that the console shows them before the exit.
    async fn finish_run(&mut self) {
        let Some(running) = self.running.take() else { return };
        for mut pump in running.pumps {
            if tokio::time::timeout(LAST_LINES_WAIT, &mut pump).await.is_err() {
                pump.abort();
            }
        }
        running.process.finish().await;
        if let Some(port) = self.port {
            self.shared.ports.release(port);
        }
        let mut shown = self.slot.lock();
        shown.guard_pid = None;
        shown.view.http = None;
    }

    fn probed(&mut self, run: u64, answer: Result<Option<SocketAddr>, Arc<str>>) {
        match answer {
            Ok(address) => {
                let current = self.running.as_ref().is_some_and(|running| running.run == run);
                if let (Some(address), Some(port), true) = (address, self.port, current) {
                    self.slot.lock().view.http = Some(SocketAddr::new(address.ip(), port));
                }
                self.give(Input::ProbeOk { run });
            }
            Err(why) => self.give(Input::ProbeFailed { run, why }),
        }
    }

    /// Feeds the state machine and carries out what it decides; a spawn that fails is fed back.
    fn give(&mut self, input: Input) {
        let mut next = Some(input);
        while let Some(input) = next.take() {
            let now = self.shared.clock.now();
            for effect in self.core.handle(now, input) {
                match effect {
                    Effect::Spawn { run } => {
                        if let Err(why) = self.spawn(run) {
                            next = Some(Input::SpawnFailed { run, why });
                        }
                    }
                    Effect::Terminate => self.running.iter().for_each(|running| running.process.terminate()),
                    Effect::Kill => self.running.iter().for_each(|running| running.process.kill()),
                    Effect::Probe { run } => self.probe(run),
                    Effect::Emit(event) => self.tell(event),
                }
            }
            self.publish();
        }
    }

    fn spawn(&mut self, run: u64) -> Result<(), Arc<str>> {
        self.port = self.choose_port()?;
        let identity = self.identity();
        let connections = self.shared.doors.connections();
        let token = self.shared.doors.token(&identity);
        let injected = env::injected(&identity, self.port, &connections, &token);
        let prepared = env::prepare(&self.spec, std::env::vars_os(), injected)?;
        self.language = env::language(&prepared);
        let launch =
            Launch { program: prepared.program, arguments: prepared.arguments, cwd: self.spec.cwd.clone(), env: prepared.env };
        self.output = Arc::new(Output::new(self.shared.clock.clone(), identity, self.slot.console.clone()));
        let started = process::launch(&self.shared.guard, &launch)?;
        let mut shown = self.slot.lock();
        shown.env = prepared.shown;
        shown.guard_pid = started.process.guard_pid();
        shown.view.port = self.port;
        drop(shown);
        let unread = Some((started.stdout, started.stderr));
        self.running = Some(Running { run, process: started.process, unread, pumps: Vec::new() });
        Ok(())
    }

    fn read_output(&mut self) {
        let Some(running) = &mut self.running else { return };
        let Some((stdout, stderr)) = running.unread.take() else { return };
        let (out, err) = (self.output.clone(), self.output.clone());
        running.pumps = vec![
            self.shared.tasks.spawn("stdout", async move { out.pump(stdout, LineKind::Stdout).await }),
            self.shared.tasks.spawn("stderr", async move { err.pump(stderr, LineKind::Stderr).await }),
        ];
    }

    fn choose_port(&self) -> Result<Option<u16>, Arc<str>> {
        match self.spec.port {
            Port::Off => Ok(None),
            Port::Fixed(port) if is_free(port) => Ok(Some(port)),
            Port::Fixed(port) => Err(format!(
                "port {port} is in use by another program; end that, or set port = \"auto\" in [services.{}]",
                self.slot.service
            )
            .into()),
            Port::Offered | Port::Auto => {
                let promised = self.shared.ports.promise(self.port);
                promised.map(Some).map_err(|error| format!("no free port was found: {error}").into())
            }
        }
    }

    fn probe(&mut self, run: u64) {
        let question = self.question();
        let (timeout, answers) = (self.spec.ready.timeout, self.probe_answers.clone());
        self.probing = Some(self.shared.tasks.spawn("probe", async move {
            let answer = match question {
                Question::Answered(answer) => answer,
                Question::MustAnswer(target) => probe::ask(&target, timeout).await.map(Some),
                Question::MayAnswer(target) => Ok(probe::ask(&target, timeout).await.ok()),
            };
            // Nobody listens once the instance is closed.
            let _ = answers.send((run, answer)).await;
        }));
    }

    fn question(&self) -> Question {
        let own = self.port.map(|port| Target::Tcp { port });
        let asked = match &self.spec.ready.probe {
            Probe::Attached if !self.is_attached() => return Question::Answered(Err("not attached to the bus".into())),
            Probe::Attached => match self.spec.port {
                Port::Auto | Port::Fixed(_) => own,
                Port::Offered => return own.map_or(Question::Answered(Ok(None)), Question::MayAnswer),
                Port::Off => return Question::Answered(Ok(None)),
            },
            Probe::Implied => own,
            Probe::Tcp { port } => port.or(self.port).map(|port| Target::Tcp { port }),
            Probe::Http { path, port } => port.or(self.port).map(|port| Target::Http { port, path: path.clone() }),
        };
        asked.map_or(Question::Answered(Err("it has no port to ask".into())), Question::MustAnswer)
    }

    /// Whether a bus connection of this very process consumes a queue of its service.
    fn is_attached(&self) -> bool {
        let known = self.shared.registry.snapshot();
        self.registered.and_then(|id| known.get(id).map(|instance| instance.attached > 0)).unwrap_or(false)
    }

    fn identity(&self) -> Identity {
        Identity { space: self.spec.space.clone(), service: self.slot.service.clone(), instance: self.slot.name.clone() }
    }

    /// An event as a line in the console and as a happening.
    fn tell(&self, event: Event) {
        let (service, instance) = (self.slot.service.clone(), self.slot.name.clone());
        let (line, what) = match event {
            Event::Starting { pid } => (format!("starting, pid {pid}"), What::InstanceStarting { service, instance, pid }),
            Event::Ready { after } => {
                let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                (
                    format!("ready after {}", spelled(Duration::from_millis(after_ms))),
                    What::InstanceReady { service, instance, after_ms },
                )
            }
            Event::Degraded { why } => (format!("degraded: {why}"), What::InstanceDegraded { service, instance, reason: why }),
            Event::Exited { exit, next: Next::StaysStopped } if exit.is_success() => {
                let reason = format!("finished: exited {exit}");
                (reason.clone(), What::InstanceStopped { service, instance, reason: reason.into() })
            }
            Event::Exited { exit, next } => {
                let next = match next {
                    Next::Retry { after } => format!("next try after {:.1} s", after.as_secs_f64()),
                    Next::StaysStopped => "its restart policy leaves it so".to_owned(),
                };
                let status = exit.to_string().into();
                (format!("exited {exit}; {next}"), What::InstanceExited { service, instance, status, next: next.into() })
            }
            Event::Failing { exit, exits_in_a_row } => {
                let reason = format!("exited {} in a row, the last time {exit}", counted(exits_in_a_row, "time"));
                (format!("failing: {reason}"), What::InstanceFailing { service, instance, reason: reason.into() })
            }
            Event::Stopped => ("stopped".to_owned(), What::InstanceStopped { service, instance, reason: Arc::from("stopped") }),
        };
        self.output.lifecycle(line);
        let at_ns = self.shared.clock.unix_nanos();
        emit::happening(Happening { at_ns, space: self.spec.space.clone(), what });
    }

    /// Brings the view, the registry and the board up to the state.
    fn publish(&mut self) {
        let now_ns = self.shared.clock.unix_nanos();
        let state = self.core.state();
        let (shown_state, reason) = (state.shown(), state.reason());
        let hidden = self.retired && !state.has_process();
        let mut shown = self.slot.lock();
        if shown.view.state != shown_state {
            shown.view.since_ns = now_ns;
        }
        shown.hidden = hidden;
        shown.view.started = start_times(shown.view.started, shown.view.state, state, now_ns);
        shown.view.state = shown_state;
        if *shown.view.reason != *reason {
            shown.view.reason = reason.into();
        }
        shown.view.pid = state.pid();
        shown.view.restart_count = self.core.restart_count();
        let view = shown.view.clone();
        drop(shown);
        if hidden {
            self.leave_views();
            return;
        }
        let standing = Standing { state: shown_state, satisfies_dependants: state.satisfies_dependants() };
        self.shared.board.post(&self.slot.service, &self.slot.name, standing);
        self.register(view);
    }

    fn register(&mut self, view: InstanceView) {
        let space = self.spec.space.clone();
        let keep_prefix = !self.spec.strip_prefix;
        let id = *self.registered.get_or_insert_with(|| {
            self.shared.registry.add(NewInstance {
                space: space.clone(),
                service: self.slot.service.clone(),
                name: self.slot.name.clone(),
                source: Source::Supervised,
                state: view.state,
                http: None,
                version: None,
                keep_prefix,
                pid: None,
                language: None,
            })
        });
        let known = self.shared.registry.snapshot();
        let unchanged = known.get(id).is_some_and(|known| {
            known.state == view.state
                && known.reason == view.reason
                && known.http == view.http
                && known.pid == view.pid
                && known.restart_count == view.restart_count
                && known.keep_prefix == keep_prefix
                && (known.language.is_some() || self.language.is_none())
                && known.space == space
        });
        if unchanged {
            return;
        }
        self.shared.registry.update(id, |known| {
            known.state = view.state;
            known.reason = view.reason;
            known.http = view.http;
            known.pid = view.pid;
            known.restart_count = view.restart_count;
            known.since_ns = view.since_ns;
            if known.language.is_none() {
                known.language = self.language.map(Arc::from);
            }
            known.keep_prefix = keep_prefix;
            known.space = space;
        });
    }

    fn leave_views(&mut self) {
        if let Some(id) = self.registered.take() {
            self.shared.registry.remove(id);
            self.shared.board.take_down(&self.slot.service, &self.slot.name);
            self.shared.doors.revoke(&self.identity());
        }
    }
}

/// What a probe has to find out.
enum Question {
    Answered(Result<Option<SocketAddr>, Arc<str>>),
    MustAnswer(Target),
    MayAnswer(Target),
}

/// Of the process, if there is one.
async fn report_of(running: &mut Option<Running>) -> Report {
    match running {
        Some(running) => running.process.report().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(due: Option<Instant>, now: Instant) {
    match due {
        Some(due) => tokio::time::sleep(due.since(now)).await,
        None => std::future::pending().await,
    }
}

fn rules(spec: &ServiceSpec) -> Rules {
    Rules {
        restart: spec.restart,
        grace: spec.grace,
        readiness: probe::readiness(spec),
        probe_interval: spec.ready.interval,
        ready_within: spec.ready.within,
    }
}
