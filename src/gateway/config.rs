//! How this gateway behaves; resolved by `node` before anything starts.

use crate::kernel::limit;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Whether a caller (peer address, Host it asked for) could see the dashboard, and so may read what is attached in a 404.
pub type SeesDashboard = Arc<dyn Fn(IpAddr, &str) -> bool + Send + Sync>;

#[derive(Clone)]
pub struct GatewayConfig {
    /// The space whose services answer.
    pub space: Arc<str>,
    /// Time a service has for its first reply (504 after).
    pub deadline: Duration,
    /// How long a call waits for a service that detached less than 5 s ago (`gateway.hold_ms`); zero outside dev mode.
    pub hold: Duration,
    /// Largest body of one call (413), `limits.call_body_bytes_max`.
    pub call_body_bytes_max: usize,
    /// Bodies of all calls in flight (503).
    pub call_bodies_bytes_max: usize,
    /// Peers whose `X-Forwarded-*` fields are believed.
    pub trusted_proxies: Vec<Cidr>,
    pub sees_dashboard: SeesDashboard,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        GatewayConfig {
            space: Arc::from(crate::model::topology::DEFAULT_SPACE),
            deadline: Duration::from_secs(30),
            hold: Duration::from_secs(2),
            call_body_bytes_max: limit::CALL_BODY_BYTES_MAX,
            call_bodies_bytes_max: limit::CALL_BODIES_BYTES_MAX,
            trusted_proxies: Cidr::loopback(),
            sees_dashboard: Arc::new(|peer, host| peer.to_canonical().is_loopback() && is_loopback_host(host)),
        }
    }
}

impl fmt::Debug for GatewayConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayConfig").field("space", &self.space).field("deadline", &self.deadline).finish_non_exhaustive()
    }
}

/// Whether `host` (an authority, with or without port) names this machine by loopback: `localhost`, a name under it, or a
/// loopback address.
pub fn is_loopback_host(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost") || name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// A block of addresses: `10.0.0.0/8`, `::1/128`, or one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix_bits: u8,
}

impl Cidr {
    pub fn loopback() -> Vec<Cidr> {
        ["127.0.0.0/8", "::1/128"].map(|text| text.parse().expect("a well-formed block")).to_vec()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(block), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.prefix_bits)).unwrap_or(0);
                block.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(block), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.prefix_bits)).unwrap_or(0);
                block.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no address block; write `10.0.0.0/8`, `fd00::/8` or one address");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let widest = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            Some(bits) => bits.parse().ok().filter(|bits| *bits <= widest).ok_or_else(wrong)?,
            None => widest,
        };
        Ok(Cidr { address, prefix_bits })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_hold_their_addresses_and_no_others() {
        let contains =
            |block: &str, address: &str| block.parse::<Cidr>().expect("a block").contains(address.parse().expect("an address"));
        assert!(contains("10.0.0.0/8", "10.255.0.1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("0.0.0.0/0", "8.8.8.8"));
        assert!(contains("127.0.0.0/8", "::ffff:127.0.0.1"));
        assert!(contains("::1", "::1"));
        assert!(!contains("::/0", "127.0.0.1"));
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "localhost", "::1/129"] {
            assert!(wrong.parse::<Cidr>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn loopback_hosts_are_known_by_name_and_address() {
        for yes in ["localhost", "localhost:80", "app.localhost:16000", "127.0.0.1:80", "[::1]:80", "[::1]", "LOCALHOST."] {
            assert!(is_loopback_host(yes), "{yes}");
        }
        for no in ["example.com", "localhost.example.com", "10.0.0.1:80", "[2001:db8::1]:80", "", "notlocalhost"] {
            assert!(!is_loopback_host(no), "{no}");
        }
    }
}
