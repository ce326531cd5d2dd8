//! Floor 5: doors. Listeners, TLS, sniffing and the protocol connections.
//!
//! `listener` binds every port before the first connection is accepted, so that a start either stands whole or fails with every
//! reason at once; `conn` runs the accept loops and hands each stream to its door's [`Serve`].

pub mod amqp;
pub mod bodies;
pub mod conn;
pub mod http;
mod linger;
pub mod listener;
pub mod otlp;
pub mod peek;
pub mod proxy;
pub mod tls;
pub mod validity;
pub mod web;

pub use conn::{Accepted, Acceptor, Serve};
pub use listener::{BindPlan, Bound, Failure, bind_all};
