//! Once a second: engines' counters become rates, live state and metric points.

use super::build::Engines;
use crate::kernel::Drain;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const PERIOD: Duration = Duration::from_secs(1);

/// Beats until the drain is cut.
pub async fn run(engines: Arc<Engines>, drain: Drain) {
    let mut beat = tokio::time::interval(PERIOD);
    // After a pause of the machine one beat is enough: rates divide by the time that passed.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = beat.tick() => {
                engines.broker.tick();
                engines.sources.beat();
            }
            () = drain.is_cut() => return,
        }
    }
}
