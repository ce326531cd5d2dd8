//! Engines' snapshots as the JSON that `ui/src/api/types.ts` describes. REST handlers and the node's sampler share it.
//!
//! Times are Unix microseconds (`_us`), durations nanoseconds (`_ns`), rates per second.

mod node;

pub use node::{Door, Version};
