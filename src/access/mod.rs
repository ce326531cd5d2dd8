//! Engine: who may come in.
