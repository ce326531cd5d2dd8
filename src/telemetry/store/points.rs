//! Metric points of one series, packed in blocks.
//!
//! ```text
//!   block    point point …                            each block reads alone: its first point is relative to zero
//!   point    flags · time · [start] · payload         numbers are zigzag differences to the point before
//!   payload  number: difference, or 8 bytes of f64    histogram: count, sum, counts…    exponential, summary: as they are
//! ```
//!
//! What is kept is always cumulative: delta points were added up before they came here.

use super::pack::Unpacker;
use std::sync::Arc;

const HAS_START: u8 = 1;
const IS_RAW: u8 = 2;

/// A block is closed when it holds this many bytes or points.
pub const BLOCK_BYTES_MAX: usize = 1_024;
const BLOCK_POINTS_MAX: u32 = 256;
/// What a block costs besides its points.
pub const BLOCK_BYTES: usize = 96;

/// One kept point.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    pub at_ns: u64,
    /// Since when it counts; given when it differs from the point before.
    pub start_ns: Option<u64>,
    pub payload: Payload,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    Number(f64),
    Histogram { count: u64, sum: f64, counts: Vec<u64> },
    Exponential(Exponential),
    Summary { count: u64, sum: f64, quantiles: Vec<(f64, f64)> },
}

/// Buckets of base 2^(2^-scale): bucket `offset + i` holds values in (base^index, base^(index+1)].
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Exponential {
    pub count: u64,
    pub sum: f64,
    pub scale: i32,
    pub zero_count: u64,
    pub positive: Buckets,
    pub negative: Buckets,
}

#[derive(Clone, Debug, PartialEq, Default)]
pub struct Buckets {
    pub offset: i32,
    pub counts: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Block {
    bytes: Vec<u8>,
    pub points: u32,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Of a histogram; shared by the blocks of a series until it changes them.
    pub bounds: Arc<[f64]>,
    last: Previous,
}

/// What the next point is written relative to.
#[derive(Clone, Debug, Default)]
struct Previous {
    at_ns: u64,
    value: f64,
    count: u64,
    counts: Vec<u64>,
}

impl Block {
    pub fn new(bounds: Arc<[f64]>) -> Self {
        Block { bytes: Vec::new(), points: 0, first_ns: 0, last_ns: 0, bounds, last: Previous::default() }
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES_MAX || self.points >= BLOCK_POINTS_MAX
    }

    /// Bytes of points; [`BLOCK_BYTES`] come on top.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Gives back what only writing needs.
    pub fn close(&mut self) {
        self.bytes.shrink_to_fit();
        self.last = Previous::default();
    }

    // HOT
    pub fn push(&mut self, point: &Point) {
        if self.points == 0 {
            self.first_ns = point.at_ns;
        }
        let raw =
            matches!(point.payload, Payload::Number(value) if !is_small_integer(value) || !is_small_integer(self.last.value));
        let start = if point.start_ns.is_some() { HAS_START } else { 0 };
        self.bytes.push(start | if raw { IS_RAW } else { 0 });
        signed(&mut self.bytes, point.at_ns.wrapping_sub(self.last.at_ns) as i64);
        if let Some(start_ns) = point.start_ns {
            signed(&mut self.bytes, point.at_ns.wrapping_sub(start_ns) as i64);
        }
        match &point.payload {
            Payload::Number(value) if raw => self.bytes.extend_from_slice(&value.to_le_bytes()),
            Payload::Number(value) => signed(&mut self.bytes, *value as i64 - self.last.value as i64),
            Payload::Histogram { count, sum, counts } => self.push_histogram(*count, *sum, counts),
            Payload::Exponential(exponential) => push_exponential(&mut self.bytes, exponential),
            Payload::Summary { count, sum, quantiles } => push_summary(&mut self.bytes, *count, *sum, quantiles),
        }
        if let Payload::Number(value) = point.payload {
            self.last.value = value;
        }
        self.last.at_ns = point.at_ns;
        self.last_ns = point.at_ns;
        self.points += 1;
    }

    fn push_histogram(&mut self, count: u64, sum: f64, counts: &[u64]) {
        signed(&mut self.bytes, count.wrapping_sub(self.last.count) as i64);
        self.bytes.extend_from_slice(&sum.to_le_bytes());
        self.last.counts.resize(counts.len(), 0);
        for (count, last) in counts.iter().zip(&mut self.last.counts) {
            signed(&mut self.bytes, count.wrapping_sub(*last) as i64);
            *last = *count;
        }
        self.last.count = count;
    }

    /// Its points; `shape` says which payload its series has.
    pub fn iter(&self, shape: Shape) -> impl Iterator<Item = Point> + '_ {
        let mut unpacker = Unpacker::new(&self.bytes, &[]);
        let mut last = Previous { counts: vec![0; self.bounds.len() + 1], ..Previous::default() };
        std::iter::from_fn(move || (!unpacker.is_done()).then(|| read(&mut unpacker, &mut last, shape)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Shape {
    Number,
    Histogram,
    Exponential,
    Summary,
}

fn read(unpacker: &mut Unpacker<'_>, last: &mut Previous, shape: Shape) -> Point {
    let flags = unpacker.byte();
    let at_ns = last.at_ns.wrapping_add(read_signed(unpacker) as u64);
    last.at_ns = at_ns;
    let start_ns = (flags & HAS_START != 0).then(|| at_ns.wrapping_sub(read_signed(unpacker) as u64));
    let payload = match shape {
        Shape::Number => {
            last.value = if flags & IS_RAW != 0 {
                f64::from_le_bytes(unpacker.array())
            } else {
                (last.value as i64 + read_signed(unpacker)) as f64
            };
            Payload::Number(last.value)
        }
        Shape::Histogram => {
            last.count = last.count.wrapping_add(read_signed(unpacker) as u64);
            let sum = f64::from_le_bytes(unpacker.array());
            for count in &mut last.counts {
                *count = count.wrapping_add(read_signed(unpacker) as u64);
            }
            Payload::Histogram { count: last.count, sum, counts: last.counts.clone() }
        }
        Shape::Exponential => Payload::Exponential(read_exponential(unpacker)),
        Shape::Summary => read_summary(unpacker),
    };
    Point { at_ns, start_ns, payload }
}

fn push_exponential(bytes: &mut Vec<u8>, exponential: &Exponential) {
    unsigned(bytes, exponential.count);
    bytes.extend_from_slice(&exponential.sum.to_le_bytes());
    signed(bytes, exponential.scale.into());
    unsigned(bytes, exponential.zero_count);
    for buckets in [&exponential.positive, &exponential.negative] {
        signed(bytes, buckets.offset.into());
        unsigned(bytes, buckets.counts.len() as u64);
        buckets.counts.iter().for_each(|count| unsigned(bytes, *count));
    }
}

fn read_exponential(unpacker: &mut Unpacker<'_>) -> Exponential {
    let count = unpacker.number();
    let sum = f64::from_le_bytes(unpacker.array());
    let scale = read_signed(unpacker) as i32;
    let zero_count = unpacker.number();
    let mut buckets = || {
        let offset = read_signed(unpacker) as i32;
        let length = unpacker.number();
        Buckets { offset, counts: (0..length).map(|_| unpacker.number()).collect() }
    };
    let (positive, negative) = (buckets(), buckets());
    Exponential { count, sum, scale, zero_count, positive, negative }
}

fn push_summary(bytes: &mut Vec<u8>, count: u64, sum: f64, quantiles: &[(f64, f64)]) {
    unsigned(bytes, count);
    bytes.extend_from_slice(&sum.to_le_bytes());
    unsigned(bytes, quantiles.len() as u64);
    for number in quantiles.iter().flat_map(|(quantile, value)| [quantile, value]) {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

fn read_summary(unpacker: &mut Unpacker<'_>) -> Payload {
    let count = unpacker.number();
    let sum = f64::from_le_bytes(unpacker.array());
    let double = |unpacker: &mut Unpacker<'_>| f64::from_le_bytes(unpacker.array());
    let quantiles = (0..unpacker.number()).map(|_| (double(unpacker), double(unpacker))).collect();
    Payload::Summary { count, sum, quantiles }
}

/// Whole, and small enough that differences of two are exact.
fn is_small_integer(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < (1_i64 << 52) as f64 && !(value == 0.0 && value.is_sign_negative())
}

fn unsigned(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn signed(bytes: &mut Vec<u8>, number: i64) {
    unsigned(bytes, ((number << 1) ^ (number >> 63)) as u64);
}

fn read_signed(unpacker: &mut Unpacker<'_>) -> i64 {
    let number = unpacker.number();
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

impl Exponential {
    /// Adds `other`, at the coarser of the two scales.
    pub fn add(&mut self, other: &Exponential) {
        let scale = self.scale.min(other.scale);
        let mut other = other.clone();
        self.coarsen(scale);
        other.coarsen(scale);
        self.count += other.count;
        self.sum += other.sum;
        self.zero_count += other.zero_count;
        self.positive.add(&other.positive);
        self.negative.add(&other.negative);
    }

    /// What was added since `earlier`; `None` if anything went down, which is a restart.
    pub fn since(&self, earlier: &Exponential) -> Option<Exponential> {
        let scale = self.scale.min(earlier.scale);
        let (mut now, mut then) = (self.clone(), earlier.clone());
        now.coarsen(scale);
        then.coarsen(scale);
        Some(Exponential {
            count: now.count.checked_sub(then.count)?,
            sum: now.sum - then.sum,
            scale,
            zero_count: now.zero_count.checked_sub(then.zero_count)?,
            positive: now.positive.since(&then.positive)?,
            negative: now.negative.since(&then.negative)?,
        })
    }

    fn coarsen(&mut self, scale: i32) {
        let by = (self.scale - scale).max(0);
        self.positive.coarsen(by);
        self.negative.coarsen(by);
        self.scale = self.scale.min(scale);
    }
}

/// Buckets that one side may grow to when histograms are added up; beyond it pairs are merged into a coarser scale's.
const BUCKETS_MAX: usize = 1_024;

impl Buckets {
    /// Merges 2^`by` neighbours into one.
    fn coarsen(&mut self, by: i32) {
        if by == 0 || self.counts.is_empty() {
            return;
        }
        let shift = by.min(31);
        let offset = self.offset >> shift;
        let mut counts = Vec::new();
        for (at, count) in self.counts.iter().enumerate() {
            let index = (((i64::from(self.offset) + at as i64) >> shift) - i64::from(offset)) as usize;
            counts.resize(counts.len().max(index + 1), 0);
            counts[index] += count;
        }
        *self = Buckets { offset, counts };
    }

    fn add(&mut self, other: &Buckets) {
        if other.counts.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            *self = other.clone();
            return;
        }
        let (first, last) = (self.offset.min(other.offset), self.end().max(other.end()));
        let length = last - i64::from(first);
        // Two sides this far apart share no useful scale; the newer one counts.
        if length > BUCKETS_MAX as i64 * 16 {
            *self = other.clone();
            return;
        }
        let mut counts = vec![0; length as usize];
        for side in [&*self, other] {
            let shift = (i64::from(side.offset) - i64::from(first)) as usize;
            side.counts.iter().enumerate().for_each(|(at, count)| counts[shift + at] += count);
        }
        *self = Buckets { offset: first, counts };
    }

    fn since(&self, earlier: &Buckets) -> Option<Buckets> {
        let mut counts = self.counts.clone();
        for (at, count) in earlier.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let index = usize::try_from(i64::from(earlier.offset) + at as i64 - i64::from(self.offset)).ok()?;
            let now = counts.get_mut(index)?;
            *now = now.checked_sub(*count)?;
        }
        Some(Buckets { offset: self.offset, counts })
    }

    fn end(&self) -> i64 {
        i64::from(self.offset) + self.counts.len() as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip(shape: Shape, bounds: usize, points: &[Point]) -> Vec<Point> {
        let mut block = Block::new((0..bounds).map(|n| n as f64).collect());
        points.iter().for_each(|point| block.push(point));
        block.close();
        block.iter(shape).collect()
    }

    fn exponential(scale: i32, offset: i32, counts: &[u64]) -> Exponential {
        Exponential {
            count: counts.iter().sum(),
            sum: 1.0,
            scale,
            zero_count: 0,
            positive: Buckets { offset, counts: counts.into() },
            negative: Buckets::default(),
        }
    }

    proptest! {
        #[test]
        fn numbers_read_back_exactly(values in prop::collection::vec((any::<u32>(), prop::option::of(any::<u32>()),
            prop_oneof![any::<f64>().prop_filter("comparable", |n| !n.is_nan()), (-1000..1000_i64).prop_map(|n| n as f64)]), 1..50))
        {
            let points: Vec<_> = values.into_iter().map(|(at, start, value)| {
                Point { at_ns: u64::from(at), start_ns: start.map(u64::from), payload: Payload::Number(value) }
            }).collect();
            prop_assert_eq!(round_trip(Shape::Number, 0, &points), points);
        }

        #[test]
        fn histograms_read_back_exactly(values in prop::collection::vec((any::<u32>(), any::<u64>(), prop::collection::vec(any::<u64>(), 4)), 1..20)) {
            let points: Vec<_> = values.into_iter().map(|(at, count, counts)| {
                Point { at_ns: u64::from(at), start_ns: None, payload: Payload::Histogram { count, sum: 0.5, counts } }
            }).collect();
            prop_assert_eq!(round_trip(Shape::Histogram, 3, &points), points);
        }

        #[test]
        fn an_exponential_histogram_less_what_it_was_is_what_was_added(
            a in prop::collection::vec(0..9u64, 0..20), b in prop::collection::vec(0..9u64, 0..20),
            offsets in (-40..40i32, -40..40i32), scales in (-3..6i32, -3..6i32))
        {
            let (first, added) = (exponential(scales.0, offsets.0, &a), exponential(scales.1, offsets.1, &b));
            let mut both = first.clone();
            both.add(&added);
            let since = both.since(&first).expect("nothing went down");
            prop_assert_eq!(since.count, added.count);
            prop_assert_eq!(since.positive.counts.iter().sum::<u64>(), added.count);
            if both.count > first.count {
                prop_assert!(first.since(&both).is_none(), "going down is a restart");
            }
        }
    }

    #[test]
    fn other_shapes_read_back_too() {
        let exponential = Exponential { negative: Buckets { offset: -9, counts: vec![1, 0, 7] }, ..exponential(3, -2, &[5, 6]) };
        let points = [Point { at_ns: 9, start_ns: Some(1), payload: Payload::Exponential(exponential) }];
        assert_eq!(round_trip(Shape::Exponential, 0, &points), points);
        let quantiles = vec![(0.5, 1.0), (0.99, 7.5)];
        let points = [Point { at_ns: 9, start_ns: None, payload: Payload::Summary { count: 3, sum: 2.0, quantiles } }];
        assert_eq!(round_trip(Shape::Summary, 0, &points), points);
    }

    #[test]
    fn a_steady_counter_takes_a_few_bytes_a_point() {
        let mut block = Block::new(Arc::from([]));
        for n in 0..100u64 {
            block.push(&Point {
                at_ns: 1_700_000_000_000_000_000 + n * 1_000_000_000,
                start_ns: None,
                payload: Payload::Number((n * 41) as f64),
            });
        }
        assert!(block.len() < 900, "{}", block.len());
    }
}
