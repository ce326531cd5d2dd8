//! Floor 0: what every other floor stands on. Time, randomness, ids, sizes, limits, tasks and counters; no knowledge of
//! messages, services or HTTP.

pub mod clock;
pub mod count;
pub mod dial;
pub mod drain;
pub mod limit;
pub mod name;
pub mod pattern;
pub mod platform;
pub mod pool;
pub mod ring;
pub mod rng;
pub mod size;
pub mod stats;
pub mod task;

pub use clock::{Clock, Instant};
pub use count::counted;
pub use drain::Drain;
