//! What the handlers stand on.

use super::live::LiveSockets;
use super::ui::Ui;
use super::v1::journeys::Followed;
use super::view::Sources;
use crate::access::Access;
use crate::control::Control;
use crate::kernel::task::Tasks;
use crate::kernel::{Clock, Drain};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Everything the API reads and asks. Cheap to clone.
#[derive(Clone)]
pub struct ApiContext {
    pub clock: Clock,
    pub drain: Drain,
    pub ready: Ready,
    pub access: Arc<Access>,
    pub control: Arc<Control>,
    /// The engines behind the views; the sampler has the same.
    pub sources: Sources,
    /// Where the dashboard's files come from.
    pub ui: Ui,
    /// Changes with every start of the process; live cursors of another epoch are void.
    pub epoch: Arc<str>,
    pub tasks: Tasks,
    pub live_sockets: LiveSockets,
    /// Spaces whose messages are followed because somebody asked.
    pub followed: Followed,
    /// What the start block tells a service started by hand, name and value.
    pub variables: Arc<[(&'static str, String)]>,
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
