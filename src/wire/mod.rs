//! Floor 2: codecs and protocol sessions. Bytes in, events out; no sockets, no clocks, no locks.

pub mod amqp;
pub mod http;
pub mod otlp;
pub mod sniff;
pub mod trace;
