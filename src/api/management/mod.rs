//! RabbitMQ's management HTTP API and Prometheus metrics, as its tools and clients know them.
//!
//! ```text
//!   request ─► guard (Basic, Origin, Host, tags) ─► handler ─► broker views, control ─► Row (only wanted fields) ─► Listing
//!                                                     ▲
//!   once a second: Samples::beat ─► histories ────────┘ Shaper: rates and samples
//! ```
//!
//! Every number is one that an engine counted or holds; what reactor does not have (Erlang processes, mirrors, nodes) is left out,
//! or empty where clients insist on a field. Changes go through `control` like everybody's, with the permissions of who asks.
//! Knows nothing of sockets and frames beyond one message by hand.

mod answer;
mod bindings;
mod body;
mod channels;
mod connections;
mod context;
mod definitions;
mod exchanges;
mod features;
mod guard;
mod health;
mod history;
mod list;
mod messages;
mod nodes;
mod overview;
mod page;
mod policies;
mod prometheus;
mod queues;
mod routes;
mod samples;
mod stats;
mod time;
mod users;
mod vhosts;

pub use context::{Facts, ManagementContext};
pub use prometheus::prometheus_router;
pub use routes::router;
pub use samples::Samples;
