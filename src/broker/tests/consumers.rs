//! Who gets messages, in which order, and when that ends.

use super::refused;
use super::world::{Peer, Said, World, arguments_of};
use crate::broker::client::{Consume, Verdict};
use crate::broker::config::BrokerConfig;
use crate::broker::link::Parcel;
use crate::model::table::{Field, Table};
use crate::wire::amqp::PropertyList;
use std::time::Duration;

fn say_at(peer: &mut Peer, queue: &str, priority: u8, body: &str) {
    let properties = PropertyList { priority: Some(priority), ..PropertyList::default() };
    peer.say_with("", queue, properties, false, body.as_bytes()).expect("published");
    peer.flush().expect("flushed");
}

#[test]
fn messages_of_higher_priority_come_first_and_each_priority_in_order() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-max-priority", Field::I32(5))]);
    for (priority, body) in [(0, "a"), (3, "b"), (9, "c"), (5, "d"), (3, "e")] {
        say_at(&mut peer, "q", priority, body);
    }
    peer.publish("", "q", "f");
    assert_eq!(peer.drain("q"), "c d b e a f", "above the maximum is the maximum, none is 0");
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn what_is_requeued_comes_back_within_its_priority() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-max-priority", Field::I32(10))]);
    for (priority, body) in [(1, "a"), (1, "b"), (7, "c"), (7, "d")] {
        say_at(&mut peer, "q", priority, body);
    }
    for _ in 0..3 {
        peer.get("q").expect("a message");
    }
    peer.settle(0, true, Verdict::Requeue).expect("all");
    say_at(&mut peer, "q", 7, "e");
    assert_eq!(peer.drain("q"), "c* d* e a* b");
}

#[test]
fn a_priority_queue_serves_consumers_and_keeps_to_its_limits() {
    let world = World::new();
    let mut peer = world.connect();
    let arguments = [("x-max-priority", Field::I32(2)), ("x-max-length", Field::I32(2)), ("x-message-ttl", Field::I32(100))];
    peer.declare_with("q", arguments);
    peer.consume("q", "c", 1, false).expect("consuming");
    for (priority, body) in [(0, "a"), (0, "b"), (2, "c"), (1, "d")] {
        say_at(&mut peer, "q", priority, body);
    }
    assert_eq!(peer.bodies(), "a");
    assert_eq!((world.view("q").ready, world.view("q").fates.dropped), (2, 1), "the head goes, whatever its priority");
    peer.ack(1);
    assert_eq!(peer.bodies(), "d");
    world.wait(100);
    assert_eq!(world.view("q").ready, 0);
}

#[test]
fn one_consumer_is_active_and_the_next_takes_over() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare_with("q", [("x-single-active-consumer", Field::Bool(true))]);
    let (mut one, mut two, mut three) = (world.connect(), world.connect(), world.connect());
    one.consume("q", "one", 2, false).expect("consuming");
    two.consume("q", "two", 0, false).expect("consuming");
    three.consume("q", "three", 0, false).expect("consuming");
    for body in ["a", "b", "c", "d"] {
        publisher.publish("", "q", body);
    }
    assert_eq!((one.bodies().as_str(), two.bodies().as_str()), ("a b", ""));
    assert_eq!(world.view("q").active_consumer.as_deref(), Some("one"));
    // What the old one had comes first, in order, when its channel goes.
    one.client.close_channel(1);
    one.flush().expect("flushed");
    assert_eq!((two.bodies().as_str(), three.bodies().as_str()), ("a* b* c d", ""));
    assert_eq!(world.view("q").active_consumer.as_deref(), Some("two"));
    // A cancelled one keeps what it has; the next goes on behind that.
    two.client.cancel(1, "two").expect("cancelled");
    two.flush().expect("flushed");
    publisher.publish("", "q", "e");
    assert_eq!((two.bodies().as_str(), three.bodies().as_str()), ("", "e"));
    let waiting: Vec<bool> = world.broker.consumers().iter().map(|consumer| consumer.waiting).collect();
    assert_eq!(waiting, [false]);
}

#[test]
fn a_single_active_consumer_is_no_exclusive_one() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-single-active-consumer", Field::Bool(true))]);
    let exclusive = Consume { queue: "q".into(), tag: "c".into(), exclusive: true, ..Consume::default() };
    assert_eq!(refused(peer.client.consume(1, exclusive)), "403 queue 'q' in vhost '/' in exclusive use");
}

#[test]
fn a_consumers_priority_is_an_integer_of_any_sign() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let wrong = arguments_of([("x-priority", Field::text("5"))]);
    let text = "406 invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got longstr\"";
    assert_eq!(refused(peer.consume_with("q", "c", 0, wrong)), text);
    let mut low = world.connect();
    low.consume_with("q", "low", 0, arguments_of([("x-priority", Field::I8(-5))])).expect("consuming");
    peer.consume_with("q", "none", 1, Table::new()).expect("consuming");
    peer.publish("", "q", "a");
    peer.publish("", "q", "b");
    assert_eq!((peer.bodies().as_str(), low.bodies().as_str()), ("a", "b"));
}

#[test]
fn consumers_are_told_when_their_queue_goes_by_itself() {
    let world = World::new();
    let (mut owner, mut other) = (world.connect(), world.connect());
    owner.declare("q");
    other.consume("q", "c", 0, true).expect("consuming");
    owner.delete("q").expect("deleted");
    assert_eq!(other.news(), [Said::Cancelled { tag: "c".into() }]);
}

#[test]
fn a_delivery_kept_too_long_ends_its_channel() {
    let world = World::with(BrokerConfig { consumer_timeout: Duration::from_secs(60), ..BrokerConfig::default() });
    let mut peer = world.connect();
    peer.declare("q");
    peer.declare_with("strict", [("x-consumer-timeout", Field::I32(5_000))]);
    peer.publish("", "q", "a");
    peer.consume("q", "c", 0, false).expect("consuming");
    let link = peer.client.link().clone();
    let failing = || link.take_failing().into_iter().map(|failed| format!("{} {}", failed.channel, failed.refused.text()));
    world.wait(60_000);
    world.broker.tick();
    assert_eq!(failing().count(), 0);
    world.wait(6_000);
    world.broker.tick();
    let text = |millis: u64| {
        format!(
            "1 delivery acknowledgement on channel 1 timed out. Timeout value used: {millis} ms. This timeout value can be configured, \
             see consumers doc guide to learn more"
        )
    };
    assert_eq!(failing().collect::<Vec<_>>(), [text(60_000)]);
    peer.ack(1);
    peer.publish("", "strict", "b");
    peer.consume("strict", "s", 0, false).expect("consuming");
    world.wait(6_000);
    world.broker.tick();
    assert_eq!(failing().collect::<Vec<_>>(), [text(5_000)], "a queue may say otherwise");
}

#[test]
fn a_delivery_kept_too_long_is_found_behind_one_that_may_be_kept_longer() {
    let world = World::with(BrokerConfig { consumer_timeout: Duration::from_secs(60), ..BrokerConfig::default() });
    let mut peer = world.connect();
    peer.declare_with("patient", [("x-consumer-timeout", Field::I32(600_000))]);
    peer.declare_with("strict", [("x-consumer-timeout", Field::I32(5_000))]);
    peer.consume("patient", "p", 0, false).expect("consuming");
    peer.consume("strict", "s", 0, false).expect("consuming");
    for queue in ["patient", "patient", "strict", "patient", "strict"] {
        peer.publish("", queue, "m");
    }
    let link = peer.client.link().clone();
    world.wait(6_000);
    world.broker.tick();
    let failing = link.take_failing();
    assert_eq!(failing.len(), 1, "a channel ends once");
    assert!(failing[0].refused.text().contains("Timeout value used: 5000 ms"), "{}", failing[0].refused.text());
    (3..=5).filter(|tag| *tag != 4).for_each(|tag| peer.ack(tag));
    world.wait(60_000);
    world.broker.tick();
    assert!(link.take_failing().is_empty(), "the rest may be kept");
}

#[test]
fn tags_are_settled_one_by_one_up_to_one_and_all_at_once() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.consume("q", "c", 0, false).expect("consuming");
    for body in ["a", "b", "c", "d"] {
        peer.publish("", "q", body);
    }
    assert_eq!(refused(peer.settle(0, false, Verdict::Ack)), "406 unknown delivery tag 0");
    assert_eq!(refused(peer.settle(9, true, Verdict::Ack)), "406 unknown delivery tag 9");
    peer.settle(2, true, Verdict::Ack).expect("two");
    assert_eq!(refused(peer.settle(2, false, Verdict::Discard)), "406 unknown delivery tag 2");
    peer.settle(0, true, Verdict::Discard).expect("all that are left");
    peer.settle(0, true, Verdict::Ack).expect("none are left, which is no error");
    let counts = world.view("q").counts;
    assert_eq!((counts.acked, counts.rejected, world.view("q").unacked), (2, 2, 0));
}

#[test]
fn recovering_hands_out_again_what_a_channel_had_even_of_cancelled_consumers() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    for body in ["a", "b"] {
        peer.publish("", "q", body);
    }
    peer.consume("q", "c", 0, false).expect("consuming");
    assert_eq!(peer.bodies(), "a b");
    peer.client.cancel(1, "c").expect("cancelled");
    peer.client.recover(1).expect("recovered");
    peer.flush().expect("flushed");
    assert_eq!(peer.drain("q"), "a* b*");
}

#[test]
fn consumers_that_share_a_slow_connection_stand_still_and_go_on_together() {
    const MESSAGES: usize = 120;
    let world = World::new();
    let (mut publisher, mut peer) = (world.connect(), world.connect());
    peer.declare("q");
    for number in 0..40 {
        peer.consume("q", &format!("c{number}"), 0, false).expect("consuming");
    }
    peer.hear();
    for _ in 0..MESSAGES {
        publisher.publish("", "q", &"x".repeat(100_000));
    }
    let (mut heard, mut pauses) = (0, 0);
    let mut parcel = Parcel::default();
    while peer.client.link().clone().take(&mut parcel) {
        heard += parcel.large.len();
        pauses += usize::from(heard < MESSAGES);
        assert!(peer.client.link().outbox().stalled.len() <= 1, "its queue waits there once, not once for each consumer");
    }
    assert!(pauses > 5, "the outbox was full {pauses} times");
    assert_eq!((heard, world.view("q").unacked), (MESSAGES, MESSAGES as u64));
}

#[test]
fn consumers_that_share_a_full_channel_go_on_together() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.client.limit_prefetch(1, 2, true).expect("limited");
    for number in 0..40 {
        peer.consume("q", &format!("c{number}"), 0, false).expect("consuming");
    }
    for number in 0..50 {
        peer.publish("", "q", &number.to_string());
    }
    for tag in 1..=48 {
        peer.ack(tag);
        let waiting = peer.client.link().outbox().channels.get(1).map(|lane| lane.waiting.len());
        assert!(waiting <= Some(1), "{waiting:?} after {tag}");
    }
    let expected: Vec<String> = (0..50).map(|number| number.to_string()).collect();
    assert_eq!(peer.bodies(), expected.join(" "));
}
