//! A plain HTTP connection in front of an axum router: `control`, `management`, the OTLP ports and the bus.

use super::bodies::{Account, Bodies, Booked};
use super::linger::Linger;
use crate::kernel::Drain;
use crate::kernel::limit::{HTTP_HEADER_BYTES_MAX, HTTP_HEADERS_MAX};
use axum::extract::ConnectInfo;
use axum::{BoxError, Router};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::ServiceExt;

/// Between two pings of ours on an HTTP/2 connection.
const PING_EVERY: Duration = Duration::from_secs(30);

/// What a port speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// With upgrades: browsers, which know HTTP/2 only over TLS, open the live socket here.
    Http1,
    /// HTTP/1.1, or HTTP/2 from its first byte.
    Both,
}

/// How a door's connections are served.
#[derive(Clone)]
pub struct Serving {
    pub router: Router,
    pub speaks: Speaks,
    /// Time a header may take, and a kept connection may rest.
    pub header_limit: Duration,
    pub bodies: Arc<Bodies>,
    pub drain: Drain,
}

/// Serves until the peer leaves, is slower than the limit with a header, or the drain is cut; a begun drain finishes what is in
/// flight.
///
/// A header section beyond its limits is answered 431 and garbage 400 by hyper, both closing the connection. An idle kept-alive
/// connection is closed by the same timer that bounds the header.
pub async fn serve_router<S>(stream: S, peer: SocketAddr, serving: Serving)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let Serving { router, speaks, header_limit, bodies, drain } = serving;
    let stream = Lingering { inner: stream, linger: Linger::default(), is_coming: Arc::default() };
    let is_coming = stream.is_coming.clone();
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        let account = Account::open(&bodies);
        let request = request.map(|body| Booked::new(body, account.clone(), is_coming.clone()));
        let answer = router.clone().oneshot(request);
        async move { Ok::<_, Infallible>(account.refusal_or(answer.await)) }
    });
    let io = TokioIo::new(stream);
    let ended = match speaks {
        Speaks::Http1 => {
            let connection = http1_only(header_limit).serve_connection(io, service).with_upgrades();
            until_drained(connection, drain, |connection| connection.graceful_shutdown()).await
        }
        Speaks::Both => {
            let builder = either(header_limit);
            let connection = builder.serve_connection_with_upgrades(io, service);
            until_drained(connection, drain, |connection| connection.graceful_shutdown()).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "HTTP connection ended");
    }
}

/// A stream that ends so that a peer in the middle of a body can read its answer.
struct Lingering<S> {
    inner: S,
    linger: Linger,
    /// Part of a request's body has not come yet.
    is_coming: Arc<AtomicBool>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, out)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
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
        this.linger.poll_shutdown(&mut this.inner, this.is_coming.load(Ordering::Relaxed), cx)
    }
}

/// `finish` asks the connection to end after what is in flight.
async fn until_drained<C, E>(connection: C, drain: Drain, finish: impl FnOnce(Pin<&mut C>)) -> Result<(), BoxError>
where
    C: Future<Output = Result<(), E>>,
    E: Into<BoxError>,
{
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = drain.begun() => {
            finish(connection.as_mut());
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = drain.is_cut() => Ok(()),
            }
        }
    };
    ended.map_err(Into::into)
}

fn http1_only(header_limit: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_limit)
        .max_buf_size(HTTP_HEADER_BYTES_MAX)
        .max_headers(HTTP_HEADERS_MAX);
    builder
}

/// `auto::Builder::http1_only` is no way to have HTTP/1 alone: with upgrades it does not count.
fn either(header_limit: Duration) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(header_limit)
        .max_buf_size(HTTP_HEADER_BYTES_MAX)
        .max_headers(HTTP_HEADERS_MAX);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).max_header_list_size(HTTP_HEADER_BYTES_MAX as u32);
    builder
}
