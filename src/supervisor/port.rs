//! Ports for services: a free one is found by binding port 0 and letting go. Between that and the service's own `bind` another
//! program could take it; then the service exits and its next try gets another port.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// Draws before giving up: each can only fail by meeting a port that another instance was promised a moment ago.
const DRAWS_MAX: usize = 100;

/// Ports promised to instances, so that two that start at once never get the same.
#[derive(Debug, Default)]
pub struct Ports(Mutex<BTreeSet<u16>>);

impl Ports {
    /// `preferred` (what the instance had before) if it is free, else any free one.
    pub fn promise(&self, preferred: Option<u16>) -> io::Result<u16> {
        if let Some(port) = preferred.filter(|port| is_free(*port)) {
            self.lock().insert(port);
            return Ok(port);
        }
        for _ in 0..DRAWS_MAX {
            let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
            if self.lock().insert(port) {
                return Ok(port);
            }
        }
        Err(io::Error::other("every free port drawn was promised to another instance"))
    }

    pub fn release(&self, port: u16) {
        self.lock().remove(&port);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<u16>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_keeps_its_port_while_it_is_free() {
        let ports = Ports::default();
        let first = ports.promise(None).expect("a free port");
        assert_eq!(ports.promise(Some(first)).expect("still free"), first);
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, first)).expect("free");
        assert!(!is_free(first));
        assert_ne!(ports.promise(Some(first)).expect("another"), first);
        drop(taken);
    }
}
