//! Quorum queues, of which there is one copy here.

use super::world::{Peer, Said, World};
use super::{refused, spec};
use crate::broker::client::Verdict;
use crate::model::policy::QueueKind;
use crate::model::table::{Field, Table};
use crate::model::topology::QueueSpec;

/// What `basic.get` brings: body, `*` if redelivered, `/` how often it came back.
fn get(peer: &mut Peer, queue: &str) -> (u64, String) {
    let Some(Said::Message { tag, body, redelivered, properties, .. }) = peer.get(queue) else { panic!("{queue} is empty") };
    let headers = crate::wire::amqp::Properties::check(&properties).expect("good").headers().expect("headers").to_table();
    let count = match headers.get("x-delivery-count") {
        Some(Field::I64(count)) => *count,
        other => panic!("{other:?} is no count"),
    };
    (tag, format!("{}{}/{count}", String::from_utf8_lossy(&body), if redelivered { "*" } else { "" }))
}

fn back(peer: &mut Peer, queue: &str) -> String {
    let (tag, told) = get(peer, queue);
    peer.settle(tag, false, Verdict::Requeue).expect("known");
    told
}

fn publish_all(peer: &mut Peer, queue: &str, bodies: &[&str]) {
    bodies.iter().for_each(|body| peer.publish("", queue, body));
}

#[test]
fn every_delivery_says_how_often_it_came_back() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("q", []);
    assert_eq!(world.view("q").kind, QueueKind::Quorum);
    peer.publish("", "q", "a");
    assert_eq!((back(&mut peer, "q"), back(&mut peer, "q")), ("a/0".into(), "a*/1".into()));
    peer.consume("q", "c", 0, false).expect("consuming");
    let heard = peer.news();
    let [Said::Message { properties, redelivered: true, .. }] = &heard[..] else { panic!("{heard:?}") };
    let headers = crate::wire::amqp::Properties::check(properties).expect("good").headers().expect("headers");
    assert_eq!(headers.to_table(), Table::new().with("x-delivery-count", Field::I64(2)));
    peer.client.close_channel(1);
    peer.client.open_channel(1);
    assert_eq!(get(&mut peer, "q").1, "a*/3", "a lost channel counts too");
}

#[test]
fn without_a_limit_what_is_asked_back_goes_to_the_end() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("q", []);
    publish_all(&mut peer, "q", &["a", "b", "c"]);
    back(&mut peer, "q");
    let all: Vec<String> = (0..3).map(|_| get(&mut peer, "q").1).collect();
    assert_eq!(all, ["b/0", "c/0", "a*/1"]);
    // What a lost channel had is handed out next.
    peer.publish("", "q", "d");
    peer.client.close_channel(1);
    peer.client.open_channel(1);
    let all: Vec<String> = (0..4).map(|_| get(&mut peer, "q").1).collect();
    assert_eq!(all, ["b*/1", "c*/1", "a*/2", "d/0"]);
}

#[test]
fn with_a_limit_what_comes_back_is_next_until_it_came_back_too_often() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("dead");
    let letters = [("x-dead-letter-exchange", Field::text("")), ("x-dead-letter-routing-key", Field::text("dead"))];
    let [exchange, key] = letters;
    peer.declare_quorum("q", [("x-delivery-limit", Field::I32(2)), exchange, key]);
    publish_all(&mut peer, "q", &["a", "b"]);
    assert_eq!([back(&mut peer, "q"), back(&mut peer, "q"), back(&mut peer, "q")], ["a/0", "a*/1", "a*/2"]);
    assert_eq!(get(&mut peer, "q").1, "b/0");
    let fates = world.view("q").fates;
    assert_eq!((fates.over_limit, fates.dead_delivery_limit), (1, 1));
    let (body, headers) = peer.fetch("dead").expect("a letter");
    let reason = headers.get("x-first-death-reason").and_then(Field::as_str);
    assert_eq!((body.as_str(), reason), ("a", Some("delivery_limit")));
}

#[test]
fn several_returns_keep_the_order_in_which_they_came_back() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("q", [("x-delivery-limit", Field::I32(20))]);
    publish_all(&mut peer, "q", &["a", "b", "c"]);
    let tags: Vec<u64> = (0..3).map(|_| get(&mut peer, "q").0).collect();
    for at in [1, 0, 2] {
        peer.settle(tags[at], false, Verdict::Requeue).expect("known");
    }
    let all: Vec<String> = (0..3).map(|_| get(&mut peer, "q").1).collect();
    assert_eq!(all, ["b*/1", "a*/1", "c*/1"]);
    peer.settle(0, true, Verdict::Ack).expect("all");
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn a_limit_without_letters_drops() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("q", [("x-delivery-limit", Field::I32(0))]);
    peer.publish("", "q", "a");
    back(&mut peer, "q");
    assert_eq!((world.view("q").ready, world.view("q").unacked, world.broker.totals().queue_bytes), (0, 0, 0));
}

#[test]
fn what_no_quorum_queue_does_is_refused() {
    let world = World::new();
    let mut peer = world.connect();
    let arguments = Table::new().with("x-queue-type", Field::text("quorum"));
    let quorum = QueueSpec { durable: true, arguments, ..spec("q") };
    let exclusive = QueueSpec { exclusive: true, ..quorum.clone() };
    assert_eq!(refused(peer.declare_as(exclusive)), "406 invalid property 'exclusive-owner' for queue 'q' in vhost '/'");
    peer.declare_as(quorum).expect("declared");
    peer.client.limit_prefetch(1, 5, true).expect("limited");
    assert_eq!(refused(peer.consume("q", "c", 0, false)), "540 queue 'q' in vhost '/' does not support global qos");
    peer.client.limit_prefetch(1, 0, true).expect("unlimited");
    peer.consume("q", "c", 0, false).expect("consuming");
    peer.declare_quorum("single", [("x-single-active-consumer", Field::Bool(true))]);
    let text = refused(peer.client.get(1, "single", false));
    assert!(text.starts_with("405 cannot obtain access to locked queue 'single' in vhost '/'. basic.get operations"), "{text}");
}

#[test]
fn a_large_body_and_a_foreign_count_do_not_disturb_the_header() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("q", []);
    let mut small = world.connect_as(Table::new(), 4_096);
    let headers = Table::new().with("x-delivery-count", Field::I32(7)).with("mine", Field::Bool(true));
    let encoded = crate::wire::amqp::table::encoded(&headers);
    let headers = crate::wire::amqp::RawTable::check(&encoded).ok();
    for length in [5_000, 20_000] {
        let body = vec![b'.'; length];
        let properties = crate::wire::amqp::PropertyList { headers, ..Default::default() };
        peer.say_with("", "q", properties, false, &body).expect("published");
        peer.flush().expect("flushed");
        let (came, headers) = small.fetch("q").expect("a message");
        assert_eq!(came.len(), length);
        let expected = Table::new().with("mine", Field::Bool(true)).with("x-delivery-count", Field::I64(0));
        assert_eq!(headers, expected);
    }
}
