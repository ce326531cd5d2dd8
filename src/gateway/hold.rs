//! A call to a service that left a moment ago waits a little for it to come back, so that a restart is not an error (service
//! contract §5, `gateway.hold_ms`).

use crate::kernel::{Clock, Instant};
use std::time::Duration;
use tokio::sync::watch;

/// Absences longer than this are no restart.
const RECENT: Duration = Duration::from_secs(5);
/// Longest wait between two looks; the registry's changes wake earlier.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Whether a service that was last there `ago` may be restarting.
pub(super) fn is_recent(ago: Duration) -> bool {
    ago < RECENT
}

/// The patience of one request.
#[derive(Debug)]
pub(super) struct Hold {
    clock: Clock,
    patience: Duration,
    until: Option<Instant>,
}

impl Hold {
    pub(super) fn new(clock: Clock, patience: Duration) -> Self {
        Hold { clock, patience, until: None }
    }

    /// Waits for a change; false once the patience is over. Its time runs from the first wait.
    pub(super) async fn wait(&mut self, changes: &mut watch::Receiver<u64>) -> bool {
        let now = self.clock.now();
        let until = *self.until.get_or_insert(now + self.patience);
        let left = until.since(now);
        if left.is_zero() {
            return false;
        }
        let _ = tokio::time::timeout(left.min(LOOK_EVERY), changes.changed()).await;
        true
    }
}
