//! The shared half of a connection: what others write into (deliveries, replies) and what they wake.
//!
//! A door drains it: [`Link::take`] swaps the outbox for an empty one, after which queues that stood still because it was full
//! go on. A publisher's task may write to the socket itself ([`Socket::write_now`]) when its batch touched few connections.

use super::client::Failed;
use super::config::ConnectionId;
use super::effects::Effects;
use super::outbox::{Lane, Outbox};
use super::queue::{Consumer, Queue};
use super::record::Frames;
use super::refused::Refused;
use super::shared::Shared;
use crate::kernel::{Instant, pool};
use crate::model::service::{InstanceName, ServiceName};
use crate::model::signal::Resource;
use crate::model::table::{Field, Table};
use crate::wire::amqp::encode;
use crate::wire::amqp::method::BasicCancel;
use bytes::Bytes;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;

/// Bytes that may wait in one outbox before deliveries to it stop.
pub(super) const OUTBOX_BYTES_MAX: usize = 1 << 20;
/// Bytes that may wait in one outbox before its connection is not read any more: answers and returns come on top of deliveries.
const ANSWERS_BYTES_MAX: usize = 4 << 20;
/// No queue's time for an ack is shorter.
const OVERDUE_MIN: Duration = Duration::from_millis(100);

/// What a door knows about a connection once it is open.
#[derive(Clone, Debug)]
pub struct ConnectionInfo {
    /// The client's `connection_name`, else `peer -> local`.
    pub name: Arc<str>,
    pub peer: Arc<str>,
    pub protocol: &'static str,
    pub client_properties: Table,
    pub frame_max: u32,
    pub negotiated: Negotiated,
    /// The supervised instance this login belongs to, if one (contract §7).
    pub supervised: Option<(ServiceName, InstanceName)>,
    /// The peer understands `basic.cancel` from the server.
    pub consumer_cancel_notify: bool,
    /// The peer understands `connection.blocked`.
    pub connection_blocked: bool,
}

/// What a connection's handshake settled; for views.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Negotiated {
    /// The server's end of the connection.
    pub local: Option<SocketAddr>,
    pub peer: Option<SocketAddr>,
    /// `PLAIN` or `AMQPLAIN`.
    pub mechanism: Arc<str>,
    pub channel_max: u16,
    /// Seconds; 0 is none.
    pub heartbeat: u16,
    pub tls: bool,
}

impl ConnectionInfo {
    fn property(&self, name: &str) -> Option<&str> {
        self.client_properties.get(name)?.as_str()
    }

    /// The service it names itself after: the supervised instance's, the property `service`, the connection name's first part.
    pub(super) fn own_service(&self) -> Option<ServiceName> {
        if let Some((service, _)) = &self.supervised {
            return Some(service.clone());
        }
        let name = self.property("connection_name").map(|name| name.split([':', '#', '@', '/']).next().unwrap_or_default());
        [self.property("service"), name].into_iter().flatten().find_map(ServiceName::new)
    }

    pub(super) fn instance(&self) -> Option<InstanceName> {
        match &self.supervised {
            Some((_, instance)) => Some(instance.clone()),
            None => self.property("connection_name").map(Arc::from),
        }
    }

    /// `python`, `node`, `rust`, … from what clients say of themselves.
    pub(super) fn language(&self) -> Option<Arc<str>> {
        let said = format!("{} {}", self.property("platform").unwrap_or_default(), self.property("product").unwrap_or_default());
        let said = said.to_ascii_lowercase();
        let known = [
            ("python", "python"),
            ("pika", "python"),
            ("node", "node"),
            ("amqplib", "node"),
            ("javascript", "node"),
            ("rust", "rust"),
            ("lapin", "rust"),
            ("golang", "go"),
            ("java", "java"),
            (".net", "dotnet"),
            ("ruby", "ruby"),
            ("php", "php"),
            ("erlang", "erlang"),
            ("elixir", "elixir"),
            ("crystal", "crystal"),
        ];
        known.iter().find(|(word, _)| said.contains(word)).map(|(_, language)| Arc::from(*language))
    }

    pub(super) fn client(&self) -> String {
        match (self.property("product"), self.property("version")) {
            (Some(product), Some(version)) => format!("{product} {version}"),
            (Some(product), None) => product.to_owned(),
            _ => String::new(),
        }
    }
}

/// Writes to a connection's socket from another connection's task.
pub trait Socket: Send + Sync {
    /// Writes what can be written without waiting. If something is left, or somebody else is writing, signals the owner.
    fn write_now(&self, link: &Arc<Link>);
    /// Frees its buffers if nothing is being written.
    fn rest(&self);
}

/// What is to be written next.
#[derive(Debug, Default)]
pub struct Parcel {
    pub bytes: Vec<u8>,
    /// Each slice goes out before the byte at its position.
    pub large: Vec<(usize, Bytes)>,
}

pub struct Link {
    pub id: ConnectionId,
    pub space: Arc<str>,
    pub user: Arc<str>,
    pub info: ConnectionInfo,
    /// Unix nanoseconds.
    pub since_ns: u64,
    outbox: Mutex<Outbox>,
    /// Bytes waiting, for a look without the lock.
    waiting: AtomicU64,
    signal: Signal,
    socket: OnceLock<Box<dyn Socket>>,
    resource: RwLock<Arc<Resource>>,
    pub(super) in_bytes: AtomicU64,
    pub(super) out_bytes: AtomicU64,
    /// Holds buffers too large for the pool, and `out_bytes` at the last tick: see [`Link::rest`].
    is_heavy: AtomicBool,
    sent_before: AtomicU64,
    /// Open deliveries that are part of a recorded trace.
    pub(super) traced: AtomicU32,
    pub(super) blocked: AtomicBool,
    /// Notified whenever the outbox was taken.
    pub(super) drained: Notify,
    /// The outbox names channels that must be closed.
    failing: AtomicBool,
    /// Asked to close by an operator: the text to close with.
    closing: OnceLock<Arc<str>>,
    pub(super) shared: Arc<Shared>,
}

impl Link {
    pub(super) fn new(id: ConnectionId, space: Arc<str>, user: Arc<str>, info: ConnectionInfo, shared: Arc<Shared>) -> Self {
        let resource = match info.own_service() {
            Some(service) => Resource {
                service: service.shared(),
                instance: info.instance().unwrap_or_else(|| info.name.clone()),
                attributes: Vec::new(),
            },
            None => unnamed(&user, &info),
        };
        Link {
            id,
            space,
            user,
            since_ns: shared.clock.unix_nanos(),
            outbox: Mutex::new(Outbox::new(info.frame_max)),
            info,
            waiting: AtomicU64::new(0),
            signal: Signal::default(),
            socket: OnceLock::new(),
            resource: RwLock::new(Arc::new(resource)),
            in_bytes: AtomicU64::new(0),
            out_bytes: AtomicU64::new(0),
            is_heavy: AtomicBool::new(false),
            sent_before: AtomicU64::new(0),
            traced: AtomicU32::new(0),
            blocked: AtomicBool::new(false),
            drained: Notify::new(),
            failing: AtomicBool::new(false),
            closing: OnceLock::new(),
            shared,
        }
    }

    /// Lets publishers' tasks write to the socket. Once, by the door.
    pub fn set_socket(&self, socket: Box<dyn Socket>) {
        let _ = self.socket.set(socket);
    }

    pub(super) fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends frames (see `wire::amqp::encode`). The caller flushes: it is the connection's own task.
    pub fn append(&self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.outbox().frames.room());
    }

    /// Swaps what waits into `parcel`, which must have been sent. False if nothing waits.
    pub fn take(self: &Arc<Self>, parcel: &mut Parcel) -> bool {
        parcel.bytes.clear();
        parcel.large.clear();
        let stalled = {
            let mut outbox = self.outbox();
            outbox.signalled = false;
            if outbox.frames.len() == 0 {
                return false;
            }
            std::mem::swap(&mut parcel.bytes, &mut outbox.frames.bytes);
            std::mem::swap(&mut parcel.large, &mut outbox.frames.large);
            self.out_bytes.fetch_add(outbox.frames.large_bytes as u64 + parcel.bytes.len() as u64, Ordering::Relaxed);
            outbox.frames.large_bytes = 0;
            self.waiting.store(0, Ordering::Relaxed);
            std::mem::take(&mut outbox.stalled)
        };
        self.drained.notify_waiters();
        if !stalled.is_empty() {
            self.kick(stalled);
        }
        true
    }

    /// The door keeps a buffer that grew with what is sent here; the broker's tick frees it once that ends.
    pub fn grew(self: &Arc<Self>) {
        if !self.is_heavy.swap(true, Ordering::Relaxed) {
            self.shared.heavy().push(Arc::downgrade(self));
        }
    }

    /// Frees grown buffers if nothing was sent since the last time. False as long as they are in use.
    pub(super) fn rest(&self) -> bool {
        let sent = self.out_bytes.load(Ordering::Relaxed);
        if self.sent_before.swap(sent, Ordering::Relaxed) != sent {
            return false;
        }
        {
            let mut outbox = self.outbox();
            if outbox.frames.len() > 0 {
                return false;
            }
            outbox.frames = Frames::default();
        }
        // Before the buffer goes: if it is needed again meanwhile, it is told anew.
        self.is_heavy.store(false, Ordering::Relaxed);
        if let Some(socket) = self.socket.get() {
            socket.rest();
        }
        true
    }

    fn kick(self: &Arc<Self>, stalled: Vec<Arc<Queue>>) {
        let mut effects = Effects::new(self.shared.clock.now());
        self.resume(stalled, &mut effects);
        effects.run_quietly(&self.shared);
    }

    /// Lets queues that stood still deliver here again: each once, however many of its consumers stood. If each of them resumed it,
    /// all would stand still again each time, and the list would grow with every turn.
    pub(super) fn resume(&self, mut still: Vec<Arc<Queue>>, effects: &mut Effects) {
        still.sort_unstable_by_key(|queue| Arc::as_ptr(queue) as usize);
        still.dedup_by(|one, other| Arc::ptr_eq(one, other));
        still.iter().for_each(|queue| queue.resume(self.id, effects));
    }

    /// Wakes the connection's task.
    pub fn signal(&self) {
        self.signal.raise();
    }

    /// Ready once somebody signalled since the last time.
    pub fn poll_signal(&self, context: &mut Context<'_>) -> Poll<()> {
        self.signal.poll(context)
    }

    /// Writes from the calling task if the door allows it, else wakes the connection's own.
    pub(super) fn write_now(self: &Arc<Self>) {
        match self.socket.get() {
            Some(socket) => socket.write_now(self),
            None => self.signal(),
        }
    }

    /// What the connection's spans are attributed to.
    pub(super) fn resource(&self) -> Arc<Resource> {
        self.resource.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_resource(&self, resource: Resource) {
        *self.resource.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(resource);
    }

    /// For a connection that neither names itself nor attached as anything.
    pub(super) fn unnamed_resource(&self) -> Resource {
        unnamed(&self.user, &self.info)
    }

    /// Queues it consumes; none once it is gone.
    pub(super) fn consumed_queues(&self) -> Vec<Arc<Queue>> {
        let outbox = self.outbox();
        if outbox.dead {
            return Vec::new();
        }
        outbox.channels.iter().flat_map(|(_, lane)| lane.consumers.values()).map(|consumer| consumer.queue.clone()).collect()
    }

    /// Whether deliveries of `queue` wait for their acks here.
    pub(super) fn holds_from(&self, queue: &Arc<Queue>) -> bool {
        self.outbox().channels.iter().any(|(_, lane)| lane.holds_from(queue))
    }

    /// How long the oldest unacked delivery of one consumer has been out.
    pub(super) fn oldest_unacked(&self, channel: u16, slot: u32, now: Instant) -> Option<Duration> {
        let outbox = self.outbox();
        let oldest = outbox.channels.get(channel)?.unsettled().find(|unacked| unacked.slot == slot)?;
        let age_ms = ((now.as_nanos() / 1_000_000) as u32).wrapping_sub(oldest.at_ms);
        Some(Duration::from_millis(age_ms.into()))
    }

    /// Tells the client that its consumer ended with its queue.
    pub(super) fn cancelled_by_broker(self: &Arc<Self>, consumer: &Consumer, effects: &mut Effects) {
        let mut outbox = self.outbox();
        let outbox = &mut *outbox;
        let Some(lane) = outbox.channels.get_mut(consumer.channel) else { return };
        lane.consumers.remove(&consumer.tag);
        lane.cancel_slot(consumer.slot);
        lane.free_slot(consumer.slot);
        if self.info.consumer_cancel_notify && !outbox.dead {
            let cancel = BasicCancel { consumer_tag: &consumer.tag, no_wait: true };
            encode::method(outbox.frames.room(), consumer.channel, &cancel);
            if !std::mem::replace(&mut outbox.signalled, true) {
                effects.wake(self);
            }
        }
    }

    /// Ends the channels that keep a delivery longer than they may.
    pub(super) fn end_overdue(self: &Arc<Self>, now: Instant) {
        let now_ms = (now.as_nanos() / 1_000_000) as u32;
        let oldest: Vec<(u16, Arc<Queue>, Duration)> = {
            let outbox = self.outbox();
            let oldest = |(number, lane): (u16, &Lane)| -> Vec<_> {
                let aged = lane.oldest_of_each().map(|(slot, first)| {
                    let age = Duration::from_millis(now_ms.wrapping_sub(first.at_ms).into());
                    (number, slot.queue.clone(), age)
                });
                aged.take_while(|(.., age)| *age >= OVERDUE_MIN).collect()
            };
            outbox.channels.iter().flat_map(oldest).collect()
        };
        let common = self.shared.config.consumer_timeout;
        let mut ended = None;
        for (channel, queue, age) in oldest {
            let timeout = queue.consumer_timeout().map_or(common, |own| own);
            if age > timeout && ended != Some(channel) {
                ended = Some(channel);
                self.fail(Failed::new(channel, Refused::Precondition(overdue(channel, timeout))));
            }
        }
    }

    fn fail(&self, failed: Failed) {
        self.outbox().failing.push(failed);
        self.failing.store(true, Ordering::Release);
        self.signal();
    }

    /// Channels that the connection's own task must close.
    pub fn take_failing(&self) -> Vec<Failed> {
        if !self.failing.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut self.outbox().failing)
    }

    /// Bytes handed to the socket so far, by whichever task.
    pub fn written(&self) -> u64 {
        self.out_bytes.load(Ordering::Relaxed)
    }

    pub fn count_in(&self, bytes: usize) {
        self.in_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Asks the connection's task to close with 320 CONNECTION_FORCED.
    pub fn ask_to_close(&self, why: &str) {
        let _ = self.closing.set(why.into());
        self.signal();
    }

    /// True if that is a change.
    pub fn set_blocked(&self, blocked: bool) -> bool {
        self.blocked.swap(blocked, Ordering::Relaxed) != blocked
    }

    pub fn asked_to_close(&self) -> Option<&Arc<str>> {
        self.closing.get()
    }

    /// The outbox is beyond its bound.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) >= OUTBOX_BYTES_MAX as u64
    }

    /// Its peer asks for more than it takes: it must be read no further until some of that is sent.
    pub fn is_choked(&self) -> bool {
        self.outbox().frames.len() >= ANSWERS_BYTES_MAX
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_waiting(&self, bytes: usize) {
        self.waiting.store(bytes as u64, Ordering::Relaxed);
    }
}

fn overdue(channel: u16, timeout: Duration) -> String {
    format!(
        "delivery acknowledgement on channel {channel} timed out. Timeout value used: {} ms. This timeout value can be configured, \
         see consumers doc guide to learn more",
        timeout.as_millis()
    )
}

/// What events say of it.
impl Link {
    pub(super) fn event(&self) -> Table {
        let (peer_host, peer_port) = self.info.peer.rsplit_once(':').unwrap_or((&*self.info.peer, ""));
        Table::new()
            .with("name", Field::text(&*self.info.name))
            .with("pid", Field::text(self.id.0.to_string()))
            .with("node", Field::text(&*self.shared.config.node))
            .with("vhost", Field::text(&*self.space))
            .with("user", Field::text(&*self.user))
            .with("user_who_performed_action", Field::text(&*self.user))
            .with("peer_host", Field::text(peer_host))
            .with("peer_port", Field::I32(peer_port.parse().unwrap_or(0)))
            .with("protocol", Field::text("{0,9,1}"))
            .with("frame_max", Field::I64(self.info.frame_max.into()))
            .with("client_properties", Field::Table(self.info.client_properties.clone()))
            .with("connected_at", Field::I64(i64::try_from(self.since_ns / 1_000_000).unwrap_or(i64::MAX)))
    }

    pub(super) fn channel_event(&self, channel: u16) -> Table {
        Table::new()
            .with("name", Field::text(format!("{} ({channel})", self.info.name)))
            .with("pid", Field::text(format!("{}.{channel}", self.id.0)))
            .with("connection", Field::text(&*self.info.name))
            .with("number", Field::I32(channel.into()))
            .with("node", Field::text(&*self.shared.config.node))
            .with("vhost", Field::text(&*self.space))
            .with("user", Field::text(&*self.user))
            .with("user_who_performed_action", Field::text(&*self.user))
    }

    pub(super) fn consumer_event(&self, channel: u16, tag: &str, queue: &str) -> Table {
        Table::new()
            .with("consumer_tag", Field::text(tag))
            .with("channel", Field::text(format!("{} ({channel})", self.info.name)))
            .with("queue", Field::text(queue))
            .with("vhost", Field::text(&*self.space))
            .with("user_who_performed_action", Field::text(&*self.user))
    }
}

fn unnamed(user: &str, info: &ConnectionInfo) -> Resource {
    let service = format!("{user}@{}", info.peer.rsplit_once(':').map_or(&*info.peer, |(host, _)| host));
    Resource { service: service.into(), instance: info.name.clone(), attributes: Vec::new() }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connection {} {}", self.id.0, self.info.name)
    }
}

impl Frames {
    /// The byte buffer, from the pool if it holds none.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = pool::take();
        }
        &mut self.bytes
    }

    /// Gives the byte buffer back if it was not needed after all.
    pub(super) fn rest(&mut self) {
        if self.bytes.is_empty() {
            pool::give(std::mem::take(&mut self.bytes));
        }
    }
}

/// A flag with one waiter.
#[derive(Debug, Default)]
struct Signal {
    raised: AtomicBool,
    waiter: Mutex<Option<Waker>>,
}

impl Signal {
    fn raise(&self) {
        if !self.raised.swap(true, Ordering::AcqRel) {
            let waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(waiter) = waiter {
                waiter.wake();
            }
        }
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.raised.swap(false, Ordering::AcqRel) {
            return Poll::Ready(());
        }
        let mut waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiter.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waiter = Some(context.waker().clone());
        }
        drop(waiter);
        // Raised between the first look and the registration: nobody has seen the waiter.
        if self.raised.swap(false, Ordering::AcqRel) { Poll::Ready(()) } else { Poll::Pending }
    }
}
