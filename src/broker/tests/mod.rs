//! What the broker promises, one sentence a test.

mod attach;
mod call;
mod consumers;
mod exchanges;
mod flow;
mod govern;
mod kept;
mod letters;
mod limits;
mod manage;
mod quorum;
mod ruled;
mod simulation;
mod taps;
mod tracing;
mod transactions;
mod world;

use super::client::{Consume, Hold, Verdict};
use super::config::BrokerConfig;
use super::declare::DeleteRule;
use super::peek::Peek;
use super::refused::Refused;
use crate::model::table::{Field, Table};
use crate::model::topology::{CALL_EXCHANGE, EVENT_EXCHANGE, ExchangeKind, ExchangeSpec, QueueSpec};
use crate::wire::amqp::{Properties, PropertyList, RawTable, table};
use std::time::Duration;
use world::{Peer, Said, World};

fn refused(result: Result<impl std::fmt::Debug, super::Failed>) -> String {
    let refused = result.expect_err("refused").refused;
    let kind = match refused {
        Refused::NotFound(_) => 404,
        Refused::AccessRefused(_) => 403,
        Refused::Locked(_) => 405,
        Refused::Precondition(_) => 406,
        Refused::TooLarge(_) => 311,
        Refused::NotImplemented(_) => 540,
        Refused::NotAllowed(_) => 530,
        Refused::CommandInvalid(_) => 503,
    };
    format!("{kind} {refused}")
}

fn spec(name: &str) -> QueueSpec {
    QueueSpec { name: name.into(), durable: false, exclusive: false, auto_delete: false, arguments: Table::new() }
}

fn exchange_spec(name: &str, kind: ExchangeKind) -> ExchangeSpec {
    ExchangeSpec { name: name.into(), kind, durable: true, auto_delete: false, internal: false, arguments: Table::new() }
}

#[test]
fn a_requeued_message_returns_to_its_place_marked_redelivered() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    for body in ["a", "b", "c", "d"] {
        peer.publish("", "q", body);
    }
    peer.consume("q", "one", 3, false).expect("consuming");
    assert_eq!(peer.bodies(), "a b c");
    peer.client.cancel(1, "one").expect("cancelled");
    peer.settle(2, false, Verdict::Requeue).expect("known");
    peer.settle(1, false, Verdict::Requeue).expect("known");
    let mut other = world.connect();
    other.consume("q", "two", 0, true).expect("consuming");
    assert_eq!(other.bodies(), "a* b* d");
}

#[test]
fn unacked_messages_return_to_the_front_after_channel_close() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    for body in ["a", "b", "c"] {
        peer.publish("", "q", body);
    }
    peer.consume("q", "c", 2, false).expect("consuming");
    assert_eq!(peer.bodies(), "a b");
    peer.client.close_channel(1);
    peer.flush().expect("flushed");
    let mut other = world.connect();
    assert!(matches!(other.get("q"), Some(Said::Message { redelivered: true, body, .. }) if body == b"a"));
}

#[test]
fn several_consumers_take_turns_and_prefetch_holds_each() {
    let world = World::new();
    let mut publisher = world.connect();
    publisher.declare("q");
    let (mut one, mut two) = (world.connect(), world.connect());
    one.consume("q", "one", 2, false).expect("consuming");
    two.consume("q", "two", 0, true).expect("consuming");
    for body in ["1", "2", "3", "4", "5", "6"] {
        publisher.say("", "q", body.as_bytes());
    }
    publisher.flush().expect("flushed");
    assert_eq!((one.bodies().as_str(), two.bodies().as_str()), ("1 3", "2 4 5 6"));
    one.ack(2);
    publisher.publish("", "q", "7");
    assert_eq!((one.bodies().as_str(), two.bodies().as_str()), ("7", ""));
}

#[test]
fn a_channel_wide_prefetch_holds_all_its_consumers_together() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("a");
    peer.declare("b");
    peer.client.limit_prefetch(1, 2, true).expect("limited");
    peer.consume("a", "ca", 0, false).expect("consuming");
    peer.consume("b", "cb", 0, false).expect("consuming");
    for (queue, body) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4")] {
        peer.publish("", queue, body);
    }
    assert_eq!(peer.bodies(), "1 2");
    peer.ack(1);
    assert_eq!(peer.bodies().len(), 1);
    peer.settle(0, true, Verdict::Ack).expect("all");
    assert_eq!(peer.bodies().len(), 1);
}

#[test]
fn a_consumer_of_higher_priority_is_served_first() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let (mut low, mut high) = (world.connect(), world.connect());
    low.consume("q", "low", 0, true).expect("consuming");
    let arguments = Table::new().with("x-priority", Field::I32(5));
    high.client.limit_prefetch(1, 1, false).expect("limited");
    let consume = Consume { queue: "q".into(), tag: "high".into(), arguments, ..Consume::default() };
    high.client.consume(1, consume).expect("consuming");
    for body in ["1", "2"] {
        peer.publish("", "q", body);
    }
    assert_eq!((high.bodies().as_str(), low.bodies().as_str()), ("1", "2"));
}

#[test]
fn confirms_are_cumulative_and_a_return_comes_before_its_confirm() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.client.select_confirms(1).expect("confirms");
    peer.say("", "q", b"1");
    peer.say("", "q", b"2");
    peer.say_with("", "nowhere", PropertyList::default(), true, b"lost").expect("published");
    peer.say("", "nowhere", b"silent");
    peer.flush().expect("flushed");
    let said = peer.news();
    assert_eq!(
        said,
        [
            Said::Returned { code: 312, key: "nowhere".into(), body: b"lost".to_vec() },
            Said::Confirmed { channel: 1, up_to: 4, multiple: true }
        ]
    );
    peer.publish("", "q", "5");
    assert_eq!(peer.news(), [Said::Confirmed { channel: 1, up_to: 5, multiple: false }]);
}

#[test]
fn declarations_are_compared_in_rabbitmqs_words() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let durable = QueueSpec { durable: true, ..spec("q") };
    let text = "406 inequivalent arg 'durable' for queue 'q' in vhost '/': received 'true' but current is 'false'";
    assert_eq!(refused(peer.declare_as(durable)), text);
    peer.exchange("x", ExchangeKind::Direct);
    let other = exchange_spec("x", ExchangeKind::Fanout);
    let text = "406 inequivalent arg 'type' for exchange 'x' in vhost '/': received 'fanout' but current is 'direct'";
    assert_eq!(refused(peer.client.declare_exchange(1, &other)), text);
    let lazy = Table::new().with("x-queue-mode", Field::text("lazy"));
    let text = "406 inequivalent arg 'x-queue-mode' for queue 'q' in vhost '/': received the value 'lazy' of type 'longstr' but \
                current is none";
    assert_eq!(refused(peer.try_declare("q", lazy)), text);
    let classic = Table::new().with("x-queue-type", Field::text("classic"));
    peer.try_declare("q", classic).expect("classic is what it is");
    assert_eq!(refused(peer.client.declare_queue_passively(1, "none")), "404 no queue 'none' in vhost '/'");
    assert_eq!(refused(peer.client.declare_exchange_passively(1, "none")), "404 no exchange 'none' in vhost '/'");
}

#[test]
fn names_of_the_broker_are_reserved_and_its_exchanges_stay() {
    let world = World::new();
    let mut peer = world.connect();
    let declare = |peer: &mut Peer, name: &str| peer.client.declare_exchange(1, &exchange_spec(name, ExchangeKind::Topic));
    for name in [CALL_EXCHANGE, EVENT_EXCHANGE, "amq.topic"] {
        declare(&mut peer, name).expect("declared again as it is");
        let deleted = peer.client.delete_exchange(1, name, false);
        assert_eq!(refused(deleted), format!("403 deletion of system exchange '{name}' in vhost '/' not allowed"));
    }
    for name in ["amq.mine", "reactor.mine"] {
        assert!(refused(declare(&mut peer, name)).contains("contains reserved prefix"), "{name}");
        assert!(refused(peer.try_declare(name, Table::new())).contains("contains reserved prefix"), "{name}");
    }
    assert_eq!(refused(declare(&mut peer, "")), "403 operation not permitted on the default exchange");
}

#[test]
fn what_is_not_there_yet_is_refused_by_name() {
    let world = World::new();
    let mut peer = world.connect();
    let text = refused(peer.try_declare("q", Table::new().with("x-queue-type", Field::text("stream"))));
    assert!(text.starts_with("540") && text.contains("is not available yet"), "{text}");
    let unknown = Table::new().with("x-queue-type", Field::text("nonsense"));
    assert!(refused(peer.try_declare("q", unknown)).starts_with("406 invalid arg 'x-queue-type'"));
}

#[test]
fn a_quorum_queue_is_taken_if_it_could_be_one() {
    let world = World::new();
    let mut peer = world.connect();
    let arguments = Table::new().with("x-queue-type", Field::text("quorum"));
    let quorum = QueueSpec { durable: true, arguments, ..spec("q") };
    let text = "406 invalid property 'non-durable' for queue 'q' in vhost '/'";
    assert_eq!(refused(peer.declare_as(QueueSpec { durable: false, ..quorum.clone() })), text);
    peer.declare_as(quorum.clone()).expect("declared");
    peer.declare_as(quorum).expect("declared again as it is");
    let classic = QueueSpec { durable: true, ..spec("q") };
    assert!(refused(peer.declare_as(classic)).starts_with("406 inequivalent arg 'x-queue-type' for queue 'q'"));
    assert!(world.broker.vhost("/").expect("space").queue("q").expect("queue").not_on_disk);
}

#[test]
fn deleting_asks_whether_a_queue_is_used_or_empty() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.publish("", "q", "1");
    peer.consume("q", "c", 1, false).expect("consuming");
    peer.publish("", "q", "2");
    let rule = |if_unused, if_empty| DeleteRule { if_unused, if_empty };
    assert_eq!(refused(peer.client.delete_queue(1, "q", rule(true, false))), "406 queue 'q' in vhost '/' in use");
    assert_eq!(refused(peer.client.delete_queue(1, "q", rule(false, true))), "406 queue 'q' in vhost '/' not empty");
    assert_eq!(peer.client.delete_queue(1, "q", rule(false, false)), Ok(1));
    assert_eq!(peer.client.delete_queue(1, "q", rule(false, false)), Ok(0));
    peer.flush().expect("flushed");
    assert_eq!(peer.news().last(), Some(&Said::Cancelled { tag: "c".into() }));
    // What was out may still be acked.
    peer.ack(1);
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn an_exclusive_queue_is_its_connections_and_goes_with_it() {
    let world = World::new();
    let (mut owner, mut other) = (world.connect(), world.connect());
    owner.declare_as(QueueSpec { exclusive: true, ..spec("mine") }).expect("declared");
    let locked = "405 cannot obtain exclusive access to locked queue 'mine'";
    assert!(refused(other.declare_as(QueueSpec { exclusive: true, ..spec("mine") })).starts_with(locked));
    assert!(refused(other.client.declare_queue_passively(1, "mine")).starts_with(locked));
    assert!(refused(other.consume("mine", "c", 0, true)).starts_with(locked));
    assert!(refused(other.delete("mine")).starts_with(locked));
    other.publish("", "mine", "from elsewhere");
    assert!(owner.get("mine").is_some());
    owner.client.close("over");
    assert_eq!(refused(other.client.declare_queue_passively(1, "mine")), "404 no queue 'mine' in vhost '/'");
}

#[test]
fn an_auto_delete_queue_goes_with_its_last_consumer_only() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_as(QueueSpec { auto_delete: true, ..spec("q") }).expect("declared");
    peer.consume("q", "one", 0, true).expect("consuming");
    peer.consume("q", "two", 0, true).expect("consuming");
    peer.client.cancel(1, "one").expect("cancelled");
    assert!(world.broker.vhost("/").expect("space").queue("q").is_some());
    peer.client.close_channel(1);
    assert!(world.broker.vhost("/").expect("space").queue("q").is_none());
}

#[test]
fn an_auto_delete_exchange_goes_with_its_last_binding() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let spec = ExchangeSpec { auto_delete: true, ..exchange_spec("x", ExchangeKind::Direct) };
    peer.client.declare_exchange(1, &spec).expect("declared");
    peer.bind("q", "x", "a").expect("bound");
    peer.bind("q", "x", "b").expect("bound");
    peer.publish("x", "a", "routed");
    let vhost = world.broker.vhost("/").expect("space");
    let unbind = |peer: &mut Peer, key: &str| {
        let spec = world::binding("q", "x", key);
        peer.client.unbind(1, spec).expect("unbound");
    };
    unbind(&mut peer, "a");
    assert!(vhost.exchanges().iter().any(|exchange| &*exchange.name == "x"));
    unbind(&mut peer, "b");
    assert!(!vhost.exchanges().iter().any(|exchange| &*exchange.name == "x"));
    assert!(refused(peer.say_with("x", "a", PropertyList::default(), false, b"")).starts_with("404 no exchange 'x'"));
}

#[test]
fn an_exclusive_consumer_is_alone() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.client.consume(1, Consume { queue: "q".into(), tag: "a".into(), exclusive: true, ..Consume::default() }).expect("alone");
    assert_eq!(refused(peer.consume("q", "b", 0, true)), "403 queue 'q' in vhost '/' in exclusive use");
    assert_eq!(refused(peer.consume("q", "a", 0, true)), "530 attempt to reuse consumer tag 'a'");
    peer.client.cancel(1, "a").expect("cancelled");
    peer.consume("q", "b", 0, true).expect("free again");
}

#[test]
fn an_expired_message_is_never_delivered_but_one_for_a_waiting_consumer_is() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let brief = |peer: &mut Peer, expiration: &str, body: &str| {
        let properties = PropertyList { expiration: Some(expiration), ..PropertyList::default() };
        peer.say_with("", "q", properties, false, body.as_bytes())
    };
    assert!(refused(brief(&mut peer, "soon", "x")).starts_with("406 invalid expiration 'soon'"));
    brief(&mut peer, "100", "late").expect("published");
    peer.publish("", "q", "lasting");
    world.clock.advance(Duration::from_millis(101));
    assert!(matches!(peer.get("q"), Some(Said::Message { body, .. }) if body == b"lasting"));
    peer.consume("q", "c", 0, true).expect("consuming");
    brief(&mut peer, "0", "at once").expect("published");
    peer.flush().expect("flushed");
    assert_eq!(peer.bodies(), "at once");
    peer.client.cancel(1, "c").expect("cancelled");
    brief(&mut peer, "50", "gone").expect("published");
    peer.flush().expect("flushed");
    world.clock.advance(Duration::from_millis(51));
    world.broker.run_due();
    let view = world.broker.vhost("/").expect("space").queue("q").expect("queue");
    assert_eq!((view.ready, view.counts.expired, view.ready_bytes), (0, 2, 0));
}

#[test]
fn a_reply_reaches_the_channel_that_asked() {
    let world = World::new();
    let (mut asking, mut answering) = (world.connect(), world.connect());
    answering.declare("work");
    answering.consume("work", "worker", 0, true).expect("consuming");
    let ask = |peer: &mut Peer| {
        let properties =
            PropertyList { reply_to: Some("amq.rabbitmq.reply-to"), correlation_id: Some("7"), ..PropertyList::default() };
        peer.say_with("", "work", properties, false, b"?").and_then(|()| peer.flush())
    };
    assert_eq!(refused(ask(&mut asking)), "406 fast reply consumer does not exist");
    assert_eq!(refused(asking.consume("amq.rabbitmq.reply-to", "r", 0, false)), "406 reply consumer cannot acknowledge");
    asking.consume("amq.rabbitmq.reply-to", "r", 0, true).expect("consuming");
    assert_eq!(refused(asking.consume("amq.rabbitmq.reply-to", "r2", 0, true)), "406 reply consumer already set");
    ask(&mut asking).expect("asked");
    let Said::Message { properties, .. } = answering.news().pop().expect("the question") else { panic!("a message") };
    let address = Properties::trusted(&properties).reply_to().expect("an address").to_owned();
    assert!(address.starts_with("amq.rabbitmq.reply-to.") && address.len() > 40, "{address}");
    answering.client.declare_queue_passively(1, &address).expect("it lives");
    answering.publish("", &address, "!");
    let heard = asking.news();
    assert!(
        matches!(&heard[..], [Said::Message { by, body, key, .. }] if by == "r" && body == b"!" && *key == address),
        "{heard:?}"
    );
    asking.client.close_channel(1);
    let properties = PropertyList::default();
    answering.say_with("", &address, properties, true, b"too late").expect("published");
    answering.flush().expect("flushed");
    assert!(matches!(&answering.news()[..], [Said::Returned { code: 312, .. }]));
    assert_eq!(world.broker.totals().replies_dropped, 1);
}

#[test]
fn a_user_id_that_is_not_the_logins_is_refused() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    let claim = |peer: &mut Peer, user: &str| {
        peer.say_with("", "q", PropertyList { user_id: Some(user), ..PropertyList::default() }, false, b"")
    };
    claim(&mut peer, "guest").expect("its own");
    let text = "406 user_id property set to 'reactor.gateway' but authenticated user was 'guest'";
    assert_eq!(refused(claim(&mut peer, "reactor.gateway")), text);
}

#[test]
fn publishers_are_held_while_queues_are_over_the_limit() {
    let world = World::with(BrokerConfig { queue_bytes_max: 10_000, ..BrokerConfig::default() });
    let mut peer = world.connect();
    peer.declare("q");
    peer.say("", "q", &[0; 4_000]);
    peer.flush().expect("flushed");
    assert!(peer.client.take_hold().is_none());
    peer.say("", "q", &[0; 7_000]);
    peer.flush().expect("flushed");
    assert!(matches!(peer.client.take_hold(), Some(Hold::Alarm)));
    assert!(world.broker.totals().alarm);
    let mut other = world.connect();
    other.client.purge_queue(1, "q").expect("purged");
    assert!(!world.broker.totals().alarm);
    peer.publish("", "q", "small");
    assert!(peer.client.take_hold().is_none());
}

#[test]
fn a_slow_reader_bounds_its_outbox_and_gets_the_rest_as_it_reads() {
    let world = World::new();
    let (mut publisher, mut slow) = (world.connect(), world.connect());
    publisher.declare("q");
    slow.consume("q", "c", 0, true).expect("consuming");
    for number in 0..3_000u32 {
        let mut body = number.to_be_bytes().to_vec();
        body.resize(1_000, 0);
        publisher.say("", "q", &body);
    }
    publisher.flush().expect("flushed");
    let view = world.broker.vhost("/").expect("space").queue("q").expect("queue");
    assert!(view.ready > 1_500, "only {} wait in the queue", view.ready);
    let numbers: Vec<u32> = slow
        .news()
        .into_iter()
        .map(|said| match said {
            Said::Message { body, .. } => u32::from_be_bytes(body[..4].try_into().expect("four")),
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(numbers.iter().copied().eq(0..3_000), "{} came", numbers.len());
}

#[test]
fn a_body_larger_than_the_readers_frames_is_split() {
    let world = World::new();
    let mut publisher = world.connect();
    let mut small = world.connect_as(Table::new(), 4_096);
    publisher.declare("q");
    small.consume("q", "c", 0, true).expect("consuming");
    for length in [4_088, 4_089, 8_191, 8_192, 100_000] {
        let body: Vec<u8> = (0..length).map(|at| at as u8).collect();
        publisher.say("", "q", &body);
        publisher.flush().expect("flushed");
        assert!(matches!(&small.news()[..], [Said::Message { body: got, .. }] if *got == body), "{length} bytes");
        publisher.say("", "q", &body);
        publisher.flush().expect("flushed");
        small.news();
    }
}

#[test]
fn peeking_changes_nothing() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("q");
    peer.publish("amq.fanout", "", "nowhere");
    for body in ["one", "two", "three"] {
        peer.publish("", "q", body);
    }
    let vhost = world.broker.vhost("/").expect("space");
    let peek = Peek { count: 2, body_bytes_max: 2, ..Peek::default() };
    let peeked = vhost.peek("q", &peek).expect("there").messages;
    let seen: Vec<(u64, &[u8], u64)> =
        peeked.iter().map(|message| (message.position, &message.body[..], message.body_len)).collect();
    assert_eq!(seen, [(0, &b"on"[..], 3), (1, b"tw", 3)]);
    assert_eq!((peeked[0].routing_key.as_str(), peeked[0].redelivered, peeked[0].header.len()), ("q", false, 14));
    peer.consume("q", "c", 0, true).expect("consuming");
    assert_eq!(peer.bodies(), "one two three");
    assert!(vhost.peek("none", &peek).is_err());
}

#[test]
fn a_queue_is_measured_from_its_first_message_or_consumer_on() {
    let world = World::new();
    let mut peer = world.connect();
    for name in ["idle", "fed", "heard"] {
        peer.declare(name);
    }
    peer.publish("", "fed", "x");
    peer.consume("heard", "c", 0, true).expect("consuming");
    let vhost = world.broker.vhost("/").expect("space");
    let names: Vec<String> = vhost.queues_in_use().iter().map(|view| view.name.to_string()).collect();
    assert_eq!(names, ["fed", "heard"]);
    peer.get("fed").expect("a message");
    assert_eq!(vhost.queues_in_use().len(), 2, "what was used once goes on being measured");
    assert_eq!(vhost.queues().len(), 3);
}
