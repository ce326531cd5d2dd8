//! A gateway connection: HTTP/1.1 or HTTP/2, told apart by the first bytes (or by ALPN under TLS).

use crate::gateway::{ClientConn, Gateway, Scheme};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// Serves one connection until it closes or the gateway's drain lets it go.
pub async fn serve_gateway<S>(stream: S, peer: SocketAddr, scheme: Scheme, gateway: Arc<Gateway>)
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let conn = Arc::new(ClientConn { peer, scheme });
    let service = service_fn(|request| {
        let (gateway, conn) = (gateway.clone(), conn.clone());
        async move { Ok::<_, Infallible>(gateway.handle(request, conn).await) }
    });
    let builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    if let Err(error) = builder.serve_connection_with_upgrades(TokioIo::new(stream), service).await {
        tracing::debug!(%peer, %error, "gateway connection ended");
    }
}
