//! Why ports could not be had, said in as few lines as it takes: another reactor that holds them is one sentence, strangers are a
//! table with one advice a kind.

use super::banner;
use super::busy::{self, Holder};
use crate::access::WebRefusal;
use crate::kernel::{counted, dial};
use crate::model::config::{Config, PortName};
use crate::net::Failure;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Time that whoever holds the control port has to say what it is.
const ASK_LIMIT: Duration = Duration::from_secs(1);
/// As much of its answer as is read.
const ANSWER_BYTES_MAX: u64 = 8 * 1024;
/// Moves every default port to one that no default port has.
const OFFSET: u16 = 20_000;

/// Why nothing listens.
#[derive(Debug)]
pub enum PortsRefused {
    /// A reactor holds the control port.
    Running {
        pid: Option<u32>,
        dashboard: String,
    },
    Taken(Vec<PortProblem>),
}

#[derive(Debug)]
pub struct PortProblem {
    pub name: PortName,
    pub address: SocketAddr,
    pub why: Why,
}

#[derive(Debug)]
pub enum Why {
    Busy(Option<Holder>),
    NotHere,
    Privilege,
    Other(String),
}

impl PortsRefused {
    /// Looks at who is in the way, asking the one at the control port.
    pub async fn by(failures: &[Failure], config: &Config) -> PortsRefused {
        let problems: Vec<PortProblem> = failures.iter().map(PortProblem::of).collect();
        for problem in problems.iter().filter(|problem| problem.name == PortName::Control) {
            let Why::Busy(holder) = &problem.why else { continue };
            if is_reactor(problem.address).await {
                let dashboard = banner::web_url("http", &banner::host(config), problem.address.port(), 80);
                return PortsRefused::Running { pid: holder.as_ref().map(|holder| holder.pid), dashboard };
            }
        }
        PortsRefused::Taken(problems)
    }
}

impl PortProblem {
    fn of(failure: &Failure) -> PortProblem {
        let why = match failure.error.kind() {
            io::ErrorKind::AddrInUse => Why::Busy(busy::holder(failure.address.port())),
            io::ErrorKind::AddrNotAvailable => Why::NotHere,
            io::ErrorKind::PermissionDenied => Why::Privilege,
            _ => Why::Other(failure.error.to_string()),
        };
        PortProblem { name: failure.name, address: failure.address, why }
    }
}

impl fmt::Display for PortsRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortsRefused::Running { pid, dashboard } => {
                let pid = pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
                write!(
                    f,
                    "already runs here{pid}: dashboard {dashboard}\nStop it, or start another beside it with --port-offset {OFFSET}."
                )
            }
            PortsRefused::Taken(problems) => table(f, problems),
        }
    }
}

fn table(f: &mut fmt::Formatter<'_>, problems: &[PortProblem]) -> fmt::Result {
    write!(f, "cannot listen on {}:", counted(problems.len(), "port"))?;
    let addresses: Vec<String> = problems.iter().map(|problem| problem.address.to_string()).collect();
    let width = addresses.iter().map(String::len).max().unwrap_or(0);
    for (problem, address) in problems.iter().zip(&addresses) {
        write!(f, "\n  {:<10}  {address:<width$}  {}", problem.name.as_str(), problem.why)?;
    }
    let any = |test: fn(&Why) -> bool| problems.iter().any(|problem| test(&problem.why));
    if any(|why| matches!(why, Why::Busy(_))) {
        f.write_str("\nStop who holds them, or move.")?;
    }
    if any(|why| matches!(why, Why::NotHere)) {
        f.write_str("\nCorrect bind: \"localhost\", \"all\" or addresses of this machine.")?;
    }
    if any(|why| matches!(why, Why::Privilege)) {
        f.write_str("\nPorts from 1024 need no privilege.")?;
    }
    let name = problems.first().map_or("control", |problem| problem.name.as_str());
    write!(
        f,
        "\nAll ports move with --port-offset {OFFSET}; one by ports.{name} or REACTOR_PORTS_{}: another port, 0 (any) or false (off).",
        name.to_ascii_uppercase()
    )
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Busy(Some(holder)) => write!(f, "taken by {holder}"),
            Why::Busy(None) => f.write_str("taken"),
            Why::NotHere => f.write_str("is no address of this machine"),
            Why::Privilege => f.write_str("needs a privilege this user does not have"),
            Why::Other(error) => f.write_str(error),
        }
    }
}

/// Whether what listens there answers as a reactor: by its name, or by how it asks for a token.
async fn is_reactor(address: SocketAddr) -> bool {
    let ip = if address.ip().is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { address.ip() };
    let asked = tokio::time::timeout(ASK_LIMIT, ask(SocketAddr::new(ip, address.port()))).await;
    matches!(asked, Ok(Ok(answer)) if is_reactors(&answer))
}

async fn ask(address: SocketAddr) -> io::Result<Vec<u8>> {
    let mut stream = dial::tcp(address, ASK_LIMIT).await?;
    let request = format!("GET /api/v1/version HTTP/1.1\r\nhost: localhost:{}\r\nconnection: close\r\n\r\n", address.port());
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer).await?;
    Ok(answer)
}

fn is_reactors(answer: &[u8]) -> bool {
    let text = String::from_utf8_lossy(answer);
    text.contains("\"name\":\"reactor\"") || text.contains(WebRefusal::NoToken.what())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(name: PortName, error: io::ErrorKind) -> PortProblem {
        PortProblem::of(&Failure { name, address: "192.0.2.1:81".parse().expect("an address"), error: error.into() })
    }

    #[test]
    fn each_reason_has_its_own_next_step() {
        let told = |kind| PortsRefused::Taken(vec![problem(PortName::Amqp, kind)]).to_string();
        let busy = told(io::ErrorKind::AddrInUse);
        assert!(busy.contains("192.0.2.1:81  taken") && busy.contains("REACTOR_PORTS_AMQP"), "{busy}");
        assert!(told(io::ErrorKind::AddrNotAvailable).contains("Correct bind"));
        assert!(told(io::ErrorKind::PermissionDenied).contains("1024"));
    }

    #[test]
    fn many_ports_are_a_table_with_one_advice() {
        let holder = || Why::Busy(Some(Holder { command: "rabbitmq-server".into(), pid: 42 }));
        let at = |name, address: &str, why| PortProblem { name, address: address.parse().expect("an address"), why };
        let refused = PortsRefused::Taken(vec![
            at(PortName::Amqp, "127.0.0.1:5672", holder()),
            at(PortName::Management, "127.0.0.1:15672", holder()),
        ]);
        assert_eq!(
            refused.to_string(),
            "cannot listen on 2 ports:\n\
            \x20 amqp        127.0.0.1:5672   taken by rabbitmq-server (pid 42)\n\
            \x20 management  127.0.0.1:15672  taken by rabbitmq-server (pid 42)\n\
            Stop who holds them, or move.\n\
            All ports move with --port-offset 20000; one by ports.amqp or REACTOR_PORTS_AMQP: another port, 0 (any) or false (off)."
        );
    }

    #[test]
    fn a_reactor_is_known_by_its_name_or_by_how_it_refuses() {
        assert!(is_reactors(b"HTTP/1.1 200 OK\r\n\r\n{\"name\":\"reactor\",\"version\":\"0.1.0\"}"));
        assert!(is_reactors(b"HTTP/1.1 401\r\n\r\n{\"detail\":\"this request carries no valid token\"}"));
        assert!(!is_reactors(b"HTTP/1.1 200 OK\r\n\r\nok\n"));
    }
}
