//! The PROXY protocol, versions 1 and 2: a load balancer in front says before the first byte of the connection itself whose it is.
//!
//! ```text
//!   1:  PROXY TCP4 203.0.113.7 10.0.0.2 51234 5672\r\n
//!   2:  12 bytes of signature · version and command · family · length (16 bits) · addresses, then extras
//! ```
//!
//! Only peers that the configuration trusts are listened to: anybody else could claim to be this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};

const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The shortest header of version 1, `PROXY UNKNOWN` and the end of its line; shorter than any of version 2.
const FIRST_BYTES: usize = 15;
const TEXT: &[u8] = b"PROXY ";
const LINE_BYTES_MAX: usize = 107;
/// Addresses and extras of version 2; more is refused.
const LENGTH_MAX: usize = 2_048;

/// Reads the header off the front of `stream` and no byte more. `None`: the proxy speaks for itself (a health check).
pub async fn read<S: AsyncRead + Unpin>(stream: &mut S, limit: Duration) -> io::Result<Option<SocketAddr>> {
    tokio::time::timeout(limit, header(stream)).await.map_err(|_| io::ErrorKind::TimedOut)?
}

async fn header<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<Option<SocketAddr>> {
    let first = first_bytes(stream).await?;
    if first[..SIGNATURE.len()] == SIGNATURE {
        let mut length = [first[14], 0];
        stream.read_exact(&mut length[1..]).await?;
        let mut rest = vec![0; usize::from(u16::from_be_bytes(length)).min(LENGTH_MAX + 1)];
        if rest.len() > LENGTH_MAX {
            return Err(wrong("its addresses and extras are longer than 2 KiB"));
        }
        stream.read_exact(&mut rest).await?;
        return version_2(first[12], first[13], &rest);
    }
    let mut line = first.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LINE_BYTES_MAX {
            return Err(wrong("its line is longer than 107 bytes"));
        }
        line.push(stream.read_u8().await?);
    }
    version_1(&line[..line.len() - 2])
}

/// What tells the versions apart. A peer that says something else is found out by its first bytes, however few they are.
async fn first_bytes<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<[u8; FIRST_BYTES]> {
    let mut first = [0; FIRST_BYTES];
    let mut read = 0;
    while read < FIRST_BYTES {
        let count = stream.read(&mut first[read..]).await?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read += count;
        let begins = |with: &[u8]| first[..read.min(with.len())] == with[..read.min(with.len())];
        if !begins(&SIGNATURE) && !begins(TEXT) {
            return Err(wrong("it does not begin with a PROXY header"));
        }
    }
    Ok(first)
}

fn version_1(line: &[u8]) -> io::Result<Option<SocketAddr>> {
    let text = std::str::from_utf8(line).map_err(|_| wrong("its line is not text"))?;
    let mut words = text.split(' ').skip(1);
    let family = words.next();
    if family == Some("UNKNOWN") {
        return Ok(None);
    }
    let (source, port) = (words.next(), words.nth(1));
    let address = source.and_then(|source| source.parse::<IpAddr>().ok()).filter(|address| match family {
        Some("TCP4") => address.is_ipv4(),
        Some("TCP6") => address.is_ipv6(),
        _ => false,
    });
    match (address, port.and_then(|port| port.parse().ok()), words.next(), words.next()) {
        (Some(address), Some(port), Some(_), None) => Ok(Some(SocketAddr::new(address, port))),
        _ => Err(wrong("its line does not name a source and a destination")),
    }
}

fn version_2(command: u8, family: u8, rest: &[u8]) -> io::Result<Option<SocketAddr>> {
    match command {
        0x20 => return Ok(None),
        0x21 => {}
        _ => return Err(wrong("its version or command is unknown")),
    }
    let port = |at: usize| rest.get(at..at + 2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]));
    let short = || wrong("its addresses are cut short");
    match family {
        0x11 => {
            let ip: [u8; 4] = rest.get(..4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
            Ok(Some(SocketAddr::new(Ipv4Addr::from(ip).into(), port(8).ok_or_else(short)?)))
        }
        0x21 => {
            let ip: [u8; 16] = rest.get(..16).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
            Ok(Some(SocketAddr::new(Ipv6Addr::from(ip).into(), port(32).ok_or_else(short)?)))
        }
        // Unspecified, datagrams and Unix sockets: the connection is good, its origin is not told.
        _ => Ok(None),
    }
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn told(bytes: &[u8]) -> (Result<Option<String>, String>, Vec<u8>) {
        let mut stream = bytes;
        let read = read(&mut stream, Duration::from_secs(5)).await;
        let read = read.map(|address| address.map(|address| address.to_string())).map_err(|error| error.to_string());
        (read, stream.to_vec())
    }

    fn version_2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
        [&SIGNATURE[..], &[command, family], &length, rest, b"AMQP"].concat()
    }

    #[tokio::test]
    async fn both_versions_tell_the_address_and_leave_what_follows() {
        let one = told(b"PROXY TCP4 203.0.113.7 10.0.0.2 51234 5672\r\nAMQP").await;
        assert_eq!(one, (Ok(Some("203.0.113.7:51234".into())), b"AMQP".to_vec()));
        let six = told(b"PROXY TCP6 2001:db8::1 ::1 1 2\r\nAMQP").await;
        assert_eq!(six, (Ok(Some("[2001:db8::1]:1".into())), b"AMQP".to_vec()));
        let two = told(&version_2(0x21, 0x11, &[203, 0, 113, 7, 10, 0, 0, 2, 200, 34, 22, 40, 3, 0, 1, 9])).await;
        assert_eq!(two, (Ok(Some("203.0.113.7:51234".into())), b"AMQP".to_vec()));
        let address: Vec<u8> = [[0x20; 16], [0; 16]].concat().into_iter().chain([0, 7, 0, 8]).collect();
        let two = told(&version_2(0x21, 0x21, &address)).await;
        assert_eq!(two.0, Ok(Some("[2020:2020:2020:2020:2020:2020:2020:2020]:7".into())));
    }

    #[tokio::test]
    async fn a_proxy_may_speak_for_itself() {
        assert_eq!(told(b"PROXY UNKNOWN\r\nAMQP").await, (Ok(None), b"AMQP".to_vec()));
        assert_eq!(told(b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n").await.0, Ok(None));
        assert_eq!(told(&version_2(0x20, 0, &[])).await, (Ok(None), b"AMQP".to_vec()));
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused() {
        let long = [b"PROXY TCP4 ".as_slice(), &[b'1'; 200]].concat();
        let cut = version_2(0x21, 0x11, &[1, 2, 3]);
        let unknown = version_2(0x31, 0x11, &[0; 12]);
        let huge = [&SIGNATURE[..], &[0x21, 0x11, 0xff, 0xff]].concat();
        let cases: [&[u8]; 8] = [
            b"AMQP\0\0\x09\x01 and more",
            b"PROXY",
            b"PROXY TCP4 nonsense 10.0.0.2 1 2\r\n",
            b"PROXY TCP4 ::1 ::2 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.5 99999 2\r\n",
            &long,
            &cut,
            &unknown,
        ];
        for bytes in cases.into_iter().chain([huge.as_slice()]) {
            assert!(told(bytes).await.0.is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[tokio::test]
    async fn a_client_that_knows_no_proxy_is_refused_by_its_first_bytes_not_by_the_time_limit() {
        use tokio::io::AsyncWriteExt as _;
        for said in [&b"AMQP\0\0\x09\x01"[..], b"G", b"PROXX", b"\r\n\r\nX"] {
            let (mut client, mut server) = tokio::io::duplex(64);
            client.write_all(said).await.expect("written");
            let refused = read(&mut server, Duration::from_secs(60)).await.expect_err("refused");
            assert_eq!(refused.to_string(), "it does not begin with a PROXY header", "{said:?}");
        }
    }

    #[tokio::test]
    async fn a_header_in_pieces_is_read_whole() {
        use tokio::io::AsyncWriteExt as _;
        let (mut client, mut server) = tokio::io::duplex(64);
        let reading = tokio::spawn(async move { read(&mut server, Duration::from_secs(60)).await });
        for piece in ["P", "ROXY TC", "P4 203.0.113.7 10.0.0.2 51234 5672", "\r", "\n"] {
            client.write_all(piece.as_bytes()).await.expect("written");
            tokio::task::yield_now().await;
        }
        let told = reading.await.expect("no panic").expect("a header");
        assert_eq!(told, Some("203.0.113.7:51234".parse().expect("an address")));
    }
}
