//! Dead letters: what a queue gives up is published again, through its dead-letter exchange, with the story of its deaths.
//!
//! A queue only notes what died ([`Dead`], among its [`Effects`](super::effects::Effects)); the publishing is done after every lock
//! is released, in the order of the deaths, by whoever caused them. A letter that would go back to a queue where it died before
//! without anybody having rejected it since is dropped, as RabbitMQ does: else it would go round for ever.
//!
//! A letter that somebody refused is lost, unless its queue promises to deliver its letters at least once: that takes it back and
//! tries again (`queue/kept.rs`).

use super::effects::Effects;
use super::journey::StepKind;
use super::queue::Queue;
use super::record::Record;
use super::republish::{Placed, Republished};
use super::tap::Ended;
use super::trace::Beside;
use super::vhost::Vhost;
use crate::kernel::Instant;
use crate::model::table::{Field, Table};
use crate::wire::amqp::{Properties, PropertyList, RawTable, table};
use bytes::Bytes;
use std::sync::{Arc, Weak};

/// Why a queue gives a message up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Rejected,
    Expired,
    /// The queue was full.
    MaxLen,
    DeliveryLimit,
}

impl Reason {
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Rejected => "rejected",
            Reason::Expired => "expired",
            Reason::MaxLen => "maxlen",
            Reason::DeliveryLimit => "delivery_limit",
        }
    }
}

/// Where the dead letters of one queue go.
#[derive(Debug)]
pub(super) struct Letters {
    pub vhost: Weak<Vhost>,
    pub queue: Arc<str>,
    pub exchange: Arc<str>,
    /// `None` keeps the message's own.
    pub key: Option<Arc<str>>,
    /// The queue, if it keeps what is refused.
    pub keeper: Option<Weak<Queue>>,
}

/// A message that its queue has given up and nobody has published again yet.
#[derive(Clone, Debug)]
pub(super) struct Dead {
    pub letters: Arc<Letters>,
    pub reason: Reason,
    /// When it died.
    pub at: Instant,
    pub record: Bytes,
    pub key_len: u16,
    /// Its body, if that travels by reference.
    pub body: Option<Bytes>,
    pub trace: Option<Beside>,
    /// If somebody looks.
    pub ended: Option<Ended>,
}

impl Dead {
    /// Publishes it for the first time; its queue takes it back if it is refused and the queue keeps such. To be called without any
    /// lock.
    pub fn publish(self, effects: &mut Effects) {
        let placed = self.send(None, effects);
        let why = self.refusal(&placed, None);
        let (ended, letters) = (self.ended, self.letters.clone());
        let keeper = letters.keeper.as_ref().filter(|_| why.is_some()).and_then(Weak::upgrade);
        let is_kept = keeper.is_some_and(|queue| queue.keep(self, placed.clone(), effects));
        let Some(ended) = ended else { return };
        let queue = letters.queue.clone();
        let fate = match why {
            Some(reason) if is_kept => StepKind::Kept { queue, reason },
            Some(reason) if placed.took.is_empty() && !placed.delayed => StepKind::Dropped { queue, reason },
            _ => StepKind::DeadLettered { queue, exchange: letters.exchange.clone() },
        };
        effects.see_letter(ended, fate);
    }

    /// Publishes it, but not to those that took it `before`. To be called without any lock.
    pub fn send(&self, before: Option<&Placed>, effects: &mut Effects) -> Placed {
        let Some(vhost) = self.letters.vhost.upgrade() else { return Placed::default() };
        let record = Record::new(&self.record, self.key_len);
        let old = Properties::trusted(record.properties());
        let at_s = (vhost.shared.epoch_ns + self.at.as_nanos()) / 1_000_000_000;
        let headers = self.headers(record, old, at_s);
        let deaths: Vec<Death<'_>> = deaths(&headers).collect();
        let encoded = table::encoded(&headers);
        let properties = PropertyList { headers: RawTable::check(&encoded).ok(), expiration: None, ..old.to_list() }.to_bytes();
        let message = Republished {
            exchange: &self.letters.exchange,
            key: self.letters.key.as_deref().unwrap_or(record.routing_key()),
            properties: Properties::trusted(&properties),
            body: self.body.as_deref().unwrap_or(record.inline_body()),
            large: self.body.as_ref(),
            trace: self.trace,
            before,
        };
        vhost.republish(message, |queue| self.reason == Reason::Rejected || !is_cycle(queue, &deaths), effects)
    }

    /// Why it has not reached everybody it should have, in words.
    pub fn refusal(&self, placed: &Placed, before: Option<&Placed>) -> Option<&'static str> {
        let is_nobodys = before.is_none_or(|before| before.took.is_empty() && !before.delayed);
        match placed {
            Placed { found: 0, .. } => Some("no queue for its letter"),
            Placed { offered: 0, .. } if is_nobodys => Some("its letter would go round for ever"),
            _ if placed.is_whole() => None,
            _ => Some("its letter was refused by full queues"),
        }
    }

    /// Bytes it occupies while it is kept.
    pub fn weight(&self) -> u64 {
        (self.record.len() + self.body.as_ref().map_or(0, Bytes::len)) as u64
    }

    pub fn body_len(&self) -> u64 {
        let inline = || Record::new(&self.record, self.key_len).inline_body().len();
        self.body.as_ref().map_or_else(inline, Bytes::len) as u64
    }

    /// Its headers with this death told in `x-death`, newest first.
    fn headers(&self, record: Record<'_>, properties: Properties<'_>, at_s: u64) -> Table {
        let mut headers = properties.headers().map(RawTable::to_table).unwrap_or_default();
        let (reason, queue) = (self.reason.as_str(), &*self.letters.queue);
        let died_before = matches!(headers.get(X_DEATH), Some(Field::Array(_)));
        let mut history = match take(&mut headers, X_DEATH) {
            Some(Field::Array(history)) => history,
            _ => Vec::new(),
        };
        let same = |entry: &Field| Death::of(entry).is_some_and(|death| death.queue == queue && death.reason == reason);
        let entry = match history.iter().position(same) {
            Some(at) => once_more(history.remove(at)),
            None => self.death(record, properties, &headers, at_s),
        };
        history.insert(0, entry);
        if !died_before {
            tell(&mut headers, "first", reason, queue, record.exchange());
        }
        tell(&mut headers, "last", reason, queue, record.exchange());
        if self.letters.key.is_some() {
            take(&mut headers, "CC");
        }
        headers.with(X_DEATH, Field::Array(history))
    }

    fn death(&self, record: Record<'_>, properties: Properties<'_>, headers: &Table, at_s: u64) -> Field {
        let copied = ["CC", "BCC"].into_iter().filter_map(|name| match headers.get(name) {
            Some(Field::Array(keys)) => Some(keys.iter().filter(|key| matches!(key, Field::Text(_))).cloned()),
            _ => None,
        });
        let keys = std::iter::once(Field::text(record.routing_key())).chain(copied.flatten()).collect();
        let death = Table::new()
            .with("count", Field::I64(1))
            .with("reason", Field::text(self.reason.as_str()))
            .with("queue", Field::text(&*self.letters.queue))
            .with("time", Field::Timestamp(at_s))
            .with("exchange", Field::text(record.exchange()))
            .with("routing-keys", Field::Array(keys));
        Field::Table(match properties.expiration() {
            Some(expiration) => death.with("original-expiration", Field::text(expiration)),
            None => death,
        })
    }
}

const X_DEATH: &str = "x-death";

/// What cycle detection reads of one entry of `x-death`.
#[derive(Debug)]
struct Death<'a> {
    queue: &'a str,
    reason: &'a str,
}

impl<'a> Death<'a> {
    fn of(entry: &'a Field) -> Option<Self> {
        let Field::Table(table) = entry else { return None };
        Some(Death { queue: table.get("queue")?.as_str()?, reason: table.get("reason")?.as_str()? })
    }
}

/// An entry that the broker did not write counts as a client's rejection.
fn deaths(headers: &Table) -> impl Iterator<Item = Death<'_>> {
    let history = match headers.get(X_DEATH) {
        Some(Field::Array(history)) => history.as_slice(),
        _ => &[],
    };
    history.iter().map(|entry| Death::of(entry).unwrap_or(Death { queue: "", reason: Reason::Rejected.as_str() }))
}

/// It died in `queue` before, and nobody has rejected it since.
fn is_cycle(queue: &str, deaths: &[Death<'_>]) -> bool {
    let Some(at) = deaths.iter().position(|death| death.queue == queue) else { return false };
    deaths[..=at].iter().all(|death| death.reason != Reason::Rejected.as_str())
}

fn once_more(entry: Field) -> Field {
    let Field::Table(Table(mut pairs)) = entry else { return entry };
    for (name, value) in &mut pairs {
        if name == "count" {
            *value = Field::I64(value.as_integer().unwrap_or(0).saturating_add(1));
        }
    }
    Field::Table(Table(pairs))
}

fn take(table: &mut Table, name: &str) -> Option<Field> {
    let at = table.0.iter().position(|(found, _)| found == name)?;
    Some(table.0.remove(at).1)
}

/// Sets `x-first-death-…` or `x-last-death-…`.
fn tell(headers: &mut Table, which: &str, reason: &str, queue: &str, exchange: &str) {
    for (what, value) in [("reason", reason), ("queue", queue), ("exchange", exchange)] {
        let name = format!("x-{which}-death-{what}");
        take(headers, &name);
        headers.0.push((name, Field::text(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_is_one_that_nobody_rejected_in() {
        let death = |queue, reason| Death { queue, reason };
        let round = [death("a", "expired"), death("b", "maxlen"), death("c", "rejected")];
        assert!(is_cycle("a", &round) && is_cycle("b", &round));
        assert!(!is_cycle("c", &round) && !is_cycle("d", &round));
        assert!(!is_cycle("a", &[death("b", "rejected"), death("a", "expired")]));
    }
}
