//! `message_stats`, `messages_details` and their kin: numbers with their rates and, when asked for, the samples they come from.

use super::answer::Failure;
use super::history::History;
use super::list::Query;
use super::samples::{FLOW, FLOW_NAMES, MESSAGES, READY, Samples, UNACKED, numbers};
use crate::broker::Flow;
use serde_json::{Map, Value, json};

/// Of the names of a flow, the first ones are the publishing side.
const PUBLISHING: usize = 4;
/// Samples of one answer; more are refused.
const SAMPLES_MAX: u64 = 2_000;

/// `lengths_age` and `lengths_incr`: how far back, in which steps, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    age: u64,
    step: u64,
}

/// The windows that a query asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Windows {
    pub lengths: Option<Window>,
    pub msg_rates: Option<Window>,
    pub data_rates: Option<Window>,
    pub node_stats: Option<Window>,
}

impl Windows {
    pub fn of(query: &Query) -> Result<Self, Failure> {
        Ok(Windows {
            lengths: window(query, "lengths")?,
            msg_rates: window(query, "msg_rates")?,
            data_rates: window(query, "data_rates")?,
            node_stats: window(query, "node_stats")?,
        })
    }
}

fn window(query: &Query, name: &str) -> Result<Option<Window>, Failure> {
    let (Some(age), Some(step)) = (query.get(&format!("{name}_age")), query.get(&format!("{name}_incr"))) else {
        return Ok(None);
    };
    match (age.parse(), step.parse()) {
        (Ok(age), Ok(step)) if step > 0 && age / step <= SAMPLES_MAX => Ok(Some(Window { age, step })),
        _ => Err(Failure::bad(format!("{name}_age and {name}_incr are whole seconds, and at most {SAMPLES_MAX} samples"))),
    }
}

/// Shapes numbers at one moment.
#[derive(Clone, Copy)]
pub struct Shaper<'s> {
    samples: &'s Samples,
    now: u64,
    pub windows: Windows,
}

impl<'s> Shaper<'s> {
    pub fn new(samples: &'s Samples, windows: Windows) -> Self {
        Shaper { samples, now: samples.second(), windows }
    }

    /// The `…_details` of one number.
    pub fn details<const N: usize>(
        &self,
        history: Option<&History<N>>,
        index: usize,
        value: u64,
        window: Option<Window>,
    ) -> Value {
        let rate = history.map_or(0.0, |history| history.rate(index, self.now));
        self.shape(rate, |second| history.map_or(value, |history| history.at(index, second)), window)
    }

    fn shape(&self, rate: f64, at: impl Fn(u64) -> u64, window: Option<Window>) -> Value {
        let Some(Window { age, step }) = window else { return json!({ "rate": rate }) };
        let newest = self.now - self.now % step;
        let seconds = (0..=age / step).map(|back| newest.saturating_sub(back * step));
        let samples: Vec<(u64, u64)> = seconds.map(|second| (second, at(second))).collect();
        let sum: u64 = samples.iter().map(|(_, sample)| sample).sum();
        let (first, last) = (samples.last().map_or(0, |point| point.1), samples.first().map_or(0, |point| point.1));
        let shown =
            samples.iter().map(|(second, sample)| json!({ "sample": sample, "timestamp": self.samples.millis_at(*second) }));
        json!({
            "rate": rate,
            "samples": shown.collect::<Vec<_>>(),
            "avg": sum as f64 / samples.len() as f64,
            "avg_rate": (last as f64 - first as f64) / age.max(1) as f64,
        })
    }

    /// `messages`, `messages_ready` and `messages_unacknowledged` with their details.
    pub fn lengths<const N: usize>(&self, history: Option<&History<N>>, lengths: [u64; 3], into: &mut Map<String, Value>) {
        let names = [("messages", MESSAGES), ("messages_ready", READY), ("messages_unacknowledged", UNACKED)];
        for ((name, index), value) in names.into_iter().zip(lengths) {
            into.insert(name.to_owned(), value.into());
            into.insert(format!("{name}_details"), self.details(history, index, value, self.windows.lengths));
        }
    }

    /// The `message_stats` of a flow, without the kinds in `but`; empty if nothing ever happened.
    pub fn flow<const N: usize>(&self, history: Option<&History<N>>, flow: &Flow, but: &[&str]) -> Map<String, Value> {
        let mut stats = Map::new();
        if *flow == Flow::default() {
            return stats;
        }
        let window = self.windows.msg_rates;
        let values = numbers(flow);
        // Who never published has no publishing side, who never took anything no taking side.
        let (publishes, takes) = (values[..PUBLISHING].iter().any(|it| *it > 0), values[PUBLISHING..].iter().any(|it| *it > 0));
        for (index, (name, value)) in FLOW_NAMES.into_iter().zip(values).enumerate() {
            let is_there = if index < PUBLISHING { publishes } else { takes };
            if is_there && !but.contains(&name) {
                stats.insert(name.to_owned(), value.into());
                stats.insert(format!("{name}_details"), self.details(history, FLOW + index, value, window));
            }
        }
        if takes {
            stats.insert("deliver_get".to_owned(), flow.deliver_get().into());
            stats.insert("deliver_get_details".to_owned(), self.all_deliveries(history, flow.deliver_get()));
        }
        stats
    }

    /// The sum of the four ways out of a queue.
    fn all_deliveries<const N: usize>(&self, history: Option<&History<N>>, value: u64) -> Value {
        const WAYS: std::ops::Range<usize> = FLOW + 4..FLOW + 8;
        let rate = history.map_or(0.0, |history| WAYS.map(|index| history.rate(index, self.now)).sum());
        let at = |second| history.map_or(value, |history| WAYS.map(|index| history.at(index, second)).sum());
        self.shape(rate, at, self.windows.msg_rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Clock;
    use std::time::Duration;

    #[test]
    fn details_hold_a_rate_and_samples_newest_first_where_asked_for() {
        let clock = Clock::manual(1_700_000_000_000_000_000);
        let samples = Samples::new(clock.clone(), None);
        clock.advance(Duration::from_secs(20));
        let mut history = History::new([0], true);
        (11..=20).for_each(|second| history.push(second, [(second - 10) * 4]));
        let shaper = Shaper::new(&samples, Windows::default());
        assert_eq!(shaper.details(Some(&history), 0, 40, None), json!({ "rate": 4.0 }));
        let details = shaper.details(Some(&history), 0, 40, Some(Window { age: 10, step: 5 }));
        let shown: Vec<_> = details["samples"].as_array().expect("samples").iter().map(|point| point["sample"].clone()).collect();
        assert_eq!(shown, [json!(40), json!(20), json!(0)]);
        assert_eq!(details["samples"][0]["timestamp"], 1_700_000_020_000_u64);
        assert_eq!(details["avg_rate"], 4.0);
    }

    #[test]
    fn what_never_moved_has_no_stats() {
        let samples = Samples::new(Clock::manual(0), None);
        let shaper = Shaper::new(&samples, Windows::default());
        assert!(shaper.flow::<1>(None, &Flow::default(), &[]).is_empty());
        let stats = shaper.flow::<1>(None, &Flow { deliver: 3, get_no_ack: 1, ..Flow::default() }, &["confirm"]);
        assert_eq!((&stats["deliver_get"], stats.contains_key("confirm")), (&json!(4), false));
        assert!(!stats.contains_key("publish"), "it took and never published");
    }
}
