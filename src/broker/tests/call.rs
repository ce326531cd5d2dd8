//! Calls over the bus (contract §1 to §5).

use super::refused;
use super::world::{Peer, Said, World};
use crate::broker::client::Verdict;
use crate::model::call::{Call, CallBus, CallEvent, CallFailure, CallObserver, Pressure};
use crate::model::table::{Field, Table};
use crate::model::topology::CALL_EXCHANGE;
use crate::wire::amqp::{Properties, PropertyList, RawTable, table};
use bytes::Bytes;
use std::sync::{Arc, Mutex};
use std::time::Duration;

#[derive(Default)]
struct Caller {
    events: Mutex<Vec<String>>,
}

impl CallObserver for Caller {
    fn on(&self, event: CallEvent) -> Pressure {
        let told = match event {
            CallEvent::Delivered { service, .. } => format!("delivered to {service}"),
            CallEvent::Part(part) => format!("{}{}", String::from_utf8_lossy(&part.body), if part.last { "" } else { " …" }),
            CallEvent::Failed(failure) => format!("{failure:?}"),
        };
        self.events.lock().expect("free").push(told);
        Pressure::Continue
    }
}

impl Caller {
    fn told(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().expect("free"))
    }
}

fn call(key: &str) -> Call {
    Call {
        space: "/".into(),
        key: key.into(),
        fields: vec![(":method".into(), Bytes::from_static(b"GET")), (":path".into(), Bytes::from_static(b"/greeter/hi?x=1"))],
        body: Bytes::from_static(b"hello"),
        content_type: Some("text/plain".into()),
        content_encoding: None,
        request_id: "r-1".into(),
        deadline: Duration::from_secs(30),
    }
}

fn worker(world: &World, no_ack: bool) -> Peer {
    let mut worker = world.connect();
    worker.declare("greeter.calls");
    worker.bind("greeter.calls", CALL_EXCHANGE, "greeter.#").expect("bound");
    worker.consume("greeter.calls", "w", 10, no_ack).expect("consuming");
    worker
}

/// The delivery tag, and the reply address and correlation of the call that `worker` was handed.
fn handed(worker: &mut Peer) -> (u64, String, String) {
    let heard = worker.news();
    let [.., Said::Message { tag, properties, .. }] = &heard[..] else { panic!("no call in {heard:?}") };
    let properties = Properties::trusted(properties);
    let text = |text: Option<&str>| text.expect("present").to_owned();
    (*tag, text(properties.reply_to()), text(properties.correlation_id()))
}

fn reply(worker: &mut Peer, address: &str, correlation: &str, more: bool, body: &str) {
    let headers = table::encoded(&Table::new().with(":more", Field::Bool(more)));
    let headers = RawTable::check(&headers).ok();
    let properties = PropertyList { correlation_id: Some(correlation), headers, ..PropertyList::default() };
    worker.say_with("", address, properties, false, body.as_bytes()).expect("published");
    worker.flush().expect("flushed");
}

#[test]
fn a_call_arrives_as_the_contract_says_and_its_reply_goes_back() {
    let world = World::new();
    let mut worker = worker(&world, false);
    worker.news();
    let caller = Arc::new(Caller::default());
    let _guard = world.broker.call(call("greeter.hi"), caller.clone()).expect("called");
    let heard = worker.news();
    let [Said::Message { exchange, key, properties, body, redelivered: false, .. }] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!((exchange.as_str(), key.as_str(), &body[..]), (CALL_EXCHANGE, "greeter.hi", &b"hello"[..]));
    let list = Properties::check(properties).expect("good").to_list();
    assert_eq!(list.headers.and_then(|headers| headers.get(":path")?.as_str()), Some("/greeter/hi?x=1"));
    assert_eq!((list.user_id, list.app_id, list.kind), (Some("reactor.gateway"), Some("reactor.gateway"), Some("http.request")));
    assert_eq!((list.expiration, list.delivery_mode, list.message_id), (Some("30000"), Some(1), Some("r-1")));
    assert_eq!(list.timestamp, Some(1_700_000_000));
    let (address, correlation) = (list.reply_to.expect("an address"), list.correlation_id.expect("a correlation"));
    reply(&mut worker, address, correlation, true, "first");
    reply(&mut worker, address, correlation, false, "last");
    reply(&mut worker, address, correlation, false, "too late");
    assert_eq!(caller.told(), ["delivered to greeter", "first …", "last"]);
    assert_eq!(world.broker.totals().replies_dropped, 1);
}

#[test]
fn a_call_that_nobody_can_answer_fails_at_once() {
    let world = World::new();
    let caller: Arc<Caller> = Arc::default();
    let failure = |world: &World, key: &str| world.broker.call(call(key), caller.clone()).expect_err("failed");
    assert_eq!(failure(&world, "greeter.hi"), CallFailure::Unbound { attached: vec![] });
    let mut worker = worker(&world, false);
    assert_eq!(failure(&world, "other.hi"), CallFailure::Unbound { attached: vec!["greeter".into()] });
    worker.client.cancel(1, "w").expect("cancelled");
    world.clock.advance(Duration::from_secs(3));
    let service = "greeter".to_owned();
    assert_eq!(failure(&world, "greeter.hi"), CallFailure::NoConsumer { service, last_seen: Some(Duration::from_secs(3)) });
    worker.bind("greeter.calls", CALL_EXCHANGE, "greeter.v2.#").expect("bound");
    let expected = CallFailure::NoSuchVersion { service: "greeter".into(), version: 3, attached: vec![2] };
    assert_eq!(failure(&world, "greeter.v3.hi"), expected);
}

#[test]
fn a_worker_that_goes_before_its_reply_fails_the_call_and_gets_no_second_try() {
    for no_ack in [false, true] {
        let world = World::new();
        let mut worker = worker(&world, no_ack);
        let caller: Arc<Caller> = Arc::default();
        let _guard = world.broker.call(call("greeter.hi"), caller.clone()).expect("called");
        let (_, address, correlation) = handed(&mut worker);
        reply(&mut worker, &address, &correlation, true, "begun");
        worker.client.close_channel(1);
        worker.flush().expect("flushed");
        let told = caller.told();
        assert_eq!(told[..2], ["delivered to greeter", "begun …"]);
        assert!(told[2].starts_with("WorkerGone"), "{told:?}");
        let view = world.broker.vhost("/").expect("space").queue("greeter.calls").expect("queue");
        assert_eq!((view.ready, view.unacked), (0, 0));
        assert_eq!(world.broker.totals().queue_bytes, 0);
    }
}

#[test]
fn a_rejected_call_fails_and_a_requeued_one_finds_another_worker() {
    let world = World::new();
    let (mut first, mut second) = (worker(&world, false), worker(&world, false));
    let caller: Arc<Caller> = Arc::default();
    let _guard = world.broker.call(call("greeter.hi"), caller.clone()).expect("called");
    let (tag, ..) = handed(&mut first);
    first.settle(tag, false, Verdict::Requeue).expect("known");
    let (tag, ..) = handed(&mut second);
    second.settle(tag, false, Verdict::Discard).expect("known");
    let told = caller.told();
    assert_eq!(told[..2], ["delivered to greeter", "delivered to greeter"]);
    assert!(told[2].starts_with("Rejected"), "{told:?}");
}

#[test]
fn a_caller_that_goes_takes_its_queued_call_along_and_its_address_dies() {
    let world = World::new();
    let mut worker = worker(&world, false);
    worker.client.limit_prefetch(1, 1, true).expect("limited");
    let caller: Arc<Caller> = Arc::default();
    let first = world.broker.call(call("greeter.one"), caller.clone()).expect("called");
    let second = world.broker.call(call("greeter.two"), caller.clone()).expect("called");
    let ready = || world.broker.vhost("/").expect("space").queue("greeter.calls").expect("queue").ready;
    assert_eq!(ready(), 1);
    drop(second);
    assert_eq!(ready(), 0);
    let (tag, address, correlation) = handed(&mut worker);
    drop(first);
    let properties = PropertyList { correlation_id: Some(&correlation), ..PropertyList::default() };
    worker.say_with("", &address, properties, true, b"late").expect("published");
    worker.ack(tag);
    assert!(matches!(worker.news()[..], [Said::Returned { code: 312, .. }]));
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn a_call_that_does_not_fit_the_workers_frames_says_so() {
    let world = World::new();
    let mut small = world.connect_as(Table::new(), 4_096);
    small.declare("greeter.calls");
    small.bind("greeter.calls", CALL_EXCHANGE, "greeter.#").expect("bound");
    small.consume("greeter.calls", "w", 0, false).expect("consuming");
    let caller: Arc<Caller> = Arc::default();
    let mut large = call("greeter.hi");
    large.fields.push(("cookie".into(), Bytes::from(vec![b'x'; 5_000])));
    let _guard = world.broker.call(large, caller.clone()).expect("called");
    assert_eq!(caller.told(), ["FrameTooSmall { frame_max: 4096 }"]);
    assert!(small.bodies().is_empty());
}

#[test]
fn a_call_from_the_bus_reaches_one_queue_only() {
    let world = World::new();
    let mut peer = world.connect();
    for (queue, key) in [("wide", "greeter.#"), ("narrow", "greeter.admin.#")] {
        peer.declare(queue);
        peer.bind(queue, CALL_EXCHANGE, key).expect("bound");
    }
    peer.publish(CALL_EXCHANGE, "greeter.admin.x", "1");
    peer.publish(CALL_EXCHANGE, "greeter.x", "2");
    peer.say_with(CALL_EXCHANGE, "nobody.x", PropertyList::default(), true, b"3").expect("published");
    peer.flush().expect("flushed");
    assert!(matches!(peer.news()[..], [Said::Returned { code: 312, .. }]));
    assert!(matches!(peer.get("narrow"), Some(Said::Message { body, .. }) if body == b"1"));
    assert!(matches!(peer.get("wide"), Some(Said::Message { body, .. }) if body == b"2"));
    assert!(peer.get("wide").is_none());
    assert!(refused(peer.bind("wide", CALL_EXCHANGE, "*.x")).contains("amq.rabbitmq.trace"));
}
