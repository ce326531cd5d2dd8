//! `/api/nodes`: the one node there is, and what its memory goes to.

use super::answer::{Answer, json};
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::Query;
use super::overview::{NO_ERLANG, churn, contexts, exchange_types, must_be_this, no_erlang};
use super::samples::NODE_NAMES;
use super::stats::{Shaper, Windows};
use crate::kernel::platform;
use crate::model::space::RABBITMQ_VERSION;
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};

/// What RabbitMQ ships as plugins and is built in here.
pub const PLUGINS: [&str; 3] = ["rabbitmq_management", "rabbitmq_management_agent", "rabbitmq_prometheus"];

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    caller.must_monitor()?;
    let node = query.columns().pick(node_value(&context, &query)?);
    Ok(json(json!([node])))
}

pub async fn one(State(context): State<ManagementContext>, caller: Caller, Path(node): Path<String>, query: Query) -> Answer {
    caller.must_monitor()?;
    must_be_this(&context, &node)?;
    let mut value = node_value(&context, &query)?;
    if query.is_true("memory")
        && let Value::Object(fields) = &mut value
    {
        fields.insert("memory".into(), breakdown(&context));
    }
    Ok(json(query.columns().pick(value)))
}

pub async fn memory(State(context): State<ManagementContext>, caller: Caller, Path(node): Path<String>) -> Answer {
    caller.must_monitor()?;
    must_be_this(&context, &node)?;
    Ok(json(json!({ "memory": breakdown(&context) })))
}

fn node_value(context: &ManagementContext, query: &Query) -> Result<Value, super::answer::Failure> {
    let shaper = Shaper::new(&context.samples, Windows::of(query)?);
    let totals = context.broker.totals();
    let facts = &context.facts;
    let text = |path: &Option<std::path::PathBuf>| path.as_ref().map_or_else(String::new, |path| path.display().to_string());
    let mut node = json!({
        "name": context.node(),
        "type": "disc",
        "running": true,
        "being_drained": false,
        "os_pid": std::process::id().to_string(),
        "uptime": context.uptime_ms(),
        "processors": platform::processors(),
        "run_queue": 0,
        "partitions": [],
        "cluster_links": [],
        "rates_mode": "basic",
        "net_ticktime": facts.heartbeat_s,
        "mem_calculation_strategy": "rss",
        // Publishers are held when queues hold so much; other memory has its own bounds.
        "mem_limit": totals.queue_bytes_max,
        "mem_alarm": totals.alarm,
        "disk_free_limit": 0,
        "disk_free_alarm": false,
        "fd_total": facts.open_files_max.unwrap_or(u64::from(u32::MAX)),
        "sockets_total": facts.connections_max,
        // Tasks have no limit of their own; connections do.
        "proc_total": facts.connections_max,
        "proc_used": totals.connections,
        "exchange_types": exchange_types(),
        "auth_mechanisms": mechanisms(),
        "applications": [{
            "name": "reactor",
            "description": env!("CARGO_PKG_DESCRIPTION"),
            "version": env!("CARGO_PKG_VERSION"),
        }],
        "contexts": contexts(context),
        "log_files": ["<stderr>"],
        "db_dir": text(&facts.data_dir),
        "config_files": facts.config_file.iter().map(|file| file.display().to_string()).collect::<Vec<_>>(),
        "enabled_plugins": PLUGINS,
        "rabbitmq_version": RABBITMQ_VERSION,
        "erlang_version": NO_ERLANG,
        "erlang_full_version": no_erlang(),
    });
    if let Value::Object(fields) = &mut node {
        put_numbers(context, &shaper, fields);
    }
    Ok(node)
}

fn mechanisms() -> Value {
    let entry = |(name, description)| json!({ "name": name, "description": description, "enabled": true });
    let known = [
        ("AMQPLAIN", "QPid AMQPLAIN mechanism"),
        ("EXTERNAL", "SASL EXTERNAL authentication mechanism, by the client's certificate"),
        ("PLAIN", "SASL PLAIN authentication mechanism"),
    ];
    known.into_iter().map(entry).collect()
}

fn put_numbers(context: &ManagementContext, shaper: &Shaper<'_>, fields: &mut Map<String, Value>) {
    let sockets = context.doors.iter().map(|door| door.counts.open.get().max(0) as u64).sum();
    let now = [
        platform::own_usage().memory_bytes,
        platform::open_files(),
        sockets,
        platform::disk_free(context.facts.data_dir.as_deref()),
    ];
    let sampled = context.samples.read();
    for (at, value) in now.into_iter().enumerate() {
        fields.insert(NODE_NAMES[at].to_owned(), value.into());
        let details = shaper.details(sampled.node.history(&()), at, value, shaper.windows.node_stats);
        fields.insert(format!("{}_details", NODE_NAMES[at]), details);
    }
    if let Value::Object(churn) = churn(context, &sampled, shaper, shaper.windows.node_stats) {
        fields.extend(churn);
    }
}

/// RabbitMQ's categories; what is not Erlang's has nothing in it.
fn breakdown(context: &ManagementContext) -> Value {
    const EMPTY: [&str; 21] = [
        "connection_readers",
        "connection_channels",
        "quorum_queue_procs",
        "quorum_queue_dlx_procs",
        "stream_queue_procs",
        "stream_queue_replica_reader_procs",
        "stream_queue_coordinator_procs",
        "plugins",
        "metadata_store",
        "other_proc",
        "metrics",
        "mgmt_db",
        "mnesia",
        "quorum_ets",
        "metadata_store_ets",
        "other_ets",
        "msg_index",
        "code",
        "atom",
        "allocated_unused",
        "reserved_unallocated",
    ];
    let rss = platform::own_usage().memory_bytes;
    let totals = context.broker.totals();
    let waiting = context.broker.waiting_bytes();
    let mut fields: Map<String, Value> = EMPTY.into_iter().map(|name| (name.to_owned(), json!(0))).collect();
    let own = [
        ("queue_procs", totals.queue_bytes),
        ("connection_writers", waiting),
        ("connection_other", 0),
        ("binary", 0),
        ("other_system", rss.saturating_sub(totals.queue_bytes + waiting)),
    ];
    fields.extend(own.into_iter().map(|(name, value)| (name.to_owned(), json!(value))));
    fields.insert("strategy".into(), json!("rss"));
    fields.insert("total".into(), json!({ "rss": rss, "allocated": rss, "erlang": 0 }));
    Value::Object(fields)
}
