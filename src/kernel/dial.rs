//! Outbound connections: the only place that opens one.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;

/// Connects within `limit`. Small writes are sent at once (`TCP_NODELAY`): every caller batches for itself.
pub async fn tcp(to: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let stream = tokio::time::timeout(limit, TcpStream::connect(to)).await.map_err(|_| {
        io::Error::new(io::ErrorKind::TimedOut, format!("{to} did not accept a connection within {} ms", limit.as_millis()))
    })??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// The same for threads that block, such as a load generator's.
pub fn tcp_blocking(to: SocketAddr, limit: Duration) -> io::Result<std::net::TcpStream> {
    let stream = std::net::TcpStream::connect_timeout(&to, limit)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
