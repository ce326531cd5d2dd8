//! Request bodies of the plain HTTP doors: how many bytes of them are held at a time over all connections, how long one may take,
//! and whether a connection's peer has more of one to send.
//!
//! Handlers collect a body before they work on it, so its bytes count from their arrival until the request is answered. A request
//! that would go over the bound, or is too slow, is answered by the door itself, whatever its handler made of the body's end.

use axum::BoxError;
use axum::body::Body as AnswerBody;
use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::Sleep;

/// Bytes of request bodies that some doors hold together.
#[derive(Debug)]
pub struct Bodies {
    held: AtomicUsize,
    max: usize,
    time: Duration,
}

impl Bodies {
    /// At most `max` bytes; each body within `time` of when it was first waited for.
    pub fn new(max: usize, time: Duration) -> Arc<Self> {
        Arc::new(Bodies { held: AtomicUsize::new(0), max, time })
    }

    fn take(&self, bytes: usize) -> bool {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        let fits = before + bytes <= self.max;
        if !fits {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }
}

/// What one request holds; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Account {
    of: Arc<Bodies>,
    bytes: AtomicUsize,
    is_full: AtomicBool,
    is_late: AtomicBool,
}

impl Account {
    pub fn open(of: &Arc<Bodies>) -> Arc<Self> {
        let (is_full, is_late) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Account { of: of.clone(), bytes: AtomicUsize::new(0), is_full, is_late })
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = self.of.take(bytes);
        if fits {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// What the request is answered: `answer`, unless the door cut its body short.
    pub fn refusal_or(&self, answer: Result<Response<AnswerBody>, Infallible>) -> Response<AnswerBody> {
        let Ok(answer) = answer;
        self.refusal().unwrap_or(answer)
    }

    fn refusal(&self) -> Option<Response<AnswerBody>> {
        let (status, what) = if self.is_full.load(Ordering::Relaxed) {
            (StatusCode::SERVICE_UNAVAILABLE, format!("request bodies of more than {} bytes are being read", self.of.max))
        } else if self.is_late.load(Ordering::Relaxed) {
            (StatusCode::REQUEST_TIMEOUT, format!("the body did not arrive within {} s", self.of.time.as_secs()))
        } else {
            return None;
        };
        // For readers of problem documents, and for RabbitMQ's clients.
        let error = status.canonical_reason().unwrap_or_default();
        let body = serde_json::json!({
            "type": "about:blank", "title": error, "status": status.as_u16(), "detail": what,
            "error": error.to_lowercase().replace(' ', "_"), "reason": what,
        });
        let mut response = Response::new(AnswerBody::from(body.to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        Some(response)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.of.held.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

/// A request's body whose bytes are booked as they come.
#[derive(Debug)]
pub(super) struct Booked<B> {
    body: B,
    account: Arc<Account>,
    /// Whether the connection's peer still has some of this body to send.
    is_coming: Arc<AtomicBool>,
    /// Runs from when it was first waited for.
    limit: Option<Pin<Box<Sleep>>>,
}

impl<B: Body> Booked<B> {
    pub fn new(body: B, account: Arc<Account>, is_coming: Arc<AtomicBool>) -> Self {
        is_coming.store(!body.is_end_stream(), Ordering::Relaxed);
        Booked { body, account, is_coming, limit: None }
    }
}

impl<B> Body for Booked<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.body).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                if frame.data_ref().is_some_and(|data| !this.account.take(data.len())) {
                    this.account.is_full.store(true, Ordering::Relaxed);
                    return Poll::Ready(Some(Err("too many bytes of request bodies are held".into())));
                }
                if this.body.is_end_stream() {
                    this.is_coming.store(false, Ordering::Relaxed);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(None) => {
                this.is_coming.store(false, Ordering::Relaxed);
                Poll::Ready(None)
            }
            Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error.into()))),
            Poll::Pending => {
                let wait = || Box::pin(tokio::time::sleep(this.account.of.time));
                ready!(this.limit.get_or_insert_with(wait).as_mut().poll(cx));
                this.account.is_late.store(true, Ordering::Relaxed);
                Poll::Ready(Some(Err("the request body stopped coming".into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt as _, Empty, Full};

    fn booked(bodies: &Arc<Bodies>, bytes: usize) -> (Booked<Full<Bytes>>, Arc<Account>, Arc<AtomicBool>) {
        let (account, is_coming) = (Account::open(bodies), Arc::new(AtomicBool::new(false)));
        let body = Booked::new(Full::new(Bytes::from(vec![7; bytes])), account.clone(), is_coming.clone());
        (body, account, is_coming)
    }

    #[tokio::test]
    async fn bodies_count_from_their_arrival_until_their_request_is_answered() {
        let bodies = Bodies::new(10, Duration::from_secs(5));
        let (first, answering, is_coming) = booked(&bodies, 6);
        assert!(is_coming.load(Ordering::Relaxed));
        assert_eq!(first.collect().await.expect("within the bound").to_bytes().len(), 6);
        assert!(!is_coming.load(Ordering::Relaxed) && answering.refusal().is_none());
        let (second, account, is_coming) = booked(&bodies, 6);
        assert!(second.collect().await.is_err() && is_coming.load(Ordering::Relaxed));
        let refusal = account.refusal().expect("refused");
        assert_eq!(
            (refusal.status(), &refusal.headers()["retry-after"]),
            (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().expect("a value"))
        );
        drop(answering);
        assert!(booked(&bodies, 6).0.collect().await.is_ok());
        drop(account);
        assert_eq!(bodies.held.load(Ordering::Relaxed), 0);
    }

    /// A body that never comes.
    struct Silent;

    impl Body for Silent {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_body_that_stops_coming_is_given_up() {
        let (account, is_coming) = (Account::open(&Bodies::new(10, Duration::from_millis(5))), Arc::new(AtomicBool::new(false)));
        assert!(Booked::new(Silent, account.clone(), is_coming).collect().await.is_err());
        assert_eq!(account.refusal().expect("refused").status(), StatusCode::REQUEST_TIMEOUT);
    }

    #[test]
    fn a_request_without_a_body_leaves_nothing_to_send() {
        let is_coming = Arc::new(AtomicBool::new(true));
        drop(Booked::new(Empty::<Bytes>::new(), Account::open(&Bodies::new(1, Duration::ZERO)), is_coming.clone()));
        assert!(!is_coming.load(Ordering::Relaxed));
    }
}
