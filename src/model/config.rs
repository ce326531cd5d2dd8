//! How this process runs: ports, directories, limits. Plain values, resolved by `node::config` before a port is bound and handed
//! down piece by piece. What should *exist* is a definition (`model::definitions`), not configuration.

use serde::Serialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub bind: Bind,
    /// One per [`PortName`], already shifted by `port_offset`.
    pub ports: Vec<(PortName, PortSetting)>,
    pub storage: Storage,
    pub limits: Limits,
    pub gateway: GatewaySettings,
    pub telemetry: TelemetrySettings,
    pub log: LogSettings,
    pub access: AccessSettings,
    pub proxy: ProxySettings,
    /// The file that was read, if one was.
    pub file: Option<PathBuf>,
}

impl Config {
    pub fn port(&self, name: PortName) -> PortSetting {
        self.ports.iter().find(|(known, _)| *known == name).map_or(PortSetting::Off, |(_, setting)| *setting)
    }
}

/// A door's name in `[ports]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PortName {
    Http,
    Https,
    Ingress,
    Control,
    Bus,
    Amqp,
    Amqps,
    Stream,
    StreamTls,
    Management,
    Prometheus,
    OtlpGrpc,
    OtlpHttp,
    Redis,
}

impl PortName {
    pub const ALL: [PortName; 14] = [
        PortName::Http,
        PortName::Https,
        PortName::Ingress,
        PortName::Control,
        PortName::Bus,
        PortName::Amqp,
        PortName::Amqps,
        PortName::Stream,
        PortName::StreamTls,
        PortName::Management,
        PortName::Prometheus,
        PortName::OtlpGrpc,
        PortName::OtlpHttp,
        PortName::Redis,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            PortName::Http => "http",
            PortName::Https => "https",
            PortName::Ingress => "ingress",
            PortName::Control => "control",
            PortName::Bus => "bus",
            PortName::Amqp => "amqp",
            PortName::Amqps => "amqps",
            PortName::Stream => "stream",
            PortName::StreamTls => "stream_tls",
            PortName::Management => "management",
            PortName::Prometheus => "prometheus",
            PortName::OtlpGrpc => "otlp_grpc",
            PortName::OtlpHttp => "otlp_http",
            PortName::Redis => "redis",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|name| name.as_str() == text)
    }

    pub const fn default_port(self) -> u16 {
        match self {
            PortName::Http => 80,
            PortName::Https => 443,
            PortName::Ingress => 16_000,
            PortName::Control => 15_000,
            PortName::Bus => 15_010,
            PortName::Amqp => 5_672,
            PortName::Amqps => 5_671,
            PortName::Stream => 5_552,
            PortName::StreamTls => 5_551,
            PortName::Management => 15_672,
            PortName::Prometheus => 15_692,
            PortName::OtlpGrpc => 4_317,
            PortName::OtlpHttp => 4_318,
            PortName::Redis => 6_379,
        }
    }

    /// What a client may speak there, in the words of the port table.
    pub const fn speaks(self) -> &'static str {
        match self {
            PortName::Http => "gateway, HTTP/1.1 and h2c",
            PortName::Https => "gateway over TLS, HTTP/1.1 and HTTP/2",
            PortName::Ingress => "gateway again, needs no privilege",
            PortName::Control => "dashboard, REST API, live feed",
            PortName::Bus => "AMQP 0-9-1 and OTLP (HTTP and gRPC), told apart by their first bytes",
            PortName::Amqp => "AMQP 0-9-1",
            PortName::Amqps => "AMQP 0-9-1 over TLS",
            PortName::Stream => "RabbitMQ stream protocol",
            PortName::StreamTls => "RabbitMQ stream protocol over TLS",
            PortName::Management => "RabbitMQ management API",
            PortName::Prometheus => "metrics for Prometheus, RabbitMQ's names",
            PortName::OtlpGrpc => "OpenTelemetry in, gRPC",
            PortName::OtlpHttp => "OpenTelemetry in, HTTP (protobuf and JSON)",
            PortName::Redis => "RESP2/RESP3",
        }
    }

    /// Whether this build answers there. A reserved name keeps its setting but is not bound: a port that accepts and says
    /// nothing would be a lie.
    pub const fn is_served(self) -> bool {
        !matches!(self, PortName::Stream | PortName::StreamTls | PortName::Redis)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSetting {
    Off,
    /// Any free port; the chosen one is printed and in the API.
    Ephemeral,
    Fixed(u16),
}

/// Which addresses the doors listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// 127.0.0.1 and ::1.
    Localhost,
    /// Every interface, both families.
    All,
    Addresses(Vec<IpAddr>),
}

impl Bind {
    pub fn addresses(&self) -> Vec<IpAddr> {
        match self {
            Bind::Localhost => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
            Bind::All => vec![Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()],
            Bind::Addresses(addresses) => addresses.clone(),
        }
    }

    /// Reachable from this machine only.
    pub fn is_loopback(&self) -> bool {
        self.addresses().iter().all(IpAddr::is_loopback)
    }
}

/// Where things are kept between runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    /// Nothing is kept.
    Ephemeral,
    Directory(PathBuf),
}

impl Storage {
    pub fn directory(&self) -> Option<&PathBuf> {
        match self {
            Storage::Ephemeral => None,
            Storage::Directory(path) => Some(path),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    pub connections_max: usize,
    pub handshake: Duration,
    pub amqp_frame_bytes_max: u32,
    pub amqp_channels_max: u16,
    pub amqp_heartbeat: Duration,
    pub message_bytes_max: u64,
    /// Messages in all queues; publishers are held beyond.
    pub queue_bytes_max: u64,
    /// How long a consumer may keep a delivery unacked before its channel is closed.
    pub consumer_timeout: Duration,
    pub call_body_bytes_max: usize,
    pub call_bodies_bytes_max: usize,
    /// How long a drain waits for work in flight before it cuts.
    pub drain: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GatewaySettings {
    /// How long a call to a service that has just left waits for it to come back.
    pub hold: Duration,
    /// Time a caller waits for the first (or only) reply.
    pub call_timeout: Duration,
    /// PEM files; a self-signed certificate is made when absent.
    pub tls: Option<TlsFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TelemetrySettings {
    pub spans_bytes_max: usize,
    pub logs_bytes_max: usize,
    pub metrics_bytes_max: usize,
    /// Own spans a second above which whole traces are sampled.
    pub spans_per_second_max: u64,
    /// Whether a publish without `traceparent` gets a parent guessed from the delivery being worked on.
    pub infer_parents: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    pub format: LogFormat,
    /// A `tracing` filter: `info`, `debug`, `reactor::broker=trace,info`.
    pub filter: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccessSettings {
    pub mode: AccessMode,
    /// A fixed control token; a random one is made at start when absent.
    pub token: Option<String>,
    /// Peers trusted like loopback: the container's default gateway, found at start when running in the image.
    pub trusted_peers: Vec<IpAddr>,
    /// Users that only this machine may log in as.
    pub loopback_users: Vec<String>,
    pub client_certificates: ClientCertificates,
    pub certificate_login: CertificateLogin,
}

/// What `amqps` asks of its clients.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClientCertificates {
    #[default]
    Ignored,
    /// Who shows one must show a good one, signed by an authority of this PEM file.
    Optional(PathBuf),
    Required(PathBuf),
}

/// What of a client's certificate is the user it logs in as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CertificateLogin {
    /// The whole subject: `CN=ann,O=Shop`.
    #[default]
    DistinguishedName,
    /// `ann`
    CommonName,
}

/// Ports that take a PROXY header, and from whom.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxySettings {
    pub ports: Vec<PortName>,
    pub trusted: Vec<Network>,
}

impl ProxySettings {
    /// Whether a connection must begin with a PROXY header.
    pub fn expects(&self, port: PortName, peer: IpAddr) -> bool {
        self.ports.contains(&port) && self.trusted.iter().any(|network| network.contains(peer))
    }
}

/// An address, or all that share its first bits: `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Network { address, bits })
    }

    pub fn contains(&self, peer: IpAddr) -> bool {
        match (self.address, peer.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(peer)) => (own.to_bits() ^ peer.to_bits()).leading_zeros() >= self.bits,
            (IpAddr::V6(own), IpAddr::V6(peer)) => (own.to_bits() ^ peer.to_bits()).leading_zeros() >= self.bits,
            _ => false,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AccessMode {
    #[default]
    /// No login from this machine; the token from anywhere else.
    Dev,
    /// The token, or an issued user, from everywhere.
    Required,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_hold_what_shares_their_first_bits() {
        let holds =
            |network: &str, peer: &str| Network::parse(network).expect("a network").contains(peer.parse().expect("an address"));
        assert!(holds("10.0.0.0/8", "10.200.3.4") && !holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("10.0.0.0/8", "::ffff:10.1.1.1"));
        assert!(holds("127.0.0.1", "127.0.0.1") && !holds("127.0.0.1", "127.0.0.2"));
        assert!(holds("0.0.0.0/0", "8.8.8.8") && !holds("0.0.0.0/0", "::2"));
        assert!(holds("2001:db8::/32", "2001:db8:1::1"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "x/1", "::/129"] {
            assert_eq!(Network::parse(wrong), None, "{wrong}");
        }
    }
}
