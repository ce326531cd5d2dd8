//! The live feed over a real WebSocket.

use crate::support::{DEADLINE, Reactor, wait_until};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// Prints `n 1`, `n 2`, … for ever, some hundred lines a second.
const COUNTER: &str = r#"
[services.counter]
command = ["sh", "-c", "i=0; while :; do i=$((i+1)); echo \"n $i\"; sleep 0.005; done"]
"#;

struct Feed {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    hello: Value,
}

impl Feed {
    async fn open(reactor: &Reactor) -> Feed {
        let address = format!("ws://127.0.0.1:{}/api/v1/live", reactor.port("control"));
        let (socket, _) = connect_async(address).await.expect("the feed opens");
        let mut feed = Feed { socket, hello: Value::Null };
        feed.hello = feed.next().await;
        assert_eq!(feed.hello["kind"], "hello");
        feed
    }

    async fn send(&mut self, frame: Value) {
        self.socket.send(Message::text(frame.to_string())).await.expect("sent");
    }

    /// The next frame of JSON; pings are the library's.
    async fn next(&mut self) -> Value {
        tokio::time::timeout(DEADLINE, self.next_text()).await.expect("a frame within the deadline")
    }

    async fn next_text(&mut self) -> Value {
        loop {
            match self.socket.next().await.expect("open").expect("no failure") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// The next frame of a subscription.
    async fn of(&mut self, id: u64) -> Value {
        tokio::time::timeout(DEADLINE, async {
            loop {
                let frame = self.next_text().await;
                if frame["id"] == id {
                    return frame;
                }
            }
        })
        .await
        .expect("a frame of the subscription within the deadline")
    }

    async fn ack(&mut self, frame: &Value) {
        self.send(json!({"op": "ack", "id": frame["id"], "cursor": frame["cursor"]})).await;
    }

    /// The reason with which the server closes; frames before it are skipped.
    async fn closed(&mut self) -> Option<CloseCode> {
        tokio::time::timeout(DEADLINE, async {
            loop {
                match self.socket.next().await {
                    None | Some(Err(_)) => return None,
                    Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code),
                    Some(Ok(_)) => {}
                }
            }
        })
        .await
        .expect("closed within the deadline")
    }
}

/// The counter's numbers in a frame of rows, whichever stream they came by.
fn numbers(frame: &Value) -> Vec<u64> {
    let text = |row: &Value| row["body"].as_str().or(row["text"].as_str()).unwrap_or_default().to_owned();
    let rows = frame["rows"].as_array().expect("rows");
    rows.iter().filter_map(|row| text(row).strip_prefix("n ")?.parse().ok()).collect()
}

fn assert_consecutive(numbers: &[u64]) {
    for pair in numbers.windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "lost or doubled: {pair:?}");
    }
}

async fn resumes(wish: Value) {
    let reactor = Reactor::start(COUNTER);
    let mut feed = Feed::open(&reactor).await;
    feed.send(wish.clone()).await;
    let (mut seen, mut cursor) = (Vec::new(), Value::Null);
    while seen.len() < 100 {
        let frame = feed.of(1).await;
        assert_eq!((&frame["skipped"], &frame["evicted"]), (&json!(0), &json!(0)), "{frame}");
        seen.extend(numbers(&frame));
        cursor = frame["cursor"].clone();
        feed.ack(&frame).await;
    }
    let epoch = feed.hello["epoch"].clone();
    drop(feed);
    // The counter goes on while nobody listens.
    let before = *seen.last().expect("seen");
    wait_until("a hundred lines pass", DEADLINE, async || last_number(&reactor).await > before + 100).await;
    let mut feed = Feed::open(&reactor).await;
    assert_eq!(feed.hello["epoch"], epoch, "the process is the same");
    let mut again = wish;
    again["cursor"] = cursor;
    feed.send(again).await;
    while *seen.last().expect("seen") < before + 200 {
        let frame = feed.of(1).await;
        assert_eq!((&frame["skipped"], &frame["evicted"]), (&json!(0), &json!(0)), "{frame}");
        seen.extend(numbers(&frame));
        feed.ack(&frame).await;
    }
    assert_consecutive(&seen);
}

async fn last_number(reactor: &Reactor) -> u64 {
    let address = format!("{}/api/v1/services/counter/console?limit=1", reactor.api());
    let page: Value = reqwest::get(address).await.expect("answers").json().await.expect("JSON");
    page["rows"][0]["text"].as_str().and_then(|text| text.strip_prefix("n ")?.parse().ok()).unwrap_or(0)
}

#[tokio::test]
async fn logs_go_on_after_a_reconnect_without_loss_or_duplicate() {
    resumes(json!({"op": "subscribe", "id": 1, "channel": "logs", "query": "service:counter", "cursor": null})).await;
}

#[tokio::test]
async fn a_console_goes_on_after_a_reconnect_without_loss_or_duplicate() {
    resumes(json!({"op": "subscribe", "id": 1, "channel": "console", "service": "counter", "backfill": 0})).await;
}

#[tokio::test]
async fn a_console_keeps_its_colours() {
    let reactor = Reactor::start(
        "[services.paint]\ncommand = [\"sh\", \"-c\", \"printf '\\\\033[31mred\\\\033[0m\\\\n'; exec sleep 600\"]",
    );
    let mut feed = Feed::open(&reactor).await;
    feed.send(json!({"op": "subscribe", "id": 5, "channel": "console", "service": "paint", "backfill": 100})).await;
    loop {
        let frame = feed.of(5).await;
        feed.ack(&frame).await;
        if frame["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .any(|row| row["text"] == "\u{1b}[31mred\u{1b}[0m" && row["kind"] == "stdout")
        {
            return;
        }
    }
}

#[tokio::test]
async fn a_state_comes_whole_once_and_then_only_what_changed() {
    let reactor = Reactor::start("");
    let mut feed = Feed::open(&reactor).await;
    feed.send(json!({"op": "subscribe", "id": 2, "channel": "services"})).await;
    let whole = loop {
        let frame = feed.of(2).await;
        feed.ack(&frame).await;
        if !frame["set"]["/ gateway"].is_null() {
            break frame;
        }
    };
    assert_eq!(whole["set"]["/ gateway"]["name"], "gateway");
    let connection =
        lapin::Connection::connect(&reactor.amqp_url(), lapin::ConnectionProperties::default()).await.expect("connects");
    let channel = connection.create_channel().await.expect("a channel");
    feed.send(json!({"op": "subscribe", "id": 3, "channel": "queues"})).await;
    let first = feed.of(3).await;
    assert_eq!(first["full"], true);
    feed.ack(&first).await;
    channel.queue_declare("fresh".into(), Default::default(), Default::default()).await.expect("a queue");
    let changed = feed.of(3).await;
    assert_eq!(changed["full"], false);
    assert_eq!(changed["set"]["/ fresh"]["name"], "fresh");
    feed.ack(&changed).await;
    channel.queue_delete("fresh".into(), Default::default()).await.expect("deleted");
    loop {
        let frame = feed.of(3).await;
        feed.ack(&frame).await;
        if frame["gone"] == json!(["/ fresh"]) {
            return;
        }
    }
}

#[tokio::test]
async fn only_one_delta_is_out_until_it_is_acknowledged() {
    let reactor = Reactor::start(COUNTER);
    let mut feed = Feed::open(&reactor).await;
    feed.send(json!({"op": "subscribe", "id": 1, "channel": "console", "service": "counter"})).await;
    let unacknowledged = feed.of(1).await;
    let before = last_number(&reactor).await;
    wait_until("fifty more lines", DEADLINE, async || last_number(&reactor).await > before + 50).await;
    feed.send(json!({"op": "ping", "at": 7})).await;
    let answer = feed.next().await;
    assert_eq!(answer, json!({"kind": "pong", "at": 7}), "rows came although none were acknowledged");
    feed.ack(&unacknowledged).await;
    let next = feed.of(1).await;
    let (old, new) = (numbers(&unacknowledged), numbers(&next));
    assert!(new.len() >= 50);
    if let Some(last) = old.last() {
        assert_eq!(new[0], last + 1);
    }
}

#[tokio::test]
async fn a_hundred_frozen_tabs_cost_next_to_nothing() {
    let reactor = Reactor::start(COUNTER);
    let mut frozen = Vec::new();
    for _ in 0..100 {
        let mut feed = Feed::open(&reactor).await;
        for (id, channel) in ["logs", "traces", "happenings", "services", "queues", "overview", "tape"].into_iter().enumerate() {
            feed.send(json!({"op": "subscribe", "id": id, "channel": channel, "backfill": 1000})).await;
        }
        frozen.push(feed);
    }
    let (before, line) = (reactor.memory_bytes(), last_number(&reactor).await);
    wait_until("a thousand lines pass", DEADLINE, async || last_number(&reactor).await > line + 1_000).await;
    let grown = reactor.memory_bytes().saturating_sub(before);
    assert!(grown < 24 << 20, "a hundred frozen tabs made reactor {grown} bytes larger");
    let mut live = Feed::open(&reactor).await;
    live.send(json!({"op": "ping", "at": 1})).await;
    assert_eq!(live.next().await["kind"], "pong");
}

#[tokio::test]
async fn frames_that_cannot_be_understood_are_refused_and_the_feed_goes_on() {
    let mut reactor = Reactor::start("");
    let mut feed = Feed::open(&reactor).await;
    for (frame, id) in [
        ("{", 0),
        ("[1,2]", 0),
        (r#"{"op":"dance","id":3}"#, 3),
        (r#"{"op":"subscribe","id":4,"channel":"weather"}"#, 4),
        (r#"{"op":"subscribe","id":5,"channel":"console"}"#, 5),
        (r#"{"op":"subscribe","id":6,"channel":"console","service":"nobody"}"#, 6),
        (r#"{"op":"subscribe","id":7,"channel":"logs","query":"severity>="}"#, 7),
    ] {
        feed.socket.send(Message::text(frame)).await.expect("sent");
        let refused = feed.next().await;
        assert_eq!((&refused["kind"], &refused["id"]), (&json!("refused"), &json!(id)), "{frame}: {refused}");
        assert!(refused["problem"]["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{refused}");
    }
    feed.socket.send(Message::binary(vec![1, 2, 3])).await.expect("sent");
    assert_eq!(feed.next().await["kind"], "refused");
    // Acknowledging and leaving what is not there is no mistake: the frames may have crossed.
    feed.send(json!({"op": "ack", "id": 99, "cursor": 5})).await;
    feed.send(json!({"op": "unsubscribe", "id": 99})).await;
    feed.send(json!({"op": "ping", "at": 1})).await;
    assert_eq!(feed.next().await["kind"], "pong");
    assert!(reactor.is_running());
}

#[tokio::test]
async fn a_client_that_sends_only_rubbish_or_too_much_is_closed() {
    let mut reactor = Reactor::start("");
    let mut rubbish = Feed::open(&reactor).await;
    for _ in 0..100 {
        if rubbish.socket.send(Message::text("rubbish")).await.is_err() {
            break;
        }
    }
    assert_eq!(rubbish.closed().await, Some(CloseCode::Policy));
    let mut huge = Feed::open(&reactor).await;
    let _ = huge.socket.send(Message::text("x".repeat(1 << 20))).await;
    assert!(matches!(huge.closed().await, Some(CloseCode::Size) | None));
    assert!(reactor.is_running());
}

#[tokio::test]
async fn a_peer_that_no_longer_answers_pings_is_closed() {
    let mut reactor = Reactor::start("");
    let mut silent = TcpStream::connect(("127.0.0.1", reactor.port("control"))).await.expect("connects");
    let handshake = "GET /api/v1/live HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    silent.write_all(handshake.as_bytes()).await.expect("sent");
    let mut received = Vec::new();
    let closed = tokio::time::timeout(2 * DEADLINE, silent.read_to_end(&mut received)).await;
    closed.expect("a peer that is half dead is closed").expect("closed in order");
    assert!(received.starts_with(b"HTTP/1.1 101"));
    assert!(reactor.is_running());
}

#[tokio::test]
async fn a_stopping_reactor_says_goodbye() {
    let reactor = Reactor::start("");
    let mut feed = Feed::open(&reactor).await;
    reactor.signal("TERM");
    assert_eq!(feed.closed().await, Some(CloseCode::Away));
    let status = tokio::time::timeout(Duration::from_secs(10), tokio::task::spawn_blocking(move || reactor.stop())).await;
    assert!(status.expect("stops in time").expect("no panic").success());
}
