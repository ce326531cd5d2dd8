//! Metric series: one per instrument, origin and set of attributes.
//!
//! ```text
//!   instruments  (name, kind) ─▶ what it is, its series     series  origin · attributes · blocks of points
//!   queues       per service, blocks in order of their birth: the oldest of whoever holds the most goes first
//! ```
//!
//! Delta points are added up as they arrive, so that what is kept is always cumulative. The number of series is bounded: points
//! of new series beyond it are dropped and counted, after series that fell silent have made room.

use super::origin::{Origin, Origins};
use super::points::{BLOCK_BYTES, Block, Buckets, Exponential, Payload, Point, Shape};
use super::share::{ShareId, Shares};
use crate::model::signal::{Attributes, Metric, MetricKind, MetricPoint, PointValue, Value};
use crate::telemetry::view::InstrumentKind;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

pub const SERIES_MAX: usize = 20_000;
/// Series of one instrument from one service.
pub const SERIES_PER_INSTRUMENT_MAX: usize = 2_000;
const INSTRUMENTS_MAX: usize = 4_000;
const ATTRIBUTE_KEYS_MAX: usize = 64;
/// A series without points for so long gives way to a new one.
const SILENT_NS: u64 = 900_000_000_000;
const SERIES_BYTES: usize = 512;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SeriesId(u64);

#[derive(Debug)]
pub struct Instrument {
    pub description: Arc<str>,
    pub unit: Arc<str>,
    pub attribute_keys: BTreeSet<String>,
    pub series: BTreeSet<SeriesId>,
}

#[derive(Debug)]
pub struct Series {
    pub origin: Arc<Origin>,
    /// Sorted by key.
    pub attributes: Attributes,
    pub shape: Shape,
    instrument: InstrumentKey,
    key: Box<[u8]>,
    share: ShareId,
    blocks: VecDeque<Block>,
    last_ns: u64,
    last_start_ns: u64,
    /// The sum of all delta points so far.
    total: Option<Payload>,
}

/// Name and kind: services that disagree on the kind are two instruments of one name.
pub type InstrumentKey = (Arc<str>, InstrumentKind);

#[derive(Debug)]
pub struct SeriesStore {
    instruments: BTreeMap<InstrumentKey, Instrument>,
    series: HashMap<SeriesId, Series>,
    by_key: HashMap<Box<[u8]>, SeriesId>,
    /// Series per instrument and service, for the bound.
    counts: HashMap<(Arc<str>, Arc<str>), usize>,
    queues: Vec<VecDeque<SeriesId>>,
    shares: Shares,
    next_id: u64,
    kept: u64,
    bytes_max: usize,
    swept_ns: u64,
}

/// What became of one metric's points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    pub kept: u64,
    pub dropped: u64,
    pub evicted: u64,
}

impl Series {
    /// Points in order of time, with the bounds of their block.
    pub fn points(&self) -> impl Iterator<Item = (Point, &Arc<[f64]>)> {
        self.blocks.iter().flat_map(|block| block.iter(self.shape).map(move |point| (point, &block.bounds)))
    }

    /// Blocks may be skipped whole when they end before `from_ns`; one before it is kept, for differences.
    pub fn points_from(&self, from_ns: u64) -> impl Iterator<Item = (Point, &Arc<[f64]>)> {
        let first = self.blocks.partition_point(|block| block.last_ns < from_ns).saturating_sub(1);
        self.blocks.range(first..).flat_map(|block| block.iter(self.shape).map(move |point| (point, &block.bounds)))
    }

    /// The usual distance between its points: the median of the newest block with enough of them, so that a pause does not count.
    pub fn interval_ns(&self) -> Option<u64> {
        let block = self.blocks.iter().rev().find(|block| block.points > 4).or_else(|| self.blocks.back())?;
        let times: Vec<u64> = block.iter(self.shape).map(|point| point.at_ns).collect();
        let mut distances: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        distances.sort_unstable();
        distances.get(distances.len() / 2).copied()
    }

    pub fn last_ns(&self) -> u64 {
        self.last_ns
    }

    fn bytes(&self) -> usize {
        SERIES_BYTES + self.key.len() + self.blocks.iter().map(|block| BLOCK_BYTES + block.len()).sum::<usize>()
    }

    fn points_kept(&self) -> u64 {
        self.blocks.iter().map(|block| u64::from(block.points)).sum()
    }
}

impl SeriesStore {
    pub fn new(bytes_max: usize) -> Self {
        SeriesStore {
            instruments: BTreeMap::new(),
            series: HashMap::new(),
            by_key: HashMap::new(),
            counts: HashMap::new(),
            queues: Vec::new(),
            shares: Shares::default(),
            next_id: 1,
            kept: 0,
            bytes_max,
            swept_ns: 0,
        }
    }

    pub fn push(&mut self, metric: &Metric, now_ns: u64, origins: &mut Origins) -> Taken {
        let mut taken = Taken::default();
        let origin = origins.of(&metric.resource);
        for point in &metric.points {
            let id = self.find_or_open(metric, point, &origin, now_ns, &mut taken);
            match id.filter(|id| self.append(*id, metric.kind, point)) {
                Some(_) => taken.kept += 1,
                None => taken.dropped += 1,
            }
        }
        self.kept += taken.kept;
        taken
    }

    /// Removes the oldest block of whoever holds the most, if the budget is exceeded; answers how many points went.
    pub fn evict(&mut self) -> Option<u64> {
        if self.shares.total() <= self.bytes_max {
            return None;
        }
        let share = self.shares.largest()?;
        let id = self.queues[share.index()].pop_front()?;
        let Some(series) = self.series.get_mut(&id) else { return Some(0) };
        let block = series.blocks.pop_front()?;
        let points = u64::from(block.points);
        self.shares.shrink(share, BLOCK_BYTES + block.len());
        self.kept -= points;
        if series.blocks.is_empty() {
            self.close(id);
        }
        Some(points)
    }

    fn find_or_open(
        &mut self,
        metric: &Metric,
        point: &MetricPoint,
        origin: &Arc<Origin>,
        now_ns: u64,
        taken: &mut Taken,
    ) -> Option<SeriesId> {
        let mut attributes = point.attributes.clone();
        attributes.sort_by(|(a, _), (b, _)| a.cmp(b));
        attributes.dedup_by(|(later, _), (first, _)| later == first);
        let (kind, shape) = kind_and_shape(metric.kind);
        let key = key_of(&metric.name, shape, kind, origin, &attributes);
        if let Some(id) = self.by_key.get(&key) {
            return Some(*id);
        }
        if self.series.len() >= SERIES_MAX {
            taken.evicted += self.close_silent(now_ns);
        }
        let of_service = (metric.name.clone(), origin.service().clone());
        let count = self.counts.get(&of_service).copied().unwrap_or(0);
        let instrument_key: InstrumentKey = (metric.name.clone(), kind);
        let room = self.instruments.contains_key(&instrument_key) || self.instruments.len() < INSTRUMENTS_MAX;
        if self.series.len() >= SERIES_MAX || count >= SERIES_PER_INSTRUMENT_MAX || !room {
            return None;
        }
        let id = SeriesId(self.next_id);
        self.next_id += 1;
        let instrument = self.instruments.entry(instrument_key.clone()).or_insert_with(|| Instrument {
            description: metric.description.clone(),
            unit: metric.unit.clone(),
            attribute_keys: BTreeSet::new(),
            series: BTreeSet::new(),
        });
        instrument.series.insert(id);
        let room_for_keys = ATTRIBUTE_KEYS_MAX.saturating_sub(instrument.attribute_keys.len());
        instrument.attribute_keys.extend(attributes.iter().take(room_for_keys).map(|(key, _)| key.to_string()));
        *self.counts.entry(of_service).or_default() += 1;
        let share = self.shares.of(origin.service());
        self.queues.resize_with(self.shares.len().max(self.queues.len()), VecDeque::new);
        let series = Series {
            origin: origin.clone(),
            attributes,
            shape,
            instrument: instrument_key,
            key: key.clone(),
            share,
            blocks: VecDeque::new(),
            last_ns: 0,
            last_start_ns: 0,
            total: None,
        };
        self.shares.grow(share, series.bytes());
        self.by_key.insert(key, id);
        self.series.insert(id, series);
        Some(id)
    }

    /// Whether the point was taken: one that is not newer than the last is a repetition.
    fn append(&mut self, id: SeriesId, kind: MetricKind, point: &MetricPoint) -> bool {
        let series = self.series.get_mut(&id).expect("found or opened just now");
        if point.at_ns <= series.last_ns {
            return false;
        }
        let Some((payload, bounds)) = payload_of(&point.value) else { return false };
        let payload = if is_delta(kind) { add_up(&mut series.total, payload) } else { payload };
        let start_changed = point.start_ns > 0 && point.start_ns != series.last_start_ns;
        let start_ns = (start_changed && (!is_delta(kind) || series.last_ns == 0)).then_some(point.start_ns);
        let head = series.blocks.back_mut();
        let fits = head.as_ref().is_some_and(|head| !head.is_full() && *head.bounds == *bounds);
        let mut grown = 0;
        if !fits {
            let same = head.as_ref().filter(|head| *head.bounds == *bounds).map(|head| head.bounds.clone());
            if let Some(head) = head {
                head.close();
            }
            series.blocks.push_back(Block::new(same.unwrap_or_else(|| bounds.into())));
            self.queues[series.share.index()].push_back(id);
            grown += BLOCK_BYTES;
        }
        let head = series.blocks.back_mut().expect("made sure of above");
        let before = head.len();
        head.push(&Point { at_ns: point.at_ns, start_ns, payload });
        grown += head.len() - before;
        series.last_ns = point.at_ns;
        series.last_start_ns = point.start_ns;
        self.shares.grow(series.share, grown);
        true
    }

    /// Removes series that were silent for long; looks at most every ten seconds. Answers how many points went with them.
    fn close_silent(&mut self, now_ns: u64) -> u64 {
        if now_ns < self.swept_ns + 10_000_000_000 {
            return 0;
        }
        self.swept_ns = now_ns;
        let silent: Vec<SeriesId> =
            self.series.iter().filter(|(_, series)| series.last_ns + SILENT_NS < now_ns).map(|(id, _)| *id).collect();
        let points = silent.iter().map(|id| self.close(*id)).sum();
        self.kept -= points;
        points
    }

    fn close(&mut self, id: SeriesId) -> u64 {
        let Some(series) = self.series.remove(&id) else { return 0 };
        self.shares.shrink(series.share, series.bytes());
        self.by_key.remove(&series.key);
        let of_service = (series.instrument.0.clone(), series.origin.service().clone());
        if let Some(count) = self.counts.get_mut(&of_service) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&of_service);
            }
        }
        if let Some(instrument) = self.instruments.get_mut(&series.instrument) {
            instrument.series.remove(&id);
            if instrument.series.is_empty() {
                self.instruments.remove(&series.instrument);
            }
        }
        series.points_kept()
    }

    pub fn instruments(&self) -> impl Iterator<Item = (&InstrumentKey, &Instrument)> {
        self.instruments.iter()
    }

    /// Instruments of that name, of whatever kind.
    pub fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = (&'a InstrumentKey, &'a Instrument)> {
        let name: Arc<str> = Arc::from(name);
        let from = (name.clone(), InstrumentKind::Gauge);
        self.instruments.range(from..).take_while(move |((found, _), _)| *found == name)
    }

    pub fn get(&self, id: SeriesId) -> Option<&Series> {
        self.series.get(&id)
    }

    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Points kept.
    pub fn kept(&self) -> u64 {
        self.kept
    }

    pub fn bytes(&self) -> usize {
        self.shares.total()
    }
}

fn kind_and_shape(kind: MetricKind) -> (InstrumentKind, Shape) {
    match kind {
        MetricKind::Gauge => (InstrumentKind::Gauge, Shape::Number),
        MetricKind::Sum { monotonic: true, .. } => (InstrumentKind::Counter, Shape::Number),
        MetricKind::Sum { monotonic: false, .. } => (InstrumentKind::UpDownCounter, Shape::Number),
        MetricKind::Histogram { .. } => (InstrumentKind::Histogram, Shape::Histogram),
        MetricKind::ExponentialHistogram { .. } => (InstrumentKind::Histogram, Shape::Exponential),
        MetricKind::Summary => (InstrumentKind::Summary, Shape::Summary),
    }
}

fn is_delta(kind: MetricKind) -> bool {
    match kind {
        MetricKind::Sum { delta, .. } | MetricKind::Histogram { delta } | MetricKind::ExponentialHistogram { delta } => delta,
        MetricKind::Gauge | MetricKind::Summary => false,
    }
}

/// Equal keys are one series. The origin's address stands for it: the series keeps it alive.
fn key_of(
    name: &str,
    shape: Shape,
    kind: InstrumentKind,
    origin: &Arc<Origin>,
    attributes: &[(Cow<'static, str>, Value)],
) -> Box<[u8]> {
    let mut key = Vec::with_capacity(128);
    key.extend_from_slice(name.as_bytes());
    key.extend_from_slice(&[0, shape as u8, kind as u8]);
    key.extend_from_slice(&(Arc::as_ptr(origin) as usize).to_le_bytes());
    for (name, value) in attributes {
        key.extend_from_slice(&(name.len() as u32).to_le_bytes());
        key.extend_from_slice(name.as_bytes());
        match value {
            Value::Text(text) => {
                key.extend_from_slice(&(text.len() as u32).to_le_bytes());
                key.extend_from_slice(text.as_bytes());
            }
            other => {
                let text = serde_json::to_string(other).unwrap_or_default();
                key.extend_from_slice(&(text.len() as u32 | 1 << 31).to_le_bytes());
                key.extend_from_slice(text.as_bytes());
            }
        }
    }
    key.into()
}

fn payload_of(value: &PointValue) -> Option<(Payload, &[f64])> {
    Some(match value {
        PointValue::Number(number) => (Payload::Number(*number), &[]),
        PointValue::Histogram { count, sum, bounds, counts } => {
            if counts.len() != bounds.len() + 1 {
                return None;
            }
            (Payload::Histogram { count: *count, sum: *sum, counts: counts.clone() }, bounds.as_slice())
        }
        PointValue::ExponentialHistogram { count, sum, scale, zero_count, .. } => {
            let PointValue::ExponentialHistogram { positive_offset, positive, negative_offset, negative, .. } = value else {
                unreachable!("matched above")
            };
            let exponential = Exponential {
                count: *count,
                sum: *sum,
                scale: *scale,
                zero_count: *zero_count,
                positive: Buckets { offset: *positive_offset, counts: positive.clone() },
                negative: Buckets { offset: *negative_offset, counts: negative.clone() },
            };
            (Payload::Exponential(exponential), &[])
        }
        PointValue::Summary { count, sum, quantiles } => {
            (Payload::Summary { count: *count, sum: *sum, quantiles: quantiles.clone() }, &[])
        }
    })
}

/// Adds a delta point to the total and answers the new total.
fn add_up(total: &mut Option<Payload>, payload: Payload) -> Payload {
    let sum = match (total.take(), payload) {
        (Some(Payload::Number(total)), Payload::Number(number)) => Payload::Number(total + number),
        (Some(Payload::Histogram { count, sum, mut counts }), Payload::Histogram { count: more, sum: added, counts: by })
            if counts.len() == by.len() =>
        {
            counts.iter_mut().zip(by).for_each(|(count, by)| *count = count.saturating_add(by));
            Payload::Histogram { count: count.saturating_add(more), sum: sum + added, counts }
        }
        (Some(Payload::Exponential(mut total)), Payload::Exponential(more)) => {
            total.add(&more);
            Payload::Exponential(total)
        }
        (_, payload) => payload,
    };
    *total = Some(sum.clone());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::Resource;
    use proptest::prelude::*;

    fn resource(service: &str) -> Arc<Resource> {
        Arc::new(Resource { service: service.into(), instance: "".into(), attributes: vec![] })
    }

    fn metric(service: &Arc<Resource>, kind: MetricKind, points: Vec<MetricPoint>) -> Metric {
        Metric { name: "m".into(), description: "".into(), unit: "1".into(), kind, resource: service.clone(), points }
    }

    fn point(at_ns: u64, path: &str, value: f64) -> MetricPoint {
        MetricPoint { at_ns, start_ns: 1, attributes: vec![("path".into(), path.into())], value: PointValue::Number(value) }
    }

    fn values(store: &SeriesStore) -> Vec<Vec<f64>> {
        let (_, instrument) = store.instruments().next().expect("one");
        let of = |id: &SeriesId| {
            let points = store.get(*id).expect("kept").points();
            points.map(|(point, _)| if let Payload::Number(value) = point.payload { value } else { f64::NAN }).collect()
        };
        instrument.series.iter().map(of).collect()
    }

    #[test]
    fn points_fall_into_series_by_origin_and_attributes() {
        let (mut store, mut origins) = (SeriesStore::new(1 << 20), Origins::default());
        let (orders, worker) = (resource("orders"), resource("worker"));
        let points = vec![point(1, "/a", 1.0), point(1, "/b", 2.0), point(2, "/a", 3.0), point(2, "/a", 9.0)];
        let taken = store.push(&metric(&orders, MetricKind::Gauge, points), 2, &mut origins);
        assert_eq!(taken, Taken { kept: 3, dropped: 1, evicted: 0 }, "a repeated time is a repeated point");
        store.push(&metric(&worker, MetricKind::Gauge, vec![point(1, "/a", 7.0)]), 2, &mut origins);
        assert_eq!(values(&store), [vec![1.0, 3.0], vec![2.0], vec![7.0]]);
        let (_, instrument) = store.instruments().next().expect("one");
        assert_eq!(instrument.attribute_keys, BTreeSet::from(["path".to_owned()]));
    }

    #[test]
    fn delta_points_are_added_up() {
        let (mut store, mut origins) = (SeriesStore::new(1 << 20), Origins::default());
        let kind = MetricKind::Sum { monotonic: true, delta: true };
        let points = (1..=4).map(|n| point(n, "/", 2.5)).collect();
        store.push(&metric(&resource("a"), kind, points), 9, &mut origins);
        assert_eq!(values(&store), [vec![2.5, 5.0, 7.5, 10.0]]);
    }

    #[test]
    fn a_cardinality_flood_is_dropped_and_counted_and_silent_series_make_room() {
        let (mut store, mut origins) = (SeriesStore::new(64 << 20), Origins::default());
        let noisy = resource("noisy");
        let points: Vec<_> = (0..SERIES_PER_INSTRUMENT_MAX + 7).map(|n| point(1, &n.to_string(), 1.0)).collect();
        let taken = store.push(&metric(&noisy, MetricKind::Gauge, points), 1, &mut origins);
        assert_eq!((taken.kept, taken.dropped), (SERIES_PER_INSTRUMENT_MAX as u64, 7));
        for service in 0..SERIES_MAX / SERIES_PER_INSTRUMENT_MAX + 1 {
            let points = (0..SERIES_PER_INSTRUMENT_MAX).map(|n| point(1, &n.to_string(), 1.0)).collect();
            store.push(&metric(&resource(&service.to_string()), MetricKind::Gauge, points), 1, &mut origins);
        }
        assert_eq!(store.len(), SERIES_MAX);
        let late = SILENT_NS + 10_000_000_001;
        let taken = store.push(&metric(&resource("late"), MetricKind::Gauge, vec![point(late, "/", 1.0)]), late, &mut origins);
        assert_eq!(taken, Taken { kept: 1, dropped: 0, evicted: SERIES_MAX as u64 });
        assert_eq!((store.len(), store.kept()), (1, 1));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn bytes_and_counts_stay_exact(steps in prop::collection::vec((0..4u8, 0..5u8, any::<f64>()), 1..800)) {
            let (mut store, mut origins) = (SeriesStore::new(24 * 1024), Origins::default());
            let (mut taken, mut evicted) = (Taken::default(), 0);
            for (at, (service, path, value)) in steps.iter().enumerate() {
                let point = point(at as u64 + 1, &path.to_string(), *value);
                let now = store.push(&metric(&resource(&service.to_string()), MetricKind::Gauge, vec![point]), 1, &mut origins);
                taken.kept += now.kept;
                taken.dropped += now.dropped;
                while let Some(points) = store.evict() {
                    evicted += points;
                }
            }
            prop_assert_eq!(taken.kept + taken.dropped, steps.len() as u64);
            prop_assert_eq!(store.kept() + evicted, taken.kept);
            prop_assert_eq!(store.kept(), store.series.values().map(Series::points_kept).sum::<u64>());
            prop_assert_eq!(store.bytes(), store.series.values().map(Series::bytes).sum::<usize>());
            prop_assert!(store.bytes() <= 24 * 1024);
        }
    }
}
