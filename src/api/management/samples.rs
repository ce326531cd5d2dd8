//! The memory behind rates: looks at every counter once a second and keeps what moved.
//!
//! While nothing moves in the whole broker a look is one comparison, however many queues there are. Histories exist only of what
//! moved in the last ten minutes; beyond [`HISTORIES_MAX`] of them further ones know their rates but not the steps before.

use super::history::{History, KEEP};
use crate::broker::view::QueueLoad;
use crate::broker::{Broker, ConnectionId, Flow};
use crate::kernel::{Clock, platform};
use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Histories with all their steps, over everything; each takes up to 15 KB.
const HISTORIES_MAX: usize = 4_096;
/// Seconds between looks at the process, and at connections while nothing moves: heartbeats are bytes too.
const QUIET_LOOK: u64 = 5;

/// Space and name.
pub type Key = (Arc<str>, Arc<str>);

/// Places of the numbers of queues and spaces.
pub const MESSAGES: usize = 0;
pub const READY: usize = 1;
pub const UNACKED: usize = 2;
/// Where the eleven numbers of a [`Flow`] begin, in its order.
pub const FLOW: usize = 3;
pub const FLOW_NAMES: [&str; 11] = [
    "publish",
    "confirm",
    "return_unroutable",
    "drop_unroutable",
    "deliver",
    "deliver_no_ack",
    "get",
    "get_no_ack",
    "get_empty",
    "ack",
    "redeliver",
];
pub const WIDTH: usize = FLOW + FLOW_NAMES.len();
/// Bytes of a connection, messages of an exchange.
pub const IN: usize = 0;
pub const OUT: usize = 1;
/// Numbers of the node.
pub const NODE_NAMES: [&str; 11] = [
    "mem_used",
    "fd_used",
    "sockets_used",
    "disk_free",
    "connection_created",
    "connection_closed",
    "channel_created",
    "channel_closed",
    "queue_declared",
    "queue_created",
    "queue_deleted",
];
/// Where churn begins in them.
pub const CHURN: usize = 4;

/// What is remembered of one thing.
#[derive(Debug)]
struct Track<const N: usize> {
    last: [u64; N],
    seen: u64,
    history: Option<Box<History<N>>>,
}

#[derive(Debug)]
pub struct Tracks<K, const N: usize>(HashMap<K, Track<N>>);

impl<K, const N: usize> Default for Tracks<K, N> {
    fn default() -> Self {
        Tracks(HashMap::new())
    }
}

impl<K: Eq + Hash, const N: usize> Tracks<K, N> {
    pub fn history(&self, key: &K) -> Option<&History<N>> {
        self.0.get(key)?.history.as_deref()
    }

    fn see(&mut self, key: K, values: [u64; N], beat: &mut Beat) {
        let first = self.0.is_empty() && beat.number == 1;
        // A thing that is new since the last look began with nothing.
        let track = self.0.entry(key).or_insert_with(|| {
            let last = if first { values } else { [0; N] };
            Track { last, seen: 0, history: None }
        });
        track.seen = beat.number;
        if track.last == values {
            return;
        }
        let history = track.history.get_or_insert_with(|| {
            let room = beat.histories < HISTORIES_MAX;
            beat.histories += usize::from(room);
            Box::new(History::new(track.last, room))
        });
        history.push(beat.second, values);
        track.last = values;
    }

    /// Forgets what is gone, and the histories of what has long been at rest.
    fn sweep(&mut self, beat: &mut Beat) {
        let mut freed = 0;
        let mut free = |history: &mut Option<Box<History<N>>>| {
            freed += usize::from(history.take().is_some_and(|history| history.has_steps()));
        };
        self.0.retain(|_, track| {
            if track.seen != beat.number {
                free(&mut track.history);
                return false;
            }
            if track.history.as_ref().is_some_and(|history| beat.second.saturating_sub(history.last_change()) > KEEP) {
                free(&mut track.history);
            }
            true
        });
        beat.histories = beat.histories.saturating_sub(freed);
    }
}

/// One look.
#[derive(Debug, Default)]
struct Beat {
    number: u64,
    second: u64,
    histories: usize,
}

#[derive(Debug, Default)]
pub struct Sampled {
    pub queues: Tracks<Key, WIDTH>,
    pub exchanges: Tracks<Key, 2>,
    pub spaces: Tracks<Arc<str>, WIDTH>,
    pub space_bytes: Tracks<Arc<str>, 2>,
    pub channels: Tracks<(ConnectionId, u16), WIDTH>,
    pub connections: Tracks<ConnectionId, 2>,
    pub whole: Tracks<(), WIDTH>,
    pub node: Tracks<(), { NODE_NAMES.len() }>,
    beat: Beat,
    activity: Option<u64>,
}

/// Shared by the sampler, which writes, and the handlers, which read.
#[derive(Debug)]
pub struct Samples {
    clock: Clock,
    data_dir: Option<PathBuf>,
    sampled: Mutex<Sampled>,
}

impl Samples {
    pub fn new(clock: Clock, data_dir: Option<PathBuf>) -> Self {
        Samples { clock, data_dir, sampled: Mutex::default() }
    }

    pub fn read(&self) -> MutexGuard<'_, Sampled> {
        self.sampled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The second that histories count in.
    pub fn second(&self) -> u64 {
        self.clock.now().as_nanos() / 1_000_000_000
    }

    /// Unix milliseconds of such a second.
    pub fn millis_at(&self, second: u64) -> u64 {
        self.clock.unix_nanos_at(crate::kernel::Instant::from_nanos(second.saturating_mul(1_000_000_000))) / 1_000_000
    }

    /// Looks at everything. To be called once a second.
    pub fn beat(&self, broker: &Broker, sockets: u64) {
        let mut sampled = self.read();
        let sampled = &mut *sampled;
        sampled.beat.number += 1;
        sampled.beat.second = self.second();
        let activity = broker.activity();
        let moved = sampled.activity != Some(activity);
        sampled.activity = Some(activity);
        let regular = sampled.beat.number.is_multiple_of(QUIET_LOOK);
        if regular {
            sampled.look_at_node(broker, sockets, self.data_dir.as_deref());
        }
        if moved || regular {
            sampled.look_at_links(broker);
        }
        if moved {
            sampled.look_at_spaces(broker);
        }
    }
}

impl Sampled {
    fn look_at_node(&mut self, broker: &Broker, sockets: u64, data_dir: Option<&std::path::Path>) {
        let churn = broker.churn();
        let values = [
            platform::own_usage().memory_bytes,
            platform::open_files(),
            sockets,
            platform::disk_free(data_dir),
            churn.connections_opened,
            churn.connections_closed,
            churn.channels_opened,
            churn.channels_closed,
            churn.queues_declared,
            churn.queues_created,
            churn.queues_deleted,
        ];
        self.node.see((), values, &mut self.beat);
    }

    fn look_at_links(&mut self, broker: &Broker) {
        let mut bytes: HashMap<Arc<str>, [u64; 2]> = HashMap::new();
        for link in broker.link_loads() {
            let of_space = bytes.entry(link.space).or_default();
            of_space[IN] += link.in_bytes;
            of_space[OUT] += link.out_bytes;
            self.connections.see(link.id, [link.in_bytes, link.out_bytes], &mut self.beat);
            for (number, flow) in link.channels {
                self.channels.see((link.id, number), with_flow([0; 3], &flow), &mut self.beat);
            }
        }
        bytes.into_iter().for_each(|(space, bytes)| self.space_bytes.see(space, bytes, &mut self.beat));
        self.connections.sweep(&mut self.beat);
        self.channels.sweep(&mut self.beat);
        self.space_bytes.sweep(&mut self.beat);
    }

    fn look_at_spaces(&mut self, broker: &Broker) {
        let flows = broker.flows();
        let (mut whole, mut whole_lengths) = (Flow::default(), [0; 3]);
        for vhost in broker.vhosts() {
            let loads = vhost.queue_loads();
            let lengths = lengths_of(&loads);
            for (name, load) in loads {
                self.queues.see((vhost.name().clone(), name), of_queue(&load), &mut self.beat);
            }
            for (name, published, routed) in vhost.exchange_loads() {
                self.exchanges.see((vhost.name().clone(), name), [published, routed], &mut self.beat);
            }
            let flow = flows.get(vhost.name()).copied().unwrap_or_default();
            whole.add(&flow);
            whole_lengths.iter_mut().zip(lengths).for_each(|(sum, value)| *sum += value);
            self.spaces.see(vhost.name().clone(), with_flow(lengths, &flow), &mut self.beat);
        }
        self.whole.see((), with_flow(whole_lengths, &whole), &mut self.beat);
        self.queues.sweep(&mut self.beat);
        self.exchanges.sweep(&mut self.beat);
        self.spaces.sweep(&mut self.beat);
    }
}

/// All messages, ready ones and unacked ones.
pub fn lengths_of(loads: &[(Arc<str>, QueueLoad)]) -> [u64; 3] {
    loads.iter().map(|(_, load)| length(load)).fold([0; 3], |sum, next| std::array::from_fn(|at| sum[at] + next[at]))
}

pub fn length(load: &QueueLoad) -> [u64; 3] {
    [load.ready + load.unacked + load.kept, load.ready, load.unacked]
}

/// What a queue's own counters say, as a flow.
pub fn flow_of_queue(load: &QueueLoad) -> Flow {
    let counts = &load.counts;
    Flow {
        publish: counts.published,
        deliver: counts.delivered.saturating_sub(counts.delivered_no_ack + counts.got + counts.got_no_ack),
        deliver_no_ack: counts.delivered_no_ack,
        get: counts.got,
        get_no_ack: counts.got_no_ack,
        get_empty: counts.got_empty,
        ack: counts.acked,
        redeliver: counts.redelivered,
        ..Flow::default()
    }
}

fn of_queue(load: &QueueLoad) -> [u64; WIDTH] {
    with_flow(length(load), &flow_of_queue(load))
}

/// In the order of [`FLOW_NAMES`].
pub fn numbers(flow: &Flow) -> [u64; FLOW_NAMES.len()] {
    [
        flow.publish,
        flow.confirm,
        flow.return_unroutable,
        flow.drop_unroutable,
        flow.deliver,
        flow.deliver_no_ack,
        flow.get,
        flow.get_no_ack,
        flow.get_empty,
        flow.ack,
        flow.redeliver,
    ]
}

fn with_flow(lengths: [u64; 3], flow: &Flow) -> [u64; WIDTH] {
    let mut values = [0; WIDTH];
    values[..FLOW].copy_from_slice(&lengths);
    values[FLOW..].copy_from_slice(&numbers(flow));
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thing_that_is_new_began_with_nothing_and_one_that_is_gone_is_forgotten() {
        let mut tracks: Tracks<&str, 1> = Tracks::default();
        let mut beat = Beat { number: 1, second: 1, histories: 0 };
        tracks.see("old", [500], &mut beat);
        (beat.number, beat.second) = (2, 2);
        tracks.see("old", [510], &mut beat);
        tracks.see("new", [20], &mut beat);
        tracks.sweep(&mut beat);
        let rate = |tracks: &Tracks<&str, 1>, key: &'static str| tracks.history(&key).map(|history| history.rate(0, 2));
        assert_eq!((rate(&tracks, "old"), rate(&tracks, "new"), beat.histories), (Some(2.0), Some(4.0), 2));
        (beat.number, beat.second) = (3, KEEP + 10);
        tracks.see("old", [510], &mut beat);
        tracks.sweep(&mut beat);
        assert_eq!((tracks.0.len(), rate(&tracks, "old"), beat.histories), (1, None, 0), "what rests costs no history");
    }
}
