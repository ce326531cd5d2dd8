//! The families of metrics: which there are, and where their numbers come from.

use super::text::{Kind, Text};
use crate::api::management::connections::{is_client, label};
use crate::api::management::context::ManagementContext;
use crate::broker::Flow;
use crate::broker::view::{ChannelView, ConnectionView, QueueView};
use crate::kernel::platform;
use crate::model::space::RABBITMQ_VERSION;
use std::collections::HashMap;

/// What an answer is to hold.
#[derive(Debug)]
pub struct Wanted {
    prefix: &'static str,
    per_object: bool,
    /// `None`: the usual ones.
    families: Option<Vec<String>>,
    spaces: Vec<String>,
}

impl Wanted {
    pub fn all(prefix: &'static str, per_object: bool) -> Self {
        Wanted { prefix, per_object, families: None, spaces: Vec::new() }
    }

    pub fn named(families: Vec<String>, spaces: Vec<String>) -> Self {
        Wanted { prefix: "rabbitmq_detailed_", per_object: true, families: Some(families), spaces }
    }

    fn has(&self, family: &str) -> bool {
        self.families.as_ref().is_none_or(|names| names.iter().any(|name| name == family))
    }

    /// Families that are given by name only.
    fn has_by_name(&self, family: &str) -> bool {
        self.families.is_some() && self.has(family)
    }

    fn takes(&self, space: &str) -> bool {
        self.spaces.is_empty() || self.spaces.iter().any(|name| name == space)
    }
}

pub struct Families<'a> {
    context: &'a ManagementContext,
    wanted: Wanted,
    text: Text,
}

/// Name without prefix, kind, help, value of one object.
type Column<T> = (&'static str, Kind, &'static str, fn(&T) -> f64);

const QUEUE_COARSE: &[Column<QueueView>] = &[
    ("queue_messages_ready", Kind::Gauge, "Messages that wait for a consumer", |queue| queue.ready as f64),
    ("queue_messages_unacked", Kind::Gauge, "Messages delivered and not acknowledged yet", |queue| queue.unacked as f64),
    (
        "queue_messages",
        Kind::Gauge,
        "Messages: ready ones, unacknowledged ones, and dead letters that nobody took yet",
        |queue| queue.messages() as f64,
    ),
];

const QUEUE: &[Column<QueueView>] = &[
    ("queue_consumers", Kind::Gauge, "Consumers of the queue", |queue| queue.consumers as f64),
    ("queue_process_memory_bytes", Kind::Gauge, "Bytes held for the queue", bytes),
    ("queue_messages_ram", Kind::Gauge, "Messages kept in memory", |queue| queue.messages() as f64),
    ("queue_messages_ram_bytes", Kind::Gauge, "Bytes of messages kept in memory", bytes),
    ("queue_messages_ready_ram", Kind::Gauge, "Ready messages kept in memory", |queue| queue.ready as f64),
    ("queue_messages_unacked_ram", Kind::Gauge, "Unacknowledged messages kept in memory", |queue| queue.unacked as f64),
    ("queue_messages_persistent", Kind::Gauge, "Messages kept on disk", |_| 0.0),
    ("queue_messages_bytes", Kind::Gauge, "Bytes of messages", bytes),
    ("queue_messages_ready_bytes", Kind::Gauge, "Bytes of ready messages", |queue| queue.ready_bytes as f64),
    ("queue_messages_unacked_bytes", Kind::Gauge, "Bytes of unacknowledged messages", |queue| queue.unacked_bytes as f64),
    ("queue_messages_published_total", Kind::Counter, "Messages put into the queue", |queue| queue.counts.published as f64),
    ("queue_disk_reads_total", Kind::Counter, "Messages read from disk", |_| 0.0),
    ("queue_disk_writes_total", Kind::Counter, "Messages written to disk", |_| 0.0),
];

fn bytes(queue: &QueueView) -> f64 {
    queue.message_bytes() as f64
}

const CHANNEL: &[Column<ChannelView>] = &[
    ("channel_consumers", Kind::Gauge, "Consumers on the channel", |channel| channel.consumers as f64),
    ("channel_messages_unacked", Kind::Gauge, "Deliveries not acknowledged yet", |channel| channel.unacked as f64),
    ("channel_messages_unconfirmed", Kind::Gauge, "Publishes not confirmed yet", |_| 0.0),
    ("channel_prefetch", Kind::Gauge, "Deliveries the whole channel may have open; 0 is any number", |channel| {
        channel.prefetch_global.into()
    }),
    ("consumer_prefetch", Kind::Gauge, "Deliveries a new consumer may have open; 0 is any number", |channel| {
        channel.prefetch.into()
    }),
    ("channel_messages_published_total", Kind::Counter, "Messages published", |channel| channel.flow.publish as f64),
    ("channel_messages_confirmed_total", Kind::Counter, "Publishes confirmed", |channel| channel.flow.confirm as f64),
    ("channel_messages_unroutable_returned_total", Kind::Counter, "Mandatory messages no queue took", |channel| {
        channel.flow.return_unroutable as f64
    }),
    ("channel_messages_unroutable_dropped_total", Kind::Counter, "Other messages no queue took", |channel| {
        channel.flow.drop_unroutable as f64
    }),
    ("channel_get_ack_total", Kind::Counter, "Messages got, to be acknowledged", |channel| channel.flow.get as f64),
    ("channel_get_total", Kind::Counter, "Messages got without acknowledgement", |channel| channel.flow.get_no_ack as f64),
    ("channel_get_empty_total", Kind::Counter, "Gets that found nothing", |channel| channel.flow.get_empty as f64),
    ("channel_messages_delivered_ack_total", Kind::Counter, "Deliveries to be acknowledged", |channel| {
        channel.flow.deliver as f64
    }),
    ("channel_messages_delivered_total", Kind::Counter, "Deliveries without acknowledgement", |channel| {
        channel.flow.deliver_no_ack as f64
    }),
    ("channel_messages_redelivered_total", Kind::Counter, "Messages delivered again", |channel| channel.flow.redeliver as f64),
    ("channel_messages_acked_total", Kind::Counter, "Deliveries acknowledged", |channel| channel.flow.ack as f64),
];

const CONNECTION: &[Column<ConnectionView>] = &[
    ("connection_incoming_bytes_total", Kind::Counter, "Bytes received", |connection| connection.in_bytes as f64),
    ("connection_outgoing_bytes_total", Kind::Counter, "Bytes sent", |connection| connection.out_bytes as f64),
    ("connection_channels", Kind::Gauge, "Channels of the connection", |connection| connection.channels as f64),
];

/// Name, help, and the number of it.
type Counted<T> = (&'static str, &'static str, fn(&T) -> u64);

/// Counters over everything since the start.
const GLOBAL: &[Counted<Flow>] = &[
    ("global_messages_received_total", "Messages published", |flow| flow.publish),
    ("global_messages_confirmed_total", "Publishes confirmed", |flow| flow.confirm),
    ("global_messages_unroutable_dropped_total", "Messages no queue took, dropped", |flow| flow.drop_unroutable),
    ("global_messages_unroutable_returned_total", "Messages no queue took, returned", |flow| flow.return_unroutable),
];

const GLOBAL_OF_QUEUES: &[Counted<Flow>] = &[
    ("global_messages_delivered_total", "Messages delivered", Flow::deliver_get),
    ("global_messages_delivered_consume_manual_ack_total", "Deliveries to be acknowledged", |flow| flow.deliver),
    ("global_messages_delivered_consume_auto_ack_total", "Deliveries without acknowledgement", |flow| flow.deliver_no_ack),
    ("global_messages_delivered_get_manual_ack_total", "Messages got, to be acknowledged", |flow| flow.get),
    ("global_messages_delivered_get_auto_ack_total", "Messages got without acknowledgement", |flow| flow.get_no_ack),
    ("global_messages_get_empty_total", "Gets that found nothing", |flow| flow.get_empty),
    ("global_messages_redelivered_total", "Messages delivered again", |flow| flow.redeliver),
    ("global_messages_acknowledged_total", "Deliveries acknowledged", |flow| flow.ack),
];

impl<'a> Families<'a> {
    pub fn new(context: &'a ManagementContext, wanted: Wanted) -> Self {
        Families { context, wanted, text: Text::default() }
    }

    pub fn write(mut self) -> String {
        self.identity();
        self.node();
        self.objects();
        self.global();
        self.by_name();
        if self.wanted.families.is_none() {
            self.own();
        }
        self.text.finish()
    }

    pub fn write_memory(mut self) -> String {
        self.identity();
        let totals = self.context.broker.totals();
        self.gauge("memory_queue_bytes", "Bytes of messages in queues", totals.queue_bytes as f64);
        self.gauge("memory_outgoing_bytes", "Bytes that wait to be sent", self.context.broker.waiting_bytes() as f64);
        self.gauge("memory_rss_bytes", "Resident memory", platform::own_usage().memory_bytes as f64);
        self.text.finish()
    }

    fn one(&mut self, name: &str, kind: Kind, help: &str, value: f64) {
        let name = format!("{}{name}", self.wanted.prefix);
        self.text.family(&name, kind, help);
        self.text.sample(&name, &[], value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.one(name, Kind::Gauge, help, value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.one(name, Kind::Counter, help, value as f64);
    }

    fn identity(&mut self) {
        let cluster = self.context.broker.cluster_name();
        let node = self.context.node().to_owned();
        let build =
            [("rabbitmq_version", RABBITMQ_VERSION), ("reactor_version", env!("CARGO_PKG_VERSION")), ("erlang_version", "none")];
        self.text.family("rabbitmq_build_info", Kind::Gauge, "Versions");
        self.text.sample("rabbitmq_build_info", &build, 1.0);
        self.text.family("rabbitmq_identity_info", Kind::Gauge, "Names");
        let names =
            [("rabbitmq_node", node.as_str()), ("rabbitmq_cluster", &*cluster), ("rabbitmq_cluster_permanent_id", &*cluster)];
        self.text.sample("rabbitmq_identity_info", &names, 1.0);
    }

    fn node(&mut self) {
        let (context, facts) = (self.context, self.context.facts.clone());
        let totals = context.broker.totals();
        if self.wanted.has("connection_churn_metrics") {
            let churn = context.broker.churn();
            self.counter("connections_opened_total", "Connections opened", churn.connections_opened);
            self.counter("connections_closed_total", "Connections closed", churn.connections_closed);
            self.counter("channels_opened_total", "Channels opened", churn.channels_opened);
            self.counter("channels_closed_total", "Channels closed", churn.channels_closed);
            self.counter("queues_declared_total", "Declarations of queues", churn.queues_declared);
            self.counter("queues_created_total", "Queues created", churn.queues_created);
            self.counter("queues_deleted_total", "Queues deleted", churn.queues_deleted);
        }
        if self.wanted.has("node_coarse_metrics") {
            let sockets: i64 = context.doors.iter().map(|door| door.counts.open.get()).sum();
            self.gauge("process_open_fds", "Open files and sockets", platform::open_files() as f64);
            self.gauge("process_open_tcp_sockets", "Sockets open at all doors", sockets as f64);
            self.gauge("process_resident_memory_bytes", "Resident memory", platform::own_usage().memory_bytes as f64);
            let free = platform::disk_free(facts.data_dir.as_deref()) as f64;
            self.gauge("disk_space_available_bytes", "Free disk space", free);
        }
        if self.wanted.has("node_metrics") {
            self.gauge("process_max_fds", "Limit of open files", facts.open_files_max.map_or(f64::INFINITY, |max| max as f64));
            self.gauge("process_max_tcp_sockets", "Limit of sockets", facts.connections_max as f64);
            let limit = totals.queue_bytes_max as f64;
            self.gauge("resident_memory_limit_bytes", "Bytes in queues beyond which publishers are held", limit);
            self.gauge("disk_space_available_limit_bytes", "Free disk space below which publishers are held", 0.0);
            self.gauge("erlang_uptime_seconds", "Seconds since the start", context.uptime_ms() as f64 / 1e3);
        }
        if self.wanted.families.is_none() {
            self.gauge(
                "alarms_memory_used_watermark",
                "1 while publishers are held for memory",
                f64::from(u8::from(totals.alarm)),
            );
            self.gauge("alarms_free_disk_space_watermark", "1 while publishers are held for disk space", 0.0);
            self.gauge("alarms_file_descriptor_limit", "1 while no file can be opened", 0.0);
        }
        if self.wanted.has("auth_attempt_metrics") {
            self.attempts();
        }
    }

    fn attempts(&mut self) {
        let attempts = self.context.access.attempts().list();
        let columns: [Counted<crate::access::AttemptsOfDoor>; 3] = [
            ("auth_attempts_total", "Logins tried", |door| door.auth_attempts),
            ("auth_attempts_succeeded_total", "Logins that succeeded", |door| door.auth_attempts_succeeded),
            ("auth_attempts_failed_total", "Logins that failed", |door| door.auth_attempts_failed),
        ];
        for (name, help, value) in columns {
            let name = format!("{}{name}", self.wanted.prefix);
            self.text.family(&name, Kind::Counter, help);
            for door in &attempts {
                self.text.sample(&name, &[("protocol", door.protocol)], value(door) as f64);
            }
        }
    }

    fn objects(&mut self) {
        let broker = &self.context.broker;
        let vhosts = broker.vhosts();
        let queues: Vec<QueueView> =
            vhosts.iter().filter(|vhost| self.wanted.takes(vhost.name())).flat_map(|vhost| vhost.queues()).collect();
        let connections: Vec<ConnectionView> = broker.connections().into_iter().filter(is_client).collect();
        let connections: Vec<ConnectionView> = connections.into_iter().filter(|one| self.wanted.takes(&one.space)).collect();
        let by_id: HashMap<_, (String, &ConnectionView)> = connections.iter().map(|one| (one.id, (label(one), one))).collect();
        let channels: Vec<ChannelView> =
            broker.channels().into_iter().filter(|channel| by_id.contains_key(&channel.connection)).collect();

        let name_queue = |queue: &QueueView| vec![("vhost", queue.space.to_string()), ("queue", queue.name.to_string())];
        let name_connection = |one: &ConnectionView| vec![("connection", label(one)), ("vhost", one.space.to_string())];
        let name_channel = |channel: &ChannelView| {
            let name = by_id.get(&channel.connection).map_or("", |(name, _)| name.as_str());
            vec![("channel", format!("{name} ({})", channel.number)), ("connection", name.to_owned())]
        };
        if self.wanted.has("queue_coarse_metrics") {
            self.columns(QUEUE_COARSE, &queues, name_queue);
        }
        if self.wanted.has("queue_metrics") {
            self.columns(QUEUE, &queues, name_queue);
        } else if self.wanted.has("queue_consumer_count") {
            self.columns(&QUEUE[..1], &queues, name_queue);
        }
        if self.wanted.has("channel_metrics")
            || self.wanted.has("channel_queue_metrics")
            || self.wanted.has("channel_exchange_metrics")
        {
            self.columns(CHANNEL, &channels, name_channel);
        }
        if self.wanted.has("connection_metrics") || self.wanted.has("connection_coarse_metrics") {
            self.columns(CONNECTION, &connections, name_connection);
        }
        if self.wanted.families.is_none() {
            let consumers: u64 = connections.iter().map(|one| one.consumers).sum();
            self.gauge("connections", "Open connections", connections.len() as f64);
            self.gauge("channels", "Open channels", channels.len() as f64);
            self.gauge("consumers", "Consumers", consumers as f64);
            self.gauge("queues", "Queues", queues.len() as f64);
            let labels = [("protocol", "amqp091")];
            let publishers = channels.iter().filter(|channel| channel.flow.publish > 0).count();
            for (name, help, value) in [
                ("rabbitmq_global_consumers", "Consumers", consumers),
                ("rabbitmq_global_publishers", "Channels that have published", publishers as u64),
            ] {
                self.text.family(name, Kind::Gauge, help);
                self.text.sample(name, &labels, value as f64);
            }
        }
    }

    /// One family a column: the sum over all objects, or a sample each.
    fn columns<T>(&mut self, columns: &[Column<T>], objects: &[T], labels: impl Fn(&T) -> Vec<(&'static str, String)>) {
        let labelled: Vec<Vec<(&str, String)>> =
            if self.wanted.per_object { objects.iter().map(labels).collect() } else { Vec::new() };
        for (name, kind, help, value) in columns {
            let name = format!("{}{name}", self.wanted.prefix);
            self.text.family(&name, *kind, help);
            if !self.wanted.per_object {
                self.text.sample(&name, &[], objects.iter().map(value).sum());
                continue;
            }
            for (object, labels) in objects.iter().zip(&labelled) {
                let labels: Vec<(&str, &str)> = labels.iter().map(|(label, value)| (*label, value.as_str())).collect();
                self.text.sample(&name, &labels, value(object));
            }
        }
    }

    fn global(&mut self) {
        if self.wanted.families.is_some() {
            return;
        }
        let mut flow = Flow::default();
        self.context.broker.flows().values().for_each(|of_space| flow.add(of_space));
        let labels = [("protocol", "amqp091"), ("queue_type", "rabbit_classic_queue")];
        for (list, labels) in [(GLOBAL, &labels[..1]), (GLOBAL_OF_QUEUES, &labels[..])] {
            for (name, help, value) in list {
                let name = format!("rabbitmq_{name}");
                self.text.family(&name, Kind::Counter, help);
                self.text.sample(&name, labels, value(&flow) as f64);
            }
        }
        let routed: u64 =
            self.context.broker.vhosts().iter().flat_map(|vhost| vhost.exchange_loads()).map(|(.., routed)| routed).sum();
        self.text.family("rabbitmq_global_messages_routed_total", Kind::Counter, "Copies put into queues");
        self.text.sample("rabbitmq_global_messages_routed_total", &labels[..1], routed as f64);
    }

    /// What only `/metrics/detailed` gives.
    fn by_name(&mut self) {
        let vhosts = self.context.broker.vhosts();
        let vhosts: Vec<_> = vhosts.into_iter().filter(|vhost| self.wanted.takes(vhost.name())).collect();
        let families = [
            ("exchange_names", "rabbitmq_cluster_exchange_name", "Exchanges"),
            ("exchange_bindings", "rabbitmq_cluster_exchange_bindings", "Bindings of an exchange"),
        ];
        for (family, name, help) in families {
            if !self.wanted.has_by_name(family) {
                continue;
            }
            self.text.family(name, Kind::Gauge, help);
            for exchange in vhosts.iter().flat_map(|vhost| vhost.exchanges()) {
                let labels = [("vhost", &*exchange.space), ("exchange", &*exchange.name), ("type", exchange.kind.as_str())];
                let value = if family == "exchange_names" { 1.0 } else { exchange.bindings as f64 };
                self.text.sample(name, &labels, value);
            }
        }
        if self.wanted.has_by_name("vhost_status") {
            self.text.family("rabbitmq_cluster_vhost_status", Kind::Gauge, "1 where a virtual host is up");
            for vhost in &vhosts {
                self.text.sample("rabbitmq_cluster_vhost_status", &[("vhost", &**vhost.name())], 1.0);
            }
        }
    }

    /// Names of our own.
    fn own(&mut self) {
        let totals = self.context.broker.totals();
        self.text.family("reactor_queue_bytes", Kind::Gauge, "Bytes of messages in all queues");
        self.text.sample("reactor_queue_bytes", &[], totals.queue_bytes as f64);
        let doors: Vec<_> = self.context.doors.iter().filter(|door| !door.addresses.is_empty()).cloned().collect();
        self.text.family("reactor_door_connections", Kind::Gauge, "Connections open at a door");
        for door in &doors {
            self.text.sample("reactor_door_connections", &[("port", door.name.as_str())], door.counts.open.get() as f64);
        }
        self.text.family("reactor_door_accepted_total", Kind::Counter, "Connections accepted at a door");
        for door in &doors {
            self.text.sample("reactor_door_accepted_total", &[("port", door.name.as_str())], door.counts.accepted.get() as f64);
        }
    }
}
