//! Engine: HTTP in, services behind.
