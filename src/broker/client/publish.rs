//! Publishing: from a message in the read buffer to records in the segment, and from runs of them into queues.

use super::channel::unopened;
use super::headers::{self, Chosen};
use super::{Client, Failed, Hold};
use crate::broker::journey::Lost;
use crate::broker::message::{Extra, Meta, Run};
use crate::broker::record::{self, INLINE_BODY_MAX};
use crate::broker::refused::Refused;
use crate::broker::reply::{Address, REPLY_QUEUE};
use crate::broker::routing::{Asked, Route};
use crate::broker::tap::Publisher;
use crate::broker::vhost::Vhost;
use crate::kernel::Instant;
use crate::model::emit;
use crate::wire::amqp::encode::{self, Content};
use crate::wire::amqp::method::BasicReturn;
use crate::wire::amqp::properties::flag;
use crate::wire::amqp::{Body, Properties, PropertyList, Publish, RawTable, ReplyCode};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Properties that the broker itself reads.
const READ_BY_BROKER: u16 = flag::HEADERS | flag::REPLY_TO | flag::EXPIRATION | flag::USER_ID;

/// Where a message's record begins, if it has one.
enum Begun {
    At((usize, u16)),
    /// Only exchanges that delay it took it.
    Late,
    Nowhere,
}

/// What reading a message's properties brought.
#[derive(Debug, Default)]
pub(super) struct Examined {
    /// Its properties anew, if they had to change.
    pub rewritten: Option<Vec<u8>>,
    /// Further routing keys that the sender chose.
    pub cc: Vec<String>,
}

impl Client {
    /// Publishes one message. What is refused ends its channel (or, for 540, the connection).
    // HOT
    pub fn publish(&mut self, message: Publish<'_>) -> Result<(), Failed> {
        let channel = message.channel;
        if self.transacts && self.is_transactional(channel) {
            return self.hold_publish(&message);
        }
        if Address::is_address(message.routing_key) && message.exchange.is_empty() {
            return self.publish_reply(message);
        }
        let mut extra = Extra::default();
        let mut examined = Examined::default();
        if message.immediate || message.properties.flags() & READ_BY_BROKER != 0 {
            examined = self.examine(&message, &mut extra).map_err(Self::fail(channel))?;
        }
        let properties = examined.rewritten.as_deref().map_or(message.properties, Properties::trusted);
        self.make_room(&message, properties);
        let at = match self.begin_record(&message, properties, &examined.cc)? {
            Begun::At(at) => at,
            Begun::Late => return self.count(channel),
            Begun::Nowhere => {
                self.unroutable(&message, properties);
                return self.count(channel);
            }
        };
        if self.traces {
            self.trace_publish(&message, properties, &mut extra);
        }
        let may_be_refused = self.finish_record(at, properties, message.body, extra);
        self.count(channel)?;
        if may_be_refused {
            self.keep_ticket(channel);
        }
        Ok(())
    }

    /// Makes room in the segment for the message; the runs so far go first if there is none.
    // HOT
    #[inline]
    pub(super) fn make_room(&mut self, message: &Publish<'_>, properties: Properties<'_>) {
        let bytes = record::room(message.exchange, message.routing_key, properties.as_bytes(), &message.body);
        if !self.batch.work().has_room(bytes) {
            self.offer_runs();
            self.batch.work().has_room(bytes);
        }
    }

    /// Begins a run of one route, whatever the run before.
    pub(super) fn begin_run(&mut self, route: Arc<Route>, message: &Publish<'_>) -> (usize, u16) {
        let Publish { channel, exchange, routing_key: key, .. } = *message;
        let work = self.batch.work.as_deref_mut().expect("room was just made");
        let at = work.segment.len();
        let key = route.key.as_deref().unwrap_or(key);
        if work.segment.capacity() - at < key.len() {
            work.segment.reserve(key.len());
        }
        let key_len = record::write_key(&mut work.segment, exchange, key);
        work.begin(route, channel, at, key_len);
        (at, key_len)
    }

    /// Writes the message's key and finds its route, joining the run before if it is the same. `None` if it goes nowhere.
    // HOT
    #[inline]
    fn begin_record(&mut self, message: &Publish<'_>, properties: Properties<'_>, cc: &[String]) -> Result<Begun, Failed> {
        let work = self.batch.work.as_deref_mut().expect("room was just made");
        let at = work.segment.len();
        let mut key_len = record::write_key(&mut work.segment, message.exchange, message.routing_key);
        if cc.is_empty() && work.joins(at, key_len) {
            return Ok(Begun::At((at, key_len)));
        }
        let generation = self.vhost.generation();
        let key = &work.segment[at..at + usize::from(key_len)];
        let known = if cc.is_empty() { self.batch.routes.find(key, generation) } else { None };
        let route = match known {
            Some(route) => route,
            None => {
                let asked = Asked { exchange: message.exchange, key: message.routing_key, cc, properties };
                match self.vhost.route(&asked, &self.principal).map(Arc::new) {
                    Ok(route) => {
                        if route.lasting && !route.queues.is_empty() {
                            self.batch.routes.insert(key, &route);
                        }
                        route
                    }
                    Err(refused) => {
                        work.segment.truncate(at);
                        return Err(Failed::new(message.channel, refused));
                    }
                }
            }
        };
        if !route.delays.is_empty() {
            let asked = Asked { exchange: message.exchange, key: message.routing_key, cc, properties };
            if let Err(refused) = self.vhost.may_delay(&route) {
                work.segment.truncate(at);
                return Err(Failed::new(message.channel, refused));
            }
            keep_late(&self.vhost, &route, &asked, &message.body, self.effects.now);
        }
        if route.queues.is_empty() {
            route.stats.published.fetch_add(1, Ordering::Relaxed);
            work.segment.truncate(at);
            return Ok(if route.delays.is_empty() { Begun::Nowhere } else { Begun::Late });
        }
        if let Some(key) = &route.key {
            work.segment.truncate(at);
            if work.segment.capacity() - at < key.len() {
                work.segment.reserve(key.len());
            }
            key_len = record::write_key(&mut work.segment, message.exchange, key);
        }
        work.begin(route, message.channel, at, key_len);
        Ok(Begun::At((at, key_len)))
    }

    // HOT
    #[inline]
    pub(super) fn finish_record(
        &mut self,
        (at, key_len): (usize, u16),
        properties: Properties<'_>,
        body: Body<'_>,
        mut extra: Extra,
    ) -> bool {
        let work = self.batch.work.as_deref_mut().expect("the record was begun");
        record::write_content(&mut work.segment, properties.as_bytes(), &body);
        if body.len() >= INLINE_BODY_MAX {
            extra.body = Some(body.into_bytes());
        }
        let has_extra = extra.is_something();
        if has_extra {
            work.extras.push((work.metas.len() as u32, extra));
        }
        work.metas.push(Meta { at: at as u32, len: (work.segment.len() - at) as u32, key_len, extra: has_extra });
        work.runs.last().is_some_and(|run| run.may_be_refused)
    }

    /// The message just written is one whose publisher must learn if it is refused.
    #[cold]
    fn keep_ticket(&mut self, channel: u16) {
        let number = self.channels.get(channel).filter(|state| state.confirms).map(|state| state.published + state.unbooked);
        if let (Some(number), Some(work)) = (number, self.batch.work.as_deref_mut()) {
            work.tickets.push((work.metas.len() as u32 - 1, channel, number));
        }
    }

    // HOT
    #[inline]
    pub(super) fn count(&mut self, channel: u16) -> Result<(), Failed> {
        self.batch.published += 1;
        let state = self.channels.get_mut(channel).ok_or_else(|| unopened(channel))?;
        if state.unbooked == 0 {
            self.batch.publishing.push(channel);
        }
        state.unbooked += 1;
        Ok(())
    }

    /// Books what was published, channel by channel.
    // HOT
    fn book_publishes(&mut self) {
        for channel in self.batch.publishing.drain(..) {
            let Some(state) = self.channels.get_mut(channel) else { continue };
            let count = std::mem::take(&mut state.unbooked);
            state.counts.publish.add(count);
            if state.confirms && count > 0 {
                if state.published == state.confirmed {
                    self.batch.confirming.push(channel);
                }
                state.published += count;
            }
        }
    }

    /// Puts the runs gathered so far into their queues.
    // HOT
    pub(super) fn offer_runs(&mut self) {
        self.book_publishes();
        let Some(work) = self.batch.work.as_deref_mut() else { return };
        if !work.runs.is_empty() {
            let segment = work.segment.split().freeze();
            let tapped = self.vhost.taps.is_on();
            let ends = work.runs.iter().skip(1).map(|run| run.first as usize).chain([work.metas.len()]);
            for (open, end) in work.runs.iter().zip(ends) {
                let metas = &work.metas[open.first as usize..end];
                let run = Run { segment: &segment, metas, extras: &work.extras, first: open.first, now: self.effects.now };
                if tapped {
                    let publisher = Publisher::of(&self.link, open.channel);
                    self.vhost.tap_run(&run, &open.route.queues, publisher, &mut self.effects);
                }
                offer(&open.route, &run, &mut self.effects);
                if open.may_be_refused {
                    note_refused(&work.tickets, &mut self.batch.refused, &mut self.effects);
                }
            }
        }
        self.batch.rest();
        let published = std::mem::take(&mut self.batch.published);
        if published > 0 {
            let shared = &self.vhost.shared;
            shared.counts.published.add(published);
            // Booked before the next batch is read, so that the alarm holds this very publisher.
            shared.book(std::mem::take(&mut self.effects.memory));
            if shared.has_alarm() {
                self.hold = Some(Hold::Alarm);
            }
        }
    }

    /// Confirms what was published: the promise is kept, everything stands in its queues.
    // HOT
    pub(super) fn confirm(&mut self) {
        if self.batch.confirming.is_empty() {
            return;
        }
        let mut confirmed = 0;
        let mut outbox = self.link.outbox();
        for channel in self.batch.confirming.drain(..) {
            let Some(state) = self.channels.get_mut(channel) else { continue };
            let count = state.published - state.confirmed;
            if count > 0 && !outbox.dead {
                let out = outbox.frames.room();
                match self.batch.refused.is_empty() {
                    true => encode::ack(out, channel, state.published, count > 1),
                    false => confirm_some(out, channel, state.confirmed..state.published, &self.batch.refused),
                }
                confirmed += count;
            }
            state.counts.confirm.add(count);
            state.confirmed = state.published;
        }
        self.batch.refused.clear();
        self.vhost.shared.counts.confirmed.add(confirmed);
    }

    /// A message that no queue takes: told to its publisher if it asked for that.
    #[cold]
    pub(super) fn unroutable(&mut self, message: &Publish<'_>, properties: Properties<'_>) {
        self.vhost.shared.counts.unroutable.add(1);
        if self.vhost.taps.is_on() {
            let Publish { channel, exchange, routing_key, mandatory: returned, ref body, .. } = *message;
            let lost = Lost { exchange, routing_key, properties, body, returned };
            self.vhost.tap_lost(&lost, Publisher::of(&self.link, channel), &mut self.effects);
        }
        if let Some(state) = self.channels.get(message.channel) {
            let counts = &state.counts;
            if message.mandatory { &counts.return_unroutable } else { &counts.drop_unroutable }.add(1);
        }
        if !message.mandatory {
            return;
        }
        let returned = BasicReturn {
            reply_code: ReplyCode::NoRoute.code(),
            reply_text: ReplyCode::NoRoute.name(),
            exchange: message.exchange,
            routing_key: message.routing_key,
        };
        let frame_max = self.link.info.frame_max;
        let content = Content { properties: properties.as_bytes(), body: &message.body };
        self.link.append(|out| encode::basic_return(out, message.channel, &returned, content, frame_max));
    }

    /// Reads what the broker must know of a message.
    #[cold]
    pub(super) fn examine(&self, message: &Publish<'_>, extra: &mut Extra) -> Result<Examined, Refused> {
        if message.immediate {
            return Err(Refused::NotImplemented("immediate=true".into()));
        }
        let properties = message.properties;
        if let Some(user) = properties.user_id().filter(|user| **user != *self.principal.user)
            && !self.principal.may_impersonate()
        {
            let own = &self.principal.user;
            return Err(Refused::Precondition(format!("user_id property set to '{user}' but authenticated user was '{own}'")));
        }
        if let Some(expiration) = properties.expiration() {
            extra.expires_at = Some(self.effects.now + headers::parse_expiration(expiration)?);
        }
        let chosen = match properties.headers() {
            Some(headers) => headers::chosen(headers)?,
            None => Chosen::default(),
        };
        let reply = self.channels.get(message.channel).and_then(|channel| channel.reply.as_ref());
        let reply_to = match properties.reply_to() {
            Some(REPLY_QUEUE) => {
                let reply = reply.ok_or_else(|| Refused::Precondition("fast reply consumer does not exist".into()))?;
                Some(reply.text.as_str())
            }
            other => other,
        };
        if chosen.without_bcc.is_none() && reply_to == properties.reply_to() {
            return Ok(Examined { rewritten: None, cc: chosen.keys });
        }
        let list = properties.to_list();
        let headers = chosen.without_bcc.as_deref().map_or(list.headers, |bytes| RawTable::check(bytes).ok());
        let rewritten = PropertyList { reply_to, headers, ..list }.to_bytes();
        Ok(Examined { rewritten: Some(rewritten), cc: chosen.keys })
    }

    /// Lets the message's trace context stand beside it, if its trace is recorded.
    // HOT
    #[inline]
    pub(super) fn trace_publish(&mut self, message: &Publish<'_>, properties: Properties<'_>, extra: &mut Extra) {
        let low = crate::broker::trace::draw();
        let may_inherit = self.consumes && self.link.traced.load(Ordering::Relaxed) > 0;
        if emit::keep_low(low) || may_inherit || properties.flags() & flag::HEADERS != 0 {
            extra.trace = self.trace_beside(message, properties, low);
        }
    }
}

/// Keeps a message in the exchanges that delay it.
#[cold]
pub(super) fn keep_late(vhost: &Arc<Vhost>, route: &Route, asked: &Asked<'_>, body: &Body<'_>, now: Instant) {
    let body = body.clone().into_bytes();
    route.delays.iter().for_each(|(by, delay)| vhost.delay(by, *delay, asked, body.clone(), now));
}

// HOT
fn offer(route: &Route, run: &Run<'_>, effects: &mut crate::broker::effects::Effects) {
    let count = run.metas.len() as u64;
    for queue in &route.queues {
        queue.offer(run, effects);
    }
    route.stats.published.fetch_add(count, Ordering::Relaxed);
    route.stats.routed.fetch_add(count * route.queues.len() as u64, Ordering::Relaxed);
}

/// Which messages of the run just offered were refused, told by channel and number.
#[cold]
fn note_refused(tickets: &[(u32, u16, u64)], refused: &mut Vec<(u16, u64)>, effects: &mut crate::broker::effects::Effects) {
    for overflowed in effects.take_refused() {
        if let Ok(found) = tickets.binary_search_by_key(&overflowed.at, |(at, ..)| *at) {
            let (_, channel, number) = tickets[found];
            // Several of its queues may have refused it.
            if !refused.contains(&(channel, number)) {
                refused.push((channel, number));
            }
        }
    }
}

/// Confirms the messages after `numbers.start`, up to `numbers.end`: refused ones by a nack each, then the others together.
#[cold]
fn confirm_some(out: &mut Vec<u8>, channel: u16, numbers: std::ops::Range<u64>, refused: &[(u16, u64)]) {
    let mut nacked: Vec<u64> = refused.iter().filter(|(of, _)| *of == channel).map(|(_, number)| *number).collect();
    nacked.sort_unstable();
    nacked.iter().for_each(|number| encode::nack(out, channel, *number, false));
    let acked = numbers.end - numbers.start - nacked.len() as u64;
    // Clients take an ack for a number that was nacked before as an error.
    let last = (numbers.start + 1..=numbers.end).rev().find(|number| nacked.binary_search(number).is_err());
    if let Some(last) = last {
        encode::ack(out, channel, last, acked > 1);
    }
}
