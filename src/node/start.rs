//! Start: bind every door, build and join the engines, open the doors.

use super::banner::{StartBlock, Style};
use super::busy;
use super::config::Resolved;
use super::files;
use super::signals::Signals;
use crate::access::Access;
use crate::kernel::task::Tasks;
use crate::kernel::{Clock, Drain};
use crate::model::config::{Config, PortName, PortSetting};
use crate::model::door::{Door, DoorCounts, DoorState, Doors};
use crate::net::{self, Accepted, Acceptor, BindPlan, Bound, Failure, Serve};
use std::fmt;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A running reactor.
pub struct Node {
    pub config: Config,
    pub doors: Doors,
    pub access: Arc<Access>,
    warnings: Vec<String>,
    open_files: Option<u64>,
    clock: Clock,
    drain: Drain,
    tasks: Tasks,
}

/// Why nothing was started.
#[derive(Debug)]
pub enum StartError {
    /// Every port that is taken or refused, with who holds it.
    Ports(Vec<PortProblem>),
    Fault(String),
}

#[derive(Debug)]
pub struct PortProblem {
    pub name: PortName,
    pub what: String,
    pub next: String,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Ports(problems) => {
                let plural = if problems.len() == 1 { "a port" } else { "some ports" };
                write!(f, "cannot listen on {plural}:")?;
                problems.iter().try_for_each(|problem| {
                    write!(f, "\n  {:<10} {}\n             {}", problem.name.as_str(), problem.what, problem.next)
                })
            }
            StartError::Fault(what) => f.write_str(what),
        }
    }
}

impl Node {
    pub async fn start(resolved: Resolved) -> Result<Node, StartError> {
        let Resolved { config, mut warnings } = resolved;
        let open_files = files::raise_open_files();
        let clock = Clock::system();
        let (bound, doors) = bind_doors(&config, &mut warnings)?;
        let access = Arc::new(Access::new(&config.access));
        let drain = Drain::new();
        let tasks = Tasks::new();
        let acceptor = Acceptor {
            clock: clock.clone(),
            drain: drain.clone(),
            tasks: tasks.clone(),
            permits: Arc::new(Semaphore::new(config.limits.connections_max.min(Semaphore::MAX_PERMITS))),
        };
        for door in bound {
            let entry = doors.iter().find(|entry| entry.name == door.name).expect("every bound door has its entry").clone();
            acceptor.open(door, entry, not_yet()).map_err(|error| StartError::Fault(error.to_string()))?;
        }
        Ok(Node { config, doors, access, warnings, open_files, clock, drain, tasks })
    }

    /// What to print now that everything listens.
    pub fn start_block(&self, style: Style) -> String {
        let token = self.access.token();
        let block = StartBlock {
            config: &self.config,
            doors: &self.doors,
            token: &token,
            open_files: self.open_files,
            warnings: &self.warnings,
            services: &[],
        };
        block.render(style)
    }

    /// Runs until a signal asks to stop, then drains; a second signal cuts.
    pub async fn run(&self, signals: &mut Signals) {
        let signal = signals.stop().await;
        tracing::info!(signal, "stopping");
        let begun = self.clock.now();
        tokio::select! {
            () = self.drain() => {}
            signal = signals.stop() => {
                tracing::warn!(signal, "stopping at once");
                self.drain.cut();
            }
        }
        tracing::info!(ms = self.clock.now().since(begun).as_millis(), "stopped");
    }

    /// Takes everything down in order, within `limits.drain`.
    pub async fn drain(&self) {
        self.drain.begin();
        if tokio::time::timeout(self.config.limits.drain, self.tasks.joined()).await.is_err() {
            self.drain.cut();
        }
    }
}

fn not_yet() -> Arc<dyn Serve> {
    Arc::new(|accepted: Accepted| async move { drop(accepted) })
}

/// Binds all doors, or says everything that stands in the way. A privileged gateway port is only a warning: `ingress` serves.
fn bind_doors(config: &Config, warnings: &mut Vec<String>) -> Result<(Vec<Bound>, Doors), StartError> {
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
        return Err(StartError::Ports(fatal.iter().map(port_problem).collect()));
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

fn port_problem(failure: &Failure) -> PortProblem {
    let (port, name) = (failure.address.port(), failure.name.as_str());
    let what = match (failure.is_busy(), busy::holder(port)) {
        (true, Some(holder)) => format!("{} is taken by {holder}", failure.address),
        (true, None) => format!("{} is taken", failure.address),
        (false, _) => format!("{} cannot be bound: {}", failure.address, failure.error),
    };
    let variable = format!("REACTOR_PORTS_{}", name.to_ascii_uppercase());
    let next = format!(
        "Stop it, set ports.{name} to another port, 0 (any) or false (off), set {variable}, or move all with --port-offset 20000."
    );
    PortProblem { name: failure.name, what, next }
}
