//! Floor 4: the one way to change what exists.
//!
//! ```text
//!   wanted ─► plan (diff with what is) ─► check (no effect) ─► apply, step by step ─► happening, audit
//!                                                               └─ a step fails: the ones before it are undone in reverse
//! ```
//!
//! Sources are the API, the configuration file and, for services, a reload. Engines are reached through [`Ports`], which wiring
//! implements; nothing here knows AMQP, HTTP or processes. Spaces, users, permissions, policies and parameters are entries of the
//! catalogue, kept here; engines are given what of it concerns them. Queues, exchanges and bindings are the broker's: an AMQP
//! declare changes it itself, so a plan always compares with what really is there.

mod accounts;
mod apply;
mod audit;
mod check;
mod document;
mod document_catalog;
mod entries;
mod parameters;
mod plan;
mod policies;
mod policy_set;
mod spaces;

pub use accounts::UserWish;
pub use apply::{AccountsPort, Control, Ports, ServicePort, TopologyPort};
pub use audit::{AuditEntry, AuditPage};
pub use document::{BindingDocument, Document, ExchangeDocument, QueueDocument, arguments};
pub use entries::Put;
pub use plan::{Plan, PlannedChange, Scope};
pub use policies::check_policy;
pub use policy_set::{AppliedPolicies, PolicySet};
pub use spaces::LimitsOfSpace;
