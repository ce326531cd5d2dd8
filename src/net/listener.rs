//! Binds the doors: all or nothing, with every busy port named in one answer.
//!
//! A port that two families share (127.0.0.1 and ::1) gets the same number in both, also when the system chooses it. A family the
//! machine does not have is skipped.

use crate::model::config::{Bind, PortName, PortSetting};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Connections the kernel keeps waiting while the accept loop is busy.
const BACKLOG: i32 = 1_024;
/// How often a system-chosen port is drawn again when the other family has it taken.
const DRAWS_MAX: usize = 32;

#[derive(Clone, Copy, Debug)]
pub struct BindPlan {
    pub name: PortName,
    pub port: PortSetting,
}

#[derive(Debug)]
pub struct Bound {
    pub name: PortName,
    pub sockets: Vec<std::net::TcpListener>,
}

impl Bound {
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }
}

/// A door that could not be bound.
#[derive(Debug)]
pub struct Failure {
    pub name: PortName,
    pub address: SocketAddr,
    pub error: io::Error,
}

impl Failure {
    pub fn is_busy(&self) -> bool {
        self.error.kind() == io::ErrorKind::AddrInUse
    }

    /// A port below 1024 that this user may not bind.
    pub fn is_privilege(&self) -> bool {
        self.error.kind() == io::ErrorKind::PermissionDenied
    }
}

/// Binds every plan that is not off. Nothing listens before all have been tried.
pub fn bind_all(bind: &Bind, plans: &[BindPlan]) -> (Vec<Bound>, Vec<Failure>) {
    let (mut bound, mut failures) = (Vec::new(), Vec::new());
    for plan in plans {
        let result = match plan.port {
            PortSetting::Off => continue,
            PortSetting::Fixed(port) => bind_door(bind, port),
            PortSetting::Ephemeral => draw_door(bind),
        };
        match result {
            Ok(sockets) => bound.push(Bound { name: plan.name, sockets }),
            Err((address, error)) => failures.push(Failure { name: plan.name, address, error }),
        }
    }
    (bound, failures)
}

fn bind_door(bind: &Bind, port: u16) -> Result<Vec<std::net::TcpListener>, (SocketAddr, io::Error)> {
    let mut sockets = Vec::new();
    let mut missing = None;
    for ip in bind.addresses() {
        let address = SocketAddr::new(ip, port);
        match listen(address) {
            Ok(socket) => sockets.push(socket),
            Err(error) if is_optional(bind, ip) && is_missing_family(&error) => missing = Some((address, error)),
            Err(error) => return Err((address, error)),
        }
    }
    match missing {
        Some(failure) if sockets.is_empty() => Err(failure),
        _ => Ok(sockets),
    }
}

/// A port the system chooses, the same in every family.
fn draw_door(bind: &Bind) -> Result<Vec<std::net::TcpListener>, (SocketAddr, io::Error)> {
    let addresses = bind.addresses();
    let mut last = None;
    for _ in 0..DRAWS_MAX {
        let Some((first, rest)) = addresses.split_first() else { break };
        let socket = listen(SocketAddr::new(*first, 0)).map_err(|error| (SocketAddr::new(*first, 0), error))?;
        let port = socket.local_addr().map_err(|error| (SocketAddr::new(*first, 0), error))?.port();
        let mut sockets = vec![socket];
        let mut clash = None;
        for ip in rest {
            match listen(SocketAddr::new(*ip, port)) {
                Ok(socket) => sockets.push(socket),
                Err(error) if is_optional(bind, *ip) && is_missing_family(&error) => {}
                Err(error) => clash = Some((SocketAddr::new(*ip, port), error)),
            }
        }
        match clash {
            None => return Ok(sockets),
            Some(failure) => last = Some(failure),
        }
    }
    Err(last.unwrap_or_else(|| (SocketAddr::from(([0, 0, 0, 0], 0)), io::ErrorKind::AddrNotAvailable.into())))
}

/// IPv6 beside IPv4 is wanted where it exists; an address somebody wrote down is always wanted.
fn is_optional(bind: &Bind, ip: IpAddr) -> bool {
    ip.is_ipv6() && !matches!(bind, Bind::Addresses(_))
}

fn is_missing_family(error: &io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == io::ErrorKind::AddrNotAvailable || error.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

fn listen(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    // A restart must not wait for the old process's closed connections; two listeners still exclude each other.
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(name: PortName, port: PortSetting) -> BindPlan {
        BindPlan { name, port }
    }

    #[test]
    fn a_chosen_port_is_the_same_in_both_families() {
        let (bound, failures) = bind_all(&Bind::Localhost, &[plan(PortName::Amqp, PortSetting::Ephemeral)]);
        assert!(failures.is_empty(), "{failures:?}");
        let addresses = bound[0].addresses();
        assert!(addresses.iter().all(|address| address.port() == addresses[0].port() && address.port() != 0));
    }

    #[test]
    fn every_busy_port_is_reported_not_only_the_first() {
        let bind = Bind::Addresses(vec!["127.0.0.1".parse().expect("an address")]);
        let wanted = [plan(PortName::Amqp, PortSetting::Ephemeral), plan(PortName::Bus, PortSetting::Ephemeral)];
        let (taken, _) = bind_all(&bind, &wanted);
        let again: Vec<_> = taken.iter().map(|door| plan(door.name, PortSetting::Fixed(door.addresses()[0].port()))).collect();
        let (bound, failures) = bind_all(&bind, &again);
        assert!(bound.is_empty());
        assert_eq!(failures.len(), 2);
        assert!(failures.iter().all(Failure::is_busy));
    }
}
