//! AMQP 0-9-1 with RabbitMQ's extensions: the codec in both directions and the server side of a connection as a state machine.
//!
//! [`Session`] turns bytes into [`Event`]s that borrow from the read buffer; [`encode`] turns methods and messages into bytes.
//! [`method`] is the one table of all methods, [`properties`] and [`table`] read what messages carry without copying it, and
//! [`reply`] has RabbitMQ's codes and words.

mod channel;
mod content;
pub mod encode;
mod event;
pub mod frame;
mod handshake;
#[cfg(test)]
mod laws;
pub mod method;
pub mod primitive;
pub mod properties;
pub mod reply;
mod session;
pub mod table;

pub use event::{Body, Event, Finish, Login, Publish};
pub use handshake::{Capabilities, Tune, server_properties};
pub use method::{Encode, Method, MethodId};
pub use primitive::{LongStr, Malformed};
pub use properties::{Properties, PropertyList};
pub use reply::{Reach, Reply, ReplyCode};
pub use session::{Session, SessionConfig};
pub use table::{RawField, RawTable};
