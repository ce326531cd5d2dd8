//! reactor: a developer runtime in one process.
//!
//! The floors of the building, top to bottom, are `cli`, `node`, `net` and `api`, `control`, the engines (`access`, `broker`,
//! `gateway`, `supervisor`, `telemetry`), `wire`, `registry`, `model` and `kernel`. A floor imports only floors below it and
//! engines never import each other; `ARCHITECTURE.md` is the map and `tests/tidy.rs` the guard.

pub mod access;
pub mod api;
pub mod broker;
pub mod cli;
pub mod control;
pub mod gateway;
pub mod kernel;
pub mod model;
pub mod net;
pub mod node;
pub mod registry;
pub mod supervisor;
pub mod telemetry;
pub mod wire;
