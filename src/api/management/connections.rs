//! `/api/connections`: who is connected, with what it negotiated and how many bytes went through; and the end of a connection.

use super::answer::{Answer, Failure, done};
use super::context::ManagementContext;
use super::guard::Caller;
use super::list::{Columns, Listing, Query, Row};
use super::samples::{IN, OUT, Sampled};
use super::stats::{Shaper, Windows};
use crate::api::view::json::table;
use crate::broker::ConnectionId;
use crate::broker::view::ConnectionView;
use axum::extract::{Path, State};
use http::HeaderMap;
use serde_json::{Value, json};
use std::net::SocketAddr;

/// What this API's own publishes and gets are called while they last; they are nobody's connection.
pub const OWN_PROTOCOL: &str = "management";
const REASON_DEFAULT: &str = "Closed via management plugin";

pub fn is_client(connection: &ConnectionView) -> bool {
    connection.protocol != OWN_PROTOCOL && connection.protocol != "HTTP"
}

/// As RabbitMQ names connections, whatever they call themselves.
pub fn label(connection: &ConnectionView) -> String {
    match (connection.negotiated.peer, connection.negotiated.local) {
        (Some(peer), Some(local)) => format!("{peer} -> {local}"),
        _ => connection.name.to_string(),
    }
}

pub fn host_port(address: Option<SocketAddr>) -> (Value, Value) {
    match address {
        Some(address) => (address.ip().to_string().into(), address.port().into()),
        None => (Value::Null, Value::Null),
    }
}

/// `connection_details` of what belongs to a connection.
pub fn details(connection: &ConnectionView) -> Value {
    let (host, port) = host_port(connection.negotiated.peer);
    json!({ "name": label(connection), "peer_host": host, "peer_port": port })
}

/// Client connections that the caller may see, by name.
pub fn seen(context: &ManagementContext, caller: &Caller) -> Vec<ConnectionView> {
    let connections = context.broker.connections().into_iter().filter(is_client);
    let mut seen: Vec<_> = connections.filter(|connection| caller.sees_traffic(context, &connection.space)).collect();
    seen.sort_by_cached_key(label);
    seen
}

pub fn find(context: &ManagementContext, caller: &Caller, name: &str) -> Result<ConnectionView, Failure> {
    seen(context, caller).into_iter().find(|connection| label(connection) == name).ok_or_else(Failure::no_object)
}

pub async fn list(State(context): State<ManagementContext>, caller: Caller, query: Query) -> Answer {
    answer(&context, seen(&context, &caller), &query)
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
    let of_space = seen(&context, &caller).into_iter().filter(|connection| *connection.space == *space).collect();
    answer(&context, of_space, &query)
}

fn answer(context: &ManagementContext, connections: Vec<ConnectionView>, query: &Query) -> Answer {
    let shaper = Shaper::new(&context.samples, Windows::of(query)?);
    let sampled = context.samples.read();
    let named: Vec<(String, ConnectionView)> = connections.into_iter().map(|one| (label(&one), one)).collect();
    let row = |(_, one): &(String, ConnectionView), columns: &Columns| value(context, one, &sampled, &shaper, columns);
    Listing::of(query)?.answer(named, |(name, _)| name.as_str(), row)
}

pub async fn one(State(context): State<ManagementContext>, caller: Caller, Path(name): Path<String>, query: Query) -> Answer {
    let connection = find(&context, &caller, &name)?;
    let shaper = Shaper::new(&context.samples, Windows::of(&query)?);
    let sampled = context.samples.read();
    Ok(super::answer::json(value(&context, &connection, &sampled, &shaper, &query.columns())))
}

fn value(
    context: &ManagementContext,
    connection: &ConnectionView,
    sampled: &Sampled,
    shaper: &Shaper<'_>,
    columns: &Columns,
) -> Value {
    let negotiated = &connection.negotiated;
    let mut row = Row::new(columns);
    row.put("name", label(connection));
    row.put_with("user_provided_name", || match connection.client_properties.get("connection_name") {
        Some(name) => crate::api::view::json::field(name),
        None => Value::Null,
    });
    row.put("node", context.node());
    row.put("type", "network");
    row.put("state", if connection.blocked { "blocked" } else { "running" });
    row.put("vhost", &*connection.space);
    row.put("user", &*connection.user);
    row.put("user_who_performed_action", &*connection.user);
    row.put("protocol", if negotiated.tls { "AMQP 0-9-1" } else { connection.protocol });
    row.put("auth_mechanism", &*negotiated.mechanism);
    row.put("channels", connection.channels);
    row.put("channel_max", negotiated.channel_max);
    row.put("frame_max", connection.frame_max);
    row.put("timeout", negotiated.heartbeat);
    row.put("connected_at", connection.since_ns / 1_000_000);
    row.put_with("client_properties", || Value::Object(table(&connection.client_properties)));
    let (peer_host, peer_port) = host_port(negotiated.peer);
    let (host, port) = host_port(negotiated.local);
    for (name, value) in [("peer_host", peer_host), ("peer_port", peer_port), ("host", host), ("port", port)] {
        row.put(name, value);
    }
    row.put("ssl", negotiated.tls);
    let none = [
        "ssl_protocol",
        "ssl_key_exchange",
        "ssl_cipher",
        "ssl_hash",
        "peer_cert_subject",
        "peer_cert_issuer",
        "peer_cert_validity",
    ];
    none.into_iter().for_each(|name| row.put(name, Value::Null));
    let history = sampled.connections.history(&connection.id);
    let window = shaper.windows.data_rates;
    for (name, index, bytes) in [("recv_oct", IN, connection.in_bytes), ("send_oct", OUT, connection.out_bytes)] {
        row.put(name, bytes);
        row.put_with(&format!("{name}_details"), || shaper.details(history, index, bytes, window));
    }
    row.put("send_pend", connection.waiting_bytes);
    row.into_value()
}

pub async fn close(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let connection = find(&context, &caller, &name)?;
    must_own(&context, &caller, &connection)?;
    context.broker.close_connection(connection.id, &reason(&headers));
    Ok(done())
}

/// One's own, or as administrator any in a space one may enter.
fn must_own(context: &ManagementContext, caller: &Caller, connection: &ConnectionView) -> Result<(), Failure> {
    let may = *connection.user == **caller.user() || (caller.is_administrator() && caller.sees(context, &connection.space));
    may.then_some(()).ok_or_else(|| Failure::not_authorised("User not authorised to close connection"))
}

fn reason(headers: &HeaderMap) -> String {
    let given = headers.get("x-reason").and_then(|value| value.to_str().ok()).filter(|text| !text.is_empty());
    let given = given.unwrap_or(REASON_DEFAULT);
    // A reply text has at most 255 bytes, the code's name included.
    given.chars().take(200).collect()
}

pub async fn of_user(State(context): State<ManagementContext>, caller: Caller, Path(user): Path<String>) -> Answer {
    let of_user = seen(&context, &caller).into_iter().filter(|connection| *connection.user == *user);
    let entry = |connection: ConnectionView| json!({ "name": label(&connection), "vhost": &*connection.space, "user": &*connection.user, "node": context.node() });
    Ok(super::answer::json(of_user.map(entry).collect::<Vec<_>>()))
}

pub async fn close_of_user(
    State(context): State<ManagementContext>,
    caller: Caller,
    Path(user): Path<String>,
    headers: HeaderMap,
) -> Answer {
    let reason = reason(&headers);
    let of_user = seen(&context, &caller).into_iter().filter(|connection| *connection.user == *user);
    for connection in of_user {
        must_own(&context, &caller, &connection)?;
        context.broker.close_connection(connection.id, &reason);
    }
    Ok(done())
}

/// Looks connections up by id.
pub struct ById(std::collections::HashMap<ConnectionId, ConnectionView>);

impl ById {
    pub fn of(connections: Vec<ConnectionView>) -> Self {
        ById(connections.into_iter().map(|connection| (connection.id, connection)).collect())
    }

    pub fn get(&self, id: ConnectionId) -> Option<&ConnectionView> {
        self.0.get(&id)
    }
}
