//! Engine: runs services as processes, captures what they print, restarts what ends, and lets nothing outlive reactor.
//!
//! ```text
//!   definitions ──▶ fleet ──▶ one task per instance ──▶ core: what happens next (pure)
//!                    │            │    │    │
//!                  graph        probe  │   output ──▶ console, log records
//!            (who waits for whom)   process ══ guard ── the program and all its descendants
//! ```
//!
//! Knows nothing of brokers, HTTP routing or files of configuration: it is given definitions, writes to the registry which
//! instances exist and where they answer, and asks [`Doors`] how a program reaches this reactor.
//!
//! Invariants: never two live processes for one instance; "stopped" means that no descendant is left; a service never waits for
//! its output to be read; `kill -9` of reactor leaves nothing running after two seconds.

mod board;
mod console;
mod core;
mod env;
mod fleet;
mod graph;
mod guard;
mod instance;
mod line;
mod output;
mod platform;
mod port;
mod probe;
mod process;
mod restart;
mod usage;
mod view;

pub use console::{Console, ConsoleLine, ConsolePage, LineKind};
pub use env::{Connections, Doors, Identity};
pub use fleet::{Command, Supervisor, SupervisorConfig};
pub use guard::{guard_command, guard_main};
pub use view::{InstanceView, Origin, ServiceView, StartTimes, Variable};
