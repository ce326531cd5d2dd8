//! Metrics: which instruments there are, and their series over time.
//!
//! Counters are shown as rates, gauges by their last value, histograms by quantiles. A point says something about the time since
//! the point before it, so that is the time it is spread over; where points stay out for longer than three of their usual
//! intervals there is a gap, and nothing is drawn through it.

use super::filter::{Filter, Leaf, ValueTest, holds_of_whole};
use super::lang::{self, Field, Test};
use super::logs::holds_of_value;
use super::pattern::Pattern;
use super::{QueryError, Range, SeriesQuery};
use crate::model::signal::Value;
use crate::telemetry::store::points::{Exponential, Payload, Point};
use crate::telemetry::store::series::{Series as Stored, SeriesStore};
use crate::telemetry::view::{Instrument, InstrumentKind, Series, SeriesAnswer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Series of one answer at most: the largest ones.
const SERIES_SHOWN_MAX: usize = 100;
const POINTS_MAX: usize = 1_000;
const RANGE_DEFAULT_NS: u64 = 900_000_000_000;
/// Assumed where one point alone says nothing about the usual distance.
const INTERVAL_DEFAULT_NS: u64 = 60_000_000_000;
const QUANTILES: [(f64, &str); 3] = [(0.5, "p50"), (0.95, "p95"), (0.99, "p99")];

#[derive(Clone, Debug)]
enum LabelTest {
    Service(Test),
    Instance(Test),
    Text(Pattern),
    Attribute(String, ValueTest),
}

pub fn instruments(store: &SeriesStore) -> Vec<Instrument> {
    let view = |((name, kind), instrument): (&(Arc<str>, InstrumentKind), &crate::telemetry::store::series::Instrument)| {
        let series = instrument.series.iter().filter_map(|id| store.get(*id));
        let services: BTreeSet<Arc<str>> = series.map(|series| series.origin.service().clone()).collect();
        Instrument {
            name: name.clone(),
            description: instrument.description.clone(),
            unit: instrument.unit.clone(),
            kind: *kind,
            services: services.into_iter().collect(),
            attributes: instrument.attribute_keys.iter().cloned().collect(),
            series: instrument.series.len() as u64,
        }
    };
    store.instruments().map(view).collect()
}

/// `None` if no instrument of that name has a matching service.
pub fn query(store: &SeriesStore, query: &SeriesQuery, now_ns: u64) -> Result<Option<SeriesAnswer>, QueryError> {
    let filter = compile(&query.query)?;
    let chosen = |series: &&Stored| {
        query.service.as_ref().is_none_or(|service| **service == **series.origin.service()) && holds(&filter, series)
    };
    for ((name, kind), instrument) in store.named(&query.name) {
        let series: Vec<&Stored> = instrument.series.iter().filter_map(|id| store.get(*id)).filter(chosen).collect();
        if series.is_empty() && query.service.is_some() {
            continue;
        }
        let grid = Grid::new(query, &series, now_ns);
        let shown = groups(&series, &query.group).into_iter().flat_map(|(labels, series)| {
            let of_group = Group { name, labels, service: one_service(&series), series };
            of_group.shown(*kind, &grid)
        });
        return Ok(Some(SeriesAnswer {
            from_us: grid.from_ns / 1_000,
            bucket_us: grid.bucket_ns / 1_000,
            unit: instrument.unit.to_string(),
            shows: shows(*kind).to_owned(),
            series: largest(shown.collect()),
        }));
    }
    Ok(None)
}

fn shows(kind: InstrumentKind) -> &'static str {
    match kind {
        InstrumentKind::Counter => "rate",
        InstrumentKind::Gauge | InstrumentKind::UpDownCounter => "value",
        InstrumentKind::Histogram => "p50/p95/p99/count",
        InstrumentKind::Summary => "quantiles",
    }
}

fn compile(text: &str) -> Result<Filter<LabelTest>, QueryError> {
    Filter::compile(lang::parse(text)?, &|leaf| {
        Ok(match leaf {
            Leaf::Text(pattern) => LabelTest::Text(pattern),
            Leaf::Field(Field { name, test, .. }) => match name.as_str() {
                "service" => LabelTest::Service(test),
                "instance" => LabelTest::Instance(test),
                _ => LabelTest::Attribute(name, ValueTest::new(test)),
            },
        })
    })
}

fn holds(filter: &Filter<LabelTest>, series: &Stored) -> bool {
    filter.matches(&|test| match test {
        LabelTest::Service(test) => holds_of_whole(test, series.origin.service()),
        LabelTest::Instance(test) => holds_of_whole(test, series.origin.instance()),
        LabelTest::Text(pattern) => series.attributes.iter().any(|(_, value)| pattern.is_in(&label(value))),
        LabelTest::Attribute(name, test) => {
            let own = series.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            own.or_else(|| series.origin.attribute(name)).is_some_and(|value| holds_of_value(test, value))
        }
    })
}

fn label(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        other => serde_json::to_string(other).unwrap_or_default(),
    }
}

type Labels = BTreeMap<String, String>;

fn groups<'a>(series: &[&'a Stored], keys: &[String]) -> BTreeMap<Labels, Vec<&'a Stored>> {
    let mut groups: BTreeMap<Labels, Vec<&'a Stored>> = BTreeMap::new();
    for series in series {
        groups.entry(labels_of(series, keys)).or_default().push(series);
    }
    groups
}

/// The labels asked for; all of them, and who sent them, if none were.
fn labels_of(series: &Stored, keys: &[String]) -> Labels {
    let who = [("service", series.origin.service()), ("instance", series.origin.instance())];
    let who = who.into_iter().filter(|(_, text)| !text.is_empty()).map(|(key, text)| (key.to_owned(), text.to_string()));
    let all = who.chain(series.attributes.iter().map(|(key, value)| (key.to_string(), label(value))));
    all.filter(|(key, _)| keys.is_empty() || keys.contains(key)).collect()
}

fn one_service(series: &[&Stored]) -> Arc<str> {
    let first = series[0].origin.service();
    if series.iter().all(|series| series.origin.service() == first) { first.clone() } else { Arc::from("") }
}

/// The largest by what they add up to, in order of their labels.
fn largest(mut series: Vec<Series>) -> Vec<Series> {
    if series.len() <= SERIES_SHOWN_MAX {
        return series;
    }
    let size = |series: &Series| series.values.iter().flatten().map(|value| value.abs()).sum::<f64>();
    series.sort_by(|a, b| size(b).total_cmp(&size(a)));
    series.truncate(SERIES_SHOWN_MAX);
    series.sort_by(|a, b| (&a.labels, &a.name).cmp(&(&b.labels, &b.name)));
    series
}

/// The buckets of an answer.
struct Grid {
    from_ns: u64,
    bucket_ns: u64,
    buckets: usize,
}

impl Grid {
    /// At least as wide as points are apart: finer buckets would be empty by construction.
    fn new(query: &SeriesQuery, series: &[&Stored], now_ns: u64) -> Self {
        let to_ns = query.to_us.map_or(now_ns, |us| us.saturating_mul(1_000));
        let from_ns = query.from_us.map_or(to_ns.saturating_sub(RANGE_DEFAULT_NS), |us| us.saturating_mul(1_000)).min(to_ns);
        let wish = if query.points == 0 { 120 } else { query.points.min(POINTS_MAX) } as u64;
        let apart = series.iter().filter_map(|series| series.interval_ns()).max().unwrap_or(0);
        let length = to_ns - from_ns;
        let bucket_ns = (length / wish).max(apart.min(length / 4)).max(1_000_000);
        // Whole multiples of the width, so that a bucket keeps its place when the range moves on.
        let from_ns = from_ns - from_ns % bucket_ns;
        let buckets = ((to_ns - from_ns).div_ceil(bucket_ns) as usize).clamp(1, POINTS_MAX + 1);
        Grid { from_ns, bucket_ns, buckets }
    }

    fn range(&self) -> Range {
        Range { from_ns: self.from_ns, to_ns: self.from_ns + self.bucket_ns * self.buckets as u64 }
    }

    /// Calls `each` for every bucket that `(since, until]` touches, with how much of the interval lies in it.
    fn spread(&self, since_ns: u64, until_ns: u64, mut each: impl FnMut(usize, u64)) {
        let range = self.range();
        let (start, end) = (since_ns.max(range.from_ns), until_ns.min(range.to_ns));
        if start >= end {
            return;
        }
        let (first, last) = ((start - self.from_ns) / self.bucket_ns, (end - 1 - self.from_ns) / self.bucket_ns);
        for bucket in first..=last {
            let (low, high) = (self.from_ns + bucket * self.bucket_ns, self.from_ns + (bucket + 1) * self.bucket_ns);
            each(bucket as usize, end.min(high) - start.max(low));
        }
    }
}

/// Consecutive points of a series with what changed between them.
struct Step<'a> {
    since_ns: u64,
    until_ns: u64,
    earlier: Option<&'a Payload>,
    later: &'a Payload,
    bounds: &'a Arc<[f64]>,
}

/// Calls `each` for every step without a gap that may touch the range.
fn steps(series: &Stored, range: Range, mut each: impl FnMut(Step<'_>)) {
    let gap_ns = 3 * series.interval_ns().unwrap_or(INTERVAL_DEFAULT_NS);
    let mut earlier: Option<Point> = None;
    for (point, bounds) in series.points_from(range.from_ns) {
        let counts_since = point.start_ns.filter(|start| *start < point.at_ns);
        // A new start is a restart: it counts from zero, since then.
        let (since_ns, base) = match (&earlier, counts_since) {
            (Some(earlier), None) => (Some(earlier.at_ns), Some(&earlier.payload)),
            (Some(earlier), Some(start)) => (Some(start.max(earlier.at_ns)), None),
            (None, start) => (start, None),
        };
        if let Some(since_ns) = since_ns.filter(|since| point.at_ns - since <= gap_ns && point.at_ns > range.from_ns) {
            each(Step { since_ns, until_ns: point.at_ns, earlier: base, later: &point.payload, bounds });
        }
        if point.at_ns >= range.to_ns {
            break;
        }
        earlier = Some(point);
    }
}

/// One value a bucket.
type Values = Vec<Option<f64>>;

struct Group<'a> {
    name: &'a Arc<str>,
    labels: Labels,
    service: Arc<str>,
    series: Vec<&'a Stored>,
}

impl Group<'_> {
    fn shown(&self, kind: InstrumentKind, grid: &Grid) -> Vec<Series> {
        match kind {
            InstrumentKind::Counter => vec![self.rates(grid)],
            InstrumentKind::Gauge => vec![self.levels(grid, Join::Mean)],
            InstrumentKind::UpDownCounter => vec![self.levels(grid, Join::Sum)],
            InstrumentKind::Histogram => self.quantiles(grid),
            InstrumentKind::Summary => self.summaries(grid),
        }
    }

    fn named(&self, name: &str, values: Values, bounds: Option<(Values, Values)>) -> Series {
        let (min, max) = bounds.unwrap_or_else(|| (values.clone(), values.clone()));
        Series { name: name.to_owned(), labels: self.labels.clone(), service: self.service.clone(), values, min, max }
    }

    /// Increase per second, all series of the group together.
    fn rates(&self, grid: &Grid) -> Series {
        let mut total = vec![None; grid.buckets];
        let mut low: Vec<Option<f64>> = vec![None; grid.buckets];
        let mut high: Vec<Option<f64>> = vec![None; grid.buckets];
        for series in &self.series {
            let mut own: Vec<(f64, u64, f64, f64)> = vec![(0.0, 0, f64::INFINITY, 0.0); grid.buckets];
            steps(series, grid.range(), |step| {
                let grown = increase(step.earlier, step.later);
                let rate = grown * 1e9 / (step.until_ns - step.since_ns) as f64;
                grid.spread(step.since_ns, step.until_ns, |bucket, covered| {
                    let (sum, time, low, high) = &mut own[bucket];
                    *sum += rate * covered as f64;
                    *time += covered;
                    (*low, *high) = (low.min(rate), high.max(rate));
                });
            });
            for (bucket, (sum, time, lowest, highest)) in own.into_iter().enumerate().filter(|(_, (_, time, _, _))| *time > 0) {
                add(&mut total[bucket], sum / time as f64);
                add(&mut low[bucket], lowest);
                add(&mut high[bucket], highest);
            }
        }
        self.named(self.name, total, Some((low, high)))
    }

    /// Last values, joined over the group's series.
    fn levels(&self, grid: &Grid, join: Join) -> Series {
        let mut values = vec![None; grid.buckets];
        let mut low: Vec<Option<f64>> = vec![None; grid.buckets];
        let mut high: Vec<Option<f64>> = vec![None; grid.buckets];
        let mut counts = vec![0u32; grid.buckets];
        for series in &self.series {
            for (bucket, level) in levels_of(series, grid).into_iter().enumerate() {
                let Some(level) = level else { continue };
                add(&mut values[bucket], level.last);
                counts[bucket] += 1;
                match join {
                    Join::Sum => {
                        add(&mut low[bucket], level.low);
                        add(&mut high[bucket], level.high);
                    }
                    Join::Mean => {
                        low[bucket] = Some(low[bucket].unwrap_or(f64::INFINITY).min(level.low));
                        high[bucket] = Some(high[bucket].unwrap_or(f64::NEG_INFINITY).max(level.high));
                    }
                }
            }
        }
        if let Join::Mean = join {
            let divide = |(value, count): (&mut Option<f64>, &u32)| *value = value.map(|sum| sum / f64::from(*count));
            values.iter_mut().zip(&counts).for_each(divide);
        }
        self.named(self.name, values, Some((low, high)))
    }

    /// p50, p95 and p99 of what was recorded in each bucket, and how much that was, per second.
    fn quantiles(&self, grid: &Grid) -> Vec<Series> {
        let mut spreads: Vec<Vec<Range3>> = vec![Vec::new(); grid.buckets];
        let mut covered: Vec<u64> = vec![0; grid.buckets];
        for series in &self.series {
            let mut own = vec![0u64; grid.buckets];
            steps(series, grid.range(), |step| {
                let recorded = recorded(&step);
                let length = (step.until_ns - step.since_ns) as f64;
                grid.spread(step.since_ns, step.until_ns, |bucket, part| {
                    let share = part as f64 / length;
                    spreads[bucket].extend(recorded.iter().map(|(low, high, count)| (*low, *high, count * share)));
                    own[bucket] += part;
                });
            });
            covered.iter_mut().zip(own).for_each(|(covered, own)| *covered = (*covered).max(own));
        }
        spreads.iter_mut().for_each(|spread| spread.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1))));
        let mut shown: Vec<Series> = QUANTILES
            .iter()
            .map(|(at, name)| self.named(name, spreads.iter().map(|spread| quantile(spread, *at)).collect(), None))
            .collect();
        let rates = spreads.iter().zip(&covered).map(|(spread, time)| {
            (*time > 0).then(|| spread.iter().map(|(_, _, count)| count).sum::<f64>() * 1e9 / *time as f64)
        });
        shown.push(self.named("count", rates.collect(), None));
        shown
    }

    /// The quantiles as they were sent: they cannot be joined, so each series keeps its own.
    fn summaries(&self, grid: &Grid) -> Vec<Series> {
        let mut shown: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        for (point, _) in self.series.iter().flat_map(|series| series.points_from(grid.from_ns)) {
            let Payload::Summary { quantiles, .. } = point.payload else { continue };
            let Some(since) = point.at_ns.checked_sub(grid.from_ns) else { continue };
            let bucket = (since / grid.bucket_ns) as usize;
            for (quantile, value) in quantiles {
                let values = shown.entry(format!("p{}", quantile * 100.0)).or_insert_with(|| vec![None; grid.buckets]);
                if let Some(slot) = values.get_mut(bucket) {
                    *slot = Some(value).filter(|value| value.is_finite());
                }
            }
        }
        shown.into_iter().map(|(name, values)| self.named(&name, values, None)).collect()
    }
}

#[derive(Clone, Copy)]
enum Join {
    Sum,
    Mean,
}

#[derive(Clone, Copy)]
struct Level {
    last: f64,
    low: f64,
    high: f64,
}

/// A level holds until the next point, but not for longer than a gap.
fn levels_of(series: &Stored, grid: &Grid) -> Vec<Option<Level>> {
    let mut levels: Vec<Option<Level>> = vec![None; grid.buckets];
    let mut held: Vec<Option<Level>> = vec![None; grid.buckets];
    let holds_ns = series.interval_ns().map_or(grid.bucket_ns, |interval| interval * 3 / 2);
    for (point, _) in series.points_from(grid.from_ns.saturating_sub(holds_ns)) {
        let Payload::Number(value) = point.payload else { continue };
        if let Some(since) = point.at_ns.checked_sub(grid.from_ns)
            && let Some(slot) = levels.get_mut((since / grid.bucket_ns) as usize)
        {
            let Level { low, high, .. } = slot.unwrap_or(Level { last: value, low: value, high: value });
            *slot = Some(Level { last: value, low: low.min(value), high: high.max(value) });
        }
        // Buckets without a point of their own, while the next one is not overdue.
        grid.spread(point.at_ns, point.at_ns + holds_ns, |bucket, _| {
            if grid.from_ns + bucket as u64 * grid.bucket_ns > point.at_ns {
                held[bucket] = Some(Level { last: value, low: value, high: value });
            }
        });
    }
    levels.into_iter().zip(held).map(|(own, held)| own.or(held)).collect()
}

fn add(sum: &mut Option<f64>, value: f64) {
    *sum = Some(sum.unwrap_or(0.0) + value);
}

/// How much a counter grew; a smaller value than before is a restart, and what it counted since.
fn increase(earlier: Option<&Payload>, later: &Payload) -> f64 {
    let (Payload::Number(later), earlier) = (later, earlier) else { return 0.0 };
    match earlier {
        Some(Payload::Number(earlier)) if later >= earlier => later - earlier,
        _ => *later,
    }
}

/// Values recorded between two bounds, and how many.
type Range3 = (f64, f64, f64);

fn recorded(step: &Step<'_>) -> Vec<Range3> {
    match step.later {
        Payload::Histogram { counts, .. } => {
            let before = match step.earlier {
                Some(Payload::Histogram { counts: before, .. })
                    if before.len() == counts.len() && before.iter().zip(counts).all(|(before, now)| before <= now) =>
                {
                    Some(before)
                }
                _ => None,
            };
            let grown = counts.iter().enumerate().map(|(at, count)| count - before.map_or(0, |before| before[at]));
            let bounds = step.bounds;
            let ranges = grown.enumerate().filter(|(_, count)| *count > 0).map(|(at, count)| {
                let low = if at == 0 { bounds.first().map_or(0.0, |first| first.min(0.0)) } else { bounds[at - 1] };
                // Nothing is known above the last bound, so it stands for what lies there.
                let high = bounds.get(at).copied().unwrap_or(low);
                (low, high, count as f64)
            });
            ranges.collect()
        }
        Payload::Exponential(later) => {
            let grown = match step.earlier {
                Some(Payload::Exponential(earlier)) => later.since(earlier).unwrap_or_else(|| later.clone()),
                _ => later.clone(),
            };
            ranges_of(&grown)
        }
        Payload::Number(_) | Payload::Summary { .. } => vec![],
    }
}

fn ranges_of(exponential: &Exponential) -> Vec<Range3> {
    let bound = |index: f64| (index * 2f64.powi(-exponential.scale)).exp2();
    let mut ranges = Vec::new();
    let side = |buckets: &crate::telemetry::store::points::Buckets| -> Vec<Range3> {
        let counted = buckets.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted
            .map(|(at, count)| {
                let index = f64::from(buckets.offset) + at as f64;
                (bound(index), bound(index + 1.0), *count as f64)
            })
            .collect()
    };
    ranges.extend(side(&exponential.negative).into_iter().map(|(low, high, count)| (-high, -low, count)));
    if exponential.zero_count > 0 {
        ranges.push((0.0, 0.0, exponential.zero_count as f64));
    }
    ranges.extend(side(&exponential.positive));
    ranges.retain(|(low, high, _)| low.is_finite() && high.is_finite());
    ranges
}

/// The value below which a share `at` of what was recorded lies, straight within its range.
fn quantile(spread: &[Range3], at: f64) -> Option<f64> {
    let total: f64 = spread.iter().map(|(_, _, count)| count).sum();
    if total <= 0.0 {
        return None;
    }
    let mut wanted = total * at;
    for (low, high, count) in spread {
        if wanted <= *count {
            return Some(low + (high - low) * (wanted / count));
        }
        wanted -= count;
    }
    spread.last().map(|(_, high, _)| *high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{Metric, MetricKind, MetricPoint, PointValue, Resource};
    use crate::telemetry::store::origin::Origins;

    const S: u64 = 1_000_000_000;

    struct Shelf {
        store: SeriesStore,
        origins: Origins,
    }

    impl Shelf {
        fn new() -> Self {
            Shelf { store: SeriesStore::new(8 << 20), origins: Origins::default() }
        }

        fn push(&mut self, instance: &str, kind: MetricKind, points: Vec<(u64, u64, PointValue)>) {
            let resource = Resource { service: "orders".into(), instance: instance.into(), attributes: vec![] };
            let points = points.into_iter().map(|(start_s, at_s, value)| MetricPoint {
                at_ns: at_s * S,
                start_ns: start_s * S,
                attributes: vec![("path".into(), "/".into())],
                value,
            });
            let metric = Metric {
                name: "m".into(),
                description: "".into(),
                unit: "ms".into(),
                kind,
                resource: Arc::new(resource),
                points: points.collect(),
            };
            self.store.push(&metric, 0, &mut self.origins);
        }

        /// One bucket a second from 100 s to 110 s.
        fn answer(&self, group: &[&str]) -> SeriesAnswer {
            let wish = SeriesQuery {
                name: "m".into(),
                group: group.iter().map(|key| (*key).to_owned()).collect(),
                from_us: Some(100_000_000),
                to_us: Some(110_000_000),
                points: 10,
                ..SeriesQuery::default()
            };
            query(&self.store, &wish, 0).expect("valid").expect("known")
        }
    }

    fn number(value: f64) -> PointValue {
        PointValue::Number(value)
    }

    #[test]
    fn a_counter_is_a_rate_that_survives_a_restart_and_breaks_at_a_gap() {
        let mut shelf = Shelf::new();
        let kind = MetricKind::Sum { monotonic: true, delta: false };
        let mut points: Vec<_> = (90..=103).map(|at| (50, at, number((at * 10) as f64))).collect();
        // Restarted at 103.5 s without saying so, then silent from 105 s to 109 s.
        points.extend([(50, 104, number(5.0)), (50, 105, number(15.0)), (50, 109, number(55.0)), (50, 110, number(75.0))]);
        shelf.push("a", kind, points);
        let answer = shelf.answer(&[]);
        assert_eq!((answer.shows.as_str(), answer.bucket_us), ("rate", 1_000_000));
        let expected = [10.0, 10.0, 10.0, 5.0, 10.0].map(Some).into_iter().chain([None, None, None, None, Some(20.0)]);
        assert_eq!(answer.series[0].values, expected.collect::<Vec<_>>());
    }

    #[test]
    fn rates_of_a_group_add_up_and_a_fresh_counter_counts_from_its_start() {
        let mut shelf = Shelf::new();
        let kind = MetricKind::Sum { monotonic: true, delta: true };
        for instance in ["a", "b"] {
            shelf.push(instance, kind, (101..=110).map(|at| (at - 1, at, number(4.0))).collect());
        }
        let answer = shelf.answer(&["path"]);
        assert_eq!(answer.series.len(), 1);
        assert_eq!(answer.series[0].values, vec![Some(8.0); 10]);
        assert_eq!(answer.series[0].labels, BTreeMap::from([("path".to_owned(), "/".to_owned())]));
        assert_eq!(shelf.answer(&[]).series.len(), 2);
    }

    #[test]
    fn a_gauge_holds_between_its_points_but_not_through_a_gap() {
        let mut shelf = Shelf::new();
        let points = [(100, 1.0), (101, 2.0), (102, 9.0), (107, 4.0), (108, 4.0), (109, 5.0)];
        shelf.push("a", MetricKind::Gauge, points.into_iter().map(|(at, value)| (0, at, number(value))).collect());
        let answer = shelf.answer(&[]);
        // Points are a second apart, so a level holds for one and a half.
        let expected = [Some(1.0), Some(2.0), Some(9.0), Some(9.0), None, None, None, Some(4.0), Some(4.0), Some(5.0)];
        assert_eq!(answer.series[0].values, expected);
    }

    #[test]
    fn explicit_and_exponential_histograms_give_quantiles() {
        let bounds = vec![10.0, 20.0, 40.0];
        let histogram = |scale: u64| PointValue::Histogram {
            count: 100 * scale,
            sum: 0.0,
            bounds: bounds.clone(),
            counts: vec![50 * scale, 40 * scale, 10 * scale, 0],
        };
        let mut shelf = Shelf::new();
        let points = (100..=110).map(|at| (50, at, histogram(at - 99))).collect();
        shelf.push("a", MetricKind::Histogram { delta: false }, points);
        let answer = shelf.answer(&[]);
        let last =
            |name: &str| answer.series.iter().find(|series| series.name == name).and_then(|series| *series.values.last()?);
        assert_eq!((last("p50"), last("p95"), last("count")), (Some(10.0), Some(30.0), Some(100.0)));

        let mut shelf = Shelf::new();
        let exponential = |n: u64| PointValue::ExponentialHistogram {
            count: 4 * n,
            sum: 0.0,
            scale: 0,
            zero_count: 0,
            positive_offset: 3,
            positive: vec![3 * n, n],
            negative_offset: 0,
            negative: vec![],
        };
        let points = (100..=110).map(|at| (50, at, exponential(at - 99))).collect();
        shelf.push("a", MetricKind::ExponentialHistogram { delta: false }, points);
        let answer = shelf.answer(&[]);
        let p50 = answer.series[0].values[5].expect("recorded");
        assert!((8.0..=16.0).contains(&p50), "{p50} lies in the bucket from 8 to 16");
    }

    #[test]
    fn series_can_be_filtered_by_label() {
        let mut shelf = Shelf::new();
        shelf.push("a", MetricKind::Gauge, vec![(0, 105, number(1.0))]);
        shelf.push("b", MetricKind::Gauge, vec![(0, 105, number(2.0))]);
        let wish = SeriesQuery { name: "m".into(), query: "instance:b path:/".into(), ..SeriesQuery::default() };
        let answer = query(&shelf.store, &wish, 110 * S).expect("valid").expect("known");
        assert_eq!(answer.series.len(), 1);
        assert!(query(&shelf.store, &SeriesQuery { name: "n".into(), ..wish.clone() }, 0).expect("valid").is_none());
        assert!(query(&shelf.store, &SeriesQuery { query: "a(".into(), ..wish }, 0).is_err());
        assert_eq!(instruments(&shelf.store)[0].series, 2);
    }
}
