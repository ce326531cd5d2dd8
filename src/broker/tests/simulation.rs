//! The broker under random clients, from a seed. Every step is one client's operation; after each, what all clients heard is compared
//! with a model that knows where every copy of every message must be.
//!
//! Invariants: nothing is lost or invented, nothing is delivered that is out or settled, deliveries are the lowest positions that were
//! ready, what comes back stands where it was and is marked redelivered, a queue never keeps messages from a consumer with room,
//! confirms count every publish, and when all is done no byte is booked.

use super::world::{Peer, Said, World};
use crate::broker::client::Verdict;
use crate::kernel::rng::Rng;
use crate::model::table::Table;
use crate::model::topology::{ExchangeKind, QueueSpec};
use std::collections::{BTreeMap, BTreeSet, HashMap};

const QUEUES: [&str; 3] = ["red", "green", "blue"];

/// Where one copy of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Ready,
    Out { peer: usize, tag: u64 },
}

#[derive(Debug, Default)]
struct ModelQueue {
    /// By position: the message and where it is. Settled ones are gone.
    copies: BTreeMap<u64, (u64, Place)>,
    next: u64,
    delivered_before: BTreeSet<u64>,
    acked: BTreeSet<u64>,
}

struct ModelPeer {
    peer: Peer,
    /// By delivery tag: queue and position.
    out: BTreeMap<u64, (usize, u64)>,
    /// By consumer tag: queue, prefetch, no_ack, open.
    consumers: BTreeMap<String, (usize, u32, bool)>,
    open_of: HashMap<String, u32>,
    by_tag: BTreeMap<u64, String>,
    published: u64,
    confirmed: u64,
}

struct Simulation {
    world: World,
    rng: Rng,
    peers: Vec<ModelPeer>,
    queues: Vec<ModelQueue>,
    next_message: u64,
    next_consumer: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let world = World::new();
        let mut simulation = Simulation {
            rng: Rng::seeded(seed),
            peers: Vec::new(),
            queues: QUEUES.iter().map(|_| ModelQueue::default()).collect(),
            next_message: 0,
            next_consumer: 0,
            world,
        };
        (0..4).for_each(|_| simulation.join());
        let first = &mut simulation.peers[0].peer;
        first.exchange("all", ExchangeKind::Fanout);
        for queue in QUEUES {
            first.declare(queue);
            first.bind(queue, "all", "").expect("bound");
        }
        simulation
    }

    fn join(&mut self) {
        let mut peer = self.world.connect();
        peer.client.select_confirms(1).expect("confirms");
        self.peers.push(ModelPeer {
            peer,
            out: BTreeMap::new(),
            consumers: BTreeMap::new(),
            open_of: HashMap::new(),
            by_tag: BTreeMap::new(),
            published: 0,
            confirmed: 0,
        });
    }

    fn pick(&mut self, count: usize) -> usize {
        self.rng.below(count as u64) as usize
    }

    fn step(&mut self) {
        let who = self.pick(self.peers.len());
        let op = self.rng.below(100);
        if std::env::var_os("SIM_TRACE").is_some() {
            eprintln!("peer {who} op {op}");
        }
        match op {
            0..30 => self.publish(who),
            30..55 => self.settle(who),
            55..65 => self.consume(who),
            65..70 => self.cancel(who),
            70..80 => self.get(who),
            80..84 => self.recover(who),
            84..88 => self.reopen_channel(who),
            88..92 => self.reconnect(who),
            92..95 => self.purge(who),
            95..97 => self.delete_and_declare(who),
            _ => self.world.clock.advance(std::time::Duration::from_millis(7)),
        }
        self.listen();
        self.check();
    }

    fn publish(&mut self, who: usize) {
        let count = 1 + self.rng.below(6);
        for _ in 0..count {
            let message = self.next_message;
            self.next_message += 1;
            let length = match self.rng.below(12) {
                0 => 9_000,
                1 => 140_000,
                small => small as usize * 10,
            };
            let mut body = message.to_be_bytes().to_vec();
            body.resize(8 + length, b'.');
            let queue = self.pick(QUEUES.len() + 1);
            let (exchange, key) = QUEUES.get(queue).map_or(("all", "any"), |name| ("", *name));
            self.peers[who].peer.say(exchange, key, &body);
            self.peers[who].published += 1;
            for (at, model) in self.queues.iter_mut().enumerate() {
                if queue == at || queue == QUEUES.len() {
                    model.copies.insert(model.next, (message, Place::Ready));
                    model.next += 1;
                }
            }
        }
        self.peers[who].peer.flush().expect("flushed");
    }

    fn settle(&mut self, who: usize) {
        let tags: Vec<u64> = self.peers[who].out.keys().copied().collect();
        if tags.is_empty() {
            let unknown = self.peers[who].peer.settle(999_999, false, Verdict::Ack);
            assert!(unknown.is_err(), "an unknown tag is refused");
            return;
        }
        let tag = tags[self.pick(tags.len())];
        let multiple = self.rng.below(3) == 0;
        let verdict = [Verdict::Ack, Verdict::Ack, Verdict::Requeue, Verdict::Discard][self.pick(4)];
        self.peers[who].peer.settle(tag, multiple, verdict).expect("a known tag");
        let settled: Vec<u64> = tags.into_iter().filter(|other| if multiple { *other <= tag } else { *other == tag }).collect();
        settled.into_iter().for_each(|tag| self.settled(who, tag, verdict));
        let again = self.peers[who].peer.settle(tag, false, Verdict::Ack);
        assert!(again.is_err(), "a tag is settled once");
    }

    fn settled(&mut self, who: usize, tag: u64, verdict: Verdict) {
        let (queue, position) = self.peers[who].out.remove(&tag).expect("it was out");
        if let Some(consumer) = self.peers[who].by_tag.remove(&tag) {
            *self.peers[who].open_of.get_mut(&consumer).expect("counted") -= 1;
        }
        let Some(copy) = self.queues[queue].copies.get_mut(&position) else { return };
        match verdict {
            Verdict::Requeue => copy.1 = Place::Ready,
            Verdict::Ack | Verdict::Discard => {
                let (message, _) = self.queues[queue].copies.remove(&position).expect("just seen");
                assert!(self.queues[queue].acked.insert(message), "settled twice");
            }
        }
    }

    fn consume(&mut self, who: usize) {
        let queue = self.pick(QUEUES.len());
        let (prefetch, no_ack) = ([0, 1, 3, 10][self.pick(4)], self.rng.below(4) == 0);
        let tag = format!("c{}", self.next_consumer);
        self.next_consumer += 1;
        let prefetch_of = if no_ack { 0 } else { prefetch };
        self.peers[who].consumers.insert(tag.clone(), (queue, prefetch_of.into(), no_ack));
        self.peers[who].open_of.insert(tag.clone(), 0);
        self.peers[who].peer.consume(QUEUES[queue], &tag, prefetch, no_ack).expect("consuming");
    }

    fn cancel(&mut self, who: usize) {
        let tags: Vec<String> = self.peers[who].consumers.keys().cloned().collect();
        if let Some(tag) = (!tags.is_empty()).then(|| tags[self.pick(tags.len())].clone()) {
            self.listen();
            self.peers[who].peer.client.cancel(1, &tag).expect("cancelled");
            self.peers[who].peer.flush().expect("flushed");
            self.peers[who].consumers.remove(&tag);
        }
    }

    fn get(&mut self, who: usize) {
        let queue = self.pick(QUEUES.len());
        let got = self.peers[who].peer.get(QUEUES[queue]);
        let expected = self.queues[queue].copies.iter().find(|(_, (_, place))| *place == Place::Ready).map(|(at, _)| *at);
        match (got, expected) {
            (None, None) => {}
            (Some(said), Some(position)) => self.received(who, Some(queue), said, Some(position)),
            (got, expected) => panic!("get of {}: got {got:?}, expected position {expected:?}", QUEUES[queue]),
        }
    }

    fn recover(&mut self, who: usize) {
        self.peers[who].peer.client.recover(1).expect("recovered");
        self.peers[who].peer.flush().expect("flushed");
        self.all_back(who);
    }

    fn all_back(&mut self, who: usize) {
        let tags: Vec<u64> = self.peers[who].out.keys().copied().collect();
        tags.into_iter().for_each(|tag| self.settled(who, tag, Verdict::Requeue));
    }

    fn reopen_channel(&mut self, who: usize) {
        self.peers[who].peer.client.close_channel(1);
        self.peers[who].peer.flush().expect("flushed");
        self.all_back(who);
        let peer = &mut self.peers[who];
        peer.peer.client.open_channel(1);
        peer.peer.client.select_confirms(1).expect("confirms");
        peer.consumers.clear();
        (peer.published, peer.confirmed) = (0, 0);
    }

    fn reconnect(&mut self, who: usize) {
        self.peers[who].peer.client.close("the simulation says so");
        self.all_back(who);
        self.join();
        self.peers.swap_remove(who);
        // Whoever took the last place is named anew.
        for model in &mut self.queues {
            for (_, place) in model.copies.values_mut() {
                if let Place::Out { peer, .. } = place
                    && *peer == self.peers.len()
                {
                    *peer = who;
                }
            }
        }
    }

    fn purge(&mut self, who: usize) {
        let queue = self.pick(QUEUES.len());
        let count = self.peers[who].peer.client.purge_queue(1, QUEUES[queue]).expect("purged");
        let before = self.queues[queue].copies.len();
        self.queues[queue].copies.retain(|_, (_, place)| *place != Place::Ready);
        assert_eq!(count as usize, before - self.queues[queue].copies.len(), "purged messages");
    }

    fn delete_and_declare(&mut self, who: usize) {
        let queue = self.pick(QUEUES.len());
        let ready = self.queues[queue].copies.values().filter(|(_, place)| *place == Place::Ready).count();
        let count = self.peers[who].peer.delete(QUEUES[queue]).expect("deleted");
        assert_eq!(count as usize, ready, "messages that went with the queue");
        for peer in &mut self.peers {
            peer.consumers.retain(|_, (of, ..)| *of != queue);
        }
        // What was out of the old queue may still be settled, and is then gone.
        self.queues[queue].copies.clear();
        let name = QUEUES[queue].to_owned();
        let spec = QueueSpec { name, durable: false, exclusive: false, auto_delete: false, arguments: Table::new() };
        self.peers[who].peer.declare_as(spec).expect("declared");
        self.peers[who].peer.bind(QUEUES[queue], "all", "").expect("bound");
    }

    /// Lets every client read what it got and compares the deliveries with what was ready.
    fn listen(&mut self) {
        let mut taken: Vec<BTreeSet<u64>> = QUEUES.iter().map(|_| BTreeSet::new()).collect();
        let ready_before: Vec<Vec<u64>> = self.queues.iter().map(ready_positions).collect();
        // Whoever reads makes room, which may send more to one that has read already.
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for who in 0..self.peers.len() {
                for said in self.peers[who].peer.hear() {
                    quiet = false;
                    match said {
                        Said::Message { .. } => {
                            let (queue, position) = self.place(who, &said);
                            assert!(taken[queue].insert(position), "one delivery a copy");
                            self.received(who, Some(queue), said, Some(position));
                        }
                        Said::Confirmed { up_to, .. } => self.peers[who].confirmed = up_to,
                        Said::Cancelled { .. } | Said::Other(_) => {}
                        Said::Returned { .. } | Said::Refused { .. } => panic!("everything is routable and taken"),
                    }
                }
            }
        }
        for (queue, taken) in taken.iter().enumerate() {
            let lowest: BTreeSet<u64> = ready_before[queue].iter().take(taken.len()).copied().collect();
            assert_eq!(*taken, lowest, "deliveries of {} are the oldest that were ready", QUEUES[queue]);
        }
    }

    /// Which copy a delivery is.
    fn place(&self, who: usize, said: &Said) -> (usize, u64) {
        let Said::Message { by, body, .. } = said else { unreachable!("asked for messages only") };
        let (queue, ..) = *self.peers[who].consumers.get(by).unwrap_or_else(|| panic!("{by} does not consume any more"));
        let message = u64::from_be_bytes(body[..8].try_into().expect("eight bytes"));
        let found = self.queues[queue].copies.iter().find(|(_, (of, _))| *of == message);
        let (position, (_, place)) = found.unwrap_or_else(|| panic!("{message} is not in {}", QUEUES[queue]));
        assert_eq!(*place, Place::Ready, "{message} is delivered while it is out");
        (queue, *position)
    }

    fn received(&mut self, who: usize, queue: Option<usize>, said: Said, position: Option<u64>) {
        let (Some(queue), Some(position)) = (queue, position) else { return };
        let Said::Message { by, tag, redelivered, body, .. } = said else { panic!("a message was promised") };
        let model = &mut self.queues[queue];
        let message = u64::from_be_bytes(body[..8].try_into().expect("eight bytes"));
        assert_eq!(model.copies[&position].0, message, "the copy at its position");
        assert!(body[8..].iter().all(|byte| *byte == b'.'), "the body is whole");
        assert_eq!(redelivered, model.delivered_before.contains(&position), "the redelivered flag of {message}");
        model.delivered_before.insert(position);
        let auto = self.peers[who].consumers.get(&by).is_some_and(|(.., no_ack)| *no_ack);
        if auto {
            model.copies.remove(&position);
            return;
        }
        model.copies.insert(position, (message, Place::Out { peer: who, tag }));
        self.peers[who].out.insert(tag, (queue, position));
        if by != "get" {
            *self.peers[who].open_of.entry(by.clone()).or_default() += 1;
            self.peers[who].by_tag.insert(tag, by);
        }
    }

    fn check(&mut self) {
        for (at, model) in self.queues.iter().enumerate() {
            let view = self.world.broker.vhost("/").expect("the space").queue(QUEUES[at]).expect("the queue");
            let ready = ready_positions(model).len() as u64;
            assert_eq!(view.ready, ready, "ready in {}", QUEUES[at]);
            assert_eq!(view.unacked, model.copies.len() as u64 - ready, "unacked of {}", QUEUES[at]);
            let hungry = self
                .peers
                .iter()
                .flat_map(|peer| peer.consumers.iter().map(move |consumer| (peer, consumer)))
                .any(|(peer, (tag, (queue, prefetch, _)))| *queue == at && (*prefetch == 0 || peer.open_of[tag] < *prefetch));
            assert!(ready == 0 || !hungry, "{} keeps messages from a consumer with room", QUEUES[at]);
        }
        for peer in &self.peers {
            assert_eq!(peer.published, peer.confirmed, "every publish is confirmed");
        }
    }

    /// Everything is settled: nothing may be booked any more.
    fn finish(mut self) {
        for who in 0..self.peers.len() {
            let mut tags: Vec<u64> = self.peers[who].out.keys().copied().collect();
            tags.sort_unstable_by(|a, b| b.cmp(a));
            for tag in tags {
                self.peers[who].peer.ack(tag);
                self.settled(who, tag, Verdict::Ack);
                self.listen();
            }
        }
        for queue in QUEUES {
            self.peers[0].peer.client.purge_queue(1, queue).expect("purged");
        }
        self.peers.iter_mut().for_each(|peer| peer.peer.client.close("done"));
        for queue in QUEUES {
            let mut last = self.world.connect();
            last.client.purge_queue(1, queue).expect("purged");
        }
        let left = self.world.broker.totals();
        assert_eq!(left.queue_bytes, 0, "bytes booked for nothing");
        assert_eq!((left.connections, left.channels, left.consumers), (0, 0, 0));
    }
}

fn ready_positions(model: &ModelQueue) -> Vec<u64> {
    model.copies.iter().filter(|(_, (_, place))| *place == Place::Ready).map(|(position, _)| *position).collect()
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

#[test]
fn random_clients_lose_nothing_and_get_everything_once_and_in_order() {
    for seed in 0..40 {
        run(seed, 300);
    }
}

/// `SIM_STEPS=1000000` takes as many steps.
#[test]
fn seeds_nobody_chose_find_nothing_either() {
    const STEPS: usize = 1_500;
    let asked = std::env::var("SIM_STEPS").ok().and_then(|steps| steps.parse::<usize>().ok());
    let mut seeds = Rng::unseeded();
    (0..asked.unwrap_or(STEPS).div_ceil(STEPS)).for_each(|_| run(seeds.draw(), STEPS));
}
