//! Engine metrics: once a second the counters of gateway, broker, doors and process become points of the service `reactor`.
//! Names and units are agreed with the dashboard in `ui/src/api/types`.

use crate::api::view::Sources;
use crate::gateway::stats::{Counts, LATENCY_BOUNDS_MS};
use crate::kernel::platform;
use crate::model::signal::{Attributes, Metric, MetricKind, MetricPoint, PointValue, Resource, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Queues that get series of their own; a program that makes thousands of reply queues must not fill the store.
const QUEUES_MAX: usize = 500;

const COUNTER: MetricKind = MetricKind::Sum { monotonic: true, delta: false };
const GAUGE: MetricKind = MetricKind::Gauge;

/// The resource that engine metrics and own log records belong to.
pub fn own_resource() -> Arc<Resource> {
    Arc::new(Resource {
        service: "reactor".into(),
        instance: "reactor".into(),
        attributes: vec![(Cow::Borrowed("service.version"), Value::from(env!("CARGO_PKG_VERSION")))],
    })
}

/// Everything of this second.
pub fn gather(sources: &Sources, resource: &Arc<Resource>) -> Vec<Metric> {
    let batch = Batch { resource, at_ns: sources.clock.unix_nanos(), start_ns: sources.started_us() * 1_000 };
    let mut metrics = Vec::new();
    batch.gateway(&sources.gateway.stats().total, &mut metrics);
    batch.broker(sources, &mut metrics);
    batch.queues(sources, &mut metrics);
    batch.doors(sources, &mut metrics);
    batch.process(&mut metrics);
    metrics
}

struct Batch<'a> {
    resource: &'a Arc<Resource>,
    at_ns: u64,
    start_ns: u64,
}

impl Batch<'_> {
    fn metric(&self, name: &str, unit: &str, description: &str, kind: MetricKind, points: Vec<MetricPoint>) -> Metric {
        Metric {
            name: name.into(),
            description: description.into(),
            unit: unit.into(),
            kind,
            resource: self.resource.clone(),
            points,
        }
    }

    fn point(&self, attributes: Attributes, value: PointValue) -> MetricPoint {
        MetricPoint { at_ns: self.at_ns, start_ns: self.start_ns, attributes, value }
    }

    fn number(&self, value: f64) -> Vec<MetricPoint> {
        vec![self.point(Vec::new(), PointValue::Number(value))]
    }

    fn gateway(&self, total: &Counts, metrics: &mut Vec<Metric>) {
        let requests = "Requests answered by the gateway";
        metrics.push(self.metric("reactor.gateway.requests", "{request}", requests, COUNTER, self.number(total.requests as f64)));
        let failed = "Requests answered with 5xx or cut midway";
        metrics.push(self.metric("reactor.gateway.failed", "{request}", failed, COUNTER, self.number(total.failed as f64)));
        let in_flight = "Requests being answered";
        metrics.push(self.metric(
            "reactor.gateway.in_flight",
            "{request}",
            in_flight,
            GAUGE,
            self.number(total.in_flight as f64),
        ));
        let value = PointValue::Histogram {
            count: total.latency.iter().sum(),
            sum: total.latency_sum_ms / 1_000.0,
            bounds: LATENCY_BOUNDS_MS.iter().map(|bound| bound / 1_000.0).collect(),
            counts: total.latency.to_vec(),
        };
        let points = vec![self.point(Vec::new(), value)];
        let kind = MetricKind::Histogram { delta: false };
        metrics.push(self.metric("reactor.gateway.duration", "s", "From the request's head to the answer's end", kind, points));
    }

    fn broker(&self, sources: &Sources, metrics: &mut Vec<Metric>) {
        let totals = sources.broker.totals();
        let counters = [
            ("reactor.messages.published", "Messages published", totals.published),
            ("reactor.messages.delivered", "Messages delivered to consumers and by get", totals.delivered),
            ("reactor.messages.acked", "Messages acknowledged", totals.acked),
            ("reactor.messages.confirmed", "Publisher confirms sent", totals.confirmed),
            ("reactor.messages.unroutable", "Messages that no queue wanted", totals.unroutable),
        ];
        for (name, description, value) in counters {
            metrics.push(self.metric(name, "{message}", description, COUNTER, self.number(value as f64)));
        }
        let gauges = [
            ("reactor.broker.queues", "{queue}", "Queues", totals.queues),
            ("reactor.broker.connections", "{connection}", "AMQP connections", totals.connections),
            ("reactor.broker.channels", "{channel}", "AMQP channels", totals.channels),
            ("reactor.broker.consumers", "{consumer}", "Consumers", totals.consumers),
            ("reactor.broker.queue_bytes", "By", "Messages held in queues", totals.queue_bytes),
        ];
        for (name, unit, description, value) in gauges {
            metrics.push(self.metric(name, unit, description, GAUGE, self.number(value as f64)));
        }
    }

    fn queues(&self, sources: &Sources, metrics: &mut Vec<Metric>) {
        let rates = sources.board.rates();
        let (mut published, mut delivered, mut ready, mut unacked, mut wait) = (vec![], vec![], vec![], vec![], vec![]);
        for queue in sources.broker.vhosts().iter().flat_map(|vhost| vhost.queues_in_use()).take(QUEUES_MAX) {
            let attributes: Attributes = vec![
                (Cow::Borrowed("space"), Value::Text(queue.space.clone())),
                (Cow::Borrowed("queue"), Value::Text(queue.name.clone())),
            ];
            let add = |to: &mut Vec<MetricPoint>, value: f64| to.push(self.point(attributes.clone(), PointValue::Number(value)));
            add(&mut published, queue.counts.published as f64);
            add(&mut delivered, queue.counts.delivered as f64);
            add(&mut ready, queue.ready as f64);
            add(&mut unacked, queue.unacked as f64);
            let key = (queue.space.clone(), queue.name.clone());
            if let Some(wait_ns) = rates.queues.get(&key).and_then(|rate| rate.wait_p95_ns) {
                add(&mut wait, wait_ns as f64 / 1e9);
            }
        }
        let series = [
            ("reactor.queue.published", "{message}", "Messages put into the queue", COUNTER, published),
            ("reactor.queue.delivered", "{message}", "Messages delivered out of the queue", COUNTER, delivered),
            ("reactor.queue.ready", "{message}", "Messages waiting", GAUGE, ready),
            ("reactor.queue.unacked", "{message}", "Messages delivered and not yet acknowledged", GAUGE, unacked),
            ("reactor.queue.wait", "s", "95th percentile of the wait of messages delivered since the last point", GAUGE, wait),
        ];
        for (name, unit, description, kind, points) in series {
            if !points.is_empty() {
                metrics.push(self.metric(name, unit, description, kind, points));
            }
        }
    }

    fn doors(&self, sources: &Sources, metrics: &mut Vec<Metric>) {
        let (mut accepted, mut open) = (vec![], vec![]);
        for door in sources.doors.iter().filter(|door| !door.addresses.is_empty()) {
            let attributes: Attributes = vec![(Cow::Borrowed("port"), Value::from(door.name.as_str()))];
            accepted.push(self.point(attributes.clone(), PointValue::Number(door.counts.accepted.get() as f64)));
            open.push(self.point(attributes, PointValue::Number(door.counts.open.get() as f64)));
        }
        let described = "Connections accepted by port";
        metrics.push(self.metric("reactor.door.accepted", "{connection}", described, COUNTER, accepted));
        metrics.push(self.metric("reactor.door.open", "{connection}", "Connections open by port", GAUGE, open));
    }

    fn process(&self, metrics: &mut Vec<Metric>) {
        let usage = platform::own_usage();
        let cpu = "Processor time of all threads";
        metrics.push(self.metric("process.cpu.time", "s", cpu, COUNTER, self.number(usage.cpu.as_secs_f64())));
        let memory = "Resident memory";
        metrics.push(self.metric("process.memory.usage", "By", memory, GAUGE, self.number(usage.memory_bytes as f64)));
    }
}
