//! How long messages waited, as a histogram that costs one addition a message: four buckets an octave from 1 µs to over an hour.

use std::time::Duration;

const BUCKETS: usize = 4 * 33;

/// Counts only grow; two copies taken at two times give the distribution in between. Made on the first wait, so that an idle queue
/// is small.
#[derive(Clone, Debug, Default)]
pub struct Waits(Option<Box<[u32; BUCKETS]>>);

impl Waits {
    // HOT
    #[inline]
    pub fn add(&mut self, wait: Duration, count: u32) {
        let counts = self.0.get_or_insert_with(|| Box::new([0; BUCKETS]));
        let place = &mut counts[bucket(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX))];
        *place = place.wrapping_add(count);
    }

    /// Upper bound of the bucket that holds the `share` quantile of what was added since `before`; `None` if nothing was.
    pub fn quantile_since(&self, before: &Waits, share: f64) -> Option<Duration> {
        let none = [0; BUCKETS];
        let (now, then) = (self.0.as_deref()?, before.0.as_deref().unwrap_or(&none));
        let counts: Vec<u64> = now.iter().zip(then).map(|(now, then)| u64::from(now.wrapping_sub(*then))).collect();
        let total: u64 = counts.iter().sum();
        let wanted = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let at = counts.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        Some(Duration::from_micros(upper(at)))
    }
}

/// 0 µs is bucket 0; then the octave and its quarter.
fn bucket(micros: u64) -> usize {
    if micros < 4 {
        return micros as usize;
    }
    let octave = micros.ilog2();
    let quarter = (micros >> (octave - 2)) & 3;
    ((octave as usize - 1) * 4 + quarter as usize).min(BUCKETS - 1)
}

fn upper(bucket: usize) -> u64 {
    if bucket < 4 {
        return bucket as u64;
    }
    let (octave, quarter) = (bucket / 4 + 1, bucket as u64 % 4);
    ((4 + quarter + 1) << (octave - 2)) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_at_most_a_quarter_octave_above_the_truth() {
        for micros in [0, 1, 3, 4, 5, 7, 8, 100, 999, 12_345, 1_000_000, 60_000_000] {
            let bound = upper(bucket(micros));
            assert!(bound >= micros && bound <= micros + micros / 4 + 1, "{micros} in a bucket up to {bound}");
        }
        let before = Waits::default();
        let mut waits = before.clone();
        assert_eq!(waits.quantile_since(&before, 0.95), None);
        waits.add(Duration::from_micros(10), 95);
        waits.add(Duration::from_millis(5), 5);
        assert_eq!(waits.quantile_since(&before, 0.95), Some(Duration::from_micros(11)));
        assert!(waits.quantile_since(&before, 0.96).expect("some") >= Duration::from_millis(5));
        let later = waits.clone();
        assert_eq!(later.quantile_since(&waits, 0.95), None);
    }
}
