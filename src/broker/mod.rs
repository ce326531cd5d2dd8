//! Engine: exchanges, queues and consumers, in memory. RabbitMQ clients talk to it unchanged through `net::amqp`; the gateway's
//! calls come in by [`crate::model::call::CallBus`], which `Arc<Broker>` implements.
//!
//! ```text
//!   publisher's task                                  consumer's task
//!   Client::publish ──► runs of one route             Link::take ──► one write
//!   Client::flush   ──► Queue::offer (one lock a run) ──► Outbox (one lock a run) ──► one wake a batch
//! ```
//!
//! Knows nothing of sockets, tasks or HTTP: a door owns the socket and a [`Client`] (one connection's exclusive half) and drains
//! the [`Link`] (its shared half, into which deliveries are encoded). Time is handed in or read from the [`Clock`].
//!
//! Invariants:
//! - Locks are taken in the order topology, queue, outbox; none is held across an await or a system call.
//! - A message is in exactly one place: ready in its queue, unacked in one channel, kept by its queue as a dead letter that nobody takes,
//!   or waiting in an exchange that delays it. Nothing else holds it.
//! - What must happen outside the locks (wakes, calls' observers, attachments, happenings) is collected and done after them.
//!
//! [`Clock`]: crate::kernel::Clock

mod attach;
mod bus;
mod call;
mod client;
mod config;
mod core;
mod deadlines;
mod declare;
mod delay;
mod effects;
mod events;
mod exchanges;
mod firehose;
mod flow;
mod govern;
pub mod journey;
mod letters;
mod link;
mod loads;
mod manage;
mod message;
mod outbox;
mod peek;
mod queue;
mod record;
mod refused;
mod reply;
mod republish;
mod route;
mod routing;
mod shared;
mod tap;
#[cfg(test)]
mod tests;
mod topology;
mod trace;
mod vhost;
pub mod view;

pub use client::{Client, Consume, Failed, Got, Hold, Settle, Verdict};
pub use config::{Attachment, AttachmentHow, Attachments, BrokerConfig, ConnectionId, NoAttachments};
pub use core::Broker;
pub use declare::{Declared, DeleteRule};
pub use flow::Flow;
pub use govern::DefinitionWatch;
pub use link::{ConnectionInfo, Link, Negotiated, Parcel, Socket};
pub use manage::{Moved, Origin, RedrivePlan, Which, WouldRoute};
pub use peek::{Peek, Peeked};
pub use queue::Waits;
pub use refused::Refused;
pub use vhost::{Actor, Vhost};
