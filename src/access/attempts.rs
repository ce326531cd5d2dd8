//! How often somebody tried to log in, by kind of door.

use crate::kernel::stats::Counter;
use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Default)]
pub struct Attempts {
    amqp: Outcomes,
    web: Outcomes,
}

#[derive(Debug, Default)]
struct Outcomes {
    succeeded: Counter,
    failed: Counter,
}

/// As RabbitMQ lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct AttemptsOfDoor {
    pub protocol: &'static str,
    pub auth_attempts: u64,
    pub auth_attempts_failed: u64,
    pub auth_attempts_succeeded: u64,
}

impl Attempts {
    pub(super) fn count(&self, mechanism: &str, succeeded: bool) {
        let door = if mechanism == "Basic" { &self.web } else { &self.amqp };
        let outcome = if succeeded { &door.succeeded } else { &door.failed };
        outcome.add(1);
    }

    pub fn list(&self) -> [AttemptsOfDoor; 2] {
        [("amqp091", &self.amqp), ("http", &self.web)].map(|(protocol, door)| {
            let (succeeded, failed) = (door.succeeded.get(), door.failed.get());
            AttemptsOfDoor {
                protocol,
                auth_attempts: succeeded + failed,
                auth_attempts_failed: failed,
                auth_attempts_succeeded: succeeded,
            }
        })
    }
}
