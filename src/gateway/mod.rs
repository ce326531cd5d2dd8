//! Engine: HTTP in, services behind. A request becomes a call on the bus or is streamed to a service that speaks HTTP; the
//! service contract (§1 to §6) decides how, to the letter.
//!
//! ```text
//!   door ─ handle ─> inbound (authority, path, hygiene) ─> matcher ─┬─> proxy ─> balance ─> upstream   an HTTP service
//!                                                                   └─> call  ─> CallBus ─> bus_reply   an AMQP consumer
//!          <───────────────── exchange (spans, counts, log) <──────────── reply │ failure ─> problem
//! ```
//!
//! Knows nothing of sockets it did not dial, of TLS or of AMQP: `net` hands it parsed requests, calls go through
//! [`crate::model::call::CallBus`], services that answer HTTP are found in [`crate::registry::Registry`].

mod authority;
mod balance;
mod body;
mod bus_reply;
mod call;
mod call_body;
mod config;
mod engine;
mod exchange;
mod failure;
mod fields;
mod hold;
mod hygiene;
mod inbound;
mod matcher;
mod path;
mod problem;
mod proxy;
mod reply;
pub mod stats;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
mod upgrade;
mod upstream;

pub use body::{BodyCut, GatewayBody};
pub use config::{Cidr, GatewayConfig};
pub use engine::{ClientConn, Gateway, Scheme};
