//! Dead letters that their queue promises to deliver at least once.

use super::world::{Peer, Said, World, binding};
use crate::broker::client::Verdict;
use crate::broker::declare::DeleteRule;
use crate::broker::vhost::Actor;
use crate::model::identity::{Permissions, Principal};
use crate::model::policy::{DeadLetterStrategy, Policies, QueueKind, QueuePolicy};
use crate::model::table::Field;
use crate::model::table::Table;
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeKind, ExchangeSpec};
use crate::wire::amqp::{PropertyList, RawTable, table};
use std::sync::Arc;

fn exchange(name: &str) -> (&'static str, Field) {
    ("x-dead-letter-exchange", Field::text(name))
}

fn key(key: &str) -> (&'static str, Field) {
    ("x-dead-letter-routing-key", Field::text(key))
}

fn at_least_once() -> (&'static str, Field) {
    ("x-dead-letter-strategy", Field::text("at-least-once"))
}

fn reject_publish() -> (&'static str, Field) {
    ("x-overflow", Field::text("reject-publish"))
}

/// A queue `work` that keeps its letters, for a queue `dead` that takes `room` of them.
fn world_with_room(room: i32) -> (World, Peer) {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("work", [exchange(""), key("dead"), at_least_once(), reject_publish()]);
    peer.declare_with("dead", [("x-max-length", Field::I32(room)), reject_publish()]);
    (world, peer)
}

fn reject_all(peer: &mut Peer, queue: &str) {
    while let Some(Said::Message { tag, .. }) = peer.get(queue) {
        peer.settle(tag, false, Verdict::Discard).expect("known");
    }
}

/// Ready, unacked and kept.
fn held(world: &World, queue: &str) -> (u64, u64, u64) {
    let view = world.view(queue);
    (view.ready, view.unacked, view.kept)
}

/// The letter `a` that a queue keeps goes to one that is bound to `graves` now.
fn takes_the_way_that_opens(world: &World, peer: &mut Peer, queue: &str) {
    peer.declare("dead");
    peer.bind("dead", "graves", "").expect("bound");
    world.wait(10_000);
    assert_eq!((held(world, queue), peer.drain("dead").as_str()), ((0, 0, 0), "a"));
}

#[test]
fn letters_that_a_full_queue_refuses_wait_until_it_has_room() {
    let (world, mut peer) = world_with_room(1);
    ["a", "b", "c"].into_iter().for_each(|body| peer.publish("", "work", body));
    reject_all(&mut peer, "work");
    assert_eq!((held(&world, "work"), held(&world, "dead")), ((0, 0, 2), (1, 0, 0)));
    assert_eq!(peer.get("work"), None, "what is kept is nobody's");
    let view = world.view("work");
    assert_eq!((view.messages(), view.fates.dead_rejected, view.counts.rejected), (2, 3, 3));
    let booked = world.broker.totals().queue_bytes;
    assert_eq!(booked, view.message_bytes() + world.view("dead").message_bytes(), "kept letters are booked");
    assert_eq!(peer.fetch("dead").map(|(body, _)| body).as_deref(), Some("a"));
    world.wait(100);
    assert_eq!((held(&world, "work"), held(&world, "dead")), ((0, 0, 1), (1, 0, 0)));
    let (body, headers) = peer.fetch("dead").expect("a letter");
    let Some(Field::Array(deaths)) = headers.get("x-death") else { panic!("{headers:?}") };
    let [Field::Table(death)] = &deaths[..] else { panic!("{deaths:?}") };
    let at = 1_700_000_000;
    let told = (death.get("count"), death.get("time"));
    assert_eq!((body.as_str(), told), ("b", (Some(&Field::I64(1)), Some(&Field::Timestamp(at)))), "it died once");
    world.wait(100);
    assert_eq!(peer.drain("dead"), "c");
    assert_eq!((held(&world, "work"), world.broker.totals().queue_bytes), ((0, 0, 0), 0));
}

#[test]
fn a_letter_without_a_way_waits_until_there_is_one() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("work", [exchange("graves"), at_least_once(), reject_publish(), ("x-message-ttl", Field::I32(50))]);
    peer.publish("", "work", "a");
    world.wait(50);
    assert_eq!(held(&world, "work"), (0, 0, 1));
    world.wait(60_000);
    peer.exchange("graves", ExchangeKind::Fanout);
    world.wait(60_000);
    assert_eq!(held(&world, "work"), (0, 0, 1));
    takes_the_way_that_opens(&world, &mut peer, "work");
}

#[test]
fn a_letter_that_would_go_round_for_ever_waits_for_another_way() {
    let world = World::new();
    let mut peer = world.connect();
    let brief = ("x-message-ttl", Field::I32(10));
    peer.exchange("graves", ExchangeKind::Fanout);
    peer.declare_quorum("round", [exchange("graves"), at_least_once(), reject_publish(), brief]);
    peer.bind("round", "graves", "").expect("bound");
    peer.publish("", "round", "a");
    world.wait(10);
    assert_eq!(held(&world, "round"), (0, 0, 1));
    takes_the_way_that_opens(&world, &mut peer, "round");
}

#[test]
fn an_exchange_that_delays_a_letter_gets_it_once_whatever_the_queues_do() {
    let (world, mut peer) = world_with_room(0);
    peer.exchange("graves", ExchangeKind::Fanout);
    let arguments = Table::new().with("x-delayed-type", Field::text("fanout"));
    let (name, kind) = ("later".to_owned(), ExchangeKind::Delayed);
    let later = ExchangeSpec { name, kind, durable: false, auto_delete: false, internal: false, arguments };
    peer.begin().declare_exchange(1, &later).expect("declared");
    peer.bind("dead", "graves", "").expect("bound");
    let to_later = BindingSpec { destination_kind: DestinationKind::Exchange, ..binding("later", "graves", "") };
    peer.begin().bind(1, to_later).expect("bound");
    peer.declare("late");
    peer.bind("late", "later", "").expect("bound");
    peer.declare_quorum("source", [exchange("graves"), at_least_once(), reject_publish()]);
    let headers = table::encoded(&Table::new().with("x-delay", Field::I32(60_000)));
    let properties = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
    peer.say_with("", "source", properties, false, b"a").expect("published");
    peer.flush().expect("flushed");
    reject_all(&mut peer, "source");
    [100, 200, 400].into_iter().for_each(|pause| world.wait(pause));
    assert_eq!(held(&world, "source"), (0, 0, 1));
    let vhost = world.broker.vhost("/").expect("the default space");
    let published = vhost.exchanges().into_iter().find(|view| &*view.name == "graves").map(|view| view.published);
    assert_eq!(published, Some(1), "sending again is no new publish");
    peer.delete("dead").expect("deleted");
    world.wait(60_000);
    assert_eq!((held(&world, "source"), peer.drain("late").as_str()), ((0, 0, 0), "a"));
}

#[test]
fn letters_that_have_a_way_go_on_behind_thousands_that_have_none() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("in", ExchangeKind::Fanout);
    peer.exchange("graves", ExchangeKind::Direct);
    peer.declare_quorum("work", [exchange("graves"), at_least_once(), reject_publish()]);
    peer.bind("work", "in", "").expect("bound");
    (0..2_100).for_each(|_| peer.publish("in", "bad", "x"));
    (0..100).for_each(|_| peer.publish("in", "good", "y"));
    reject_all(&mut peer, "work");
    assert_eq!(held(&world, "work"), (0, 0, 2_200));
    peer.declare("dead");
    peer.bind("dead", "graves", "good").expect("bound");
    [10_000, 1_000, 1_000, 1_000, 1_000].into_iter().for_each(|pause| world.wait(pause));
    assert_eq!((held(&world, "work"), world.view("dead").ready), ((0, 0, 2_100), 100));
}

#[test]
fn each_queue_gets_a_letter_once_whatever_the_others_do() {
    let (world, mut peer) = world_with_room(0);
    peer.exchange("graves", ExchangeKind::Fanout);
    peer.declare("other");
    ["dead", "other"].into_iter().for_each(|queue| peer.bind(queue, "graves", "").expect("bound"));
    peer.declare_quorum("source", [exchange("graves"), at_least_once(), reject_publish()]);
    peer.publish("", "source", "a");
    reject_all(&mut peer, "source");
    world.wait(100);
    world.wait(200);
    assert_eq!((held(&world, "source"), held(&world, "other")), ((0, 0, 1), (1, 0, 0)));
    // The one that refuses is not among those it goes to any more.
    peer.delete("dead").expect("deleted");
    world.wait(10_000);
    assert_eq!((held(&world, "source"), held(&world, "other")), ((0, 0, 0), (1, 0, 0)));
}

#[test]
fn kept_letters_count_towards_the_queues_limits() {
    let (world, mut peer) = world_with_room(0);
    peer.declare_quorum("short", [exchange(""), key("dead"), at_least_once(), reject_publish(), ("x-max-length", Field::I32(2))]);
    let bytes = ("x-max-length-bytes", Field::I32(2));
    peer.declare_quorum("light", [exchange(""), key("dead"), at_least_once(), reject_publish(), bytes]);
    for queue in ["short", "light"] {
        peer.publish("", queue, "a");
        reject_all(&mut peer, queue);
        ["b", "c"].into_iter().for_each(|body| peer.publish("", queue, body));
        assert_eq!((held(&world, queue), world.view(queue).fates.refused), ((1, 0, 1), 1), "{queue}");
    }
}

#[test]
fn purging_leaves_kept_letters_and_deleting_takes_them() {
    let (world, mut peer) = world_with_room(0);
    peer.publish("", "work", "a");
    reject_all(&mut peer, "work");
    peer.publish("", "work", "b");
    assert_eq!(peer.begin().purge_queue(1, "work").expect("purged"), 1);
    assert_eq!(held(&world, "work"), (0, 0, 1));
    let guest = Principal::new("guest", Permissions::All);
    let actor = Actor { principal: &guest, connection: None };
    let vhost = world.broker.vhost("/").expect("the space");
    let only_empty = DeleteRule { if_empty: true, ..DeleteRule::default() };
    assert!(vhost.delete_queue("work", only_empty, actor).is_err(), "it is not empty");
    peer.delete("work").expect("deleted");
    world.wait(10_000);
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn without_reject_publish_or_for_a_classic_queue_nothing_is_kept() {
    let (world, mut peer) = world_with_room(0);
    peer.declare_quorum("loose", [exchange(""), key("dead"), at_least_once()]);
    peer.publish("", "loose", "a");
    reject_all(&mut peer, "loose");
    assert_eq!((held(&world, "loose"), world.broker.totals().queue_bytes), ((0, 0, 0), 0));
}

#[derive(Debug)]
struct ForWork(QueuePolicy);

impl Policies for ForWork {
    fn of_queue(&self, name: &str, _: QueueKind) -> QueuePolicy {
        if name == "work" { self.0.clone() } else { QueuePolicy::default() }
    }
}

#[test]
fn a_policy_can_ask_for_it_and_its_change_sends_what_is_kept_another_way() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_quorum("work", [reject_publish()]);
    peer.declare("dead");
    let policy = |key: &str, strategy| QueuePolicy {
        dead_letter_exchange: Some("".into()),
        dead_letter_routing_key: Some(key.into()),
        dead_letter_strategy: Some(strategy),
        ..QueuePolicy::default()
    };
    let set = |policy| world.broker.vhost("/").expect("the space").set_policies(Arc::new(ForWork(policy)));
    set(policy("nowhere", DeadLetterStrategy::AtLeastOnce));
    ["a", "b"].into_iter().for_each(|body| peer.publish("", "work", body));
    reject_all(&mut peer, "work");
    assert_eq!(held(&world, "work"), (0, 0, 2));
    set(policy("dead", DeadLetterStrategy::AtLeastOnce));
    world.wait(0);
    assert_eq!((held(&world, "work"), peer.drain("dead").as_str()), ((0, 0, 0), "a b"));
    // Once nothing is promised any more they have one chance left.
    set(policy("nowhere", DeadLetterStrategy::AtLeastOnce));
    peer.publish("", "work", "c");
    reject_all(&mut peer, "work");
    set(policy("nowhere", DeadLetterStrategy::AtMostOnce));
    world.wait(0);
    assert_eq!((held(&world, "work"), world.broker.totals().queue_bytes), ((0, 0, 0), 0));
}

#[test]
fn many_letters_go_in_their_order() {
    let (world, mut peer) = world_with_room(0);
    for number in 0..1_500 {
        peer.publish("", "work", &format!("{number} "));
    }
    reject_all(&mut peer, "work");
    world.wait(100);
    assert_eq!(held(&world, "work"), (0, 0, 1_500));
    peer.delete("dead").expect("deleted");
    peer.declare("dead");
    (0..4).for_each(|_| world.wait(10_000));
    assert_eq!(held(&world, "work"), (0, 0, 0));
    let came = peer.drain("dead");
    let numbers: Vec<u32> = came.split_whitespace().map(|number| number.parse().expect("a number")).collect();
    let early = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
    assert!(numbers.len() == 1_500 && early <= 1, "{early} of {} came too early", numbers.len());
}

#[test]
fn letters_without_a_way_do_not_hold_those_behind_them() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("in", ExchangeKind::Fanout);
    peer.exchange("graves", ExchangeKind::Direct);
    peer.declare_quorum("work", [exchange("graves"), at_least_once(), reject_publish()]);
    peer.bind("work", "in", "").expect("bound");
    (0..1_100).for_each(|_| peer.publish("in", "bad", "bad"));
    peer.publish("in", "good", "good");
    reject_all(&mut peer, "work");
    peer.declare("dead");
    peer.bind("dead", "graves", "good").expect("bound");
    (0..2).for_each(|_| world.wait(10_000));
    assert_eq!((held(&world, "work").2, peer.drain("dead").as_str()), (1_100, "good"));
}
