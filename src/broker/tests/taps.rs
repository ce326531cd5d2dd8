//! The firehose, the event exchange, messages that are followed, and those that wait.

use super::world::{Peer, Said, World};
use super::{exchange_spec, refused};
use crate::broker::client::Verdict;
use crate::broker::config::BrokerConfig;
use crate::broker::journey::{JOURNEY_BYTES_MAX, JOURNEYS_PER_SECOND, Journey, STEPS_MAX, Search, Step, StepKind};
use crate::broker::tap::INTERNAL_USER;
use crate::model::table::{Field, Table};
use crate::model::topology::{ExchangeKind, ExchangeSpec};
use crate::wire::amqp::{Properties, PropertyList, RawTable, table};
use std::sync::Arc;
use std::time::Duration;

fn space(world: &World) -> Arc<crate::broker::Vhost> {
    world.broker.vhost("/").expect("the default space")
}

/// Keys and headers of what a queue holds, from its head.
fn taken(peer: &mut Peer, queue: &str) -> Vec<(String, Table)> {
    let mut taken = Vec::new();
    while let Some(Said::Message { key, properties, .. }) = peer.get(queue) {
        let headers = Properties::check(&properties).expect("good").headers().map(RawTable::to_table);
        taken.push((key, headers.unwrap_or_default()));
    }
    taken
}

fn text<'a>(table: &'a Table, name: &str) -> &'a str {
    table.get(name).and_then(Field::as_str).unwrap_or("(none)")
}

fn steps(journey: &Journey) -> String {
    journey.steps.iter().map(|step| step.what.name()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_firehose_tells_of_every_publish_and_delivery_while_it_is_on() {
    let world = World::new();
    let (mut peer, mut other) = (world.connect(), world.connect());
    peer.declare("q");
    other.declare("seen");
    other.bind("seen", "amq.rabbitmq.trace", "#").expect("bound");
    peer.publish("", "q", "before");
    assert!(taken(&mut other, "seen").is_empty());
    space(&world).taps.set_firehose(true);
    let headers = table::encoded(&Table::new().with("a", Field::I32(1)));
    let list = PropertyList { headers: RawTable::check(&headers).ok(), message_id: Some("m"), ..PropertyList::default() };
    peer.say_with("", "q", list, false, b"1").expect("published");
    peer.say_with("amq.direct", "lost", PropertyList::default(), false, b"2").expect("published");
    peer.flush().expect("flushed");
    peer.consume("q", "c", 0, false).expect("consuming");
    assert_eq!(peer.bodies(), "before 1");
    let told = taken(&mut other, "seen");
    let keys: Vec<&str> = told.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["publish.amq.direct", "publish.", "deliver.q", "deliver.q"]);
    let published = &told[1].1;
    assert_eq!(published.get("exchange_name"), Some(&Field::text("")));
    assert_eq!(published.get("routing_keys"), Some(&Field::Array(vec![Field::text("q")])));
    assert_eq!(published.get("routed_queues"), Some(&Field::Array(vec![Field::text("q")])));
    assert_eq!(
        ["vhost", "user", "node", "connection"].map(|name| text(published, name)),
        ["/", "guest", "rabbit@reactor", "test"]
    );
    assert_eq!(published.get("channel"), Some(&Field::I32(1)));
    let Some(Field::Table(properties)) = published.get("properties") else { panic!("properties") };
    assert_eq!((text(properties, "message_id"), properties.get("headers").is_some()), ("m", true));
    assert_eq!(told[3].1.get("redelivered"), Some(&Field::I32(0)));
    assert_eq!(told[0].1.get("routed_queues"), Some(&Field::Array(Vec::new())));
    space(&world).taps.set_firehose(false);
    peer.publish("", "q", "after");
    assert!(taken(&mut other, "seen").is_empty());
}

#[test]
fn the_event_exchange_tells_who_does_what_once_something_is_bound_to_it() {
    let world = World::new();
    let mut watcher = world.connect();
    watcher.declare("seen");
    watcher.bind("seen", "amq.rabbitmq.event", "#").expect("bound");
    let mut peer = world.connect();
    peer.declare("q");
    peer.exchange("x", ExchangeKind::Fanout);
    peer.bind("q", "x", "k").expect("bound");
    peer.consume("q", "c", 3, false).expect("consuming");
    peer.client.cancel(1, "c").expect("cancelled");
    peer.delete("q").expect("deleted");
    peer.client.delete_exchange(1, "x", false).expect("deleted");
    world.broker.create_vhost("other");
    world.broker.announce("user.created", || Table::new().with("name", Field::text("ann")));
    drop(peer);
    let told = taken(&mut watcher, "seen");
    let keys: Vec<&str> = told.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "binding.created",
            "connection.created",
            "channel.created",
            "queue.created",
            "exchange.created",
            "binding.created",
            "consumer.created",
            "consumer.deleted",
            "binding.deleted",
            "queue.deleted",
            "exchange.deleted",
            "vhost.created",
            "user.created",
            "channel.closed",
            "connection.closed"
        ]
    );
    let of = |key: &str| &told.iter().rev().find(|(found, _)| found == key).expect("told").1;
    let binding = of("binding.created");
    let names = ["source_name", "destination_name", "destination_kind", "routing_key", "user_who_performed_action", "vhost"];
    assert_eq!(names.map(|name| text(binding, name)), ["x", "q", "queue", "k", "guest", "/"]);
    assert_eq!(of("consumer.created").get("prefetch_count"), Some(&Field::I32(3)));
    assert!(told.iter().all(|(_, headers)| matches!(headers.get("timestamp_in_ms"), Some(Field::I64(_)))));
    // Nobody listens any more: nothing is told.
    watcher.delete("seen").expect("deleted");
    watcher.declare("seen");
    assert!(taken(&mut watcher, "seen").is_empty());
}

#[test]
fn the_end_of_a_queue_is_told_with_the_user_who_deleted_it() {
    let world = World::new();
    let mut watcher = world.connect();
    watcher.declare("seen");
    watcher.bind("seen", "amq.rabbitmq.event", "*.deleted").expect("bound");
    let mut peer = world.connect();
    peer.exchange("x", ExchangeKind::Fanout);
    peer.declare("q");
    peer.bind("q", "x", "k").expect("bound");
    peer.delete("q").expect("deleted");
    peer.delete("q").expect("gone before");
    peer.declare_with("brief", [("x-expires", Field::I32(100))]);
    world.wait(100);
    let told = taken(&mut watcher, "seen");
    let told: Vec<_> = told.iter().map(|(key, event)| (key.as_str(), text(event, "user_who_performed_action"))).collect();
    assert_eq!(told, [("binding.deleted", "guest"), ("queue.deleted", "guest"), ("queue.deleted", INTERNAL_USER)]);
}

#[test]
fn events_are_told_again_in_a_default_space_that_was_made_anew() {
    let world = World::new();
    let mut before = world.connect();
    before.declare("seen");
    before.bind("seen", "amq.rabbitmq.event", "#").expect("bound");
    assert!(world.broker.delete_vhost("/") && world.broker.create_vhost("/"));
    let mut watcher = world.connect();
    watcher.declare("seen");
    watcher.declare("untold");
    assert!(taken(&mut watcher, "seen").is_empty(), "nothing is bound to the new exchange yet");
    watcher.bind("seen", "amq.rabbitmq.event", "queue.*").expect("bound");
    // Of the old space nobody hears, and what ends in it does not silence the new one.
    before.client.close("its space is gone");
    watcher.declare("q");
    let told = taken(&mut watcher, "seen");
    assert_eq!(told.iter().map(|(key, event)| (key.as_str(), text(event, "name"))).collect::<Vec<_>>(), [("queue.created", "q")]);
}

#[test]
fn a_watch_is_of_the_space_it_was_begun_in_and_not_of_one_made_anew() {
    let world = World::new();
    let before = space(&world);
    let watch = before.watch_journeys();
    assert!(world.broker.delete_vhost("/") && world.broker.create_vhost("/"));
    let now = space(&world);
    assert_eq!((watch.is_of(&before), watch.is_of(&now)), (true, false));
    let mut peer = world.connect();
    peer.declare("q");
    peer.publish("", "q", "unseen");
    let _watch = now.watch_journeys();
    peer.publish("", "q", "seen");
    assert_eq!(now.search_journeys(Search { limit: 10, ..Search::default() }).kept, 1);
}

#[test]
fn a_message_can_be_followed_from_its_publish_to_its_ack() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("a");
    peer.declare("b");
    for queue in ["a", "b"] {
        peer.bind(queue, "amq.fanout", "").expect("bound");
    }
    peer.publish("amq.fanout", "k", "unseen");
    let vhost = space(&world);
    let watch = vhost.watch_journeys();
    peer.publish("amq.fanout", "k", "order 17");
    peer.say_with("amq.direct", "lost", PropertyList::default(), true, b"nobody").expect("published");
    peer.flush().expect("flushed");
    peer.consume("a", "c", 0, false).expect("consuming");
    assert_eq!(peer.bodies(), "unseen order 17");
    peer.settle(2, false, Verdict::Requeue).expect("known");
    peer.settle(3, false, Verdict::Ack).expect("known");
    let found = vhost.search_journeys(Search { text: Some("order 17"), limit: 10, ..Search::default() });
    let journey = found.journeys.first().expect("found");
    assert_eq!((found.journeys.len(), found.kept, found.skipped), (1, 2, 0));
    assert_eq!(steps(journey), "published routed queued queued delivered requeued delivered acked");
    assert_eq!((journey.open, journey.queues.len(), &*journey.body), (1, 2, &b"order 17"[..]));
    drop(watch);
    peer.consume("b", "d", 0, true).expect("consuming");
    assert_eq!(vhost.journey(journey.id).expect("still kept").steps.len(), 8, "nobody watches any more");
    let lost = vhost.search_journeys(Search { exchange: Some("amq.direct"), limit: 10, ..Search::default() });
    assert_eq!(lost.journeys.iter().map(steps).collect::<Vec<_>>(), ["published routed returned"]);
    let in_queue = |queue| vhost.search_journeys(Search { queue: Some(queue), limit: 10, ..Search::default() }).journeys.len();
    assert_eq!((in_queue("a"), in_queue("none")), (1, 0));
}

#[test]
fn a_dead_letter_is_told_of_its_message_and_followed_as_a_new_one() {
    let world = World::new();
    let mut peer = world.connect();
    let arguments =
        Table::new().with("x-dead-letter-exchange", Field::text("")).with("x-dead-letter-routing-key", Field::text("dead"));
    peer.try_declare("q", arguments).expect("declared");
    peer.declare("dead");
    let vhost = space(&world);
    let _watch = vhost.watch_journeys();
    peer.publish("", "q", "1");
    assert!(peer.get("q").is_some());
    peer.settle(1, false, Verdict::Discard).expect("known");
    let found = vhost.search_journeys(Search { text: Some("1"), limit: 10, ..Search::default() });
    let told: Vec<String> = found.journeys.iter().map(steps).collect();
    assert_eq!(told, ["published routed queued", "published routed queued delivered rejected dead-lettered"]);
}

/// Steps of every message that was followed, oldest first, with why what was dropped was.
fn told(world: &World) -> Vec<String> {
    let found = space(world).search_journeys(Search { limit: 100, ..Search::default() });
    let word = |step: &Step| match &step.what {
        StepKind::Dropped { reason, .. } => format!("dropped ({reason})"),
        other => other.name().to_owned(),
    };
    let all = found.journeys.iter().rev();
    all.map(|journey| {
        let steps: Vec<String> = journey.steps.iter().map(word).collect();
        format!("{} {}", steps.join(" "), journey.open)
    })
    .collect()
}

#[test]
fn a_message_that_a_queue_refuses_was_never_queued() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("strict", [("x-max-length", Field::I32(1)), ("x-overflow", Field::text("reject-publish"))]);
    let letters = [("x-dead-letter-exchange", Field::text("")), ("x-dead-letter-routing-key", Field::text("dead"))];
    let [exchange, key] = letters;
    peer.declare_with(
        "spill",
        [("x-max-length", Field::I32(0)), ("x-overflow", Field::text("reject-publish-dlx")), exchange, key],
    );
    peer.declare("dead");
    let _watch = space(&world).watch_journeys();
    for queue in ["strict", "strict", "spill"] {
        peer.publish("", queue, "m");
    }
    assert_eq!(
        told(&world),
        [
            "published routed queued 1",
            "published routed dropped (the queue was full) 0",
            "published routed dropped (maxlen) dead-lettered 0",
            "published routed queued 1",
        ]
    );
}

#[test]
fn a_letter_that_no_queue_takes_was_not_dead_lettered() {
    let world = World::new();
    let mut peer = world.connect();
    let brief = |exchange, key| {
        let (exchange, key) = (Field::text(exchange), Field::text(key));
        [("x-message-ttl", Field::I32(10)), ("x-dead-letter-exchange", exchange), ("x-dead-letter-routing-key", key)]
    };
    peer.declare_with("round", brief("", "round"));
    peer.declare_with("astray", brief("none", "k"));
    peer.declare_with("narrow", brief("", "full"));
    peer.declare_with("full", [("x-max-length", Field::I32(0)), ("x-overflow", Field::text("reject-publish"))]);
    let _watch = space(&world).watch_journeys();
    for queue in ["round", "astray", "narrow"] {
        peer.publish("", queue, "m");
    }
    world.wait(11);
    assert_eq!(
        told(&world),
        [
            "published routed queued expired dropped (its letter would go round for ever) 0",
            "published routed queued expired dropped (no queue for its letter) 0",
            "published routed queued expired dropped (its letter was refused by full queues) 0",
            "published routed dropped (the queue was full) 0",
        ]
    );
}

#[test]
fn what_is_purged_or_goes_with_its_queue_is_told_to_be_gone() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let _watch = space(&world).watch_journeys();
    peer.publish("", "q", "1");
    peer.client.purge_queue(1, "q").expect("purged");
    peer.flush().expect("flushed");
    peer.publish("", "q", "2");
    peer.publish("", "q", "3");
    assert!(peer.get("q").is_some());
    peer.delete("q").expect("deleted");
    peer.settle(1, false, Verdict::Requeue).expect("known");
    assert_eq!(
        told(&world),
        [
            "published routed queued dropped (purged) 0",
            "published routed queued delivered dropped (its queue was deleted) 0",
            "published routed queued dropped (its queue was deleted) 0",
        ]
    );
}

#[test]
fn an_ack_that_is_told_before_its_delivery_stands_behind_it() {
    let world = World::new();
    let (mut publisher, mut worker) = (world.connect(), world.connect());
    publisher.declare("q");
    worker.consume("q", "c", 0, false).expect("consuming");
    let _watch = space(&world).watch_journeys();
    publisher.say("", "q", b"m");
    // It takes effect, and is told at the flush.
    publisher.begin().declare_queue_passively(1, "q").expect("there");
    assert_eq!(worker.bodies(), "m");
    worker.ack(1);
    assert_eq!(told(&world), ["published routed acked 0"]);
    publisher.flush().expect("flushed");
    assert_eq!(told(&world), ["published routed queued delivered acked 0"]);
}

#[test]
fn a_message_to_many_queues_is_followed_in_the_first_of_them() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("x", ExchangeKind::Fanout);
    for queue in (0..STEPS_MAX + 6).map(|at| format!("q{at}")) {
        peer.declare(&queue);
        peer.bind(&queue, "x", "").expect("bound");
    }
    let vhost = space(&world);
    let _watch = vhost.watch_journeys();
    peer.publish("x", "", "m");
    let found = vhost.search_journeys(Search { limit: 10, ..Search::default() });
    let kept = &found.journeys[0];
    assert_eq!((kept.queues.len(), kept.open as usize, kept.steps.len()), (STEPS_MAX, STEPS_MAX, STEPS_MAX));
    assert_eq!(kept.steps_left_out, 8, "published and routed are steps, too");
}

#[test]
fn what_is_kept_of_messages_followed_stays_within_its_bytes() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let vhost = space(&world);
    let _watch = vhost.watch_journeys();
    let each = size_of::<Journey>() + STEPS_MAX * size_of::<Step>();
    let most = JOURNEY_BYTES_MAX / each;
    for at in 0..most {
        if at % JOURNEYS_PER_SECOND as usize == 0 {
            peer.flush().expect("flushed");
            world.clock.advance(Duration::from_secs(1));
        }
        peer.say("", "q", b"x");
    }
    peer.flush().expect("flushed");
    let found = vhost.search_journeys(Search::default());
    assert_eq!(found.skipped, 0);
    assert!((most / 2..most).contains(&(found.kept as usize)), "{} of {most}", found.kept);
}

#[test]
fn no_more_messages_are_followed_in_a_second_than_the_budget_allows() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let vhost = space(&world);
    let _watch = vhost.watch_journeys();
    let count = u64::from(JOURNEYS_PER_SECOND) + 5;
    for _ in 0..count {
        peer.say("", "q", b"x");
    }
    peer.flush().expect("flushed");
    let found = vhost.search_journeys(Search { limit: 3, ..Search::default() });
    assert_eq!((found.kept, found.skipped, found.journeys.len()), (count - 5, 5, 3));
    let next = vhost.search_journeys(Search { before: Some(found.journeys[2].id), limit: 1, ..Search::default() });
    assert_eq!(next.journeys[0].id + 1, found.journeys[2].id);
    world.clock.advance(Duration::from_secs(1));
    peer.publish("", "q", "again");
    assert_eq!(vhost.search_journeys(Search::default()).kept, count - 4);
}

fn late(peer: &mut Peer, key: &str, millis: Field, body: &str) -> Vec<Said> {
    let headers = table::encoded(&Table::new().with("x-delay", millis));
    let list = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
    peer.say_with("late", key, list, true, body.as_bytes()).expect("published");
    peer.flush().expect("flushed");
    peer.news()
}

#[test]
fn a_delayed_message_waits_its_time_and_shows_its_delay_negated() {
    let world = World::new();
    let mut peer = world.connect();
    let arguments = Table::new().with("x-delayed-type", Field::text("topic"));
    let spec = ExchangeSpec { arguments, ..exchange_spec("late", ExchangeKind::Delayed) };
    peer.client.declare_exchange(1, &spec).expect("declared");
    peer.declare("q");
    peer.bind("q", "late", "a.*").expect("bound");
    assert_eq!(late(&mut peer, "a.b", Field::I32(500), "second"), []);
    assert_eq!(late(&mut peer, "a.b", Field::I32(200), "first"), []);
    assert_eq!(late(&mut peer, "a.b", Field::I32(0), "now"), []);
    assert_eq!(late(&mut peer, "x", Field::I32(100), "nowhere later"), []);
    let vhost = space(&world);
    let waiting =
        |vhost: &crate::broker::Vhost| vhost.exchanges().into_iter().find(|view| &*view.name == "late").map(|view| view.delayed);
    assert_eq!(waiting(&vhost), Some(3));
    assert!(matches!(peer.get("q"), Some(Said::Message { body, .. }) if body == b"now"));
    assert!(peer.get("q").is_none());
    world.wait(499);
    world.wait(1);
    let Some(Said::Message { body, exchange, properties, .. }) = peer.get("q") else { panic!("the first") };
    assert_eq!((&body[..], exchange.as_str()), (&b"first"[..], "late"));
    let headers = Properties::check(&properties).expect("good").headers().map(RawTable::to_table).expect("headers");
    assert_eq!(headers.get("x-delay"), Some(&Field::I32(-200)));
    assert!(matches!(peer.get("q"), Some(Said::Message { body, .. }) if body == b"second"));
    assert_eq!(waiting(&vhost), Some(0));
    // What waits goes with its exchange, and holds no memory.
    late(&mut peer, "a.b", Field::I32(200), "gone");
    let held = world.broker.totals().queue_bytes;
    peer.client.delete_exchange(1, "late", false).expect("deleted");
    assert!(world.broker.totals().queue_bytes < held);
    world.wait(1_000);
    assert!(peer.get("q").is_none());
}

#[test]
fn a_transaction_delays_what_it_publishes_from_its_commit_on() {
    let world = World::new();
    let mut peer = world.connect();
    let arguments = Table::new().with("x-delayed-type", Field::text("fanout"));
    let spec = ExchangeSpec { arguments, ..exchange_spec("late", ExchangeKind::Delayed) };
    peer.client.declare_exchange(1, &spec).expect("declared");
    peer.declare("q");
    peer.bind("q", "late", "").expect("bound");
    peer.client.select_tx(1).expect("selected");
    late(&mut peer, "", Field::I32(100), "1");
    world.wait(100);
    peer.client.begin(world.clock.now());
    peer.client.commit(1).expect("committed");
    world.wait(0);
    assert!(peer.get("q").is_none());
    world.wait(100);
    assert!(peer.get("q").is_some());
}

#[test]
fn a_commit_delays_what_there_was_room_for_when_it_was_published() {
    let world = World::with(BrokerConfig { delayed_messages_max: 2, ..BrokerConfig::default() });
    let (mut peer, mut other) = (world.connect(), world.connect());
    let arguments = Table::new().with("x-delayed-type", Field::text("fanout"));
    let spec = ExchangeSpec { arguments, ..exchange_spec("late", ExchangeKind::Delayed) };
    peer.client.declare_exchange(1, &spec).expect("declared");
    peer.declare("q");
    peer.declare("plain");
    peer.bind("q", "late", "").expect("bound");
    peer.client.select_tx(1).expect("selected");
    late(&mut peer, "", Field::I32(100), "1");
    peer.publish("", "plain", "2");
    // Meanwhile others fill the exchange.
    late(&mut other, "", Field::I32(100), "a");
    late(&mut other, "", Field::I32(100), "b");
    let headers = table::encoded(&Table::new().with("x-delay", Field::I32(100)));
    let properties = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
    let full = "406 exchange 'late' in vhost '/' cannot delay one more message: 2 wait already; consume, or delay fewer";
    assert_eq!(refused(other.say_with("late", "", properties, false, b"c")), full);
    assert_eq!(refused(peer.say_with("late", "", properties, false, b"3")), full);
    peer.client.commit(1).expect("committed whole");
    peer.flush().expect("flushed");
    world.wait(100);
    assert_eq!((world.view("q").ready, world.view("plain").ready), (3, 1));
}
