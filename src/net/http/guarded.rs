//! A stream that the HTTP/1.1 library reads through a [`Guard`]: only requests that can be read in one way reach it.
//!
//! A refused request is replaced by a harmless one, so that the refusal is answered in its turn behind the answers to the requests
//! before it, by the same code as every other answer, and the connection closes behind it. [`Notes`] tell the service which of its
//! requests that is. Also kept here, because the guard knows what is awaited: the time limits of a connection, and a close that
//! lets a client that is still sending read its answer (an unread byte at close resets the connection).
//!
//! Why not in the library: it offers no switch for these, and a handler no longer sees what was wrong (both lengths, the kind of
//! line end, the codings).

use crate::kernel::{Clock, Instant};
use crate::net::linger::Linger;
use crate::wire::http::{Expecting, Guard, Refused, Stop};
use bytes::{Buf as _, Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;
use tokio_util::io::poll_read_buf;

/// From the first byte of a head to its last.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Between two requests, and between two pieces of a body.
const IDLE_LIMIT: Duration = Duration::from_secs(60);
/// Stands in for a refused request.
const STAND_IN: &[u8] = b"GET /.reactor/refused HTTP/1.1\r\nHost: refused\r\nConnection: close\r\n\r\n";

/// What the stream and the service tell each other about one connection.
#[derive(Debug, Default)]
pub(super) struct Notes {
    begun: AtomicU64,
    ended: AtomicU64,
    left_http: AtomicBool,
    /// Which request, counted from zero, is a stand-in, and for what.
    refused: Mutex<Option<(u64, Refused)>>,
}

impl Notes {
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        let ordinal = self.begun.fetch_add(1, Ordering::Relaxed);
        InFlight { notes: self.clone(), ordinal }
    }

    pub(super) fn refused(&self, ordinal: u64) -> Option<Refused> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.as_ref().filter(|(of, _)| *of == ordinal).map(|(_, refused)| refused.clone())
    }

    /// What follows is not HTTP: the service agreed to an upgrade.
    pub(super) fn leave_http(&self) {
        self.left_http.store(true, Ordering::Release);
    }

    fn is_answering(&self) -> bool {
        self.begun.load(Ordering::Relaxed) != self.ended.load(Ordering::Relaxed)
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct InFlight {
    notes: Arc<Notes>,
    ordinal: u64,
}

impl InFlight {
    pub(super) fn ordinal(&self) -> u64 {
        self.ordinal
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.notes.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// A response body whose request is in flight until it was sent.
pub(super) struct Tracked<B> {
    body: B,
    _in_flight: InFlight,
}

impl<B> Tracked<B> {
    pub(super) fn new(body: B, in_flight: InFlight) -> Self {
        Tracked { body, _in_flight: in_flight }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Tracked<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pub(super) struct Guarded<S> {
    inner: S,
    guard: Guard,
    notes: Arc<Notes>,
    clock: Clock,
    /// Bytes read and not handed on: `passable` ones first, then the beginning of a head.
    held: BytesMut,
    passable: usize,
    /// Held bytes came that the guard did not see.
    is_unseen: bool,
    broken: Option<io::ErrorKind>,
    /// When what is awaited began to be awaited.
    since: Instant,
    timer: Pin<Box<Sleep>>,
    timer_at: Instant,
    linger: Linger,
}

impl<S> Guarded<S> {
    /// Guards an HTTP/1.x conversation that began with `first`.
    pub(super) fn new(inner: S, first: BytesMut, clock: &Clock, notes: Arc<Notes>) -> Self {
        let now = clock.now();
        Guarded {
            inner,
            guard: Guard::new(),
            notes,
            clock: clock.clone(),
            is_unseen: !first.is_empty(),
            held: first,
            passable: 0,
            broken: None,
            since: now,
            timer: Box::pin(tokio::time::sleep(HEAD_LIMIT)),
            timer_at: now + HEAD_LIMIT,
            linger: Linger::default(),
        }
    }

    /// Hands everything on, `first` before the rest: a conversation that is not HTTP/1.x.
    pub(super) fn passing(inner: S, first: BytesMut, clock: &Clock) -> Self {
        let notes = Arc::new(Notes::default());
        notes.leave_http();
        Guarded::new(inner, first, clock, notes)
    }

    fn scan_held(&mut self) {
        self.is_unseen = false;
        let was = self.guard.expecting();
        let found = self.guard.scan(&self.held);
        self.passable = found.pass;
        self.settle(found.stop);
        self.touch(was);
    }

    /// Acts on why a scan stopped; what may pass of the held bytes is marked already.
    fn settle(&mut self, stop: Stop) {
        match stop {
            Stop::End | Stop::Partial => {}
            Stop::Refused(refused) => self.stand_in(refused),
            Stop::Broken(_) => {
                self.held.truncate(self.passable);
                self.broken = Some(io::ErrorKind::InvalidData);
            }
        }
    }

    fn stand_in(&mut self, refused: Refused) {
        self.guard.refuse();
        *self.notes.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some((self.guard.passed_count(), refused));
        self.held.truncate(self.passable);
        self.held.extend_from_slice(STAND_IN);
        self.passable = self.held.len();
    }

    /// Bytes came: the limit of a head runs from its first byte, the others from the last.
    fn touch(&mut self, was: Expecting) {
        if !(was == Expecting::Head && self.guard.expecting() == Expecting::Head) {
            self.since = self.clock.now();
        }
    }

    fn due(&self) -> Option<Instant> {
        match self.guard.expecting() {
            Expecting::Request if self.guard.passed_count() == 0 => Some(self.since + HEAD_LIMIT),
            Expecting::Head => Some(self.since + HEAD_LIMIT),
            Expecting::Request | Expecting::Body => Some(self.since + IDLE_LIMIT),
            Expecting::Nothing => None,
        }
    }

    /// Nothing to read: ready when a limit is reached and something follows from it.
    fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<Limit> {
        let Some(mut due) = self.due() else { return Poll::Pending };
        loop {
            let now = self.clock.now();
            if now >= due {
                match self.guard.expecting() {
                    Expecting::Head => {
                        let why = format!("the header section did not come within {} s", HEAD_LIMIT.as_secs());
                        self.stand_in(Refused { status: 408, why });
                        return Poll::Ready(Limit::Refused);
                    }
                    Expecting::Body => {
                        self.broken = Some(io::ErrorKind::TimedOut);
                        return Poll::Ready(Limit::Refused);
                    }
                    // A response that takes long is no idle connection.
                    Expecting::Request if self.notes.is_answering() => {
                        self.since = now;
                        due = now + IDLE_LIMIT;
                    }
                    Expecting::Request => return Poll::Ready(Limit::Idle),
                    Expecting::Nothing => return Poll::Pending,
                }
            }
            if self.timer_at > due || self.timer.is_elapsed() {
                self.timer.set(tokio::time::sleep(due.since(now)));
                self.timer_at = due;
            }
            ready!(self.timer.as_mut().poll(cx));
        }
    }
}

enum Limit {
    /// A stand-in or an error is to be handed on.
    Refused,
    /// The connection is to be closed.
    Idle,
}

impl<S: AsyncRead + Unpin> Guarded<S> {
    /// Reads straight into the library's buffer; only what may not pass (yet) is taken back out.
    fn poll_read_direct(&mut self, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<bool>> {
        let before = out.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, out))?;
        let new = &out.filled()[before..];
        if new.is_empty() {
            return Poll::Ready(Ok(true));
        }
        let was = self.guard.expecting();
        let found = self.guard.scan(new);
        self.held.extend_from_slice(&new[found.pass..]);
        let is_something = found.pass > 0;
        if found.stop != Stop::End {
            out.set_filled(before + found.pass);
            self.settle(found.stop);
        }
        self.touch(was);
        Poll::Ready(Ok(is_something))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if this.passable > 0 {
                let count = this.passable.min(out.remaining());
                out.put_slice(&this.held[..count]);
                this.held.advance(count);
                this.passable -= count;
                return Poll::Ready(Ok(()));
            }
            if this.notes.left_http.load(Ordering::Acquire) {
                if this.held.is_empty() {
                    return Pin::new(&mut this.inner).poll_read(cx, out);
                }
                this.passable = this.held.len();
                continue;
            }
            if let Some(kind) = this.broken {
                return Poll::Ready(Err(io::Error::new(kind, "the request body is malformed or stopped coming")));
            }
            if this.guard.expecting() == Expecting::Nothing {
                // The answer to the stand-in closes the connection; nothing more is read for it.
                return Poll::Pending;
            }
            if this.is_unseen {
                this.scan_held();
                continue;
            }
            let read = if this.held.is_empty() {
                this.poll_read_direct(cx, out)?
            } else {
                this.held.reserve(4 * 1024);
                poll_read_buf(Pin::new(&mut this.inner), cx, &mut this.held)?.map(|count| {
                    this.is_unseen = count > 0;
                    count == 0
                })
            };
            match read {
                Poll::Ready(true) => return Poll::Ready(Ok(())),
                Poll::Ready(false) => {}
                Poll::Pending => match ready!(this.poll_limits(cx)) {
                    Limit::Refused => {}
                    Limit::Idle => return Poll::Ready(Ok(())),
                },
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let may_be_sending = this.guard.expecting() != Expecting::Request && !this.notes.left_http.load(Ordering::Acquire);
        this.linger.poll_shutdown(&mut this.inner, may_be_sending, cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

    fn guarded() -> (DuplexStream, Guarded<DuplexStream>, Arc<Notes>) {
        let (client, server) = duplex(64 * 1024);
        let notes = Arc::new(Notes::default());
        (client, Guarded::new(server, BytesMut::new(), &Clock::system(), notes.clone()), notes)
    }

    async fn read_some(guarded: &mut Guarded<DuplexStream>) -> String {
        let mut bytes = [0; 4096];
        let count = guarded.read(&mut bytes).await.expect("readable");
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    #[tokio::test]
    async fn a_head_in_pieces_is_handed_on_whole() {
        let (mut client, mut guarded, _) = guarded();
        let reader = tokio::spawn(async move { read_some(&mut guarded).await });
        for piece in ["GET / HT", "TP/1.1\r", "\nHost: x\r\n", "\r\n"] {
            client.write_all(piece.as_bytes()).await.expect("written");
            tokio::task::yield_now().await;
        }
        assert_eq!(reader.await.expect("read"), "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    }

    #[tokio::test]
    async fn a_refused_request_becomes_a_stand_in_in_its_turn() {
        let (mut client, mut guarded, notes) = guarded();
        client.write_all(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\nHost: x\r\n\r\n").await.expect("written");
        assert!(read_some(&mut guarded).await.starts_with("GET /a"));
        assert_eq!(read_some(&mut guarded).await.as_bytes(), STAND_IN);
        assert_eq!(notes.refused(0), None);
        assert_eq!(notes.refused(1).expect("refused").status, 400);
    }

    #[tokio::test]
    async fn malformed_chunks_are_an_error_behind_what_was_good() {
        let (mut client, mut guarded, _) = guarded();
        client
            .write_all(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n")
            .await
            .expect("written");
        assert!(read_some(&mut guarded).await.ends_with("3\r\nabc"));
        let error = guarded.read_u8().await.expect_err("malformed");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[tokio::test]
    async fn after_an_upgrade_everything_passes() {
        let (mut client, mut guarded, notes) = guarded();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n\x81\x02").await.expect("written");
        assert!(read_some(&mut guarded).await.starts_with("GET /"));
        notes.leave_http();
        client.write_all(b"hi").await.expect("written");
        assert_eq!(read_some(&mut guarded).await.as_bytes(), b"\xef\xbf\xbd\x02");
        assert_eq!(read_some(&mut guarded).await, "hi");
    }

    #[tokio::test]
    async fn a_slow_head_is_refused_with_408() {
        let (mut client, server) = duplex(1024);
        let (clock, notes) = (Clock::manual(0), Arc::new(Notes::default()));
        let mut guarded = Guarded::new(server, BytesMut::from(&b"GET /"[..]), &clock, notes.clone());
        let reading = tokio::spawn(async move { read_some(&mut guarded).await });
        tokio::task::yield_now().await;
        clock.advance(HEAD_LIMIT);
        client.write_all(b" ").await.expect("a byte wakes the reader");
        assert_eq!(reading.await.expect("read").as_bytes(), STAND_IN);
        assert_eq!(notes.refused(0).expect("refused").status, 408);
    }

    #[tokio::test]
    async fn closing_lets_a_client_that_still_sends_read_its_answer() {
        let (mut client, mut guarded, _) = guarded();
        client.write_all(b"GET / HTTP/1.1\n").await.expect("written");
        assert_eq!(read_some(&mut guarded).await.as_bytes(), STAND_IN);
        let closing = tokio::spawn(async move { guarded.shutdown().await });
        client.write_all(b"more that nobody wants").await.expect("still taken");
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.expect("the end of the answer");
        drop(client);
        closing.await.expect("joined").expect("closed");
    }
}
