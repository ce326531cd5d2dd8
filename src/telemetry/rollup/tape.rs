//! The silhouette under the top bar: requests and failures in buckets of five seconds over the last hour, what changed, and when
//! the process could not look.

use crate::telemetry::view::{Gap, Marker, MarkerKind, Tape};
use std::collections::VecDeque;

pub const BUCKET_NS: u64 = 5_000_000_000;
/// Bars across, whatever the range.
pub const BARS: u64 = 180;
/// Six hours.
const BUCKETS_MAX: usize = 4_320;
const MARKERS_MAX: usize = 500;
/// Longer between two samples, the process was stopped or starved: nothing was measured.
const GAP_NS: u64 = 10_000_000_000;

#[derive(Debug, Default)]
pub struct Recorder {
    /// (bucket, requests, failed), ascending; a bucket without an entry was not measured.
    buckets: VecDeque<(u64, u64, u64)>,
    markers: VecDeque<Marker>,
    gaps: VecDeque<Gap>,
    sampled_ns: u64,
    totals: Option<(u64, u64)>,
}

impl Recorder {
    /// Once a second: totals since start.
    pub fn sample(&mut self, now_ns: u64, requests: u64, failed: u64) {
        if self.sampled_ns > 0 && now_ns > self.sampled_ns + GAP_NS {
            let reason = format!("nothing was measured for {} s", (now_ns - self.sampled_ns) / 1_000_000_000);
            self.gaps.push_back(Gap { from_us: self.sampled_ns / 1_000, to_us: now_ns / 1_000, reason });
            if self.gaps.len() > MARKERS_MAX {
                self.gaps.pop_front();
            }
        }
        self.sampled_ns = now_ns;
        let (before, failed_before) = self.totals.replace((requests, failed)).unwrap_or((requests, failed));
        let bucket = now_ns / BUCKET_NS;
        if self.buckets.back().is_none_or(|(last, _, _)| *last != bucket) {
            if self.buckets.len() >= BUCKETS_MAX {
                self.buckets.pop_front();
            }
            self.buckets.push_back((bucket, 0, 0));
        }
        if let Some((_, all, bad)) = self.buckets.back_mut() {
            *all += requests.saturating_sub(before);
            *bad += failed.saturating_sub(failed_before);
        }
    }

    pub fn mark(&mut self, at_ns: u64, kind: MarkerKind, text: String, href: Option<String>) {
        if self.markers.len() >= MARKERS_MAX {
            self.markers.pop_front();
        }
        self.markers.push_back(Marker { at_us: at_ns / 1_000, kind, text, href });
    }

    /// `BARS` bars that end with the one `to_ns` lies in; each is a whole number of buckets.
    pub fn view(&self, to_ns: u64, range_ns: u64) -> Tape {
        let width = (range_ns / BARS / BUCKET_NS).max(1);
        let last = to_ns / BUCKET_NS / width;
        let first = (last + 1).saturating_sub(BARS);
        let mut requests = vec![None; BARS as usize];
        let mut failed = vec![None; BARS as usize];
        for (bucket, all, bad) in &self.buckets {
            let Some(at) = (bucket / width).checked_sub(first).filter(|at| *at < BARS) else { continue };
            for (bars, count) in [(&mut requests, all), (&mut failed, bad)] {
                let bar: &mut Option<u64> = &mut bars[at as usize];
                *bar = Some(bar.unwrap_or(0) + count);
            }
        }
        let bucket_us = width * BUCKET_NS / 1_000;
        let from_us = first * bucket_us;
        let to_us = (last + 1) * bucket_us;
        Tape {
            from_us,
            bucket_us,
            requests,
            failed,
            markers: self.markers.iter().filter(|marker| (from_us..to_us).contains(&marker.at_us)).cloned().collect(),
            gaps: self.gaps.iter().filter(|gap| gap.to_us > from_us && gap.from_us < to_us).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn bars_hold_the_differences_of_totals_and_unmeasured_ones_are_null() {
        let mut tape = Recorder::default();
        for second in 0..20 {
            tape.sample((1_000 + second) * S, 500 + second * 3, second);
        }
        let view = tape.view(1_019 * S, 900 * S);
        assert_eq!((view.requests.len(), view.bucket_us, view.from_us % 5_000_000), (180, 5_000_000, 0));
        assert_eq!(view.requests[175..], [None, Some(12), Some(15), Some(15), Some(15)]);
        assert_eq!(view.failed[176..], [Some(4), Some(5), Some(5), Some(5)]);
    }

    #[test]
    fn wider_ranges_gather_whole_buckets() {
        let mut tape = Recorder::default();
        for second in 0..60 {
            tape.sample((3_600 + second) * S, second, 0);
        }
        let view = tape.view(3_659 * S, 3_600 * S);
        assert_eq!(view.bucket_us, 20_000_000);
        assert_eq!(view.requests.iter().flatten().sum::<u64>(), 59);
    }

    #[test]
    fn a_pause_of_the_process_is_a_gap_and_markers_show_in_their_range() {
        let mut tape = Recorder::default();
        tape.sample(1_000 * S, 0, 0);
        tape.sample(1_060 * S, 9, 0);
        tape.mark(1_050 * S, MarkerKind::Exit, "worker-1 exited 137".into(), None);
        tape.mark(10 * S, MarkerKind::Change, "long ago".into(), None);
        let view = tape.view(1_061 * S, 900 * S);
        assert_eq!(
            view.gaps,
            [Gap { from_us: 1_000_000_000, to_us: 1_060_000_000, reason: "nothing was measured for 60 s".into() }]
        );
        assert_eq!(view.markers.len(), 1);
        assert_eq!(view.requests.iter().flatten().count(), 2);
    }
}
