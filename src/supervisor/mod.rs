//! Engine: runs services as processes.
