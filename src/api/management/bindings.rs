//! `/api/bindings`: those declared and those that every queue has to the default exchange; binding and unbinding.
//!
//! A binding has no name of its own: its `properties_key` is its routing key, escaped, and a hash of its arguments where it has any;
//! `~` where it has neither.

use super::answer::{Answer, Failure, created_at, done, json};
use super::body::Fields;
use super::context::ManagementContext;
use super::exchanges::name_of;
use super::guard::Caller;
use super::list::{Columns, Listing, Query};
use crate::api::view::json::table;
use crate::broker::Vhost;
use crate::broker::view::BindingView;
use crate::control::BindingDocument;
use crate::model::change::{Change, Thing};
use crate::model::table::Table;
use crate::model::topology::{BindingSpec, DestinationKind};
use axum::extract::{Path, State};
use base64::Engine as _;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn properties_key(routing_key: &str, arguments: &Table) -> String {
    let key = quoted(routing_key);
    match (key.is_empty(), arguments.is_empty()) {
        (true, true) => "~".to_owned(),
        (false, true) => key,
        (_, false) => format!("{key}~{}", hash(arguments)),
    }
}

/// As query strings are escaped, with `~` too: it is the separator.
fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => quoted.push(byte.into()),
            b' ' => quoted.push('+'),
            _ => quoted.push_str(&format!("%{byte:02X}")),
        }
    }
    quoted
}

/// Clients hand it back as it is; it need only tell arguments apart.
fn hash(arguments: &Table) -> String {
    let mut sorted = arguments.clone();
    sorted.0.sort_by(|(a, _), (b, _)| a.cmp(b));
    let bytes = crate::wire::amqp::table::encoded(&sorted);
    let hash = bytes.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(hash.to_be_bytes())
}

fn value(binding: &BindingView) -> Value {
    json!({
        "source": &*binding.source,
        "vhost": &*binding.space,
        "destination": &*binding.destination,
        "destination_type": binding.destination_kind.as_str(),
        "routing_key": &*binding.routing_key,
        "arguments": table(&binding.arguments),
        "properties_key": properties_key(&binding.routing_key, &binding.arguments),
    })
}

/// Declared bindings after the implied ones.
fn all(vhost: &Vhost) -> Vec<BindingView> {
    let implied = vhost.queue_loads().into_iter().map(|(name, _)| implied(vhost.name(), &name));
    let mut implied: Vec<BindingView> = implied.collect();
    implied.sort_unstable_by(|a, b| a.destination.cmp(&b.destination));
    implied.extend(vhost.bindings());
    implied
}

fn implied(space: &Arc<str>, queue: &Arc<str>) -> BindingView {
    BindingView {
        space: space.clone(),
        source: "".into(),
        destination: queue.clone(),
        destination_kind: DestinationKind::Queue,
        routing_key: queue.clone(),
        arguments: Table::new(),
    }
}

fn answer(bindings: Vec<BindingView>, query: &Query) -> Answer {
    Listing::whole(query).answer(bindings, |binding| &*binding.source, |binding, columns: &Columns| columns.pick(value(binding)))
}

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    let seen = context.broker.vhosts().into_iter().filter(|vhost| caller.sees(&context, vhost.name()));
    answer(seen.flat_map(|vhost| all(&vhost)).collect(), &query)
}

fn vhost(context: &ManagementContext, caller: &Caller, space: &str) -> Result<Arc<Vhost>, Failure> {
    caller.enter(context, space)?;
    context.vhost(space).ok_or_else(Failure::no_object)
}

pub async fn of_space(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(space): Path<String>,
    query: Query,
) -> Answer {
    answer(all(&*vhost(&context, &caller, &space)?), &query)
}

/// What does not exist has no bindings: rabbitmqadmin looks here for one that may be gone.
pub async fn of_queue(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, queue)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let vhost = vhost(&context, &caller, &space)?;
    let of = all(&vhost).into_iter().filter(|it| it.destination_kind == DestinationKind::Queue && *it.destination == *queue);
    answer(of.collect(), &query)
}

pub async fn from_exchange(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, exchange)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let vhost = vhost(&context, &caller, &space)?;
    answer(all(&vhost).into_iter().filter(|it| *it.source == *name_of(&exchange)).collect(), &query)
}

pub async fn to_exchange(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, exchange)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let vhost = vhost(&context, &caller, &space)?;
    let name = name_of(&exchange);
    let to = all(&vhost).into_iter().filter(|it| it.destination_kind == DestinationKind::Exchange && *it.destination == *name);
    answer(to.collect(), &query)
}

/// The two ends of a binding, as a path names them.
type Ends = (String, String, String, String);

fn kind(letter: &str) -> Result<DestinationKind, Failure> {
    match letter {
        "q" => Ok(DestinationKind::Queue),
        "e" => Ok(DestinationKind::Exchange),
        _ => Err(Failure::no_object()),
    }
}

fn between(vhost: &Vhost, source: &str, kind: DestinationKind, destination: &str) -> Vec<BindingView> {
    let (source, destination) = (name_of(source), name_of(destination));
    let is = |it: &BindingView| *it.source == *source && it.destination_kind == kind && *it.destination == *destination;
    all(vhost).into_iter().filter(is).collect()
}

pub async fn of_pair(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, source, letter, destination)): Path<Ends>,
    query: Query,
) -> Answer {
    let vhost = vhost(&context, &caller, &space)?;
    answer(between(&vhost, &source, kind(&letter)?, &destination), &query)
}

pub async fn bind(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, source, letter, destination)): Path<Ends>,
    fields: Fields,
) -> Answer {
    let by = super::exchanges::enter_to_write(&context, &caller, &space)?;
    let document = BindingDocument {
        source: name_of(&source).to_owned(),
        vhost: space.clone(),
        destination: name_of(&destination).to_owned(),
        destination_type: kind(&letter)?.as_str().to_owned(),
        routing_key: fields.text("routing_key")?.unwrap_or_default().to_owned(),
        arguments: fields.object("arguments")?,
    };
    let spec = document.spec()?;
    let key = properties_key(&spec.routing_key, &spec.arguments);
    context.control.change(vec![Change::create(&space.as_str().into(), Thing::Binding(spec))], &by)?;
    let escape = |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let key = if key == "~" { key } else { key.replace('%', "%25") };
    Ok(created_at(&format!("{}/{key}", escape(&destination).replace("%2E", "."))))
}

fn find(vhost: &Vhost, (source, letter, destination): (&str, &str, &str), props: &str) -> Result<BindingView, Failure> {
    // Clients escape the key for the path once more, or do not: both name it.
    let unescaped = percent_decode_str(props).decode_utf8_lossy().into_owned();
    let is = |it: &BindingView| {
        let key = properties_key(&it.routing_key, &it.arguments);
        key == props || key == unescaped || (it.arguments.is_empty() && *it.routing_key == *props)
    };
    between(vhost, source, kind(letter)?, destination).into_iter().find(is).ok_or_else(Failure::no_object)
}

pub async fn one(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, source, letter, destination, props)): Path<(String, String, String, String, String)>,
) -> Answer {
    let vhost = vhost(&context, &caller, &space)?;
    Ok(json(value(&find(&vhost, (&source, &letter, &destination), &props)?)))
}

pub async fn unbind(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path((space, source, letter, destination, props)): Path<(String, String, String, String, String)>,
) -> Answer {
    let by = caller.enter(&context, &space)?;
    let vhost = vhost(&context, &caller, &space)?;
    let known = find(&vhost, (&source, &letter, &destination), &props)?;
    let spec = BindingSpec {
        source: known.source.to_string(),
        destination: known.destination.to_string(),
        destination_kind: known.destination_kind,
        routing_key: known.routing_key.to_string(),
        arguments: known.arguments,
    };
    context.control.change(vec![Change::delete(&space.as_str().into(), Thing::Binding(spec))], &by)?;
    Ok(done())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::table::Field;

    #[test]
    fn a_binding_is_known_by_its_escaped_key_and_its_arguments() {
        let none = Table::new();
        assert_eq!(properties_key("", &none), "~");
        assert_eq!(properties_key("a.#", &none), "a.%23");
        assert_eq!(properties_key("key with ~", &none), "key+with+%7E");
        let one = Table::new().with("x", Field::I32(1)).with("y", Field::text("z"));
        let same = Table::new().with("y", Field::text("z")).with("x", Field::I32(1));
        assert_eq!(properties_key("k", &one), properties_key("k", &same));
        assert!(properties_key("", &one).starts_with('~') && properties_key("", &one).len() > 5);
    }
}
