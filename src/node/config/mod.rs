//! From a file, the environment and flags to a [`Config`]: a pure function, run before a port is bound and by `reactor check`.
//!
//! ```text
//!   defaults  <  reactor.toml  <  REACTOR_…  <  flags        every problem is collected, none stops the reading
//! ```

mod problem;
mod reader;
mod resolve;
mod services;
pub mod settings;
mod sources;
mod space_settings;
mod spaces;
mod users;

pub use problem::{Origin, Problem, nearest};
pub use reader::FileText;
pub use resolve::{Flags, Inputs, Place, Resolved, resolve};
pub use sources::{gather, read_file};
