//! A bus and a gateway for tests, here and in the doors: replies are scripted, calls recorded, nothing is real but the gateway.

use super::{Gateway, GatewayConfig};
use crate::kernel::{Clock, Drain};
use crate::model::call::{Call, CallBus, CallEvent, CallFailure, CallGuard, CallObserver, ReplyPart};
use crate::model::service::{InstanceState, ServiceName, Source};
use crate::model::table::{Field, Table};
use crate::registry::{InstanceId, NewInstance, Registry};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// What the bus does with one call.
pub(crate) enum Script {
    /// Delivered to `greeter-1`, then these.
    Events(Vec<CallEvent>),
    Refuse(CallFailure),
}

type Answer = Box<dyn FnMut(&Call) -> Script + Send>;

pub(crate) struct FakeBus {
    answer: Mutex<Answer>,
    pub(crate) calls: Mutex<Vec<Call>>,
    pub(crate) observers: Mutex<Vec<Arc<dyn CallObserver>>>,
    pub(crate) dropped: Arc<AtomicUsize>,
    pub(crate) attached: Vec<String>,
}

impl FakeBus {
    pub(crate) fn new(answer: impl FnMut(&Call) -> Script + Send + 'static) -> Arc<Self> {
        Arc::new(FakeBus {
            answer: Mutex::new(Box::new(answer)),
            calls: Mutex::default(),
            observers: Mutex::default(),
            dropped: Arc::default(),
            attached: vec!["greeter".to_owned()],
        })
    }

    /// Every call answered with these headers and body.
    pub(crate) fn replying(headers: Table, body: &'static str) -> Arc<Self> {
        FakeBus::new(move |_| Script::Events(vec![part(headers.clone(), body, true)]))
    }

    pub(crate) fn last_call(&self) -> Call {
        self.calls.lock().expect("not poisoned").last().expect("a call").clone()
    }

    /// A field of the last call, as text.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let call = self.last_call();
        let value = call.fields.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone())?;
        Some(String::from_utf8_lossy(&value).into_owned())
    }
}

pub(crate) fn part(headers: Table, body: &'static str, last: bool) -> CallEvent {
    let body = Bytes::from_static(body.as_bytes());
    CallEvent::Part(ReplyPart { headers, content_type: None, content_encoding: None, body, last })
}

pub(crate) fn status(code: i32) -> Table {
    Table::new().with(":status", Field::I32(code))
}

struct CountsDrop(Arc<AtomicUsize>);

impl Drop for CountsDrop {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl CallBus for FakeBus {
    fn call(&self, call: Call, observer: Arc<dyn CallObserver>) -> Result<CallGuard, CallFailure> {
        let script = (self.answer.lock().expect("not poisoned"))(&call);
        self.calls.lock().expect("not poisoned").push(call);
        match script {
            Script::Refuse(failure) => return Err(failure),
            Script::Events(events) => {
                observer.on(CallEvent::Delivered { service: Arc::from("greeter"), instance: Arc::from("greeter-1") });
                for event in events {
                    observer.on(event);
                }
            }
        }
        self.observers.lock().expect("not poisoned").push(observer);
        Ok(Box::new(CountsDrop(self.dropped.clone())))
    }

    fn attached(&self, _space: &str) -> Vec<String> {
        self.attached.clone()
    }
}

pub(crate) struct TestGateway {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) drain: Drain,
}

/// A gateway on the current runtime.
pub(crate) fn gateway(bus: Arc<FakeBus>, adjust: impl FnOnce(&mut GatewayConfig)) -> TestGateway {
    let clock = Clock::system();
    let (registry, drain) = (Arc::new(Registry::new(clock.clone())), Drain::new());
    let mut config = GatewayConfig::default();
    adjust(&mut config);
    let gateway = Gateway::new(config, bus, registry.clone(), clock, drain.clone());
    TestGateway { gateway, registry, drain }
}

impl TestGateway {
    /// Registers an instance that answers HTTP.
    pub(crate) fn add(&self, service: &str, http: SocketAddr, adjust: impl FnOnce(&mut NewInstance)) -> InstanceId {
        self.registry.add(self.instance(service, http, adjust))
    }

    /// Attaches a connection that consumes calls.
    pub(crate) fn attach(&self, service: &str) -> InstanceId {
        let on_bus = |instance: &mut NewInstance| (instance.http, instance.source) = (None, Source::Amqp);
        self.registry.attach(self.instance(service, ([127, 0, 0, 1], 9).into(), on_bus))
    }

    fn instance(&self, service: &str, http: SocketAddr, adjust: impl FnOnce(&mut NewInstance)) -> NewInstance {
        let mut instance = NewInstance {
            space: Arc::from("/"),
            service: ServiceName::new(service).expect("a service name"),
            name: Arc::from(format!("{service}-{}", http.port())),
            source: Source::Supervised,
            state: InstanceState::Ready,
            http: Some(http),
            keep_prefix: false,
            version: None,
            pid: None,
            language: None,
        };
        adjust(&mut instance);
        instance
    }
}
