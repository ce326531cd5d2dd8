//! Looks at a stream's first bytes without taking them, to tell what the peer speaks; and the answers for peers at the wrong door.

use crate::wire::sniff::{self, Sniffed};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Bytes that were seen but do not decide stay readable, so readiness cannot be waited for a second time; look again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// Time to hand a refusal to a peer that may not read it.
const ANSWER: Duration = Duration::from_secs(1);
/// TLS record: fatal alert "protocol version", which clients report as such instead of as a broken record.
const TLS_ALERT: [u8; 7] = [0x15, 3, 1, 0, 2, 2, 70];

/// What the peer speaks; `None` if it said too little within `limit` or left.
pub async fn protocol(stream: &TcpStream, limit: Duration) -> Option<Sniffed> {
    let look = async {
        let mut bytes = [0; sniff::BYTES_MAX];
        loop {
            match stream.peek(&mut bytes).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => match sniff::sniff(&bytes[..count]) {
                    Sniffed::NeedMore => tokio::time::sleep(LOOK_AGAIN).await,
                    told => return Some(told),
                },
            }
        }
    };
    tokio::time::timeout(limit, look).await.ok().flatten()
}

/// Closes a stream whose peer came to the wrong door, with an answer where its protocol has one that people can read.
pub async fn turn_away(mut stream: TcpStream, spoke: Sniffed, what: &str) {
    let answer = match spoke {
        Sniffed::Http1 => http_answer(what),
        Sniffed::Tls => TLS_ALERT.to_vec(),
        Sniffed::Amqp | Sniffed::Http2 | Sniffed::Garbage | Sniffed::NeedMore => Vec::new(),
    };
    let say = async {
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        // Closing with unread bytes would reset the connection and take the answer along.
        let mut rest = [0; 1_024];
        while let Ok(count) = tokio::io::AsyncReadExt::read(&mut stream, &mut rest).await {
            if count == 0 {
                break;
            }
        }
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(ANSWER, say).await;
}

fn http_answer(what: &str) -> Vec<u8> {
    let body = serde_json::json!({ "type": "about:blank", "title": "Wrong port", "status": 400, "detail": what }).to_string();
    format!(
        "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;

    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (client, accepted) = tokio::join!(crate::kernel::dial::tcp(address, ANSWER), listener.accept());
        (client.expect("connected"), accepted.expect("accepted").0)
    }

    #[tokio::test]
    async fn bytes_that_were_looked_at_are_still_there() {
        let (mut client, mut server) = pair().await;
        client.write_all(b"AM").await.expect("written");
        let looked = tokio::spawn(async move {
            let told = protocol(&server, Duration::from_secs(5)).await;
            let mut bytes = [0; 8];
            server.read_exact(&mut bytes).await.expect("eight bytes");
            (told, bytes)
        });
        client.write_all(b"QP\x00\x00\x09\x01").await.expect("written");
        assert_eq!(looked.await.expect("no panic"), (Some(Sniffed::Amqp), *b"AMQP\x00\x00\x09\x01"));
    }

    #[tokio::test]
    async fn a_silent_peer_is_given_up_at_the_limit() {
        let (_client, server) = pair().await;
        assert_eq!(protocol(&server, Duration::from_millis(20)).await, None);
    }

    #[tokio::test]
    async fn an_http_client_at_the_wrong_door_gets_an_answer_it_can_read() {
        let (mut client, server) = pair().await;
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("written");
        let away = tokio::spawn(turn_away(server, Sniffed::Http1, "this port speaks AMQP"));
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("a whole answer");
        drop(client);
        away.await.expect("no panic");
        assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("this port speaks AMQP"), "{answer}");
    }
}
