//! What the stream of signals adds up to while it passes: values per service, the tape, when something is coloured.

pub mod services;
pub mod spread;
pub mod tape;
pub mod tone;
pub mod window;
