//! A plain HTTP connection (HTTP/1.1 or h2c) in front of an axum router: the OTLP ports and the bus.

use crate::kernel::Drain;
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::ServiceExt;

/// Largest header section, in bytes; HTTP/1 answers 431 beyond.
const HEADER_BYTES_MAX: usize = 64 * 1024;

/// Serves until the peer leaves, is slower than `header_limit` with a header, or `drain` is cut; a begun drain finishes what is
/// in flight.
pub async fn serve_router<S>(stream: S, peer: SocketAddr, router: Router, header_limit: Duration, drain: Drain)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(header_limit).max_buf_size(HEADER_BYTES_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_header_list_size(HEADER_BYTES_MAX as u32);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = drain.begun() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = drain.is_cut() => Ok(()),
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "HTTP connection ended");
    }
}
