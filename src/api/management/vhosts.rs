//! `/api/vhosts` and their limits.

use super::answer::{Answer, Failure, done, json, put};
use super::body::Fields;
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::{Columns, Listing, Query, Row};
use super::samples::{IN, OUT, Sampled, lengths_of};
use super::stats::{Shaper, Windows};
use crate::broker::Flow;
use crate::control::Put;
use crate::model::space::Space;
use axum::extract::{Path, State};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;

/// What spaces of one answer are made with.
struct Making<'a> {
    context: &'a ManagementContext,
    flows: HashMap<Arc<str>, Flow>,
    bytes: HashMap<Arc<str>, [u64; 2]>,
    sampled: &'a Sampled,
    shaper: Shaper<'a>,
}

impl<'a> Making<'a> {
    fn new(context: &'a ManagementContext, sampled: &'a Sampled, query: &Query) -> Result<Self, Failure> {
        let mut bytes: HashMap<Arc<str>, [u64; 2]> = HashMap::new();
        for link in context.broker.link_loads() {
            let of_space = bytes.entry(link.space).or_default();
            of_space[IN] += link.in_bytes;
            of_space[OUT] += link.out_bytes;
        }
        let shaper = Shaper::new(&context.samples, Windows::of(query)?);
        Ok(Making { context, flows: context.broker.flows(), bytes, sampled, shaper })
    }

    fn value(&self, space: &Space, columns: &Columns) -> Value {
        let name: Arc<str> = space.name.as_str().into();
        let mut row = Row::new(columns);
        row.put("name", space.name.as_str());
        row.put("description", space.description.as_str());
        row.put("tags", space.tags.clone());
        let kind = space.default_queue_type.as_deref().unwrap_or("classic");
        row.put("default_queue_type", kind);
        row.put_with("metadata", || {
            let mut metadata = space.metadata.clone();
            metadata.insert("description".into(), space.description.as_str().into());
            metadata.insert("tags".into(), space.tags.clone().into());
            metadata.insert("default_queue_type".into(), kind.into());
            Value::Object(metadata)
        });
        row.put("protected_from_deletion", is_protected(space));
        row.put("tracing", space.tracing);
        row.put_with("cluster_state", || json!({ self.context.node(): "running" }));
        if row.wants("messages") || row.wants("messages_ready") || row.wants("messages_unacknowledged") {
            let loads = self.context.vhost(&name).map(|vhost| vhost.queue_loads()).unwrap_or_default();
            let mut lengths = Map::new();
            self.shaper.lengths(self.sampled.spaces.history(&name), lengths_of(&loads), &mut lengths);
            lengths.into_iter().for_each(|(name, value)| row.put(&name, value));
        }
        let flow = self.flows.get(&name).copied().unwrap_or_default();
        if flow != Flow::default() && row.wants("message_stats") {
            row.put("message_stats", self.shaper.flow(self.sampled.spaces.history(&name), &flow, &[]));
        }
        if let Some(bytes) = self.bytes.get(&name) {
            let history = self.sampled.space_bytes.history(&name);
            for (name, index) in [("recv_oct", IN), ("send_oct", OUT)] {
                row.put(name, bytes[index]);
                row.put_with(&format!("{name}_details"), || {
                    self.shaper.details(history, index, bytes[index], self.shaper.windows.data_rates)
                });
            }
        }
        row.into_value()
    }
}

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    let spaces = context.control.spaces().into_iter();
    let seen = spaces.filter(|space| caller.is_monitor() || caller.sees(&context, &space.name)).collect();
    let sampled = context.samples.read();
    let making = Making::new(&context, &sampled, &query)?;
    Listing::of(&query)?.answer(seen, |space: &Space| space.name.as_str(), |space, columns| making.value(space, columns))
}

pub async fn one(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>, query: Query) -> Answer {
    let space = find(&context, &name)?;
    if !caller.is_monitor() {
        caller.enter(&context, &name)?;
    }
    let sampled = context.samples.read();
    let making = Making::new(&context, &sampled, &query)?;
    Ok(json(making.value(&space, &query.columns())))
}

pub fn find(context: &ManagementContext, name: &str) -> Result<Space, Failure> {
    context.control.space(name).ok_or_else(Failure::no_object)
}

pub async fn declare(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(name): Path<String>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    let mut space = context.control.space(&name).unwrap_or_else(|| Space::named(&name));
    let metadata = Fields(fields.object("metadata")?);
    for fields in [&metadata, &fields] {
        if let Some(description) = fields.text("description")? {
            space.description = description.to_owned();
        }
        if let Some(kind) = fields.text("default_queue_type")?.filter(|kind| !kind.is_empty() && *kind != "undefined") {
            space.default_queue_type = Some(kind.to_owned());
        }
        if let Some(tags) = fields.get("tags") {
            let read = crate::model::account::tags(tags);
            space.tags = read.map_err(|_| Failure::bad("tags are a list, or one text with commas"))?;
        }
        if let Some(protected) = fields.flag("protected_from_deletion")? {
            space.metadata.insert(PROTECTED.to_owned(), protected.into());
        }
    }
    if let Some(tracing) = fields.flag("tracing")? {
        space.tracing = tracing;
    }
    let known = metadata.0.into_iter().filter(|(key, _)| !["description", "tags", "default_queue_type"].contains(&key.as_str()));
    space.metadata.extend(known);
    let existed = context.control.put_space(space, &caller.principal)? == Put::Updated;
    Ok(put(existed))
}

const PROTECTED: &str = "protected_from_deletion";

fn is_protected(space: &Space) -> bool {
    space.metadata.get(PROTECTED).and_then(Value::as_bool).unwrap_or(false)
}

pub async fn delete(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    let space = find(&context, &name)?;
    if is_protected(&space) {
        let reason = format!("Refusing to delete virtual host '{name}' because it is protected from deletion");
        return Err(Failure::new(http::StatusCode::PRECONDITION_FAILED, "precondition_failed", reason));
    }
    context.control.delete_space(&name, &caller.principal)?;
    Ok(done())
}

pub async fn protect(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    set_protection(&context, &caller, &name, true)
}

pub async fn unprotect(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    set_protection(&context, &caller, &name, false)
}

fn set_protection(context: &ManagementContext, caller: &Caller, name: &str, protected: bool) -> Answer {
    caller.must_administer()?;
    let mut space = find(context, name)?;
    match protected {
        true => _ = space.metadata.insert(PROTECTED.to_owned(), true.into()),
        false => _ = space.metadata.remove(PROTECTED),
    }
    context.control.put_space(space, &caller.principal)?;
    Ok(done())
}

/// A space here is always running.
pub async fn start(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((name, node)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    find(&context, &name)?;
    super::overview::must_be_this(&context, &node)?;
    Ok(done())
}

pub async fn limits(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    caller.must_administer()?;
    let limits = context.control.space_limits();
    Listing::whole(&query).answer(limits, |limits| limits.vhost.as_str(), |limits, columns| columns.pick(json!(limits)))
}

pub async fn limits_of(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    find(&context, &name)?;
    let limits: Vec<_> = context.control.space_limits().into_iter().filter(|limits| limits.vhost == name).collect();
    Ok(json(limits))
}

pub async fn set_limit(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, limit)): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    caller.must_administer()?;
    if context.control.space(&space).is_none() {
        return Err(Failure::not_found("vhost_not_found"));
    }
    let value = limit_value(&fields, &limit)?;
    context.control.set_space_limit(&space, &limit, Some(value), &caller.principal)?;
    Ok(done())
}

pub fn limit_value(fields: &Fields, limit: &str) -> Result<i64, Failure> {
    fields.must_have(&["value"])?;
    match fields.get("value").and_then(Value::as_i64) {
        Some(value) => Ok(value),
        None => {
            let given = fields.get("value").map(Value::to_string).unwrap_or_default();
            Err(Failure::bad(format!("Validation failed\n\n{limit} should be a number, actually was {given}\n")))
        }
    }
}

pub async fn clear_limit(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, limit)): Path<(String, String)>,
) -> Answer {
    caller.must_administer()?;
    find(&context, &space)?;
    context.control.set_space_limit(&space, &limit, None, &caller.principal)?;
    Ok(done())
}
