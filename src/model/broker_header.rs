//! The header names that the broker itself reads or writes. The one list: the gateway strips them from requests, so that an
//! HTTP client can never reach into routing, delays or dead-letter history (service contract §2).
//!
//! Names are compared as given. `CC` and `BCC` are case-sensitive in AMQP and HTTP field names arrive in lower case, so `cc` and
//! `bcc` are ordinary fields that never route and are not in the list.

/// Exact names, in lower case, sorted.
const NAMES: &[&str] = &[
    "x-acquired-count",
    "x-death",
    "x-delay",
    "x-delivery-count",
    "x-first-death-exchange",
    "x-first-death-queue",
    "x-first-death-reason",
    "x-last-death-exchange",
    "x-last-death-queue",
    "x-last-death-reason",
    "x-received-from",
];

/// Prefixes that are the broker's as a whole.
const PREFIXES: &[&str] = &["x-reactor-", "x-stream-", "x-shovel-"];

/// Whether the broker gives `name` (in lower case) a meaning of its own.
pub fn is_broker_header(name: &str) -> bool {
    if !name.starts_with("x-") {
        return false;
    }
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_broker_reads_is_in_the_list() {
        for name in ["x-death", "x-delay", "x-delivery-count", "x-stream-offset", "x-stream-filter-value", "x-reactor-subject"] {
            assert!(is_broker_header(name), "{name}");
        }
    }

    #[test]
    fn ordinary_fields_are_not() {
        for name in ["x-forwarded-for", "x-request-id", "cc", "bcc", "x-custom", "accept", "x-deathly"] {
            assert!(!is_broker_header(name), "{name}");
        }
    }
}
