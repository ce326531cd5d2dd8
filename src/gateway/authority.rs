//! Whom a request is addressed to: the authority of its target, else its Host field; checked, because hyper does not
//! (RFC 9112 §3.2, RFC 9113 §8.3.1).

use http::{Uri, Version, header};
use std::net::Ipv6Addr;

/// A checked authority, without user information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Authority {
    /// `host` or `host:port`, as received.
    pub(super) text: String,
    pub(super) port: Option<u16>,
}

impl Authority {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                address.parse::<Ipv6Addr>().ok()?;
                (address, port)
            }
            None => text.find(':').map_or((text, ""), |colon| text.split_at(colon)),
        };
        let port = match port.strip_prefix(':') {
            Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Some(digits.parse().ok()?),
            Some(_) => return None,
            None if port.is_empty() => None,
            None => return None,
        };
        let is_host = |b: u8| b.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=:".contains(&b);
        (!host.is_empty() && host.bytes().all(is_host)).then(|| Authority { text: text.to_owned(), port })
    }

    /// The authority of a request, or why there is none.
    pub(super) fn of(uri: &Uri, headers: &http::HeaderMap, version: Version) -> Result<Self, &'static str> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        if second.is_some() {
            return Err("the request has two Host fields");
        }
        let host = match host {
            Some(host) => {
                let host = host.to_str().ok().and_then(Authority::parse);
                Some(host.ok_or("the Host field is not `host` or `host:port`")?)
            }
            None => None,
        };
        let target = match uri.authority() {
            Some(authority) => Some(Authority::parse(authority.as_str()).ok_or("the authority is not `host` or `host:port`")?),
            None => None,
        };
        match (target, host) {
            (Some(target), Some(host)) if version == Version::HTTP_2 && !target.text.eq_ignore_ascii_case(&host.text) => {
                Err("the :authority and Host fields differ")
            }
            // The target's authority wins, and replaces what the Host field said (RFC 9112 §3.2.2).
            (Some(target), _) if version == Version::HTTP_2 => Ok(target),
            (Some(target), Some(_)) => Ok(target),
            (Some(target), None) if version < Version::HTTP_11 => Ok(target),
            (None, Some(host)) => Ok(host),
            (None, None) if version < Version::HTTP_11 => Ok(Authority { text: "localhost".to_owned(), port: None }),
            (_, None) => Err("the request has no Host field"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn authorities_are_host_and_port() {
        for good in ["x", "x:80", "a.b-c_d.example:65535", "[::1]", "[::1]:8080", "127.0.0.1:16000", "xn--caf-dma.fr"] {
            assert!(Authority::parse(good).is_some(), "{good}");
        }
        for bad in
            ["", "x/y", "x y", "user@x", "x:", "x:80a", "x:65536", ":80", "[::1", "[zz]", "[::1]x", "x:80:90", "x?y", "x#y"]
        {
            assert_eq!(Authority::parse(bad), None, "{bad}");
        }
        assert_eq!(Authority::parse("[::1]:8080").expect("good").port, Some(8080));
    }

    fn of(uri: &str, hosts: &[&str], version: Version) -> Result<String, &'static str> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_str(host).expect("visible"));
        }
        Authority::of(&uri.parse().expect("a URI"), &headers, version).map(|authority| authority.text)
    }

    #[test]
    fn a_request_without_host_is_refused() {
        assert!(of("/a", &[], Version::HTTP_11).is_err());
        assert!(of("http://evil/a", &[], Version::HTTP_11).is_err());
        assert_eq!(of("/a", &[], Version::HTTP_10).expect("HTTP/1.0 needs none"), "localhost");
    }

    #[test]
    fn a_request_with_two_hosts_or_a_bad_one_is_refused() {
        assert!(of("/a", &["x", "y"], Version::HTTP_11).is_err());
        assert!(of("/a", &["x", "x"], Version::HTTP_11).is_err());
        assert!(of("/a", &["x/y"], Version::HTTP_11).is_err());
        assert!(of("http://evil/a", &["x/y"], Version::HTTP_11).is_err());
    }

    #[test]
    fn the_targets_authority_wins_over_host() {
        assert_eq!(of("http://evil:81/a", &["x"], Version::HTTP_11).expect("good"), "evil:81");
    }

    #[test]
    fn over_http2_authority_and_host_must_agree() {
        assert_eq!(of("http://x/a", &[], Version::HTTP_2).expect("good"), "x");
        assert_eq!(of("http://x/a", &["X"], Version::HTTP_2).expect("good"), "x");
        assert!(of("http://x/a", &["y"], Version::HTTP_2).is_err());
        assert_eq!(of("/a", &["y"], Version::HTTP_2).expect("good"), "y");
    }
}
