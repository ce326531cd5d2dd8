//! The firehose: while a space's tracing is on, a copy of every message goes to `amq.rabbitmq.trace`, once as it is published
//! (`publish.EXCHANGE`) and once as it is delivered (`deliver.QUEUE`). What it was stands in the copy's headers, as RabbitMQ has them.

use super::effects::Effects;
use super::journey::Lost;
use super::message::Run;
use super::queue::Queue;
use super::record::Record;
use super::republish::Republished;
use super::tap::{Publisher, is_about_others};
use super::vhost::Vhost;
use crate::model::table::{Field, Table};
use crate::model::topology::TRACE_EXCHANGE;
use crate::wire::amqp::{Properties, PropertyList, RawTable, table};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// One message as the firehose tells of it.
struct Told<'a> {
    exchange: &'a str,
    routing_key: &'a str,
    properties: Properties<'a>,
    body: &'a Bytes,
}

/// A delivery as the firehose tells of it.
pub(super) struct Handed<'a> {
    pub queue: &'a str,
    pub record: Record<'a>,
    pub body: Bytes,
    pub redelivered: bool,
    pub to: Publisher<'a>,
}

impl Vhost {
    pub(super) fn trace_run(&self, run: &Run<'_>, queues: &[Arc<Queue>], by: Publisher<'_>, effects: &mut Effects) {
        let large: HashMap<usize, &Bytes> = run.extras().filter_map(|(at, extra)| Some((at, extra.body.as_ref()?))).collect();
        let queues = Field::Array(queues.iter().map(|queue| Field::text(&*queue.name)).collect());
        for (at, meta) in run.metas.iter().enumerate() {
            let bytes = &run.segment[meta.at as usize..(meta.at + meta.len) as usize];
            let record = Record::new(bytes, meta.key_len);
            let inline = || run.segment.slice_ref(record.inline_body());
            let body = large.get(&at).map_or_else(inline, |body| (*body).clone());
            let properties = Properties::trusted(record.properties());
            let (exchange, routing_key) = (record.exchange(), record.routing_key());
            let told = Told { exchange, routing_key, properties, body: &body };
            let more = self.publisher(by).with("routed_queues", queues.clone());
            self.tell_trace("publish", exchange, &told, more, effects);
        }
    }

    pub(super) fn trace_lost(&self, lost: &Lost<'_>, by: Publisher<'_>, effects: &mut Effects) {
        let body = Bytes::copy_from_slice(lost.body);
        let Lost { exchange, routing_key, properties, .. } = *lost;
        let told = Told { exchange, routing_key, properties, body: &body };
        let more = self.publisher(by).with("routed_queues", Field::Array(Vec::new()));
        self.tell_trace("publish", exchange, &told, more, effects);
    }

    pub(super) fn trace_handed(&self, handed: &Handed<'_>, effects: &mut Effects) {
        let properties = Properties::trusted(handed.record.properties());
        let (exchange, routing_key) = (handed.record.exchange(), handed.record.routing_key());
        let told = Told { exchange, routing_key, properties, body: &handed.body };
        let redelivered = Table::new().with("redelivered", Field::I32(handed.redelivered.into()));
        let more = Table(redelivered.0.into_iter().chain(self.publisher(handed.to).0).collect());
        self.tell_trace("deliver", handed.queue, &told, more, effects);
    }

    fn publisher(&self, by: Publisher<'_>) -> Table {
        Table::new()
            .with("vhost", Field::text(&**self.name()))
            .with("connection", Field::text(&**by.connection))
            .with("channel", Field::I32(by.channel.into()))
            .with("user", Field::text(&**by.user))
    }

    fn tell_trace(&self, what: &str, of: &str, told: &Told<'_>, more: Table, effects: &mut Effects) {
        if is_about_others(told.exchange) {
            return;
        }
        let keys = chosen_keys(told.routing_key, told.properties);
        let mut headers = Table::new()
            .with("exchange_name", Field::text(told.exchange))
            .with("routing_keys", Field::Array(keys))
            .with("properties", Field::Table(spelled_out(&told.properties.to_list())))
            .with("node", Field::text(&*self.shared.config.node));
        headers.0.extend(more.0);
        let encoded = table::encoded(&headers);
        let list = PropertyList { headers: RawTable::check(&encoded).ok(), ..PropertyList::default() }.to_bytes();
        let mut key = format!("{what}.{of}");
        key.truncate(key.floor_char_boundary(crate::kernel::limit::SHORT_STRING_BYTES_MAX));
        let (exchange, properties) = (TRACE_EXCHANGE, Properties::trusted(&list));
        let copy =
            Republished { exchange, key: &key, properties, body: told.body, large: Some(told.body), trace: None, before: None };
        self.republish(copy, |_| true, effects);
    }
}

/// The routing key and those of `CC`; `BCC` is gone by now.
fn chosen_keys(key: &str, properties: Properties<'_>) -> Vec<Field> {
    let cc = properties.headers().and_then(|headers| headers.get("CC")).map(|field| field.to_field());
    let more = match cc {
        Some(Field::Array(keys)) => keys.into_iter().filter(|key| key.as_str().is_some()).collect(),
        _ => Vec::new(),
    };
    std::iter::once(Field::text(key)).chain(more).collect()
}

/// Properties as a table, by RabbitMQ's names and types.
fn spelled_out(list: &PropertyList<'_>) -> Table {
    let text = |value: Option<&str>| value.map(Field::text);
    let number = |value: Option<u8>| value.map(|value| Field::I32(value.into()));
    let fields = [
        ("content_type", text(list.content_type)),
        ("content_encoding", text(list.content_encoding)),
        ("headers", list.headers.map(|headers| Field::Table(headers.to_table()))),
        ("delivery_mode", number(list.delivery_mode)),
        ("priority", number(list.priority)),
        ("correlation_id", text(list.correlation_id)),
        ("reply_to", text(list.reply_to)),
        ("expiration", text(list.expiration)),
        ("message_id", text(list.message_id)),
        ("timestamp", list.timestamp.map(|seconds| Field::I64(i64::try_from(seconds).unwrap_or(i64::MAX)))),
        ("type", text(list.kind)),
        ("user_id", text(list.user_id)),
        ("app_id", text(list.app_id)),
        ("cluster_id", text(list.cluster_id)),
    ];
    Table(fields.into_iter().filter_map(|(name, field)| Some((name.to_owned(), field?))).collect())
}
