//! How the numbers of one thing went: its last seconds one by one, its last ten minutes in steps of five seconds.
//!
//! Only changes are kept, so a thing at rest costs nothing and its rate falls to zero by itself. A value at a time is that of the
//! last change before it.

use std::collections::VecDeque;

/// Seconds kept one by one: enough for the window that rates are taken over.
const FINE: usize = 8;
/// Seconds of a step further back, and how many are kept: RabbitMQ's 600 s in steps of 5 s.
const STEP: u64 = 5;
const STEPS: usize = 121;
/// Seconds that a rate is the mean of, as RabbitMQ's with its usual collection interval.
pub const RATE_WINDOW: u64 = 5;
/// Seconds after which nothing of a thing at rest is worth keeping.
pub const KEEP: u64 = STEP * STEPS as u64;

#[derive(Clone, Debug)]
pub struct History<const N: usize> {
    /// Before the oldest change that is kept.
    base: [u64; N],
    fine: VecDeque<(u64, [u64; N])>,
    /// `None` when there are too many histories already: then only rates are known.
    steps: Option<VecDeque<(u64, [u64; N])>>,
}

impl<const N: usize> History<N> {
    /// Of a thing that had `base` until now.
    pub fn new(base: [u64; N], with_steps: bool) -> Self {
        History { base, fine: VecDeque::new(), steps: with_steps.then(VecDeque::new) }
    }

    pub fn has_steps(&self) -> bool {
        self.steps.is_some()
    }

    /// The values from `second` on.
    pub fn push(&mut self, second: u64, values: [u64; N]) {
        match self.fine.back_mut() {
            Some(last) if last.0 == second => last.1 = values,
            _ => self.fine.push_back((second, values)),
        }
        match &mut self.steps {
            Some(steps) => {
                match steps.back_mut() {
                    // Of one step the last change counts.
                    Some(last) if last.0 / STEP == second / STEP => *last = (second, values),
                    _ => steps.push_back((second, values)),
                }
                if steps.len() > STEPS
                    && let Some((_, oldest)) = steps.pop_front()
                {
                    self.base = oldest;
                }
                if self.fine.len() > FINE {
                    self.fine.pop_front();
                }
            }
            None => {
                if self.fine.len() > FINE
                    && let Some((_, oldest)) = self.fine.pop_front()
                {
                    self.base = oldest;
                }
            }
        }
    }

    pub fn last_change(&self) -> u64 {
        self.fine.back().map_or(0, |(second, _)| *second)
    }

    /// Value `index` as it was at `second`.
    pub fn at(&self, index: usize, second: u64) -> u64 {
        let known = |points: &VecDeque<(u64, [u64; N])>| {
            points.iter().rev().find(|(at, _)| *at <= second).map(|(_, values)| values[index])
        };
        known(&self.fine).or_else(|| self.steps.as_ref().and_then(known)).unwrap_or(self.base[index])
    }

    /// Change a second over the last seconds; negative where a level falls.
    pub fn rate(&self, index: usize, now: u64) -> f64 {
        if now.saturating_sub(self.last_change()) >= RATE_WINDOW {
            return 0.0;
        }
        let (then, now) = (self.at(index, now.saturating_sub(RATE_WINDOW)), self.at(index, now));
        (now as f64 - then as f64) / RATE_WINDOW as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_the_mean_of_five_seconds_and_falls_to_zero_at_rest() {
        let mut history = History::new([100, 7], true);
        for second in 10..=20 {
            history.push(second, [100 + (second - 9) * 10, 7]);
        }
        assert_eq!(history.rate(0, 20), 10.0);
        assert_eq!(history.rate(1, 20), 0.0);
        assert_eq!(history.rate(0, 23), 4.0, "two of the last five seconds brought something");
        assert_eq!(history.rate(0, 25), 0.0);
        history.push(26, [50, 7]);
        assert_eq!(history.rate(0, 26), -32.0, "a level that falls has a negative rate");
    }

    #[test]
    fn ten_minutes_are_remembered_in_steps_and_what_was_before_is_the_base() {
        let mut history = History::new([0], true);
        for second in 1..=1_000 {
            history.push(second, [second]);
        }
        assert_eq!([history.at(0, 1_000), history.at(0, 996), history.at(0, 504)], [1_000, 996, 504]);
        assert!(history.at(0, 1) < 400, "only the base is left of it");
        assert!(history.fine.len() <= FINE && history.steps.as_ref().is_some_and(|steps| steps.len() <= STEPS));
        let mut bare = History::new([0], false);
        (1..=1_000).for_each(|second| bare.push(second, [second]));
        assert_eq!(bare.rate(0, 1_000), 1.0);
        assert!(bare.fine.len() <= FINE);
    }
}
