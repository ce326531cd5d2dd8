//! Bodies: those of answers, and the client's as it is passed on.

use crate::kernel::{Clock, Instant};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Full};
use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

/// What went wrong while an answer was being streamed. The door resets the stream: a cut answer never ends cleanly.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BodyCut(pub String);

pub type GatewayBody = UnsyncBoxBody<Bytes, BodyCut>;

/// A client's body, whatever connection it came over.
pub(super) type RequestBody = UnsyncBoxBody<Bytes, BoxError>;
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

pub(super) fn full(bytes: Bytes) -> GatewayBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn empty() -> GatewayBody {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// A body of no bytes that does not say so: the answer to HEAD, whose length would be another request's.
pub(super) fn silent() -> GatewayBody {
    Silent.boxed_unsync()
}

struct Silent;

impl Body for Silent {
    type Data = Bytes;
    type Error = BodyCut;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyCut>>> {
        Poll::Ready(None)
    }
}

/// Whose fault a failed client body was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientFault {
    /// Its framing is wrong (400).
    Malformed,
    /// It stopped coming (408).
    TooSlow,
    /// The client went away.
    Gone,
}

impl ClientFault {
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                match error.kind() {
                    io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => return ClientFault::Malformed,
                    io::ErrorKind::TimedOut => return ClientFault::TooSlow,
                    _ => {}
                }
            }
            cause = error.source();
        }
        ClientFault::Gone
    }
}

/// What the gateway sees of a body while it is being passed on.
#[derive(Debug)]
pub(super) struct BodyWatch {
    clock: Clock,
    moved_at_ns: AtomicU64,
    fault: AtomicU8,
}

impl BodyWatch {
    /// When the body last moved, if it is still coming.
    pub(super) fn moved_at(&self) -> Instant {
        Instant::from_nanos(self.moved_at_ns.load(Ordering::Relaxed))
    }

    pub(super) fn fault(&self) -> Option<ClientFault> {
        match self.fault.load(Ordering::Relaxed) {
            0 => None,
            1 => Some(ClientFault::Malformed),
            2 => Some(ClientFault::TooSlow),
            _ => Some(ClientFault::Gone),
        }
    }

    fn moved(&self) {
        self.moved_at_ns.store(self.clock.now().as_nanos(), Ordering::Relaxed);
    }

    fn failed(&self, fault: ClientFault) {
        let code = match fault {
            ClientFault::Malformed => 1,
            ClientFault::TooSlow => 2,
            ClientFault::Gone => 3,
        };
        self.fault.store(code, Ordering::Relaxed);
    }
}

/// A client's body on its way to an HTTP service: streamed, its trailers dropped (they end with the connection), its failures
/// remembered so that they are never taken for the service's.
pub(super) struct PassedOn {
    inner: RequestBody,
    watch: Arc<BodyWatch>,
}

impl PassedOn {
    pub(super) fn new(inner: RequestBody, clock: Clock) -> Self {
        let moved_at_ns = AtomicU64::new(clock.now().as_nanos());
        PassedOn { inner, watch: Arc::new(BodyWatch { clock, moved_at_ns, fault: AtomicU8::new(0) }) }
    }

    pub(super) fn watch(&self) -> Arc<BodyWatch> {
        self.watch.clone()
    }
}

impl Body for PassedOn {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
            self.watch.moved();
            match frame {
                Some(Ok(frame)) if frame.is_trailers() => {}
                Some(Err(error)) => {
                    self.watch.failed(ClientFault::of(error.as_ref()));
                    return Poll::Ready(Some(Err(error)));
                }
                other => return Poll::Ready(other),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
