//! Bodies of answers.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;

/// What went wrong while an answer was being streamed. The door resets the stream: a cut answer never ends cleanly.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BodyCut(pub String);

pub type GatewayBody = UnsyncBoxBody<Bytes, BodyCut>;
