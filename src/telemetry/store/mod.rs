//! Rows in bounded memory. Knows nothing of queries, sockets or time.

pub mod logs;
pub mod names;
pub mod origin;
pub mod pack;
pub mod points;
pub mod series;
pub mod share;
pub mod traces;
