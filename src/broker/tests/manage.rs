//! Looking at messages, moving them, dropping some, sending dead letters back.

use super::*;
use crate::broker::view::UnackedMessage;
use crate::broker::{Actor, Moved, Vhost, Which};
use crate::model::identity::{Permissions, Principal};
use std::sync::Arc;

struct Desk {
    world: World,
    peer: Peer,
    vhost: Arc<Vhost>,
    operator: Principal,
}

impl Desk {
    fn new(queues: &[&str]) -> Self {
        let world = World::new();
        let mut peer = world.connect();
        queues.iter().for_each(|queue| peer.declare(queue));
        let vhost = world.broker.vhost("/").expect("the default space");
        Desk { world, peer, vhost, operator: Principal::new("operator", Permissions::All) }
    }

    fn actor(&self) -> Actor<'_> {
        Actor { principal: &self.operator, connection: None }
    }

    fn fill(&mut self, queue: &str, bodies: impl IntoIterator<Item = &'static str>) {
        bodies.into_iter().for_each(|body| self.peer.publish("", queue, body));
    }

    /// What lies ready, as `id:body`.
    fn ready(&self, queue: &str) -> String {
        self.find(queue, None)
    }

    fn find(&self, queue: &str, find: Option<&str>) -> String {
        let peek = Peek { count: 1_000, body_bytes_max: 100, find, ..Peek::default() };
        let peeked = self.vhost.peek(queue, &peek).expect("a queue");
        let text = |m: &crate::broker::view::PeekedMessage| format!("{}:{}", m.id, String::from_utf8_lossy(&m.body));
        peeked.messages.iter().map(text).collect::<Vec<_>>().join(" ")
    }

    fn unacked(&self, queue: &str) -> Vec<UnackedMessage> {
        let peek = Peek { count: 100, body_bytes_max: 100, ..Peek::default() };
        self.vhost.peek_unacked(queue, &peek).expect("a queue")
    }

    fn go(&self, from: &str, to: &str, which: Which) -> Moved {
        self.vhost.move_messages(from, to, &which, self.actor()).expect("moved")
    }

    /// Publishes to `letters` what died in `origin`.
    fn bury(&mut self, letters: &str, origin: &str, body: &str) {
        let death = Table::new()
            .with("queue", Field::text(origin))
            .with("exchange", Field::text("orders"))
            .with("reason", Field::text("rejected"))
            .with("count", Field::I64(1))
            .with("routing-keys", Field::Array(vec![Field::text("order.placed")]));
        let headers = table::encoded(&Table::new().with("x-death", Field::Array(vec![Field::Table(death)])));
        let properties = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
        self.peer.say_with("", letters, properties, false, body.as_bytes()).expect("published");
        self.peer.flush().expect("flushed");
    }
}

#[test]
fn a_look_at_ready_messages_pages_and_changes_nothing() {
    let mut desk = Desk::new(&["q"]);
    desk.fill("q", ["a", "b", "c", "d"]);
    let page = Peek { from: 1, count: 2, body_bytes_max: 100, find: None };
    let page = desk.vhost.peek("q", &page).expect("a queue");
    let places: Vec<_> = page.messages.iter().map(|message| (message.position, message.id)).collect();
    assert_eq!((places, page.ready, page.looked_at), (vec![(1, 1), (2, 2)], 4, 2));
    desk.peer.consume("q", "one", 0, true).expect("consuming");
    assert_eq!(desk.peer.bodies(), "a b c d");
}

#[test]
fn a_search_finds_keys_headers_and_large_bodies() {
    let mut desk = Desk::new(&["q"]);
    desk.fill("q", ["small"]);
    let large = [&[b'x'; 20_000][..], b"Needle"].concat();
    desk.peer.say("", "q", &large);
    let headers = table::encoded(&Table::new().with("customer", Field::text("c_5d0e")));
    let properties = PropertyList { headers: RawTable::check(&headers).ok(), ..PropertyList::default() };
    desk.peer.say_with("", "q", properties, false, b"third").expect("published");
    desk.peer.flush().expect("flushed");
    assert_eq!(desk.find("q", Some("SMALL")), "0:small");
    assert!(desk.find("q", Some("needle")).starts_with("1:xxx"));
    assert_eq!(desk.find("q", Some("c_5d0e")), "2:third");
    assert_eq!(desk.find("q", Some("nowhere")), "");
}

#[test]
fn unacked_messages_are_shown_with_who_holds_them_and_for_how_long() {
    let mut desk = Desk::new(&["q"]);
    desk.fill("q", ["a", "b", "c"]);
    desk.peer.consume("q", "one", 2, false).expect("consuming");
    assert_eq!(desk.peer.bodies(), "a b");
    desk.world.clock.advance(Duration::from_secs(5));
    let mut getter = desk.world.connect();
    assert!(getter.get("q").is_some());
    desk.world.clock.advance(Duration::from_secs(1));
    let held: Vec<_> = desk
        .unacked("q")
        .into_iter()
        .map(|one| {
            let tag = one.holder.consumer.as_deref().unwrap_or("get").to_owned();
            (String::from_utf8_lossy(&one.message.body).into_owned(), tag, one.holder.held.as_secs())
        })
        .collect();
    assert_eq!(held, [("a".into(), "one".into(), 6), ("b".into(), "one".into(), 6), ("c".into(), "get".into(), 1)]);
    desk.peer.ack(1);
    assert_eq!(desk.unacked("q").len(), 2);
    assert_eq!(desk.ready("q"), "", "looking requeued nothing");
}

#[test]
fn messages_move_in_order_with_all_they_carry_and_can_be_moved_back() {
    let mut desk = Desk::new(&["from", "to"]);
    desk.fill("from", ["a", "b", "c"]);
    desk.fill("to", ["x"]);
    let moved = desk.go("from", "to", Which::First(2));
    assert_eq!((moved.moved, moved.left), (2, 0));
    assert_eq!((desk.ready("from"), desk.ready("to")), ("2:c".into(), "0:x 1:a 2:b".into()));
    let stretches = moved.placed.iter().map(|(_, first, last)| (*first, *last)).collect();
    let back = desk.go("to", "from", Which::These(stretches));
    assert_eq!((back.moved, desk.ready("from"), desk.ready("to")), (2, "2:c 3:a 4:b".into(), "0:x".into()));
    desk.peer.consume("from", "one", 0, true).expect("consuming");
    let keys = desk.peer.news().into_iter().filter_map(|said| match said {
        Said::Message { key, redelivered, .. } => Some((key, redelivered)),
        _ => None,
    });
    assert_eq!(keys.collect::<Vec<_>>(), vec![("from".to_owned(), false); 3]);
}

#[test]
fn a_moved_message_is_delivered_at_once_and_keeps_its_large_body_and_its_expiry() {
    let mut desk = Desk::new(&["from", "to"]);
    let large = vec![b'y'; 50_000];
    let expiring = PropertyList { expiration: Some("1000"), ..PropertyList::default() };
    desk.peer.say_with("", "from", expiring, false, &large).expect("published");
    desk.peer.say_with("", "from", expiring, false, b"small").expect("published");
    desk.peer.flush().expect("flushed");
    assert_eq!(desk.go("from", "to", Which::one(1)).moved, 1);
    desk.world.clock.advance(Duration::from_millis(1_001));
    desk.world.broker.run_due();
    assert_eq!((desk.ready("from"), desk.ready("to")), (String::new(), String::new()), "both expired in time");
    desk.peer.say("", "from", &large);
    desk.peer.flush().expect("flushed");
    let mut other = desk.world.connect();
    other.consume("to", "one", 0, true).expect("consuming");
    assert_eq!(desk.go("from", "to", Which::First(10)).moved, 1);
    assert!(matches!(&other.news()[..], [Said::Message { body, .. }] if body.len() == 50_000));
    assert_eq!(desk.world.broker.totals().queue_bytes, 0);
}

#[test]
fn a_message_at_the_head_can_be_sent_to_the_back_of_its_queue() {
    let mut desk = Desk::new(&["q"]);
    desk.fill("q", ["poison", "b", "c"]);
    assert_eq!(desk.go("q", "q", Which::one(0)).moved, 1);
    assert_eq!(desk.ready("q"), "1:b 2:c 3:poison");
    assert_eq!(desk.go("q", "q", Which::one(0)), Moved { left: 1, ..Moved::default() }, "it has another id now");
}

#[test]
fn moving_all_ends_even_where_it_feeds_itself() {
    let mut desk = Desk::new(&["q"]);
    (0..1_000).for_each(|_| desk.peer.say("", "q", b"m"));
    desk.peer.flush().expect("flushed");
    assert_eq!(desk.go("q", "q", Which::First(u64::MAX)).moved, 1_000);
    let view = desk.vhost.queue("q").expect("a queue");
    assert_eq!(view.ready, 1_000);
}

#[test]
fn one_message_or_the_oldest_few_are_dropped() {
    let mut desk = Desk::new(&["q"]);
    desk.fill("q", ["a", "b", "c", "d", "e"]);
    assert_eq!(desk.vhost.delete_message("q", 2, desk.actor()), Ok(true));
    assert_eq!(desk.vhost.delete_message("q", 2, desk.actor()), Ok(false));
    assert_eq!(desk.vhost.purge_oldest("q", 2, desk.actor()), Ok(2));
    assert_eq!(desk.ready("q"), "3:d 4:e");
    assert_eq!(desk.vhost.purge_oldest("q", 100, desk.actor()), Ok(2));
    let view = desk.vhost.queue("q").expect("a queue");
    assert_eq!((view.ready, view.counts.purged, desk.world.broker.totals().queue_bytes), (0, 5, 0));
}

#[test]
fn dead_letters_go_back_where_they_died_under_the_key_they_had_there() {
    let mut desk = Desk::new(&["orders", "dead"]);
    desk.bury("dead", "orders", "one");
    desk.bury("dead", "gone", "two");
    desk.fill("dead", ["by hand"]);
    desk.bury("dead", "orders", "three");
    let plan = desk.vhost.redrive_plan("dead").expect("a queue");
    let origins: Vec<_> = plan.origins.iter().map(|o| (&*o.queue, &*o.reason, o.messages, o.exists)).collect();
    assert_eq!(origins, [("gone", "rejected", 1, false), ("orders", "rejected", 2, true)]);
    assert_eq!((plan.looked_at, plan.ready, plan.without), (4, 4, 1));
    let moved = desk.vhost.redrive("dead", None, &Which::First(u64::MAX), desk.actor()).expect("sent back");
    assert_eq!((moved.moved, moved.left), (2, 2));
    assert_eq!((desk.ready("dead"), desk.ready("orders")), ("1:two 2:by hand".into(), "0:one 1:three".into()));
    desk.peer.consume("orders", "one", 0, true).expect("consuming");
    let published =
        |said: &Said| matches!(said, Said::Message { exchange, key, .. } if exchange == "orders" && key == "order.placed");
    assert!(desk.peer.news().iter().all(published));
}

#[test]
fn a_redrive_can_be_kept_to_one_origin_or_one_message() {
    let mut desk = Desk::new(&["a", "b", "dead"]);
    for (origin, body) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4")] {
        desk.bury("dead", origin, body);
    }
    let back = |only, which: Which| desk.vhost.redrive("dead", only, &which, desk.actor()).expect("sent back");
    assert_eq!(back(Some("a"), Which::First(1)).moved, 1);
    assert_eq!(back(None, Which::one(3)).moved, 1);
    assert_eq!((desk.ready("a"), desk.ready("b"), desk.ready("dead")), ("0:1".into(), "0:4".into(), "1:2 2:3".into()));
}

#[test]
fn a_dry_run_says_where_a_message_would_go_and_publishes_nothing() {
    let mut desk = Desk::new(&["a", "b"]);
    desk.peer.exchange("x", ExchangeKind::Topic);
    desk.peer.bind("a", "x", "order.*").expect("bound");
    desk.peer.bind("b", "x", "#").expect("bound");
    let routed = |exchange, key| desk.vhost.would_route(exchange, key, Properties::NONE, desk.actor()).map(|would| would.queues);
    assert_eq!(routed("x", "order.placed"), Ok(vec!["a".into(), "b".into()]));
    assert_eq!(routed("x", "other"), Ok(vec!["b".into()]));
    assert_eq!(routed("", "a"), Ok(vec!["a".into()]));
    assert_eq!(routed("", "nobody"), Ok(vec![]));
    assert!(matches!(routed("missing", "k"), Err(Refused::NotFound(_))));
    assert_eq!((desk.ready("a"), desk.ready("b")), (String::new(), String::new()));
}

#[test]
fn another_connections_exclusive_queue_and_a_missing_one_are_refused_with_their_names() {
    let desk = Desk::new(&["q"]);
    let missing = desk.vhost.move_messages("q", "nowhere", &Which::First(1), desk.actor());
    assert_eq!(missing, Err(Refused::NotFound("no queue 'nowhere' in vhost '/'".into())));
    let many = desk.vhost.move_messages("q", "q", &Which::These(vec![(0, u64::MAX)]), desk.actor());
    assert!(matches!(many, Err(Refused::TooLarge(_))));
}

/// Takes one message at most.
fn narrow(overflow: &str) -> Table {
    Table::new().with("x-max-length", Field::I32(1)).with("x-overflow", Field::text(overflow))
}

#[test]
fn what_a_full_queue_made_a_dead_letter_of_does_not_go_back() {
    let mut desk = Desk::new(&["from", "dead"]);
    let letters = narrow("reject-publish-dlx");
    let letters = letters.with("x-dead-letter-exchange", Field::text("")).with("x-dead-letter-routing-key", Field::text("dead"));
    desk.peer.try_declare("full", letters).expect("declared");
    desk.fill("from", ["a", "b", "c"]);
    let moved = desk.go("from", "full", Which::First(3));
    assert_eq!((moved.moved, moved.left, moved.placed), (1, 2, vec![("full".into(), 0, 0)]));
    assert_eq!((desk.ready("full"), desk.ready("from"), desk.ready("dead")), ("0:a".into(), String::new(), "0:b 1:c".into()));
    desk.fill("from", ["d"]);
    assert_eq!(desk.go("from", "full", Which::First(1)), Moved { left: 1, ..Moved::default() });
    assert_eq!((desk.ready("from"), desk.ready("dead")), (String::new(), "0:b 1:c 2:d".into()));
}

#[test]
fn what_a_full_queue_refuses_goes_back_even_where_that_is_full_and_refuses_too() {
    let mut desk = Desk::new(&["to"]);
    desk.peer.try_declare("from", narrow("reject-publish")).expect("declared");
    desk.peer.try_declare("full", narrow("reject-publish")).expect("declared");
    desk.fill("full", ["x"]);
    desk.fill("from", ["a"]);
    assert!(desk.peer.get("from").is_some());
    desk.fill("from", ["b"]);
    desk.peer.settle(1, false, Verdict::Requeue).expect("known");
    assert_eq!(desk.ready("from"), "0:a 1:b");
    for back in ["1:b 2:a", "2:a 3:b"] {
        assert_eq!(desk.go("from", "full", Which::First(1)), Moved { left: 1, ..Moved::default() });
        assert_eq!((desk.ready("from"), desk.ready("full")), (back.into(), "0:x".into()));
    }
    assert_eq!(desk.go("from", "to", Which::First(9)).moved, 2);
    assert_eq!((desk.ready("from"), desk.ready("to")), (String::new(), "0:a 1:b".into()));
}

#[test]
fn a_redrive_passes_no_letter_over_when_full_queues_refuse_others() {
    for levels in [Table::new(), Table::new().with("x-max-priority", Field::I32(3))] {
        let mut desk = Desk::new(&["b"]);
        desk.peer.try_declare("dead", levels).expect("declared");
        desk.peer.try_declare("full", narrow("reject-publish")).expect("declared");
        desk.fill("full", ["x"]);
        for (origin, body) in [("full", "1"), ("full", "2"), ("full", "3"), ("b", "4"), ("b", "5"), ("b", "6")] {
            desk.bury("dead", origin, body);
        }
        let moved = desk.vhost.redrive("dead", None, &Which::First(2), desk.actor()).expect("sent back");
        assert_eq!((moved.moved, moved.left), (2, 3));
        assert_eq!((desk.ready("b"), desk.ready("dead")), ("0:4 1:5".into(), "5:6 6:1 7:2 8:3".into()));
        assert_eq!(desk.vhost.redrive("dead", None, &Which::First(9), desk.actor()).expect("sent back").moved, 1);
        assert_eq!((desk.ready("b"), desk.ready("full")), ("0:4 1:5 2:6".into(), "0:x".into()));
    }
}

#[test]
fn a_queue_with_priorities_finds_its_messages_by_their_ids() {
    let mut desk = Desk::new(&["to"]);
    desk.peer.declare_with("levels", [("x-max-priority", Field::I32(9))]);
    for priority in [0, 9, 4] {
        let properties = PropertyList { priority: Some(priority), ..PropertyList::default() };
        desk.peer.say_with("", "levels", properties, false, &[b'0' + priority]).expect("published");
    }
    desk.peer.flush().expect("flushed");
    assert_eq!(desk.ready("levels"), "1:9 2:4 0:0");
    let moved = desk.go("levels", "to", Which::These(vec![(0, 1)]));
    assert_eq!((moved.moved, desk.ready("levels"), desk.ready("to")), (2, "2:4".into(), "0:0 1:9".into()));
    // The same queue's messages go behind those of their own priority.
    assert_eq!(desk.go("to", "levels", Which::First(2)).moved, 2);
    assert_eq!(desk.go("levels", "levels", Which::First(3)).moved, 3);
    assert_eq!(desk.ready("levels"), "5:9 6:4 7:0");
}
