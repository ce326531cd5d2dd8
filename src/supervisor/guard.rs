//! The guard: a small process between reactor and each program it runs, reactor itself under a hidden subcommand.
//!
//! ```text
//!   reactor ──socket──▶ guard ──▶ program ──▶ its children, their children, daemons that left the group …
//!            term, kill        (adopts every orphan among them)
//!           ◀── spawned PID, failed WHY, exited HOW, empty
//! ```
//!
//! It is why nothing outlives reactor: the socket closes however reactor dies, and then the guard ends every descendant, by TERM and
//! a second later by KILL. It is also why "stopped" means stopped: as the adoptive parent of every orphan it knows when the last
//! process is gone. It decides nothing else; the state machine in `core` does.
//!
//! Invariants: the guard outlives every descendant; it never prints (its stdout and stderr are the program's).

use super::platform::{self, EndSignal, NoChildren};
use super::restart::Exit;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// From TERM to KILL once reactor is gone. With the time to notice it stays well below the promised two seconds.
const ORPHAN_GRACE: Duration = Duration::from_secs(1);
/// While killing: a process may fork between the look at the table and the signal, so it is done again until nobody is left.
const KILL_EVERY: Duration = Duration::from_millis(20);

/// What a guard reports, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    Spawned(u32),
    NotSpawned(String),
    Exited(Exit),
    Empty,
}

impl Report {
    fn line(&self) -> String {
        match self {
            Report::Spawned(pid) => format!("spawned {pid}\n"),
            Report::NotSpawned(why) => format!("failed {}\n", why.replace('\n', " ")),
            Report::Exited(Exit::Code(code)) => format!("code {code}\n"),
            Report::Exited(Exit::Signal(signal)) => format!("signal {signal}\n"),
            Report::Exited(Exit::NotStarted(_) | Exit::Lost) => unreachable!("only reactor's side knows these"),
            Report::Empty => "empty\n".into(),
        }
    }

    pub fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        Some(match word {
            "spawned" => Report::Spawned(rest.parse().ok()?),
            "failed" => Report::NotSpawned(rest.into()),
            "code" => Report::Exited(Exit::Code(rest.parse().ok()?)),
            "signal" => Report::Exited(Exit::Signal(rest.parse().ok()?)),
            "empty" => Report::Empty,
            _ => return None,
        })
    }
}

/// What reactor asks of a guard, one line each.
pub const TERM: &str = "term\n";
pub const KILL: &str = "kill\n";

/// How reactor starts its guards: this very program with the hidden subcommand that leads to [`guard_main`].
pub fn guard_command(subcommand: &str) -> Vec<OsString> {
    vec![platform::this_program(), subcommand.into()]
}

/// The guard's `main`, called before anything else of the program is set up: no logging, no other runtime. `arguments` are those
/// after the hidden subcommand: the program and its own arguments. The process exits with what this returns.
pub fn guard_main(arguments: &[OsString]) -> i32 {
    let Some((program, arguments)) = arguments.split_first() else { return 64 };
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return 70 };
    match runtime.block_on(Guard::run(program, arguments)) {
        Ok(()) => 0,
        Err(_) => 71,
    }
}

struct Guard {
    commands: Lines<BufReader<OwnedReadHalf>>,
    reports: OwnedWriteHalf,
    leader: u32,
    /// Reactor's end of the socket is closed.
    orphaned: bool,
    killing: bool,
}

impl Guard {
    async fn run(program: &OsString, arguments: &[OsString]) -> io::Result<()> {
        let (commands, reports) = socket_to_reactor()?.into_split();
        let child_ended = signal(SignalKind::child())?;
        let asked_to_end = AskedToEnd::listen()?;
        platform::adopt_orphans()?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null());
        platform::lead_own_group(&mut command);
        let leader = match command.spawn() {
            Ok(child) => child.id(),
            Err(error) => {
                let why = platform::spawn_error(&program.to_string_lossy(), &error);
                send(&reports, &Report::NotSpawned(why.to_string())).await;
                return Ok(());
            }
        };
        send(&reports, &Report::Spawned(leader)).await;
        let commands = BufReader::new(commands).lines();
        let mut guard = Guard { commands, reports, leader, orphaned: false, killing: false };
        guard.watch(child_ended, asked_to_end).await;
        send(&guard.reports, &Report::Empty).await;
        Ok(())
    }

    /// Until no descendant is left.
    async fn watch(&mut self, mut child_ended: Signal, mut asked_to_end: AskedToEnd) {
        let mut orphan_grace = Box::pin(tokio::time::sleep(Duration::ZERO));
        loop {
            if self.reap().await.is_err() {
                return;
            }
            tokio::select! {
                _ = child_ended.recv() => {}
                line = self.commands.next_line(), if !self.orphaned => match line.ok().flatten().as_deref() {
                    Some("term") => self.signal(EndSignal::Term),
                    Some("kill") => self.kill(),
                    Some(_) => {}
                    None => {
                        self.orphaned = true;
                        self.signal(EndSignal::Term);
                        orphan_grace = Box::pin(tokio::time::sleep(ORPHAN_GRACE));
                    }
                },
                () = &mut orphan_grace, if self.orphaned && !self.killing => self.kill(),
                () = tokio::time::sleep(KILL_EVERY), if self.killing => self.signal(EndSignal::Kill),
                // Whoever signals the guard means the program; reactor hears of its end.
                () = asked_to_end.recv() => self.signal(EndSignal::Term),
            }
        }
    }

    async fn reap(&mut self) -> Result<(), NoChildren> {
        while let Some((pid, exit)) = platform::reap_any()? {
            if pid == self.leader {
                send(&self.reports, &Report::Exited(exit)).await;
            }
        }
        Ok(())
    }

    fn kill(&mut self) {
        self.killing = true;
        self.signal(EndSignal::Kill);
    }

    fn signal(&self, signal: EndSignal) {
        platform::signal_descendants(std::process::id(), self.leader, signal);
    }
}

/// Standard input is one end of a socket pair; reactor holds the other.
fn socket_to_reactor() -> io::Result<UnixStream> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    let socket = std::os::unix::net::UnixStream::from(stdin);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// A report that finds nobody listening is dropped: reactor is gone, and the end of its socket says so too.
async fn send(reports: &OwnedWriteHalf, report: &Report) {
    let line = report.line();
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        if reports.writable().await.is_err() {
            return;
        }
        match reports.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}

struct AskedToEnd {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl AskedToEnd {
    fn listen() -> io::Result<Self> {
        Ok(AskedToEnd {
            term: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_read_as_they_are_written() {
        for report in [
            Report::Spawned(42),
            Report::NotSpawned("python4 was not found".into()),
            Report::Exited(Exit::Code(3)),
            Report::Exited(Exit::Signal(9)),
            Report::Empty,
        ] {
            let line = report.line();
            assert_eq!(Report::parse(line.trim_end()), Some(report));
        }
        assert_eq!(Report::parse("something else"), None);
        assert_eq!(Report::parse("spawned x"), None);
    }
}
