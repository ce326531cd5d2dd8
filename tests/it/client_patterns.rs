//! RabbitMQ's tutorial patterns as their users write them: pika and amqplib programs of `tests/clients` against the real binary.
//! The same patterns through lapin are in `amqp_lapin`.

use crate::support::{Reactor, node_client, python_client};
use std::process::Command;

/// Runs a client program to its end; it exits with 0 only when the pattern held.
fn holds(mut program: Command, pattern: &str) {
    let reactor = Reactor::start("");
    let output = program.arg(reactor.amqp_url()).arg(pattern).output();
    let output = output.unwrap_or_else(|error| panic!("{program:?}: {error}; tests/run installs it"));
    assert!(output.status.success(), "{program:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

fn pika(pattern: &str) {
    holds(python_client("patterns.py"), pattern);
}

fn amqplib(pattern: &str) {
    holds(node_client("patterns.js"), pattern);
}

#[test]
fn pika_workers_share_a_queue_by_prefetch_and_inherit_what_was_not_acked() {
    pika("work_queues");
}

#[test]
fn pika_subscribers_each_get_a_copy() {
    pika("publish_subscribe");
}

#[test]
fn pika_subscribers_pick_by_key() {
    pika("routing");
}

#[test]
fn pika_subscribers_pick_by_pattern() {
    pika("topics");
}

#[test]
fn pika_clients_call_servers_over_a_queue_and_over_direct_reply_to() {
    pika("rpc");
}

#[test]
fn pika_publishers_learn_of_every_message_before_the_next() {
    pika("confirms_one_by_one");
}

#[test]
fn pika_publishers_learn_of_a_thousand_messages_while_they_publish() {
    pika("confirms_async");
}

#[test]
fn amqplib_workers_share_a_queue_by_prefetch_and_inherit_what_was_not_acked() {
    amqplib("work_queues");
}

#[test]
fn amqplib_subscribers_each_get_a_copy() {
    amqplib("publish_subscribe");
}

#[test]
fn amqplib_subscribers_pick_by_key() {
    amqplib("routing");
}

#[test]
fn amqplib_subscribers_pick_by_pattern() {
    amqplib("topics");
}

#[test]
fn amqplib_clients_call_servers_over_a_queue_and_over_direct_reply_to() {
    amqplib("rpc");
}

#[test]
fn amqplib_publishers_learn_of_every_message_before_the_next() {
    amqplib("confirms_one_by_one");
}

#[test]
fn amqplib_publishers_learn_of_a_batch_before_the_next() {
    amqplib("confirms_in_batches");
}

#[test]
fn amqplib_publishers_learn_of_a_thousand_messages_in_order() {
    amqplib("confirms_async");
}
