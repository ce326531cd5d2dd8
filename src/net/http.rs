//! A gateway connection: HTTP/1.1 or HTTP/2 (with prior knowledge or by ALPN), told apart by its first bytes. In front of HTTP/1.1
//! stands a guard, see [`guarded`].

mod guarded;
#[cfg(test)]
mod tests;

use crate::gateway::{ClientConn, Gateway, GatewayBody, Scheme};
use bytes::BytesMut;
use guarded::{Guarded, Notes, Tracked};
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

/// How an HTTP/2 connection begins (RFC 9113 §3.4).
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Time from the connection to its first request, in whole or up to the end of its head.
const HEAD_LIMIT: Duration = Duration::from_secs(10);

const H2_HEADER_LIST_BYTES_MAX: u32 = 64 * 1024;
const H2_STREAMS_MAX: u32 = 256;
const H2_STREAM_WINDOW_BYTES: u32 = 1024 * 1024;
const H2_CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
/// Pings tell a peer that is gone from one that is silent.
const H2_PING_EVERY: Duration = Duration::from_secs(20);

/// Serves one connection until it closes or the gateway's drain lets it go.
pub async fn serve_gateway<S>(mut stream: S, peer: SocketAddr, scheme: Scheme, gateway: Arc<Gateway>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let conn = ClientConn::new(peer, scheme);
    let first = tokio::select! {
        first = tokio::time::timeout(HEAD_LIMIT, sniff(&mut stream)) => first,
        () = gateway.drain().begun() => return,
    };
    match first {
        Ok(Ok(First { bytes, is_http2: true })) => {
            serve_http2(Guarded::passing(stream, bytes, gateway.clock()), conn, gateway).await
        }
        Ok(Ok(First { bytes, is_http2: false })) => serve_http1(stream, bytes, conn, gateway).await,
        Ok(Err(error)) => tracing::debug!(%peer, %error, "gateway connection ended before a request"),
        Err(_) => tracing::debug!(%peer, "gateway connection closed: no request came"),
    }
}

struct First {
    bytes: BytesMut,
    is_http2: bool,
}

/// Reads until it is clear which version the client speaks; what was read is the beginning of the conversation.
async fn sniff<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<First> {
    let mut bytes = BytesMut::new();
    loop {
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let compared = bytes.len().min(PREFACE.len());
        if bytes[..compared] != PREFACE[..compared] {
            return Ok(First { bytes, is_http2: false });
        }
        if compared == PREFACE.len() {
            return Ok(First { bytes, is_http2: true });
        }
    }
}

async fn serve_http1<S>(stream: S, first: BytesMut, conn: Arc<ClientConn>, gateway: Arc<Gateway>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let notes = Arc::new(Notes::default());
    let guarded = Guarded::new(stream, first, gateway.clock(), notes.clone());
    let (peer, drain, client) = (conn.peer, gateway.drain().clone(), conn.clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let (gateway, conn, notes) = (gateway.clone(), conn.clone(), notes.clone());
        async move {
            let in_flight = notes.begin();
            let response = match notes.refused(in_flight.ordinal()) {
                Some(refused) => gateway.refuse(&refused, conn),
                None => gateway.handle(request, conn).await,
            };
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                notes.leave_http();
            }
            Ok::<_, Infallible>(response.map(|body| Tracked::new(body, in_flight)))
        }
    });
    let connection =
        http1::Builder::new().header_read_timeout(None).serve_connection(TokioIo::new(guarded), service).with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = client.aborted() => Ok(()),
        () = drain.begun() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                () = client.aborted() => Ok(()),
                () = drain.is_cut() => Ok(()),
            }
        }
    };
    log_end(peer, ended);
}

async fn serve_http2<S>(stream: S, conn: Arc<ClientConn>, gateway: Arc<Gateway>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (peer, drain) = (conn.peer, gateway.drain().clone());
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = gateway.clone().handle(request, conn.clone());
        async move { Ok::<Response<GatewayBody>, Infallible>(answer.await) }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING_EVERY)
        .keep_alive_timeout(H2_PING_EVERY)
        .max_header_list_size(H2_HEADER_LIST_BYTES_MAX)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES)
        .enable_connect_protocol();
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
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
    log_end(peer, ended);
}

fn log_end(peer: SocketAddr, ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "gateway connection ended");
    }
}
