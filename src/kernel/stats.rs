//! Counters that engines bump and the one-second sampler sums.
//!
//! A [`Counter`] is sharded by thread so that two cores never fight over a cache line; reading walks the shards. Engines own
//! their counters as statics or fields; nothing here knows what is counted.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

const SHARDS: usize = 16;

#[repr(align(64))]
#[derive(Debug)]
struct Shard(AtomicU64);

/// A count that only grows.
#[derive(Debug)]
pub struct Counter([Shard; SHARDS]);

impl Counter {
    pub const fn new() -> Self {
        Counter([const { Shard(AtomicU64::new(0)) }; SHARDS])
    }

    pub fn add(&self, count: u64) {
        self.0[shard()].0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}

/// A level that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub const fn new() -> Self {
        Gauge(AtomicI64::new(0))
    }

    pub fn add(&self, delta: i64) {
        self.0.fetch_add(delta, Ordering::Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    MINE.with(|mine| *mine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_from_many_threads_add_up() {
        static COUNT: Counter = Counter::new();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1000).for_each(|_| COUNT.add(2)));
            }
        });
        assert_eq!(COUNT.get(), 16_000);
    }
}
