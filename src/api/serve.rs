//! One connection on `control`: HTTP/1.1 with upgrades, bounded in time and size.

use crate::kernel::Drain;
use crate::kernel::limit::{CONTROL_HEADER_BYTES_MAX, CONTROL_HEADERS_MAX, HANDSHAKE_MS_MAX};
use axum::Router;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tower::ServiceExt;

/// Serves `router` on `stream` until the peer leaves, is too slow with its header, or `drain` is cut. Answers in flight are finished
/// when draining begins.
///
/// A header section beyond its limits is answered 431 and garbage 400 by hyper, both closing the connection. An idle kept-alive connection
/// is closed by the same timer that bounds the header.
pub async fn serve<S>(router: Router, stream: S, peer: SocketAddr, drain: Drain)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(HANDSHAKE_MS_MAX))
        .max_buf_size(CONTROL_HEADER_BYTES_MAX)
        .max_headers(CONTROL_HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
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
        tracing::debug!(%peer, %error, "control connection ended");
    }
}
