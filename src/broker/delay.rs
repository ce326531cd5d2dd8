//! Exchanges of type `x-delayed-message`: a message with the header `x-delay` waits so many milliseconds, then goes the way of the
//! exchange's `x-delayed-type`. Waiting messages are in memory, count against the memory level, and go with their exchange.

use super::deadlines::Timed;
use super::effects::Effects;
use super::refused::Refused;
use super::republish::Republished;
use super::routing::{Asked, Route};
use super::shared::Shared;
use super::vhost::Vhost;
use crate::kernel::Instant;
use crate::model::table::Field;
use crate::wire::amqp::{Properties, PropertyList, RawField, RawTable, table};
use bytes::Bytes;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(super) const DELAY_HEADER: &str = "x-delay";
/// Longest delay, in ms; with a longer one a message is not delayed at all, as by RabbitMQ's plugin.
const DELAY_MS_MAX: i64 = u32::MAX as i64;
/// Messages let go in one turn, so that the timers of others get theirs.
const RELEASED_MAX: usize = 1024;
/// What a waiting message costs beside its texts and body.
const LATE_OVERHEAD: usize = 256;

/// How long the message is to wait; `None` for not at all.
pub(super) fn delay_of(properties: Properties<'_>) -> Option<Duration> {
    let millis = match properties.headers()?.get(DELAY_HEADER)? {
        RawField::Text(text) => std::str::from_utf8(text).ok()?.parse().ok()?,
        RawField::F32(millis) => millis as i64,
        RawField::F64(millis) => millis as i64,
        other => other.as_integer()?,
    };
    (1..=DELAY_MS_MAX).contains(&millis).then(|| Duration::from_millis(millis.unsigned_abs()))
}

/// The properties with the delay's sign turned: whoever gets the message sees that it was delayed, and no other exchange delays it
/// again.
fn turned(properties: Properties<'_>, delay: Duration) -> Vec<u8> {
    let millis = i64::try_from(delay.as_millis()).unwrap_or(DELAY_MS_MAX);
    let mut headers = properties.headers().map(RawTable::to_table).unwrap_or_default();
    for (_, field) in headers.0.iter_mut().filter(|(name, _)| name == DELAY_HEADER) {
        *field = match (&*field, i32::try_from(-millis)) {
            (Field::I32(_), Ok(millis)) => Field::I32(millis),
            _ => Field::I64(-millis),
        };
    }
    let encoded = table::encoded(&headers);
    PropertyList { headers: RawTable::check(&encoded).ok(), ..properties.to_list() }.to_bytes()
}

/// A message that waits.
#[derive(Debug)]
struct Late {
    /// The exchange that delays it.
    by: Arc<str>,
    /// The exchange it was published to.
    exchange: String,
    key: String,
    cc: Vec<String>,
    properties: Vec<u8>,
    body: Bytes,
}

impl Late {
    fn weight(&self) -> i64 {
        let keys: usize = self.cc.iter().map(String::len).sum();
        (LATE_OVERHEAD + self.exchange.len() + self.key.len() + keys + self.properties.len() + self.body.len()) as i64
    }
}

/// All that waits in one space.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    by_time: BTreeMap<(Instant, u64), Late>,
    next: u64,
    by_exchange: HashMap<Arc<str>, u64>,
    /// When the space asked to be called.
    asked: Option<Instant>,
}

impl Waiting {
    fn take_due(&mut self, now: Instant) -> Vec<Late> {
        let mut due = Vec::new();
        while due.len() < RELEASED_MAX && self.by_time.first_key_value().is_some_and(|((at, _), _)| *at <= now) {
            let Some((_, late)) = self.by_time.pop_first() else { break };
            self.forget(&late.by);
            due.push(late);
        }
        due
    }

    fn forget(&mut self, exchange: &Arc<str>) {
        if let Some(count) = self.by_exchange.get_mut(exchange) {
            *count -= 1;
            if *count == 0 {
                self.by_exchange.remove(exchange);
            }
        }
    }
}

impl Delayed {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages that wait in an exchange.
    pub fn count(&self, exchange: &str) -> u64 {
        self.waiting().by_exchange.get(exchange).copied().unwrap_or(0)
    }
}

impl Vhost {
    /// Refuses one more message for a route's delaying exchanges if too many wait. Asked for when it is published; those of open
    /// transactions, and one of each connection that asked at the same moment, may come on top.
    pub(super) fn may_delay(&self, route: &Route) -> Result<(), Refused> {
        let Some((by, _)) = route.delays.first() else { return Ok(()) };
        let max = self.shared.config.delayed_messages_max;
        match self.delayed.waiting().by_time.len() < max {
            true => Ok(()),
            false => Err(Refused::Precondition(format!(
                "exchange '{by}' in vhost '{}' cannot delay one more message: {max} wait already; consume, or delay fewer",
                self.name()
            ))),
        }
    }

    /// Keeps a message until its time has come.
    pub(super) fn delay(self: &Arc<Self>, by: &Arc<str>, delay: Duration, asked: &Asked<'_>, body: Bytes, now: Instant) {
        let late = Late {
            by: by.clone(),
            exchange: asked.exchange.to_owned(),
            key: asked.key.to_owned(),
            cc: asked.cc.to_vec(),
            properties: turned(asked.properties, delay),
            body,
        };
        let (due, weight) = (now + delay, late.weight());
        {
            let mut waiting = self.delayed.waiting();
            let number = waiting.next;
            waiting.next += 1;
            *waiting.by_exchange.entry(by.clone()).or_default() += 1;
            waiting.by_time.insert((due, number), late);
        }
        self.shared.book(weight);
        self.ask_in_time();
    }

    /// Asks to be called when the next is due, if that is sooner than what was asked for.
    fn ask_in_time(self: &Arc<Self>) {
        let (instead_of, at) = {
            let mut waiting = self.delayed.waiting();
            let Some((&(at, _), _)) = waiting.by_time.first_key_value() else { return };
            if waiting.asked.is_some_and(|asked| asked <= at) {
                return;
            }
            (waiting.asked.replace(at), at)
        };
        self.shared.deadlines.set(self, instead_of, at);
    }

    fn release(&self, due: Vec<Late>, now: Instant) {
        let mut effects = Effects::new(now);
        for late in due {
            self.shared.book(-late.weight());
            let properties = Properties::trusted(&late.properties);
            let asked = Asked { exchange: &late.exchange, key: &late.key, cc: &late.cc, properties };
            let route = {
                let topology = self.topology();
                topology.exchanges.get(&late.by).map(|exchange| topology.follow(exchange, &asked))
            };
            let (exchange, key, body) = (&*late.exchange, &*late.key, &late.body);
            let message = Republished { exchange, key, properties, body, large: Some(body), trace: None, before: None };
            if let Some(route) = route {
                self.put(&route, &message, |_| true, &mut effects);
            }
        }
        effects.run(&self.shared);
    }

    /// An exchange is gone, and what waited in it.
    pub(super) fn cancel_delayed(&self, exchange: &Arc<str>) {
        let mut freed = 0;
        {
            let mut waiting = self.delayed.waiting();
            if waiting.by_exchange.remove(exchange).is_none() {
                return;
            }
            waiting.by_time.retain(|_, late| {
                let stays = late.by != *exchange;
                freed += if stays { 0 } else { late.weight() };
                stays
            });
        }
        self.shared.book(-freed);
    }
}

impl Timed for Vhost {
    fn on_time(self: Arc<Self>, now: Instant, _: &Shared) {
        let due = {
            let mut waiting = self.delayed.waiting();
            waiting.asked = None;
            waiting.take_due(now)
        };
        self.release(due, now);
        self.ask_in_time();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::table::Table;

    fn read(field: Field) -> Option<u128> {
        let encoded = table::encoded(&Table::new().with(DELAY_HEADER, field));
        let bytes = PropertyList { headers: RawTable::check(&encoded).ok(), ..PropertyList::default() }.to_bytes();
        delay_of(Properties::check(&bytes).expect("good")).map(|delay| delay.as_millis())
    }

    #[test]
    fn a_delay_is_a_number_of_milliseconds_in_range() {
        assert_eq!(read(Field::I32(5)), Some(5));
        assert_eq!(read(Field::I64(4_294_967_295)), Some(4_294_967_295));
        assert_eq!(read(Field::text("250")), Some(250));
        assert_eq!(read(Field::F64(1.9)), Some(1));
        for none in [Field::I32(0), Field::I32(-5), Field::I64(4_294_967_296), Field::text("soon"), Field::Bool(true)] {
            assert_eq!(read(none.clone()), None, "{none:?}");
        }
    }
}
