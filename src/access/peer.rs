//! Which peers count as this machine.

use std::net::IpAddr;

/// Loopback, also when it arrives as an IPv4 address mapped into IPv6.
pub fn is_loopback(peer: IpAddr) -> bool {
    peer.to_canonical().is_loopback()
}

/// A `Host` (with or without port) that names this machine: a foreign name here is DNS rebinding.
pub fn is_loopback_host(host: &str) -> bool {
    let name = host_name(host);
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    if name == "localhost" || name.ends_with(".localhost") {
        return true;
    }
    name.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(is_loopback)
}

/// `Host` without its port.
pub fn host_name(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        },
    }
}

/// Equality that takes the same time wherever the difference is.
pub fn same_secret(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let difference = left.iter().zip(right).fold(0, |sum, (a, b)| sum | (a ^ b));
    left.len() == right.len() && std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback_hosts() {
        for good in
            ["localhost", "localhost:15000", "LOCALHOST.:80", "app.localhost:3000", "127.0.0.1", "127.8.8.8:1", "[::1]:15000"]
        {
            assert!(is_loopback_host(good), "{good}");
        }
        for bad in ["", "evil.com", "localhost.evil.com", "127.0.0.1.evil.com", "10.0.0.1:15000", "[::2]", "notlocalhost"] {
            assert!(!is_loopback_host(bad), "{bad}");
        }
    }

    #[test]
    fn secrets_of_another_length_differ() {
        assert!(same_secret("abc", "abc"));
        assert!(!same_secret("abc", "ab"));
        assert!(!same_secret("", "a"));
        assert!(!same_secret("abc", "abd"));
    }
}
