//! Who calls whom, from spans: a span and its parent, when both came, in whichever order.
//!
//! ```text
//!   gateway's request        parent came: its service ▶ gateway        else after WAIT: caller ▶ gateway
//!   wait of a message        parent is a publish: publisher ▶ queue    a call's queue is only remembered as one
//!   work on a message        parent is a publish: queue ▶ consumer     of a call: publisher ▶ consumer; else after WAIT: queue ▶ consumer
//!   client span of a service its child came: service ▶ service         else after WAIT: service ▶ outside
//!   gateway's own call       nothing: the gateway counts those exactly
//! ```
//!
//! Waiting is needed because SDKs send in batches. What is remembered is bounded; under a flood whole traces are left out here and
//! the rest stands for them.

use super::NodeKey;
use crate::model::signal::{Span, SpanId, SpanKind, SpanStatus, Value};
use crate::model::topology::CALL_EXCHANGE;
use crate::telemetry::store::origin::Origin;
use crate::telemetry::store::traces::OWN_SCOPE;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How long a span's child or parent may be late; SDKs send every five seconds.
const WAIT_NS: u64 = 7_000_000_000;
/// Spans remembered at most.
const RECENT_MAX: usize = 65_536;
/// Spans a second looked at before whole traces are left out.
const SPANS_PER_SECOND: f64 = 8_000.0;

/// One observed step from one node to another.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub from: NodeKey,
    pub to: NodeKey,
    pub duration_ns: u64,
    pub failed: bool,
    pub weight: f64,
}

/// What `links` found in a span.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Step(Step),
    /// Calls go through this queue: it is not drawn as a place where messages rest.
    CallQueue(Arc<str>, Arc<str>),
}

#[derive(Debug, Default)]
pub struct Links {
    recent: HashMap<SpanId, Recent>,
    order: VecDeque<(u64, SpanId)>,
    /// Spans whose parent has not come, by that parent.
    orphans: HashMap<SpanId, Vec<SpanId>>,
    second: u64,
    seen_in_second: u32,
    share: f64,
}

#[derive(Debug)]
struct Recent {
    service: NodeKey,
    space: Arc<str>,
    role: Role,
    parent: Option<SpanId>,
    duration_ns: u64,
    failed: bool,
    weight: f64,
    /// A step was already found that explains it.
    settled: bool,
}

#[derive(Debug)]
enum Role {
    /// A request at the gateway, from this kind of client.
    Entry(Arc<str>),
    /// A call of the gateway's to this service, counted exactly elsewhere.
    GatewayCall(Option<Arc<str>>),
    /// A message waited in this queue.
    Wait(Arc<str>),
    /// A message from this queue was worked on: the runtime saw the delivery.
    Work(Arc<str>),
    Publish {
        is_call: bool,
    },
    /// A client span of a service, and what it says it calls.
    Client(Option<Arc<str>>),
    Served,
}

impl Links {
    // HOT
    pub fn span(&mut self, span: &Span, origin: &Origin, now_ns: u64, own_weight: f64, found: &mut Vec<Found>) {
        let own = &*span.scope == OWN_SCOPE;
        let share = self.share_of_now(now_ns);
        let low = u64::from_be_bytes(span.trace_id.0[8..].try_into().expect("the last 8 of 16 bytes"));
        // The top bits decide which traces the runtime records, so others decide here.
        let draw = low.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
        if draw as f64 / u64::MAX as f64 > share {
            return;
        }
        let weight = if own { own_weight } else { 1.0 } / share;
        let Some(role) = role_of(span, own) else { return };
        let recent = Recent {
            service: node_of(origin),
            space: origin.space.clone(),
            role,
            parent: span.parent,
            duration_ns: span.end_ns.saturating_sub(span.start_ns),
            failed: matches!(span.status, SpanStatus::Error(_)),
            weight,
            settled: false,
        };
        self.remember(span.span_id, recent, now_ns, found);
    }

    /// Settles what nobody will explain any more. Call about once a second.
    pub fn expire(&mut self, now_ns: u64, found: &mut Vec<Found>) {
        while let Some((due, id)) = self.order.front().copied() {
            if due > now_ns && self.order.len() <= RECENT_MAX {
                return;
            }
            self.order.pop_front();
            let Some(recent) = self.recent.remove(&id) else { continue };
            if let Some(parent) = recent.parent {
                self.orphans.remove(&parent);
            }
            let step = |from: NodeKey, to: NodeKey| {
                let (duration_ns, failed, weight) = (recent.duration_ns, recent.failed, recent.weight);
                Found::Step(Step { from, to, duration_ns, failed, weight })
            };
            match recent.role {
                _ if recent.settled => {}
                Role::Entry(ref caller) => found.push(step(NodeKey::Caller(caller.clone()), NodeKey::Gateway)),
                Role::Client(Some(ref outside)) => found.push(step(recent.service.clone(), NodeKey::Outside(outside.clone()))),
                Role::Work(ref queue) => {
                    let queue = NodeKey::Queue(recent.space.clone(), queue.clone());
                    found.push(step(queue, recent.service.clone()));
                }
                Role::Client(None) | Role::GatewayCall(_) | Role::Wait(_) | Role::Publish { .. } | Role::Served => {}
            }
        }
    }

    /// The share of traces looked at, so that about [`SPANS_PER_SECOND`] spans are.
    fn share_of_now(&mut self, now_ns: u64) -> f64 {
        let second = now_ns / 1_000_000_000;
        if second != self.second {
            let rate = if second == self.second + 1 { f64::from(self.seen_in_second) } else { 0.0 };
            (self.second, self.seen_in_second) = (second, 0);
            self.share = (SPANS_PER_SECOND / rate.max(1.0)).min(1.0);
        }
        self.seen_in_second += 1;
        self.share
    }

    fn remember(&mut self, id: SpanId, mut recent: Recent, now_ns: u64, found: &mut Vec<Found>) {
        if let Some(parent_id) = recent.parent {
            match self.recent.get_mut(&parent_id) {
                Some(parent) => join(parent, &mut recent, found),
                None if self.orphans.len() < RECENT_MAX => self.orphans.entry(parent_id).or_default().push(id),
                None => {}
            }
        }
        for child in self.orphans.remove(&id).unwrap_or_default() {
            if let Some(child) = self.recent.get_mut(&child) {
                join(&mut recent, child, found);
            }
        }
        self.recent.insert(id, recent);
        self.order.push_back((now_ns + WAIT_NS, id));
        if self.order.len() > RECENT_MAX {
            self.expire(now_ns, found);
        }
    }
}

/// A parent and its child, both known now.
fn join(parent: &mut Recent, child: &mut Recent, found: &mut Vec<Found>) {
    if child.settled {
        return;
    }
    let Some((from, to)) = step_between(parent, child, found) else { return };
    child.settled = true;
    // A client span is explained by who answers it; any other parent has a parent of its own to be joined with.
    parent.settled |= matches!(parent.role, Role::Client(_));
    if from != to {
        let (duration_ns, failed) = (child.duration_ns, child.failed || parent.failed);
        found.push(Found::Step(Step { from, to, duration_ns, failed, weight: child.weight }));
    }
}

/// What the pair says; equal ends where it explains the child and draws nothing.
fn step_between(parent: &Recent, child: &Recent, found: &mut Vec<Found>) -> Option<(NodeKey, NodeKey)> {
    let explained = Some((child.service.clone(), child.service.clone()));
    match (&parent.role, &child.role) {
        // A request made while answering a call of the gateway's comes from whoever was called.
        (Role::GatewayCall(Some(callee)), Role::Entry(_)) => {
            Some((NodeKey::Service(parent.space.clone(), callee.clone()), NodeKey::Gateway))
        }
        (_, Role::Entry(_)) => Some((parent.service.clone(), NodeKey::Gateway)),
        // Calls go through a queue that is not drawn; what the gateway hands over is counted there.
        (Role::GatewayCall(_) | Role::Publish { is_call: true }, Role::Wait(queue)) => {
            found.push(Found::CallQueue(child.space.clone(), queue.clone()));
            explained
        }
        (Role::GatewayCall(_), Role::Work(_)) => explained,
        (Role::Publish { is_call: true }, Role::Work(_)) if parent.service == NodeKey::Gateway => explained,
        (Role::Publish { is_call: true }, Role::Work(_)) => Some((parent.service.clone(), child.service.clone())),
        (Role::Publish { is_call: false }, Role::Wait(queue)) => {
            Some((parent.service.clone(), NodeKey::Queue(parent.space.clone(), queue.clone())))
        }
        (_, Role::Work(queue)) => Some((NodeKey::Queue(child.space.clone(), queue.clone()), child.service.clone())),
        (Role::Client(_), Role::Served) => Some((parent.service.clone(), child.service.clone())),
        // An instrumented client of the bus: the broker's own span says more. What the bus or the gateway handed to an
        // instrumented service is counted where it was handed over.
        (Role::Client(_), Role::Publish { .. }) | (Role::GatewayCall(_) | Role::Work(_) | Role::Publish { .. }, Role::Served) => {
            explained
        }
        _ => None,
    }
}

fn role_of(span: &Span, own: bool) -> Option<Role> {
    if own {
        return match span.kind {
            SpanKind::Server => Some(Role::Entry(text(span, "reactor.caller").unwrap_or_else(|| Arc::from("unknown")))),
            SpanKind::Client => Some(Role::GatewayCall(text(span, "reactor.service"))),
            SpanKind::Producer => {
                let destination = text(span, "messaging.destination.name");
                Some(Role::Publish { is_call: destination.is_some_and(|name| &*name == CALL_EXCHANGE) })
            }
            SpanKind::Consumer => text(span, "messaging.destination.name").map(Role::Work),
            SpanKind::Internal if is_wait(span) => text(span, "messaging.destination.name").map(Role::Wait),
            SpanKind::Internal => None,
        };
    }
    let on_our_bus = || text(span, "messaging.system").is_some_and(|system| &*system == "rabbitmq");
    match span.kind {
        SpanKind::Client => Some(Role::Client(outside(span))),
        // The bus itself sees both ends of its messages.
        SpanKind::Producer => Some(Role::Client(text(span, "messaging.system").filter(|system| &**system != "rabbitmq"))),
        SpanKind::Consumer if on_our_bus() => None,
        SpanKind::Server | SpanKind::Consumer => Some(Role::Served),
        // A span in between may be the parent of a gateway request: scripts without a client span.
        SpanKind::Internal => Some(Role::Client(None)),
    }
}

/// What a client span says it calls, by the names of old and new semantic conventions.
fn outside(span: &Span) -> Option<Arc<str>> {
    let names =
        ["peer.service", "db.system.name", "db.system", "messaging.system", "rpc.service", "server.address", "net.peer.name"];
    names.iter().find_map(|name| text(span, name))
}

fn text(span: &Span, name: &str) -> Option<Arc<str>> {
    let (_, value) = span.attributes.iter().find(|(key, _)| key == name)?;
    match value {
        Value::Text(text) if !text.is_empty() => Some(text.clone()),
        _ => None,
    }
}

fn is_wait(span: &Span) -> bool {
    span.attributes.iter().any(|(key, value)| key == "reactor.wait" && *value == Value::Bool(true))
}

fn node_of(origin: &Origin) -> NodeKey {
    match &**origin.service() {
        "gateway" => NodeKey::Gateway,
        _ => NodeKey::Service(origin.space.clone(), origin.service().clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{Attributes, Resource, TraceId};
    use crate::telemetry::store::origin::Origins;

    const S: u64 = 1_000_000_000;

    #[derive(Default)]
    struct Bench {
        links: Links,
        origins: Origins,
        found: Vec<Found>,
    }

    impl Bench {
        fn span(&mut self, service: &str, scope: &str, kind: SpanKind, (id, parent): (u8, Option<u8>), attributes: Attributes) {
            let resource = Arc::new(Resource { service: service.into(), instance: "".into(), attributes: vec![] });
            let span = Span {
                trace_id: TraceId([1; 16]),
                span_id: SpanId([id; 8]),
                parent: parent.map(|id| SpanId([id; 8])),
                name: "x".into(),
                kind,
                start_ns: S,
                end_ns: S + 5,
                status: SpanStatus::Unset,
                resource: resource.clone(),
                scope: scope.into(),
                attributes,
                events: vec![],
                links: vec![],
            };
            let origin = self.origins.of(&resource);
            self.links.span(&span, &origin, S, 1.0, &mut self.found);
        }

        fn steps(&mut self, now_ns: u64) -> Vec<String> {
            self.links.expire(now_ns, &mut self.found);
            let text = |found: Found| match found {
                Found::Step(step) => format!("{} > {}", step.from.id(), step.to.id()),
                Found::CallQueue(_, queue) => format!("calls {queue}"),
            };
            self.found.drain(..).map(text).collect()
        }
    }

    fn destination(name: &str) -> (std::borrow::Cow<'static, str>, Value) {
        ("messaging.destination.name".into(), name.into())
    }

    #[test]
    fn a_request_without_a_known_parent_is_from_its_kind_of_client() {
        let mut bench = Bench::default();
        bench.span("gateway", "reactor", SpanKind::Server, (1, Some(99)), vec![("reactor.caller".into(), "curl".into())]);
        assert!(bench.steps(S).is_empty(), "the parent may still come");
        assert_eq!(bench.steps(9 * S), ["caller:curl > gateway"]);
    }

    #[test]
    fn a_request_of_an_instrumented_service_is_from_that_service_in_either_order() {
        for parent_first in [true, false] {
            let mut bench = Bench::default();
            let client = |bench: &mut Bench| {
                bench.span("web", "http", SpanKind::Client, (1, None), vec![("server.address".into(), "localhost".into())])
            };
            if parent_first {
                client(&mut bench);
            }
            bench.span("gateway", "reactor", SpanKind::Server, (2, Some(1)), vec![("reactor.caller".into(), "node".into())]);
            if !parent_first {
                client(&mut bench);
            }
            assert_eq!(bench.steps(9 * S), ["service:/ web > gateway"]);
        }
    }

    #[test]
    fn a_call_between_services_and_one_to_the_outside_differ_by_whether_a_server_answers_in_the_trace() {
        let mut bench = Bench::default();
        bench.span("orders", "http", SpanKind::Client, (1, None), vec![("server.address".into(), "payments".into())]);
        bench.span("payments", "http", SpanKind::Server, (2, Some(1)), vec![]);
        bench.span("payments", "pg", SpanKind::Client, (3, Some(2)), vec![("db.system".into(), "postgresql".into())]);
        assert_eq!(bench.steps(9 * S), ["service:/ orders > service:/ payments", "service:/ payments > outside:postgresql"]);
    }

    #[test]
    fn an_event_goes_through_its_queue_and_a_call_does_not() {
        let mut bench = Bench::default();
        bench.span("orders", "reactor", SpanKind::Producer, (1, None), vec![destination("reactor.event")]);
        bench.span(
            "mailer",
            "reactor",
            SpanKind::Internal,
            (2, Some(1)),
            vec![destination("mailer.event"), ("reactor.wait".into(), true.into())],
        );
        bench.span("mailer", "reactor", SpanKind::Consumer, (3, Some(1)), vec![destination("mailer.event")]);
        assert_eq!(bench.steps(9 * S), ["service:/ orders > queue:/ mailer.event", "queue:/ mailer.event > service:/ mailer"]);
        bench.span("orders", "reactor", SpanKind::Producer, (4, None), vec![destination("reactor.call")]);
        bench.span(
            "pay",
            "reactor",
            SpanKind::Internal,
            (5, Some(4)),
            vec![destination("pay.rpc"), ("reactor.wait".into(), true.into())],
        );
        bench.span("pay", "reactor", SpanKind::Consumer, (6, Some(4)), vec![destination("pay.rpc")]);
        assert_eq!(bench.steps(30 * S), ["calls pay.rpc", "service:/ orders > service:/ pay"]);
    }

    #[test]
    fn a_call_of_the_gateways_is_known_as_one_although_its_span_ends_last() {
        let mut bench = Bench::default();
        let wait = vec![destination("orders"), ("reactor.wait".into(), true.into())];
        bench.span("orders", "reactor", SpanKind::Internal, (2, Some(1)), wait);
        bench.span("orders", "reactor", SpanKind::Consumer, (3, Some(1)), vec![destination("orders")]);
        bench.span("gateway", "reactor", SpanKind::Server, (4, Some(1)), vec![("reactor.caller".into(), "node".into())]);
        bench.span("gateway", "reactor", SpanKind::Client, (1, None), vec![("reactor.service".into(), "orders".into())]);
        assert_eq!(bench.steps(9 * S), ["calls orders", "service:/ orders > gateway"]);
    }

    #[test]
    fn work_whose_publisher_is_not_seen_comes_out_of_its_queue() {
        let mut bench = Bench::default();
        bench.span("worker", "reactor", SpanKind::Consumer, (3, Some(77)), vec![destination("jobs")]);
        bench.span("worker", "app", SpanKind::Consumer, (4, Some(3)), vec![]);
        bench.span("gateway", "reactor", SpanKind::Server, (5, Some(3)), vec![]);
        assert_eq!(bench.steps(9 * S), ["service:/ worker > gateway", "queue:/ jobs > service:/ worker"]);
    }

    #[test]
    fn what_the_gateway_hands_over_is_not_counted_again() {
        let mut bench = Bench::default();
        bench.span("gateway", "reactor", SpanKind::Client, (1, None), vec![]);
        bench.span("orders", "http", SpanKind::Server, (2, Some(1)), vec![]);
        assert!(bench.steps(9 * S).is_empty());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut bench = Bench::default();
        for n in 0..(RECENT_MAX as u64 + 5_000) {
            let id = SpanId((n + 1).to_be_bytes());
            let recent = Recent {
                service: NodeKey::Gateway,
                space: "/".into(),
                role: Role::Entry("curl".into()),
                parent: Some(SpanId((n + 1_000_000).to_be_bytes())),
                duration_ns: 1,
                failed: false,
                weight: 1.0,
                settled: false,
            };
            bench.links.remember(id, recent, S, &mut bench.found);
        }
        assert_eq!(bench.links.recent.len(), RECENT_MAX);
        assert!(bench.links.orphans.len() <= RECENT_MAX);
        assert_eq!(bench.found.len(), 5_000, "the oldest are settled early, not lost");
        bench.links.expire(100 * S, &mut bench.found);
        assert!(bench.links.recent.is_empty() && bench.links.orphans.is_empty());
    }
}
