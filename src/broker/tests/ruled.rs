//! Queues with every kind of rule under random clients, from a seed.
//!
//! Every copy of every message is followed: where it entered, who holds it, how it ended. After each step the queues' own books are
//! compared with what was seen.
//!
//! Invariants: a copy is held by one consumer at most; what was acked, refused or expired is never delivered again; a dead letter
//! comes from a queue that gave it up; each consumer gets new messages of one priority in their order; nobody holds more than its
//! prefetch; nobody with room waits while something is ready; everything offered is ready, out, settled, dropped, expired, purged or
//! a dead letter; a letter that is promised at least once is kept or where it goes, and comes there once; every publish is confirmed
//! or refused, once; when all is done no byte is booked.

use super::world::{Peer, Said, World};
use crate::broker::client::Verdict;
use crate::broker::view::QueueView;
use crate::kernel::Instant;
use crate::kernel::rng::Rng;
use crate::model::policy::{Policies, QueueKind, QueuePolicy};
use crate::model::table::{Field, Table};
use crate::model::topology::{ExchangeKind, QueueSpec};
use crate::wire::amqp::{Properties, PropertyList};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// From here on, queues that take nothing but letters.
const DEAD: usize = 11;
const NAMES: [&str; 13] =
    ["plain", "brief", "short", "bytes", "strict", "spill", "levels", "single", "quorum", "limited", "careful", "dead", "narrow"];
/// Keeps its letters, all for `narrow`.
const CAREFUL: usize = 10;
const NARROW: usize = 12;
const LEVELS: usize = 6;
const SINGLE: usize = 7;
const BRIEF_MS: u64 = 40;

fn arguments(queue: usize) -> Table {
    let letters = || Table::new().with("x-dead-letter-exchange", Field::text("graves"));
    match NAMES[queue] {
        "plain" | "dead" => Table::new(),
        "brief" => letters().with("x-message-ttl", Field::I64(BRIEF_MS as i64)),
        "short" => letters().with("x-max-length", Field::I32(5)),
        "bytes" => Table::new().with("x-max-length-bytes", Field::I32(300)),
        "strict" => letters().with("x-max-length", Field::I32(4)).with("x-overflow", Field::text("reject-publish")),
        "spill" => letters().with("x-max-length", Field::I32(3)).with("x-overflow", Field::text("reject-publish-dlx")),
        "levels" => letters().with("x-max-priority", Field::I32(4)).with("x-max-length", Field::I32(30)),
        "single" => Table::new().with("x-single-active-consumer", Field::Bool(true)),
        "quorum" => Table::new().with("x-queue-type", Field::text("quorum")),
        "careful" => Table::new()
            .with("x-queue-type", Field::text("quorum"))
            .with("x-dead-letter-exchange", Field::text("urns"))
            .with("x-dead-letter-strategy", Field::text("at-least-once"))
            .with("x-overflow", Field::text("reject-publish"))
            .with("x-max-length", Field::I32(20))
            .with("x-delivery-limit", Field::I32(2)),
        "narrow" => Table::new().with("x-max-length", Field::I32(2)).with("x-overflow", Field::text("reject-publish")),
        "limited" => letters().with("x-queue-type", Field::text("quorum")).with("x-delivery-limit", Field::I32(2)),
        other => panic!("{other} is no queue of this world"),
    }
}

/// One copy of one message: the queue it is in, the message, and the queue it died in before.
type Copy = (usize, u64, Option<usize>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    In,
    Out,
    /// Rejected by a client: it may be a dead letter now.
    Rejected,
    Gone,
}

#[derive(Debug)]
struct Followed {
    place: Place,
    priority: u8,
    expires: Option<Instant>,
}

struct Member {
    peer: Peer,
    out: BTreeMap<u64, Copy>,
    /// By consumer tag: queue, prefetch, no_ack.
    consumers: BTreeMap<String, (usize, u32, bool)>,
    /// By delivery tag.
    by_tag: BTreeMap<u64, String>,
    published: u64,
    answered: HashSet<u64>,
    /// By number: what was published.
    asked: HashMap<u64, (u64, Option<usize>)>,
}

#[derive(Debug)]
struct OnlyPlain(QueuePolicy);

impl Policies for OnlyPlain {
    fn of_queue(&self, name: &str, _: QueueKind) -> QueuePolicy {
        if name == "plain" { self.0.clone() } else { QueuePolicy::default() }
    }
}

struct Simulation {
    world: World,
    rng: Rng,
    members: Vec<Member>,
    copies: HashMap<Copy, Followed>,
    sent: [u64; NAMES.len()],
    auto_acked: [u64; NAMES.len()],
    /// By consumer and priority: the last new message.
    last: HashMap<(String, u8), u64>,
    active: Option<Arc<str>>,
    /// The queue that was asked last.
    getting: usize,
    next_message: u64,
    next_consumer: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut simulation = Simulation {
            world: World::new(),
            rng: Rng::seeded(seed),
            members: Vec::new(),
            copies: HashMap::new(),
            sent: [0; NAMES.len()],
            auto_acked: [0; NAMES.len()],
            last: HashMap::new(),
            active: None,
            getting: 0,
            next_message: 0,
            next_consumer: 0,
        };
        (0..4).for_each(|_| simulation.join());
        let first = &mut simulation.members[0].peer;
        first.exchange("all", ExchangeKind::Fanout);
        first.exchange("graves", ExchangeKind::Fanout);
        first.exchange("urns", ExchangeKind::Fanout);
        for (at, name) in NAMES.into_iter().enumerate() {
            let spec =
                QueueSpec { name: name.into(), durable: true, exclusive: false, auto_delete: false, arguments: arguments(at) };
            first.declare_as(spec).expect("declared");
            let exchange = match at {
                DEAD => "graves",
                NARROW => "urns",
                _ => "all",
            };
            first.bind(name, exchange, "").expect("bound");
        }
        simulation
    }

    fn join(&mut self) {
        let mut peer = self.world.connect();
        peer.client.select_confirms(1).expect("confirms");
        self.members.push(Member {
            peer,
            out: BTreeMap::new(),
            consumers: BTreeMap::new(),
            by_tag: BTreeMap::new(),
            published: 0,
            answered: HashSet::new(),
            asked: HashMap::new(),
        });
    }

    fn pick(&mut self, count: usize) -> usize {
        self.rng.below(count as u64) as usize
    }

    fn step(&mut self) {
        let who = self.pick(self.members.len());
        match self.rng.below(100) {
            0..30 => self.publish(who),
            30..55 => self.settle(who),
            55..63 => self.consume(who),
            63..68 => self.cancel(who),
            68..76 => self.get(who),
            76..79 => self.recover(who),
            79..83 => self.reopen_channel(who),
            83..85 => self.reconnect(who),
            85..87 => self.purge(who),
            87..89 => self.change_policy(),
            _ => {
                let millis = self.rng.below(30);
                self.world.wait(millis);
            }
        }
        self.listen();
        self.check();
    }

    fn publish(&mut self, who: usize) {
        let count = 1 + self.rng.below(6);
        for _ in 0..count {
            let message = self.next_message;
            self.next_message += 1;
            let length = if self.rng.below(20) == 0 { 9_000 } else { self.pick(100) };
            let mut body = message.to_be_bytes().to_vec();
            body.resize(8 + length, b'.');
            let to = Some(self.pick(DEAD + 1)).filter(|queue| *queue < DEAD);
            let expiration = (self.rng.below(6) == 0).then(|| self.rng.below(60));
            let text = expiration.map(|millis| millis.to_string());
            let priority = self.rng.below(7) as u8;
            let properties = PropertyList { expiration: text.as_deref(), priority: Some(priority), ..PropertyList::default() };
            let (exchange, key) = to.map_or(("all", "any"), |queue| ("", NAMES[queue]));
            let member = &mut self.members[who];
            member.peer.say_with(exchange, key, properties, false, &body).expect("published");
            member.published += 1;
            member.asked.insert(member.published, (message, to));
            for queue in (0..DEAD).filter(|queue| to.is_none_or(|to| to == *queue)) {
                self.sent[queue] += 1;
                let ttl = if NAMES[queue] == "brief" { Some(BRIEF_MS) } else { None };
                let millis = expiration.into_iter().chain(ttl).min();
                let expires = millis.map(|millis| self.world.clock.now() + Duration::from_millis(millis));
                let priority = if queue == LEVELS { priority.min(4) } else { 0 };
                self.copies.insert((queue, message, None), Followed { place: Place::In, priority, expires });
            }
        }
        self.members[who].peer.flush().expect("flushed");
    }

    fn settle(&mut self, who: usize) {
        let tags: Vec<u64> = self.members[who].out.keys().copied().collect();
        if tags.is_empty() {
            return;
        }
        let tag = tags[self.pick(tags.len())];
        let multiple = self.rng.below(3) == 0;
        let verdict = [Verdict::Ack, Verdict::Ack, Verdict::Requeue, Verdict::Requeue, Verdict::Discard][self.pick(5)];
        let settled: Vec<u64> = tags.into_iter().filter(|other| if multiple { *other <= tag } else { *other == tag }).collect();
        settled.into_iter().for_each(|tag| self.settled(who, tag, verdict));
        self.members[who].peer.settle(tag, multiple, verdict).expect("a known tag");
    }

    fn settled(&mut self, who: usize, tag: u64, verdict: Verdict) {
        let copy = self.members[who].out.remove(&tag).expect("it was out");
        self.members[who].by_tag.remove(&tag);
        let followed = self.copies.get_mut(&copy).expect("followed");
        assert_eq!(followed.place, Place::Out);
        followed.place = match verdict {
            Verdict::Ack => Place::Gone,
            Verdict::Requeue => Place::In,
            Verdict::Discard => Place::Rejected,
        };
    }

    fn consume(&mut self, who: usize) {
        let queue = self.pick(NAMES.len());
        let (prefetch, no_ack) = ([0, 1, 3, 10][self.pick(4)], self.rng.below(5) == 0);
        let tag = format!("c{}", self.next_consumer);
        self.next_consumer += 1;
        let held = if no_ack { 0 } else { prefetch.into() };
        self.members[who].consumers.insert(tag.clone(), (queue, held, no_ack));
        self.members[who].peer.consume(NAMES[queue], &tag, prefetch, no_ack).expect("consuming");
    }

    fn cancel(&mut self, who: usize) {
        let tags: Vec<String> = self.members[who].consumers.keys().cloned().collect();
        if let Some(tag) = (!tags.is_empty()).then(|| tags[self.pick(tags.len())].clone()) {
            self.members[who].peer.cancel(&tag);
            // What was on its way when it was cancelled is delivered still.
            self.listen();
            self.members[who].consumers.remove(&tag);
        }
    }

    fn get(&mut self, who: usize) {
        let queue = self.pick(NAMES.len());
        let found = self.members[who].peer.ask(NAMES[queue]);
        assert!(found || self.world.view(NAMES[queue]).ready == 0, "{} is not empty", NAMES[queue]);
        self.getting = queue;
    }

    fn recover(&mut self, who: usize) {
        self.all_back(who);
        self.members[who].peer.begin().recover(1).expect("recovered");
        self.members[who].peer.flush().expect("flushed");
    }

    fn all_back(&mut self, who: usize) {
        let tags: Vec<u64> = self.members[who].out.keys().copied().collect();
        tags.into_iter().for_each(|tag| self.settled(who, tag, Verdict::Requeue));
    }

    fn reopen_channel(&mut self, who: usize) {
        self.all_back(who);
        let member = &mut self.members[who];
        member.peer.begin().close_channel(1);
        member.peer.flush().expect("flushed");
        member.peer.client.open_channel(1);
        member.peer.client.select_confirms(1).expect("confirms");
        member.consumers.clear();
        member.published = 0;
        member.asked.clear();
        member.answered.clear();
    }

    fn reconnect(&mut self, who: usize) {
        self.all_back(who);
        self.members[who].peer.client.close("the simulation says so");
        self.join();
        self.members.swap_remove(who);
    }

    fn purge(&mut self, who: usize) {
        let queue = self.pick(NAMES.len());
        self.members[who].peer.begin().purge_queue(1, NAMES[queue]).expect("purged");
        self.members[who].peer.flush().expect("flushed");
        // Of a queue with letters nobody knows yet which ones it gave up before.
        let whole = !self.has_letters(queue);
        let ready = self.copies.iter_mut().filter(|((of, ..), followed)| whole && *of == queue && followed.place == Place::In);
        ready.for_each(|(_, followed)| followed.place = Place::Gone);
    }

    fn has_letters(&self, queue: usize) -> bool {
        arguments(queue).get("x-dead-letter-exchange").is_some()
    }

    fn change_policy(&mut self) {
        let max_length = [None, Some(3), Some(10)][self.pick(3)];
        let message_ttl_ms = [None, Some(20)][self.pick(2)];
        let policy = QueuePolicy { max_length, message_ttl_ms, ..QueuePolicy::default() };
        self.world.broker.vhost("/").expect("the space").set_policies(Arc::new(OnlyPlain(policy)));
    }

    /// Lets every client read what it got.
    fn listen(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for who in 0..self.members.len() {
                for said in self.members[who].peer.hear() {
                    quiet = false;
                    self.heard(who, said);
                }
            }
        }
    }

    fn heard(&mut self, who: usize, said: Said) {
        let member = &mut self.members[who];
        match said {
            Said::Message { ref by, .. } => {
                let queue = match by.as_str() {
                    "get" => self.getting,
                    by => member.consumers.get(by).unwrap_or_else(|| panic!("{by} does not consume any more")).0,
                };
                self.received(who, queue, said);
            }
            Said::Confirmed { up_to, multiple, .. } => {
                let from = if multiple { 1 } else { up_to };
                let new = (from..=up_to).filter(|number| member.answered.insert(*number)).count();
                assert!(new > 0 && member.answered.contains(&up_to), "a confirm says something new");
            }
            Said::Refused { number, .. } => {
                assert!(member.answered.insert(number), "{number} is answered twice");
                let (_, to) = member.asked[&number];
                let refusing = |queue: usize| matches!(NAMES[queue], "strict" | "spill" | "careful");
                assert!(to.is_none_or(refusing), "{number} went to a queue that refuses nothing");
                // To several queues: those that took it keep it.
            }
            Said::Cancelled { .. } | Said::Other(_) => {}
            Said::Returned { .. } => panic!("everything is routable"),
        }
    }

    fn received(&mut self, who: usize, queue: usize, said: Said) {
        let Said::Message { by, tag, redelivered, body, properties, .. } = said else { panic!("a message was promised") };
        let message = u64::from_be_bytes(body[..8].try_into().expect("eight bytes"));
        assert!(body[8..].iter().all(|byte| *byte == b'.'), "the body is whole");
        let headers =
            Properties::check(&properties).expect("good").headers().map(|headers| headers.to_table()).unwrap_or_default();
        let copy = (queue, message, self.died_in(queue, &headers));
        if let (DEAD.., _, Some(from)) = copy
            && !self.copies.contains_key(&copy)
        {
            self.buried((from, message, None), copy);
        }
        let now = self.world.clock.now();
        let followed = self.copies.get_mut(&copy).unwrap_or_else(|| panic!("{copy:?} was never offered"));
        assert_eq!(followed.place, Place::In, "{copy:?} is delivered");
        assert!(followed.expires.is_none_or(|at| at >= now), "{copy:?} expired before it was delivered");
        let priority = followed.priority;
        let no_ack = self.members[who].consumers.get(&by).is_some_and(|(.., no_ack)| *no_ack);
        followed.place = if no_ack { Place::Gone } else { Place::Out };
        if !redelivered && queue < DEAD {
            let reader = if by == "get" { format!("get of {queue}") } else { by.clone() };
            let before = self.last.insert((reader, priority), message);
            assert!(before.is_none_or(|before| before < message), "{message} comes behind {before:?} in {}", NAMES[queue]);
        }
        if queue == SINGLE && by != "get" {
            let active = self.world.view(NAMES[SINGLE]).active_consumer;
            let may = [&active, &self.active].into_iter().flatten().any(|tag| **tag == *by);
            let gone = !self.members[who].consumers.contains_key(&by);
            assert!(may || gone, "{by} is not the active consumer");
        }
        if no_ack {
            self.auto_acked[queue] += 1;
            return;
        }
        let member = &mut self.members[who];
        member.out.insert(tag, copy);
        member.by_tag.insert(tag, by.clone());
        if let Some((_, prefetch, _)) = member.consumers.get(&by) {
            let open = member.by_tag.values().filter(|other| **other == by).count() as u32;
            assert!(*prefetch == 0 || open <= *prefetch, "{by} holds {open} of {prefetch}");
        }
    }

    /// The queue that a letter in `queue` died in.
    fn died_in(&self, queue: usize, headers: &Table) -> Option<usize> {
        let told = headers.get("x-first-death-queue").and_then(Field::as_str);
        assert_eq!(told.is_some(), queue >= DEAD, "{} holds letters", NAMES[queue]);
        told.map(|told| NAMES.iter().position(|name| *name == told).expect("a known queue"))
    }

    /// `from` became the letter `copy`.
    fn buried(&mut self, from: Copy, copy: Copy) {
        let followed = self.copies.get_mut(&from).unwrap_or_else(|| panic!("{from:?} was never offered"));
        assert!(matches!(followed.place, Place::In | Place::Rejected), "{from:?} is a letter, and {:?}", followed.place);
        followed.place = Place::Gone;
        self.copies.insert(copy, Followed { place: Place::In, priority: 0, expires: None });
    }

    fn check(&mut self) {
        let views: Vec<QueueView> = NAMES.iter().map(|name| self.world.view(name)).collect();
        let mut letters = [0; NAMES.len()];
        for (at, view) in views.iter().enumerate() {
            let (counts, fates, name) = (&view.counts, &view.fates, NAMES[at]);
            let out = self.members.iter().flat_map(|member| member.out.values()).filter(|(of, ..)| *of == at).count() as u64;
            assert_eq!(view.unacked, out, "unacked of {name}");
            let ended = counts.acked + counts.rejected + counts.expired + counts.purged + fates.dropped + fates.over_limit;
            let total = view.ready + view.unacked + ended + self.auto_acked[at];
            assert_eq!(counts.published, total, "the books of {name}: {counts:?} {fates:?}");
            letters[at] = fates.dead_rejected + fates.dead_expired + fates.dead_maxlen + fates.dead_delivery_limit;
            assert!(at == CAREFUL || view.kept == 0, "{name} keeps {} letters", view.kept);
            if at < DEAD {
                assert_eq!(counts.published + fates.refused, self.sent[at], "offered to {name}");
            }
            let max = view.policy.max_length.or_else(|| Some(view.arguments.get("x-max-length")?.as_integer()? as u64));
            // What comes back to a queue that refuses stays, beyond its limit too.
            let refuses = matches!(name, "strict" | "spill" | "careful" | "narrow");
            assert!(!refuses || fates.dropped == 0, "{name} dropped {}", fates.dropped);
            assert!(refuses || max.is_none_or(|max| view.ready <= max), "{name} holds {} of {max:?}", view.ready);
            self.check_hunger(at, view);
        }
        let kept = views[CAREFUL].kept;
        assert_eq!(views[NARROW].counts.published + kept, letters[CAREFUL], "{kept} letters are kept");
        assert_eq!(views[DEAD].counts.published + letters[CAREFUL], letters.iter().sum::<u64>(), "letters");
        for member in &self.members {
            assert_eq!(member.answered.len() as u64, member.published, "every publish is answered");
        }
        self.active = views[SINGLE].active_consumer.clone();
    }

    fn check_hunger(&self, at: usize, view: &QueueView) {
        let has_room = |member: &Member, tag: &str, prefetch: u32| {
            prefetch == 0 || (member.by_tag.values().filter(|other| **other == *tag).count() as u32) < prefetch
        };
        let gets = |tag: &str| at != SINGLE || view.active_consumer.as_deref() == Some(tag);
        let hungry = self.members.iter().any(|member| {
            let mut consumers = member.consumers.iter();
            consumers.any(|(tag, (queue, prefetch, _))| *queue == at && gets(tag) && has_room(member, tag, *prefetch))
        });
        assert!(view.ready == 0 || !hungry, "{} keeps messages from a consumer with room", NAMES[at]);
    }

    /// Everything is settled: nothing may be booked any more.
    fn finish(mut self) {
        self.members.iter_mut().for_each(|member| member.peer.client.close("done"));
        let mut last = self.world.connect();
        for name in NAMES {
            last.client.purge_queue(1, name).expect("purged");
        }
        while self.world.view(NAMES[CAREFUL]).kept > 0 {
            let before = self.world.view(NAMES[CAREFUL]).kept;
            self.world.wait(10_000);
            assert!(self.world.view(NAMES[CAREFUL]).kept < before, "nothing holds the letters any more");
            last.client.purge_queue(1, NAMES[NARROW]).expect("purged");
        }
        last.client.purge_queue(1, NAMES[NARROW]).expect("purged");
        last.flush().expect("flushed");
        assert_eq!(self.world.broker.totals().queue_bytes, 0, "bytes booked for nothing");
    }
}

fn run(seed: u64, steps: usize) {
    let outcome = std::panic::catch_unwind(|| {
        let mut simulation = Simulation::new(seed);
        (0..steps).for_each(|_| simulation.step());
        simulation.finish();
    });
    if let Err(cause) = outcome {
        eprintln!("the simulation failed with seed {seed}");
        std::panic::resume_unwind(cause);
    }
}

/// `SIM_STEPS=1000000` takes as many steps, from seeds of its own.
#[test]
fn rules_hold_whatever_clients_do() {
    const STEPS: usize = 400;
    let asked = std::env::var("SIM_STEPS").ok().and_then(|steps| steps.parse::<usize>().ok());
    match asked {
        None => (0..12).for_each(|seed| run(seed, STEPS)),
        Some(steps) => {
            let mut seeds = Rng::unseeded();
            (0..steps.div_ceil(STEPS)).for_each(|_| run(seeds.draw(), STEPS));
        }
    }
}
