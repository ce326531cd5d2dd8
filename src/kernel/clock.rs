//! The only place that reads time.
//!
//! A [`Clock`] is either the system's or a manual one that tests move by hand. It gives two readings: a monotonic
//! [`Instant`] for deadlines and durations, and Unix nanoseconds for what is shown to people. Both come from one anchor taken at
//! start, so that a stepped wall clock never makes a span negative.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A monotonic reading in nanoseconds since the clock was made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Instant(u64);

impl Instant {
    pub const ZERO: Instant = Instant(0);

    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time passed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, rhs: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(rhs.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[derive(Clone, Debug)]
pub struct Clock(Arc<Source>);

#[derive(Debug)]
enum Source {
    System { anchor: std::time::Instant, unix_nanos: u64 },
    Manual { now: AtomicU64, unix_nanos: u64 },
}

impl Clock {
    pub fn system() -> Self {
        let unix = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let unix_nanos = u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX);
        Clock(Arc::new(Source::System { anchor: std::time::Instant::now(), unix_nanos }))
    }

    /// A clock that stands still until [`Clock::advance`]; its wall time starts at `unix_nanos`.
    pub fn manual(unix_nanos: u64) -> Self {
        Clock(Arc::new(Source::Manual { now: AtomicU64::new(0), unix_nanos }))
    }

    pub fn now(&self) -> Instant {
        match &*self.0 {
            Source::System { anchor, .. } => Instant(u64::try_from(anchor.elapsed().as_nanos()).unwrap_or(u64::MAX)),
            Source::Manual { now, .. } => Instant(now.load(Ordering::Acquire)),
        }
    }

    /// Wall time now, in nanoseconds since 1970-01-01T00:00:00Z.
    pub fn unix_nanos(&self) -> u64 {
        self.unix_nanos_at(self.now())
    }

    /// The wall time of a monotonic reading of this clock.
    pub fn unix_nanos_at(&self, at: Instant) -> u64 {
        let anchor = match &*self.0 {
            Source::System { unix_nanos, .. } | Source::Manual { unix_nanos, .. } => *unix_nanos,
        };
        anchor.saturating_add(at.0)
    }

    /// Moves a manual clock forward. A system clock is not moved.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { now, .. } = &*self.0 {
            now.fetch_add(u64::try_from(by.as_nanos()).unwrap_or(u64::MAX), Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_moves_only_when_told() {
        let clock = Clock::manual(1_000);
        let start = clock.now();
        assert_eq!(clock.now().since(start), Duration::ZERO);
        clock.advance(Duration::from_millis(2));
        assert_eq!(clock.now().since(start), Duration::from_millis(2));
        assert_eq!(clock.unix_nanos(), 1_000 + 2_000_000);
    }

    #[test]
    fn an_earlier_reading_is_never_negative() {
        assert_eq!(Instant::from_nanos(3).since(Instant::from_nanos(9)), Duration::ZERO);
    }
}
