//! Health checks: what a load balancer or an orchestrator asks.

use super::answer::{Answer, Failure, json};
use super::body::Fields;
use super::context::ManagementContext;
use super::guard::Caller;
use super::messages;
use super::overview::protocol;
use crate::model::config::PortName;
use axum::extract::{Path, State};
use serde_json::{Value, json};

fn ok() -> Answer {
    Ok(json(json!({ "status": "ok" })))
}

/// Nothing is wrong while no alarm holds publishers.
pub async fn alarms(State(context): State<ManagementContext>, _: Caller) -> Answer {
    no_alarm(&context, "There are alarms in effect in the cluster")
}

pub async fn local_alarms(State(context): State<ManagementContext>, _: Caller) -> Answer {
    no_alarm(&context, "There are alarms in effect on the node")
}

fn no_alarm(context: &ManagementContext, reason: &str) -> Answer {
    if !context.broker.totals().alarm {
        return ok();
    }
    let alarms = json!([{ "node": context.node(), "resource": "memory" }]);
    Err(Failure::unhealthy(json!({ "status": "failed", "reason": reason, "alarms": alarms })))
}

fn ports(context: &ManagementContext) -> Vec<u16> {
    context.doors.iter().filter_map(|door| door.port()).collect()
}

pub async fn port_listener(State(context): State<ManagementContext>, _: Caller, Path(port): Path<String>) -> Answer {
    let port: u16 = port.parse().map_err(|_| Failure::bad("Invalid port"))?;
    let ports = ports(&context);
    if ports.contains(&port) {
        return Ok(json(json!({ "status": "ok", "port": port })));
    }
    let reason = "No active listener";
    Err(Failure::unhealthy(json!({ "status": "failed", "reason": reason, "missing": port, "ports": ports })))
}

/// One protocol, or several with commas.
pub async fn protocol_listener(State(context): State<ManagementContext>, _: Caller, Path(wanted): Path<String>) -> Answer {
    let doors = context.doors.iter().filter(|door| door.port().is_some());
    let mut listening: Vec<&str> = doors.filter_map(|door| protocol(door.name)).collect();
    listening.sort_unstable();
    listening.dedup();
    let missing: Vec<&str> = wanted.split(',').filter(|name| !listening.contains(&canonical(name).as_str())).collect();
    match (missing.as_slice(), wanted.contains(',')) {
        ([], false) => Ok(json(json!({ "status": "ok", "protocol": canonical(&wanted) }))),
        ([], true) => ok(),
        (missing, many) => {
            let missing: Value = if many { json!(missing) } else { json!(missing[0]) };
            let reason = "No active listener";
            Err(Failure::unhealthy(json!({ "status": "failed", "reason": reason, "missing": missing, "protocols": listening })))
        }
    }
}

/// The many names of one protocol.
fn canonical(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "amqp091" | "amqp0.9.1" | "amqp0-9-1" | "amqp-0-9-1" => "amqp".to_owned(),
        "amqps" | "amqp/tls" => "amqp/ssl".to_owned(),
        "stream/tls" => "stream/ssl".to_owned(),
        "prometheus" => "http/prometheus".to_owned(),
        _ => name,
    }
}

pub async fn virtual_hosts(State(_): State<ManagementContext>, _: Caller) -> Answer {
    ok()
}

/// One node depends on no other.
pub async fn quorum(_: Caller) -> Answer {
    Ok(json(json!({ "status": "ok", "reason": "single node cluster" })))
}

pub async fn serving(State(context): State<ManagementContext>, _: Caller) -> Answer {
    match ports(&context).is_empty() {
        false => ok(),
        true => Err(Failure::unhealthy(json!({ "status": "failed", "reason": "no port is open" }))),
    }
}

pub async fn below_connection_limit(State(context): State<ManagementContext>, _: Caller) -> Answer {
    let open: u64 = context.doors.iter().map(|door| door.counts.open.get().max(0) as u64).sum();
    let limit = context.facts.connections_max;
    if open < limit {
        return Ok(json(json!({ "status": "ok", "current": open, "limit": limit })));
    }
    let reason = "node connection limit is reached";
    Err(Failure::unhealthy(json!({ "status": "failed", "reason": reason, "current": open, "limit": limit })))
}

/// Certificates that end within the time.
pub async fn certificates(
    State(context): State<ManagementContext>,
    _: Caller,
    Path((within, unit)): Path<(String, String)>,
) -> Answer {
    let within: u64 = within.parse().map_err(|_| Failure::bad("Invalid expiration period"))?;
    let days = match unit.as_str() {
        "days" => 1,
        "weeks" => 7,
        "months" => 30,
        "years" => 365,
        _ => return Err(Failure::bad("Time unit not recognised. Supported units: days, weeks, months, years.")),
    };
    let until_s = context.clock.unix_nanos() / 1_000_000_000 + within.saturating_mul(days * 86_400);
    let Some(ends_s) = context.facts.certificate_ends_s.filter(|ends| *ends <= until_s) else { return ok() };
    let expired: Vec<Value> = context
        .doors
        .iter()
        .filter(|door| matches!(door.name, PortName::Amqps | PortName::Https | PortName::StreamTls))
        .filter_map(|door| Some(json!({ "node": context.node(), "protocol": door.name.as_str(), "port": door.port()? })))
        .collect();
    let reason = "Certificates expiring";
    let date = super::time::date(ends_s * 1_000);
    Err(Failure::unhealthy(json!({ "status": "failed", "reason": reason, "expired": expired, "certificate_ends": date })))
}

/// Declares a queue, publishes into it and gets the message out again.
pub async fn aliveness(state: State<ManagementContext>, caller: Caller, Path(space): Path<String>) -> Answer {
    const QUEUE: &str = "aliveness-test";
    let at = || Path((space.clone(), QUEUE.to_owned()));
    caller.enter(&state, &space)?;
    let fields = |value: Value| match value {
        Value::Object(fields) => Fields(fields),
        _ => Fields::default(),
    };
    let transient = fields(json!({ "durable": false }));
    super::queues::declare(state.clone(), caller.clone(), at(), transient).await?;
    let message = json!({ "routing_key": QUEUE, "payload": "test_message", "payload_encoding": "string", "properties": {} });
    let exchange = Path((space.clone(), super::exchanges::DEFAULT.to_owned()));
    messages::publish(state.clone(), caller.clone(), exchange, fields(message)).await?;
    let wish = json!({ "count": 1, "ackmode": "ack_requeue_false", "encoding": "auto" });
    messages::get(state, caller, at(), fields(wish)).await?;
    ok()
}
