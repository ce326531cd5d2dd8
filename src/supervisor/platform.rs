//! What is the platform's: process groups, signals, reaping, and reading the process table. Linux first; on other Unixes the
//! process group stands in for the process tree, so descendants that left it are not found.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::Arc;

use super::restart::Exit;

/// One row of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub pid: u32,
    pub parent: u32,
    pub group: u32,
    pub is_zombie: bool,
    /// Processor time used so far, in ticks of [`ticks_per_second`].
    pub ticks: u64,
    /// In ticks since boot: tells a reused pid from the process that had it before.
    pub started: u64,
    pub memory_bytes: u64,
}

/// How to run this very program again, also after its file was replaced by a newer build.
#[cfg(target_os = "linux")]
pub fn this_program() -> std::ffi::OsString {
    "/proc/self/exe".into()
}

#[cfg(not(target_os = "linux"))]
pub fn this_program() -> std::ffi::OsString {
    std::env::current_exe().map_or_else(|_| "reactor".into(), Into::into)
}

/// From here on, descendants whose parent dies become children of this process instead of process 1.
#[cfg(target_os = "linux")]
pub fn adopt_orphans() -> std::io::Result<()> {
    Ok(rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?)
}

#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() -> std::io::Result<()> {
    Ok(())
}

/// Puts the program in a process group of its own and, on Linux, has the kernel KILL it when the calling thread ends: the last
/// resort for the day someone kills the guard itself.
pub fn lead_own_group(command: &mut Command) {
    command.process_group(0);
    #[cfg(target_os = "linux")]
    #[allow(unsafe_code)]
    // SAFETY: between fork and exec only async-signal-safe calls are allowed; the closure makes one system call, allocates
    // nothing and takes no lock.
    unsafe {
        command.pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?));
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    Term,
    Kill,
}

impl EndSignal {
    fn number(self) -> Signal {
        match self {
            EndSignal::Term => Signal::TERM,
            EndSignal::Kill => Signal::KILL,
        }
    }
}

/// To every process below `ancestor`, not to itself. `leader` is the one started first; its group gets the signal as a whole, so
/// that nobody escapes by forking meanwhile. A process that is gone already is no error.
pub fn signal_descendants(ancestor: u32, leader: u32, signal: EndSignal) {
    let table = process_table();
    let below = descendants(&table, ancestor);
    // Without a table (not Linux) the group is all that is known.
    let group_lives = table.is_empty() || below.iter().any(|row| row.group == leader);
    if group_lives {
        signal_group(leader, signal);
    }
    for row in below.iter().filter(|row| row.group != leader && !row.is_zombie) {
        if let Some(pid) = pid(row.pid) {
            let _ = kill_process(pid, signal.number());
        }
    }
}

pub fn signal_group(leader: u32, signal: EndSignal) {
    if let Some(leader) = pid(leader) {
        let _ = kill_process_group(leader, signal.number());
    }
}

/// A child of this process that ended, if any has: its pid and how. `Err` when there are no children at all.
pub fn reap_any() -> Result<Option<(u32, Exit)>, NoChildren> {
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(None) => return Ok(None),
            Ok(Some((pid, status))) => {
                let exit = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => Exit::Code(code),
                    (None, Some(signal)) => Exit::Signal(signal),
                    // Stopped or continued: not an end.
                    (None, None) => continue,
                };
                return Ok(Some((pid.as_raw_nonzero().get().unsigned_abs(), exit)));
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(NoChildren),
        }
    }
}

#[derive(Debug)]
pub struct NoChildren;

/// Whether this process is process 1 of its container, to which every orphan comes.
pub fn is_init() -> bool {
    rustix::process::getpid().is_init()
}

/// Takes away the zombie `pid`, which nobody else waits for.
pub fn reap(zombie: u32) {
    let _ = waitpid(pid(zombie), WaitOptions::NOHANG);
}

/// Zombies among the children of process 1.
pub fn zombies_of_init(table: &[Row]) -> impl Iterator<Item = u32> {
    table.iter().filter(|row| row.is_zombie && row.parent == 1).map(|row| row.pid)
}

/// Everything below `ancestor`, parents before children.
pub fn descendants(table: &[Row], ancestor: u32) -> Vec<Row> {
    let mut found: Vec<Row> = table.iter().filter(|row| row.parent == ancestor).copied().collect();
    let mut next = 0;
    // Bounded by the table: a row is found once, through its one parent.
    while next < found.len() && found.len() <= table.len() {
        let parent = found[next].pid;
        found.extend(table.iter().filter(|row| row.parent == parent));
        next += 1;
    }
    found
}

pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// Every process there is; empty where there is no `/proc`.
pub fn process_table() -> Vec<Row> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let page = rustix::param::page_size() as u64;
    pids.filter_map(|pid| parse_stat(&std::fs::read(format!("/proc/{pid}/stat")).ok()?, page)).collect()
}

/// `/proc/PID/stat`, see proc(5). The name in parentheses may hold anything, also `)` and spaces.
fn parse_stat(stat: &[u8], page: u64) -> Option<Row> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    let pid = std::str::from_utf8(&stat[..stat.iter().position(|byte| *byte == b' ')?]).ok()?.parse().ok()?;
    let rest = std::str::from_utf8(stat.get(name_ends + 1..)?).ok()?;
    // Field 3 (state) is the first after the name.
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Row {
        pid,
        parent: u32::try_from(number(4)?).ok()?,
        group: u32::try_from(number(5)?).ok()?,
        is_zombie: *fields.first()? == "Z",
        ticks: number(14)? + number(15)?,
        started: number(22)?,
        memory_bytes: number(24)?.saturating_mul(page),
    })
}

fn pid(number: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(number).ok()?)
}

/// Why a program could not be started, for people.
pub fn spawn_error(program: &str, error: &std::io::Error) -> Arc<str> {
    let text = match error.kind() {
        std::io::ErrorKind::NotFound => format!("{program} was not found; is it installed, and in PATH?"),
        std::io::ErrorKind::PermissionDenied => format!("{program} may not be executed; see its permissions"),
        _ => format!("{program} could not be started: {error}"),
    };
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_with_a_hostile_name_is_read() {
        let line = b"4242 (a) R 1 (b) S 17 4240 4240 0 -1 4194560 1 0 0 0 250 50 0 0 20 0 3 0 987654 1000 12 184 1 1 0";
        let row = parse_stat(line, 4096).expect("well-formed");
        assert_eq!((row.pid, row.parent, row.group, row.is_zombie), (4242, 17, 4240, false));
        assert_eq!((row.ticks, row.started, row.memory_bytes), (300, 987_654, 12 * 4096));
        assert_eq!(parse_stat(b"", 4096), None);
        assert_eq!(parse_stat(b"12 (x) S 1", 4096), None);
    }

    #[test]
    fn descendants_are_found_through_every_generation() {
        let row = |pid, parent| Row { pid, parent, group: 1, is_zombie: false, ticks: 0, started: 0, memory_bytes: 0 };
        let table = [row(9, 5), row(5, 2), row(2, 1), row(3, 1), row(7, 3)];
        let pids: Vec<u32> = descendants(&table, 2).iter().map(|row| row.pid).collect();
        assert_eq!(pids, [5, 9]);
        assert_eq!(descendants(&table, 9), []);
    }

    #[test]
    fn this_process_is_in_the_table() {
        let own = std::process::id();
        let row = process_table().into_iter().find(|row| row.pid == own).expect("listed");
        assert!(row.memory_bytes > 0 && !row.is_zombie);
    }
}
