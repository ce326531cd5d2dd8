//! The channels of one connection and the message that each may be in the middle of.

use super::event::{Body, Publish};
use super::method::BasicPublish;
use super::properties::Properties;
use bytes::Bytes;

#[derive(Debug)]
pub(super) enum Channel {
    Open,
    /// After `basic.publish`: its content header comes next.
    Header(Box<Message>),
    /// The header said how much body is still to come.
    Body(Box<Message>),
    /// We sent `channel.close`: everything but `close-ok` is discarded. `crossed` once the peer's own close was seen.
    Closing {
        crossed: bool,
    },
}

/// A message that did not come in one piece.
#[derive(Debug)]
pub(super) struct Message {
    channel: u16,
    exchange: Box<str>,
    routing_key: Box<str>,
    mandatory: bool,
    immediate: bool,
    pub(super) properties: Box<[u8]>,
    pub(super) body_size: usize,
    body: Vec<u8>,
}

/// First room for a body; it then doubles as bytes arrive, so that memory follows what was sent, not what was promised.
const BODY_ROOM_BYTES: usize = 64 * 1024;

impl Message {
    pub(super) fn begin(channel: u16, publish: &BasicPublish<'_>) -> Box<Self> {
        Box::new(Message {
            channel,
            exchange: publish.exchange.into(),
            routing_key: publish.routing_key.into(),
            mandatory: publish.mandatory,
            immediate: publish.immediate,
            properties: Box::default(),
            body_size: 0,
            body: Vec::new(),
        })
    }

    pub(super) fn missing(&self) -> usize {
        self.body_size - self.body.len()
    }

    /// Bytes of memory held for the body.
    pub(super) fn held(&self) -> usize {
        self.body.capacity()
    }

    /// Appends a piece that is not longer than what is missing; says whether memory grew for it.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        assert!(piece.len() <= self.missing(), "the caller compares a frame with what the header promised");
        let grows = self.body.capacity() - self.body.len() < piece.len();
        if grows {
            let room = piece.len().max(self.body.len()).max(BODY_ROOM_BYTES).min(self.missing());
            self.body.reserve_exact(room);
        }
        self.body.extend_from_slice(piece);
        grows
    }

    pub(super) fn publish(&mut self) -> Publish<'_> {
        Publish {
            channel: self.channel,
            exchange: &self.exchange,
            routing_key: &self.routing_key,
            mandatory: self.mandatory,
            immediate: self.immediate,
            properties: Properties::trusted(&self.properties),
            body: Body::Collected(Bytes::from(std::mem::take(&mut self.body))),
        }
    }
}

/// Open and closing channels by number: a sorted list, since most connections have one or two.
#[derive(Debug, Default)]
pub(super) struct Channels {
    list: Vec<(u16, Channel)>,
}

impl Channels {
    // HOT
    #[inline]
    pub(super) fn get_mut(&mut self, number: u16) -> Option<&mut Channel> {
        // Clients number from 1 without gaps: that is where it stands then.
        let guess = usize::from(number).wrapping_sub(1);
        let at = match self.list.get(guess) {
            Some((found, _)) if *found == number => guess,
            _ => self.list.binary_search_by_key(&number, |(found, _)| *found).ok()?,
        };
        self.list.get_mut(at).map(|(_, channel)| channel)
    }

    pub(super) fn get(&self, number: u16) -> Option<&Channel> {
        let at = self.list.binary_search_by_key(&number, |(found, _)| *found).ok()?;
        self.list.get(at).map(|(_, channel)| channel)
    }

    pub(super) fn insert(&mut self, number: u16, channel: Channel) {
        match self.list.binary_search_by_key(&number, |(found, _)| *found) {
            Ok(at) => self.list[at].1 = channel,
            Err(at) => self.list.insert(at, (number, channel)),
        }
    }

    pub(super) fn remove(&mut self, number: u16) -> Option<Channel> {
        let at = self.list.binary_search_by_key(&number, |(found, _)| *found).ok()?;
        Some(self.list.remove(at).1)
    }

    pub(super) fn clear(&mut self) {
        self.list = Vec::new();
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Bytes held for all unfinished bodies.
    pub(super) fn held(&self) -> usize {
        let held = |channel: &Channel| match channel {
            Channel::Header(message) | Channel::Body(message) => message.held(),
            Channel::Open | Channel::Closing { .. } => 0,
        };
        self.list.iter().map(|(_, channel)| held(channel)).sum()
    }
}
