//! The broker under load: where it is, and, when it runs on this machine, what its process costs.

use anyhow::{Context, bail};
use percent_encoding::percent_decode_str;
use std::fs;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug)]
pub struct Target {
    pub address: SocketAddr,
    pub user: String,
    pub password: String,
    pub space: String,
    /// The process that listens on the address, if it can be seen from here.
    pub pid: Option<u32>,
    /// The network namespace that clients dial from, if another than this process's.
    pub namespace: Option<PathBuf>,
    /// The one that consumers of floods dial from, if another still.
    pub consumers_namespace: Option<PathBuf>,
}

impl Target {
    /// Reads `amqp://user:password@host:port/space`; what is missing is guest, guest, 5672 and `/`.
    pub fn parse(url: &str) -> anyhow::Result<Target> {
        let Some(rest) = url.strip_prefix("amqp://") else {
            bail!("'{url}' is no address of a broker: it must look like amqp://guest:guest@localhost:5672/%2F");
        };
        let (authority, space) = rest.split_once('/').unwrap_or((rest, "%2F"));
        let (login, host) = authority.rsplit_once('@').unwrap_or(("guest:guest", authority));
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => (name, port.parse().with_context(|| format!("'{port}' is no port"))?),
            _ => (host, 5672),
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        let address = (name, port).to_socket_addrs().ok().and_then(|mut found| found.next());
        let address = address.with_context(|| format!("'{name}' has no address"))?;
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let space = if space.is_empty() { "/".to_owned() } else { decoded(space) };
        Ok(Target {
            address,
            user: decoded(user),
            password: decoded(password),
            space,
            pid: listener(address),
            namespace: None,
            consumers_namespace: None,
        })
    }

    /// As consumers see it.
    pub fn for_consumers(&self) -> Target {
        let namespace = self.consumers_namespace.clone().or_else(|| self.namespace.clone());
        Target { namespace, ..self.clone() }
    }

    /// What its process has used so far.
    pub fn cost(&self) -> Option<Cost> {
        cost_of(self.pid?)
    }
}

/// Processor time and memory of a process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    pub user: Duration,
    pub system: Duration,
    pub resident_bytes: u64,
}

impl Cost {
    pub fn cpu(self) -> Duration {
        self.user + self.system
    }

    pub fn cpu_since(self, earlier: Cost) -> Duration {
        self.cpu().saturating_sub(earlier.cpu())
    }
}

pub fn own_cost() -> Cost {
    cost_of(std::process::id()).unwrap_or_default()
}

fn cost_of(pid: u32) -> Option<Cost> {
    // From the third field (state) on, so that a name with blanks does no harm.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(") ")?.1.split(' ').collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok().map(|ticks| Duration::from_millis(ticks * 10));
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(Cost { user: ticks(11)?, system: ticks(12)?, resident_bytes: kibibytes * 1024 })
}

/// The process that listens on a port of this machine: its socket's inode stands in /proc/net/tcp, and among its descriptors.
fn listener(address: SocketAddr) -> Option<u32> {
    let inode = ["/proc/net/tcp", "/proc/net/tcp6"].iter().find_map(|file| {
        let text = fs::read_to_string(file).ok()?;
        text.lines().skip(1).find_map(|line| listening_inode(line, address.port())).map(str::to_owned)
    })?;
    let wanted = format!("socket:[{inode}]");
    let mut pids = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        descriptors.filter_map(|entry| fs::read_link(entry.path()).ok()).any(|link| link.to_str() == Some(wanted.as_str()))
    })
}

/// `sl local_address rem_address st … inode` with the port in hexadecimal and 0A for a listener.
fn listening_inode(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let local = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
    (local == port && *fields.get(3)? == "0A").then(|| fields.get(9).copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_who_where_and_which_space() {
        let target = Target::parse("amqp://ann:p%40ss@127.0.0.1:25672/team%2Fa").expect("parses");
        assert_eq!((target.user.as_str(), target.password.as_str(), target.space.as_str()), ("ann", "p@ss", "team/a"));
        assert_eq!(target.address, SocketAddr::from(([127, 0, 0, 1], 25672)));
        let plain = Target::parse("amqp://127.0.0.1").expect("parses");
        assert_eq!((plain.address.port(), plain.user.as_str(), plain.space.as_str()), (5672, "guest", "/"));
        assert_eq!(
            Target::parse("amqp://[::1]:5673/").expect("parses").address,
            SocketAddr::from(([0u16, 0, 0, 0, 0, 0, 0, 1], 5673))
        );
        assert!(Target::parse("localhost:5672").expect_err("refused").to_string().contains("amqp://guest"));
    }

    #[test]
    fn the_process_behind_a_port_of_this_machine_is_found() {
        let listening = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listening.local_addr().expect("an address");
        assert_eq!(listener(address), Some(std::process::id()));
        assert!(cost_of(std::process::id()).expect("own cost").resident_bytes > 100_000);
    }
}
