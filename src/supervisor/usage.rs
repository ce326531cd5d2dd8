//! Processor time and memory of each instance: every process below its guard, added up. Rates come from two looks at the process
//! table; a process first seen in between counts from its start.

use super::platform::{Row, descendants};
use crate::kernel::Instant;
use std::collections::HashMap;

#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Usage {
    /// In cores: 1.0 is one core busy.
    pub cpu_share: f64,
    /// Resident memory; pages that processes share count for each of them.
    pub memory_bytes: u64,
    pub process_count: u32,
}

#[derive(Debug)]
pub struct Meter {
    /// Ticks used so far by (pid, start time).
    seen: HashMap<(u32, u64), u64>,
    looked_at: Option<Instant>,
    ticks_per_second: u64,
}

impl Meter {
    pub fn new(ticks_per_second: u64) -> Self {
        Meter { seen: HashMap::new(), looked_at: None, ticks_per_second }
    }

    /// The usage below each of `guards`, in their order. The first look has no rate yet and reports zero for it.
    pub fn measure(&mut self, now: Instant, table: &[Row], guards: &[u32]) -> Vec<Usage> {
        let elapsed = self.looked_at.map(|before| now.since(before).as_secs_f64()).filter(|seconds| *seconds > 0.0);
        let mut seen = HashMap::new();
        let measured = guards
            .iter()
            .map(|guard| {
                let mut usage = Usage::default();
                let mut ticks = 0;
                for row in descendants(table, *guard).iter().filter(|row| !row.is_zombie) {
                    let key = (row.pid, row.started);
                    ticks += row.ticks.saturating_sub(self.seen.get(&key).copied().unwrap_or(0));
                    seen.insert(key, row.ticks);
                    usage.memory_bytes += row.memory_bytes;
                    usage.process_count += 1;
                }
                usage.cpu_share = elapsed.map_or(0.0, |seconds| ticks as f64 / self.ticks_per_second as f64 / seconds);
                usage
            })
            .collect();
        self.seen = seen;
        self.looked_at = Some(now);
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn row(pid: u32, parent: u32, ticks: u64) -> Row {
        Row { pid, parent, group: 1, is_zombie: false, ticks, started: 1, memory_bytes: 1_000 }
    }

    #[test]
    fn a_whole_tree_is_added_up_and_its_rate_is_per_second() {
        let mut meter = Meter::new(100);
        let first = meter.measure(Instant::ZERO, &[row(10, 1, 5), row(11, 10, 500)], &[10]);
        assert_eq!(first, [Usage { cpu_share: 0.0, memory_bytes: 1_000, process_count: 1 }]);
        let later = Instant::ZERO + Duration::from_secs(2);
        let table = [row(10, 1, 90), row(11, 10, 600), row(12, 11, 100)];
        let second = meter.measure(later, &table, &[10, 77]);
        assert_eq!(second[0], Usage { cpu_share: 1.0, memory_bytes: 2_000, process_count: 2 }, "the guard itself is left out");
        assert_eq!(second[1], Usage::default());
    }

    #[test]
    fn a_reused_pid_is_another_process() {
        let mut meter = Meter::new(100);
        meter.measure(Instant::ZERO, &[row(11, 10, 500)], &[10]);
        let reused = Row { started: 2, ticks: 50, ..row(11, 10, 0) };
        let usage = meter.measure(Instant::ZERO + Duration::from_secs(1), &[reused], &[10]);
        assert_eq!(usage[0].cpu_share, 0.5);
    }
}
