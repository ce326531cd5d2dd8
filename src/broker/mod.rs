//! Engine: exchanges, queues and consumers.
