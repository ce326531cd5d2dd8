//! `/api/exchanges`: those there are, declaring and deleting them.

use super::answer::{Answer, Failure, done, json, put};
use super::body::Fields;
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::{Columns, Listing, Query, Row};
use super::samples::{IN, OUT, Sampled};
use super::stats::{Shaper, Windows};
use crate::api::view::json::table;
use crate::broker::view::ExchangeView;
use crate::broker::{Actor, DeleteRule};
use crate::control::ExchangeDocument;
use crate::model::change::{Change, Thing};
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};

/// What paths call the exchange whose name is empty.
pub const DEFAULT: &str = "amq.default";

/// The name in a path, as the broker knows it.
pub fn name_of(path: &str) -> &str {
    if path == DEFAULT { "" } else { path }
}

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    let seen = context.broker.vhosts().into_iter().filter(|vhost| caller.sees(&context, vhost.name()));
    let exchanges = seen.flat_map(|vhost| vhost.all_exchanges()).collect();
    answer(&context, exchanges, &query)
}

pub async fn of_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    caller.enter(&context, &space)?;
    answer(&context, context.vhost(&space).map(|vhost| vhost.all_exchanges()).unwrap_or_default(), &query)
}

fn answer(context: &ManagementContext, exchanges: Vec<ExchangeView>, query: &Query) -> Answer {
    let shaper = Shaper::new(&context.samples, Windows::of(query)?);
    let sampled = context.samples.read();
    let row = |exchange: &ExchangeView, columns: &Columns| {
        let mut row = Row::new(columns);
        fill(&mut row, context, exchange, &sampled, &shaper);
        row.into_value()
    };
    Listing::of(query)?.answer(exchanges, |exchange| &*exchange.name, row)
}

pub async fn one(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
    query: Query,
) -> Answer {
    caller.enter(&context, &space)?;
    let exchange = find(&context, &space, &name).ok_or_else(Failure::no_object)?;
    let shaper = Shaper::new(&context.samples, Windows::of(&query)?);
    let sampled = context.samples.read();
    let columns = query.columns();
    let mut row = Row::new(&columns);
    fill(&mut row, &context, &exchange, &sampled, &shaper);
    // Kept in RabbitMQ's `detailed` mode only, not in `basic`.
    row.put("incoming", json!([]));
    row.put("outgoing", json!([]));
    Ok(json(row.into_value()))
}

pub fn find(context: &ManagementContext, space: &str, name: &str) -> Option<ExchangeView> {
    let name = name_of(name);
    context.vhost(space)?.all_exchanges().into_iter().find(|exchange| *exchange.name == *name)
}

fn fill(row: &mut Row<'_>, context: &ManagementContext, exchange: &ExchangeView, sampled: &Sampled, shaper: &Shaper<'_>) {
    row.put("name", &*exchange.name);
    row.put("vhost", &*exchange.space);
    row.put("type", exchange.kind.as_str());
    row.put("durable", exchange.durable);
    row.put("auto_delete", exchange.auto_delete);
    row.put("internal", exchange.internal);
    row.put_with("arguments", || Value::Object(table(&exchange.arguments)));
    if row.wants("policy")
        && let Some(policy) = context.control.policies_of(&exchange.space).applied_to_exchange(&exchange.name).policy
    {
        row.put("policy", &*policy);
    }
    row.put("user_who_performed_action", if exchange.is_built_in() { "rmq-internal" } else { "" });
    if exchange.published > 0 && row.wants("message_stats") {
        let history = sampled.exchanges.history(&(exchange.space.clone(), exchange.name.clone()));
        let mut stats = Map::new();
        for (name, index, value) in [("publish_in", IN, exchange.published), ("publish_out", OUT, exchange.routed)] {
            stats.insert(name.to_owned(), value.into());
            stats.insert(format!("{name}_details"), shaper.details(history, index, value, shaper.windows.msg_rates));
        }
        row.put("message_stats", stats);
    }
}

pub async fn declare(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    let by = enter_to_write(&context, &caller, &space)?;
    let existed = find(&context, &space, &name).is_some();
    let document = ExchangeDocument {
        name: name.clone(),
        vhost: space.clone(),
        kind: fields.text("type")?.unwrap_or("direct").to_owned(),
        durable: fields.flag("durable")?.unwrap_or(true),
        auto_delete: fields.flag("auto_delete")?.unwrap_or(false),
        internal: fields.flag("internal")?.unwrap_or(false),
        arguments: fields.object("arguments")?,
    };
    if crate::model::topology::ExchangeKind::parse(&document.kind).is_none() {
        return Err(Failure::bad(format!("unknown exchange type '{}'", document.kind)));
    }
    context.control.change(vec![Change::create(&space.as_str().into(), Thing::Exchange(document.spec()?))], &by)?;
    Ok(put(existed))
}

/// For writes the space must exist by name too: `vhost_not_found` is what RabbitMQ says then.
pub fn enter_to_write(
    context: &ManagementContext,
    caller: &Caller,
    space: &str,
) -> Result<crate::model::identity::Principal, Failure> {
    if context.vhost(space).is_none() {
        return Err(Failure::not_found("vhost_not_found"));
    }
    caller.enter(context, space)
}

pub async fn delete(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, name)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let by = caller.enter(&context, &space)?;
    let (Some(vhost), Some(known)) = (context.vhost(&space), find(&context, &space, &name)) else {
        return Err(Failure::no_object());
    };
    if known.is_built_in() {
        return Err(Failure::not_authorised("Access refused."));
    }
    if query.is_true("if-unused") {
        let rule = DeleteRule { if_unused: true, if_empty: false };
        // Here, since only the space itself can tell and drop it in one step; the change that follows finds it gone and is written
        // down.
        vhost.delete_exchange(&name, rule, Actor { principal: &by, connection: None })?;
    }
    let spec = crate::model::topology::ExchangeSpec {
        name,
        kind: known.kind,
        durable: known.durable,
        auto_delete: known.auto_delete,
        internal: known.internal,
        arguments: known.arguments,
    };
    context.control.change(vec![Change::delete(&space.as_str().into(), Thing::Exchange(spec))], &by)?;
    Ok(done())
}
