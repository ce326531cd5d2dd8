//! Outbound connections: the only place that opens one.

use rustix::thread::LinkNameSpaceType;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
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

/// As [`tcp`], for threads that block, such as a load generator's.
pub fn tcp_blocking(to: SocketAddr, limit: Duration) -> io::Result<std::net::TcpStream> {
    let stream = std::net::TcpStream::connect_timeout(&to, limit)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// As [`tcp_blocking`], from another network namespace (an open file such as those in `/run/netns`) than this process's; that needs
/// CAP_SYS_ADMIN. Linux, namespaces(7).
pub fn tcp_blocking_from(namespace: OwnedFd, to: SocketAddr, limit: Duration) -> io::Result<std::net::TcpStream> {
    // A thread enters it for good and ends; the socket stays what it is.
    let dial = std::thread::Builder::new().name("dial".into()).spawn(move || {
        rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        tcp_blocking(to, limit)
    })?;
    dial.join().map_err(|_| io::Error::other("the dialling thread broke"))?
}
