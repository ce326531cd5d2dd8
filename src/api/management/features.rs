//! Feature flags and deprecated features: what a RabbitMQ of this version would have switched on, which here is simply there.

use super::answer::{Answer, Failure, done, json};
use super::context::ManagementContext;
use super::guard::Caller;
use axum::extract::{Path, State};
use serde_json::{Value, json};

/// Name and description; all are enabled and cannot be disabled.
const FLAGS: [(&str, &str); 13] = [
    ("classic_mirrored_queue_version", "Support setting version for classic mirrored queues"),
    ("classic_queue_type_delivery_support", "Bug fix for classic queue deliveries using mixed versions"),
    ("detailed_queues_endpoint", "Add a detailed queues HTTP API endpoint. Reduce number of metrics in the default endpoint."),
    ("direct_exchange_routing_v2", "v2 direct exchange routing implementation"),
    ("drop_unroutable_metric", "Count unroutable publishes to be dropped in stats"),
    ("empty_basic_get_metric", "Count AMQP `basic.get` on empty queues in stats"),
    ("feature_flags_v2", "Feature flags subsystem V2"),
    ("implicit_default_bindings", "Default bindings are now implicit, instead of being stored in the database"),
    ("listener_records_in_ets", "Store listener records in ETS instead of Mnesia"),
    ("quorum_queue", "Support queues of type `quorum`"),
    ("tracking_records_in_ets", "Store tracking records in ETS instead of Mnesia"),
    ("user_limits", "Configure connection and channel limits for a user"),
    ("virtual_host_metadata", "Virtual host metadata (description, tags, etc)"),
];

/// Name, description, since what they are about is accepted.
const DEPRECATED: [(&str, &str); 5] = [
    ("classic_queue_mirroring", "Classic mirrored queues are deprecated."),
    ("global_qos", "usage of global QoS (shared prefetch per channel)"),
    ("management_metrics_collection", "Management metrics collection"),
    ("ram_node_type", "Nodes that keep nothing on disk"),
    ("transient_nonexcl_queues", "transient non-exclusive queues"),
];

pub async fn flags(caller: Caller) -> Answer {
    caller.must_administer()?;
    let entry = |(name, description): (&str, &str)| {
        json!({
            "name": name,
            "desc": description,
            "doc_url": "",
            "state": "enabled",
            "stability": "stable",
            "provided_by": "rabbit",
        })
    };
    Ok(json(FLAGS.into_iter().map(entry).collect::<Vec<_>>()))
}

pub async fn enable(caller: Caller, Path(name): Path<String>) -> Answer {
    caller.must_administer()?;
    match name == "all" || FLAGS.iter().any(|(known, _)| *known == name) {
        true => Ok(done()),
        false => Err(Failure::bad("unsupported")),
    }
}

fn deprecated_entry((name, description): &(&str, &str)) -> Value {
    json!({
        "name": name,
        "desc": description,
        "deprecation_phase": "permitted_by_default",
        "doc_url": "",
        "provided_by": "rabbit",
        "state": "permitted",
    })
}

pub async fn deprecated(caller: Caller) -> Answer {
    caller.must_administer()?;
    Ok(json(DEPRECATED.iter().map(deprecated_entry).collect::<Vec<_>>()))
}

/// Those that something that exists makes use of.
pub async fn deprecated_used(State(context): State<ManagementContext>, caller: Caller) -> Answer {
    caller.must_administer()?;
    let transient =
        context.broker.vhosts().iter().flat_map(|vhost| vhost.queues()).any(|queue| !queue.durable && !queue.exclusive);
    let global = context.broker.channels().iter().any(|channel| channel.prefetch_global > 0);
    let used = |name: &str| (name == "transient_nonexcl_queues" && transient) || (name == "global_qos" && global);
    Ok(json(DEPRECATED.iter().filter(|(name, _)| used(name)).map(deprecated_entry).collect::<Vec<_>>()))
}
