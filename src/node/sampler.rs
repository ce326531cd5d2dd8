//! Once a second: engines' counters become rates, live state and metric points.

use super::build::Engines;
use super::metrics;
use crate::kernel::Drain;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::MissedTickBehavior;

const PERIOD: Duration = Duration::from_secs(1);

/// Beats until the drain is cut.
pub async fn run(engines: Arc<Engines>, drain: Drain) {
    let resource = metrics::own_resource();
    let mut beat = tokio::time::interval(PERIOD);
    // After a pause of the machine one beat is enough: rates divide by the time that passed.
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = beat.tick() => {
                engines.broker.tick();
                engines.sources.beat();
                let sockets: i64 = engines.sources.doors.iter().map(|door| door.counts.open.get()).sum();
                engines.samples.beat(&engines.broker, u64::try_from(sockets).unwrap_or(0));
                // A full inbox drops this second's points; the ledger counts them.
                let _ = engines.sources.telemetry.ingest_metrics(metrics::gather(&engines.sources, &resource));
            }
            () = drain.is_cut() => return,
        }
    }
}
