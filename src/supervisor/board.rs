//! Where instances post how they stand, so that others can wait for them. The one thing instances know of each other.

use crate::model::service::{InstanceName, InstanceState, ServiceName};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub state: InstanceState,
    /// Ready, or done with its work.
    pub satisfies_dependants: bool,
}

#[derive(Debug, Default)]
pub struct Board {
    standings: Mutex<BTreeMap<ServiceName, BTreeMap<InstanceName, Standing>>>,
    version: watch::Sender<u64>,
}

impl Board {
    pub fn post(&self, service: &ServiceName, instance: &InstanceName, standing: Standing) {
        let before = self.lock().entry(service.clone()).or_default().insert(instance.clone(), standing);
        if before != Some(standing) {
            self.version.send_modify(|version| *version += 1);
        }
    }

    /// The instance is gone for good, or until it is wanted again.
    pub fn take_down(&self, service: &ServiceName, instance: &InstanceName) {
        if let Some(instances) = self.lock().get_mut(service) {
            instances.remove(instance);
        }
        self.version.send_modify(|version| *version += 1);
    }

    /// The first of `services` without an instance to count on, in words.
    pub fn unmet(&self, services: &[ServiceName]) -> Option<Arc<str>> {
        let standings = self.lock();
        let unmet = services.iter().find_map(|service| {
            let instances = standings.get(service);
            let met = instances.is_some_and(|instances| instances.values().any(|standing| standing.satisfies_dependants));
            let worst = instances.and_then(|instances| instances.values().map(|standing| standing.state).max());
            (!met).then_some((service, worst))
        });
        let (service, worst) = unmet?;
        Some(match worst {
            Some(InstanceState::Stopped) => format!("{service}, which is stopped; start it").into(),
            Some(InstanceState::Failing) => format!("{service}, which is failing").into(),
            Some(InstanceState::Degraded) => format!("{service}, which is degraded").into(),
            Some(InstanceState::Ready | InstanceState::Starting | InstanceState::Stopping | InstanceState::Detached) | None => {
                service.shared()
            }
        })
    }

    pub fn changes(&self) -> watch::Receiver<u64> {
        self.version.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ServiceName, BTreeMap<InstanceName, Standing>>> {
        self.standings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_ready_instance_is_enough_and_a_stopped_one_is_said() {
        let board = Board::default();
        let payments = ServiceName::new("payments").expect("a valid name");
        let needs = [payments.clone()];
        assert_eq!(board.unmet(&needs).as_deref(), Some("payments"));
        let stopped = Standing { state: InstanceState::Stopped, satisfies_dependants: false };
        board.post(&payments, &Arc::from("payments-1"), stopped);
        assert_eq!(board.unmet(&needs).as_deref(), Some("payments, which is stopped; start it"));
        let changes = board.changes();
        let ready = Standing { state: InstanceState::Ready, satisfies_dependants: true };
        board.post(&payments, &Arc::from("payments-2"), ready);
        assert!(changes.has_changed().expect("open"));
        assert_eq!(board.unmet(&needs), None);
        board.take_down(&payments, &Arc::from("payments-2"));
        assert!(board.unmet(&needs).is_some());
    }
}
