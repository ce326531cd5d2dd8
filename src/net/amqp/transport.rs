//! The two halves of a stream. TCP's own halves read and write independently; other streams (TLS) share a lock between theirs.

use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf, WriteHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_rustls::server::TlsStream;

/// A stream that the AMQP door can serve.
pub trait Transport: Send + 'static {
    type Read: AsyncRead + Unpin + Send + 'static;
    type Write: AsyncWrite + Unpin + Send + 'static;
    /// As connections are labelled.
    const PROTOCOL: &'static str;
    const TLS: bool = false;

    fn local_addr(&self) -> Option<SocketAddr>;
    /// The certificate that the peer proved to own, as DER.
    fn certificate(&self) -> Option<Vec<u8>> {
        None
    }
    fn halves(self) -> (Self::Read, Self::Write);
}

impl Transport for TcpStream {
    type Read = OwnedReadHalf;
    type Write = OwnedWriteHalf;
    const PROTOCOL: &'static str = "AMQP 0-9-1";

    fn local_addr(&self) -> Option<SocketAddr> {
        TcpStream::local_addr(self).ok()
    }

    fn halves(self) -> (Self::Read, Self::Write) {
        self.into_split()
    }
}

impl Transport for TlsStream<TcpStream> {
    type Read = ReadHalf<Self>;
    type Write = WriteHalf<Self>;
    const PROTOCOL: &'static str = "AMQPS 0-9-1";
    const TLS: bool = true;

    fn local_addr(&self) -> Option<SocketAddr> {
        self.get_ref().0.local_addr().ok()
    }

    fn certificate(&self) -> Option<Vec<u8>> {
        self.get_ref().1.peer_certificates()?.first().map(|certificate| certificate.to_vec())
    }

    fn halves(self) -> (Self::Read, Self::Write) {
        tokio::io::split(self)
    }
}

impl Transport for tokio::io::DuplexStream {
    type Read = ReadHalf<Self>;
    type Write = WriteHalf<Self>;
    const PROTOCOL: &'static str = "AMQP 0-9-1 in memory";

    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }

    fn halves(self) -> (Self::Read, Self::Write) {
        tokio::io::split(self)
    }
}
