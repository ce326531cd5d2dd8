//! What the broker itself publishes: dead letters, and whatever else it keeps for a while and then sends on.

use super::client::chosen;
use super::effects::Effects;
use super::message::{Extra, Meta, Run};
use super::queue::Queue;
use super::record::{self, INLINE_BODY_MAX};
use super::route::Queues;
use super::routing::{Asked, Route};
use super::trace::Beside;
use super::vhost::Vhost;
use crate::wire::amqp::Properties;
use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Where a message of the broker's went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Placed {
    /// Queues that its route named; exchanges on its way that delay it are one more.
    pub found: usize,
    /// Those of them it was offered to.
    pub offered: usize,
    /// Queues that took it, or refused it and made it a dead letter of their own.
    pub took: SmallVec<[Arc<str>; 2]>,
    /// Exchanges on its way keep it for a while.
    pub delayed: bool,
}

impl Placed {
    /// Nobody it was offered to refused it.
    pub fn is_whole(&self) -> bool {
        self.took.len() + usize::from(self.delayed) == self.offered
    }
}

/// A message for an exchange, from nobody's connection.
#[derive(Clone, Copy)]
pub(super) struct Republished<'a> {
    pub exchange: &'a str,
    pub key: &'a str,
    pub properties: Properties<'a>,
    pub body: &'a [u8],
    /// The same body, if it can travel by reference.
    pub large: Option<&'a Bytes>,
    pub trace: Option<Beside>,
    /// What came of it when it was sent before: who has it gets it no second time, and nothing is counted as published anew.
    pub before: Option<&'a Placed>,
}

impl Vhost {
    /// Routes a message as a client's would be, asking nobody's permission, to those of its queues that `may_go_to` names: none if there
    /// is no such exchange. To be called without any lock.
    pub(super) fn republish(&self, message: Republished<'_>, may_go_to: impl Fn(&str) -> bool, effects: &mut Effects) -> Placed {
        let Republished { exchange, key, properties, .. } = message;
        // What is no list of keys was refused when it was published first.
        let cc = properties.headers().and_then(|headers| chosen(headers).ok()).map(|chosen| chosen.keys).unwrap_or_default();
        let asked = Asked { exchange, key, cc: &cc, properties };
        let Some(route) = self.route_unasked(&asked) else { return Placed::default() };
        if message.before.is_none() {
            route.stats.published.fetch_add(1, Ordering::Relaxed);
        }
        let delays = usize::from(!route.delays.is_empty());
        let late = if message.before.is_some_and(|before| before.delayed) { 0 } else { delays };
        let delayed = late > 0 && self.republish_late(&route, &asked, &message, effects);
        let placed = self.put(&route, &message, may_go_to, effects);
        Placed { found: placed.found + delays, offered: placed.offered + late, delayed, ..placed }
    }

    /// Through exchanges that delay it. False if too many messages wait there.
    #[cold]
    fn republish_late(&self, route: &Route, asked: &Asked<'_>, message: &Republished<'_>, effects: &mut Effects) -> bool {
        let Some(vhost) = self.me.upgrade() else { return false };
        if let Err(refused) = vhost.may_delay(route) {
            tracing::warn!(%refused, "a message of the broker itself is not delayed");
            return false;
        }
        let body = message.large.cloned().unwrap_or_else(|| Bytes::copy_from_slice(message.body));
        route.delays.iter().for_each(|(by, delay)| vhost.delay(by, *delay, asked, body.clone(), effects.now));
        true
    }

    /// Puts a message into those queues of a route that `may_go_to` names; its exchange has counted it.
    pub(super) fn put(
        &self,
        route: &Route,
        message: &Republished<'_>,
        may_go_to: impl Fn(&str) -> bool,
        effects: &mut Effects,
    ) -> Placed {
        let has_it = |name: &str| message.before.is_some_and(|before| before.took.iter().any(|took| **took == *name));
        let is_aimed = |queue: &&Arc<Queue>| !has_it(&queue.name) && may_go_to(&queue.name);
        let queues: Queues = route.queues.iter().filter(is_aimed).cloned().collect();
        let placed = Placed { found: route.queues.len(), offered: queues.len(), ..Placed::default() };
        if queues.is_empty() {
            return placed;
        }
        let key = route.key.as_deref().unwrap_or(message.key);
        let properties = message.properties.as_bytes();
        let mut segment = BytesMut::with_capacity(record::room(message.exchange, key, properties, message.body));
        let key_len = record::write_key(&mut segment, message.exchange, key);
        record::write_content(&mut segment, properties, message.body);
        let by_reference = || message.large.cloned().unwrap_or_else(|| Bytes::copy_from_slice(message.body));
        let expiration = message.properties.expiration().and_then(|text| text.parse().ok());
        let extra = Extra {
            body: (message.body.len() >= INLINE_BODY_MAX).then(by_reference),
            expires_at: expiration.map(|millis| effects.now + Duration::from_millis(millis)),
            trace: message.trace,
            ..Extra::default()
        };
        let (segment, is_extra) = (segment.freeze(), extra.is_something());
        let metas = [Meta { at: 0, len: segment.len() as u32, key_len, extra: is_extra }];
        let extras = [(0, extra)];
        let extras = if is_extra { &extras[..] } else { &[] };
        let run = Run { segment: &segment, metas: &metas, extras, first: 0, now: effects.now };
        if self.taps.is_on() && message.before.is_none() {
            self.tap_own(&run, &queues);
        }
        let mut takes = |queue: &&Arc<Queue>| {
            let is_kept = queue.offer(&run, effects).is_some();
            // A full queue may refuse it, and has counted that.
            is_kept | effects.take_refused().iter().any(|refused| refused.buried)
        };
        let took: SmallVec<_> = queues.iter().filter(|queue| takes(queue)).map(|queue| queue.name.clone()).collect();
        let routed = if message.before.is_none() { queues.len() } else { took.len() };
        route.stats.routed.fetch_add(routed as u64, Ordering::Relaxed);
        Placed { took, ..placed }
    }
}
