//! W3C Trace Context (level 1): `traceparent` and `tracestate`.

use super::signal::{SpanId, TraceId};
use crate::kernel::rng::{self, Rng};
use std::fmt;

/// The part of `traceparent` that matters: `00-{trace_id}-{span_id}-{flags}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: TraceId,
    pub span_id: SpanId,
    pub sampled: bool,
}

impl TraceContext {
    /// A fresh root with ids nobody can guess.
    pub fn fresh() -> Self {
        TraceContext { trace_id: TraceId(rng::secure()), span_id: SpanId(rng::secure()), sampled: true }
    }

    /// A fresh root from a cheap generator, for the message path.
    pub fn fresh_from(rng: &mut Rng) -> Self {
        let mut trace = [0; 16];
        trace[..8].copy_from_slice(&rng.draw().to_be_bytes());
        trace[8..].copy_from_slice(&(rng.draw() | 1).to_be_bytes());
        TraceContext { trace_id: TraceId(trace), span_id: SpanId((rng.draw() | 1).to_be_bytes()), sampled: true }
    }

    /// The same trace with a new span id: what is sent on to whoever is called.
    pub fn child(self) -> Self {
        TraceContext { span_id: SpanId(rng::secure()), ..self }
    }

    /// Parses a `traceparent` field. Unknown future versions are read by their first four fields; `ff` and malformed ones are
    /// `None`, upon which the specification asks for a new trace.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_matches([' ', '\t']);
        let bytes = text.as_bytes();
        if bytes.len() < 55 || !text.is_ascii() || bytes[2] != b'-' || bytes[35] != b'-' || bytes[52] != b'-' {
            return None;
        }
        let lower_hex = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let (version, trace, span, flags) = (&text[..2], &text[3..35], &text[36..52], &text[53..55]);
        if ![version, trace, span, flags].iter().all(|part| lower_hex(part)) || version == "ff" {
            return None;
        }
        if (version == "00" && bytes.len() != 55) || (bytes.len() > 55 && bytes[55] != b'-') {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok()?;
        Some(TraceContext { trace_id: TraceId::parse(trace)?, span_id: SpanId::parse(span)?, sampled: flags & 1 == 1 })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{}-{}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_valid_parent_round_trips() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(TraceContext::parse(text).expect("valid").to_string(), text);
    }

    #[test]
    fn a_later_version_is_read_by_its_first_fields() {
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-what-the-future-holds";
        assert!(TraceContext::parse(later).is_some());
    }

    #[test]
    fn malformed_parents_start_a_new_trace() {
        for bad in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01.x",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }
}
