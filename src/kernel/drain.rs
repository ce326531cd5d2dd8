//! Orderly shutdown: one token that everything long-lived listens to, in two steps.
//!
//! `begin` asks everyone to finish what they hold and take nothing new; `cut` ends what is still there after the grace.

use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

#[derive(Clone, Debug, Default)]
pub struct Drain {
    begun: CancellationToken,
    cut: CancellationToken,
}

impl Drain {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn begin(&self) {
        self.begun.cancel();
    }

    /// Ends everything at once; implies [`Drain::begin`].
    pub fn cut(&self) {
        self.begun.cancel();
        self.cut.cancel();
    }

    pub fn has_begun(&self) -> bool {
        self.begun.is_cancelled()
    }

    pub fn begun(&self) -> WaitForCancellationFuture<'_> {
        self.begun.cancelled()
    }

    pub fn is_cut(&self) -> WaitForCancellationFuture<'_> {
        self.cut.cancelled()
    }
}
