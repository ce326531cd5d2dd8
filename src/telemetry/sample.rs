//! How many of its own traces the runtime records: all of them while traffic is human-sized, a share of whole traces above a budget
//! of spans per second.
//!
//! The share falls at once, even within a window when a burst comes, and rises slowly, so that a steady flood does not make it
//! swing. Counters elsewhere stay exact.

use std::sync::atomic::{AtomicU64, Ordering};

const WINDOW_NS: u64 = 250_000_000;
/// Growth per calm window at most.
const RISE: f64 = 1.5;
/// Below this nothing would be seen of any flood.
const SHARE_MIN: f64 = 1e-6;

pub struct Budget {
    /// Spans in one window.
    per_window: u64,
    seen: AtomicU64,
    window_started_ns: AtomicU64,
}

impl Budget {
    pub fn new(spans_per_second: u32) -> Self {
        Budget {
            per_window: (u64::from(spans_per_second) * WINDOW_NS / 1_000_000_000).max(1),
            seen: AtomicU64::new(0),
            window_started_ns: AtomicU64::new(0),
        }
    }

    /// Counts one own span; answers the new share if a burst needs one before the window ends.
    // HOT
    pub fn count(&self, share: f64) -> Option<f64> {
        let seen = self.seen.fetch_add(1, Ordering::Relaxed) + 1;
        (seen.is_multiple_of(self.per_window) && seen > self.per_window).then(|| (share / 2.0).max(SHARE_MIN))
    }

    /// Closes a window that has lasted long enough; answers the share to use from now on.
    pub fn close_window(&self, now_ns: u64, share: f64) -> Option<f64> {
        let started = self.window_started_ns.load(Ordering::Relaxed);
        let lasted = now_ns.saturating_sub(started);
        if lasted < WINDOW_NS {
            return None;
        }
        self.window_started_ns.store(now_ns, Ordering::Relaxed);
        let seen = self.seen.swap(0, Ordering::Relaxed) as f64;
        if started == 0 {
            return None;
        }
        let allowed = self.per_window as f64 * lasted as f64 / WINDOW_NS as f64;
        // What all traces together would have made.
        let fitting = if seen > 0.0 { share * allowed / seen } else { f64::INFINITY };
        let next = fitting.min(share * RISE).clamp(SHARE_MIN, 1.0);
        // Not worth a change that nobody could see.
        ((next - share).abs() > share * 0.05 || (next == 1.0 && share < 1.0)).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `spans_per_second` offered spans for so many windows; answers the share afterwards and the spans recorded in the last
    /// second.
    fn flood(budget: &Budget, share: &mut f64, now_ns: &mut u64, spans_per_second: f64, windows: u32) -> f64 {
        let mut recorded = Vec::new();
        for _ in 0..windows {
            let offered = (spans_per_second / 4.0) as u64;
            let mut kept = 0;
            for at in 0..offered {
                // Evenly spread ids: the lowest share of them is kept.
                if (at as f64 * 0.618_034).fract() < *share {
                    kept += 1;
                    if let Some(lower) = budget.count(*share) {
                        *share = lower;
                    }
                }
            }
            recorded.push(kept);
            *now_ns += WINDOW_NS;
            if let Some(next) = budget.close_window(*now_ns, *share) {
                *share = next;
            }
        }
        recorded.iter().rev().take(4).sum::<u64>() as f64
    }

    #[test]
    fn human_traffic_is_recorded_whole() {
        let (budget, mut share, mut now) = (Budget::new(5_000), 1.0, 1);
        assert_eq!(flood(&budget, &mut share, &mut now, 4_000.0, 20), 4_000.0);
        assert_eq!(share, 1.0);
    }

    #[test]
    fn a_flood_is_cut_within_its_first_window_and_settles_at_the_budget() {
        let (budget, mut share, mut now) = (Budget::new(5_000), 1.0, 1);
        let first = flood(&budget, &mut share, &mut now, 1_000_000.0, 1);
        assert!(first < 20_000.0, "{first} spans passed before the share fell");
        let settled = flood(&budget, &mut share, &mut now, 1_000_000.0, 40);
        assert!((2_500.0..7_500.0).contains(&settled), "{settled}");
    }

    #[test]
    fn the_share_recovers_when_it_is_calm() {
        let (budget, mut share, mut now) = (Budget::new(5_000), 1.0, 1);
        flood(&budget, &mut share, &mut now, 1_000_000.0, 20);
        assert!(share < 0.02);
        flood(&budget, &mut share, &mut now, 100.0, 40);
        assert_eq!(share, 1.0);
    }
}
