//! Engine: keeps and serves spans, log records and metrics.
