//! `/api/overview`, `/api/cluster-name`, `/api/whoami` and what else is about the broker as a whole.

use super::answer::{Answer, Failure, done, json};
use super::body::Fields;
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::Query;
use super::samples::{CHURN, NODE_NAMES, Sampled, lengths_of};
use super::stats::{Shaper, Window, Windows};
use crate::broker::Flow;
use crate::model::config::PortName;
use crate::model::space::RABBITMQ_VERSION;
use crate::model::space::{CLUSTER_NAME, GlobalParameter};
use crate::model::topology::ExchangeKind;
use axum::extract::State;
use serde_json::{Map, Value, json};

pub fn exchange_types() -> Value {
    let entry = |kind: ExchangeKind| json!({ "name": kind.as_str(), "description": description(kind), "enabled": true });
    ExchangeKind::ALL.into_iter().map(entry).collect()
}

fn description(kind: ExchangeKind) -> &'static str {
    match kind {
        ExchangeKind::Direct => "AMQP direct exchange, as per the AMQP specification",
        ExchangeKind::Topic => "AMQP topic exchange, as per the AMQP specification",
        ExchangeKind::Fanout => "AMQP fanout exchange, as per the AMQP specification",
        ExchangeKind::Headers => "AMQP headers exchange, as per the AMQP specification",
        ExchangeKind::ConsistentHash => "Consistent hashing exchange",
        ExchangeKind::Random => "AMQP random exchange",
        ExchangeKind::LocalRandom => "Picks one random local queue to route to",
        ExchangeKind::Delayed => "Delayed message exchange",
    }
}

pub async fn overview(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    let shaper = Shaper::new(&context.samples, Windows::of(&query)?);
    let mut fields = about(&context);
    let flows = context.broker.flows();
    let (mut flow, mut lengths) = (Flow::default(), [0; 3]);
    let (mut queues, mut exchanges) = (0, 0);
    let mut all = true;
    for vhost in context.broker.vhosts() {
        if !caller.sees_traffic(&context, vhost.name()) {
            all = false;
            continue;
        }
        flow.add(&flows.get(vhost.name()).copied().unwrap_or_default());
        let loads = vhost.queue_loads();
        queues += loads.len();
        lengths.iter_mut().zip(lengths_of(&loads)).for_each(|(sum, value)| *sum += value);
        // The default exchange is one too.
        exchanges += vhost.exchange_loads().len();
    }
    let sampled = context.samples.read();
    // Rates are kept of the whole; who sees a part sees its numbers.
    let history = sampled.whole.history(&()).filter(|_| all);
    let mut stats = shaper.flow(history, &flow, &[]);
    // Nothing is on disk.
    for name in ["disk_reads", "disk_writes"] {
        stats.insert(name.to_owned(), 0.into());
        stats.insert(format!("{name}_details"), json!({ "rate": 0.0 }));
    }
    fields.insert("message_stats".into(), Value::Object(stats));
    let mut totals = Map::new();
    shaper.lengths(history, lengths, &mut totals);
    fields.insert("queue_totals".into(), Value::Object(totals));
    fields.insert("churn_rates".into(), churn(&context, &sampled, &shaper, shaper.windows.msg_rates));
    drop(sampled);
    let connections = context.broker.connections().into_iter().filter(super::connections::is_client);
    let seen: Vec<_> = connections.filter(|connection| caller.sees_traffic(&context, &connection.space)).collect();
    fields.insert(
        "object_totals".into(),
        json!({
            "channels": seen.iter().map(|connection| connection.channels).sum::<u64>(),
            "connections": seen.len(),
            "consumers": seen.iter().map(|connection| connection.consumers).sum::<u64>(),
            "exchanges": exchanges,
            "queues": queues,
        }),
    );
    if caller.is_monitor() {
        fields.insert("listeners".into(), listeners(&context));
        fields.insert("contexts".into(), contexts(&context));
    }
    Ok(json(query.columns().pick(Value::Object(fields))))
}

fn about(context: &ManagementContext) -> Map<String, Value> {
    let about = json!({
        "management_version": RABBITMQ_VERSION,
        "rates_mode": "basic",
        "sample_retention_policies": { "global": [600], "basic": [600], "detailed": [600] },
        "exchange_types": exchange_types(),
        "product_version": RABBITMQ_VERSION,
        "product_name": "RabbitMQ",
        "rabbitmq_version": RABBITMQ_VERSION,
        "cluster_name": &*context.broker.cluster_name(),
        "cluster_tags": {},
        "node_tags": {},
        "erlang_version": NO_ERLANG,
        "erlang_full_version": no_erlang(),
        "release_series_support_status": "supported",
        "disable_stats": false,
        "is_op_policy_updating_enabled": true,
        "enable_queue_totals": false,
        "statistics_db_event_queue": 0,
        "node": context.node(),
    });
    match about {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// Clients want to read a version; there is none of Erlang here.
pub const NO_ERLANG: &str = "none";

pub fn no_erlang() -> String {
    format!("reactor {} (Rust, no Erlang)", env!("CARGO_PKG_VERSION"))
}

/// What came and went.
pub fn churn(context: &ManagementContext, sampled: &Sampled, shaper: &Shaper<'_>, window: Option<Window>) -> Value {
    let churn = context.broker.churn();
    let values = [
        churn.connections_opened,
        churn.connections_closed,
        churn.channels_opened,
        churn.channels_closed,
        churn.queues_declared,
        churn.queues_created,
        churn.queues_deleted,
    ];
    let mut fields = Map::new();
    for (at, value) in values.into_iter().enumerate() {
        let name = NODE_NAMES[CHURN + at];
        fields.insert(name.to_owned(), value.into());
        let details = shaper.details(sampled.node.history(&()), CHURN + at, value, window);
        fields.insert(format!("{name}_details"), details);
    }
    Value::Object(fields)
}

/// What a door speaks, as RabbitMQ calls it.
pub fn protocol(door: PortName) -> Option<&'static str> {
    Some(match door {
        PortName::Amqp | PortName::Bus => "amqp",
        PortName::Amqps => "amqp/ssl",
        PortName::Stream => "stream",
        PortName::StreamTls => "stream/ssl",
        PortName::Management => "http",
        PortName::Prometheus => "http/prometheus",
        _ => return None,
    })
}

fn listeners(context: &ManagementContext) -> Value {
    let mut list = Vec::new();
    for door in context.doors.iter() {
        let Some(protocol) = protocol(door.name) else { continue };
        for address in &door.addresses {
            list.push(json!({
                "node": context.node(),
                "protocol": protocol,
                "ip_address": address.ip().to_string(),
                "port": address.port(),
                "socket_opts": { "nodelay": true },
            }));
        }
    }
    Value::Array(list)
}

pub fn contexts(context: &ManagementContext) -> Value {
    let doors = [(PortName::Management, "RabbitMQ Management"), (PortName::Prometheus, "RabbitMQ Prometheus")];
    let entry = |(name, description)| {
        let port = context.port(name)?.to_string();
        Some(json!({ "node": context.node(), "description": description, "path": "/", "port": port, "ssl_opts": [] }))
    };
    doors.into_iter().filter_map(entry).collect()
}

pub async fn cluster_name(State(context): State<ManagementContext>, _: Caller) -> Answer {
    Ok(json(json!({ "name": &*context.broker.cluster_name() })))
}

pub async fn set_cluster_name(State(context): State<ManagementContext>, caller: Caller, fields: Fields) -> Answer {
    caller.must_administer()?;
    fields.must_have(&["name"])?;
    let name = fields.text("name")?.unwrap_or_default();
    let parameter = GlobalParameter { name: CLUSTER_NAME.to_owned(), value: name.into() };
    context.control.put_global_parameter(parameter, &caller.principal)?;
    Ok(done())
}

pub async fn whoami(caller: Caller) -> Answer {
    Ok(json(json!({ "name": &**caller.user(), "tags": &*caller.principal.tags, "is_internal_user": true })))
}

pub async fn extensions(_: Caller) -> Answer {
    Ok(json(json!([])))
}

/// How the dashboard of RabbitMQ should log in: with a name and a password.
pub async fn auth() -> Answer {
    Ok(json(json!({ "oauth_enabled": false })))
}

pub async fn version(State(_): State<ManagementContext>, _: Caller) -> Answer {
    Ok(json(RABBITMQ_VERSION))
}

pub async fn auth_attempts(
    State(context): State<ManagementContext>,
    caller: Caller,
    axum::extract::Path(node): axum::extract::Path<String>,
) -> Answer {
    caller.must_administer()?;
    must_be_this(&context, &node)?;
    Ok(json(context.access.attempts().list()))
}

/// Attempts by source are not tracked, as RabbitMQ does not unless told to.
pub async fn auth_attempts_by_source(
    State(context): State<ManagementContext>,
    caller: Caller,
    axum::extract::Path(node): axum::extract::Path<String>,
) -> Answer {
    caller.must_administer()?;
    must_be_this(&context, &node)?;
    Ok(json(json!([])))
}

pub fn must_be_this(context: &ManagementContext, node: &str) -> Result<(), Failure> {
    if node == context.node() { Ok(()) } else { Err(Failure::no_object()) }
}

/// There is one node, and every queue is on it: nothing to move.
pub async fn rebalance(State(_): State<ManagementContext>, caller: Caller) -> Answer {
    caller.must_administer()?;
    Ok(done())
}

/// What would be listed if there were any: stream clients, shovels, federation links.
pub async fn none(caller: Caller) -> Answer {
    caller.must_monitor()?;
    Ok(json(json!([])))
}
