//! The writing half: what waits in the outbox, to the socket.
//!
//! The connection's own task writes, and so may a publisher's task whose batch touched few connections. Whoever holds the lock
//! writes; another task that finds it taken signals the owner, who looks again.

use super::frames::FrameLog;
use crate::broker::{Link, Parcel, Socket};
use crate::kernel::pool;
use bytes::Bytes;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll, Waker, ready};
use tokio::io::AsyncWrite;

/// Slices of one vectored write.
const SLICES_MAX: usize = 32;

pub(super) struct Writer<W>(Mutex<State<W>>);

struct State<W> {
    io: W,
    parcel: Parcel,
    /// Bytes of `parcel.bytes` that are sent.
    sent: usize,
    /// Entries of `parcel.large` that are sent, and bytes of the next one.
    large_sent: (usize, usize),
    failed: bool,
    log: Option<Box<FrameLog>>,
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    pub fn new(io: W, log: Option<Box<FrameLog>>) -> Self {
        Writer(Mutex::new(State { io, parcel: Parcel::default(), sent: 0, large_sent: (0, 0), failed: false, log }))
    }

    /// Queues bytes of a connection that has no outbox yet.
    pub fn push(&self, bytes: &[u8]) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.parcel.bytes.capacity() == 0 {
            state.parcel.bytes = pool::take();
        }
        state.parcel.bytes.extend_from_slice(bytes);
        if let Some(log) = &mut state.log {
            log.pass(bytes);
        }
    }

    /// Sends everything that waits. Ready when nothing is left, or the socket failed.
    // HOT
    pub fn poll_drain(&self, link: Option<&Arc<Link>>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).poll_drain(link, context)
    }

    pub fn poll_shutdown(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner).io).poll_shutdown(context)
    }
}

impl<W: AsyncWrite + Unpin> State<W> {
    // HOT
    fn poll_drain(&mut self, link: Option<&Arc<Link>>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let result = ready!(self.poll_parcel(context));
            (self.sent, self.large_sent) = (0, (0, 0));
            if let Err(error) = result {
                self.failed = true;
                self.parcel = Parcel::default();
                return Poll::Ready(Err(error));
            }
            self.parcel.bytes.clear();
            self.parcel.large.clear();
            if !link.is_some_and(|link| link.take(&mut self.parcel)) {
                self.rest(link);
                return Poll::Ready(Ok(()));
            }
            if let Some(log) = &mut self.log {
                log_parcel(log, &self.parcel);
            }
        }
    }

    /// Nothing is left: the buffer goes to whoever writes next. One that grew stays as long as that goes on.
    // HOT
    #[inline]
    fn rest(&mut self, link: Option<&Arc<Link>>) {
        match link {
            Some(link) if self.parcel.bytes.capacity() > pool::KEEP_BYTES_MAX || self.parcel.large.capacity() > 0 => link.grew(),
            _ => pool::give(std::mem::take(&mut self.parcel.bytes)),
        }
    }

    // HOT
    fn poll_parcel(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.failed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        while self.sent < self.parcel.bytes.len() {
            let count = if self.large_sent.0 == self.parcel.large.len() {
                ready!(Pin::new(&mut self.io).poll_write(context, &self.parcel.bytes[self.sent..]))?
            } else {
                ready!(self.poll_vectored(context))?
            };
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.advance(count);
        }
        // Streams that buffer (TLS) must let go of what they hold.
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_vectored(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); SLICES_MAX];
        let mut count = 0;
        let (mut at, mut skip) = (self.sent, self.large_sent.1);
        for (position, large) in &self.parcel.large[self.large_sent.0..] {
            if count + 2 >= SLICES_MAX {
                break;
            }
            if at < *position {
                slices[count] = IoSlice::new(&self.parcel.bytes[at..*position]);
                count += 1;
                at = *position;
            }
            slices[count] = IoSlice::new(&large[skip..]);
            count += 1;
            skip = 0;
        }
        let next = self.parcel.large[self.large_sent.0..].iter().map(|(position, _)| *position).find(|position| *position > at);
        slices[count] = IoSlice::new(&self.parcel.bytes[at..next.unwrap_or(self.parcel.bytes.len())]);
        Pin::new(&mut self.io).poll_write_vectored(context, &slices[..=count])
    }

    fn advance(&mut self, mut count: usize) {
        while let Some((position, large)) = self.parcel.large.get(self.large_sent.0) {
            let before = position - self.sent;
            if count < before {
                break;
            }
            count -= before;
            self.sent = *position;
            let left = large.len() - self.large_sent.1;
            if count < left {
                self.large_sent.1 += count;
                return;
            }
            count -= left;
            self.parcel.large[self.large_sent.0].1 = Bytes::new();
            self.large_sent = (self.large_sent.0 + 1, 0);
        }
        self.sent += count;
    }
}

#[cold]
fn log_parcel(log: &mut FrameLog, parcel: &Parcel) {
    let mut at = 0;
    for (position, large) in &parcel.large {
        log.pass(&parcel.bytes[at..*position]);
        log.pass(large);
        at = *position;
    }
    log.pass(&parcel.bytes[at..]);
}

impl<W: AsyncWrite + Unpin + Send> Socket for Writer<W> {
    fn write_now(&self, link: &Arc<Link>) {
        let mut state = match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Whoever writes may have looked at the outbox for the last time already.
            Err(TryLockError::WouldBlock) => return link.signal(),
        };
        let mut context = Context::from_waker(Waker::noop());
        match state.poll_drain(Some(link), &mut context) {
            Poll::Ready(Ok(())) => {}
            // The owner waits for the socket with its own waker, or finds that it failed.
            Poll::Pending | Poll::Ready(Err(_)) => link.signal(),
        }
    }

    fn rest(&self) {
        if let Ok(mut state) = self.0.try_lock()
            && state.parcel.bytes.is_empty()
        {
            state.parcel = Parcel::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Takes at most `step` bytes a call, in one slice or many.
    struct Slow {
        step: usize,
        got: Vec<u8>,
    }

    impl AsyncWrite for Slow {
        fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            let count = bytes.len().min(self.step);
            self.got.extend_from_slice(&bytes[..count]);
            Poll::Ready(Ok(count))
        }
        fn poll_write_vectored(mut self: Pin<&mut Self>, _: &mut Context<'_>, slices: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
            let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
            let count = all.len().min(self.step);
            self.got.extend_from_slice(&all[..count]);
            Poll::Ready(Ok(count))
        }
        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    proptest! {
        #[test]
        fn references_go_out_at_their_place_however_the_socket_cuts(
            bytes in proptest::collection::vec(any::<u8>(), 1..60),
            places in proptest::collection::btree_set(0usize..59, 0..40),
            lengths in proptest::collection::vec(1usize..20, 40),
            step in 1usize..50,
        ) {
            let large: Vec<(usize, Bytes)> = places
                .iter()
                .filter(|place| **place < bytes.len())
                .zip(lengths)
                .map(|(place, length)| (*place, Bytes::from(vec![b'#'; length])))
                .collect();
            let mut expected = Vec::new();
            for (at, byte) in bytes.iter().enumerate() {
                large.iter().filter(|(place, _)| *place == at).for_each(|(_, body)| expected.extend_from_slice(body));
                expected.push(*byte);
            }
            let writer = Writer::new(Slow { step, got: Vec::new() }, None);
            writer.0.lock().expect("free").parcel = Parcel { bytes, large };
            let mut context = Context::from_waker(Waker::noop());
            prop_assert!(matches!(writer.poll_drain(None, &mut context), Poll::Ready(Ok(()))));
            prop_assert_eq!(&writer.0.lock().expect("free").io.got, &expected);
        }
    }
}
