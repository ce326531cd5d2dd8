//! Start: bind every door, build and join the engines, open the doors.

use super::banner::{StartBlock, Style};
use super::build::{Drains, Engines, NodeTasks, Plans};
use super::config::{Problem, Resolved};
use super::doors::{DoorServer, Shared};
use super::files;
use super::ports::PortsRefused;
use super::sampler;
use super::signals::{Asked, Signals};
use crate::broker::Broker;
use crate::control::Scope;
use crate::kernel::limit::{HTTP_BODIES_BYTES_MAX, HTTP_BODY_MS_MAX};
use crate::kernel::{Clock, Drain};
use crate::model::config::{Config, PortName, PortSetting};
use crate::model::definitions::Definitions;
use crate::model::door::{Door, DoorCounts, DoorState, Doors};
use crate::model::identity::Principal;
use crate::model::refusal::Refusal;
use crate::model::service_spec::ServiceSpec;
use crate::net::bodies::Bodies;
use crate::net::{self, Acceptor, BindPlan, Bound, Failure};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How often a drain looks whether requests are still in flight.
const IN_FLIGHT_LOOK: Duration = Duration::from_millis(5);
/// A wait longer than this is told.
const TELL_WAITING: Duration = Duration::from_millis(300);
/// Time connections have to say goodbye before they are cut.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// A running reactor.
pub struct Node {
    pub config: Config,
    pub doors: Doors,
    pub engines: Arc<Engines>,
    warnings: Vec<String>,
    services: Vec<String>,
    open_files: Option<u64>,
    clock: Clock,
    drains: Drains,
    tasks: NodeTasks,
}

/// Why nothing was started.
#[derive(Debug)]
pub enum StartError {
    /// Every port that is taken or refused, with who holds it.
    Ports(PortsRefused),
    Fault(String),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Ports(refused) => refused.fmt(f),
            StartError::Fault(what) => f.write_str(what),
        }
    }
}

impl Node {
    /// Must be called on a tokio runtime.
    pub async fn start(resolved: Resolved, clock: Clock) -> Result<Node, StartError> {
        let Resolved { config, services, definitions, mut warnings } = resolved;
        let open_files = files::raise_open_files();
        let (bound, doors) = bind_doors(&config, &mut warnings).await?;
        let (drains, tasks) = (Drains::default(), NodeTasks::default());
        let plans = Plans { config: &config, doors: &doors, open_files, clock: &clock, drains: &drains, tasks: &tasks };
        let engines = Arc::new(plans.build()?);
        let names = services.iter().map(|spec| spec.name.to_string()).collect();
        define(&engines, &definitions, services)
            .map_err(|refusal| StartError::Fault(format!("cannot define what the configuration says: {refusal}")))?;

        let acceptor = Acceptor {
            clock: clock.clone(),
            drain: drains.front.clone(),
            tasks: tasks.doors.clone(),
            permits: Arc::new(Semaphore::new(config.limits.connections_max.min(Semaphore::MAX_PERMITS))),
        };
        let bodies = || Bodies::new(HTTP_BODIES_BYTES_MAX, Duration::from_millis(HTTP_BODY_MS_MAX));
        let shared = Arc::new(Shared {
            engines: engines.clone(),
            doors: doors.clone(),
            clock: clock.clone(),
            drains: drains.clone(),
            handshake: config.limits.handshake,
            proxy: config.proxy.clone(),
            api_bodies: bodies(),
            otlp_bodies: bodies(),
        });
        for door in bound {
            let entry = doors.iter().find(|entry| entry.name == door.name).expect("every bound door has its entry").clone();
            let server = Arc::new(DoorServer::new(door.name, shared.clone()));
            let acceptor = Acceptor { drain: drains.of(door.name).clone(), ..acceptor.clone() };
            acceptor.open(door, entry, server).map_err(|error| StartError::Fault(error.to_string()))?;
        }
        tasks.rear.spawn("sampler", sampler::run(engines.clone(), drains.rear.clone()));
        tasks.rear.spawn("deadlines", keep_time(engines.broker.clone(), drains.rear.clone()));
        engines.ready.set();
        Ok(Node { config, doors, engines, warnings, services: names, open_files, clock, drains, tasks })
    }

    /// What to print now that everything listens.
    pub fn start_block(&self, style: Style) -> String {
        self.with_block(|block| block.render(style))
    }

    /// The dashboard's address, with the token where one is needed from this machine too; `None` when the port is off.
    pub fn dashboard_url(&self) -> Option<String> {
        self.with_block(|block| block.dashboard())
    }

    fn with_block<T>(&self, look: impl FnOnce(&StartBlock<'_>) -> T) -> T {
        let token = self.engines.access.token();
        look(&StartBlock {
            config: &self.config,
            doors: &self.doors,
            token: &token,
            open_files: self.open_files,
            warnings: &self.warnings,
            services: &self.services,
        })
    }

    /// Runs until a signal asks to stop, then drains; a second signal cuts. HUP has `read_again` read the configuration, whose
    /// definitions are applied while everything runs.
    pub async fn run(&self, signals: &mut Signals, read_again: impl Fn() -> Result<Resolved, Vec<Problem>>) {
        let signal = loop {
            match signals.next().await {
                Asked::Stop(signal) => break signal,
                Asked::Reload => self.reload(read_again()),
            }
        };
        tracing::info!(signal, "stopping");
        let begun = self.clock.now();
        tokio::select! {
            () = self.drain() => {}
            signal = signals.stop() => {
                tracing::warn!(signal, "stopping at once");
                self.drains.cut();
            }
        }
        tracing::info!(ms = self.clock.now().since(begun).as_millis(), "stopped");
    }

    fn in_flight(&self) -> i64 {
        self.engines.gateway.stats().total.in_flight
    }

    /// Resolves when no request is in flight; says that it waits if that takes a moment.
    async fn idle(&self) {
        let begun = self.clock.now();
        let mut told = false;
        while self.in_flight() > 0 {
            if !told && self.clock.now().since(begun) > TELL_WAITING {
                told = true;
                let limit_s = self.config.limits.drain.as_secs();
                tracing::info!(requests = self.in_flight(), limit_s, "waiting for requests in flight; a second signal cuts them");
            }
            tokio::time::sleep(IN_FLIGHT_LOOK).await;
        }
    }

    /// Makes what exists what a newly read configuration says; one that is wrong changes nothing.
    fn reload(&self, read: Result<Resolved, Vec<Problem>>) {
        let resolved = match read {
            Ok(resolved) => resolved,
            Err(problems) => {
                problems.iter().for_each(|problem| tracing::error!("{problem}"));
                return tracing::error!(
                    problems = problems.len(),
                    "the configuration was read again and is wrong; nothing changed"
                );
            }
        };
        if resolved.config != self.config {
            tracing::warn!("settings have changed too; they need a restart, only services and spaces are taken over");
        }
        match define(&self.engines, &resolved.definitions, resolved.services) {
            Ok(()) => tracing::info!("the configuration was read again"),
            Err(refusal) => tracing::error!("the configuration was read again, but: {refusal}"),
        }
    }

    /// Takes everything down in order: requests in flight finish while their services still run, then the services stop in reverse
    /// order of their start, then AMQP and OTLP connections are closed, then telemetry has seen it all. `limits.drain` bounds the
    /// first step; the others have their own bounds.
    pub async fn drain(&self) {
        self.drains.front.begin();
        if tokio::time::timeout(self.config.limits.drain, self.idle()).await.is_err() {
            tracing::warn!(requests = self.in_flight(), "requests were cut at shutdown");
        }
        self.engines.supervisor.shutdown().await;
        self.drains.bus.begin();
        if tokio::time::timeout(CLOSE_LIMIT, self.tasks.doors.joined()).await.is_err() {
            self.drains.front.cut();
            self.drains.bus.cut();
        }
        self.drains.rear.cut();
        let _ = tokio::time::timeout(CLOSE_LIMIT, self.tasks.rear.joined()).await;
    }
}

/// What the configuration says should exist.
fn define(engines: &Engines, definitions: &Definitions, services: Vec<ServiceSpec>) -> Result<(), Refusal> {
    let configuration = Principal::configuration();
    engines.definitions.apply(definitions, Scope::Named, &configuration)?;
    engines.definitions.set_services(services, &configuration)
}

/// Binds all doors, or says everything that stands in the way. A privileged gateway port is only a warning: `ingress` serves.
async fn bind_doors(config: &Config, warnings: &mut Vec<String>) -> Result<(Vec<Bound>, Doors), StartError> {
    let plans: Vec<BindPlan> = PortName::ALL
        .into_iter()
        .filter(|name| name.is_served())
        .map(|name| BindPlan { name, port: config.port(name) })
        .collect();
    let (bound, failures) = net::bind_all(&config.bind, &plans);
    let (spared, fatal): (Vec<Failure>, Vec<Failure>) = failures
        .into_iter()
        .partition(|failure| failure.is_privilege() && matches!(failure.name, PortName::Http | PortName::Https));
    if !fatal.is_empty() {
        return Err(StartError::Ports(PortsRefused::by(&fatal, config).await));
    }
    for failure in &spared {
        warnings.push(format!(
            "port {} needs a privilege this user does not have; the gateway answers on ports.ingress all the same. Set ports.{} = false to \
             silence this.",
            failure.address.port(),
            failure.name.as_str()
        ));
    }
    let doors = PortName::ALL.into_iter().map(|name| Arc::new(door(name, config, &bound, &spared))).collect();
    Ok((bound, Arc::new(doors)))
}

fn door(name: PortName, config: &Config, bound: &[Bound], spared: &[Failure]) -> Door {
    let addresses = bound.iter().find(|door| door.name == name).map(Bound::addresses).unwrap_or_default();
    let state = match spared.iter().find(|failure| failure.name == name) {
        Some(_) => DoorState::Unbound("needs a privilege".into()),
        None if !addresses.is_empty() => DoorState::Listening,
        None if config.port(name) == PortSetting::Off => DoorState::Off,
        None => DoorState::Unbound("not served by this version".into()),
    };
    Door { name, addresses, state, counts: DoorCounts::default() }
}

/// Lets the broker do what is due when it is, until the drain is cut.
async fn keep_time(broker: Arc<Broker>, drain: Drain) {
    tokio::select! {
        () = broker.keep_time() => {}
        () = drain.is_cut() => {}
    }
}
