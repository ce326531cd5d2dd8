//! Who listens on a port that is taken: from `/proc`, best effort.
//!
//! `/proc/net/tcp` gives the inode of the listening socket; a process has it open as `/proc/PID/fd/N -> socket:[inode]`. Other
//! users' processes cannot be read, then only the port is named.

use std::fmt;
use std::fs;
use std::path::Path;

/// State of a listening socket in `/proc/net/tcp`.
const LISTEN: &str = "0A";
/// Processes looked at before giving up.
const PROCESSES_MAX: usize = 50_000;

/// Who holds a port; displayed as `rabbitmq-server (pid 1234)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub command: String,
    pub pid: u32,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.command, self.pid)
    }
}

/// Where it can be found.
pub fn holder(port: u16) -> Option<Holder> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening(&table, port))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    for process in fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX) {
        let name = process.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if has_open(&process.path().join("fd"), &links) {
            let command = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(Holder { command: command.trim().to_owned(), pid });
        }
    }
    None
}

/// Inodes of sockets that listen on `port`.
fn listening(table: &str, port: u16) -> Vec<String> {
    let suffix = format!(":{port:04X}");
    let rows = table.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.len() > 9 && row[1].ends_with(&suffix) && row[3] == LISTEN).map(|row| row[9].to_owned()).collect()
}

fn has_open(descriptors: &Path, links: &[String]) -> bool {
    let Ok(entries) = fs::read_dir(descriptors) else { return false };
    entries
        .flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|target| links.iter().any(|link| target == Path::new(link)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_that_listens_is_found() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = socket.local_addr().expect("an address").port();
        let found = holder(port).expect("this very process");
        assert_eq!(found.pid, std::process::id());
    }

    #[test]
    fn only_listening_sockets_on_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1628 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 111 1\n\
            1: 0100007F:1628 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 222 1\n\
            2: 0100007F:1629 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 333 1\n";
        assert_eq!(listening(table, 5672), ["111"]);
    }
}
