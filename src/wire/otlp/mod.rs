//! OTLP 1.x, protobuf and JSON, to `model::signal`. Pure: bytes in, signals out.
//!
//! ```text
//!   Export*ServiceRequest (protobuf | JSON) ── traces | logs | metrics ──▶ Decoded { items, rejected, why }
//! ```
//!
//! The message types are the `opentelemetry-proto` crate's; JSON first passes [`json`], which mends what its derived reader refuses
//! although senders write it. Items that cannot be understood (an id of the wrong length) are rejected one by one and counted, for
//! the answer's `partial_success`; a body that is no OTLP at all is an error.

mod json;
mod logs;
mod metrics;
mod resource;
mod traces;

pub use opentelemetry_proto::tonic::collector::logs::v1 as logs_v1;
pub use opentelemetry_proto::tonic::collector::metrics::v1 as metrics_v1;
pub use opentelemetry_proto::tonic::collector::trace::v1 as traces_v1;

pub use logs::{decode_logs, log_records};
pub use metrics::{decode_metrics, metrics};
pub use traces::{decode_spans, spans};

use prost::Message;
use serde::de::DeserializeOwned;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Protobuf,
    Json,
}

/// What a request held.
#[derive(Debug)]
pub struct Decoded<T> {
    pub items: Vec<T>,
    /// Items that could not be taken, and why the first of them could not.
    pub rejected: u64,
    pub why: Option<&'static str>,
}

impl<T> Decoded<T> {
    fn new() -> Self {
        Decoded { items: Vec::new(), rejected: 0, why: None }
    }

    fn reject(&mut self, count: u64, why: &'static str) {
        self.rejected += count;
        self.why.get_or_insert(why);
    }
}

/// The body is not what its content type says.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("the body is not an OTLP protobuf message: {0}")]
    Protobuf(#[from] prost::DecodeError),
    #[error("the body is not OTLP JSON: {0}")]
    Json(#[from] serde_json::Error),
}

fn request<T: Message + Default + DeserializeOwned>(body: &[u8], encoding: Encoding) -> Result<T, DecodeError> {
    match encoding {
        Encoding::Protobuf => Ok(T::decode(body)?),
        Encoding::Json => {
            let mut value = serde_json::from_slice(body)?;
            json::mend(&mut value);
            Ok(serde_json::from_value(value)?)
        }
    }
}
