//! Looking at messages where they are: ready in their queue, or unacked with whoever holds them. Order, counts, consumers and
//! redelivered marks stay as they are.

use super::link::Link;
use super::queue::{Queue, Seen};
use super::refused::Refused;
use super::vhost::{Actor, Vhost};
use super::view::{Holder, PeekedMessage, UnackedMessage};
use crate::model::identity::Action;
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// Messages looked at under one lock of their queue.
const SLICE: usize = 256;
/// A search ends after so many messages or bytes, and says how far it came.
pub const SEARCH_MESSAGES_MAX: usize = 100_000;
const SEARCH_BYTES_MAX: usize = 256 << 20;

/// What to look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Peek<'a> {
    /// Places skipped from the head.
    pub from: usize,
    pub count: usize,
    /// Of each body.
    pub body_bytes_max: usize,
    /// Only messages with this in their exchange, key, properties, headers or body; case of ASCII letters does not matter.
    pub find: Option<&'a str>,
}

/// Ready messages, and how far the look went.
#[derive(Clone, Debug)]
pub struct Peeked {
    pub messages: Vec<PeekedMessage>,
    /// Places looked at, from [`Peek::from`] on.
    pub looked_at: usize,
    /// Ready when it ended.
    pub ready: u64,
}

impl Vhost {
    /// Ready messages from the head. A search goes on until it has found `count` or has come to an end of the queue or its bounds.
    pub fn peek(&self, name: &str, peek: &Peek<'_>) -> Result<Peeked, Refused> {
        let queue = self.find_queue(name).ok_or_else(|| self.no_queue(name))?;
        let mut peeked = Peeked { messages: Vec::new(), looked_at: 0, ready: 0 };
        let mut bytes = 0;
        while peeked.messages.len() < peek.count && peeked.looked_at < SEARCH_MESSAGES_MAX && bytes < SEARCH_BYTES_MAX {
            let wanted = if peek.find.is_some() { SLICE } else { SLICE.min(peek.count - peeked.messages.len()) };
            let slice = queue.look(peek.from + peeked.looked_at, wanted);
            let is_last = slice.len() < wanted;
            for seen in slice {
                if peeked.messages.len() == peek.count {
                    break;
                }
                let place = (peek.from + peeked.looked_at) as u64;
                peeked.looked_at += 1;
                bytes += seen.bytes().len() + seen.large.as_ref().map_or(0, Bytes::len);
                if peek.find.is_none_or(|text| holds(&seen, text)) {
                    peeked.messages.push(self.peeked(&seen, place, peek.body_bytes_max));
                }
            }
            if is_last {
                break;
            }
        }
        peeked.ready = queue.ready_count();
        Ok(peeked)
    }

    /// One ready message by its id, with at most `body_bytes_max` of its body. Its place is not looked for and stands as 0.
    pub fn peek_one(&self, name: &str, id: u64, body_bytes_max: usize) -> Result<Option<PeekedMessage>, Refused> {
        let queue = self.find_queue(name).ok_or_else(|| self.no_queue(name))?;
        Ok(queue.look_at_these(&[id]).first().map(|seen| self.peeked(seen, 0, body_bytes_max)))
    }

    /// Up to `peek.count` unacked messages, those held longest first.
    pub fn peek_unacked(&self, name: &str, peek: &Peek<'_>) -> Result<Vec<UnackedMessage>, Refused> {
        let queue = self.find_queue(name).ok_or_else(|| self.no_queue(name))?;
        let links = self.holders(&queue);
        let per_channel = if peek.find.is_some() { SEARCH_MESSAGES_MAX } else { peek.from.saturating_add(peek.count) };
        let mut unacked = queue.look_at_unacked(&links, per_channel, self.shared.clock.now());
        unacked.retain(|one| peek.find.is_none_or(|text| holds(&one.seen, text)));
        unacked.sort_by_key(|one| std::cmp::Reverse(one.held_ms));
        let shown = unacked.iter().enumerate().skip(peek.from).take(peek.count);
        let shape = |(place, one): (usize, &super::queue::SeenUnacked)| UnackedMessage {
            message: self.peeked(&one.seen, place as u64, peek.body_bytes_max),
            holder: Holder {
                connection: one.link.id,
                connection_name: one.link.info.name.clone(),
                service: one.link.resource().service.clone(),
                channel: one.channel,
                consumer: one.consumer.clone(),
                delivery_tag: one.delivery_tag,
                held: Duration::from_millis(one.held_ms.into()),
            },
        };
        Ok(shown.map(shape).collect())
    }

    /// Connections with deliveries of `queue`. Asked before its lock is taken: most connections have none.
    fn holders(&self, queue: &Arc<Queue>) -> Vec<Arc<Link>> {
        let links: Vec<Arc<Link>> = self.shared.links().values().filter(|link| link.space == *self.name()).cloned().collect();
        links.into_iter().filter(|link| link.holds_from(queue)).collect()
    }

    fn peeked(&self, seen: &Seen, position: u64, body_bytes_max: usize) -> PeekedMessage {
        let (record, body) = (seen.record(), seen.body());
        PeekedMessage {
            id: seen.seq,
            position,
            exchange: record.exchange().to_owned(),
            routing_key: record.routing_key().to_owned(),
            redelivered: seen.redelivered,
            header: Bytes::copy_from_slice(record.header()),
            body_len: body.len() as u64,
            body: Bytes::copy_from_slice(&body[..body.len().min(body_bytes_max)]),
            queued_ns: self.shared.epoch_ns + seen.at.as_nanos(),
        }
    }

    /// Asks whether somebody may look: `read` on the queue.
    pub fn must_read(&self, name: &str, actor: Actor<'_>) -> Result<(), Refused> {
        actor.must(Action::Read, "queue", name, self.name())
    }
}

/// Names, properties and small bodies stand in the record as they were published.
fn holds(seen: &Seen, text: &str) -> bool {
    contains(seen.bytes(), text.as_bytes()) || seen.large.as_ref().is_some_and(|body| contains(body, text.as_bytes()))
}

fn contains(hay: &[u8], needle: &[u8]) -> bool {
    let Some((first, rest)) = needle.split_first() else { return true };
    let last = hay.len().saturating_sub(needle.len() - 1);
    let starts = hay[..last].iter().enumerate().filter(|(_, byte)| byte.eq_ignore_ascii_case(first));
    starts.into_iter().any(|(at, _)| hay[at + 1..at + needle.len()].eq_ignore_ascii_case(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_anywhere_in_any_ascii_case() {
        for (hay, needle, found) in [
            ("order.placed", "PLACED", true),
            ("order.placed", "o", true),
            ("order.placed", "order.placed", true),
            ("order.placed", "order.placed!", false),
            ("", "a", false),
            ("a", "", true),
            ("aab", "ab", true),
        ] {
            assert_eq!(contains(hay.as_bytes(), needle.as_bytes()), found, "{needle} in {hay}");
        }
    }
}
