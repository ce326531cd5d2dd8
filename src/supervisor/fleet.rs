//! All supervised services: applies definitions, passes commands on, shuts down in order. Each instance is a task of its own
//! (`instance`); here is only who exists.
//!
//! An instance that is no longer wanted is retired, not forgotten: its task stays, asleep, so that the same name can never run
//! twice while an old process is still ending.

use super::console::Console;
use super::env::Doors;
use super::graph::Graph;
use super::instance::{Order, Shared, Slot};
use super::usage::Meter;
use super::view::{ServiceView, Variable};
use super::{board::Board, platform, port::Ports, process};
use crate::kernel::task::Tasks;
use crate::kernel::{Clock, Drain};
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::service::{InstanceState, ServiceName};
use crate::model::service_spec::{CommandLine, ServiceSpec};
use crate::registry::Registry;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const MEASURE_EVERY: Duration = Duration::from_secs(1);

pub struct SupervisorConfig {
    /// The program and arguments that run [`guard_main`](super::guard_main): reactor itself with a hidden subcommand; see
    /// [`guard_command`](super::guard_command).
    pub guard: Vec<OsString>,
    pub doors: Arc<dyn Doors>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Start,
    Stop,
    Restart,
}

pub struct Supervisor {
    shared: Arc<Shared>,
    fleet: Arc<Mutex<Fleet>>,
    ended: CancellationToken,
}

#[derive(Default)]
struct Fleet {
    graph: Graph,
    services: BTreeMap<ServiceName, Service>,
    closing: bool,
}

struct Service {
    spec: ServiceSpec,
    /// No longer defined; its instances are retired.
    gone: bool,
    /// Those beyond `spec.replicas` are retired.
    instances: Vec<Arc<Slot>>,
}

impl Supervisor {
    /// Needs a tokio runtime: a task measures usage once a second, and, as process 1 of a container, one reaps orphans.
    pub fn new(config: SupervisorConfig, registry: Arc<Registry>, clock: Clock, drain: Drain) -> Arc<Self> {
        let shared = Arc::new(Shared {
            guard: config.guard,
            doors: config.doors,
            registry,
            clock,
            drain,
            board: Board::default(),
            ports: Ports::default(),
            tasks: Tasks::new(),
        });
        let supervisor = Arc::new(Supervisor { shared: shared.clone(), fleet: Arc::default(), ended: CancellationToken::new() });
        let measuring = measure(shared.clone(), supervisor.fleet.clone());
        shared.tasks.spawn("usage", supervisor.ended.clone().run_until_cancelled_owned(measuring));
        if platform::is_init() {
            shared.tasks.spawn("orphans", supervisor.ended.clone().run_until_cancelled_owned(process::reap_orphans()));
        }
        supervisor
    }

    /// Makes the running services those of `specs`: new ones start, gone ones stop, changed ones restart, unchanged ones keep
    /// their process. Nothing happens if any of them is refused. Needs a tokio runtime.
    pub fn apply(&self, specs: Vec<ServiceSpec>) -> Result<(), Refusal> {
        specs.iter().try_for_each(ServiceSpec::check)?;
        let graph = Graph::build(&specs)?;
        let mut fleet = self.lock();
        if fleet.closing {
            return Err(shutting_down());
        }
        for service in fleet.services.values_mut().filter(|service| !specs.iter().any(|spec| spec.name == service.spec.name)) {
            service.gone = true;
            service.retire_from(0);
        }
        let mut specs: BTreeMap<ServiceName, ServiceSpec> = specs.into_iter().map(|spec| (spec.name.clone(), spec)).collect();
        for name in graph.start_order() {
            let Some(spec) = specs.remove(name) else { continue };
            match fleet.services.get_mut(name) {
                Some(service) => service.revise(&self.shared, spec),
                None => {
                    let instances = (1..=spec.replicas).map(|number| Slot::open(&self.shared, spec.clone(), number)).collect();
                    fleet.services.insert(name.clone(), Service { spec, gone: false, instances });
                }
            }
        }
        fleet.graph = graph;
        Ok(())
    }

    /// To every instance of `service`, or to the one named. Returns at once; the views show the progress.
    pub fn command(&self, service: &str, instance: Option<&str>, command: Command) -> Result<(), Refusal> {
        let fleet = self.lock();
        if fleet.closing {
            return Err(shutting_down());
        }
        let found = fleet.find(service).ok_or_else(|| fleet.unknown(service))?;
        let targets: Vec<&Arc<Slot>> = found.live().filter(|slot| instance.is_none_or(|name| *slot.name == *name)).collect();
        if targets.is_empty() {
            let names: Vec<&str> = found.live().map(|slot| &*slot.name).collect();
            let what = format!("service {service} has no instance {}", instance.unwrap_or_default());
            return Err(Refusal::new(RefusalKind::NotFound, what).hint(format!("It has {}.", names.join(", "))));
        }
        for slot in targets {
            let order = match command {
                Command::Start => Order::Start,
                Command::Stop => Order::Stop,
                Command::Restart => Order::Restart,
            };
            if !slot.command(order) {
                let what = format!("{} has too many commands waiting", slot.name);
                return Err(Refusal::new(RefusalKind::Exhausted, what).hint("Wait until it has carried them out."));
            }
        }
        Ok(())
    }

    pub fn start(&self, service: &str) -> Result<(), Refusal> {
        self.command(service, None, Command::Start)
    }

    pub fn stop(&self, service: &str) -> Result<(), Refusal> {
        self.command(service, None, Command::Stop)
    }

    pub fn restart(&self, service: &str) -> Result<(), Refusal> {
        self.command(service, None, Command::Restart)
    }

    pub fn services(&self) -> Vec<ServiceView> {
        self.lock().services.values().filter_map(Service::view).collect()
    }

    /// Page through it with [`Console::page`], wait with [`Console::changes`].
    pub fn console(&self, service: &str, instance: &str) -> Option<Arc<Console>> {
        Some(self.lock().find(service)?.slot(instance)?.console.clone())
    }

    /// The variables reactor and the definition set at the last start of an instance, secrets masked.
    pub fn environment(&self, service: &str, instance: &str) -> Option<Vec<Variable>> {
        Some(self.lock().find(service)?.slot(instance)?.env())
    }

    /// Stops everything, dependants before what they depend on; returns when no process is left. Cutting the drain kills.
    /// Whoever calls it again waits with the first.
    pub async fn shutdown(&self) {
        let closings = self.lock().close();
        let mut all = tokio::task::JoinSet::new();
        for closing in closings {
            all.spawn(closing.run());
        }
        all.join_all().await;
        self.ended.cancel();
        self.shared.tasks.joined().await;
    }

    fn lock(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fleet {
    fn find(&self, service: &str) -> Option<&Service> {
        self.services.values().find(|known| !known.gone && known.spec.name.as_str() == service)
    }

    fn unknown(&self, service: &str) -> Refusal {
        let names: Vec<&str> = self.services.values().filter(|known| !known.gone).map(|known| known.spec.name.as_str()).collect();
        let what = format!("reactor runs no service {service}");
        Refusal::new(RefusalKind::NotFound, what).hint(match names.is_empty() {
            true => "Define one as [services.NAME] in reactor.toml.".to_owned(),
            false => format!("It runs {}.", names.join(", ")),
        })
    }

    /// What must close after what: dependants first.
    fn close(&mut self) -> Vec<Closing> {
        self.closing = true;
        let mut closed: BTreeMap<ServiceName, watch::Receiver<bool>> = BTreeMap::new();
        let mut closings = Vec::new();
        // Services no longer defined depend on nothing that is known; they close at once.
        let defined: Vec<ServiceName> = self.graph.start_order().to_vec();
        let gone = self.services.keys().filter(|name| !defined.contains(name)).cloned();
        for name in gone.chain(defined.iter().rev().cloned()) {
            let Some(service) = self.services.get(&name) else { continue };
            let after = self.graph.dependants(&name).filter_map(|dependant| closed.get(dependant).cloned()).collect();
            let (done, is_closed) = watch::channel(false);
            closed.insert(name, is_closed);
            closings.push(Closing { after, instances: service.instances.clone(), done });
        }
        closings
    }
}

/// One service to close, and the services that must be closed before it.
struct Closing {
    after: Vec<watch::Receiver<bool>>,
    instances: Vec<Arc<Slot>>,
    done: watch::Sender<bool>,
}

impl Closing {
    async fn run(self) {
        for mut dependant in self.after {
            // An error means that its closing was dropped; there is nothing left to wait for.
            let _ = dependant.wait_for(|closed| *closed).await;
        }
        let mut all = tokio::task::JoinSet::new();
        for slot in self.instances {
            all.spawn(async move { slot.close().await });
        }
        all.join_all().await;
        self.done.send_replace(true);
    }
}

impl Service {
    fn revise(&mut self, shared: &Arc<Shared>, spec: ServiceSpec) {
        let changed = self.gone || self.spec != ServiceSpec { replicas: self.spec.replicas, ..spec.clone() };
        let before = if self.gone { 0 } else { self.spec.replicas };
        for number in 1..=spec.replicas {
            match self.instances.get(number as usize - 1) {
                Some(slot) if changed || number > before => {
                    slot.order(Order::Revise(Box::new(spec.clone())));
                }
                Some(_) => {}
                None => self.instances.push(Slot::open(shared, spec.clone(), number)),
            }
        }
        self.retire_from(spec.replicas as usize);
        self.spec = spec;
        self.gone = false;
    }

    fn retire_from(&self, first: usize) {
        for slot in self.instances.iter().skip(first) {
            slot.order(Order::Retire);
        }
    }

    /// Those that are wanted.
    fn live(&self) -> impl Iterator<Item = &Arc<Slot>> {
        self.instances.iter().take(if self.gone { 0 } else { self.spec.replicas as usize })
    }

    fn slot(&self, instance: &str) -> Option<&Arc<Slot>> {
        self.live().find(|slot| *slot.name == *instance)
    }

    /// `None` once it is no longer defined and nothing of it runs.
    fn view(&self) -> Option<ServiceView> {
        let instances: Vec<_> = self.instances.iter().filter_map(|slot| slot.view()).collect();
        let worst = instances.iter().max_by_key(|instance| instance.state)?;
        let command = match &self.spec.command {
            CommandLine::Text(text) => Arc::from(text.as_str()),
            CommandLine::Words(words) => Arc::from(words.join(" ")),
        };
        Some(ServiceView {
            name: self.spec.name.clone(),
            space: self.spec.space.clone(),
            command,
            depends_on: self.spec.depends_on.clone(),
            state: worst.state,
            reason: if worst.state == InstanceState::Ready { Arc::from("") } else { worst.reason.clone() },
            instances,
        })
    }
}

fn shutting_down() -> Refusal {
    Refusal::new(RefusalKind::Conflict, "reactor is shutting down").hint("Start it again first.")
}

/// Once a second, the usage of everything that runs. The table is read outside the async threads: a large one takes milliseconds.
async fn measure(shared: Arc<Shared>, fleet: Arc<Mutex<Fleet>>) {
    let mut meter = Meter::new(platform::ticks_per_second());
    let mut beat = tokio::time::interval(MEASURE_EVERY);
    loop {
        beat.tick().await;
        let slots: Vec<Arc<Slot>> = {
            let fleet = fleet.lock().unwrap_or_else(PoisonError::into_inner);
            fleet.services.values().flat_map(|service| service.instances.iter().cloned()).collect()
        };
        let (running, idle): (Vec<_>, Vec<_>) = slots.into_iter().partition(|slot| slot.guard_pid().is_some());
        idle.iter().for_each(|slot| slot.set_usage(None));
        if running.is_empty() {
            continue;
        }
        let Ok(table) = tokio::task::spawn_blocking(platform::process_table).await else { continue };
        let guards: Vec<u32> = running.iter().filter_map(|slot| slot.guard_pid()).collect();
        if guards.len() != running.len() {
            // One ended meanwhile; the next beat is near.
            continue;
        }
        for (slot, usage) in running.iter().zip(meter.measure(shared.clock.now(), &table, &guards)) {
            slot.set_usage(Some(usage));
        }
    }
}
