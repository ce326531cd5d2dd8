//! One connection's exclusive half: what its own task does to the broker.
//!
//! A door feeds a batch (everything one read brought) with [`Client::begin`], the operations in order, and [`Client::flush`].
//! Publishes and acks are gathered and take effect at the next other operation or at the flush, so that a run of them costs one lock;
//! confirms come last. Replies to other methods are the door's to write.

mod batch;
mod channel;
mod consume;
mod headers;
mod publish;
mod reply;
mod settle;
mod tracing;
mod tx;

pub use consume::{Consume, Got};
pub(super) use headers::chosen;

use super::config::ConnectionId;
use super::core::Broker;
use super::declare::{Declared, DeleteRule};
use super::effects::Effects;
use super::link::{ConnectionInfo, Link};
use super::outbox::ByChannel;
use super::refused::Refused;
use super::vhost::{Actor, Vhost};
use crate::kernel::Instant;
use crate::model::change::{Thing, Verb};
use crate::model::emit;
use crate::model::identity::Principal;
use crate::model::topology::{BindingSpec, DestinationKind, ExchangeSpec, QueueSpec};
use crate::wire::amqp::MethodId;
use batch::Batch;
use channel::Channel;
use settle::Settles;
use std::sync::Arc;

pub use reply::Hold;
pub use settle::{Settle, Verdict};

pub struct Client {
    vhost: Arc<Vhost>,
    link: Arc<Link>,
    principal: Principal,
    channels: ByChannel<Channel>,
    batch: Batch,
    settles: Settles,
    effects: Effects,
    /// Exclusive queues, which go with the connection.
    exclusive: Vec<Arc<str>>,
    /// Consumes, or did: its publishes may belong to what it works on.
    consumes: bool,
    /// Has had a transactional channel.
    transacts: bool,
    /// Spans have somewhere to go.
    traces: bool,
    hold: Option<Hold>,
    /// Found after the method that is to blame; told before the next method on their channel, or at the flush. One a channel.
    late_failures: Vec<Failed>,
    closed: bool,
}

/// An operation that was refused, and the channel on which.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub channel: u16,
    pub refused: Refused,
    /// The method to blame, if it is not the one that the answer is for.
    pub cause: Option<MethodId>,
}

impl Failed {
    pub fn new(channel: u16, refused: Refused) -> Self {
        Failed { channel, refused, cause: None }
    }
}

impl Broker {
    /// Lets a connection into a space, under its principal. `None` if there is no such space.
    pub fn connect(&self, space: &str, principal: Principal, info: ConnectionInfo) -> Option<Client> {
        let vhost = self.vhost(space)?;
        let shared = &self.shared;
        let id = ConnectionId(shared.next_id());
        let link = Arc::new(Link::new(id, vhost.name().clone(), principal.user.clone(), info, shared.clone()));
        shared.links().insert(id, link.clone());
        shared.counts.connections_opened.add(1);
        shared.announce("connection.created", || link.event());
        Some(Client {
            effects: Effects::of(shared.clock.now(), id),
            vhost,
            link,
            principal,
            channels: ByChannel::default(),
            batch: Batch::default(),
            settles: Settles::default(),
            exclusive: Vec::new(),
            consumes: false,
            transacts: false,
            traces: emit::is_installed(),
            hold: None,
            late_failures: Vec::new(),
            closed: false,
        })
    }
}

impl Client {
    pub fn link(&self) -> &Arc<Link> {
        &self.link
    }

    /// Begins a batch: `now` is the time of all that follows until [`Client::flush`].
    pub fn begin(&mut self, now: Instant) {
        self.effects.now = now;
    }

    /// Makes everything said so far take effect, writes confirms, and wakes whoever got something. The caller then sends its own
    /// outbox. On an error, its channel must be closed and the flush repeated: other channels may have failed, too.
    // HOT
    pub fn flush(&mut self) -> Result<(), Failed> {
        self.take_effect();
        self.confirm();
        self.run_effects();
        match self.late_failures.is_empty() {
            true => Ok(()),
            false => Err(self.late_failures.remove(0)),
        }
    }

    /// Acks and publishes said so far take effect; what they set off waits for the flush.
    // HOT
    fn take_effect(&mut self) {
        self.settle_pending();
        self.offer_runs();
        self.effects.post(&self.vhost.shared);
    }

    /// All before a method on `channel` takes effect. An error if that ends the channel; what ends others waits for the flush, so that
    /// the method is still answered.
    // HOT
    fn sync(&mut self, channel: u16) -> Result<(), Failed> {
        self.take_effect();
        match self.late_failures.iter().position(|failed| failed.channel == channel) {
            Some(at) => Err(self.late_failures.remove(at)),
            None => Ok(()),
        }
    }

    fn has_failed(&self, channel: u16) -> bool {
        self.late_failures.iter().any(|failed| failed.channel == channel)
    }

    fn run_effects(&mut self) {
        let shared = &self.vhost.shared;
        let next = Effects::of(self.effects.now, self.link.id);
        std::mem::replace(&mut self.effects, next).run(shared);
    }

    /// Why reading must pause, if it must.
    pub fn take_hold(&mut self) -> Option<Hold> {
        self.hold.take()
    }

    fn actor(&self) -> Actor<'_> {
        Actor { principal: &self.principal, connection: Some(self.link.id) }
    }

    fn fail(channel: u16) -> impl FnOnce(Refused) -> Failed {
        move |refused| Failed::new(channel, refused)
    }

    pub fn declare_queue(&mut self, channel: u16, mut spec: QueueSpec) -> Result<Declared, Failed> {
        self.sync(channel)?;
        self.vhost.rules.load().space.give_type(&mut spec);
        let declared = self.vhost.declare_queue(&spec, self.actor()).map_err(Self::fail(channel))?;
        if spec.exclusive && declared.created {
            self.exclusive.push(declared.name.clone());
        }
        if declared.created {
            let spec = QueueSpec { name: declared.name.to_string(), ..spec };
            self.vhost.tell_change(Verb::Create, Thing::Queue(spec), &self.principal);
        }
        self.name_last_queue(channel, &declared.name);
        Ok(declared)
    }

    pub fn declare_queue_passively(&mut self, channel: u16, name: &str) -> Result<Declared, Failed> {
        self.sync(channel)?;
        let name = self.queue_name(channel, name)?;
        let declared = self.vhost.declare_queue_passively(&name, self.actor()).map_err(Self::fail(channel))?;
        self.name_last_queue(channel, &declared.name);
        Ok(declared)
    }

    pub fn delete_queue(&mut self, channel: u16, name: &str, rule: DeleteRule) -> Result<u64, Failed> {
        self.sync(channel)?;
        let name = self.queue_name(channel, name)?;
        let was = self.vhost.find_queue(&name);
        let count = self.vhost.delete_queue(&name, rule, self.actor()).map_err(Self::fail(channel))?;
        self.exclusive.retain(|owned| *owned != name);
        if let (Some(was), Some(_)) = (was, count) {
            self.vhost.tell_change(Verb::Delete, Thing::Queue(was.spec.clone()), &self.principal);
        }
        Ok(count.unwrap_or(0))
    }

    pub fn purge_queue(&mut self, channel: u16, name: &str) -> Result<u64, Failed> {
        self.sync(channel)?;
        let name = self.queue_name(channel, name)?;
        self.vhost.purge_queue(&name, self.actor()).map_err(Self::fail(channel))
    }

    pub fn declare_exchange(&mut self, channel: u16, spec: &ExchangeSpec) -> Result<(), Failed> {
        self.sync(channel)?;
        if self.vhost.declare_exchange(spec, self.actor()).map_err(Self::fail(channel))? {
            self.vhost.tell_change(Verb::Create, Thing::Exchange(spec.clone()), &self.principal);
        }
        Ok(())
    }

    pub fn declare_exchange_passively(&mut self, channel: u16, name: &str) -> Result<(), Failed> {
        self.sync(channel)?;
        self.vhost.declare_exchange_passively(name).map_err(Self::fail(channel))
    }

    pub fn delete_exchange(&mut self, channel: u16, name: &str, if_unused: bool) -> Result<(), Failed> {
        self.sync(channel)?;
        let rule = DeleteRule { if_unused, if_empty: false };
        let was = self.vhost.exchange_spec(name);
        if self.vhost.delete_exchange(name, rule, self.actor()).map_err(Self::fail(channel))?
            && let Some(was) = was
        {
            self.vhost.tell_change(Verb::Delete, Thing::Exchange(was), &self.principal);
        }
        Ok(())
    }

    pub fn bind(&mut self, channel: u16, spec: BindingSpec) -> Result<(), Failed> {
        self.sync(channel)?;
        let spec = self.binding(channel, spec)?;
        if self.vhost.bind(&spec, self.actor()).map_err(Self::fail(channel))? {
            self.vhost.tell_change(Verb::Create, Thing::Binding(spec), &self.principal);
        }
        Ok(())
    }

    pub fn unbind(&mut self, channel: u16, spec: BindingSpec) -> Result<(), Failed> {
        self.sync(channel)?;
        let spec = self.binding(channel, spec)?;
        if self.vhost.unbind(&spec, self.actor()).map_err(Self::fail(channel))? {
            self.vhost.tell_change(Verb::Delete, Thing::Binding(spec), &self.principal);
        }
        Ok(())
    }

    /// An empty queue name means the one declared last on the channel; an empty key then means its name.
    fn binding(&self, channel: u16, spec: BindingSpec) -> Result<BindingSpec, Failed> {
        if spec.destination_kind == DestinationKind::Exchange {
            return Ok(spec);
        }
        let destination = self.queue_name(channel, &spec.destination)?.to_string();
        let routing_key = match spec.destination.is_empty() && spec.routing_key.is_empty() {
            true => destination.clone(),
            false => spec.routing_key,
        };
        Ok(BindingSpec { destination, routing_key, ..spec })
    }
}
