//! The definition of a supervised service: what `[services.NAME]` says. Reading it from a file belongs to the configuration;
//! here is its shape, its defaults and the rules that need nothing else.
//!
//! `${NAME}` in `command`, `env` and `ready` is left as written: the supervisor expands it at every start, when `PORT` and the
//! connection variables of that very instance are known.

use super::refusal::{Refusal, RefusalKind};
use super::service::ServiceName;
use super::topology::DEFAULT_SPACE;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Copies of one service on this machine.
pub const REPLICAS_MAX: u32 = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSpec {
    pub name: ServiceName,
    pub space: Arc<str>,
    pub command: CommandLine,
    /// Absolute: relative ones are resolved against the directory of the file that names them.
    pub cwd: PathBuf,
    /// On top of reactor's own environment and the injected variables; wins over both.
    pub env: BTreeMap<String, String>,
    pub port: Port,
    pub replicas: u32,
    pub ready: Ready,
    pub restart: RestartPolicy,
    /// From TERM to KILL.
    pub grace: Duration,
    /// Services that must be ready, or have finished well, before this one starts.
    pub depends_on: Vec<ServiceName>,
    /// Take `/{service}[/vN]` off the path of requests (the default).
    pub strip_prefix: bool,
    /// Start with reactor; otherwise it waits for a `start` from the dashboard or the API.
    pub autostart: bool,
}

impl ServiceSpec {
    /// A service with every default, run in `cwd`.
    pub fn new(name: ServiceName, command: CommandLine, cwd: PathBuf) -> Self {
        ServiceSpec {
            name,
            space: Arc::from(DEFAULT_SPACE),
            command,
            cwd,
            env: BTreeMap::new(),
            port: Port::Offered,
            replicas: 1,
            ready: Ready::default(),
            restart: RestartPolicy::Always,
            grace: Duration::from_secs(5),
            depends_on: Vec::new(),
            strip_prefix: true,
            autostart: true,
        }
    }

    /// The rules that one definition can break by itself; what concerns several (cycles, unknown names) is the supervisor's.
    pub fn check(&self) -> Result<(), Refusal> {
        let refuse = |what: String, next: &str| Err(Refusal::new(RefusalKind::Invalid, what).hint(next));
        let name = &self.name;
        if self.command.is_empty() {
            return refuse(
                format!("service {name} has an empty command"),
                "Give the program and its arguments, as in command = \"python3 greeter.py\".",
            );
        }
        if self.replicas == 0 || self.replicas > REPLICAS_MAX {
            return refuse(
                format!("service {name} asks for {} replicas", self.replicas),
                &format!("Give a number from 1 to {REPLICAS_MAX}; autostart = false keeps a service from starting."),
            );
        }
        if self.replicas > 1 && matches!(self.port, Port::Fixed(_)) {
            return refuse(
                format!("service {name} has {} replicas that would share one port", self.replicas),
                "Set port = \"auto\" and let the program listen on $PORT.",
            );
        }
        if matches!(self.port, Port::Off) && self.ready.probe.needs_port() {
            return refuse(
                format!("service {name} has port = false, but its readiness is asked on its port"),
                "Remove port = false, or give the probe a port of its own.",
            );
        }
        Ok(())
    }
}

/// `command = "python3 greeter.py"` or `command = ["python3", "greeter.py"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandLine {
    /// Split at spaces and run directly; handed to `sh -c` if it contains anything that only a shell understands.
    Text(String),
    /// The program and its arguments, exactly.
    Words(Vec<String>),
}

impl CommandLine {
    pub fn is_empty(&self) -> bool {
        match self {
            CommandLine::Text(text) => text.trim().is_empty(),
            CommandLine::Words(words) => words.first().is_none_or(|program| program.is_empty()),
        }
    }
}

/// Where the service answers HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Port {
    /// Not said: `PORT` is a free port; if the service listens there it is routed to, if not it is reached over the bus.
    #[default]
    Offered,
    /// `"auto"`: `PORT` is a free port and the service is ready once it listens there.
    Auto,
    /// This one; the service is ready once it listens there.
    Fixed(u16),
    /// `false`: no `PORT` is set.
    Off,
}

/// `ready = { http = "/healthz", interval = "2s" }`: how to tell that an instance answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    pub probe: Probe,
    /// Between two probes once ready; while starting they come faster.
    pub interval: Duration,
    /// For one probe.
    pub timeout: Duration,
    /// From start to the first good answer; after it the instance shows as degraded and is asked on.
    pub within: Duration,
}

impl Default for Ready {
    fn default() -> Self {
        Ready {
            probe: Probe::Implied,
            interval: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            within: Duration::from_secs(60),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Probe {
    /// By its port where one is declared; else the process only has to live for a moment.
    Implied,
    /// Accepts TCP connections; `None` is the service's own port.
    Tcp { port: Option<u16> },
    /// Answers `GET path` with 200 to 399; `None` is the service's own port.
    Http { path: String, port: Option<u16> },
    /// A bus connection of its own consumes a call or event queue.
    Attached,
}

impl Probe {
    fn needs_port(&self) -> bool {
        match self {
            Probe::Implied | Probe::Attached => false,
            Probe::Tcp { port } | Probe::Http { port, .. } => port.is_none(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RestartPolicy {
    /// Whatever the exit code.
    #[default]
    Always,
    /// Only after an exit code other than 0, or a signal.
    OnFailure,
    Never,
}

impl RestartPolicy {
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "always" => RestartPolicy::Always,
            "on_failure" => RestartPolicy::OnFailure,
            "never" => RestartPolicy::Never,
            _ => return None,
        })
    }

    pub fn as_str(self) -> &'static str {
        match self {
            RestartPolicy::Always => "always",
            RestartPolicy::OnFailure => "on_failure",
            RestartPolicy::Never => "never",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> ServiceSpec {
        let name = ServiceName::new("greeter").expect("a valid name");
        ServiceSpec::new(name, CommandLine::Text("python3 greeter.py".into()), PathBuf::from("/"))
    }

    #[test]
    fn a_definition_that_cannot_work_is_refused_with_its_fix() {
        assert_eq!(spec().check(), Ok(()));
        let shared_port = ServiceSpec { port: Port::Fixed(9000), replicas: 2, ..spec() };
        assert!(shared_port.check().expect_err("refused").to_string().contains("port = \"auto\""));
        let empty = ServiceSpec { command: CommandLine::Words(vec![]), ..spec() };
        assert!(empty.check().expect_err("refused").to_string().contains("empty command"));
        assert!(ServiceSpec { replicas: 0, ..spec() }.check().is_err());
        let tcp = Ready { probe: Probe::Tcp { port: None }, ..Ready::default() };
        assert!(ServiceSpec { port: Port::Off, ready: tcp, ..spec() }.check().is_err());
    }

    #[test]
    fn restart_policies_read_as_written() {
        for policy in [RestartPolicy::Always, RestartPolicy::OnFailure, RestartPolicy::Never] {
            assert_eq!(RestartPolicy::parse(policy.as_str()), Some(policy));
        }
        assert_eq!(RestartPolicy::parse("sometimes"), None);
    }
}
