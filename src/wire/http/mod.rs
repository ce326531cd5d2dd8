//! What must be true of an HTTP/1.x request before a server built on a lenient parser may see it.
//!
//! The HTTP library accepts messages that two parties on one connection may read differently: Content-Length beside
//! Transfer-Encoding, lines that end with LF alone, codings it does not know (RFC 9112 §6.3, §11.2). It also hides them: by the
//! time a handler runs, the evidence is gone. A [`Guard`] therefore reads along, one request after the other, in front of the
//! library; it decides what may pass and never changes a byte.
//!
//! ```text
//!         ┌────────── request complete ───────────┐
//!         v                                       │
//!       head ── Content-Length: n ──> body(n) ────┤
//!         │ ─── chunked ────────────> chunks ─────┤
//!         │ ─── neither ──────────────────────────┘
//!         │ ─── ambiguous ──> refused: nothing passes any more
//!       chunks ── malformed ──> broken: nothing passes any more
//! ```
//!
//! Knows no sockets, no time and no routes. Host and target semantics are the gateway's, which sees them in the parsed request.

mod chunk;
mod guard;
mod head;

pub use guard::{Expecting, Guard, Scan, Stop};
pub use head::{FIELDS_MAX, HEAD_BYTES_MAX, REQUEST_LINE_BYTES_MAX, Refused};
