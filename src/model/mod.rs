//! Floor 1: plain data that several floors speak of. No I/O, no locks, no sockets; values and the rules that need nothing else.

pub mod account;
pub mod broker_header;
pub mod call;
pub mod catalog;
pub mod change;
pub mod config;
pub mod definitions;
pub mod door;
pub mod emit;
pub mod happening;
pub mod identity;
pub mod policy;
pub mod policy_spec;
pub mod refusal;
pub mod service;
pub mod service_spec;
pub mod signal;
pub mod space;
pub mod table;
pub mod topology;
pub mod trace_context;
