//! Tells the developer, not only the client, when telemetry comes to a wrong path or in a wrong form: SDKs swallow such errors.

use crate::model::emit;
use crate::model::happening::{Happening, What};
use crate::model::topology::DEFAULT_SPACE;
use crate::telemetry::Telemetry;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// An SDK repeats its mistake every few seconds; once a minute is enough.
const QUIET_NS: u64 = 60_000_000_000;

pub(super) struct Advisor {
    telemetry: Arc<Telemetry>,
    quiet_until_ns: AtomicU64,
}

impl Advisor {
    pub(super) fn new(telemetry: Arc<Telemetry>) -> Self {
        Advisor { telemetry, quiet_until_ns: AtomicU64::new(0) }
    }

    pub(super) fn say(&self, seen: &str, fix: &str) {
        let now_ns = self.telemetry.now_ns();
        if now_ns < self.quiet_until_ns.load(Ordering::Relaxed) {
            return;
        }
        self.quiet_until_ns.store(now_ns + QUIET_NS, Ordering::Relaxed);
        let what = What::Advice { seen: seen.into(), fix: fix.into() };
        emit::happening(Happening { at_ns: now_ns, space: DEFAULT_SPACE.into(), what });
    }
}
