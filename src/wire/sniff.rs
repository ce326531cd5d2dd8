//! Tells by its first bytes what a peer speaks, so that one port can serve several protocols.

/// What the first bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniffed {
    /// `AMQP` and a version, which need not be ours: the session answers others with its own header.
    Amqp,
    /// A method and a space.
    Http1,
    /// The HTTP/2 connection preface, with prior knowledge (h2c); also gRPC.
    Http2,
    /// A ClientHello.
    Tls,
    /// Nothing of these.
    Garbage,
    /// A beginning that several may still have, or one of them. Never for [`BYTES_MAX`] bytes.
    NeedMore,
}

/// As many bytes always decide.
pub const BYTES_MAX: usize = HTTP2_PREFACE.len();

const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Methods end with a space; the longest registered one has 17 letters (`UPDATEREDIRECTREF`).
const HTTP_METHOD_BYTES_MAX: usize = 18;
/// Handshake record, major version 3; the client's hello follows at byte 5.
const TLS_HANDSHAKE: u8 = 0x16;
const TLS_CLIENT_HELLO: u8 = 0x01;

pub fn sniff(bytes: &[u8]) -> Sniffed {
    match bytes {
        [] => Sniffed::NeedMore,
        [TLS_HANDSHAKE, ..] => tls(bytes),
        _ if starts(bytes, b"AMQP") => full(bytes, 4, Sniffed::Amqp),
        _ if starts(bytes, HTTP2_PREFACE) => full(bytes, HTTP2_PREFACE.len(), Sniffed::Http2),
        _ => http1(bytes),
    }
}

/// Whether one is the beginning of the other.
fn starts(bytes: &[u8], with: &[u8]) -> bool {
    bytes.iter().zip(with).all(|(a, b)| a == b)
}

fn full(bytes: &[u8], length: usize, found: Sniffed) -> Sniffed {
    if bytes.len() >= length { found } else { Sniffed::NeedMore }
}

fn tls(bytes: &[u8]) -> Sniffed {
    match bytes {
        [_] | [_, 3] | [_, 3, _] | [_, 3, _, _] | [_, 3, _, _, _] => Sniffed::NeedMore,
        [_, 3, _, _, _, TLS_CLIENT_HELLO, ..] => Sniffed::Tls,
        _ => Sniffed::Garbage,
    }
}

fn http1(bytes: &[u8]) -> Sniffed {
    let method = bytes.iter().take_while(|b| b.is_ascii_uppercase() || **b == b'-').count();
    match bytes.get(method) {
        Some(b' ') if (3..HTTP_METHOD_BYTES_MAX).contains(&method) => Sniffed::Http1,
        None if method < HTTP_METHOD_BYTES_MAX => Sniffed::NeedMore,
        _ => Sniffed::Garbage,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_protocol_is_told_by_its_first_bytes() {
        let cases: &[(&[u8], Sniffed)] = &[
            (b"AMQP\x00\x00\x09\x01", Sniffed::Amqp),
            (b"AMQP\x03\x01\x00\x00", Sniffed::Amqp),
            (b"GET / HTTP/1.1\r\n", Sniffed::Http1),
            (b"OPTIONS * HTTP/1.1\r\n", Sniffed::Http1),
            (b"PROPFIND /x HTTP/1.1\r\n", Sniffed::Http1),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00", Sniffed::Http2),
            (b"\x16\x03\x01\x02\x00\x01\x00", Sniffed::Tls),
            (b"\x16\x03\x01\x02\x00\x02\x00", Sniffed::Garbage),
            (b"\x16\x02", Sniffed::Garbage),
            (b"*1\r\n$4\r\nPING\r\n", Sniffed::Garbage),
            (b"get / HTTP/1.1", Sniffed::Garbage),
            (b"\x00\x00\x00\x00", Sniffed::Garbage),
            (b"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", Sniffed::Garbage),
            (b"", Sniffed::NeedMore),
        ];
        for (bytes, expected) in cases {
            assert_eq!(sniff(bytes), *expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_shorter_beginning_never_says_something_else() {
        for whole in
            [&b"AMQP\x00\x00\x09\x01"[..], b"POST /v1/traces HTTP/1.1\r\n", HTTP2_PREFACE, b"\x16\x03\x01\x02\x00\x01\x00\x01"]
        {
            let told = sniff(whole);
            for length in 0..whole.len() {
                let early = sniff(&whole[..length]);
                assert!(early == told || early == Sniffed::NeedMore, "{length} bytes of {}", whole.escape_ascii());
            }
        }
    }

    #[test]
    fn enough_bytes_always_decide() {
        for seed in 0..5_000 {
            let mut rng = crate::kernel::rng::Rng::seeded(seed);
            let bytes: Vec<u8> = (0..BYTES_MAX).map(|_| b"AMQPRI* HTP/2.0\r\nS\x16\x03\x01-"[rng.below(22) as usize]).collect();
            assert_ne!(sniff(&bytes), Sniffed::NeedMore, "{}", bytes.escape_ascii());
        }
    }
}
