//! `/api/queues`: those there are with what is in them, declaring, deleting, purging.

use super::answer::{Answer, Failure, done, json, put};
use super::body::Fields;
use super::channels::consumer_value;
use super::connections::{ById, details};
use super::context::ManagementContext;
use super::exchanges::enter_to_write;
use super::guard::Caller;
use super::list::{Columns, Listing, Query, Row};
use super::samples::{Sampled, flow_of_queue, length};
use super::stats::{Shaper, Windows};
use crate::api::view::json::table;
use crate::broker::view::{QueueLoad, QueueView};
use crate::broker::{Actor, DeleteRule};
use crate::control::QueueDocument;
use crate::model::change::{Change, Thing};
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};

/// Kinds of a flow that queues know nothing of.
const NOT_QUEUES: [&str; 3] = ["confirm", "return_unroutable", "drop_unroutable"];

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    let seen = context.broker.vhosts().into_iter().filter(|vhost| caller.sees(&context, vhost.name()));
    answer(&context, seen.flat_map(|vhost| vhost.queues()).collect(), &query)
}

pub async fn of_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    caller.enter(&context, &space)?;
    answer(&context, context.vhost(&space).map(|vhost| vhost.queues()).unwrap_or_default(), &query)
}

/// What rows of one answer are made with.
struct Making<'a> {
    context: &'a ManagementContext,
    sampled: &'a Sampled,
    shaper: Shaper<'a>,
    /// `disable_stats`: what a queue is, without what it does …
    no_stats: bool,
    /// … but with how much is in it.
    totals: bool,
}

fn answer(context: &ManagementContext, queues: Vec<QueueView>, query: &Query) -> Answer {
    let sampled = context.samples.read();
    let making = Making {
        context,
        sampled: &sampled,
        shaper: Shaper::new(&context.samples, Windows::of(query)?),
        no_stats: query.is_true("disable_stats"),
        totals: query.is_true("enable_queue_totals"),
    };
    let row = |queue: &QueueView, columns: &Columns| {
        let mut row = Row::new(columns);
        making.fill(&mut row, queue);
        row.into_value()
    };
    Listing::of(query)?.answer(queues, |queue| &*queue.name, row)
}

pub async fn one(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
    query: Query,
) -> Answer {
    caller.enter(&context, &space)?;
    let (queue, consumers) = context
        .vhost(&space)
        .and_then(|vhost| Some((vhost.queue(&name)?, vhost.queue_consumers(&name))))
        .ok_or_else(Failure::no_object)?;
    let sampled = context.samples.read();
    let making = Making {
        context: &context,
        sampled: &sampled,
        shaper: Shaper::new(&context.samples, Windows::of(&query)?),
        no_stats: query.is_true("disable_stats"),
        totals: query.is_true("enable_queue_totals"),
    };
    let columns = query.columns();
    let mut row = Row::new(&columns);
    making.fill(&mut row, &queue);
    if !making.no_stats {
        // Kept in RabbitMQ's `detailed` mode only, not in `basic`.
        row.put("incoming", json!([]));
        row.put("deliveries", json!([]));
        row.put_with("consumer_details", || {
            let by_id = ById::of(if consumers.is_empty() { Vec::new() } else { context.broker.connections() });
            consumers.iter().map(|consumer| consumer_value(&context, consumer, by_id.get(consumer.connection))).collect()
        });
        if let Some(owner) = queue.owner.filter(|_| row.wants("owner_pid_details")) {
            let by_id = ById::of(context.broker.connections());
            row.put("owner_pid_details", by_id.get(owner).map_or(Value::Null, details));
        }
    }
    Ok(json(row.into_value()))
}

impl Making<'_> {
    fn fill(&self, row: &mut Row<'_>, queue: &QueueView) {
        row.put("name", &*queue.name);
        row.put("vhost", &*queue.space);
        row.put("type", queue.kind.as_str());
        row.put("durable", queue.durable);
        row.put("auto_delete", queue.auto_delete);
        row.put("exclusive", queue.exclusive);
        row.put_with("arguments", || Value::Object(table(&queue.arguments)));
        row.put("node", self.context.node());
        row.put("state", "running");
        if self.no_stats && !self.totals {
            return;
        }
        row.put("messages", queue.messages());
        row.put("messages_ready", queue.ready);
        row.put("messages_unacknowledged", queue.unacked);
        if self.no_stats {
            return;
        }
        self.fill_stats(row, queue);
        self.fill_policies(row, queue);
    }

    fn fill_stats(&self, row: &mut Row<'_>, queue: &QueueView) {
        let key = (queue.space.clone(), queue.name.clone());
        let history = self.sampled.queues.history(&key);
        let mut lengths = Map::new();
        let load = QueueLoad { ready: queue.ready, unacked: queue.unacked, kept: queue.kept, counts: queue.counts };
        self.shaper.lengths(history, length(&load), &mut lengths);
        lengths.into_iter().for_each(|(name, value)| row.put(&name, value));
        let flow = flow_of_queue(&load);
        if row.wants("message_stats") && flow != Default::default() {
            row.put("message_stats", self.shaper.flow(history, &flow, &NOT_QUEUES));
        }
        row.put("consumers", queue.consumers);
        // Everything is in memory: nothing is paged out, nothing is on disk.
        let bytes = queue.message_bytes();
        let numbers = [
            ("memory", bytes),
            ("message_bytes", bytes),
            ("message_bytes_ready", queue.ready_bytes),
            ("message_bytes_unacknowledged", queue.unacked_bytes),
            ("message_bytes_ram", bytes),
            ("message_bytes_persistent", 0),
            ("message_bytes_paged_out", 0),
            ("messages_ram", queue.messages()),
            ("messages_ready_ram", queue.ready),
            ("messages_unacknowledged_ram", queue.unacked),
            ("messages_persistent", 0),
            ("messages_paged_out", 0),
        ];
        numbers.into_iter().for_each(|(name, value)| row.put(name, value));
        row.put_with("idle_since", || super::time::date(queue.idle_since_ns / 1_000_000).into());
        let text = |tag: &Option<std::sync::Arc<str>>| tag.as_deref().map_or(Value::Null, Value::from);
        row.put("exclusive_consumer_tag", text(&queue.exclusive_consumer));
        row.put("single_active_consumer_tag", text(&queue.active_consumer));
        row.put("head_message_timestamp", queue.head_timestamp.map_or(Value::Null, Value::from));
        row.put("recoverable_slaves", Value::Null);
        row.put("storage_version", 2);
        if queue.kind.as_str() != "classic" {
            row.put("messages_dlx", queue.kept);
            row.put("message_bytes_dlx", queue.kept_bytes);
            row.put("leader", self.context.node());
            row.put("members", json!([self.context.node()]));
            row.put("online", json!([self.context.node()]));
        }
    }

    fn fill_policies(&self, row: &mut Row<'_>, queue: &QueueView) {
        if !["policy", "operator_policy", "effective_policy_definition"].iter().any(|name| row.wants(name)) {
            return;
        }
        let applied = self.context.control.policies_of(&queue.space).applied_to_queue(&queue.name, queue.kind.as_str());
        row.put("policy", applied.policy.as_deref());
        row.put("operator_policy", applied.operator_policy.as_deref());
        row.put("effective_policy_definition", applied.definition);
    }
}

pub async fn declare(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    let by = enter_to_write(&context, &caller, &space)?;
    if let Some(node) = fields.text("node")?.filter(|node| *node != context.node()) {
        return Err(Failure::bad(format!("Node {node} could not be contacted")));
    }
    let existed = context.vhost(&space).is_some_and(|vhost| vhost.queue(&name).is_some());
    let document = QueueDocument {
        name,
        vhost: space.clone(),
        durable: fields.flag("durable")?.unwrap_or(true),
        auto_delete: fields.flag("auto_delete")?.unwrap_or(false),
        arguments: fields.object("arguments")?,
    };
    if fields.flag("exclusive")?.unwrap_or(false) {
        return Err(Failure::bad("an exclusive queue belongs to a connection; this API has none to give it to"));
    }
    context.control.change(vec![Change::create(&space.as_str().into(), Thing::Queue(document.spec()?))], &by)?;
    Ok(put(existed))
}

pub async fn delete(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let by = caller.enter(&context, &space)?;
    let Some((vhost, known)) = context.vhost(&space).and_then(|vhost| vhost.queue(&name).map(|known| (vhost, known))) else {
        return Err(Failure::no_object());
    };
    if known.owner.is_some() {
        return Err(Failure::bad(format!(
            "cannot obtain exclusive access to locked queue '{name}' in vhost '{space}'. It could be originally declared on \
             another connection or the exclusive property value does not match that of the original declaration."
        )));
    }
    let rule = DeleteRule { if_unused: query.is_true("if-unused"), if_empty: query.is_true("if-empty") };
    if rule != DeleteRule::default() {
        // Here, since only the queue itself can tell and go in one step; the change that follows finds it gone and is written down.
        vhost.delete_queue(&name, rule, Actor { principal: &by, connection: None })?;
    }
    let spec = crate::model::topology::QueueSpec {
        name,
        durable: known.durable,
        exclusive: known.exclusive,
        auto_delete: known.auto_delete,
        arguments: known.arguments,
    };
    context.control.change(vec![Change::delete(&space.as_str().into(), Thing::Queue(spec))], &by)?;
    Ok(done())
}

pub async fn purge(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
) -> Answer {
    let by = caller.enter(&context, &space)?;
    let Some(vhost) = context.vhost(&space).filter(|vhost| vhost.queue(&name).is_some()) else {
        return Err(Failure::no_object());
    };
    vhost.purge_queue(&name, Actor { principal: &by, connection: None })?;
    Ok(done())
}

/// Mirrors are synchronised: there are none.
pub async fn act(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    caller.enter(&context, &space)?;
    if context.vhost(&space).and_then(|vhost| vhost.queue(&name)).is_none() {
        return Err(Failure::no_object());
    }
    fields.must_have(&["action"])?;
    match fields.text("action")?.unwrap_or_default() {
        "sync" | "cancel_sync" => Ok(done()),
        other => Err(Failure::bad(vec!["unknown", other])),
    }
}
