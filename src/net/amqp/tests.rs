//! A connection without a socket: what it costs at rest, and what it is told when several channels fail in one batch.

use super::{AmqpContext, Sessions, serve};
use crate::access::Access;
use crate::broker::{Broker, BrokerConfig, NoAttachments};
use crate::kernel::{Clock, Drain};
use crate::model::config::{AccessSettings, CertificateLogin};
use crate::wire::amqp::frame::PROTOCOL_HEADER;
use crate::wire::amqp::method::{
    BasicAck, BasicNack, BasicPublish, BasicReject, ChannelOpen, ConnectionOpen, ConnectionStartOk, ConnectionTuneOk,
    QueueDeclare,
};
use crate::wire::amqp::{Encode, LongStr, Method, SessionConfig, encode};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;

const HANDSHAKE: Duration = Duration::from_millis(50);

/// Says that the task was woken since the last look.
#[derive(Default)]
struct Woken {
    since_last: AtomicBool,
    news: Notify,
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.since_last.store(true, Ordering::SeqCst);
        self.news.notify_one();
    }
}

/// A connection's task, polled by hand.
struct Served {
    task: Pin<Box<dyn Future<Output = ()> + Send>>,
    woken: Arc<Woken>,
    clock: Clock,
}

impl Served {
    fn new() -> (Self, DuplexStream) {
        let clock = Clock::manual(0);
        let (peer, door) = tokio::io::duplex(64 * 1024);
        let access = Access::new(&AccessSettings::default());
        access.set_accounts(access.seed().accounts());
        let context = AmqpContext {
            broker: Broker::new(clock.clone(), BrokerConfig::default(), Arc::new(NoAttachments)),
            access: Arc::new(access),
            clock: clock.clone(),
            drain: Drain::new(),
            sessions: Sessions::new(SessionConfig { handshake: HANDSHAKE, ..SessionConfig::default() }),
            certificate_login: CertificateLogin::default(),
        };
        let task = serve(door, ([127, 0, 0, 1], 50_000).into(), Arc::new(context));
        let woken = Arc::new(Woken { since_last: true.into(), news: Notify::new() });
        (Served { task, woken, clock }, peer)
    }

    /// What it was woken for until now is done.
    async fn forget_wakes(&mut self) {
        self.settle();
        self.woken.news.notify_one();
        self.woken.news.notified().await;
    }

    /// Polls until nobody wakes the task any more. A task that wakes itself for ever fails here.
    fn settle(&mut self) {
        let waker = Waker::from(self.woken.clone());
        let again = |served: &mut Self| {
            let woken = served.woken.since_last.swap(false, Ordering::SeqCst);
            woken && served.task.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Pending
        };
        let polls = (0..100).take_while(|_| again(self)).count();
        assert!(polls < 100, "the task wakes itself");
    }
}

fn frame(channel: u16, method: &impl Encode) -> Vec<u8> {
    let mut out = Vec::new();
    encode::method(&mut out, channel, method);
    out
}

/// Logs in without a heartbeat and opens channel 1.
async fn open(served: &mut Served, peer: &mut DuplexStream) {
    open_with(served, peer, 0).await;
}

/// Logs in with a heartbeat of so many seconds and opens channel 1.
async fn open_with(served: &mut Served, peer: &mut DuplexStream, heartbeat: u16) {
    let start_ok =
        ConnectionStartOk { mechanism: "PLAIN", response: LongStr(b"\0guest\0guest"), locale: "en_US", ..Default::default() };
    let said = [
        PROTOCOL_HEADER.to_vec(),
        frame(0, &start_ok),
        frame(0, &ConnectionTuneOk { channel_max: 2_047, frame_max: 131_072, heartbeat }),
        frame(0, &ConnectionOpen { virtual_host: "/", ..Default::default() }),
        frame(1, &ChannelOpen::default()),
    ];
    peer.write_all(&said.concat()).await.expect("the pipe has room");
    served.settle();
    let mut heard = vec![0; 4_096];
    let count = peer.read(&mut heard).await.expect("an answer");
    let open_ok = [1, 0, 1, 0, 0, 0, 8, 0, 20, 0, 11, 0, 0, 0, 0, 0xce];
    assert!(heard[..count].ends_with(&open_ok), "{:?}", &heard[..count]);
    served.forget_wakes().await;
}

/// A timer that went off stays ready. Polled again, it once kept the task of every connection without a heartbeat running for ever.
#[tokio::test]
async fn a_connection_without_heartbeat_sleeps_once_the_time_for_its_handshake_is_over() {
    let (mut served, mut peer) = Served::new();
    open(&mut served, &mut peer).await;
    served.clock.advance(HANDSHAKE);
    // A timer that was left would go off now, if it did not while the handshake was still going on.
    _ = tokio::time::timeout(HANDSHAKE * 4, served.woken.news.notified()).await;
    served.settle();
}

/// Publishers without confirms are sent nothing but heartbeats. What they send once counted as something sent to them.
#[tokio::test]
async fn a_client_that_only_publishes_hears_heartbeats() {
    const HALF: Duration = Duration::from_millis(500);
    let (mut served, mut peer) = Served::new();
    open_with(&mut served, &mut peer, 1).await;
    let mut publish = Vec::new();
    let method = BasicPublish { routing_key: "nowhere", ..BasicPublish::default() };
    encode::content(&mut publish, 1, &method, encode::Content { properties: &[0, 0], body: b"x" }, 131_072);
    // The first time something was sent: the answers to its login.
    for _ in 0..2 {
        served.clock.advance(HALF);
        peer.write_all(&publish).await.expect("the pipe has room");
        served.forget_wakes().await;
        tokio::time::timeout(Duration::from_secs(20), served.woken.news.notified()).await.expect("its timer");
        served.settle();
    }
    let mut heard = [0; 64];
    let count = tokio::time::timeout(Duration::from_secs(20), peer.read(&mut heard)).await.expect("something").expect("bytes");
    assert_eq!(heard[..count], [8, 0, 0, 0, 0, 0, 0, 0xce]);
}

/// Channel and text of each method that was answered.
fn told(mut bytes: &[u8]) -> Vec<String> {
    let mut told = Vec::new();
    while !bytes.is_empty() {
        let (channel, size) =
            (u16::from_be_bytes([bytes[1], bytes[2]]), u32::from_be_bytes(bytes[3..7].try_into().expect("four")));
        let method = Method::decode(&bytes[7..7 + size as usize]).expect("a method");
        told.push(match method {
            Method::ChannelClose(close) => {
                format!("{channel} {} {}.{}", close.reply_text, close.class_id, close.method_id)
            }
            other => format!("{channel} {}", other.name()),
        });
        bytes = &bytes[8 + size as usize..];
    }
    told
}

#[tokio::test]
async fn every_channel_with_an_unknown_delivery_tag_is_closed_by_its_own_method_and_the_others_are_answered() {
    let (mut served, mut peer) = Served::new();
    open(&mut served, &mut peer).await;
    let declare = frame(4, &QueueDeclare { queue: "q", ..Default::default() });
    let batch = [
        frame(2, &ChannelOpen::default()),
        frame(3, &ChannelOpen::default()),
        frame(4, &ChannelOpen::default()),
        frame(1, &BasicReject { delivery_tag: 7, requeue: true }),
        frame(2, &BasicNack { delivery_tag: 8, multiple: true, requeue: false }),
        declare.clone(),
        frame(3, &BasicAck { delivery_tag: 9, multiple: false }),
        frame(1, &BasicAck { delivery_tag: 10, multiple: false }),
        declare,
    ];
    peer.write_all(&batch.concat()).await.expect("the pipe has room");
    served.settle();
    let mut heard = vec![0; 4_096];
    let count = peer.read(&mut heard).await.expect("an answer");
    let unknown =
        |channel: u16, tag: u64, method: u16| format!("{channel} PRECONDITION_FAILED - unknown delivery tag {tag} 60.{method}");
    let mut told = told(&heard[..count]);
    told.retain(|told| !told.ends_with("channel.open-ok"));
    let declared = "4 queue.declare-ok".to_owned();
    assert_eq!(told, [declared.clone(), declared, unknown(1, 7, 90), unknown(2, 8, 120), unknown(3, 9, 80)]);
}

#[tokio::test]
async fn a_connection_at_rest_is_small() {
    let (served, _peer) = Served::new();
    let bytes = size_of_val(&*served.task);
    assert!(bytes <= 1_536, "the task of a connection holds {bytes} bytes");
}
