//! Engine: HTTP in, services behind. A request becomes a call on the bus or is streamed to a service that speaks HTTP; the
//! service contract (§1 to §6) decides how, to the letter.
//!
//! Knows nothing of sockets it did not dial, of TLS or of AMQP: `net` hands it parsed requests, calls go through
//! [`crate::model::call::CallBus`], services that answer HTTP are found in [`crate::registry::Registry`].

mod body;
mod config;
mod engine;
pub mod stats;

pub use body::GatewayBody;
pub use config::{Cidr, GatewayConfig};
pub use engine::{ClientConn, Gateway, Scheme};
