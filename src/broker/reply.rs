//! Reply addresses: `amq.rabbitmq.reply-to.` and 128 random bits. Behind one stands either a channel that consumes the pseudo
//! queue `amq.rabbitmq.reply-to` (RabbitMQ's direct reply-to) or a call of the gateway. An address is known in its space only.

use super::call::CallState;
use super::link::Link;
use crate::kernel::rng;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pseudo queue, and what a publisher writes into `reply_to`.
pub(super) const REPLY_QUEUE: &str = "amq.rabbitmq.reply-to";
const PREFIX: &str = "amq.rabbitmq.reply-to.";
const SHARDS: usize = 16;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Address([u8; 16]);

impl Address {
    pub fn random() -> Self {
        Address(rng::secure())
    }

    pub fn is_address(key: &str) -> bool {
        key.starts_with(PREFIX)
    }

    pub fn parse(key: &str) -> Option<Self> {
        let mut bytes = [0; 18];
        let count = URL_SAFE_NO_PAD.decode_slice(key.strip_prefix(PREFIX)?, &mut bytes).ok()?;
        (count == 16).then(|| Address(bytes[..16].try_into().expect("16 bytes")))
    }

    pub fn text(&self) -> String {
        let mut text = String::with_capacity(PREFIX.len() + 22);
        text.push_str(PREFIX);
        URL_SAFE_NO_PAD.encode_string(self.0, &mut text);
        text
    }
}

/// A channel that takes replies.
#[derive(Debug)]
pub(super) struct ReplyChannel {
    pub link: Arc<Link>,
    pub channel: u16,
    /// Every delivery's first bytes.
    pub head: Box<[u8]>,
    gone: AtomicBool,
}

impl ReplyChannel {
    pub fn new(link: Arc<Link>, channel: u16, head: Box<[u8]>) -> Self {
        ReplyChannel { link, channel, head, gone: AtomicBool::new(false) }
    }

    pub fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub fn go(&self) {
        self.gone.store(true, Ordering::Release);
    }
}

#[derive(Clone, Debug)]
pub(super) enum Target {
    Channel(Arc<ReplyChannel>),
    Call(Arc<CallState>),
}

#[derive(Debug, Default)]
pub(super) struct Replies([Mutex<HashMap<Address, Target>>; SHARDS]);

impl Replies {
    fn shard(&self, address: &Address) -> MutexGuard<'_, HashMap<Address, Target>> {
        self.0[usize::from(address.0[0]) % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn insert(&self, address: Address, target: Target) {
        self.shard(&address).insert(address, target);
    }

    pub fn remove(&self, address: &Address) {
        self.shard(address).remove(address);
    }

    pub fn find(&self, key: &str) -> Option<Target> {
        let address = Address::parse(key)?;
        self.shard(&address).get(&address).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_reads_back_and_nothing_else_does() {
        let address = Address::random();
        assert_eq!(Address::parse(&address.text()), Some(address));
        assert!(Address::is_address(&address.text()));
        for bad in
            ["amq.rabbitmq.reply-to", "amq.rabbitmq.reply-to.", "amq.rabbitmq.reply-to.AAAA", "x", "amq.rabbitmq.reply-to.!"]
        {
            assert_eq!(Address::parse(bad), None, "{bad}");
        }
        let long = format!("{}AAAA", address.text());
        assert_eq!(Address::parse(&long), None);
    }
}
