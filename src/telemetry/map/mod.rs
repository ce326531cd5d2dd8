//! Topology from real traffic: what called what over the last ten seconds.
//!
//! Exact counts from the sampler decide where they exist (gateway to services, queues); spans say the rest, scaled by the rate at
//! which they are sampled. A node keeps the column in which it first stood. Who has left, and is quiet, leaves the map too: a
//! finished load test does not stay beside what runs.

mod links;

use super::rollup::services::Services;
use super::rollup::tone::Colour;
use super::rollup::window::Window;
use super::store::origin::Origin;
use super::traffic::{Latency, QueueSample, ServiceSample, TrafficSample};
use super::view::{MapEdge, MapNode, MapQueue, NodeKind, Tone, TrafficMap};
use crate::model::service::InstanceState;
use crate::model::signal::Span;
use links::{Found, Links};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

const EDGES_MAX: usize = 2_000;
/// An edge without traffic for so long is no longer drawn, dashed or not.
const EDGE_KEPT_NS: u64 = 900_000_000_000;
/// A service or queue that is no more, and has had no traffic for so long, is no longer drawn.
const GONE_KEPT_NS: u64 = 12_000_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NodeKey {
    Caller(Arc<str>),
    Gateway,
    Service(Arc<str>, Arc<str>),
    Queue(Arc<str>, Arc<str>),
    Outside(Arc<str>),
}

impl NodeKey {
    pub fn id(&self) -> String {
        match self {
            NodeKey::Caller(name) => format!("caller:{name}"),
            NodeKey::Gateway => "gateway".to_owned(),
            NodeKey::Service(space, name) => format!("service:{space} {name}"),
            NodeKey::Queue(space, name) => format!("queue:{space} {name}"),
            NodeKey::Outside(name) => format!("outside:{name}"),
        }
    }
}

#[derive(Debug, Default)]
struct Edge {
    window: Window,
    colour: Colour,
    tone: Tone,
    counted: Option<(u64, u64, Vec<u64>)>,
}

#[derive(Debug, Default)]
struct QueueState {
    published: u64,
    delivered: u64,
    /// Exact counts, by the second.
    coming: Window,
    going: Window,
}

#[derive(Default)]
pub struct Map {
    links: Links,
    found: Vec<Found>,
    edges: BTreeMap<(NodeKey, NodeKey), Edge>,
    columns: HashMap<NodeKey, u8>,
    call_queues: HashSet<(Arc<str>, Arc<str>)>,
    queue_states: HashMap<(Arc<str>, Arc<str>), QueueState>,
    /// Since when a service has no instance, or a queue does not exist.
    gone: HashMap<NodeKey, u64>,
    services: Vec<ServiceSample>,
    queues: Vec<QueueSample>,
}

impl Map {
    // HOT
    pub fn span(&mut self, span: &Span, origin: &Origin, now_ns: u64, own_weight: f64) {
        self.links.span(span, origin, now_ns, own_weight, &mut self.found);
        self.take_found(now_ns);
    }

    /// Once a second.
    pub fn sample(&mut self, now_ns: u64, sample: TrafficSample) {
        self.links.expire(now_ns, &mut self.found);
        self.take_found(now_ns);
        if let Some(gateway) = &sample.gateway {
            for call in &gateway.services {
                let to = NodeKey::Service(call.space.clone(), call.service.clone());
                self.count(now_ns, (NodeKey::Gateway, to), call.requests, call.failed, &call.latency);
            }
        }
        for queue in &sample.queues {
            self.sample_queue(now_ns, queue);
        }
        let kept: HashSet<_> = sample.queues.iter().map(|queue| (queue.space.clone(), queue.name.clone())).collect();
        self.queue_states.retain(|key, _| kept.contains(key));
        self.call_queues.retain(|key| kept.contains(key));
        for edge in self.edges.values_mut() {
            let now = edge.window.now(now_ns);
            edge.tone = edge.colour.tone(now_ns, now.error_share(), now.p95_ns, now.count > 0.0);
        }
        (self.services, self.queues) = (sample.services, sample.queues);
        self.note_gone(now_ns);
        self.forget_quiet_edges(now_ns);
    }

    fn note_gone(&mut self, now_ns: u64) {
        let here = self.services.iter().filter(|service| service.state != InstanceState::Detached).map(key_of);
        let queues = self.queues.iter().map(|queue| NodeKey::Queue(queue.space.clone(), queue.name.clone()));
        let here: HashSet<NodeKey> = here.chain(queues).collect();
        let drawn: HashSet<NodeKey> =
            self.edges.keys().flat_map(|(from, to)| [from.clone(), to.clone()]).chain(self.services.iter().map(key_of)).collect();
        self.gone.retain(|key, _| drawn.contains(key) && !here.contains(key));
        for key in drawn {
            if matches!(key, NodeKey::Service(_, _) | NodeKey::Queue(_, _)) && !here.contains(&key) {
                self.gone.entry(key).or_insert(now_ns);
            }
        }
    }

    fn is_long_gone(&self, key: &NodeKey, now_ns: u64) -> bool {
        self.gone.get(key).is_some_and(|since| since + GONE_KEPT_NS <= now_ns)
    }

    fn forget_quiet_edges(&mut self, now_ns: u64) {
        let mut edges = std::mem::take(&mut self.edges);
        edges.retain(|(from, to), edge| {
            let kept_ns = match self.is_long_gone(from, now_ns) || self.is_long_gone(to, now_ns) {
                true => GONE_KEPT_NS,
                false => EDGE_KEPT_NS,
            };
            if edge.window.last_ns > 0 && edge.window.last_ns + kept_ns <= now_ns {
                edge.window = Window::default();
            }
            // An exact counter stays: without it all that it ever counted would seem to have come at once.
            edge.window.last_ns > 0 || edge.counted.is_some()
        });
        self.edges = edges;
    }

    fn take_found(&mut self, now_ns: u64) {
        for found in std::mem::take(&mut self.found) {
            match found {
                Found::CallQueue(space, name) => _ = self.call_queues.insert((space, name)),
                Found::Step(step) => {
                    if let Some(edge) = self.edge((step.from, step.to)) {
                        edge.window.add(now_ns, step.duration_ns, step.failed, step.weight);
                    }
                }
            }
        }
    }

    fn edge(&mut self, key: (NodeKey, NodeKey)) -> Option<&mut Edge> {
        if !self.edges.contains_key(&key) {
            if self.edges.len() >= EDGES_MAX {
                return None;
            }
            self.place(&key.0, &key.1);
        }
        Some(self.edges.entry(key).or_default())
    }

    /// The columns of an edge's ends, if they have none yet.
    fn place(&mut self, from: &NodeKey, to: &NodeKey) {
        let column = |node: &NodeKey, is_consumer: bool| match node {
            NodeKey::Caller(_) => 0,
            NodeKey::Gateway => 1,
            NodeKey::Service(_, _) if is_consumer => 4,
            NodeKey::Service(_, _) => 2,
            NodeKey::Queue(_, _) => 3,
            NodeKey::Outside(_) => 2,
        };
        self.columns.entry(from.clone()).or_insert(column(from, false));
        self.columns.entry(to.clone()).or_insert(column(to, matches!(from, NodeKey::Queue(_, _))));
    }

    fn count(&mut self, now_ns: u64, key: (NodeKey, NodeKey), requests: u64, failed: u64, latency: &Latency) {
        let Some(edge) = self.edge(key) else { return };
        let counts = latency.iter().map(|(_, count)| *count).collect();
        let (requests_before, failed_before, before) = edge.counted.replace((requests, failed, counts)).unwrap_or_default();
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let durations = latency.iter().enumerate().map(|(at, (bound_ms, count))| {
            let low_ms = if at == 0 { 0.0 } else { latency[at - 1].0 };
            let middle_ms = if bound_ms.is_finite() { (low_ms + bound_ms) / 2.0 } else { low_ms };
            ((middle_ms * 1e6) as u64, grown(*count, before.get(at).copied().unwrap_or(0)))
        });
        edge.window.add_counts(now_ns, grown(requests, requests_before), grown(failed, failed_before), durations);
    }

    fn sample_queue(&mut self, now_ns: u64, queue: &QueueSample) {
        let state = self.queue_states.entry((queue.space.clone(), queue.name.clone())).or_default();
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        state.coming.add_counts(now_ns, grown(queue.published, state.published), 0.0, std::iter::empty());
        state.going.add_counts(now_ns, grown(queue.delivered, state.delivered), 0.0, std::iter::empty());
        (state.published, state.delivered) = (queue.published, queue.delivered);
    }

    /// Queues count exactly; where one service stands alone on a side of it, that is its edge's rate.
    fn exact_rate(&self, (from, to): &(NodeKey, NodeKey), now_ns: u64) -> Option<f64> {
        let (space, name, is_coming) = match (from, to) {
            (_, NodeKey::Queue(space, name)) => (space, name, true),
            (NodeKey::Queue(space, name), _) => (space, name, false),
            _ => return None,
        };
        let state = self.queue_states.get(&(space.clone(), name.clone()))?;
        let beside = self.edges.keys().filter(|(other, other_to)| if is_coming { other_to == to } else { other == from });
        let window = if is_coming { &state.coming } else { &state.going };
        (beside.count() == 1).then(|| window.now(now_ns).rate())
    }

    pub fn view(&self, now_ns: u64, services: &Services) -> TrafficMap {
        let mut nodes: BTreeMap<NodeKey, MapNode> = BTreeMap::new();
        let mut edges = Vec::new();
        for (key, edge) in self.edges.iter().filter(|(_, edge)| edge.window.last_ns > 0) {
            let (from, to) = key;
            let hidden = |node: &NodeKey| matches!(node, NodeKey::Queue(space, name) if self.call_queues.contains(&(space.clone(), name.clone())));
            if hidden(from) || hidden(to) {
                continue;
            }
            let now = edge.window.now(now_ns);
            edges.push(MapEdge {
                from: from.id(),
                to: to.id(),
                rate: self.exact_rate(key, now_ns).unwrap_or_else(|| now.rate()),
                error_share: now.error_share(),
                p95_ns: now.p95_ns,
                tone: edge.tone,
                last_us: edge.window.last_ns / 1_000,
            });
            for node in [from, to] {
                nodes.entry(node.clone()).or_insert_with(|| self.node(node, now_ns, services));
            }
        }
        for sample in self.services.iter().filter(|sample| &*sample.name != "reactor") {
            let key = key_of(sample);
            if self.is_long_gone(&key, now_ns) {
                continue;
            }
            nodes.entry(key.clone()).or_insert_with(|| self.node(&key, now_ns, services));
        }
        for queue in self.queues.iter().filter(|queue| queue.ready + queue.unacked > 0) {
            if !self.call_queues.contains(&(queue.space.clone(), queue.name.clone())) {
                let key = NodeKey::Queue(queue.space.clone(), queue.name.clone());
                nodes.entry(key.clone()).or_insert_with(|| self.node(&key, now_ns, services));
            }
        }
        TrafficMap { nodes: nodes.into_values().collect(), edges }
    }

    fn node(&self, key: &NodeKey, now_ns: u64, services: &Services) -> MapNode {
        let (kind, column, name) = match key {
            NodeKey::Caller(name) => (NodeKind::Caller, 0, name.to_string()),
            NodeKey::Gateway => (NodeKind::Gateway, 1, "gateway".to_owned()),
            NodeKey::Service(_, name) => (NodeKind::Service, 2, name.to_string()),
            NodeKey::Queue(_, name) => (NodeKind::Queue, 3, name.to_string()),
            NodeKey::Outside(name) => (NodeKind::Outside, 2, name.to_string()),
        };
        let mut node = MapNode {
            id: key.id(),
            kind,
            column: self.columns.get(key).copied().unwrap_or(column),
            name,
            slot: None,
            state: None,
            tone: Tone::Normal,
            rate: None,
            error_share: None,
            p95_ns: None,
            instances: Vec::new(),
            queue: None,
        };
        match key {
            NodeKey::Gateway => self.fill_service(&mut node, "/", "gateway", now_ns, services),
            NodeKey::Service(space, name) => self.fill_service(&mut node, space, name, now_ns, services),
            NodeKey::Queue(space, name) => self.fill_queue(&mut node, space, name, now_ns),
            NodeKey::Caller(_) => self.fill_from_edges(&mut node, now_ns, |(from, _)| from == key),
            NodeKey::Outside(_) => self.fill_from_edges(&mut node, now_ns, |(_, to)| to == key),
        }
        node
    }

    fn fill_service(&self, node: &mut MapNode, space: &str, name: &str, now_ns: u64, services: &Services) {
        let sample = self.services.iter().find(|sample| *sample.space == *space && *sample.name == *name);
        if let Some(sample) = sample {
            node.slot = Some(sample.slot);
            node.state = Some(sample.state);
            node.instances = sample.instances.clone();
        }
        if let Some(service) = services.get(space, name) {
            let red = service.red(now_ns);
            (node.tone, node.rate, node.error_share, node.p95_ns) = (red.tone, red.rate, red.error_share, red.p95_ns);
        }
        if sample.is_some_and(|sample| sample.state == InstanceState::Failing) {
            node.tone = Tone::Err;
        }
    }

    fn fill_queue(&self, node: &mut MapNode, space: &Arc<str>, name: &Arc<str>, now_ns: u64) {
        let Some(queue) = self.queues.iter().find(|queue| queue.space == *space && queue.name == *name) else { return };
        node.queue =
            Some(MapQueue { ready: queue.ready, unacked: queue.unacked, limit: queue.limit, wait_ns: queue.wait_p95_ns });
        node.tone = queue.tone;
        let Some(state) = self.queue_states.get(&(space.clone(), name.clone())) else { return };
        node.rate = Some(state.going.now(now_ns).rate());
    }

    fn fill_from_edges(&self, node: &mut MapNode, now_ns: u64, of_node: impl Fn(&(NodeKey, NodeKey)) -> bool) {
        let (mut count, mut failed, mut p95_ns) = (0.0, 0.0, None);
        for (_, edge) in self.edges.iter().filter(|(key, _)| of_node(key)) {
            let now = edge.window.now(now_ns);
            count += now.rate();
            failed += now.rate() * now.error_share();
            p95_ns = p95_ns.max(now.p95_ns);
        }
        node.rate = Some(count);
        node.error_share = (count > 0.0).then(|| failed / count);
        node.p95_ns = p95_ns;
    }
}

fn key_of(service: &ServiceSample) -> NodeKey {
    match &*service.name {
        "gateway" => NodeKey::Gateway,
        _ => NodeKey::Service(service.space.clone(), service.name.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::traffic::{CallSample, GatewaySample};

    const S: u64 = 1_000_000_000;

    fn queue(ready: u64, delivered: u64) -> QueueSample {
        QueueSample {
            space: "/".into(),
            name: "worker.orders".into(),
            ready,
            unacked: 0,
            limit: None,
            wait_p95_ns: Some(7),
            tone: Tone::Normal,
            published: 0,
            delivered,
            consumers: vec!["worker".into()],
        }
    }

    fn service(name: &str, state: InstanceState) -> ServiceSample {
        ServiceSample { space: "/".into(), name: name.into(), slot: 2, state, instances: vec![state] }
    }

    fn sample(requests: u64, ready: u64) -> TrafficSample {
        let latency = vec![(2.0, requests), (f64::INFINITY, 0)];
        let call = CallSample { space: "/".into(), service: "orders".into(), requests, failed: 0, latency: latency.clone() };
        TrafficSample {
            services: vec![service("gateway", InstanceState::Ready), service("orders", InstanceState::Ready)],
            gateway: Some(GatewaySample { requests, failed: 0, latency, services: vec![call] }),
            queues: vec![queue(ready, requests)],
        }
    }

    fn fed(ready: impl Fn(u64) -> u64, seconds: u64) -> (Map, Services) {
        let (mut map, mut services) = (Map::default(), Services::default());
        for second in 0..seconds {
            let sample = sample(second * 4, ready(second));
            services.sample((100 + second) * S, &sample);
            map.sample((100 + second) * S, sample);
        }
        (map, services)
    }

    #[test]
    fn exact_counts_make_the_edges_and_every_service_has_its_node() {
        let (map, services) = fed(|_| 3, 12);
        let view = map.view(111 * S + 1, &services);
        let ids: Vec<_> = view.nodes.iter().map(|node| (node.id.as_str(), node.column)).collect();
        assert_eq!(ids, [("gateway", 1), ("service:/ orders", 2), ("queue:/ worker.orders", 3)]);
        assert_eq!(view.edges.len(), 1);
        assert_eq!((view.edges[0].to.as_str(), view.edges[0].rate), ("service:/ orders", 4.0));
        assert_eq!(view.nodes[1].slot, Some(2));
        assert_eq!(view.nodes[1].rate, Some(4.0));
        assert_eq!(view.nodes[2].queue.as_ref().map(|queue| queue.ready), Some(3));
        assert_eq!(view.nodes[2].rate, Some(4.0), "delivered, exactly");
    }

    #[test]
    fn a_queue_has_the_tone_that_its_sample_has() {
        let (mut map, services) = (Map::default(), Services::default());
        for (second, tone) in [(100, Tone::Normal), (101, Tone::Warn), (102, Tone::Normal)] {
            let queues = vec![QueueSample { tone, ..queue(second, 0) }];
            map.sample(second * S, TrafficSample { queues, ..TrafficSample::default() });
            let nodes = map.view(second * S, &services).nodes;
            assert_eq!(nodes.iter().map(|node| node.tone).collect::<Vec<_>>(), [tone]);
        }
    }

    #[test]
    fn an_edge_without_traffic_stays_with_its_last_time_and_goes_after_the_range() {
        let (mut map, services) = fed(|_| 0, 12);
        map.sample(500 * S, sample(44, 0));
        let view = map.view(500 * S, &services);
        assert_eq!((view.edges[0].rate, view.edges[0].last_us), (0.0, 111_000_000));
        for second in [2_000, 2_001] {
            map.sample(second * S, sample(44, 0));
            assert!(map.view(second * S, &services).edges.is_empty(), "what was counted long ago is no traffic of now");
        }
        map.sample(2_002 * S, sample(45, 0));
        assert_eq!(map.view(2_003 * S, &services).edges[0].rate, 0.1);
    }

    #[test]
    fn a_service_that_left_and_is_quiet_leaves_the_map_and_one_that_comes_back_returns() {
        let (mut map, services) = fed(|_| 0, 12);
        let left = |requests: u64, state: InstanceState| {
            let mut sample = sample(requests, 0);
            sample.services[1].state = state;
            sample.queues.clear();
            sample
        };
        let shown = |map: &Map, second: u64| map.view(second * S, &services).nodes.iter().any(|node| node.name == "orders");
        for second in 112..130 {
            map.sample(second * S, left(44, InstanceState::Detached));
            assert_eq!(shown(&map, second), second < 124, "{second}");
        }
        map.sample(130 * S, left(45, InstanceState::Detached));
        assert!(shown(&map, 130), "it is called and does not answer: that is worth seeing");
        map.sample(150 * S, left(45, InstanceState::Detached));
        assert!(!shown(&map, 150));
        map.sample(151 * S, left(45, InstanceState::Ready));
        assert!(shown(&map, 151));
    }
}
