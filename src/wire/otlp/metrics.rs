//! The metric signal.

use super::metrics_v1::ExportMetricsServiceRequest;
use super::resource::{attributes, resource};
use super::{DecodeError, Decoded, Encoding, request};
use crate::model::signal::{Metric, MetricKind, MetricPoint, PointValue, Resource};
use opentelemetry_proto::tonic::metrics::v1 as proto;
use opentelemetry_proto::tonic::metrics::v1::AggregationTemporality;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value as Number;
use std::sync::Arc;

/// Set on a point that only says "nothing was recorded".
const FLAG_NO_RECORDED_VALUE: u32 = 1;

/// Buckets of one histogram point at most. Protobuf packs a count in a byte, so a small body could ask for millions.
const BUCKETS_MAX: usize = 1_024;

/// `rejected` counts points, as the answer's `rejected_data_points` does.
pub fn decode_metrics(body: &[u8], encoding: Encoding) -> Result<Decoded<Metric>, DecodeError> {
    Ok(metrics(request(body, encoding)?))
}

pub fn metrics(request: ExportMetricsServiceRequest) -> Decoded<Metric> {
    let mut decoded = Decoded::new();
    for of_resource in request.resource_metrics {
        let resource = resource(of_resource.resource);
        for metric in of_resource.scope_metrics.into_iter().flat_map(|of_scope| of_scope.metrics) {
            take(metric, &resource, &mut decoded);
        }
    }
    decoded
}

fn take(metric: proto::Metric, resource: &Arc<Resource>, decoded: &mut Decoded<Metric>) {
    let Some(data) = metric.data else { return };
    let (kind, points) = match data {
        Data::Gauge(gauge) => (MetricKind::Gauge, points(gauge.data_points, number, decoded)),
        Data::Sum(sum) => {
            let delta = is_delta(sum.aggregation_temporality);
            (MetricKind::Sum { monotonic: sum.is_monotonic, delta }, points(sum.data_points, number, decoded))
        }
        Data::Histogram(histogram) => {
            let delta = is_delta(histogram.aggregation_temporality);
            (MetricKind::Histogram { delta }, points(histogram.data_points, explicit_histogram, decoded))
        }
        Data::ExponentialHistogram(histogram) => {
            let delta = is_delta(histogram.aggregation_temporality);
            (MetricKind::ExponentialHistogram { delta }, points(histogram.data_points, exponential_histogram, decoded))
        }
        Data::Summary(summary) => (MetricKind::Summary, points(summary.data_points, self::summary, decoded)),
    };
    if metric.name.is_empty() {
        decoded.reject(points.len() as u64, "a metric must have a name");
        return;
    }
    decoded.items.push(Metric {
        name: metric.name.into(),
        description: metric.description.into(),
        unit: metric.unit.into(),
        kind,
        resource: resource.clone(),
        points,
    });
}

/// `Ok(None)` is a point that says nothing was recorded: a gap, not an error.
type PointResult = Result<Option<MetricPoint>, &'static str>;

fn points<P>(protos: Vec<P>, read: fn(P) -> PointResult, decoded: &mut Decoded<Metric>) -> Vec<MetricPoint> {
    let mut points = Vec::with_capacity(protos.len());
    for proto in protos {
        match read(proto) {
            Ok(point) => points.extend(point),
            Err(why) => decoded.reject(1, why),
        }
    }
    points
}

fn is_delta(temporality: i32) -> bool {
    temporality == AggregationTemporality::Delta as i32
}

fn number(proto: proto::NumberDataPoint) -> PointResult {
    let value = match proto.value {
        _ if proto.flags & FLAG_NO_RECORDED_VALUE != 0 => return Ok(None),
        Some(Number::AsDouble(number)) if number.is_finite() => number,
        Some(Number::AsInt(number)) => number as f64,
        Some(Number::AsDouble(_)) | None => return Ok(None),
    };
    Ok(Some(MetricPoint {
        at_ns: proto.time_unix_nano,
        start_ns: proto.start_time_unix_nano,
        attributes: attributes(proto.attributes),
        value: PointValue::Number(value),
    }))
}

fn explicit_histogram(proto: proto::HistogramDataPoint) -> PointResult {
    if proto.flags & FLAG_NO_RECORDED_VALUE != 0 {
        return Ok(None);
    }
    let (bounds, counts) = (proto.explicit_bounds, proto.bucket_counts);
    let without_buckets = counts.is_empty() && bounds.is_empty();
    if !without_buckets && counts.len() != bounds.len() + 1 {
        return Err("a histogram must have one bucket count more than bounds");
    }
    if bounds.len() > BUCKETS_MAX {
        return Err("a histogram may have at most 1,024 bounds");
    }
    if !bounds.iter().all(|bound| bound.is_finite()) || !bounds.is_sorted() {
        return Err("a histogram's bounds must be finite and ascending");
    }
    let counts = if without_buckets { vec![proto.count] } else { counts };
    Ok(Some(MetricPoint {
        at_ns: proto.time_unix_nano,
        start_ns: proto.start_time_unix_nano,
        attributes: attributes(proto.attributes),
        value: PointValue::Histogram { count: proto.count, sum: proto.sum.unwrap_or(0.0), bounds, counts },
    }))
}

fn exponential_histogram(proto: proto::ExponentialHistogramDataPoint) -> PointResult {
    if proto.flags & FLAG_NO_RECORDED_VALUE != 0 {
        return Ok(None);
    }
    let positive = proto.positive.unwrap_or_default();
    let negative = proto.negative.unwrap_or_default();
    if positive.bucket_counts.len() > BUCKETS_MAX || negative.bucket_counts.len() > BUCKETS_MAX {
        return Err("an exponential histogram may have at most 1,024 buckets a side");
    }
    if !(-20..=20).contains(&proto.scale) {
        return Err("an exponential histogram's scale must be between -20 and 20");
    }
    if positive.offset.unsigned_abs() > 1 << 30 || negative.offset.unsigned_abs() > 1 << 30 {
        return Err("an exponential histogram's offset is out of range");
    }
    Ok(Some(MetricPoint {
        at_ns: proto.time_unix_nano,
        start_ns: proto.start_time_unix_nano,
        attributes: attributes(proto.attributes),
        value: PointValue::ExponentialHistogram {
            count: proto.count,
            sum: proto.sum.unwrap_or(0.0),
            scale: proto.scale,
            zero_count: proto.zero_count,
            positive_offset: positive.offset,
            positive: positive.bucket_counts,
            negative_offset: negative.offset,
            negative: negative.bucket_counts,
        },
    }))
}

fn summary(proto: proto::SummaryDataPoint) -> PointResult {
    if proto.flags & FLAG_NO_RECORDED_VALUE != 0 {
        return Ok(None);
    }
    let quantiles = proto.quantile_values.iter().take(BUCKETS_MAX).map(|at| (at.quantile, at.value)).collect();
    Ok(Some(MetricPoint {
        at_ns: proto.time_unix_nano,
        start_ns: proto.start_time_unix_nano,
        attributes: attributes(proto.attributes),
        value: PointValue::Summary { count: proto.count, sum: proto.sum, quantiles },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(metrics: &str) -> Decoded<Metric> {
        let json = format!(r#"{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{metrics}]}}]}}]}}"#);
        decode_metrics(json.as_bytes(), Encoding::Json).expect("valid")
    }

    #[test]
    fn every_kind_of_metric_is_read_from_json() {
        let decoded = decode(
            r#"{"name":"g","unit":"By","gauge":{"dataPoints":[{"timeUnixNano":"1","asInt":"-5"},{"timeUnixNano":"2","asDouble":1.5},
                {"timeUnixNano":"3","asDouble":"NaN"},{"timeUnixNano":"4","flags":1}]}},
            {"name":"s","sum":{"dataPoints":[{"timeUnixNano":"1","startTimeUnixNano":"0","asInt":3}],"aggregationTemporality":1,"isMonotonic":true}},
            {"name":"h","histogram":{"aggregationTemporality":2,"dataPoints":[{"timeUnixNano":"1","count":"3","sum":9,
                "bucketCounts":["1","2","0"],"explicitBounds":[1,10]},{"timeUnixNano":"2","count":4}]}},
            {"name":"e","exponentialHistogram":{"aggregationTemporality":"AGGREGATION_TEMPORALITY_DELTA","dataPoints":[
                {"timeUnixNano":"1","count":"2","scale":3,"zeroCount":"1","positive":{"offset":-2,"bucketCounts":["1"]}}]}},
            {"name":"q","summary":{"dataPoints":[{"timeUnixNano":"1","count":"2","sum":3,"quantileValues":[{"quantile":0.5,"value":1}]}]}}"#,
        );
        let kinds: Vec<_> = decoded.items.iter().map(|metric| (&*metric.name, metric.kind, metric.points.len())).collect();
        assert_eq!(
            kinds,
            [
                ("g", MetricKind::Gauge, 2),
                ("s", MetricKind::Sum { monotonic: true, delta: true }, 1),
                ("h", MetricKind::Histogram { delta: false }, 2),
                ("e", MetricKind::ExponentialHistogram { delta: true }, 1),
                ("q", MetricKind::Summary, 1),
            ]
        );
        assert_eq!(decoded.rejected, 0);
        assert_eq!(decoded.items[0].points[0].value, PointValue::Number(-5.0));
    }

    #[test]
    fn contradictory_histograms_are_rejected_one_by_one() {
        let decoded = decode(
            r#"{"name":"h","histogram":{"aggregationTemporality":2,"dataPoints":[
                {"count":"1","bucketCounts":["1"],"explicitBounds":[1]},{"count":"1","bucketCounts":["0","1"],"explicitBounds":[1]},
                {"count":"1","bucketCounts":["0","1","0"],"explicitBounds":[2,1]}]}},
            {"name":"e","exponentialHistogram":{"dataPoints":[{"scale":4000}]}},{"name":"","gauge":{"dataPoints":[{"asInt":"1"}]}}"#,
        );
        assert_eq!(decoded.rejected, 4);
        assert_eq!(decoded.items[0].points.len(), 1);
    }
}
