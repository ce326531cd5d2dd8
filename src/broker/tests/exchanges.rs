//! Exchanges bound to exchanges, alternates, and the keys a sender chooses.

use super::world::{Peer, Said, World, binding};
use super::{exchange_spec, refused};
use crate::model::policy::{ExchangePolicy, Policies, QueueKind, QueuePolicy};
use crate::model::table::{Field, Table};
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeKind, ExchangeSpec};
use crate::wire::amqp::{Properties, PropertyList, RawTable, table};

/// An exchange's binding without arguments.
fn to_exchange(destination: &str, source: &str, key: &str) -> BindingSpec {
    BindingSpec { destination_kind: DestinationKind::Exchange, ..binding(destination, source, key) }
}

fn lead(peer: &mut Peer, source: &str, destination: &str, key: &str) {
    peer.client.bind(1, to_exchange(destination, source, key)).expect("bound");
}

/// What lies in a queue, from its head.
fn lying(world: &World, queue: &str) -> String {
    let peek = crate::broker::Peek { count: 100, body_bytes_max: 1000, ..Default::default() };
    let peeked = world.broker.vhost("/").expect("there").peek(queue, &peek).expect("a queue").messages;
    peeked.iter().map(|message| String::from_utf8_lossy(&message.body).into_owned()).collect::<Vec<_>>().join(" ")
}

fn has(world: &World, exchange: &str) -> bool {
    world.broker.vhost("/").expect("there").exchanges().iter().any(|view| *view.name == *exchange)
}

fn auto_delete(name: &str) -> ExchangeSpec {
    ExchangeSpec { auto_delete: true, ..exchange_spec(name, ExchangeKind::Fanout) }
}

#[test]
fn a_message_follows_bindings_from_exchange_to_exchange_and_reaches_each_queue_once() {
    let world = World::new();
    let mut peer = world.connect();
    for (name, kind) in [("in", ExchangeKind::Topic), ("mid", ExchangeKind::Fanout), ("out", ExchangeKind::Direct)] {
        peer.exchange(name, kind);
    }
    for queue in ["all", "one"] {
        peer.declare(queue);
    }
    lead(&mut peer, "in", "mid", "a.#");
    lead(&mut peer, "mid", "out", "");
    // Round and round: every exchange is asked once.
    lead(&mut peer, "out", "in", "a.b");
    lead(&mut peer, "mid", "mid", "");
    peer.bind("all", "mid", "").expect("bound");
    peer.bind("all", "in", "#").expect("bound");
    peer.bind("one", "out", "a.b").expect("bound");
    peer.publish("in", "a.b", "1");
    peer.publish("in", "a.c", "2");
    peer.publish("in", "b", "3");
    assert_eq!((lying(&world, "all").as_str(), lying(&world, "one").as_str()), ("1 2 3", "1"));
    peer.client.unbind(1, to_exchange("mid", "in", "a.#")).expect("unbound");
    peer.publish("in", "a.b", "4");
    assert_eq!((lying(&world, "all").as_str(), lying(&world, "one").as_str()), ("1 2 3 4", "1"));
    let binding = world.broker.vhost("/").expect("there").bindings().into_iter().find(|binding| &*binding.source == "out");
    let binding = binding.filter(|binding| binding.destination_kind == DestinationKind::Exchange);
    assert!(binding.is_some_and(|binding| &*binding.destination == "in"));
}

#[test]
fn exchanges_that_delete_themselves_go_with_their_last_binding_up_the_chain() {
    let world = World::new();
    let mut peer = world.connect();
    for name in ["first", "second", "third"] {
        peer.client.declare_exchange(1, &auto_delete(name)).expect("declared");
    }
    peer.declare("q");
    lead(&mut peer, "first", "second", "");
    lead(&mut peer, "second", "third", "");
    peer.bind("q", "third", "").expect("bound");
    assert!(has(&world, "first"));
    peer.delete("q").expect("deleted");
    assert!(!["first", "second", "third"].into_iter().any(|name| has(&world, name)), "each lost its last binding");
    assert!(world.broker.vhost("/").expect("there").bindings().is_empty());
    // Being bound to is not being used.
    peer.client.declare_exchange(1, &auto_delete("leaf")).expect("declared");
    peer.exchange("root", ExchangeKind::Fanout);
    lead(&mut peer, "root", "leaf", "");
    peer.client.unbind(1, to_exchange("leaf", "root", "")).expect("unbound");
    assert!(has(&world, "leaf"));
}

#[test]
fn deleting_an_exchange_takes_the_bindings_on_both_its_sides() {
    let world = World::new();
    let mut peer = world.connect();
    for name in ["a", "b", "c"] {
        peer.exchange(name, ExchangeKind::Fanout);
    }
    peer.declare("q");
    lead(&mut peer, "a", "b", "");
    lead(&mut peer, "b", "c", "");
    peer.bind("q", "c", "").expect("bound");
    assert_eq!(refused(peer.client.delete_exchange(1, "b", true)), "406 exchange 'b' in vhost '/' in use");
    peer.client.delete_exchange(1, "b", false).expect("deleted");
    peer.client.delete_exchange(1, "b", false).expect("what is not there is no error");
    let left = world.broker.vhost("/").expect("there").bindings();
    assert_eq!(left.iter().map(|binding| &*binding.source).collect::<Vec<_>>(), ["c"]);
    peer.client.delete_exchange(1, "a", true).expect("nothing is bound to it any more");
    // One of the same name starts afresh.
    peer.exchange("b", ExchangeKind::Fanout);
    peer.publish("b", "", "lost");
    assert_eq!(lying(&world, "q"), "");
}

#[test]
fn binding_exchanges_is_refused_in_rabbitmqs_words() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("x", ExchangeKind::Fanout);
    let bind = |peer: &mut Peer, source: &str, destination: &str| peer.client.bind(1, to_exchange(destination, source, ""));
    assert_eq!(refused(bind(&mut peer, "x", "none")), "404 no exchange 'none' in vhost '/'");
    assert_eq!(refused(bind(&mut peer, "none", "x")), "404 no exchange 'none' in vhost '/'");
    assert_eq!(refused(bind(&mut peer, "x", "")), "403 operation not permitted on the default exchange");
    assert_eq!(refused(bind(&mut peer, "", "x")), "403 operation not permitted on the default exchange");
    let text = refused(peer.client.bind(1, to_exchange("x", "reactor.call", "greeter.#")));
    assert!(text.starts_with("406 exchange 'reactor.call' cannot be bound to an exchange"), "{text}");
    // RabbitMQ unbinds what is not there without a word.
    peer.client.unbind(1, to_exchange("none", "x", "")).expect("no error");
    peer.client.unbind(1, binding("none", "gone", "")).expect("no error");
}

#[test]
fn what_no_binding_takes_goes_to_the_alternate_and_is_returned_only_at_the_end_of_the_chain() {
    let world = World::new();
    let mut peer = world.connect();
    let with = |alternate: &str| Table::new().with("alternate-exchange", Field::text(alternate));
    let declare = |peer: &mut Peer, name: &str, kind, alternate: &str| {
        let spec = ExchangeSpec { arguments: with(alternate), ..exchange_spec(name, kind) };
        peer.client.declare_exchange(1, &spec).expect("declared");
    };
    declare(&mut peer, "in", ExchangeKind::Direct, "second");
    declare(&mut peer, "second", ExchangeKind::Direct, "last");
    peer.declare("q");
    peer.declare("rest");
    peer.bind("q", "in", "known").expect("bound");
    let say = |peer: &mut Peer, key: &str| {
        peer.say_with("in", key, PropertyList::default(), true, key.as_bytes()).expect("published");
        peer.flush().expect("flushed");
        peer.news()
    };
    assert_eq!(say(&mut peer, "known"), []);
    // An alternate that is not there takes nothing.
    assert!(matches!(&say(&mut peer, "lost")[..], [Said::Returned { code: 312, .. }]));
    peer.exchange("last", ExchangeKind::Fanout);
    assert!(matches!(&say(&mut peer, "lost")[..], [Said::Returned { code: 312, .. }]));
    peer.bind("rest", "last", "").expect("bound");
    assert_eq!(say(&mut peer, "found"), []);
    assert_eq!((lying(&world, "q").as_str(), lying(&world, "rest").as_str()), ("known", "found"));
    // A route that was remembered gives way to a new binding.
    peer.bind("q", "in", "found").expect("bound");
    assert_eq!(say(&mut peer, "found"), []);
    assert_eq!((lying(&world, "q").as_str(), lying(&world, "rest").as_str()), ("known found", "found"));
}

#[derive(Debug)]
struct Alternates(&'static str);

impl Policies for Alternates {
    fn of_queue(&self, _: &str, _: QueueKind) -> QueuePolicy {
        QueuePolicy::default()
    }

    fn of_exchange(&self, name: &str) -> ExchangePolicy {
        match name.starts_with("in") {
            true => ExchangePolicy { policy: Some("alternates".into()), alternate_exchange: Some(self.0.into()) },
            false => ExchangePolicy::default(),
        }
    }
}

#[test]
fn a_policy_names_the_alternate_unless_an_argument_does() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("in", ExchangeKind::Direct);
    let spec = ExchangeSpec {
        arguments: Table::new().with("alternate-exchange", Field::text("mine")),
        ..exchange_spec("in.own", ExchangeKind::Direct)
    };
    peer.client.declare_exchange(1, &spec).expect("declared");
    for name in ["mine", "theirs"] {
        peer.exchange(name, ExchangeKind::Fanout);
        peer.declare(name);
        peer.bind(name, name, "").expect("bound");
    }
    peer.publish("in", "k", "before");
    let vhost = world.broker.vhost("/").expect("there");
    vhost.apply_exchange_policies(&Alternates("theirs"));
    peer.publish("in", "k", "1");
    peer.publish("in.own", "k", "2");
    assert_eq!((lying(&world, "theirs").as_str(), lying(&world, "mine").as_str()), ("1", "2"));
}

#[test]
fn a_declaration_that_differs_is_refused_argument_by_argument() {
    let world = World::new();
    let mut peer = world.connect();
    let spec = exchange_spec("x", ExchangeKind::Direct);
    peer.client.declare_exchange(1, &spec).expect("declared");
    let again = |peer: &mut Peer, spec: ExchangeSpec| refused(peer.client.declare_exchange(1, &spec));
    let differs = |name: &str, received: &str, current: &str| {
        format!("406 inequivalent arg '{name}' for exchange 'x' in vhost '/': received {received} but current is {current}")
    };
    let other = ExchangeSpec { durable: false, ..spec.clone() };
    assert_eq!(again(&mut peer, other), differs("durable", "'false'", "'true'"));
    let other = ExchangeSpec { auto_delete: true, ..spec.clone() };
    assert_eq!(again(&mut peer, other), differs("auto_delete", "'true'", "'false'"));
    let other = ExchangeSpec { internal: true, ..spec.clone() };
    assert_eq!(again(&mut peer, other), differs("internal", "'true'", "'false'"));
    let alternate = |name: &str| Table::new().with("alternate-exchange", Field::text(name));
    let other = ExchangeSpec { arguments: alternate("a"), ..spec.clone() };
    assert_eq!(again(&mut peer, other), differs("alternate-exchange", "the value 'a' of type 'longstr'", "none"));
    // What routes the same is the same: RabbitMQ compares no other argument.
    let other = ExchangeSpec { arguments: Table::new().with("x-anything", Field::I32(1)), ..spec.clone() };
    peer.client.declare_exchange(1, &other).expect("equivalent");
    let with = ExchangeSpec { arguments: alternate("a"), ..exchange_spec("y", ExchangeKind::Direct) };
    peer.client.declare_exchange(1, &with).expect("declared");
    let text = refused(peer.client.declare_exchange(1, &ExchangeSpec { arguments: alternate("b"), ..with }));
    assert!(text.ends_with("'alternate-exchange' for exchange 'y' in vhost '/': received 'b' but current is 'a'"), "{text}");
    let bad = Table::new().with("alternate-exchange", Field::I32(1));
    let text =
        refused(peer.client.declare_exchange(1, &ExchangeSpec { arguments: bad, ..exchange_spec("z", ExchangeKind::Topic) }));
    assert_eq!(text, "406 invalid type 'signedint' for arg 'alternate-exchange' in exchange 'z' in vhost '/'");
}

#[test]
fn an_internal_exchange_takes_messages_only_from_exchanges() {
    let world = World::new();
    let mut peer = world.connect();
    let spec = ExchangeSpec { internal: true, ..exchange_spec("inner", ExchangeKind::Fanout) };
    peer.client.declare_exchange(1, &spec).expect("declared");
    peer.exchange("outer", ExchangeKind::Fanout);
    peer.declare("q");
    peer.bind("q", "inner", "").expect("bound");
    lead(&mut peer, "outer", "inner", "");
    let said = peer.say_with("inner", "", PropertyList::default(), false, b"no");
    assert_eq!(refused(said), "403 cannot publish to internal exchange 'inner' in vhost '/'");
    peer.publish("outer", "", "yes");
    assert_eq!(lying(&world, "q"), "yes");
}

fn keys(keys: &[&str]) -> Field {
    Field::Array(keys.iter().map(|key| Field::text(*key)).collect())
}

fn send(peer: &mut Peer, exchange: &str, key: &str, headers: Table, body: &str) -> Result<(), super::super::Failed> {
    let headers = table::encoded(&headers);
    let list = PropertyList { headers: RawTable::check(&headers).ok(), message_id: Some("m"), ..PropertyList::default() };
    peer.say_with(exchange, key, list, true, body.as_bytes())?;
    peer.flush()
}

#[test]
fn cc_and_bcc_add_keys_each_queue_gets_one_copy_and_bcc_is_not_delivered() {
    let world = World::new();
    let mut peer = world.connect();
    for queue in ["a", "b", "c"] {
        peer.declare(queue);
    }
    peer.publish("", "a", "0");
    let headers = Table::new().with("CC", keys(&["b", "a"])).with("BCC", keys(&["c", "nowhere"])).with("n", Field::I32(1));
    send(&mut peer, "", "a", headers, "1").expect("published");
    peer.publish("", "a", "2");
    assert_eq!(["a", "b", "c"].map(|queue| lying(&world, queue)), ["0 1 2", "1", "1"]);
    let Some(Said::Message { key, properties, .. }) = peer.get("c") else { panic!("a message") };
    let properties = Properties::check(&properties).expect("good");
    let left = Table::new().with("CC", keys(&["b", "a"])).with("n", Field::I32(1));
    assert_eq!((key.as_str(), properties.message_id()), ("a", Some("m")));
    assert_eq!(properties.headers().map(RawTable::to_table), Some(left));
    // The key itself may lead nowhere.
    peer.exchange("topics", ExchangeKind::Topic);
    peer.bind("b", "topics", "x.*").expect("bound");
    send(&mut peer, "topics", "lost", Table::new().with("CC", keys(&["x.y"])), "3").expect("published");
    assert_eq!(peer.news(), []);
    assert_eq!(lying(&world, "b"), "1 3");
    let text = refused(send(&mut peer, "", "a", Table::new().with("CC", Field::text("b")), "no"));
    assert_eq!(text, "406 invalid message: {unacceptable_type_in_header,\"CC\",longstr}");
}
