//! Named, tracked tasks: nothing runs that shutdown does not wait for.

use std::future::Future;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

#[derive(Clone, Debug, Default)]
pub struct Tasks(TaskTracker);

impl Tasks {
    pub fn new() -> Self {
        Self::default()
    }

    /// Runs `future` under `name`, which its log lines carry.
    pub fn spawn<F>(&self, name: &'static str, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.0.spawn(future.instrument(tracing::debug_span!("task", name)))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Waits until every task has ended. New tasks may still be started by running ones.
    pub async fn joined(&self) {
        self.0.close();
        self.0.wait().await;
    }
}
