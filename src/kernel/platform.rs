//! What this process uses of its machine, as the operating system counts it. Linux; elsewhere nothing is known.

use std::path::Path;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time of all threads since the start.
    pub cpu: Duration,
    /// Resident memory.
    pub memory_bytes: u64,
}

pub fn own_usage() -> Usage {
    let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    Usage {
        cpu: Duration::new(u64::try_from(cpu.tv_sec).unwrap_or(0), u32::try_from(cpu.tv_nsec).unwrap_or(0)),
        memory_bytes: resident(&status).unwrap_or(0),
    }
}

/// Files and sockets it has open.
pub fn open_files() -> u64 {
    std::fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count() as u64)
}

/// Bytes that may still be written where `directory` is (or the working directory).
pub fn disk_free(directory: Option<&Path>) -> u64 {
    let directory = directory.unwrap_or(Path::new("."));
    rustix::fs::statvfs(directory).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

pub fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The machine's own name, up to its first dot.
pub fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim().split('.').next().unwrap_or_default();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// `VmRSS:     12345 kB` of `/proc/self/status`; unlike `statm` it needs no page size.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let usage = own_usage();
        assert!(usage.memory_bytes > 100_000, "{usage:?}");
        assert!(usage.cpu > Duration::ZERO, "{usage:?}");
    }

    #[test]
    fn resident_memory_is_read_from_its_line() {
        assert_eq!(resident("Name:\treactor\nVmRSS:\t   2048 kB\nThreads:\t3\n"), Some(2_097_152));
        assert_eq!(resident("Name:\treactor\n"), None);
    }
}
