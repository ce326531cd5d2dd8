//! One real `reactor` process per test: every port drawn by the system, nothing kept, killed on drop.
//!
//! ```ignore
//! let reactor = Reactor::start("[services.hello]\ncommand = 'python3 hello.py'");
//! let amqp = reactor.amqp_url();
//! wait_until("the route appears", DEADLINE, || async { reactor.get("/hello").await.status() == 200 }).await;
//! ```

#![allow(dead_code, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Enough for the slowest machine; a test that passes never waits this long.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// Doors this build serves. The harness gives each port 0 unless the test's own configuration names it.
const DOORS: [&str; 11] =
    ["http", "https", "ingress", "control", "bus", "amqp", "amqps", "management", "prometheus", "otlp_grpc", "otlp_http"];
const STARTED: &str = "Server startup complete";

/// A running reactor.
pub struct Reactor {
    child: Child,
    ports: BTreeMap<String, u16>,
    start_block: String,
    stderr: Arc<Mutex<String>>,
    directory: tempfile::TempDir,
}

impl Reactor {
    /// Starts with this `reactor.toml` (empty is fine); panics with reactor's own words when it does not come up.
    pub fn start(toml: &str) -> Reactor {
        Reactor::start_with(toml, &[], &[])
    }

    /// As [`Reactor::start`], with further arguments of `reactor up` and environment variables.
    pub fn start_with(toml: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Reactor {
        Reactor::start_in(tempfile::tempdir().expect("a temporary directory"), toml, arguments, variables)
    }

    /// As [`Reactor::start_with`] in a directory the test has prepared; `reactor.toml` is written there and relative commands run there.
    pub fn start_in(directory: tempfile::TempDir, toml: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Reactor {
        let file = directory.path().join("reactor.toml");
        std::fs::write(&file, toml).expect("the configuration is written");
        let mut command = command();
        command.arg("up").arg("-c").arg(&file).arg("--ephemeral").args(arguments).current_dir(directory.path());
        for door in DOORS.iter().filter(|door| !names_port(toml, door)) {
            command.env(format!("REACTOR_PORTS_{}", door.to_uppercase()), "0");
        }
        command.envs(variables.iter().copied());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("reactor runs");
        let stderr = Arc::new(Mutex::new(String::new()));
        collect(child.stderr.take().expect("piped"), stderr.clone());
        let start_block = match read_start_block(child.stdout.take().expect("piped")) {
            Ok(block) => block,
            Err(printed) => {
                let _ = child.kill();
                let status = child.wait();
                panic!("reactor did not start ({status:?}):\n{printed}\n{}", stderr.lock().expect("no panic while reading"));
            }
        };
        let ports = read_ports(&start_block);
        Reactor { child, ports, start_block, stderr, directory }
    }

    /// The port behind a name of `[ports]`.
    pub fn port(&self, name: &str) -> u16 {
        *self.ports.get(name).unwrap_or_else(|| panic!("no port {name} in the start block:\n{}", self.start_block))
    }

    /// `http://127.0.0.1:PORT` of the control port.
    pub fn api(&self) -> String {
        format!("http://127.0.0.1:{}", self.port("control"))
    }

    /// `http://127.0.0.1:PORT` of the gateway.
    pub fn gateway(&self) -> String {
        format!("http://127.0.0.1:{}", self.port("ingress"))
    }

    pub fn amqp_url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}", self.port("amqp"))
    }

    /// `http://127.0.0.1:PORT` of the management port.
    pub fn management(&self) -> String {
        format!("http://127.0.0.1:{}", self.port("management"))
    }

    pub fn otlp_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port("otlp_http"))
    }

    pub fn start_block(&self) -> &str {
        &self.start_block
    }

    /// What reactor wrote to standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.lock().expect("no panic while reading").clone()
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends `TERM`, `KILL`, … by name.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").arg(format!("-{name}")).arg(self.pid().to_string()).status();
        assert!(status.expect("kill runs").success(), "reactor is gone already");
    }

    /// Asks it to stop and waits; panics when it takes longer than [`DEADLINE`].
    pub fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        let until = Instant::now() + DEADLINE;
        loop {
            if let Some(status) = self.child.try_wait().expect("reactor is our child") {
                return status;
            }
            assert!(Instant::now() < until, "reactor did not stop:\n{}", self.stderr());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether the process is still there: what every hostile test asks last.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("reactor is our child").is_none()
    }

    /// Resident memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("reactor runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a memory line");
        line.split_ascii_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        if self.child.try_wait().ok().flatten().is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        if std::thread::panicking() {
            eprintln!("--- reactor's standard error ---\n{}", self.stderr());
        }
    }
}

/// The binary with a clean environment: no `REACTOR_…` of the caller's, its own home.
pub fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_reactor"));
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("REACTOR_")) {
            command.env_remove(name);
        }
    }
    command.env("NO_COLOR", "1");
    command
}

/// Runs the binary to its end and returns (exit code, standard output, standard error).
pub fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = command().args(arguments).stdin(Stdio::null()).output().expect("reactor runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

/// Repeats `condition` until it holds; panics with `what` at the deadline.
pub async fn wait_until(what: &str, deadline: Duration, mut condition: impl AsyncFnMut() -> bool) {
    let until = Instant::now() + deadline;
    while !condition().await {
        assert!(Instant::now() < until, "not within {deadline:?}: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// [`wait_until`] for tests without a runtime.
pub fn wait_until_blocking(what: &str, deadline: Duration, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + deadline;
    while !condition() {
        assert!(Instant::now() < until, "not within {deadline:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// An HTTP client that keeps no proxy of the machine in the way and gives up at [`DEADLINE`].
pub fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().timeout(DEADLINE).build().expect("a client")
}

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A program of `tests/clients` with the libraries that `tests/run` installs.
pub fn python_client(program: &str) -> Command {
    let mut command = Command::new(repository("target/venv/bin/python"));
    command.arg(repository("tests/clients").join(program)).env("no_proxy", "127.0.0.1").env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// As [`python_client`], in Node.
pub fn node_client(program: &str) -> Command {
    let mut command = Command::new("node");
    command.arg(repository("tests/clients").join(program)).env("NODE_PATH", repository("target/clients/node_modules"));
    command
}

fn names_port(toml: &str, door: &str) -> bool {
    let parsed: toml::Table = toml.parse().unwrap_or_default();
    parsed.get("ports").and_then(toml::Value::as_table).is_some_and(|ports| ports.contains_key(door))
}

fn collect(stream: impl Read + Send + 'static, into: Arc<Mutex<String>>) {
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            let mut text = into.lock().expect("no panic while reading");
            text.push_str(&line);
            text.push('\n');
        }
    });
}

/// Everything up to the last line of the start block, or what was printed when it never came.
fn read_start_block(stdout: impl Read + Send + 'static) -> Result<String, String> {
    let (lines, received) = mpsc::channel();
    std::thread::spawn(move || {
        // Goes on reading after the block, so that reactor never waits for a full pipe.
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    let until = Instant::now() + DEADLINE;
    let mut block = String::new();
    while let Ok(line) = received.recv_timeout(until.saturating_duration_since(Instant::now())) {
        block.push_str(&line);
        block.push('\n');
        if line == STARTED {
            return Ok(block);
        }
    }
    Err(block)
}

/// Lines such as `  amqp        5672  AMQP 0-9-1`.
fn read_ports(block: &str) -> BTreeMap<String, u16> {
    let rows = block.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 1 && DOORS.contains(&row[0]))
        .filter_map(|row| Some((row[0].to_owned(), row[1].parse().ok()?)))
        .collect()
}
