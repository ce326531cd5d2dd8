//! One connection's task: it reads, feeds the session, tells the broker, and writes what waits.
//!
//! Everything one read brought is one batch: publishes and acks take effect together, confirms are cumulative, each touched
//! connection is woken once. What was received before the peer's FIN is routed before the connection ends.

use super::AmqpContext;
use super::dispatch::{self, Caller};
use super::frames::FrameLog;
use super::login::{self, Door, Guest, Place};
use super::transport::Transport;
use super::writer::Writer;
use crate::broker::{Client, Failed, Hold, Link};
use crate::kernel::clock::Instant;
use crate::kernel::pool;
use crate::net::tls;
use crate::wire::amqp::encode::method;
use crate::wire::amqp::method::{BasicPublish, ChannelOpen, ConnectionBlocked, ConnectionOpen, ConnectionUnblocked, MethodId};
use crate::wire::amqp::{Encode, Event, Finish, Reach, Reply, ReplyCode, Session};
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Sleep;

/// How long the peer is given to close the socket after the last frame.
const FAREWELL: Duration = Duration::from_secs(5);
/// A read buffer that holds only the beginning of a frame is shrunk when the connection rests.
const RESTING_BYTES_MAX: usize = 4 * 1024;

pub(super) struct Connection<S: Transport> {
    context: Arc<AmqpContext>,
    place: Place,
    /// Whom the peer's certificate names.
    certificate_user: Option<Box<str>>,
    reader: S::Read,
    writer: Arc<Writer<S::Write>>,
    session: Session,
    /// Received and not yet understood.
    buffer: Vec<u8>,
    log: Option<Box<FrameLog>>,
    /// The session's own frames, on their way into the outbox.
    out: Vec<u8>,
    guest: Option<Box<Guest>>,
    client: Option<Client>,
    /// While it lasts nothing is read.
    hold: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Something waits to be written.
    dirty: bool,
    /// The peer said goodbye: the end of the socket is its own.
    peer_ends: bool,
    /// Bytes that had been written when time last passed, heartbeats included.
    written: u64,
    alarm: Option<Alarm>,
}

/// When the session has something to do. One that went off is dropped: a finished `Sleep` stays ready for ever.
struct Alarm {
    due: Instant,
    sleep: Pin<Box<Sleep>>,
}

/// What a connection's task woke up for.
enum Wake {
    Bytes,
    /// The peer will send nothing more.
    End,
    /// The socket failed.
    Broken,
    HoldOver,
    Time,
    AskedToClose(Arc<str>),
    /// Channels whose time is up.
    Failing(Vec<Failed>),
    Drain,
    Cut,
}

/// What an event asks of the session, told once the event has let go of it.
enum Outcome {
    Done,
    Admitted(Box<Guest>),
    Refused(Reply),
    Open(String),
    SecretRenewed,
    Failed(Failed, MethodId),
    /// The session ends it; the broker must let go.
    Over(String),
    /// The same, asked for by the peer.
    Goodbye(String),
}

impl<S: Transport> Connection<S> {
    pub fn new(stream: S, peer: SocketAddr, context: Arc<AmqpContext>) -> Self {
        let place = Place { peer, local: stream.local_addr(), protocol: S::PROTOCOL, tls: S::TLS };
        let certificate_user = stream
            .certificate()
            .and_then(|certificate| tls::user_of(&certificate, context.certificate_login))
            .map(String::into_boxed_str);
        let (reader, writer) = stream.halves();
        let session = context.sessions.config(context.broker.cluster_name(), certificate_user.is_some());
        let session = Session::new(session, context.clock.now());
        Connection {
            place,
            certificate_user,
            reader,
            writer: Arc::new(Writer::new(writer, FrameLog::to_peer(peer))),
            session,
            buffer: Vec::new(),
            log: FrameLog::from_peer(peer),
            out: Vec::new(),
            guest: None,
            client: None,
            hold: None,
            dirty: false,
            peer_ends: false,
            alarm: None,
            written: 0,
            context,
        }
    }

    pub async fn run(&mut self) {
        let context = self.context.clone();
        // First the drain's begin, then its cut.
        let mut end = pin!(context.drain.begun());
        let mut draining = false;
        while !self.session.is_finished() {
            self.arm();
            let wake = poll_fn(|cx| match self.poll_wake(cx) {
                Poll::Pending if draining => end.as_mut().poll(cx).map(|()| Wake::Cut),
                Poll::Pending => end.as_mut().poll(cx).map(|()| Wake::Drain),
                ready => ready,
            });
            let over = match wake.await {
                Wake::Bytes => self.digest(),
                Wake::HoldOver => self.go_on(),
                Wake::Time => self.on_time(),
                Wake::AskedToClose(why) => self.force(&why),
                Wake::Failing(channels) => self.fail_channels(channels),
                Wake::Drain => {
                    draining = true;
                    end.set(context.drain.is_cut());
                    self.force("reactor is shutting down")
                }
                Wake::End => Some("the peer closed the connection"),
                Wake::Broken => Some("the connection was lost"),
                Wake::Cut => Some("reactor is shutting down"),
            };
            if let Some(reason) = over {
                self.leave(reason);
                return;
            }
        }
        self.leave("closed");
        // Nobody is left to be held up: give the peer a moment to read the last frames and to close first.
        let _ = Box::pin(tokio::time::timeout(FAREWELL, self.farewell())).await;
    }

    fn link(&self) -> Option<&Arc<Link>> {
        self.client.as_ref().map(Client::link)
    }

    // HOT
    fn poll_wake(&mut self, cx: &mut Context<'_>) -> Poll<Wake> {
        if let Some(client) = &self.client {
            while client.link().poll_signal(cx).is_ready() {
                self.dirty = true;
                if let Some(why) = client.link().asked_to_close() {
                    return Poll::Ready(Wake::AskedToClose(why.clone()));
                }
                let failing = client.link().take_failing();
                if !failing.is_empty() {
                    return Poll::Ready(Wake::Failing(failing));
                }
            }
        }
        if self.dirty {
            match self.writer.poll_drain(self.link(), cx) {
                Poll::Ready(Ok(())) => self.dirty = false,
                Poll::Ready(Err(_)) => return Poll::Ready(Wake::Broken),
                Poll::Pending => {}
            }
        }
        let choked = self.is_choked();
        let wake = match &mut self.hold {
            Some(hold) => hold.as_mut().poll(cx).map(|()| Wake::HoldOver),
            // The socket's next room for writing wakes this task again.
            None if choked => Poll::Pending,
            None => self.poll_read(cx),
        };
        if wake.is_ready() {
            return wake;
        }
        match &mut self.alarm {
            Some(alarm) => alarm.sleep.as_mut().poll(cx).map(|()| Wake::Time),
            None => Poll::Pending,
        }
    }

    /// What waits for the peer is more than it may leave unread.
    fn is_choked(&self) -> bool {
        self.dirty && self.link().is_some_and(|link| link.is_choked())
    }

    // HOT
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Wake> {
        if self.buffer.capacity() == 0 {
            self.buffer = pool::take();
        }
        let missing = self.session.wanted().saturating_sub(self.buffer.len());
        self.buffer.reserve(missing.max(1));
        let read = pin!(self.reader.read_buf(&mut self.buffer)).poll(cx);
        match read {
            Poll::Ready(Ok(0)) => Poll::Ready(Wake::End),
            Poll::Ready(Ok(count)) => {
                if let Some(link) = self.link() {
                    link.count_in(count);
                }
                if let Some(log) = &mut self.log {
                    log.pass(&self.buffer[self.buffer.len() - count..]);
                }
                Poll::Ready(Wake::Bytes)
            }
            Poll::Ready(Err(_)) => Poll::Ready(Wake::Broken),
            Poll::Pending => {
                if self.buffer.is_empty() {
                    pool::give(std::mem::take(&mut self.buffer));
                }
                // The session's longest frame is its first; later ones are short and rare.
                self.out = Vec::new();
                Poll::Pending
            }
        }
    }

    /// Works through what was read, as one batch.
    // HOT
    fn digest(&mut self) -> Option<&'static str> {
        let now = self.context.clock.now();
        if let Some(client) = &mut self.client {
            client.begin(now);
        }
        let buffer = std::mem::take(&mut self.buffer);
        let mut input = &buffer[..];
        while let Some(event) = self.session.next_event(&mut input, now, &mut self.out) {
            let door = Door { context: &self.context, place: &self.place, certificate_user: self.certificate_user.as_deref() };
            let outcome = handle(event, self.client.as_mut(), door, &mut self.out);
            if !matches!(outcome, Outcome::Done) {
                self.act(outcome, now);
            }
            self.post();
        }
        self.post();
        let used = buffer.len() - input.len();
        self.keep_rest(buffer, used);
        self.flush(now);
        None
    }

    fn keep_rest(&mut self, mut buffer: Vec<u8>, used: usize) {
        if used == buffer.len() {
            buffer.clear();
        } else {
            buffer.drain(..used);
        }
        self.buffer = buffer;
    }

    // HOT
    fn flush(&mut self, now: Instant) {
        let Some(client) = &mut self.client else { return };
        let mut result = client.flush();
        self.dirty = true;
        if let Some(hold) = client.take_hold() {
            self.begin_hold(hold);
        }
        while let Err(failed) = result {
            self.fail(failed, MethodId::default(), now);
            self.post();
            result = self.client.as_mut().map_or(Ok(()), Client::flush);
        }
    }

    /// Moves the session's frames to where they are sent from.
    // HOT
    #[inline]
    fn post(&mut self) {
        if self.out.is_empty() {
            return;
        }
        match self.client.as_ref() {
            Some(client) => client.link().append(|bytes| bytes.extend_from_slice(&self.out)),
            None => self.writer.push(&self.out),
        }
        self.out.clear();
        self.dirty = true;
    }

    fn act(&mut self, outcome: Outcome, now: Instant) {
        match outcome {
            Outcome::Done => {}
            Outcome::Admitted(guest) => {
                self.guest = Some(guest);
                self.session.accept_login(&mut self.out);
            }
            Outcome::Refused(reply) => self.session.refuse_login(&reply, now, &mut self.out),
            Outcome::Open(vhost) => self.open(&vhost, now),
            Outcome::SecretRenewed => self.session.accept_secret(&mut self.out),
            Outcome::Failed(failed, cause) => self.fail(failed, cause, now),
            Outcome::Over(reason) => self.let_go(&reason),
            Outcome::Goodbye(reason) => {
                self.peer_ends = true;
                self.let_go(&reason);
            }
        }
    }

    fn open(&mut self, vhost: &str, now: Instant) {
        let Some(guest) = self.guest.take() else { return };
        let info = login::describe(&guest, &self.session, &self.place);
        let opened = login::enter(&self.context, guest.principal, vhost).and_then(|principal| {
            let client = self.context.broker.connect(vhost, principal, info);
            client.ok_or_else(|| Reply::new(ReplyCode::NotAllowed, format_args!("vhost {vhost} not found")))
        });
        match opened {
            Ok(client) => {
                client.link().set_socket(Box::new(SharedWriter(self.writer.clone())));
                self.client = Some(client);
                self.session.accept_open(&mut self.out);
            }
            Err(reply) => self.session.close_connection(&reply, ConnectionOpen::ID, now, &mut self.out),
        }
    }

    /// A refusal ends its channel, or the connection where AMQP has no smaller way to say it.
    fn fail(&mut self, failed: Failed, asked: MethodId, now: Instant) {
        let cause = failed.cause.unwrap_or(asked);
        let reply = dispatch::reply(&failed.refused);
        tracing::debug!(peer = %self.place.peer, channel = failed.channel, %reply, "refused");
        if reply.code.reach() == Reach::Connection {
            self.session.close_connection(&reply, cause, now, &mut self.out);
            self.let_go(reply.text());
        } else {
            if let Some(client) = &mut self.client {
                client.close_channel(failed.channel);
            }
            self.session.close_channel(failed.channel, &reply, cause, &mut self.out);
        }
    }

    /// Closes channels that the broker found at fault by itself.
    fn fail_channels(&mut self, channels: Vec<Failed>) -> Option<&'static str> {
        let now = self.context.clock.now();
        let open = |channel| self.client.as_ref().is_some_and(|client| client.has_channel(channel));
        let channels: Vec<Failed> = channels.into_iter().filter(|failed| open(failed.channel)).collect();
        if let Some(client) = &mut self.client {
            client.begin(now);
        }
        for failed in channels {
            self.fail(failed, MethodId::default(), now);
        }
        self.post();
        self.flush(now);
        None
    }

    fn let_go(&mut self, reason: &str) {
        self.hold = None;
        if let Some(client) = &mut self.client {
            client.close(reason);
        }
    }

    fn begin_hold(&mut self, hold: Hold) {
        let Some(link) = self.link().cloned() else { return };
        if matches!(hold, Hold::Alarm) && link.set_blocked(true) && link.info.connection_blocked {
            link.append(|out| method(out, 0, &ConnectionBlocked { reason: "low on memory" }));
        }
        self.hold = Some(Box::pin(async move { hold.over(&link).await }));
    }

    /// Reads again; what had arrived before the hold comes first.
    fn go_on(&mut self) -> Option<&'static str> {
        self.hold = None;
        if let Some(link) = self.link()
            && link.set_blocked(false)
            && link.info.connection_blocked
        {
            link.append(|out| method(out, 0, &ConnectionUnblocked {}));
            self.dirty = true;
        }
        None
    }

    fn arm(&mut self) {
        let Some(due) = self.session.poll_timeout() else {
            self.alarm = None;
            return;
        };
        if self.alarm.as_ref().is_none_or(|alarm| due < alarm.due) {
            let wait = due.since(self.context.clock.now());
            self.alarm = Some(Alarm { due, sleep: Box::pin(tokio::time::sleep(wait)) });
        }
    }

    fn on_time(&mut self) -> Option<&'static str> {
        self.alarm = None;
        let now = self.context.clock.now();
        if self.hold.is_some() || self.is_choked() {
            // Its silence is our doing.
            self.session.heard(now);
        }
        if self.buffer.capacity() > RESTING_BYTES_MAX && self.buffer.len() <= RESTING_BYTES_MAX {
            let rest = self.buffer.to_vec();
            pool::give(std::mem::replace(&mut self.buffer, rest));
        }
        let written = self.link().map_or(0, |link| link.written());
        if written != self.written {
            self.session.sent(now);
        }
        let finish = self.session.handle_timeout(now, &mut self.out);
        // A heartbeat is not what makes the next one unnecessary.
        self.written = written + self.out.len() as u64;
        self.post();
        // A session that is over sets no timer again; `run` sees it.
        finish.map(|finish| match finish {
            Finish::HeartbeatMissed => "it missed its heartbeats",
            Finish::HandshakeTimeout => "it did not finish its handshake",
            _ => "it did not answer our close",
        })
    }

    /// Closes with 320, as an operator or a shutdown asks.
    fn force(&mut self, why: &str) -> Option<&'static str> {
        let now = self.context.clock.now();
        if self.client.is_none() {
            return Some("reactor is shutting down");
        }
        let reply = Reply::new(ReplyCode::ConnectionForced, why);
        self.session.close_connection(&reply, MethodId::default(), now, &mut self.out);
        self.let_go(why);
        self.post();
        None
    }

    fn leave(&mut self, reason: &str) {
        self.let_go(reason);
        tracing::debug!(peer = %self.place.peer, reason, "AMQP connection ended");
    }

    /// Sends the last frames and waits for the peer to close.
    async fn farewell(&mut self) {
        let sent = poll_fn(|cx| self.writer.poll_drain(self.client.as_ref().map(Client::link), cx)).await;
        if sent.is_err() {
            return;
        }
        // A client that said goodbye closes the socket itself, as RabbitMQ leaves it to: lapin 2 calls an end that comes
        // together with close-ok a lost connection. Any other peer that waits for our end sees it now, and one that still
        // sends does not lose the last frames to a reset.
        if !self.peer_ends {
            let _ = poll_fn(|cx| self.writer.poll_shutdown(cx)).await;
        }
        let mut ignored = [0; 1024];
        while self.reader.read(&mut ignored).await.is_ok_and(|count| count > 0) {}
    }
}

/// Tells the broker what an event means. It must not touch the session, which the event borrows.
// HOT
fn handle(event: Event<'_>, client: Option<&mut Client>, door: Door<'_>, out: &mut Vec<u8>) -> Outcome {
    match (event, client) {
        (Event::Publish(publish), Some(client)) => match client.publish(publish) {
            Ok(()) => Outcome::Done,
            Err(failed) => Outcome::Failed(failed, BasicPublish::ID),
        },
        (Event::Method { channel, method }, Some(client)) => {
            let cause = method.id();
            match (Caller { client, channel, out }).handle(method) {
                Ok(()) => Outcome::Done,
                Err(failed) => Outcome::Failed(failed, cause),
            }
        }
        (Event::ChannelOpened { channel }, Some(client)) => {
            client.open_channel(channel);
            match login::admit_channel(door.context, client) {
                Ok(()) => Outcome::Done,
                Err(refused) => Outcome::Failed(Failed::new(channel, refused), ChannelOpen::ID),
            }
        }
        (Event::ChannelClosed { channel, .. } | Event::ChannelFailed { channel, .. }, Some(client)) => {
            client.close_channel(channel);
            Outcome::Done
        }
        (Event::Login(login), _) => match login::admit(&door, &login) {
            Ok(guest) => Outcome::Admitted(Box::new(guest)),
            Err(reply) => Outcome::Refused(reply),
        },
        (Event::Open { vhost }, _) => Outcome::Open(vhost.to_owned()),
        (Event::UpdateSecret { .. }, _) => Outcome::SecretRenewed,
        (Event::Failed(reply), _) => Outcome::Over(reply.to_string()),
        (Event::Finished(finish @ Finish::ByPeer { .. }), _) => Outcome::Goodbye(reason(finish)),
        (Event::Finished(finish), _) => Outcome::Over(reason(finish)),
        // The session tells of channels only once a virtual host is open.
        (
            Event::Publish(_)
            | Event::Method { .. }
            | Event::ChannelOpened { .. }
            | Event::ChannelClosed { .. }
            | Event::ChannelFailed { .. },
            None,
        ) => Outcome::Done,
    }
}

fn reason(finish: Finish) -> String {
    match finish {
        Finish::ByPeer { code: 200, .. } => "it said goodbye".into(),
        Finish::ByPeer { code, text } => format!("it closed with {code} {text}"),
        Finish::ByUs => "it was closed".into(),
        other => format!("{other:?}"),
    }
}

/// The connection and the broker share one writer.
struct SharedWriter<W>(Arc<Writer<W>>);

impl<W: AsyncWrite + Unpin + Send> crate::broker::Socket for SharedWriter<W> {
    fn write_now(&self, link: &Arc<Link>) {
        self.0.write_now(link);
    }

    fn rest(&self) {
        self.0.rest();
    }
}
