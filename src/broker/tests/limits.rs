//! How long messages and queues live, and how many messages fit.

use super::world::{Peer, Said, World, arguments_of};
use super::{refused, spec};
use crate::broker::client::Verdict;
use crate::kernel::Instant;
use crate::model::policy::{Overflow, Policies, QueueKind, QueuePolicy};
use crate::model::table::Field;
use crate::model::topology::QueueSpec;
use crate::wire::amqp::PropertyList;
use std::sync::Arc;

fn brief(peer: &mut Peer, queue: &str, expiration: &str, body: &str) {
    let properties = PropertyList { expiration: Some(expiration), ..PropertyList::default() };
    peer.say_with("", queue, properties, false, body.as_bytes()).expect("published");
    peer.flush().expect("flushed");
}

fn publish_all(peer: &mut Peer, queue: &str, bodies: &[&str]) {
    bodies.iter().for_each(|body| peer.say("", queue, body.as_bytes()));
    peer.flush().expect("flushed");
}

#[test]
fn a_queues_time_ends_messages_when_it_is_over_and_not_before() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-message-ttl", Field::I32(100))]);
    peer.publish("", "q", "a");
    world.wait(60);
    peer.publish("", "q", "b");
    world.wait(39);
    assert_eq!(world.view("q").ready, 2);
    world.wait(1);
    assert_eq!((world.view("q").ready, world.view("q").counts.expired), (1, 1));
    world.wait(60);
    assert_eq!((world.view("q").ready, world.view("q").counts.expired), (0, 2));
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn of_two_times_the_shorter_holds() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-message-ttl", Field::I32(100))]);
    brief(&mut peer, "q", "10", "short");
    brief(&mut peer, "q", "1000", "long");
    world.wait(10);
    assert_eq!(world.view("q").ready, 1);
    world.wait(90);
    assert_eq!(world.view("q").ready, 0);
}

#[test]
fn a_time_of_zero_reaches_a_waiting_consumer_and_nobody_else() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-message-ttl", Field::I32(0))]);
    peer.publish("", "q", "nobody waits");
    assert!(peer.get("q").is_none());
    assert_eq!(world.view("q").counts.expired, 1);
    peer.consume("q", "c", 1, false).expect("consuming");
    publish_all(&mut peer, "q", &["taken", "too many"]);
    assert_eq!(peer.bodies(), "taken");
    peer.ack(1);
    assert_eq!((peer.bodies().as_str(), world.view("q").ready), ("", 0));
}

#[test]
fn messages_expire_at_the_head_only_but_an_expired_one_is_never_delivered() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    brief(&mut peer, "q", "200", "first");
    brief(&mut peer, "q", "50", "second");
    world.wait(100);
    assert_eq!(world.view("q").ready, 2, "the second is expired and counted still");
    assert_eq!(peer.fetch("q").map(|(body, _)| body).as_deref(), Some("first"));
    assert_eq!(world.view("q").ready, 0, "it went when it came to the head");
}

#[test]
fn a_requeued_message_keeps_its_time() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-message-ttl", Field::I32(100))]);
    peer.publish("", "q", "a");
    world.wait(50);
    peer.get("q").expect("a message");
    world.wait(100);
    assert_eq!(world.view("q").unacked, 1, "what is out does not expire");
    peer.settle(1, false, Verdict::Requeue).expect("known");
    assert_eq!((world.view("q").ready, world.view("q").counts.expired), (0, 1));
}

#[test]
fn a_queue_goes_when_nobody_used_it_for_its_time() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-expires", Field::I32(100))]);
    world.wait(60);
    peer.declare_with("q", [("x-expires", Field::I32(100))]);
    world.wait(60);
    assert!(peer.get("q").is_none(), "asking is use");
    peer.publish("", "q", "publishing is not");
    world.wait(99);
    peer.consume("q", "c", 0, true).expect("consuming is use, for as long as it lasts");
    world.wait(1_000);
    peer.cancel("c");
    world.wait(99);
    assert!(world.has_queue("q"));
    world.wait(1);
    assert!(!world.has_queue("q"));
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn a_full_queue_drops_its_oldest_ready_messages() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-max-length", Field::I32(2))]);
    publish_all(&mut peer, "q", &["a", "b", "c", "d"]);
    let view = world.view("q");
    assert_eq!((view.ready, view.fates.dropped, view.counts.expired), (2, 2, 0));
    // What is out does not count.
    peer.consume("q", "c", 2, false).expect("consuming");
    assert_eq!(peer.bodies(), "c d");
    publish_all(&mut peer, "q", &["e", "f", "g"]);
    assert_eq!((world.view("q").ready, world.view("q").unacked), (2, 2));
    peer.client.cancel(1, "c").expect("cancelled");
    // What comes back is the oldest.
    peer.settle(2, true, Verdict::Requeue).expect("known");
    assert_eq!(peer.drain("q"), "f g");
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn a_length_of_zero_still_hands_over_to_a_waiting_consumer() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-max-length", Field::I32(0))]);
    peer.publish("", "q", "lost");
    peer.consume("q", "c", 1, false).expect("consuming");
    publish_all(&mut peer, "q", &["taken", "lost too"]);
    assert_eq!(peer.bodies(), "taken");
    assert_eq!(world.view("q").fates.dropped, 2);
}

#[test]
fn a_limit_in_bytes_counts_bodies() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-max-length-bytes", Field::I32(10))]);
    publish_all(&mut peer, "q", &["12345", "6789", "0"]);
    assert_eq!(world.view("q").ready, 3);
    peer.publish("", "q", "x");
    assert_eq!(peer.drain("q"), "6789 0 x");
    peer.publish("", "q", "larger than all");
    assert_eq!(world.view("q").ready, 0);
    peer.say("", "q", &[b'.'; 9_000]);
    peer.flush().expect("flushed");
    assert_eq!((world.view("q").ready, world.view("q").fates.dropped), (0, 3), "a body by reference counts too");
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn a_full_queue_that_refuses_nacks_what_it_does_not_take() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-max-length", Field::I32(2)), ("x-overflow", Field::text("reject-publish"))]);
    peer.client.select_confirms(1).expect("confirms");
    publish_all(&mut peer, "q", &["a", "b", "c", "d"]);
    let nack = |number| Said::Refused { channel: 1, number };
    let ack = |up_to, multiple| Said::Confirmed { channel: 1, up_to, multiple };
    assert_eq!(peer.news(), [nack(3), nack(4), ack(2, true)]);
    publish_all(&mut peer, "q", &["e"]);
    assert_eq!(peer.news(), [nack(5)]);
    // Between two others, and beside a queue that takes it.
    peer.declare("other");
    peer.say("", "other", b"1");
    peer.say("", "q", b"2");
    peer.say("", "other", b"3");
    peer.flush().expect("flushed");
    assert_eq!(peer.news(), [nack(7), ack(8, true)]);
    assert_eq!((world.view("q").fates.refused, world.view("q").counts.published), (4, 2));
    assert_eq!(peer.drain("q"), "a b");
    publish_all(&mut peer, "q", &["f"]);
    assert_eq!(peer.news().last(), Some(&ack(9, false)));
}

#[test]
fn a_consumer_makes_room_in_a_queue_that_refuses() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-max-length", Field::I32(1)), ("x-overflow", Field::text("reject-publish"))]);
    peer.client.select_confirms(1).expect("confirms");
    peer.consume("q", "c", 2, false).expect("consuming");
    publish_all(&mut peer, "q", &["a", "b", "c", "d"]);
    assert_eq!((world.view("q").ready, world.view("q").unacked), (1, 2));
    assert_eq!(world.view("q").fates.refused, 1);
}

#[derive(Debug)]
struct Fixed(QueuePolicy);

impl Policies for Fixed {
    fn of_queue(&self, name: &str, _: QueueKind) -> QueuePolicy {
        if name.starts_with("q") { self.0.clone() } else { QueuePolicy::default() }
    }
}

#[test]
fn a_policy_takes_effect_at_once_and_ends_with_itself() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.declare_with("q2", [("x-max-length", Field::I32(1)), ("x-overflow", Field::text("drop-head"))]);
    peer.declare("other");
    for queue in ["q", "q2", "other"] {
        publish_all(&mut peer, queue, &["a", "b", "c", "d"]);
    }
    let vhost = world.broker.vhost("/").expect("the space");
    let set = |policy: QueuePolicy| vhost.set_policies(Arc::new(Fixed(policy)));
    let policy = QueuePolicy { policy: Some("short".into()), max_length: Some(3), ..QueuePolicy::default() };
    set(policy.clone());
    assert_eq!((world.view("q").ready, world.view("q2").ready, world.view("other").ready), (3, 1, 4));
    assert_eq!(world.view("q").policy.policy.as_deref(), Some("short"));
    set(QueuePolicy { max_length_bytes: Some(2), ..policy.clone() });
    assert_eq!(peer.drain("q"), "c d");
    set(QueuePolicy { overflow: Some(Overflow::RejectPublish), ..policy.clone() });
    publish_all(&mut peer, "q", &["1", "2", "3", "4"]);
    publish_all(&mut peer, "q2", &["1", "2"]);
    assert_eq!((peer.drain("q").as_str(), peer.drain("q2").as_str()), ("1 2 3", "2"), "the argument's overflow holds");
    set(QueuePolicy { message_ttl_ms: Some(50), ..QueuePolicy::default() });
    publish_all(&mut peer, "q", &["1"]);
    peer.declare("q3");
    publish_all(&mut peer, "q3", &["1"]);
    world.wait(50);
    assert_eq!((world.view("q").ready, world.view("q3").ready), (0, 0), "a new queue has it from the start");
    set(QueuePolicy::default());
    publish_all(&mut peer, "q", &["1", "2", "3", "4"]);
    world.wait(1_000);
    assert_eq!(world.view("q").ready, 4);
    assert_eq!(world.view("q").policy, QueuePolicy::default());
}

#[test]
fn arguments_are_compared_by_their_value_whatever_its_width() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [("x-message-ttl", Field::I32(100)), ("mine", Field::I32(1))]);
    peer.declare_with("q", [("x-message-ttl", Field::I64(100)), ("mine", Field::I32(2))]);
    let text = "406 inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received '5' but current is '100'";
    assert_eq!(refused(peer.try_declare("q", arguments_of([("x-message-ttl", Field::I32(5))]))), text);
    let text = "406 inequivalent arg 'x-message-ttl' for queue 'q' in vhost '/': received none but current is the value '100' of \
                type 'signedint'";
    assert_eq!(refused(peer.declare_as(spec("q"))), text);
    let exclusive = QueueSpec { arguments: arguments_of([("x-expires", Field::I32(-1))]), ..spec("new") };
    let text = "406 invalid arg 'x-expires' for queue 'new' in vhost '/': {value_negative,-1}";
    assert_eq!(refused(peer.declare_as(exclusive)), text);
}

#[test]
fn a_view_says_when_a_queue_was_last_touched_and_what_its_head_says() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    world.wait(5);
    let properties = PropertyList { timestamp: Some(1_600_000_000), ..PropertyList::default() };
    peer.say_with("", "q", properties, false, b"a").expect("published");
    peer.flush().expect("flushed");
    world.wait(70);
    let view = world.view("q");
    assert_eq!(view.head_timestamp, Some(1_600_000_000));
    assert_eq!(view.idle_since_ns, world.clock.unix_nanos_at(Instant::from_nanos(5_000_000)));
}

#[test]
fn what_comes_back_to_a_full_queue_that_refuses_stays_beside_what_it_took_meanwhile() {
    let world = World::new();
    for overflow in ["reject-publish", "reject-publish-dlx"] {
        let mut peer = world.connect();
        peer.declare_with(overflow, [("x-max-length", Field::I32(1)), ("x-overflow", Field::text(overflow))]);
        publish_all(&mut peer, overflow, &["A"]);
        assert!(peer.get(overflow).is_some());
        publish_all(&mut peer, overflow, &["B"]);
        peer.begin().close_channel(1);
        peer.flush().expect("flushed");
        peer.client.open_channel(1);
        assert_eq!((world.view(overflow).ready, world.view(overflow).fates.dropped), (2, 0), "{overflow}");
        publish_all(&mut peer, overflow, &["C"]);
        assert_eq!(peer.drain(overflow), "A* B", "{overflow}");
    }
}
