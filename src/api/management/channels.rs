//! `/api/channels` and `/api/consumers`.

use super::answer::{Answer, Failure, json};
use super::connections::{ById, details, find, host_port, label, seen};
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::{Columns, Listing, Query, Row};
use super::samples::Sampled;
use super::stats::{Shaper, Windows};
use crate::api::view::json::table;
use crate::broker::view::{ChannelView, ConnectionView, ConsumerView};
use axum::extract::{Path, State};
use serde_json::{Value, json};

/// A channel with its connection and its name.
struct Named {
    name: String,
    connection: ConnectionView,
    channel: ChannelView,
}

fn named(context: &ManagementContext, connections: Vec<ConnectionView>) -> Vec<Named> {
    let by_id = ById::of(connections);
    let mut named: Vec<Named> = context
        .broker
        .channels()
        .into_iter()
        .filter_map(|channel| {
            let connection = by_id.get(channel.connection)?.clone();
            Some(Named { name: channel_name(&connection, channel.number), connection, channel })
        })
        .collect();
    named.sort_by(|a, b| (&a.connection.name, a.channel.number).cmp(&(&b.connection.name, b.channel.number)));
    named
}

fn channel_name(connection: &ConnectionView, number: u16) -> String {
    format!("{} ({number})", label(connection))
}

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    answer(&context, named(&context, seen(&context, &caller)), &query)
}

pub async fn of_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    if context.vhost(&space).is_none() {
        return Err(Failure::no_object());
    }
    let connections = seen(&context, &caller).into_iter().filter(|connection| *connection.space == *space).collect();
    answer(&context, named(&context, connections), &query)
}

pub async fn of_connection(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(name): Path<String>,
    query: Query,
) -> Answer {
    let connection = find(&context, &caller, &name)?;
    answer(&context, named(&context, vec![connection]), &query)
}

fn answer(context: &ManagementContext, channels: Vec<Named>, query: &Query) -> Answer {
    let shaper = Shaper::new(&context.samples, Windows::of(query)?);
    let sampled = context.samples.read();
    let row = |channel: &Named, columns: &Columns| {
        let mut row = Row::new(columns);
        fill(&mut row, context, channel, &sampled, &shaper);
        row.into_value()
    };
    Listing::of(query)?.answer(channels, |channel| channel.name.as_str(), row)
}

pub async fn one(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>, query: Query) -> Answer {
    let channels = named(&context, seen(&context, &caller));
    let channel = channels.into_iter().find(|channel| channel.name == name).ok_or_else(Failure::no_object)?;
    let shaper = Shaper::new(&context.samples, Windows::of(&query)?);
    let sampled = context.samples.read();
    let columns = query.columns();
    let mut row = Row::new(&columns);
    fill(&mut row, &context, &channel, &sampled, &shaper);
    // Who publishes where and who gets what from where is kept in RabbitMQ's `detailed` mode only, not in `basic`.
    row.put("deliveries", json!([]));
    row.put("publishes", json!([]));
    row.put_with("consumer_details", || {
        let consumers = context.broker.consumers().into_iter();
        let own = consumers.filter(|it| it.connection == channel.channel.connection && it.channel == channel.channel.number);
        own.map(|consumer| consumer_value(&context, &consumer, Some(&channel.connection))).collect()
    });
    Ok(json(row.into_value()))
}

fn fill(row: &mut Row<'_>, context: &ManagementContext, named: &Named, sampled: &Sampled, shaper: &Shaper<'_>) {
    let Named { name, connection, channel } = named;
    row.put("name", name.as_str());
    row.put("number", channel.number);
    row.put("node", context.node());
    row.put("vhost", &*connection.space);
    row.put("user", &*connection.user);
    row.put("user_who_performed_action", &*connection.user);
    row.put("state", "running");
    row.put_with("connection_details", || details(connection));
    row.put("consumer_count", channel.consumers);
    row.put("confirm", channel.confirms);
    row.put("transactional", channel.transactional);
    row.put("prefetch_count", channel.prefetch);
    row.put("global_prefetch_count", channel.prefetch_global);
    row.put("messages_unacknowledged", channel.unacked);
    row.put("messages_unconfirmed", 0);
    row.put("pending_raft_commands", 0);
    let history = sampled.channels.history(&(channel.connection, channel.number));
    row.put_with("idle_since", || {
        let since = history.map_or(connection.since_ns / 1_000_000, |it| context.samples.millis_at(it.last_change()));
        super::time::date(since).into()
    });
    row.put_with("message_stats", || Value::Object(shaper.flow(history, &channel.flow, &[])));
}

/// One consumer, with the connection it belongs to where that is known.
pub fn consumer_value(context: &ManagementContext, consumer: &ConsumerView, connection: Option<&ConnectionView>) -> Value {
    let channel_details = connection.map_or_else(
        || json!({}),
        |connection| {
            let (host, port) = host_port(connection.negotiated.peer);
            json!({
                "connection_name": label(connection),
                "name": channel_name(connection, consumer.channel),
                "node": context.node(),
                "number": consumer.channel,
                "peer_host": host,
                "peer_port": port,
                "user": &*connection.user,
            })
        },
    );
    json!({
        "arguments": table(&consumer.arguments),
        "ack_required": !consumer.no_ack,
        "active": !consumer.waiting,
        "activity_status": if consumer.waiting { "waiting" } else { "up" },
        "channel_details": channel_details,
        "consumer_tag": &*consumer.tag,
        "consumer_timeout": consumer.timeout.as_millis() as u64,
        "exclusive": consumer.exclusive,
        "prefetch_count": consumer.prefetch,
        "queue": { "name": &*consumer.queue, "vhost": &*consumer.space },
    })
}

pub async fn consumers(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    let seen: Vec<_> = context.broker.consumers().into_iter().filter(|it| caller.sees(&context, &it.space)).collect();
    answer_consumers(&context, seen, &query)
}

pub async fn consumers_of_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    caller.enter(&context, &space)?;
    let consumers = context.vhost(&space).map(|vhost| vhost.consumers()).unwrap_or_default();
    answer_consumers(&context, consumers, &query)
}

fn answer_consumers(context: &ManagementContext, consumers: Vec<ConsumerView>, query: &Query) -> Answer {
    let by_id = ById::of(context.broker.connections());
    let row = |consumer: &ConsumerView, columns: &Columns| {
        columns.pick(consumer_value(context, consumer, by_id.get(consumer.connection)))
    };
    Listing::whole(query).answer(consumers, |consumer| &*consumer.tag, row)
}
