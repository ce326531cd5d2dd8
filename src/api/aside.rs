//! Work for a request that takes long (a list of ten thousand queues, a policy put on them) must not keep the runtime's worker it
//! runs on from what else it has to do: message paths run on the same workers, and one of them may hold the I/O driver.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use tokio::runtime::{Handle, RuntimeFlavor};

/// The layer around all handlers of a port: whenever one runs, another thread takes over the worker's other tasks.
pub async fn aside(request: Request, next: Next) -> Response {
    Aside(pin!(next.run(request))).await
}

struct Aside<F>(F);

impl<F: Future + Unpin> Future for Aside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let mut run = || Pin::new(&mut self.0).poll(cx);
        match Handle::current().runtime_flavor() {
            RuntimeFlavor::MultiThread => tokio::task::block_in_place(run),
            // Nothing to hand over to.
            _ => run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::Barrier;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_blocks_in_a_handler_leaves_the_worker_to_others() {
        let meet = Arc::new(Barrier::new(2));
        let other = meet.clone();
        let handler = tokio::spawn(async move {
            // Ends only if the other task, spawned on the same single worker, runs meanwhile.
            let work = async move {
                tokio::spawn(async move { other.wait() });
                meet.wait();
            };
            Aside(pin!(work)).await;
        });
        tokio::time::timeout(std::time::Duration::from_secs(20), handler).await.expect("in time").expect("no panic");
    }
}
