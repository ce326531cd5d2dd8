//! Floor 5: doors. Listeners, TLS, sniffing and the protocol connections.

pub mod amqp;
pub mod http;
pub mod otlp;
pub mod tls;
