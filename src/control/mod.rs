//! Floor 4: the one way to change what exists.
//!
//! ```text
//!   wanted ─► plan (diff with what is) ─► check (no effect) ─► apply, step by step ─► happening, audit
//!                                                               └─ a step fails: the ones before it are undone in reverse
//! ```
//!
//! Sources are the API, the configuration file and, for services, a reload. Engines are reached through [`TopologyPort`] and
//! [`ServicePort`], which wiring implements; nothing here knows AMQP, HTTP or processes. An AMQP declare changes the broker
//! itself; because nothing is on disk yet, the broker is the catalogue: a plan always compares with what really is there.

mod apply;
mod audit;
mod document;
mod plan;

pub use apply::{Control, ServicePort, TopologyPort};
pub use audit::{AuditEntry, AuditPage};
pub use document::{BindingDocument, Document, ExchangeDocument, QueueDocument, SpaceDocument, arguments};
pub use plan::{Plan, PlannedChange, Scope};
