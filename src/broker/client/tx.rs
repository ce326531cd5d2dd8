//! Transactions (class `tx`): publishes and acks of a channel wait for `tx.commit` and then take effect together.
//!
//! A publish is checked and routed when it is made, so that committing cannot fail: nothing is asked at the commit that might be
//! refused then, be it a permission or room among messages that wait. What finds no queue is returned at the commit. An ack is checked when it is made and counts against prefetch limits until the commit. What was not committed when the channel ends
//! never was: its publishes go, its deliveries are requeued as unacked.

use super::channel::unopened;
use super::publish::keep_late;
use super::{Client, Failed, Hold, Settle};
use crate::broker::message::Extra;
use crate::broker::outbox::{Lane, Unacked};
use crate::broker::refused::Refused;
use crate::broker::reply::Address;
use crate::broker::routing::{Asked, Route};
use crate::broker::shared::Shared;
use crate::kernel::limit;
use crate::wire::amqp::{Body, Properties, Publish};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a transactional channel has said since its last commit.
pub(super) struct Tx {
    publishes: Vec<Held>,
    /// By delivery tag.
    settles: BTreeMap<u64, Settle>,
    bytes: usize,
    shared: Arc<Shared>,
}

struct Held {
    exchange: String,
    routing_key: String,
    mandatory: bool,
    cc: Vec<String>,
    properties: Vec<u8>,
    body: Bytes,
    extra: Extra,
    /// `None` for a message to a reply address.
    route: Option<Arc<Route>>,
}

/// Bytes a held publish costs beside its texts and body.
const HELD_OVERHEAD: usize = 256;
/// And each further key of its sender.
const CC_OVERHEAD: usize = 40;

impl Tx {
    fn new(shared: &Arc<Shared>) -> Box<Self> {
        Box::new(Tx { publishes: Vec::new(), settles: BTreeMap::new(), bytes: 0, shared: shared.clone() })
    }

    /// Tags among `lane`'s deliveries that are not settled here yet.
    fn open<'a>(&'a self, lane: &'a Lane) -> impl Iterator<Item = u64> + 'a {
        lane.unsettled().map(|unacked: &Unacked| unacked.tag).filter(|tag| !self.settles.contains_key(tag))
    }
}

impl Drop for Tx {
    fn drop(&mut self) {
        self.shared.book_transacted(-(self.bytes as i64));
    }
}

impl Client {
    /// `tx.select`
    pub fn select_tx(&mut self, channel: u16) -> Result<(), Failed> {
        self.sync(channel)?;
        let shared = self.vhost.shared.clone();
        let state = self.channel_mut(channel)?;
        if state.confirms {
            return refuse(channel, "cannot switch from confirm to tx mode");
        }
        if state.tx.is_none() {
            state.tx = Some(Tx::new(&shared));
        }
        self.transacts = true;
        if let Some(lane) = self.link.outbox().channels.get_mut(channel) {
            lane.transactional = true;
        }
        Ok(())
    }

    /// `tx.commit`: everything held takes effect, then what it set off.
    pub fn commit(&mut self, channel: u16) -> Result<(), Failed> {
        let mut tx = self.take_tx(channel)?;
        for held in std::mem::take(&mut tx.publishes) {
            self.let_out(channel, held)?;
        }
        for settle in std::mem::take(&mut tx.settles).into_values() {
            self.settles.push(channel, settle);
        }
        self.sync(channel)
    }

    /// `tx.rollback`: nothing held ever was; settled deliveries are unacked again.
    pub fn roll_back(&mut self, channel: u16) -> Result<(), Failed> {
        self.take_tx(channel).map(drop)
    }

    fn take_tx(&mut self, channel: u16) -> Result<Box<Tx>, Failed> {
        self.sync(channel)?;
        let next = Tx::new(&self.vhost.shared);
        match &mut self.channel_mut(channel)?.tx {
            Some(tx) => Ok(std::mem::replace(tx, next)),
            None => refuse(channel, "channel is not transactional"),
        }
    }

    pub(super) fn is_transactional(&self, channel: u16) -> bool {
        self.channels.get(channel).is_some_and(|state| state.tx.is_some())
    }

    /// A publish on a transactional channel.
    #[cold]
    pub(super) fn hold_publish(&mut self, message: &Publish<'_>) -> Result<(), Failed> {
        let channel = message.channel;
        let mut extra = Extra::default();
        let examined = self.examine(message, &mut extra).map_err(Self::fail(channel))?;
        let properties = examined.rewritten.as_deref().map_or(message.properties, Properties::trusted);
        let (exchange, key) = (message.exchange, message.routing_key);
        let route = match exchange.is_empty() && Address::is_address(key) {
            true => None,
            false => {
                let asked = Asked { exchange, key, cc: &examined.cc, properties };
                let route = self.vhost.route(&asked, &self.principal).map_err(Self::fail(channel))?;
                self.vhost.may_delay(&route).map_err(Self::fail(channel))?;
                Some(Arc::new(route))
            }
        };
        if self.traces {
            self.trace_publish(message, properties, &mut extra);
        }
        let mut held = Held {
            exchange: exchange.to_owned(),
            routing_key: key.to_owned(),
            mandatory: message.mandatory,
            properties: properties.as_bytes().to_vec(),
            cc: Vec::new(),
            body: message.body.clone().into_bytes(),
            extra,
            route,
        };
        held.cc = examined.cc;
        let keys: usize = held.cc.iter().map(|key| CC_OVERHEAD + key.len()).sum();
        let bytes = HELD_OVERHEAD + exchange.len() + key.len() + held.properties.len() + held.body.len() + keys;
        let shared = &self.vhost.shared;
        let Some(tx) = self.channels.get_mut(channel).and_then(|state| state.tx.as_mut()) else {
            return Err(unopened(channel));
        };
        if tx.bytes + bytes > limit::TRANSACTION_BYTES_MAX {
            let max = limit::TRANSACTION_BYTES_MAX;
            return refuse(channel, &format!("transaction too large: it would hold more than {max} bytes; commit sooner"));
        }
        if !shared.may_transact(bytes) {
            return refuse(channel, "open transactions hold half of limits.queue_bytes_max; commit sooner");
        }
        tx.bytes += bytes;
        tx.publishes.push(held);
        shared.book_transacted(bytes as i64);
        if shared.has_alarm() {
            self.hold = Some(Hold::Alarm);
        }
        Ok(())
    }

    /// What was held goes its way.
    fn let_out(&mut self, channel: u16, held: Held) -> Result<(), Failed> {
        let Held { exchange, routing_key, mandatory, cc, properties, body, extra, route } = held;
        let properties = Properties::trusted(&properties);
        let body = Body::Collected(body);
        let (exchange, routing_key) = (exchange.as_str(), routing_key.as_str());
        let message = Publish { channel, exchange, routing_key, mandatory, immediate: false, properties, body };
        match route {
            None => self.reply(&message, properties),
            Some(route) => self.place(&message, &route, &cc, extra),
        }
    }

    fn place(&mut self, message: &Publish<'_>, route: &Arc<Route>, cc: &[String], extra: Extra) -> Result<(), Failed> {
        if !route.delays.is_empty() {
            let (exchange, key, properties) = (message.exchange, message.routing_key, message.properties);
            let asked = Asked { exchange, key, cc, properties };
            keep_late(&self.vhost, route, &asked, &message.body, self.effects.now);
        }
        if route.queues.is_empty() {
            route.stats.published.fetch_add(1, Ordering::Relaxed);
            if route.delays.is_empty() {
                self.unroutable(message, message.properties);
            }
        } else {
            self.make_room(message, message.properties);
            let at = self.begin_run(route.clone(), message);
            self.finish_record(at, message.properties, message.body.clone(), extra);
        }
        self.count(message.channel)
    }

    /// An ack, nack or reject on a transactional channel. False if the channel is not one.
    #[cold]
    pub(super) fn hold_settle(&mut self, channel: u16, settle: Settle) -> bool {
        if self.has_failed(channel) {
            return true;
        }
        let Settle { tag, multiple, .. } = settle;
        let Some(tx) = self.channels.get_mut(channel).and_then(|state| state.tx.as_mut()) else { return false };
        let outbox = self.link.outbox();
        let Some(lane) = outbox.channels.get(channel) else { return false };
        let tags: Vec<u64> = match (multiple, tag) {
            (true, 0) => tx.open(lane).collect(),
            (true, _) => tx.open(lane).take_while(|open| *open <= tag).collect(),
            (false, _) => tx.open(lane).find(|open| *open == tag).into_iter().collect(),
        };
        if tags.last() != Some(&tag) && !(multiple && tag == 0) {
            self.late_failures.push(settle.unknown(channel));
            return true;
        }
        tx.settles.extend(tags.into_iter().map(|tag| (tag, Settle { tag, multiple: false, ..settle })));
        true
    }

    /// Deliveries that `basic.recover` returns on a transactional channel: those it has not settled. `None` for other channels.
    pub(super) fn recoverable(&self, channel: u16) -> Option<Vec<u64>> {
        let tx = self.channels.get(channel)?.tx.as_ref()?;
        Some(self.link.outbox().channels.get(channel).map(|lane| tx.open(lane).collect()).unwrap_or_default())
    }
}

fn refuse<T>(channel: u16, text: &str) -> Result<T, Failed> {
    Err(Failed::new(channel, Refused::Precondition(text.into())))
}

impl std::fmt::Debug for Tx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} publishes and {} acks to commit", self.publishes.len(), self.settles.len())
    }
}
