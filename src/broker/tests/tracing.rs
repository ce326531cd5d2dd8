//! The broker's own spans (contract §8). One sink serves the whole process, so each test looks only at its own queues.

use super::world::{Peer, Said, World};
use crate::broker::client::Verdict;
use crate::model::emit::{self, Sink};
use crate::model::happening::Happening;
use crate::model::signal::{LogRecord, Span, Value};
use crate::model::table::{Field, Table};
use crate::wire::amqp::{PropertyList, RawTable, table};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

static SPANS: Mutex<Vec<Span>> = Mutex::new(Vec::new());

struct Collect;

impl Sink for Collect {
    fn span(&self, span: Span) {
        spans().push(span);
    }
    fn log(&self, _: LogRecord) {}
    fn happening(&self, _: Happening) {}
}

fn spans() -> MutexGuard<'static, Vec<Span>> {
    SPANS.lock().expect("free")
}

fn traced_world() -> World {
    let _ = emit::install(Box::new(Collect));
    World::new()
}

/// Spans whose name ends with `queue`, oldest first.
fn of(queue: &str) -> Vec<Span> {
    spans().iter().filter(|span| span.name.ends_with(queue)).cloned().collect()
}

fn one(name: &str) -> Span {
    let found: Vec<Span> = spans().iter().filter(|span| &*span.name == name).cloned().collect();
    assert_eq!(found.len(), 1, "spans named {name}");
    found.into_iter().next().expect("one")
}

fn is_inferred(span: &Span) -> bool {
    span.attributes.iter().any(|(name, value)| name == "reactor.parent" && *value == Value::from("inferred"))
}

fn named(world: &World, name: &str) -> Peer {
    world.connect_as(Table::new().with("connection_name", Field::text(name)), 131_072)
}

#[test]
fn a_message_is_traced_from_publish_over_its_wait_to_its_ack() {
    let world = traced_world();
    let (mut shop, mut mailer) = (named(&world, "shop"), named(&world, "mailer:1"));
    shop.declare("t1");
    shop.publish("", "t1", "order");
    world.clock.advance(Duration::from_millis(30));
    mailer.consume("t1", "c", 1, false).expect("consuming");
    mailer.news();
    world.clock.advance(Duration::from_millis(5));
    mailer.ack(1);
    let (publish, wait, process) = (one("publish t1"), one("wait t1"), one("process t1"));
    assert_eq!((publish.parent, wait.parent, process.parent), (None, Some(publish.span_id), Some(publish.span_id)));
    assert!(publish.trace_id == wait.trace_id && wait.trace_id == process.trace_id);
    assert_eq!((wait.end_ns - wait.start_ns, process.end_ns - process.start_ns), (30_000_000, 5_000_000));
    assert_eq!(
        (&*publish.resource.service, &*process.resource.service, &*process.resource.instance),
        ("shop", "mailer", "mailer:1")
    );
    assert!(wait.attributes.iter().any(|(name, value)| name == "reactor.wait" && *value == Value::Bool(true)));
}

#[test]
fn a_traceparent_of_the_publisher_is_continued() {
    let world = traced_world();
    let mut peer = named(&world, "instrumented");
    peer.declare("t2");
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let headers = table::encoded(&Table::new().with("other", Field::I32(1)).with("traceparent", Field::text(parent)));
    let properties = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
    peer.say_with("", "t2", properties, false, b"x").expect("published");
    let unsampled = parent.replace("-01", "-00").replace("4bf9", "5bf9");
    let headers = table::encoded(&Table::new().with("traceparent", Field::text(unsampled)));
    let properties = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
    peer.say_with("", "t2", properties, false, b"x").expect("published");
    peer.flush().expect("flushed");
    let publish = one("publish t2");
    assert_eq!(publish.trace_id.to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(publish.parent.map(|parent| parent.to_string()).as_deref(), Some("00f067aa0ba902b7"));
    assert!(!is_inferred(&publish));
}

#[test]
fn what_a_worker_publishes_belongs_to_what_it_works_on() {
    let world = traced_world();
    let (mut publisher, mut worker) = (named(&world, "outside"), named(&world, "worker"));
    publisher.declare("t3");
    publisher.declare("t3.next");
    worker.consume("t3", "c", 10, false).expect("consuming");
    publisher.publish("", "t3", "1");
    publisher.publish("", "t3", "2");
    worker.publish("", "t3.next", "from 1");
    worker.ack(1);
    worker.publish("", "t3.next", "from 2");
    worker.ack(2);
    worker.publish("", "t3.next", "from nothing");
    let origins: Vec<_> = of("publish t3").iter().map(|span| span.trace_id).collect();
    let nexts = of("publish t3.next");
    assert_eq!(nexts.iter().map(|span| span.trace_id).take(2).collect::<Vec<_>>(), origins);
    assert_eq!(nexts.iter().map(is_inferred).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(nexts[2].parent, None);
    let process: Vec<_> = of("process t3").iter().map(|span| Some(span.span_id)).collect();
    assert_eq!(nexts[..2].iter().map(|span| span.parent).collect::<Vec<_>>(), process);
}

#[test]
fn a_connection_that_settles_out_of_order_is_believed_only_about_a_single_delivery() {
    let world = traced_world();
    let (mut publisher, mut worker) = (named(&world, "outside"), named(&world, "worker"));
    publisher.declare("t4");
    publisher.declare("t4.next");
    worker.consume("t4", "c", 10, false).expect("consuming");
    for body in ["1", "2", "3"] {
        publisher.publish("", "t4", body);
    }
    worker.ack(2);
    worker.publish("", "t4.next", "from 1 or 3");
    worker.settle(1, false, Verdict::Discard).expect("known");
    worker.publish("", "t4.next", "from 3");
    let nexts = of("publish t4.next");
    assert_eq!(nexts.iter().map(is_inferred).collect::<Vec<_>>(), [false, true]);
    assert_eq!(nexts[1].trace_id, of("publish t4")[2].trace_id);
    let rejected = of("process t4").into_iter().find(|span| span.trace_id == of("publish t4")[0].trace_id).expect("ended");
    assert_eq!(rejected.status, crate::model::signal::SpanStatus::Error("rejected".into()));
}

#[test]
fn an_auto_acked_request_is_worked_on_until_it_is_answered() {
    let world = traced_world();
    let (mut asking, mut answering) = (named(&world, "asking"), named(&world, "answering"));
    answering.declare("t5");
    answering.consume("t5", "c", 0, true).expect("consuming");
    asking.consume("amq.rabbitmq.reply-to", "r", 0, true).expect("consuming");
    let properties =
        PropertyList { reply_to: Some("amq.rabbitmq.reply-to"), correlation_id: Some("1"), ..PropertyList::default() };
    asking.say_with("", "t5", properties, false, b"?").expect("asked");
    asking.flush().expect("flushed");
    let Some(Said::Message { properties, .. }) = answering.news().pop() else { panic!("no question") };
    let address = crate::wire::amqp::Properties::trusted(&properties).reply_to().expect("an address").to_owned();
    world.clock.advance(Duration::from_millis(3));
    assert!(of("process t5").is_empty(), "still worked on");
    let properties = PropertyList { correlation_id: Some("1"), ..PropertyList::default() };
    answering.say_with("", &address, properties, false, b"!").expect("answered");
    answering.flush().expect("flushed");
    let process = one("process t5");
    assert_eq!(process.end_ns - process.start_ns, 3_000_000);
}
