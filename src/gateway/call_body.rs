//! Bodies of calls: read whole before the call is made, within a limit each and a budget together (service contract §2).

use super::body::{ClientFault, RequestBody};
use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of all call bodies in flight.
#[derive(Debug)]
pub(super) struct Budget {
    used: AtomicUsize,
    bytes_max: usize,
}

impl Budget {
    pub(super) fn new(bytes_max: usize) -> Arc<Self> {
        Arc::new(Budget { used: AtomicUsize::new(0), bytes_max })
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

/// A part of the budget, given back when dropped.
#[derive(Debug)]
struct Reserved {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reserved {
    fn grow(&mut self, bytes: usize) -> Result<(), BodyRefused> {
        if bytes > 0 && !self.budget.take(bytes) {
            return Err(BodyRefused::Exhausted);
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A whole body; its bytes count as in flight until it is dropped.
#[derive(Debug)]
pub(super) struct CallBody {
    pub(super) bytes: Bytes,
    _reserved: Reserved,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BodyRefused {
    TooLarge,
    Exhausted,
    Client(ClientFault),
}

/// Reads a body to its end. A declared length is checked, and its room taken, before the first byte; an unknown one is read up to
/// `bytes_max`.
pub(super) async fn read(
    mut body: RequestBody,
    declared: Option<u64>,
    bytes_max: usize,
    budget: &Arc<Budget>,
) -> Result<CallBody, BodyRefused> {
    let mut reserved = Reserved { budget: budget.clone(), bytes: 0 };
    if body.is_end_stream() {
        return Ok(CallBody { bytes: Bytes::new(), _reserved: reserved });
    }
    if let Some(declared) = declared {
        let declared = usize::try_from(declared).ok().filter(|bytes| *bytes <= bytes_max).ok_or(BodyRefused::TooLarge)?;
        reserved.grow(declared)?;
    }
    let (mut first, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| BodyRefused::Client(ClientFault::of(error.as_ref())))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = first.len() + rest.len() + data.len();
        if length > bytes_max {
            return Err(BodyRefused::TooLarge);
        }
        reserved.grow(length.saturating_sub(reserved.bytes))?;
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    let bytes = if rest.is_empty() { first } else { [&first[..], &rest[..]].concat().into() };
    Ok(CallBody { bytes, _reserved: reserved })
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::stream;
    use http_body::Frame;
    use http_body_util::{Full, StreamBody};

    fn body(parts: &[&'static str]) -> RequestBody {
        let frames: Vec<_> = parts.iter().map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes())))).collect();
        StreamBody::new(stream::iter(frames)).boxed_unsync()
    }

    #[tokio::test]
    async fn a_body_of_unknown_length_is_read_up_to_the_limit() {
        let budget = Budget::new(100);
        let whole = read(body(&["ab", "cd", "e"]), None, 5, &budget).await.expect("five bytes");
        assert_eq!(whole.bytes, "abcde");
        assert_eq!(budget.used(), 5);
        drop(whole);
        assert_eq!(budget.used(), 0);
        assert_eq!(read(body(&["abc", "def"]), None, 5, &budget).await.expect_err("six bytes"), BodyRefused::TooLarge);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_declared_length_is_refused_before_anything_is_read() {
        let budget = Budget::new(10);
        assert_eq!(read(body(&["ab"]), Some(6), 5, &budget).await.expect_err("six declared"), BodyRefused::TooLarge);
        let held = read(body(&["ab"]), Some(2), 5, &budget).await.expect("small");
        assert_eq!(read(body(&["abcde"]), Some(9), 9, &budget).await.expect_err("2 + 9 > 10"), BodyRefused::Exhausted);
        drop(held);
        assert!(read(body(&["abcde"]), Some(9), 9, &budget).await.is_ok());
    }

    #[tokio::test]
    async fn bodies_together_are_bounded_while_they_are_read() {
        let budget = Budget::new(4);
        assert_eq!(read(body(&["abc", "de"]), None, 50, &budget).await.expect_err("five bytes"), BodyRefused::Exhausted);
        assert_eq!(budget.used(), 0);
    }

    #[tokio::test]
    async fn a_body_in_one_piece_is_not_copied() {
        let bytes = Bytes::from_static(b"whole");
        let body = Full::new(bytes.clone()).map_err(|never| match never {}).boxed_unsync();
        let read = read(body, Some(5), 10, &Budget::new(10)).await.expect("small");
        assert_eq!(read.bytes.as_ptr(), bytes.as_ptr());
    }
}
