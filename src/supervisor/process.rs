//! Reactor's side of a running program: starts it below a [`guard`](super::guard), hears what the guard reports, passes on TERM
//! and KILL. Together with the guard and `platform` the only code that touches processes.

use super::guard::{KILL, Report, TERM};
use super::platform::{self, EndSignal};
use super::restart::Exit;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

/// Everything a program is started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    pub program: OsString,
    pub arguments: Vec<OsString>,
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited beside it.
    pub env: Vec<(OsString, OsString)>,
}

pub struct Process {
    guard: Child,
    commands: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
    leader: Option<u32>,
    exit_reported: bool,
}

pub struct Started {
    pub process: Process,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// Starts a guard that starts the program. Whether the program itself could be started is its first report.
pub fn launch(guard: &[OsString], launch: &Launch) -> Result<Started, Arc<str>> {
    let (guard_program, guard_arguments) = guard.split_first().expect("wiring names the guard's program");
    if !launch.cwd.is_dir() {
        return Err(format!("its directory {} does not exist; see cwd", launch.cwd.display()).into());
    }
    let fault = |error: std::io::Error| Arc::<str>::from(format!("its guard process could not be started: {error}"));
    let (own_end, guard_end) = std::os::unix::net::UnixStream::pair().map_err(fault)?;
    own_end.set_nonblocking(true).map_err(fault)?;
    let (reports, commands) = UnixStream::from_std(own_end).map_err(fault)?.into_split();
    let mut command = Command::new(guard_program);
    command
        .arg0("reactor-guard")
        .args(guard_arguments)
        .arg(&launch.program)
        .args(&launch.arguments)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(guard_end)))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Ctrl-C in the terminal is for reactor, which stops its services in order.
        .process_group(0);
    let mut guard = command.spawn().map_err(fault)?;
    let stdout = guard.stdout.take().expect("piped above");
    let stderr = guard.stderr.take().expect("piped above");
    let reports = BufReader::new(reports).lines();
    let process = Process { guard, commands, reports, leader: None, exit_reported: false };
    Ok(Started { process, stdout, stderr })
}

impl Process {
    /// The ancestor of everything that belongs to the program; `None` once it is gone.
    pub fn guard_pid(&self) -> Option<u32> {
        self.guard.id()
    }

    /// The next thing that happened. After `NotSpawned` or `Empty` nothing more will. May be dropped and called again.
    pub async fn report(&mut self) -> Report {
        // A line that cannot be read means as much as none: this guard is not to be trusted with more.
        let line = self.reports.next_line().await.ok().flatten();
        match line.as_deref().and_then(Report::parse) {
            Some(report) => {
                match &report {
                    Report::Spawned(pid) => self.leader = Some(*pid),
                    Report::Exited(_) => self.exit_reported = true,
                    Report::NotSpawned(_) | Report::Empty => {}
                }
                report
            }
            None => self.guard_lost().await,
        }
    }

    /// The guard was killed. The kernel killed the program with it; what remains of its group follows.
    async fn guard_lost(&mut self) -> Report {
        if let Some(leader) = self.leader {
            platform::signal_group(leader, EndSignal::Kill);
        }
        let _ = self.guard.start_kill();
        let _ = self.guard.wait().await;
        match (self.leader, self.exit_reported) {
            (None, _) => Report::NotSpawned("its guard process was killed before the program ran".into()),
            (Some(_), false) => {
                self.exit_reported = true;
                Report::Exited(Exit::Lost)
            }
            (Some(_), true) => Report::Empty,
        }
    }

    pub fn terminate(&self) {
        self.send(TERM);
    }

    pub fn kill(&self) {
        self.send(KILL);
    }

    /// After the last report: lets the guard go, which then has nothing left to do.
    pub async fn finish(mut self) {
        drop(self.commands);
        // It ends by itself; a failure to wait leaves it to the runtime to reap.
        let _ = self.guard.wait().await;
    }

    /// The few bytes ever sent fit the socket's buffer; if the guard is gone, [`Process::report`] says so.
    fn send(&self, command: &str) {
        let _ = self.commands.try_write(command.as_bytes());
    }
}

/// As process 1 of a container reactor inherits every orphan and must take the zombies away. Those of its own children are
/// waited for within milliseconds; one seen at two looks in a row is nobody's.
pub async fn reap_orphans() {
    let mut seen: Vec<u32> = Vec::new();
    let mut look = tokio::time::interval(std::time::Duration::from_secs(1));
    loop {
        look.tick().await;
        // Outside the async threads: a large table takes milliseconds.
        let Ok(table) = tokio::task::spawn_blocking(platform::process_table).await else { continue };
        let now: Vec<u32> = platform::zombies_of_init(&table).collect();
        for zombie in now.iter().filter(|pid| seen.contains(pid)) {
            platform::reap(*zombie);
        }
        seen = now;
    }
}
