//! The state channels of the live feed: once a second, everything that has a last value and is watched, keyed as `ui/src/api/types` says.

use super::board::Key;
use super::{Sources, broker, doors, overview, services};
use crate::gateway::stats::LATENCY_BOUNDS_MS;
use crate::model::service::InstanceState;
use crate::telemetry::live::Channel;
use crate::telemetry::traffic::{CallSample, GatewaySample, Latency, QueueSample, ServiceSample, TrafficSample};
use crate::telemetry::view::{Tape, TrafficMap};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

type Values = BTreeMap<Arc<str>, Arc<RawValue>>;

impl Sources {
    /// One beat of the sampler: rates are taken, telemetry gets its exact counts, and every state channel that somebody watches its
    /// values.
    pub fn beat(&self) {
        self.board.look(self, self.clock.now());
        let services = services(self);
        self.telemetry.sample(self.traffic(&services));
        let live = self.telemetry.live();
        for channel in Channel::STATES.into_iter().filter(|channel| live.is_watched(*channel)) {
            live.replace(channel, self.values(channel, &services));
        }
    }

    /// Gives a state channel its values now, for a subscriber that should not wait for the next beat.
    pub fn fill(&self, channel: Channel) {
        let live = self.telemetry.live();
        if channel.is_state() && live.is_blank(channel) {
            live.replace(channel, self.values(channel, &services(self)));
        }
    }

    fn values(&self, channel: Channel, services: &[super::Service]) -> Values {
        let named = |space: &str, name: &str| format!("{space} {name}");
        match channel {
            Channel::Services => services.iter().map(|s| value(named(&s.space, &s.name), s)).collect(),
            Channel::Queues => broker::queues(self).iter().map(|q| value(named(&q.space, &q.name), q)).collect(),
            Channel::Exchanges => broker::exchanges(self).iter().map(|e| value(named(&e.space, &e.name), e)).collect(),
            Channel::Connections => broker::connections(self).iter().map(|c| value(c.id.to_string(), c)).collect(),
            Channel::Doors => doors(self).iter().map(|door| value(door.name.to_owned(), door)).collect(),
            Channel::Overview => fields(&overview(self, services)),
            Channel::Map => map(&self.telemetry.map()),
            Channel::Tape => tape(&self.telemetry.tape(None, None)),
            Channel::Logs | Channel::Traces | Channel::Happenings | Channel::Console => Values::new(),
        }
    }

    fn traffic(&self, services: &[super::Service]) -> TrafficSample {
        let stats = self.gateway.stats();
        let call = |counts: &crate::gateway::stats::ServiceCounts| CallSample {
            space: counts.space.clone(),
            service: counts.service.clone(),
            requests: counts.counts.requests,
            failed: counts.counts.failed,
            latency: latency(&counts.counts.latency),
        };
        let gateway = GatewaySample {
            requests: stats.total.requests,
            failed: stats.total.failed,
            latency: latency(&stats.total.latency),
            services: stats.services.iter().map(call).collect(),
        };
        TrafficSample { services: services.iter().map(sample).collect(), gateway: Some(gateway), queues: self.queue_samples() }
    }

    fn queue_samples(&self) -> Vec<QueueSample> {
        let mut consumers: HashMap<Key, Vec<Arc<str>>> = HashMap::new();
        for consumer in self.broker.consumers() {
            let Some(service) = consumer.service else { continue };
            let known = consumers.entry((consumer.space, consumer.queue)).or_default();
            if !known.contains(&service) {
                known.push(service);
            }
        }
        let rates = self.board.rates();
        let mut samples = Vec::new();
        for view in self.broker.vhosts().iter().flat_map(|vhost| vhost.queues_in_use()) {
            let key = (view.space.clone(), view.name.clone());
            let rate = rates.queues.get(&key).copied().unwrap_or_default();
            samples.push(QueueSample {
                ready: view.ready,
                unacked: view.unacked,
                limit: view
                    .arguments
                    .get("x-max-length")
                    .and_then(|max| max.as_integer())
                    .and_then(|max| u64::try_from(max).ok()),
                wait_p95_ns: rate.wait_p95_ns,
                tone: rate.tone,
                published: view.counts.published,
                delivered: view.counts.delivered,
                consumers: consumers.remove(&key).unwrap_or_default(),
                space: view.space,
                name: view.name,
            });
        }
        samples
    }
}

/// The gateway's buckets with their bounds; what is slower than the last bound stands behind infinity.
fn latency(counts: &[u64]) -> Latency {
    LATENCY_BOUNDS_MS.iter().copied().chain([f64::INFINITY]).zip(counts.iter().copied()).collect()
}

fn sample(service: &super::Service) -> ServiceSample {
    let instances: Vec<InstanceState> = service.instances.iter().map(|instance| instance.state).collect();
    ServiceSample {
        space: service.space.clone(),
        name: service.name.clone(),
        slot: service.slot,
        state: service.state,
        instances,
    }
}

fn value(key: String, value: &impl Serialize) -> (Arc<str>, Arc<RawValue>) {
    let raw = to_raw_value(value).expect("views are plain data with text keys");
    (key.into(), Arc::from(raw))
}

/// A struct as one value a field, so that a changed clock does not send everything again.
fn fields(whole: &impl Serialize) -> Values {
    let whole = to_raw_value(whole).expect("views are plain data with text keys");
    let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(whole.get()).expect("a struct serialises to an object");
    fields.into_iter().map(|(key, raw)| (key.into(), Arc::from(raw))).collect()
}

fn map(map: &TrafficMap) -> Values {
    let nodes = map.nodes.iter().map(|node| value(format!("node {}", node.id), node));
    let edges = map.edges.iter().map(|edge| value(format!("edge {} > {}", edge.from, edge.to), edge));
    nodes.chain(edges).collect()
}

fn tape(tape: &Tape) -> Values {
    #[derive(Serialize)]
    struct Frame<'a> {
        from_us: u64,
        bucket_us: u64,
        markers: &'a [crate::telemetry::view::Marker],
        gaps: &'a [crate::telemetry::view::Gap],
    }
    let frame = Frame { from_us: tape.from_us, bucket_us: tape.bucket_us, markers: &tape.markers, gaps: &tape.gaps };
    let buckets = tape.requests.iter().zip(&tape.failed).enumerate();
    let buckets = buckets.map(|(at, counts)| value((tape.from_us + at as u64 * tape.bucket_us).to_string(), &counts));
    buckets.chain([value("frame".to_owned(), &frame)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tape_is_one_value_a_bucket_and_one_for_the_rest() {
        let values = tape(&Tape {
            from_us: 5_000_000,
            bucket_us: 5_000_000,
            requests: vec![Some(3), None],
            failed: vec![Some(1), None],
            markers: vec![],
            gaps: vec![],
        });
        assert_eq!(values["5000000"].get(), "[3,1]");
        assert_eq!(values["10000000"].get(), "[null,null]");
        assert_eq!(values["frame"].get(), r#"{"from_us":5000000,"bucket_us":5000000,"markers":[],"gaps":[]}"#);
    }

    #[test]
    fn a_struct_becomes_one_value_a_field() {
        #[derive(Serialize)]
        struct Sample {
            a: u8,
            b: Vec<u8>,
        }
        let values = fields(&Sample { a: 1, b: vec![2] });
        assert_eq!((values["a"].get(), values["b"].get()), ("1", "[2]"));
    }
}
