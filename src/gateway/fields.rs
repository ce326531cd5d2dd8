//! A request as the fields of a call: HTTP/2 form, whatever version it came in (service contract §2).

use crate::kernel::limit::CALL_HEADERS_BYTES_MAX;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};

/// What the pseudo-fields say.
#[derive(Debug)]
pub(super) struct Pseudo<'a> {
    pub(super) method: &'a Method,
    /// The exact target as received: path and query, service prefix included.
    pub(super) path: &'a str,
    pub(super) authority: &'a str,
    pub(super) scheme: &'static str,
}

/// The field section is larger than a call may carry (431).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLarge {
    pub(super) bytes: usize,
}

/// Pseudo-fields first, then every field once, in the order its name first came. `headers` are already clean; `host` is
/// `:authority` and `expect` was the gateway's to meet.
pub(super) fn of(pseudo: &Pseudo<'_>, headers: &HeaderMap) -> Result<Vec<(String, Bytes)>, TooLarge> {
    let mut fields = Vec::with_capacity(4 + headers.keys_len());
    for (name, value) in [
        (":method", pseudo.method.as_str()),
        (":path", pseudo.path),
        (":authority", pseudo.authority),
        (":scheme", pseudo.scheme),
    ] {
        fields.push((name.to_owned(), Bytes::copy_from_slice(value.as_bytes())));
    }
    for name in headers.keys().filter(|name| *name != header::HOST && *name != header::EXPECT) {
        fields.push((name.as_str().to_owned(), joined(name, headers)));
    }
    let bytes = fields.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > CALL_HEADERS_BYTES_MAX { Err(TooLarge { bytes }) } else { Ok(fields) }
}

/// The values of one name as one: `, ` between them, `; ` for cookies (RFC 9113 §8.2.3).
fn joined(name: &HeaderName, headers: &HeaderMap) -> Bytes {
    let mut values = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let (first, second) = (values.next().unwrap_or_default(), values.next());
    let Some(second) = second else { return Bytes::copy_from_slice(first) };
    let separator: &[u8] = if name == header::COOKIE { b"; " } else { b", " };
    let mut joined = first.to_vec();
    for value in std::iter::once(second).chain(values) {
        joined.extend_from_slice(separator);
        joined.extend_from_slice(value);
    }
    joined.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pseudo() -> Pseudo<'static> {
        Pseudo { method: &Method::GET, path: "/Greeter/Say?x=1", authority: "localhost:16000", scheme: "http" }
    }

    fn shown(fields: Vec<(String, Bytes)>) -> Vec<String> {
        fields.into_iter().map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(&value))).collect()
    }

    #[test]
    fn pseudo_fields_come_first_and_host_is_the_authority() {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("localhost:16000"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("*/*"));
        headers.insert(header::EXPECT, HeaderValue::from_static("100-continue"));
        assert_eq!(
            shown(of(&pseudo(), &headers).expect("small")),
            [":method=GET", ":path=/Greeter/Say?x=1", ":authority=localhost:16000", ":scheme=http", "accept=*/*"]
        );
    }

    #[test]
    fn repeated_fields_are_joined_and_cookies_with_semicolons() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("accept", "a"), ("cookie", "x=1"), ("accept", "b"), ("cookie", "y=2"), ("accept", "c")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        assert_eq!(shown(of(&pseudo(), &headers).expect("small"))[4..], ["accept=a, b, c", "cookie=x=1; y=2"]);
    }

    #[test]
    fn values_are_the_bytes_received() {
        let mut headers = HeaderMap::new();
        headers.insert("x", HeaderValue::from_bytes(b"caf\xe9").expect("obs-text is allowed"));
        let fields = of(&pseudo(), &headers).expect("small");
        assert_eq!(fields[4], ("x".to_owned(), Bytes::from_static(b"caf\xe9")));
    }

    #[test]
    fn more_than_32_kib_is_too_large() {
        let mut headers = HeaderMap::new();
        headers.insert("x", HeaderValue::from_bytes(&[b'a'; CALL_HEADERS_BYTES_MAX]).expect("visible"));
        assert!(of(&pseudo(), &headers).is_err());
    }
}
