//! The broker as a whole: its spaces, its connections and its totals.

use super::config::{Attachments, BrokerConfig, ConnectionId};
use super::link::Link;
use super::queue::Queue;
use super::shared::Shared;
use super::vhost::Vhost;
use super::view::{ChannelView, Churn, ConnectionView, ConsumerView, Totals};
use crate::kernel::stats::Gauge;
use crate::kernel::{Clock, Instant};
use crate::model::refusal::{Refusal, RefusalKind};
use crate::model::table::{Field, Table};
use crate::model::topology::DEFAULT_SPACE;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};

pub struct Broker {
    pub(super) shared: Arc<Shared>,
    pub(super) vhosts: RwLock<BTreeMap<Arc<str>, Arc<Vhost>>>,
}

impl Broker {
    /// A broker with the default space.
    pub fn new(clock: Clock, config: BrokerConfig, attachments: Arc<dyn Attachments>) -> Arc<Self> {
        let broker = Arc::new(Broker { shared: Shared::new(clock, config, attachments), vhosts: RwLock::default() });
        broker.create_vhost(DEFAULT_SPACE);
        broker
    }

    /// True if it was created.
    pub fn create_vhost(&self, name: &str) -> bool {
        let mut vhosts = self.vhosts.write().unwrap_or_else(PoisonError::into_inner);
        if vhosts.contains_key(name) {
            return false;
        }
        let vhost = Vhost::new(name, self.shared.clone());
        self.shared.events.live_in(&vhost);
        vhost.taps.live_in(&vhost);
        vhosts.insert(vhost.name().clone(), vhost);
        drop(vhosts);
        self.shared.announce("vhost.created", || Table::new().with("name", Field::text(name)));
        true
    }

    pub fn vhost(&self, name: &str) -> Option<Arc<Vhost>> {
        self.vhosts.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    pub fn vhosts(&self) -> Vec<Arc<Vhost>> {
        self.vhosts.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Takes grown buffers from connections at rest, and now and then ends channels that keep a delivery too long. To be called about
    /// once a second.
    pub fn tick(&self) {
        let heavy = std::mem::take(&mut *self.shared.heavy());
        let busy = heavy.into_iter().filter(|link| link.upgrade().is_some_and(|link| !link.rest()));
        let busy: Vec<_> = busy.collect();
        self.shared.heavy().extend(busy);
        let now = self.shared.clock.now();
        if self.shared.timeouts.is_time_to_look(now) {
            self.links().iter().for_each(|link| link.end_overdue(now));
        }
    }

    /// Does what is due: messages and queues expire. Returns when the next is.
    pub fn run_due(&self) -> Option<Instant> {
        let now = self.shared.clock.now();
        self.shared.deadlines.take(now).into_iter().for_each(|thing| thing.on_time(now, &self.shared));
        self.shared.deadlines.next()
    }

    /// Does what is due when it is, for as long as it is polled.
    pub async fn keep_time(&self) {
        loop {
            let sooner = self.shared.deadlines.sooner();
            match self.run_due() {
                None => sooner.await,
                Some(next) => {
                    let wait = next.since(self.shared.clock.now());
                    // Either way it looks again.
                    let _ = tokio::time::timeout(wait, sooner).await;
                }
            }
        }
    }

    pub(super) fn links(&self) -> Vec<Arc<Link>> {
        self.shared.links().values().cloned().collect()
    }

    /// Closes a connection with 320 CONNECTION_FORCED. False if there is none of that id.
    pub fn close_connection(&self, id: ConnectionId, why: &str) -> bool {
        let link = self.shared.links().get(&id).cloned();
        link.inspect(|link| link.ask_to_close(why)).is_some()
    }

    /// For doors that cannot have their callers wait: refused while publishers are held.
    pub fn takes_messages(&self) -> Result<(), Refusal> {
        if !self.shared.has_alarm() {
            return Ok(());
        }
        let (held, max) = (self.shared.memory(), self.shared.config.queue_bytes_max);
        let what = format!("the memory alarm is on: queues hold {held} bytes of messages, and limits.queue_bytes_max is {max}");
        Err(Refusal::new(RefusalKind::Exhausted, what).hint("Consume or purge the long queues, or raise the limit."))
    }

    pub fn connections(&self) -> Vec<ConnectionView> {
        self.links().iter().map(|link| self.connection_view(link)).collect()
    }

    fn connection_view(&self, link: &Link) -> ConnectionView {
        let mut services = self.vhost(&link.space).map(|vhost| vhost.attached.services_of(link.id)).unwrap_or_default();
        if services.is_empty() {
            services.extend(link.info.own_service().map(|service| service.shared()));
        }
        let outbox = link.outbox();
        ConnectionView {
            id: link.id,
            name: link.info.name.clone(),
            space: link.space.clone(),
            user: link.user.clone(),
            peer: link.info.peer.clone(),
            protocol: link.info.protocol,
            negotiated: link.info.negotiated.clone(),
            frame_max: link.info.frame_max,
            client: link.info.client().into(),
            client_properties: link.info.client_properties.clone(),
            services,
            channels: outbox.channels.iter().count() as u64,
            consumers: outbox.channels.iter().map(|(_, lane)| lane.consumers.len() as u64).sum(),
            in_bytes: link.in_bytes.load(Ordering::Relaxed),
            out_bytes: link.out_bytes.load(Ordering::Relaxed),
            since_ns: link.since_ns,
            waiting_bytes: link.waiting() as u64,
            blocked: link.blocked.load(Ordering::Relaxed),
        }
    }

    pub fn channels(&self) -> Vec<ChannelView> {
        let view = |link: &Arc<Link>| {
            let outbox = link.outbox();
            let views = outbox.channels.iter().map(|(number, lane)| ChannelView {
                connection: link.id,
                number,
                consumers: lane.consumers.len() as u64,
                unacked: lane.live.into(),
                confirms: lane.confirms,
                transactional: lane.transactional,
                prefetch: lane.prefetch,
                flow: lane.flow(),
                prefetch_global: lane.prefetch_global,
            });
            views.collect::<Vec<_>>()
        };
        self.links().iter().flat_map(view).collect()
    }

    pub fn consumers(&self) -> Vec<ConsumerView> {
        self.vhosts().iter().flat_map(|vhost| vhost.consumers()).collect()
    }

    /// A number that changes when messages move anywhere; whoever samples queues needs no look while it stands.
    pub fn activity(&self) -> u64 {
        let counts = &self.shared.counts;
        let moved = [&counts.published, &counts.delivered, &counts.acked, &counts.unroutable, &counts.queues_deleted];
        // Purged and expired messages move the level only.
        moved.iter().fold(self.shared.memory(), |sum, counter| sum.wrapping_mul(31).wrapping_add(counter.get()))
    }

    pub fn churn(&self) -> Churn {
        let counts = &self.shared.counts;
        Churn {
            connections_opened: counts.connections_opened.get(),
            connections_closed: counts.connections_closed.get(),
            channels_opened: counts.channels_opened.get(),
            channels_closed: counts.channels_closed.get(),
            queues_declared: counts.queues_declared.get(),
            queues_created: counts.queues_created.get(),
            queues_deleted: counts.queues_deleted.get(),
        }
    }

    pub fn totals(&self) -> Totals {
        let counts = &self.shared.counts;
        let vhosts = self.vhosts();
        let level = |gauge: &Gauge| u64::try_from(gauge.get()).unwrap_or(0);
        Totals {
            spaces: vhosts.len() as u64,
            queues: vhosts.iter().map(|vhost| vhost.queue_count() as u64).sum(),
            exchanges: vhosts.iter().map(|vhost| vhost.topology().exchanges.len() as u64).sum(),
            connections: self.shared.links().len() as u64,
            channels: level(&counts.channels),
            consumers: level(&counts.consumers),
            published: counts.published.get(),
            confirmed: counts.confirmed.get(),
            delivered: counts.delivered.get(),
            acked: counts.acked.get(),
            unroutable: counts.unroutable.get(),
            replies_dropped: counts.replies_dropped.get(),
            queue_bytes: self.shared.memory(),
            queue_bytes_max: self.shared.config.queue_bytes_max,
            alarm: self.shared.has_alarm(),
        }
    }
}

impl Vhost {
    pub fn consumers(&self) -> Vec<ConsumerView> {
        let queues: Vec<Arc<Queue>> = self.topology().queues.values().cloned().collect();
        queues.iter().flat_map(|queue| self.consumers_of(queue)).collect()
    }

    pub fn queue_consumers(&self, name: &str) -> Vec<ConsumerView> {
        self.find_queue(name).map(|queue| self.consumers_of(&queue)).unwrap_or_default()
    }

    fn consumers_of(&self, queue: &Arc<Queue>) -> Vec<ConsumerView> {
        let now = self.shared.clock.now();
        let timeout = queue.consumer_timeout().unwrap_or(self.shared.config.consumer_timeout);
        let mut views = queue.with_consumers(|consumer| {
            let view = ConsumerView {
                space: self.name().clone(),
                queue: queue.name.clone(),
                tag: consumer.tag.clone(),
                connection: consumer.link.id,
                connection_name: consumer.link.info.name.clone(),
                channel: consumer.channel,
                service: Some(consumer.link.resource().service.clone()),
                prefetch: consumer.prefetch,
                no_ack: consumer.no_ack,
                exclusive: consumer.exclusive,
                waiting: consumer.is_waiting(),
                priority: consumer.priority,
                arguments: consumer.arguments.clone(),
                unacked: consumer.unacked.into(),
                oldest_unacked: None,
                timeout,
            };
            (view, consumer.link.clone(), consumer.slot)
        });
        for (view, link, slot) in &mut views {
            if view.unacked > 0 {
                view.oldest_unacked = link.oldest_unacked(view.channel, *slot, now);
            }
        }
        views.into_iter().map(|(view, ..)| view).collect()
    }
}
