//! Engine: keeps spans, log records and metric points in bounded memory and answers questions about them.
//!
//! ```text
//!   model::emit ─┐                 ┌─ store: traces · logs · series (bytes per signal, a fair share per service)
//!   OTLP doors ──┼─ inbox ─ pump ──┼─ rollups: rate, errors, duration per service · tape · topology
//!   own events ──┘  (bounded)      └─ live: cursors into the same store; state maps set by the sampler
//! ```
//!
//! Handing something in costs one short lock; everything else happens in [`Telemetry::pump`], which the task of
//! [`Telemetry::run`] and every query call. A query therefore sees all that was accepted before it. Knows nothing of sockets,
//! brokers or processes.
//!
//! Invariants: `received = kept + evicted + dropped` for each signal, at every moment; a row's sequence number never changes
//! and is never reused; bytes kept never exceed the configured budget by more than one row.

mod core;
mod engine;
mod happenings;
mod inbox;
pub mod live;
mod map;
pub mod own_logs;
pub mod query;
mod rollup;
mod sample;
mod sink;
mod store;
mod tails;
pub mod traffic;
pub mod view;
mod work;

pub use engine::{Telemetry, TelemetryConfig};
pub use inbox::Signal;
