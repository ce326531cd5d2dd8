//! Requests of the last ten seconds by the second, and of the last five minutes by ten seconds.

use super::spread::Spread;
use std::collections::VecDeque;

const SECOND_NS: u64 = 1_000_000_000;
const TEN_NS: u64 = 10 * SECOND_NS;
/// Whole seconds that the current values are taken over.
pub const SECONDS: u64 = 10;
/// Buckets of ten seconds in a spark.
pub const SPARKS: u64 = 30;

#[derive(Clone, Debug, Default)]
struct Slot {
    second: u64,
    count: f64,
    failed: f64,
    spread: Spread,
}

#[derive(Clone, Debug, Default)]
struct Spark {
    ten: u64,
    count: f64,
    p95_ns: Option<u64>,
    /// Only of the bucket that is still filling.
    spread: Spread,
}

#[derive(Clone, Debug, Default)]
pub struct Window {
    slots: [Slot; SECONDS as usize + 2],
    sparks: VecDeque<Spark>,
    pub last_ns: u64,
}

/// What a window says of the last ten whole seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Now {
    pub count: f64,
    pub failed: f64,
    pub p50_ns: Option<u64>,
    pub p95_ns: Option<u64>,
}

impl Now {
    pub fn rate(&self) -> f64 {
        self.count / SECONDS as f64
    }

    pub fn error_share(&self) -> f64 {
        if self.count > 0.0 { (self.failed / self.count).min(1.0) } else { 0.0 }
    }
}

impl Window {
    /// One request, or `weight` of them where only some are seen.
    // HOT
    pub fn add(&mut self, now_ns: u64, duration_ns: u64, failed: bool, weight: f64) {
        let slot = self.slot(now_ns);
        slot.count += weight;
        slot.failed += if failed { weight } else { 0.0 };
        slot.spread.add(duration_ns, weight as f32);
        let spark = self.spark(now_ns);
        spark.count += weight;
        spark.spread.add(duration_ns, weight as f32);
        self.last_ns = now_ns;
    }

    /// Requests that were only counted.
    pub fn add_counts(&mut self, now_ns: u64, count: f64, failed: f64, durations: impl Iterator<Item = (u64, f64)>) {
        if count <= 0.0 {
            return;
        }
        let durations: Vec<(u64, f64)> = durations.filter(|(_, weight)| *weight > 0.0).collect();
        let slot = self.slot(now_ns);
        slot.count += count;
        slot.failed += failed;
        durations.iter().for_each(|(nanos, weight)| slot.spread.add(*nanos, *weight as f32));
        let spark = self.spark(now_ns);
        spark.count += count;
        durations.iter().for_each(|(nanos, weight)| spark.spread.add(*nanos, *weight as f32));
        self.last_ns = now_ns;
    }

    pub fn now(&self, now_ns: u64) -> Now {
        let second = now_ns / SECOND_NS;
        let mut spread = Spread::default();
        let mut now = Now::default();
        for slot in self.slots.iter().filter(|slot| slot.second < second && slot.second + SECONDS >= second) {
            now.count += slot.count;
            now.failed += slot.failed;
            spread.merge(&slot.spread);
        }
        (now.p50_ns, now.p95_ns) = (spread.quantile(0.5), spread.quantile(0.95));
        now
    }

    /// Count and p95 of each of the last thirty buckets of ten seconds, oldest first.
    pub fn sparks(&self, now_ns: u64) -> impl Iterator<Item = (f64, Option<u64>)> + '_ {
        let last = now_ns / TEN_NS;
        (0..SPARKS).map(move |at| {
            let ten = (last + 1 + at).saturating_sub(SPARKS);
            let found = self.sparks.iter().rev().find(|spark| spark.ten == ten);
            found.map_or((0.0, None), |spark| (spark.count, spark.p95_ns.or_else(|| spark.spread.quantile(0.95))))
        })
    }

    fn slot(&mut self, now_ns: u64) -> &mut Slot {
        let second = now_ns / SECOND_NS;
        let slots = self.slots.len() as u64;
        let slot = &mut self.slots[(second % slots) as usize];
        if slot.second != second {
            (slot.second, slot.count, slot.failed) = (second, 0.0, 0.0);
            slot.spread.clear();
        }
        slot
    }

    fn spark(&mut self, now_ns: u64) -> &mut Spark {
        let ten = now_ns / TEN_NS;
        if self.sparks.back().is_none_or(|spark| spark.ten != ten) {
            if let Some(full) = self.sparks.back_mut() {
                full.p95_ns = full.spread.quantile(0.95);
                full.spread = Spread::default();
            }
            if self.sparks.len() as u64 >= SPARKS {
                self.sparks.pop_front();
            }
            self.sparks.push_back(Spark { ten, ..Spark::default() });
        }
        self.sparks.back_mut().expect("just made sure of")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ten_whole_seconds_count() {
        let mut window = Window::default();
        for second in 100..130u64 {
            window.add(second * SECOND_NS, 5_000_000, second % 2 == 0, 2.0);
        }
        let now = window.now(129 * SECOND_NS + 5);
        assert_eq!((now.count, now.failed, now.rate()), (20.0, 10.0, 2.0));
        assert!(now.p95_ns.is_some_and(|nanos| (4_900_000..5_600_000).contains(&nanos)));
        assert_eq!(window.now(200 * SECOND_NS), Now::default());
    }

    #[test]
    fn sparks_are_thirty_buckets_with_gaps_where_nothing_was() {
        let mut window = Window::default();
        window.add(1_000 * SECOND_NS, 1_000, false, 1.0);
        window.add(1_021 * SECOND_NS, 1_000, false, 1.0);
        window.add(1_022 * SECOND_NS, 1_000, false, 1.0);
        let sparks: Vec<_> = window.sparks(1_025 * SECOND_NS).collect();
        assert_eq!(sparks.len(), 30);
        assert_eq!(
            sparks[27..].iter().map(|(count, p95)| (*count, p95.is_some())).collect::<Vec<_>>(),
            [(1.0, true), (0.0, false), (2.0, true)]
        );
    }
}
