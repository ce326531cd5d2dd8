//! What the handlers stand on.

use super::ui::Ui;
use super::view;
use crate::kernel::{Clock, Drain};
use crate::registry::Registry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything the API reads and asks. Cheap to clone.
#[derive(Clone)]
pub struct ApiContext {
    pub clock: Clock,
    pub drain: Drain,
    pub ready: Ready,
    pub registry: Arc<Registry>,
    pub ports: Arc<dyn PortList>,
    /// Where the dashboard's files come from.
    pub ui: Ui,
    /// Changes with every start of the process; live cursors of another epoch are void.
    pub epoch: Arc<str>,
}

/// The listeners and what became of them; `net` knows, wiring hands it in.
pub trait PortList: Send + Sync {
    fn ports(&self) -> Vec<view::Door>;
}

/// Raised once every listener is bound; `/healthz` answers by it.
#[derive(Clone, Debug, Default)]
pub struct Ready(Arc<AtomicBool>);

impl Ready {
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
