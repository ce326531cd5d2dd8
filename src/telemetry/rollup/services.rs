//! Rate, errors and durations per service, and who was seen.
//!
//! Three sources see a service's requests: the gateway counts every one it sends on; the runtime's own spans see calls and events
//! on the bus, sampled; an instrumented service reports its own. They overlap, so they are never added up: the first of them that
//! saw (nearly) as much as any of the others is believed.

use super::tone::Colour;
use super::window::{Now, SPARKS, Window};
use crate::model::service::InstanceState;
use crate::model::signal::{LogRecord, Span, SpanKind, SpanStatus, Value};
use crate::telemetry::store::origin::Origin;
use crate::telemetry::store::traces::{OWN_SCOPE, http_status, is_runtime};
use crate::telemetry::traffic::TrafficSample;
use crate::telemetry::view::{Red, SeenInstance, SeenService, Tone};
use std::collections::HashMap;
use std::sync::Arc;

const SERVICES_MAX: usize = 2_000;
const INSTANCES_MAX: usize = 64;
const LAST_LINE_CHARS_MAX: usize = 200;
/// Spans that ended longer ago say nothing of now.
const LATE_NS_MAX: u64 = 60_000_000_000;

pub type ServiceKey = (Arc<str>, Arc<str>);

#[derive(Debug, Default)]
pub struct Services {
    all: Vec<ServiceRollup>,
    by_key: HashMap<ServiceKey, usize>,
}

#[derive(Debug)]
pub struct ServiceRollup {
    key: ServiceKey,
    exact: Window,
    /// Cumulative counts at the last sample.
    counted: Option<(u64, u64, Vec<u64>)>,
    foreign: Window,
    own: Window,
    colour: Colour,
    tone: Tone,
    /// Telemetry of its own came from it, not only spans that the runtime recorded on its behalf.
    reports: bool,
    language: Option<Arc<str>>,
    instances: Vec<SeenInstance>,
    last_ns: u64,
    last_line: Option<Arc<str>>,
}

impl Services {
    fn index(&mut self, space: &Arc<str>, service: &Arc<str>) -> Option<usize> {
        let key = (space.clone(), service.clone());
        if let Some(index) = self.by_key.get(&key) {
            return Some(*index);
        }
        if self.all.len() >= SERVICES_MAX {
            return None;
        }
        self.by_key.insert(key.clone(), self.all.len());
        self.all.push(ServiceRollup::new(key));
        Some(self.all.len() - 1)
    }

    // HOT
    fn of(&mut self, origin: &Origin) -> Option<&mut ServiceRollup> {
        let index = match origin.slot() {
            Some(slot) => slot,
            None => {
                let index = self.index(&origin.space, origin.service())?;
                origin.set_slot(index);
                index
            }
        };
        self.all.get_mut(index)
    }

    /// `weight` is how many of the runtime's own traces each of its spans stands for.
    // HOT
    pub fn span(&mut self, span: &Span, origin: &Origin, now_ns: u64, weight: f64) {
        let own = &*span.scope == OWN_SCOPE;
        let duration_ns = span.end_ns.saturating_sub(span.start_ns);
        let is_late = span.end_ns == 0 || span.end_ns + LATE_NS_MAX < now_ns;
        let failed =
            matches!(span.status, SpanStatus::Error(_)) || http_status(&span.attributes).is_some_and(|status| status >= 500);
        if own && span.kind == SpanKind::Client {
            // The gateway's call to an HTTP upstream is the only thing seen of a service that reports nothing.
            let text = |name: &str| span.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value);
            if let (Some(Value::Text(service)), Some(_)) = (text("reactor.service"), text("server.address"))
                && let Some(index) = self.index(&origin.space, service).filter(|_| !is_late)
            {
                self.all[index].own.add(now_ns, duration_ns, failed, weight);
            }
            return;
        }
        let Some(service) = self.of(origin) else { return };
        if !own {
            service.saw(origin, now_ns);
        }
        if !is_late && matches!(span.kind, SpanKind::Server | SpanKind::Consumer) {
            let window = if own { &mut service.own } else { &mut service.foreign };
            window.add(now_ns, duration_ns, failed, if own { weight } else { 1.0 });
        }
    }

    // HOT
    pub fn log(&mut self, record: &LogRecord, origin: &Origin, now_ns: u64) {
        let Some(service) = self.of(origin) else { return };
        service.saw(origin, now_ns);
        if let Value::Text(text) = &record.body {
            service.last_line = Some(text.clone());
        }
    }

    pub fn metric(&mut self, origin: &Origin, now_ns: u64) {
        if let Some(service) = self.of(origin) {
            service.saw(origin, now_ns);
        }
    }

    /// Takes the gateway's exact counts and brings every tone up to date.
    pub fn sample(&mut self, now_ns: u64, sample: &TrafficSample) {
        for call in sample.gateway.iter().flat_map(|gateway| &gateway.services) {
            if let Some(index) = self.index(&call.space, &call.service) {
                self.all[index].count(now_ns, call.requests, call.failed, &call.latency);
            }
        }
        if let Some(gateway) = &sample.gateway
            && let Some(index) = self.index(&Arc::from("/"), &Arc::from("gateway"))
        {
            self.all[index].count(now_ns, gateway.requests, gateway.failed, &gateway.latency);
        }
        let failing = |key: &ServiceKey| {
            let same = sample.services.iter().filter(|known| known.space == key.0 && known.name == key.1);
            same.flat_map(|known| &known.instances).any(|state| *state == InstanceState::Failing)
        };
        for service in &mut self.all {
            let now = service.now(now_ns);
            let usual = service.colour.tone(now_ns, now.error_share(), now.p95_ns, now.count > 0.0);
            service.tone = if failing(&service.key) { Tone::Err } else { usual };
        }
    }

    pub fn get(&self, space: &str, service: &str) -> Option<&ServiceRollup> {
        self.by_key.get(&(Arc::from(space), Arc::from(service))).map(|index| &self.all[*index])
    }

    /// Services that sent telemetry themselves, in order of first sight.
    pub fn seen(&self) -> Vec<SeenService> {
        self.all.iter().filter(|service| service.reports && !is_runtime(&service.key.1)).map(ServiceRollup::view).collect()
    }
}

impl ServiceRollup {
    fn new(key: ServiceKey) -> Self {
        ServiceRollup {
            key,
            exact: Window::default(),
            counted: None,
            foreign: Window::default(),
            own: Window::default(),
            colour: Colour::default(),
            tone: Tone::Normal,
            reports: false,
            language: None,
            instances: Vec::new(),
            last_ns: 0,
            last_line: None,
        }
    }

    fn saw(&mut self, origin: &Origin, now_ns: u64) {
        self.reports = true;
        self.last_ns = now_ns;
        let now_us = now_ns / 1_000;
        // The newest is the likeliest.
        match self.instances.iter_mut().rev().find(|known| known.name == *origin.instance()) {
            Some(known) => known.last_us = now_us,
            None => {
                if self.instances.len() >= INSTANCES_MAX {
                    self.instances.remove(0);
                }
                let name = origin.instance().clone();
                self.instances.push(SeenInstance { name, first_us: now_us, last_us: now_us });
                let language = origin.attribute("telemetry.sdk.language").or_else(|| origin.attribute("process.runtime.name"));
                if let Some(Value::Text(language)) = language {
                    self.language = Some(language.clone());
                }
            }
        }
    }

    /// Adds what was counted since the last sample. Durations stand at the middle of their bucket.
    fn count(&mut self, now_ns: u64, requests: u64, failed: u64, latency: &[(f64, u64)]) {
        let counts: Vec<u64> = latency.iter().map(|(_, count)| *count).collect();
        // A service that is new here was not called before: its counts began at zero.
        let (requests_before, failed_before, counts_before) =
            self.counted.replace((requests, failed, counts)).unwrap_or_default();
        let grown = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let durations = latency.iter().enumerate().map(|(at, (bound_ms, count))| {
            let low_ms = if at == 0 { 0.0 } else { latency[at - 1].0 };
            let middle_ms = if bound_ms.is_finite() { (low_ms + bound_ms) / 2.0 } else { low_ms };
            ((middle_ms * 1e6) as u64, grown(*count, counts_before.get(at).copied().unwrap_or(0)))
        });
        self.exact.add_counts(now_ns, grown(requests, requests_before), grown(failed, failed_before), durations);
    }

    fn now(&self, now_ns: u64) -> Now {
        let sources = [self.exact.now(now_ns), self.foreign.now(now_ns), self.own.now(now_ns)];
        believed(sources, |now| now.count)
    }

    pub fn red(&self, now_ns: u64) -> Red {
        let now = self.now(now_ns);
        let known = [&self.exact, &self.foreign, &self.own].iter().any(|window| window.last_ns > 0);
        let sparks = self.exact.sparks(now_ns).zip(self.foreign.sparks(now_ns)).zip(self.own.sparks(now_ns));
        let mut latency_spark = Vec::with_capacity(SPARKS as usize);
        let mut rate_spark = Vec::with_capacity(SPARKS as usize);
        for ((exact, foreign), own) in sparks {
            let (count, p95_ns) = believed([exact, foreign, own], |(count, _)| *count);
            rate_spark.push(count.round() as u64);
            latency_spark.push(p95_ns);
        }
        Red {
            tone: self.tone,
            rate: known.then(|| now.rate()),
            error_share: (now.count > 0.0).then(|| now.error_share()),
            p50_ns: now.p50_ns,
            p95_ns: now.p95_ns,
            latency_spark,
            rate_spark,
        }
    }

    fn view(&self) -> SeenService {
        let cut = |line: &Arc<str>| match line.char_indices().nth(LAST_LINE_CHARS_MAX) {
            Some((at, _)) => Arc::from(&line[..at]),
            None => line.clone(),
        };
        SeenService {
            space: self.key.0.clone(),
            name: self.key.1.clone(),
            language: self.language.clone(),
            instances: self.instances.clone(),
            last_us: self.last_ns / 1_000,
            last_line: self.last_line.as_ref().map(cut),
        }
    }
}

/// The first that saw at least four fifths of what any of them saw.
fn believed<T: Copy, const N: usize>(sources: [T; N], count: impl Fn(&T) -> f64) -> T {
    let most = sources.iter().map(&count).fold(0.0, f64::max);
    sources.into_iter().find(|source| count(source) >= most * 0.8).expect("the one that saw the most did")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::signal::{Attributes, Resource, SpanId, TraceId};
    use crate::telemetry::store::origin::Origins;
    use crate::telemetry::traffic::{CallSample, GatewaySample, ServiceSample};

    const S: u64 = 1_000_000_000;

    struct Bench {
        services: Services,
        origins: Origins,
    }

    impl Bench {
        fn new() -> Self {
            Bench { services: Services::default(), origins: Origins::default() }
        }

        fn span(&mut self, service: &str, scope: &str, kind: SpanKind, at_s: u64, attributes: Attributes) {
            let resource = Arc::new(Resource { service: service.into(), instance: "i".into(), attributes: vec![] });
            let span = Span {
                trace_id: TraceId([1; 16]),
                span_id: SpanId([1; 8]),
                parent: None,
                name: "x".into(),
                kind,
                start_ns: at_s * S - 20_000_000,
                end_ns: at_s * S,
                status: SpanStatus::Unset,
                resource: resource.clone(),
                scope: scope.into(),
                attributes,
                events: vec![],
                links: vec![],
            };
            let origin = self.origins.of(&resource);
            self.services.span(&span, &origin, at_s * S, 4.0);
        }

        fn red(&self, service: &str, at_s: u64) -> Red {
            self.services.get("/", service).expect("known").red(at_s * S)
        }
    }

    fn sample(requests: u64, failed: u64) -> TrafficSample {
        let latency = vec![(10.0, requests), (f64::INFINITY, 0)];
        let call = CallSample { space: "/".into(), service: "orders".into(), requests, failed, latency: latency.clone() };
        let gateway = GatewaySample { requests, failed, latency, services: vec![call] };
        TrafficSample { gateway: Some(gateway), ..TrafficSample::default() }
    }

    #[test]
    fn a_sampled_own_span_counts_for_those_that_were_not_kept() {
        let mut bench = Bench::new();
        for second in 100..110 {
            bench.span("worker", "reactor", SpanKind::Consumer, second, vec![]);
        }
        let red = bench.red("worker", 110);
        assert_eq!((red.rate, red.error_share), (Some(4.0), Some(0.0)));
        assert!(red.p95_ns.is_some_and(|nanos| (19_000_000..23_000_000).contains(&nanos)));
        assert!(bench.services.seen().is_empty(), "it sent nothing itself");
    }

    #[test]
    fn one_request_seen_by_two_sources_is_one_request() {
        let mut bench = Bench::new();
        for second in 100..110 {
            bench.services.sample(second * S, &sample((second - 99) * 5, second - 99));
            for _ in 0..5 {
                bench.span("orders", "app", SpanKind::Server, second, vec![]);
            }
        }
        let red = bench.red("orders", 110);
        assert_eq!((red.rate, red.error_share), (Some(5.0), Some(0.2)), "the gateway's counts");
        assert_eq!(bench.services.seen().len(), 1);
    }

    #[test]
    fn an_upstream_that_reports_nothing_is_seen_through_the_gateways_spans() {
        let mut bench = Bench::new();
        let attributes: Attributes =
            vec![("reactor.service".into(), "legacy".into()), ("server.address".into(), "127.0.0.1:1".into())];
        bench.span("gateway", "reactor", SpanKind::Client, 100, attributes);
        assert_eq!(bench.red("legacy", 101).rate, Some(0.4));
    }

    #[test]
    fn a_service_with_a_failing_instance_is_red_at_once() {
        let mut bench = Bench::new();
        bench.span("orders", "app", SpanKind::Server, 100, vec![]);
        let service = ServiceSample {
            space: "/".into(),
            name: "orders".into(),
            slot: 2,
            state: InstanceState::Failing,
            instances: vec![InstanceState::Ready, InstanceState::Failing],
        };
        bench.services.sample(101 * S, &TrafficSample { services: vec![service], ..TrafficSample::default() });
        assert_eq!(bench.red("orders", 101).tone, Tone::Err);
    }
}
