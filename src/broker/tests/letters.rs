//! Dead letters and their story.

use super::refused;
use super::world::{Peer, World, arguments_of};
use crate::broker::client::Verdict;
use crate::model::table::{Field, Table};
use crate::model::topology::ExchangeKind;
use crate::wire::amqp::{PropertyList, RawTable, table};

fn letters(exchange: &str) -> (&'static str, Field) {
    ("x-dead-letter-exchange", Field::text(exchange))
}

fn key(key: &str) -> (&'static str, Field) {
    ("x-dead-letter-routing-key", Field::text(key))
}

/// One entry of `x-death`, as RabbitMQ writes it.
fn death(reason: &str, queue: &str, exchange: &str, keys: &[&str], count: i64) -> Table {
    Table::new()
        .with("count", Field::I64(count))
        .with("reason", Field::text(reason))
        .with("queue", Field::text(queue))
        .with("time", Field::Timestamp(1_700_000_000))
        .with("exchange", Field::text(exchange))
        .with("routing-keys", Field::Array(keys.iter().map(|key| Field::text(*key)).collect()))
}

fn deaths(headers: &Table) -> Vec<Table> {
    let Some(Field::Array(deaths)) = headers.get("x-death") else { return Vec::new() };
    let table = |field: &Field| match field {
        Field::Table(table) => table.clone(),
        other => panic!("{other:?} is no table"),
    };
    deaths.iter().map(table).collect()
}

fn text<'a>(headers: &'a Table, name: &str) -> &'a str {
    headers.get(name).and_then(Field::as_str).unwrap_or("none")
}

fn reject(peer: &mut Peer, queue: &str) {
    let Some(super::world::Said::Message { tag, .. }) = peer.get(queue) else { panic!("{queue} is empty") };
    peer.settle(tag, false, Verdict::Discard).expect("known");
}

#[test]
fn a_rejected_message_goes_to_the_dead_letter_exchange_with_its_story() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("in", ExchangeKind::Direct);
    peer.declare_with("work", [letters(""), key("dead")]);
    peer.bind("work", "in", "k").expect("bound");
    peer.declare("dead");
    let headers = table::encoded(&Table::new().with("mine", Field::I8(3)));
    let properties = PropertyList {
        headers: RawTable::check(&headers).ok(),
        expiration: Some("60000"),
        message_id: Some("m"),
        ..PropertyList::default()
    };
    peer.say_with("in", "k", properties, false, b"a").expect("published");
    peer.flush().expect("flushed");
    reject(&mut peer, "work");
    let view = world.view("work");
    assert_eq!((view.counts.rejected, view.counts.acked, view.fates.dead_rejected), (1, 0, 1));
    world.wait(120_000);
    let Some(super::world::Said::Message { exchange, key, properties, .. }) = peer.get("dead") else { panic!("no letter") };
    assert_eq!((exchange.as_str(), key.as_str()), ("", "dead"));
    let list = crate::wire::amqp::Properties::check(&properties).expect("good").to_list();
    assert_eq!((list.expiration, list.message_id), (None, Some("m")), "it does not expire a second time");
    let headers = list.headers.expect("headers").to_table();
    assert_eq!(headers.get("mine"), Some(&Field::I8(3)));
    let expected = death("rejected", "work", "in", &["k"], 1).with("original-expiration", Field::text("60000"));
    assert_eq!(deaths(&headers), [expected]);
    for which in ["first", "last"] {
        let told = ["reason", "queue", "exchange"].map(|what| text(&headers, &format!("x-{which}-death-{what}")).to_owned());
        assert_eq!(told, ["rejected", "work", "in"]);
    }
}

#[test]
fn expired_and_dropped_messages_become_dead_letters_in_their_order() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("dlx", ExchangeKind::Fanout);
    peer.declare("dead");
    peer.bind("dead", "dlx", "").expect("bound");
    peer.declare_with("brief", [letters("dlx"), ("x-message-ttl", Field::I32(50))]);
    peer.declare_with("short", [letters("dlx"), ("x-max-length", Field::I32(1))]);
    for body in ["a", "b", "c"] {
        peer.say("", "brief", body.as_bytes());
        peer.say("", "short", body.as_bytes());
    }
    peer.flush().expect("flushed");
    assert_eq!(peer.fetch("dead").map(|(body, headers)| (body, deaths(&headers))), {
        Some(("a".into(), vec![death("maxlen", "short", "", &["short"], 1)]))
    });
    assert_eq!(peer.drain("dead"), "b");
    world.wait(50);
    let all: Vec<(String, Table)> = std::iter::from_fn(|| peer.fetch("dead")).collect();
    assert_eq!(all.iter().map(|(body, _)| body.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert!(all.iter().all(|(_, headers)| text(headers, "x-first-death-reason") == "expired"));
    let fates = (world.view("brief").fates.dead_expired, world.view("short").fates.dead_maxlen);
    assert_eq!(fates, (3, 2));
}

#[test]
fn a_retry_loop_by_rejection_and_time_counts_each_death_once_and_up() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("work", [letters(""), key("wait")]);
    peer.declare_with("wait", [letters(""), key("work"), ("x-message-ttl", Field::I32(10))]);
    peer.publish("", "work", "a");
    for _ in 0..3 {
        reject(&mut peer, "work");
        assert_eq!(world.view("wait").ready, 1);
        world.wait(10);
    }
    let (_, headers) = peer.fetch("work").expect("back again");
    let expected = [death("expired", "wait", "", &["wait"], 3), death("rejected", "work", "", &["work"], 3)];
    assert_eq!(deaths(&headers), expected, "the newest first, the time that of the first of each");
    assert_eq!(text(&headers, "x-first-death-queue"), "work");
    assert_eq!(text(&headers, "x-last-death-queue"), "wait");
}

#[test]
fn a_cycle_that_nobody_rejected_in_ends_and_one_with_a_rejection_goes_on() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("a", [letters(""), key("b"), ("x-message-ttl", Field::I32(10))]);
    peer.declare_with("b", [letters(""), key("a"), ("x-message-ttl", Field::I32(10))]);
    peer.publish("", "a", "round");
    world.wait(10);
    assert_eq!((world.view("a").ready, world.view("b").ready), (0, 1));
    world.wait(10);
    assert_eq!((world.view("a").ready, world.view("b").ready), (0, 0));
    // To itself, only by a rejection.
    peer.declare_with("self", [letters(""), key("self"), ("x-max-length", Field::I32(1))]);
    peer.publish("", "self", "1");
    peer.publish("", "self", "2");
    assert_eq!(world.view("self").ready, 1);
    reject(&mut peer, "self");
    assert_eq!(peer.drain("self"), "2");
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn without_a_key_of_its_own_a_letter_keeps_the_messages_and_its_copies() {
    let world = World::new();
    let mut peer = world.connect();
    peer.exchange("dlx", ExchangeKind::Topic);
    peer.declare("dead");
    peer.bind("dead", "dlx", "work.#").expect("bound");
    peer.declare_with("work.a", [letters("dlx")]);
    peer.publish("", "work.a", "x");
    reject(&mut peer, "work.a");
    let Some(super::world::Said::Message { exchange, key, .. }) = peer.get("dead") else { panic!("no letter") };
    assert_eq!((exchange.as_str(), key.as_str()), ("dlx", "work.a"));
}

#[test]
fn a_letter_without_an_exchange_is_dropped_and_nothing_else_happens() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [letters("nowhere")]);
    peer.publish("", "q", "a");
    reject(&mut peer, "q");
    assert_eq!((world.view("q").ready, world.broker.totals().queue_bytes), (0, 0));
    let text = "406 invalid arg 'x-dead-letter-routing-key' for queue 'r' in vhost '/': routing_key_but_no_dlx_defined";
    assert_eq!(refused(peer.try_declare("r", arguments_of([key("k")]))), text);
}

#[test]
fn a_header_that_is_no_history_is_replaced_and_a_large_body_goes_along() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare_with("q", [letters(""), key("dead")]);
    peer.declare("dead");
    let headers = table::encoded(&Table::new().with("x-death", Field::text("not a history")));
    let properties = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
    let body = vec![b'.'; 20_000];
    peer.say_with("", "q", properties, false, &body).expect("published");
    peer.flush().expect("flushed");
    reject(&mut peer, "q");
    let (came, headers) = peer.fetch("dead").expect("a letter");
    assert_eq!((came.len(), deaths(&headers).len()), (20_000, 1));
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn what_a_full_queue_refuses_can_become_a_dead_letter() {
    let world = World::new();
    let mut peer = world.connect();
    let overflow = ("x-overflow", Field::text("reject-publish-dlx"));
    peer.declare_with("q", [letters(""), key("dead"), ("x-max-length", Field::I32(1)), overflow]);
    peer.declare("dead");
    peer.client.select_confirms(1).expect("confirms");
    peer.publish("", "q", "a");
    peer.publish("", "q", "b");
    assert!(matches!(peer.news()[..], [_, super::world::Said::Refused { number: 2, .. }]));
    let (body, headers) = peer.fetch("dead").expect("a letter");
    assert_eq!((body.as_str(), text(&headers, "x-first-death-reason")), ("b", "maxlen"));
    assert_eq!(peer.drain("q"), "a");
    assert_eq!(world.broker.totals().queue_bytes, 0);
}

#[test]
fn purging_and_deleting_make_no_letters() {
    let world = World::new();
    let mut peer = world.connect();
    peer.declare("dead");
    peer.declare_with("q", [letters(""), key("dead")]);
    peer.publish("", "q", "a");
    peer.client.purge_queue(1, "q").expect("purged");
    peer.publish("", "q", "b");
    peer.delete("q").expect("deleted");
    assert_eq!(world.view("dead").ready, 0);
}
