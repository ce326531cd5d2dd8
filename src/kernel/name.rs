//! Names people give to services and spaces.

/// Whether `name` is a service name: `[a-z0-9][a-z0-9_-]{0,62}`, not `v` and digits (that is a version), not `reactor`.
pub fn is_service(name: &str) -> bool {
    let bytes = name.as_bytes();
    let head = bytes.first().is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let tail = bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-'));
    head && tail && bytes.len() <= 63 && name != "reactor" && !is_version_like(name)
}

/// `v` followed by digits only: read as a version in a path or key, so never a service.
pub fn is_version_like(word: &str) -> bool {
    word.strip_prefix('v').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

/// The version that a key or path word declares: `v[1-9][0-9]*`.
pub fn version(word: &str) -> Option<u32> {
    let digits = word.strip_prefix('v')?;
    if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_names_follow_the_contract() {
        for good in ["greeter", "a", "0", "order-api_2", "vv1", "v1a", "version"] {
            assert!(is_service(good), "{good}");
        }
        for bad in ["", "-a", "_a", "Greeter", "v1", "v0", "reactor", "a.b", "a b", "é", &"a".repeat(64)] {
            assert!(!is_service(bad), "{bad}");
        }
    }

    #[test]
    fn versions_have_no_leading_zero() {
        assert_eq!(version("v1"), Some(1));
        assert_eq!(version("v20"), Some(20));
        for none in ["v", "v0", "v01", "1", "vx", "v1x"] {
            assert_eq!(version(none), None, "{none}");
        }
    }
}
