//! What comes back over the bus, handed from the replying connection's task to the request's: bounded, and never lost in between
//! (service contract §4, *Streaming*).

use super::body::BodyCut;
use super::exchange::Ending;
use crate::kernel::limit::REPLY_BUFFER_BYTES_MAX;
use crate::kernel::{Clock, Instant};
use crate::model::call::{CallEvent, CallFailure, CallGuard, CallObserver, Pressure, ReplyPart};
use bytes::Bytes;
use http_body::{Body, Frame};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

/// Longest silence between two parts of a reply.
const PART_IDLE_MAX: Duration = Duration::from_secs(60);
/// How long a client may be too slow for a streaming service.
const PAUSE_MAX: Duration = Duration::from_secs(10);

const OVERRUN: &str = "the client read too slowly for a streaming reply";

/// Who took the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivered {
    pub(super) service: Arc<str>,
    pub(super) instance: Arc<str>,
}

#[derive(Debug)]
pub(super) enum Next {
    Part(ReplyPart),
    Failed(CallFailure),
    /// The client read too slowly for too long.
    Overrun,
}

/// Where the broker puts what happens to one call.
#[derive(Debug)]
pub(super) struct Mailbox {
    clock: Clock,
    /// Closes the client's connection.
    abort: Option<CancellationToken>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    delivered: Option<Delivered>,
    waiting: VecDeque<Next>,
    bytes: usize,
    reader: Option<Waker>,
    pause: Option<(Arc<Notify>, Instant)>,
    /// The last part or a failure is in, or the request is over: nothing more is taken.
    closed: bool,
    /// The client did not read for too long.
    overrun: bool,
}

impl Mailbox {
    pub(super) fn new(clock: Clock, abort: Option<CancellationToken>) -> Arc<Self> {
        Arc::new(Mailbox { clock, abort, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn delivered(&self) -> Option<Delivered> {
        self.lock().delivered.clone()
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut inner = self.lock();
        let Some(next) = inner.waiting.pop_front() else {
            inner.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        if let Next::Part(part) = &next {
            inner.bytes -= part.body.len();
        }
        if inner.bytes <= REPLY_BUFFER_BYTES_MAX / 2
            && let Some((resume, _)) = inner.pause.take()
        {
            resume.notify_one();
        }
        Poll::Ready(next)
    }

    /// The request is over.
    fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        inner.waiting.clear();
        inner.bytes = 0;
        if let Some((resume, _)) = inner.pause.take() {
            resume.notify_one();
        }
    }
}

impl CallObserver for Mailbox {
    fn on(&self, event: CallEvent) -> Pressure {
        let mut inner = self.lock();
        if inner.closed {
            return Pressure::Gone;
        }
        let pressure = match event {
            CallEvent::Delivered { service, instance } => {
                inner.delivered = Some(Delivered { service, instance });
                return Pressure::Continue;
            }
            CallEvent::Failed(CallFailure::Stalled { .. }) => self.overrun(&mut inner),
            CallEvent::Failed(failure) => {
                inner.closed = true;
                inner.waiting.push_back(Next::Failed(failure));
                Pressure::Continue
            }
            CallEvent::Part(part) => self.take(&mut inner, part),
        };
        let reader = inner.reader.take();
        drop(inner);
        if let Some(reader) = reader {
            reader.wake();
        }
        pressure
    }
}

impl Mailbox {
    fn take(&self, inner: &mut Inner, part: ReplyPart) -> Pressure {
        let now = self.clock.now();
        if inner.pause.as_ref().is_some_and(|(_, since)| now.since(*since) >= PAUSE_MAX) {
            return self.overrun(inner);
        }
        inner.closed = part.last;
        inner.bytes += part.body.len();
        inner.waiting.push_back(Next::Part(part));
        if inner.closed || inner.bytes <= REPLY_BUFFER_BYTES_MAX {
            return Pressure::Continue;
        }
        let (resume, _) = inner.pause.get_or_insert_with(|| (Arc::default(), now));
        Pressure::Pause(resume.clone())
    }
}

impl Mailbox {
    fn overrun(&self, inner: &mut Inner) -> Pressure {
        inner.closed = true;
        inner.overrun = true;
        inner.waiting.clear();
        inner.bytes = 0;
        inner.waiting.push_back(Next::Overrun);
        if let Some(abort) = &self.abort {
            abort.cancel();
        }
        Pressure::Gone
    }
}

/// A call in flight, from the request's side. Dropping it cancels the call.
pub(super) struct InCall {
    mailbox: Arc<Mailbox>,
    _guard: CallGuard,
}

impl InCall {
    pub(super) fn new(mailbox: Arc<Mailbox>, guard: CallGuard) -> Self {
        InCall { mailbox, _guard: guard }
    }

    pub(super) async fn next(&self) -> Next {
        poll_fn(|cx| self.mailbox.poll_next(cx)).await
    }

    pub(super) fn delivered(&self) -> Option<Delivered> {
        self.mailbox.delivered()
    }
}

impl Drop for InCall {
    fn drop(&mut self) {
        self.mailbox.close();
    }
}

/// A reply in parts as a response body.
pub(super) struct Parts {
    first: Option<Bytes>,
    call: Option<InCall>,
    idle: Option<Pin<Box<Sleep>>>,
    idle_max: Duration,
}

impl Parts {
    /// `first` is the body of the part that gave the head.
    pub(super) fn new(first: Bytes, call: InCall) -> Self {
        Parts { first: Some(first), call: Some(call), idle: None, idle_max: PART_IDLE_MAX }
    }

    fn cut(&mut self, why: &str) -> Poll<Option<Result<Frame<Bytes>, BodyCut>>> {
        self.call = None;
        Poll::Ready(Some(Err(BodyCut(why.to_owned()))))
    }
}

impl Ending for Parts {
    fn why_unfinished(&self) -> Option<&'static str> {
        self.call.as_ref().and_then(|call| call.mailbox.lock().overrun.then_some(OVERRUN))
    }
}

impl Body for Parts {
    type Data = Bytes;
    type Error = BodyCut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyCut>>> {
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        loop {
            let Some(call) = &self.call else { return Poll::Ready(None) };
            match call.mailbox.poll_next(cx) {
                Poll::Ready(Next::Part(part)) => {
                    self.idle = None;
                    if part.last {
                        self.call = None;
                    }
                    if !part.body.is_empty() {
                        return Poll::Ready(Some(Ok(Frame::data(part.body))));
                    }
                }
                Poll::Ready(Next::Overrun) => return self.cut(OVERRUN),
                Poll::Ready(Next::Failed(_)) => return self.cut("the service went away in the middle of its reply"),
                Poll::Pending => break,
            }
        }
        let idle_max = self.idle_max;
        let idle = self.idle.get_or_insert_with(|| Box::pin(tokio::time::sleep(idle_max)));
        match idle.as_mut().poll(cx) {
            Poll::Ready(()) => self.cut(&format!("the service sent no part of its reply for {} s", idle_max.as_secs_f64())),
            Poll::Pending => Poll::Pending,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::table::Table;
    use http_body_util::BodyExt as _;

    fn part(body: &'static [u8], last: bool) -> CallEvent {
        let body = Bytes::from_static(body);
        CallEvent::Part(ReplyPart { headers: Table::new(), content_type: None, content_encoding: None, body, last })
    }

    fn mailbox() -> (Clock, Arc<Mailbox>) {
        let clock = Clock::manual(0);
        (clock.clone(), Mailbox::new(clock, None))
    }

    static MEBIBYTE: [u8; REPLY_BUFFER_BYTES_MAX] = [b'x'; REPLY_BUFFER_BYTES_MAX];

    #[tokio::test]
    async fn parts_arrive_in_order_and_the_last_one_ends_the_body() {
        let (_, mailbox) = mailbox();
        for event in [part(b"b", false), part(b"", false), part(b"c", true)] {
            assert!(matches!(mailbox.on(event), Pressure::Continue));
        }
        assert!(matches!(mailbox.on(part(b"late", true)), Pressure::Gone), "the first complete reply wins");
        let parts = Parts::new(Bytes::from_static(b"a"), InCall::new(mailbox, Box::new(())));
        assert_eq!(parts.collect().await.expect("whole").to_bytes(), "abc");
    }

    #[tokio::test]
    async fn a_worker_that_dies_midway_cuts_the_body() {
        let (_, mailbox) = mailbox();
        mailbox.on(part(b"b", false));
        mailbox.on(CallEvent::Failed(CallFailure::WorkerGone { service: "s".into(), instance: "s-1".into() }));
        let mut parts = Parts::new(Bytes::from_static(b"a"), InCall::new(mailbox, Box::new(())));
        assert!(parts.frame().await.expect("a").is_ok());
        assert!(parts.frame().await.expect("b").is_ok());
        assert!(parts.frame().await.expect("cut").is_err());
    }

    #[tokio::test]
    async fn silence_between_parts_cuts_the_body() {
        assert_eq!(PART_IDLE_MAX, Duration::from_secs(60));
        let (_, mailbox) = mailbox();
        let mut parts = Parts::new(Bytes::new(), InCall::new(mailbox, Box::new(())));
        parts.idle_max = Duration::from_millis(20);
        let cut = parts.frame().await.expect("cut").expect_err("silence");
        assert!(cut.0.contains("0.02 s"), "{cut}");
    }

    #[tokio::test]
    async fn more_than_a_mebibyte_pauses_the_worker_until_half_is_read() {
        let (_, mailbox) = mailbox();
        assert!(matches!(mailbox.on(part(&MEBIBYTE, false)), Pressure::Continue));
        let Pressure::Pause(resume) = mailbox.on(part(b"x", false)) else { panic!("over the limit") };
        let call = InCall::new(mailbox, Box::new(()));
        assert!(matches!(call.next().await, Next::Part(_)));
        tokio::time::timeout(Duration::from_secs(5), resume.notified()).await.expect("resumed");
    }

    #[tokio::test]
    async fn a_client_too_slow_for_ten_seconds_ends_the_reply() {
        let (clock, mailbox) = mailbox();
        mailbox.on(part(&MEBIBYTE, false));
        assert!(matches!(mailbox.on(part(b"x", false)), Pressure::Pause(_)));
        clock.advance(Duration::from_secs(9));
        assert!(matches!(mailbox.on(part(b"x", false)), Pressure::Pause(_)));
        clock.advance(Duration::from_secs(1));
        assert!(matches!(mailbox.on(part(b"x", false)), Pressure::Gone));
        let call = InCall::new(mailbox, Box::new(()));
        assert!(matches!(call.next().await, Next::Overrun));
    }

    #[tokio::test]
    async fn a_stalled_reply_holds_nothing_and_closes_the_connection() {
        let abort = CancellationToken::new();
        let mailbox = Mailbox::new(Clock::manual(0), Some(abort.clone()));
        mailbox.on(part(&MEBIBYTE, false));
        let parts = Parts::new(Bytes::new(), InCall::new(mailbox.clone(), Box::new(())));
        assert_eq!(parts.why_unfinished(), None);
        mailbox.on(CallEvent::Failed(CallFailure::Stalled { service: "s".into() }));
        assert!(abort.is_cancelled());
        assert_eq!(mailbox.lock().bytes, 0);
        assert_eq!(parts.why_unfinished(), Some(OVERRUN));
    }

    #[tokio::test]
    async fn a_request_that_ends_frees_a_paused_worker_and_takes_nothing_more() {
        let (_, mailbox) = mailbox();
        mailbox.on(part(&MEBIBYTE, false));
        let Pressure::Pause(resume) = mailbox.on(part(b"x", false)) else { panic!("over the limit") };
        drop(InCall::new(mailbox.clone(), Box::new(())));
        tokio::time::timeout(Duration::from_secs(5), resume.notified()).await.expect("resumed");
        assert!(matches!(mailbox.on(part(b"x", true)), Pressure::Gone));
    }

    #[tokio::test]
    async fn whoever_took_the_call_is_known() {
        let (_, mailbox) = mailbox();
        mailbox.on(CallEvent::Delivered { service: "s".into(), instance: "s-1".into() });
        let delivered = InCall::new(mailbox, Box::new(())).delivered().expect("delivered");
        assert_eq!((&*delivered.service, &*delivered.instance), ("s", "s-1"));
    }
}
