//! Floor 6: the composition root. Config in, a running process out: build the engines, wire them, bind every door, start, and
//! take it all down again in order.
//!
//! The only place where engines meet (`wiring`). Nothing here is a global: two nodes can run in one process, except that the
//! observation sink (`model::emit`) belongs to the first.

mod announce;
mod banner;
mod build;
mod busy;
pub mod config;
mod doors;
mod files;
pub mod logs;
mod metrics;
mod ports;
mod sampler;
mod signals;
mod start;
mod wiring;

pub use banner::{StartBlock, Style, host as url_host};
pub use build::GUARD_COMMAND;
pub use signals::Signals;
pub use start::{Node, StartError};
