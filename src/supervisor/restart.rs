//! When an instance that ended is tried again: the policy decides whether, the backoff decides when.
//!
//! The delay doubles with every exit in a row, with jitter so that replicas do not march in step, up to [`DELAY_MAX`]. A run that
//! was ready for [`HEALTHY`] starts the count anew. Trying never stops: a service that waits for its database comes up when the
//! database does.

use crate::kernel::rng::Rng;
use crate::model::service_spec::RestartPolicy;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const DELAY_FIRST: Duration = Duration::from_millis(500);
const DELAY_MAX: Duration = Duration::from_secs(30);
/// Ready for this long: earlier exits no longer count.
pub(super) const HEALTHY: Duration = Duration::from_secs(10);
/// Exits in a row after which an instance is said to be failing.
const FAILING_AFTER: u32 = 3;

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// It never ran: the program was not found, a variable was missing.
    NotStarted(Arc<str>),
    /// The guard that watched over it was killed, and the process with it.
    Lost,
}

impl Exit {
    pub fn is_success(&self) -> bool {
        match self {
            Exit::Code(code) => *code == 0,
            Exit::Signal(_) | Exit::NotStarted(_) | Exit::Lost => false,
        }
    }
}

/// Completes "exited …".
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "with code {code}"),
            Exit::Signal(number) => match signal_name(*number) {
                Some(name) => write!(f, "on signal {number} ({name})"),
                None => write!(f, "on signal {number}"),
            },
            Exit::NotStarted(why) => write!(f, "before it ran: {why}"),
            Exit::Lost => f.write_str("together with its guard process, which was killed"),
        }
    }
}

/// The signals a developer meets; the numbers are Linux's on every architecture reactor is built for.
fn signal_name(number: i32) -> Option<&'static str> {
    Some(match number {
        1 => "HUP",
        2 => "INT",
        3 => "QUIT",
        4 => "ILL",
        6 => "ABRT",
        7 => "BUS",
        8 => "FPE",
        9 => "KILL",
        11 => "SEGV",
        13 => "PIPE",
        15 => "TERM",
        _ => return None,
    })
}

pub fn wants_restart(policy: RestartPolicy, exit: &Exit) -> bool {
    match policy {
        RestartPolicy::Always => true,
        RestartPolicy::OnFailure => !exit.is_success(),
        RestartPolicy::Never => false,
    }
}

#[derive(Clone, Debug)]
pub struct Backoff {
    exits_in_a_row: u32,
    rng: Rng,
}

impl Backoff {
    pub fn new(rng: Rng) -> Self {
        Backoff { exits_in_a_row: 0, rng }
    }

    /// Forgets earlier exits: the run was healthy, or a person asked to start.
    pub fn reset(&mut self) {
        self.exits_in_a_row = 0;
    }

    pub fn exits_in_a_row(&self) -> u32 {
        self.exits_in_a_row
    }

    pub fn is_failing(&self) -> bool {
        self.exits_in_a_row >= FAILING_AFTER
    }

    /// Counts one more exit and gives the time to wait: the doubled delay, 20 % more or less.
    pub fn next_delay(&mut self) -> Duration {
        let doublings = self.exits_in_a_row.min(16);
        self.exits_in_a_row = self.exits_in_a_row.saturating_add(1);
        let delay = DELAY_FIRST.saturating_mul(1 << doublings).min(DELAY_MAX);
        let percent = 80 + self.rng.below(41) as u32;
        delay * percent / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_start_anew_after_a_healthy_run() {
        let mut backoff = Backoff::new(Rng::seeded(1));
        let mut expected = DELAY_FIRST;
        for _ in 0..40 {
            let delay = backoff.next_delay();
            assert!(delay >= expected * 80 / 100 && delay <= expected * 120 / 100, "{delay:?} around {expected:?}");
            expected = (expected * 2).min(DELAY_MAX);
        }
        backoff.reset();
        assert!(backoff.next_delay() <= DELAY_FIRST * 120 / 100);
    }

    #[test]
    fn three_exits_in_a_row_are_failing() {
        let mut backoff = Backoff::new(Rng::seeded(1));
        let failing: Vec<bool> = (0..3)
            .map(|_| {
                backoff.next_delay();
                backoff.is_failing()
            })
            .collect();
        assert_eq!(failing, [false, false, true]);
    }

    #[test]
    fn the_policy_reads_the_exit() {
        let (good, bad, killed) = (Exit::Code(0), Exit::Code(3), Exit::Signal(9));
        for (policy, restarts) in [
            (RestartPolicy::Always, [true, true, true]),
            (RestartPolicy::OnFailure, [false, true, true]),
            (RestartPolicy::Never, [false, false, false]),
        ] {
            assert_eq!([&good, &bad, &killed].map(|exit| wants_restart(policy, exit)), restarts, "{policy:?}");
        }
        assert_eq!(killed.to_string(), "on signal 9 (KILL)");
    }
}
