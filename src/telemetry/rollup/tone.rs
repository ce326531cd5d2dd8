//! When a value is coloured: one rule for tables, map and charts.
//!
//! The usual band is the median ± 4 median absolute deviations over the last hour, at least ± 20 %, once there are 60 samples.
//! A tone must hold for 10 s to appear and for 30 s to clear, so that colours do not flicker.

use crate::telemetry::view::Tone;
use std::collections::VecDeque;

/// One sample each ten seconds.
pub const SAMPLE_NS: u64 = 10_000_000_000;
const SAMPLES_MAX: usize = 360;
const SAMPLES_MIN: usize = 60;
const APPEARS_NS: u64 = 10_000_000_000;
const CLEARS_NS: u64 = 30_000_000_000;
/// Before a band is known, errors above this share are errors.
const UNKNOWN_ERROR_SHARE: f64 = 0.01;
/// Fewer errors than this are never worth red.
const ERROR_SHARE_MIN: f64 = 0.001;

#[derive(Clone, Debug, Default)]
struct Band {
    samples: VecDeque<f32>,
    high: Option<f64>,
}

impl Band {
    fn learn(&mut self, value: f64) {
        if self.samples.len() >= SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(value as f32);
        if self.samples.len() >= SAMPLES_MIN {
            let mut sorted: Vec<f32> = self.samples.iter().copied().collect();
            let median = median(&mut sorted);
            let mut distances: Vec<f32> = sorted.iter().map(|sample| (sample - median).abs()).collect();
            let deviation = self::median(&mut distances);
            self.high = Some(f64::from(median + (4.0 * deviation).max(0.2 * median.abs())));
        }
    }
}

fn median(values: &mut [f32]) -> f32 {
    values.sort_unstable_by(f32::total_cmp);
    values[values.len() / 2]
}

/// Colours one service or edge.
#[derive(Clone, Debug, Default)]
pub struct Colour {
    errors: Band,
    p95: Band,
    sampled_ns: u64,
    hold: Hold,
}

impl Colour {
    /// Takes the values of now and answers the tone to show.
    pub fn tone(&mut self, now_ns: u64, error_share: f64, p95_ns: Option<u64>, has_traffic: bool) -> Tone {
        let wanted = match (self.errors.high, self.p95.high, p95_ns) {
            _ if !has_traffic => Tone::Normal,
            (None, _, _) if error_share > UNKNOWN_ERROR_SHARE => Tone::Err,
            (Some(high), _, _) if error_share > high && error_share > ERROR_SHARE_MIN => Tone::Err,
            (_, Some(high), Some(p95)) if p95 as f64 > high => Tone::Warn,
            _ => Tone::Normal,
        };
        if has_traffic && now_ns >= self.sampled_ns + SAMPLE_NS {
            self.sampled_ns = now_ns;
            self.errors.learn(error_share);
            if let Some(p95) = p95_ns {
                self.p95.learn(p95 as f64);
            }
        }
        self.hold.show(now_ns, wanted)
    }
}

/// Delays what is shown until it lasted.
#[derive(Clone, Debug, Default)]
pub struct Hold {
    shown: Tone,
    wanted: Tone,
    since_ns: u64,
}

impl Hold {
    pub fn show(&mut self, now_ns: u64, wanted: Tone) -> Tone {
        if wanted != self.wanted {
            (self.wanted, self.since_ns) = (wanted, now_ns);
        }
        let needed = if wanted > self.shown { APPEARS_NS } else { CLEARS_NS };
        if wanted != self.shown && now_ns >= self.since_ns + needed {
            self.shown = wanted;
        }
        self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn before_a_band_is_known_only_errors_above_one_percent_are_coloured_after_ten_seconds() {
        let mut colour = Colour::default();
        assert_eq!(colour.tone(100 * S, 0.5, Some(1), true), Tone::Normal);
        assert_eq!(colour.tone(109 * S, 0.5, Some(1), true), Tone::Normal);
        assert_eq!(colour.tone(110 * S, 0.5, Some(1), true), Tone::Err);
        assert_eq!(colour.tone(120 * S, 0.0, Some(1), true), Tone::Err, "held");
        assert_eq!(colour.tone(149 * S, 0.0, Some(1), true), Tone::Err);
        assert_eq!(colour.tone(150 * S, 0.0, Some(1), true), Tone::Normal, "clear after thirty");
    }

    #[test]
    fn a_flicker_never_shows() {
        let mut hold = Hold::default();
        let shown = (0..100).map(|at| hold.show(at * 5 * S, if at % 2 == 0 { Tone::Err } else { Tone::Normal }));
        assert!(shown.into_iter().all(|tone| tone == Tone::Normal));
    }

    #[test]
    fn a_duration_above_its_usual_band_is_a_warning_and_usual_errors_are_none() {
        let mut colour = Colour::default();
        for at in 0..70 {
            let jitter = if at % 2 == 0 { 0 } else { 5_000_000 };
            colour.tone(at * SAMPLE_NS, 0.02, Some(100_000_000 + jitter), true);
        }
        let now = 70 * SAMPLE_NS;
        colour.tone(now + 40 * S, 0.02, Some(101_000_000), true);
        assert_eq!(colour.tone(now + 80 * S, 0.02, Some(101_000_000), true), Tone::Normal, "2 % is its usual share");
        colour.tone(now + 90 * S, 0.02, Some(200_000_000), true);
        assert_eq!(colour.tone(now + 100 * S, 0.02, Some(200_000_000), true), Tone::Warn);
        colour.tone(now + 101 * S, 0.1, Some(200_000_000), true);
        assert_eq!(colour.tone(now + 111 * S, 0.1, Some(200_000_000), true), Tone::Err);
    }
}
