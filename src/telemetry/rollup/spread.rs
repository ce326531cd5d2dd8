//! Durations in buckets whose width is an eighth of their size: small, and good to 6 %.

/// Sparse: most services use a few dozen of the 512 buckets.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// Sorted by bucket.
    counts: Vec<(u16, f32)>,
}

impl Spread {
    // HOT
    pub fn add(&mut self, nanos: u64, weight: f32) {
        let bucket = bucket_of(nanos);
        match self.counts.binary_search_by_key(&bucket, |(known, _)| *known) {
            Ok(at) => self.counts[at].1 += weight,
            Err(at) => self.counts.insert(at, (bucket, weight)),
        }
    }

    pub fn merge(&mut self, other: &Spread) {
        for (bucket, count) in &other.counts {
            match self.counts.binary_search_by_key(bucket, |(known, _)| *known) {
                Ok(at) => self.counts[at].1 += count,
                Err(at) => self.counts.insert(at, (*bucket, *count)),
            }
        }
    }

    /// The duration below which a share `at` lies, straight within its bucket.
    pub fn quantile(&self, at: f64) -> Option<u64> {
        let total: f64 = self.counts.iter().map(|(_, count)| f64::from(*count)).sum();
        let mut wanted = total * at;
        for (bucket, count) in &self.counts {
            let count = f64::from(*count);
            if wanted <= count {
                let (low, high) = bounds_of(*bucket);
                return Some(low + ((high - low) as f64 * (wanted / count)) as u64);
            }
            wanted -= count;
        }
        self.counts.last().map(|(bucket, _)| bounds_of(*bucket).1)
    }

    pub fn clear(&mut self) {
        self.counts.clear();
    }
}

/// Exponent and the three bits after the leading one.
fn bucket_of(nanos: u64) -> u16 {
    if nanos < 8 {
        return nanos as u16;
    }
    let exponent = 63 - nanos.leading_zeros();
    (exponent * 8 + ((nanos >> (exponent - 3)) as u32 & 7)) as u16
}

fn bounds_of(bucket: u16) -> (u64, u64) {
    if bucket < 8 {
        return (bucket.into(), bucket.into());
    }
    let (exponent, step) = (u32::from(bucket) / 8, u64::from(bucket) % 8);
    if exponent < 3 {
        return (8, 8);
    }
    let low = (8 + step) << (exponent - 3);
    (low, low.saturating_add(1 << (exponent - 3)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_duration_lies_within_its_bucket(nanos in any::<u64>()) {
            let (low, high) = bounds_of(bucket_of(nanos));
            prop_assert!(low <= nanos && nanos <= high);
            prop_assert!((high - low) as f64 <= low as f64 / 8.0 + 1.0);
        }

        #[test]
        fn quantiles_are_within_an_eighth(mut values in prop::collection::vec(1_000..10_000_000_000u64, 1..200), at in 0.01..1.0f64) {
            let mut spread = Spread::default();
            values.iter().for_each(|nanos| spread.add(*nanos, 1.0));
            values.sort_unstable();
            let exact = values[((values.len() as f64 * at).ceil() as usize).clamp(1, values.len()) - 1] as f64;
            let found = spread.quantile(at).expect("not empty") as f64;
            prop_assert!((found - exact).abs() <= exact / 7.0, "{found} {exact}");
        }
    }

    #[test]
    fn nothing_has_no_quantile() {
        assert_eq!(Spread::default().quantile(0.5), None);
    }
}
