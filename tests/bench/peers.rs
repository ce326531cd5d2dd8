//! The brokers under measurement, each started by us on free ports and killed at the end, with what their processes cost.

use reactor::cli::bench::{Client, Target};
use std::fs;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub struct Peer {
    pub name: &'static str,
    pub target: Target,
    pub http: Option<SocketAddr>,
    pub started_in: Duration,
    child: Child,
    folder: PathBuf,
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

/// Of `guest`, with every peer; reactor's token, which is its password from elsewhere.
const PASSWORD: &str = "guest";

/// Where a peer runs and its clients are.
pub struct Place {
    pub address: IpAddr,
    /// A network namespace by name, if another than this one.
    pub namespace: Option<&'static str>,
    /// Those of its publishers and of its consumers.
    pub clients: Option<(PathBuf, PathBuf)>,
}

impl Place {
    pub fn here() -> Place {
        Place { address: IpAddr::from([127, 0, 0, 1]), namespace: None, clients: None }
    }

    /// `program`, to be run there.
    fn command(&self, program: &Path) -> Command {
        match self.namespace {
            None => Command::new(program),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program);
                command
            }
        }
    }
}

impl Peer {
    /// Starts reactor with every door on a free port; `settings` are more `REACTOR_…` variables.
    pub fn reactor(binary: &Path, settings: &[(&str, &str)]) -> Peer {
        Peer::reactor_at(Place::here(), binary, settings)
    }

    pub fn reactor_at(place: Place, binary: &Path, settings: &[(&str, &str)]) -> Peer {
        let folder = scratch("reactor");
        let (amqp, http) = (free_port(), free_port());
        let mut command = place.command(binary);
        command.args(["up", "--ephemeral"]).current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        for name in ["HTTP", "HTTPS", "CONTROL", "BUS", "AMQPS", "OTLP_GRPC", "OTLP_HTTP", "MANAGEMENT", "PROMETHEUS"] {
            command.env(format!("REACTOR_PORTS_{name}"), "0");
        }
        command.env("REACTOR_PORTS_AMQP", amqp.to_string()).env("REACTOR_PORTS_INGRESS", http.to_string());
        command.envs(settings.iter().copied());
        if place.namespace.is_some() {
            let users = [("REACTOR_BIND", "all"), ("REACTOR_AUTH_TOKEN", PASSWORD)];
            command.envs(users);
        }
        Peer::start("reactor", command, place, (amqp, Some(http)), folder)
    }

    /// Starts Debian's RabbitMQ with no plugin and default settings; `None` when it is not installed.
    pub fn rabbitmq() -> Option<Peer> {
        Peer::rabbitmq_at(Place::here())
    }

    pub fn rabbitmq_at(place: Place) -> Option<Peer> {
        let script = Path::new("/usr/lib/rabbitmq/bin/rabbitmq-server");
        if !script.exists() {
            return None;
        }
        let folder = scratch("rabbitmq");
        let (amqp, epmd, dist) = (free_port(), free_port(), free_port());
        fs::write(folder.join("plugins"), "[].\n").expect("a writable scratch folder");
        let config = format!("loopback_users = none\ndefault_pass = {PASSWORD}\n");
        fs::write(folder.join("rabbitmq.conf"), config).expect("a writable scratch folder");
        let mut command = place.command(script);
        command.stdout(Stdio::null()).stderr(Stdio::null()).env("HOME", &folder);
        for (name, value) in [
            ("RABBITMQ_NODENAME", format!("bench{amqp}@localhost")),
            ("RABBITMQ_NODE_PORT", amqp.to_string()),
            ("RABBITMQ_NODE_IP_ADDRESS", place.address.to_string()),
            ("RABBITMQ_DIST_PORT", dist.to_string()),
            ("ERL_EPMD_PORT", epmd.to_string()),
            ("RABBITMQ_MNESIA_BASE", folder.join("data").display().to_string()),
            ("RABBITMQ_LOG_BASE", folder.join("log").display().to_string()),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", folder.join("plugins").display().to_string()),
            ("RABBITMQ_CONFIG_FILE", folder.join("rabbitmq").display().to_string()),
            ("RABBITMQ_PID_FILE", folder.join("pid").display().to_string()),
        ] {
            command.env(name, value);
        }
        Some(Peer::start("RabbitMQ", command, place, (amqp, None), folder))
    }

    fn start(name: &'static str, mut command: Command, place: Place, (amqp, http): (u16, Option<u16>), folder: PathBuf) -> Peer {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
        let begun = Instant::now();
        let child = command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        let url = format!("amqp://guest:{PASSWORD}@{}:{amqp}/%2F", place.address);
        let target = || Target {
            namespace: place.clients.as_ref().map(|(publishers, _)| publishers.clone()),
            consumers_namespace: place.clients.as_ref().map(|(_, consumers)| consumers.clone()),
            ..Target::parse(&url).expect("an address")
        };
        let http = http.map(|port| SocketAddr::new(place.address, port));
        let mut peer = Peer { name, target: target(), http, started_in: Duration::ZERO, child, folder };
        while Client::connect(&peer.target, 1).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "{name} does not answer on {url}");
            std::thread::sleep(Duration::from_millis(1));
        }
        peer.started_in = begun.elapsed();
        // Now that it listens, its process can be found; in another namespace only the one that was started.
        peer.target = target();
        if place.namespace.is_some() && name == "reactor" {
            peer.target.pid = Some(peer.child.id());
        }
        peer
    }

    fn pids(&self) -> Vec<u32> {
        let group = self.child.id();
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter(|pid| stat(*pid).is_some_and(|fields| fields[2] == group.to_string())).collect()
    }

    /// User and system CPU time of all its processes so far.
    pub fn cpu(&self) -> Cpu {
        let mut cpu = Cpu::default();
        for fields in self.pids().into_iter().filter_map(stat) {
            cpu.user += ticks(&fields[11]);
            cpu.system += ticks(&fields[12]);
        }
        cpu
    }

    /// Resident memory of all its processes, in bytes.
    pub fn resident(&self) -> u64 {
        let pages = |pid: u32| fs::read_to_string(format!("/proc/{pid}/statm")).ok()?.split(' ').nth(1)?.parse::<u64>().ok();
        self.pids().into_iter().filter_map(pages).sum::<u64>() * 4096
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", self.child.id())]).status();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[derive(Clone, Copy, Default)]
pub struct Cpu {
    user: Duration,
    system: Duration,
}

impl Cpu {
    pub fn since(self, earlier: Cpu) -> Duration {
        (self.user + self.system).saturating_sub(earlier.user + earlier.system)
    }
}

/// Fields of /proc/PID/stat from the third (state) on, so that a name with spaces does no harm.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(") ")?.1.split(' ').map(str::to_owned).collect())
}

fn ticks(field: &str) -> Duration {
    Duration::from_millis(field.parse::<u64>().unwrap_or(0) * 10)
}

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("reactor-bench-{name}-{}-{}", std::process::id(), free_port()));
    fs::create_dir_all(&folder).expect("a writable temporary folder");
    folder
}
