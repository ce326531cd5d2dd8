//! What a transaction holds back, and what its end lets out.

use super::refused;
use super::world::{Said, World};
use crate::broker::BrokerConfig;
use crate::broker::client::{Hold, Verdict};
use crate::wire::amqp::PropertyList;

fn ready(world: &World, queue: &str) -> (u64, u64) {
    let view = world.broker.vhost("/").expect("there").queue(queue).expect("a queue");
    (view.ready, view.unacked)
}

#[test]
fn publishes_take_effect_together_at_the_commit_and_never_after_a_rollback() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("a");
    peer.declare("b");
    peer.client.select_tx(1).expect("selected");
    peer.client.select_tx(1).expect("selected again");
    peer.publish("", "a", "1");
    peer.publish("", "b", "2");
    assert_eq!((ready(&world, "a"), ready(&world, "b")), ((0, 0), (0, 0)));
    peer.client.commit(1).expect("committed");
    assert_eq!((ready(&world, "a"), ready(&world, "b")), ((1, 0), (1, 0)));
    peer.publish("", "a", "3");
    peer.client.roll_back(1).expect("rolled back");
    peer.client.commit(1).expect("committed");
    assert_eq!(ready(&world, "a"), (1, 0));
    peer.publish("", "a", "4");
    drop(peer);
    assert_eq!((ready(&world, "a"), world.broker.totals().queue_bytes > 0), ((1, 0), true));
}

#[test]
fn what_finds_no_queue_is_returned_at_the_commit() {
    let world = World::new();
    let mut peer = world.connect();
    peer.client.select_tx(1).expect("selected");
    peer.say_with("", "nowhere", PropertyList::default(), true, b"lost").expect("held");
    peer.flush().expect("flushed");
    assert_eq!(peer.news(), []);
    // What is wrong is told at once.
    let said = peer.say_with("none", "k", PropertyList::default(), false, b"");
    assert_eq!(refused(said), "404 no exchange 'none' in vhost '/'");
    peer.client.commit(1).expect("committed");
    assert!(matches!(&peer.news()[..], [Said::Returned { code: 312, .. }]));
}

#[test]
fn acks_count_at_the_commit_and_are_undone_by_a_rollback() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    for body in ["1", "2", "3", "4"] {
        peer.publish("", "q", body);
    }
    peer.client.select_tx(1).expect("selected");
    peer.consume("q", "c", 2, false).expect("consuming");
    assert_eq!(peer.bodies(), "1 2");
    peer.ack(1);
    assert_eq!((ready(&world, "q"), peer.bodies().as_str()), ((2, 2), ""));
    peer.client.roll_back(1).expect("rolled back");
    peer.settle(2, true, Verdict::Ack).expect("both again");
    let again = peer.settle(1, false, Verdict::Ack);
    assert_eq!(refused(again), "406 unknown delivery tag 1");
    peer.client.commit(1).expect("committed");
    assert_eq!((ready(&world, "q"), peer.bodies().as_str()), ((0, 2), "3 4"));
}

#[test]
fn what_was_acked_and_not_committed_is_requeued_when_the_channel_closes() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.publish("", "q", "1");
    peer.client.select_tx(1).expect("selected");
    peer.consume("q", "c", 0, false).expect("consuming");
    peer.ack(1);
    peer.client.close_channel(1);
    assert_eq!(ready(&world, "q"), (1, 0));
}

#[test]
fn recover_returns_what_the_transaction_has_not_settled() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    for body in ["1", "2"] {
        peer.publish("", "q", body);
    }
    peer.client.select_tx(1).expect("selected");
    assert!(peer.get("q").is_some() && peer.get("q").is_some());
    peer.ack(1);
    peer.client.recover(1).expect("recovered");
    assert_eq!(ready(&world, "q"), (1, 1));
    peer.client.commit(1).expect("committed");
    assert_eq!(ready(&world, "q"), (1, 0));
}

#[test]
fn confirms_and_transactions_exclude_each_other() {
    let world = World::new();
    let mut peer = world.connect();
    assert_eq!(refused(peer.client.commit(1)), "406 channel is not transactional");
    assert_eq!(refused(peer.client.roll_back(1)), "406 channel is not transactional");
    peer.client.select_tx(1).expect("selected");
    assert_eq!(refused(peer.client.select_confirms(1)), "406 cannot switch from tx to confirm mode");
    peer.client.open_channel(2);
    peer.client.select_confirms(2).expect("selected");
    assert_eq!(refused(peer.client.select_tx(2)), "406 cannot switch from confirm to tx mode");
}

#[test]
fn what_open_transactions_hold_counts_for_the_alarm_and_holds_their_publishers() {
    let world = World::with(BrokerConfig { queue_bytes_max: 20_000, ..BrokerConfig::default() });
    let (mut filler, mut peer) = (world.connect(), world.connect());
    filler.declare("q");
    filler.say("", "q", &[0; 15_000]);
    filler.flush().expect("flushed");
    peer.client.select_tx(1).expect("selected");
    peer.say("", "q", &[0; 1_000]);
    peer.flush().expect("flushed");
    assert!(peer.client.take_hold().is_none() && !world.broker.totals().alarm);
    peer.say("", "q", &[0; 5_000]);
    peer.flush().expect("flushed");
    assert!(matches!(peer.client.take_hold(), Some(Hold::Alarm)));
    assert!(world.broker.takes_messages().expect_err("refused").what.starts_with("the memory alarm is on"));
    peer.client.roll_back(1).expect("rolled back");
    assert!(!world.broker.totals().alarm && world.broker.takes_messages().is_ok());
}

#[test]
fn open_transactions_alone_never_raise_the_alarm() {
    let world = World::with(BrokerConfig { queue_bytes_max: 20_000, ..BrokerConfig::default() });
    let (mut one, mut other) = (world.connect(), world.connect());
    one.declare("q");
    for peer in [&mut one, &mut other] {
        peer.client.select_tx(1).expect("selected");
    }
    one.say("", "q", &[0; 6_000]);
    let refusal = other.say_with("", "q", PropertyList::default(), false, &[0; 6_000]);
    assert_eq!(refused(refusal), "406 open transactions hold half of limits.queue_bytes_max; commit sooner");
    one.client.commit(1).expect("committed");
    other.say("", "q", &[0; 6_000]);
    other.client.commit(1).expect("committed");
    assert_eq!(ready(&world, "q"), (2, 0));
}
