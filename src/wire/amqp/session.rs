//! The server side of one AMQP 0-9-1 connection, without its socket.
//!
//! Feed [`Session::next_event`] with the read buffer and `now` until it returns `None`; it takes what it used off the front of the
//! slice and appends its own frames to `out` (start, tune, open-ok, heartbeats, close, close-ok). What the caller does because of
//! an event belongs before those bytes reach the peer: send `out` when the batch is done. It does not know users, virtual hosts,
//! queues or messages' meaning.
//!
//! ```text
//!   Header ─AMQP0091→ Start ─start-ok→ LoggingIn ─accept_login→ Tune ─tune-ok→ Open ─open→ Opening ─accept_open→ Running
//!     any after Header: error or close_connection → Closing ─close-ok or time→ Finished;   connection.close → Finished
//! ```
//!
//! Invariants: no allocation is sized by a number the peer states; an event for a channel comes only while it is open; after
//! `channel.close` was sent nothing of that channel is told until it is opened anew.

mod receive;
#[cfg(test)]
mod tests;

use super::channel::{Channel, Channels, Message};
use super::encode;
use super::event::{Event, Finish};
use super::handshake::{Capabilities, Tune};
use super::method::{ConnectionOpenOk, ConnectionTune, ConnectionUpdateSecretOk, MethodId};
use super::reply::{Reply, ReplyCode};
use crate::kernel::clock::Instant;
use crate::kernel::limit;
use crate::model::space::CLUSTER_NAME_DEFAULT;
use std::sync::Arc;
use std::time::Duration;

/// What is offered to every client.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    pub frame_max: u32,
    pub channel_max: u16,
    /// Seconds; 0 offers none.
    pub heartbeat: u16,
    pub body_bytes_max: u64,
    /// Time until `connection.open` must be done, and for the answer to our `connection.close`.
    pub handshake: Duration,
    pub cluster_name: String,
    /// Whether the peer may log in as the user its certificate names.
    pub external: bool,
}

impl Default for SessionConfig {
    fn default() -> Self {
        SessionConfig {
            frame_max: limit::AMQP_FRAME_BYTES_MAX,
            channel_max: limit::AMQP_CHANNELS_MAX,
            heartbeat: limit::AMQP_HEARTBEAT_SECONDS,
            body_bytes_max: limit::MESSAGE_BODY_BYTES_MAX,
            handshake: Duration::from_millis(limit::HANDSHAKE_MS_MAX),
            cluster_name: CLUSTER_NAME_DEFAULT.to_owned(),
            external: false,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Header,
    Start,
    LoggingIn,
    Tune,
    Open,
    Opening,
    Running,
    /// We sent `connection.close`. `deaf`: the stream lost its frame borders, nothing in it can be understood any more.
    Closing {
        deaf: bool,
    },
    Finished,
}

impl Phase {
    /// RabbitMQ's word for it, seen in its error texts.
    fn name(self) -> &'static str {
        match self {
            Phase::Header => "pre-init",
            Phase::Start | Phase::LoggingIn => "starting",
            Phase::Tune => "tuning",
            Phase::Open | Phase::Opening => "opening",
            Phase::Running => "running",
            Phase::Closing { .. } => "closing",
            Phase::Finished => "closed",
        }
    }
}

#[derive(Debug)]
pub struct Session {
    config: Arc<SessionConfig>,
    phase: Phase,
    tune: Tune,
    capabilities: Capabilities,
    channels: Channels,
    /// A body frame that is consumed as it arrives: its channel and how much payload is missing.
    partial: Option<(u16, usize)>,
    /// The collected message that the last event borrowed.
    collected: Option<Box<Message>>,
    wanted: usize,
    heard: Instant,
    sent: Instant,
    /// When the handshake or our close must be done.
    deadline: Option<Instant>,
}

/// What one step found.
enum Step<'i> {
    Need,
    Again,
    Event(Event<'i>),
    /// `Session::collected` is a whole message.
    Collected,
    Failed(Failure),
}

/// A connection error: the reply, the method to blame, and whether frame borders are lost.
struct Failure {
    reply: Reply,
    cause: MethodId,
    deaf: bool,
}

impl Failure {
    fn new(code: ReplyCode, what: impl std::fmt::Display) -> Self {
        Failure { reply: Reply::new(code, what), cause: MethodId::default(), deaf: false }
    }

    fn from_reply(reply: Reply, cause: MethodId) -> Self {
        Failure { reply, cause, deaf: false }
    }

    fn by(self, cause: MethodId) -> Self {
        Failure { cause, ..self }
    }
}

impl<'i> From<Failure> for Step<'i> {
    fn from(failure: Failure) -> Self {
        Step::Failed(failure)
    }
}

impl Session {
    /// Connections of one door share `config`.
    pub fn new(config: impl Into<Arc<SessionConfig>>, now: Instant) -> Self {
        let config = config.into();
        Session {
            tune: Tune { channel_max: config.channel_max, frame_max: config.frame_max, heartbeat: config.heartbeat },
            deadline: Some(now + config.handshake),
            config,
            phase: Phase::Header,
            capabilities: Capabilities::default(),
            channels: Channels::default(),
            partial: None,
            collected: None,
            wanted: 0,
            heard: now,
            sent: now,
        }
    }

    /// The next thing that `input` says, or `None` if it needs more bytes (or an answer: see [`Event::Login`], [`Event::Open`]).
    /// What was used is taken off the front of `input`; keep the rest and append to it.
    // HOT
    pub fn next_event<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8], now: Instant, out: &mut Vec<u8>) -> Option<Event<'a>> {
        if !input.is_empty() {
            self.heard = now;
        }
        self.collected = None;
        loop {
            let step = match self.phase {
                Phase::Header => self.protocol_header(input, out),
                Phase::LoggingIn | Phase::Opening => return None,
                Phase::Closing { deaf: true } | Phase::Finished => {
                    *input = &[];
                    return None;
                }
                _ => self.step(input, out),
            };
            match step {
                Step::Need => return None,
                Step::Again => {}
                Step::Event(event) => return Some(event),
                Step::Collected => break,
                Step::Failed(failure) => return Some(self.fail(failure, now, out)),
            }
        }
        self.collected.as_mut().map(|message| Event::Publish(message.publish()))
    }

    /// How long the front of the input must become before [`Session::next_event`] can go on; at most `frame_max` and
    /// eight. The read buffer must be able to hold that much.
    pub fn wanted(&self) -> usize {
        self.wanted
    }

    pub fn tune(&self) -> Tune {
        self.tune
    }

    /// Largest frame that may be sent to the peer.
    pub fn frame_max(&self) -> u32 {
        self.tune.frame_max
    }

    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    pub fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Whether the socket may be closed once `out` is sent.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    pub fn channel_count(&self) -> usize {
        self.channels.len()
    }

    /// Memory held for message bodies that are not complete yet.
    pub fn unfinished_bytes(&self) -> usize {
        self.channels.held()
    }

    /// Whether events and deliveries of the channel have a meaning.
    pub fn is_open(&self, channel: u16) -> bool {
        self.channels.get(channel).is_some_and(|channel| !matches!(channel, Channel::Closing { .. }))
    }

    /// Answers [`Event::Login`]: offers the tuning.
    pub fn accept_login(&mut self, out: &mut Vec<u8>) {
        if self.phase == Phase::LoggingIn {
            let Tune { channel_max, frame_max, heartbeat } = self.tune;
            encode::method(out, 0, &ConnectionTune { channel_max, frame_max, heartbeat });
            self.phase = Phase::Tune;
        }
    }

    /// Answers [`Event::Login`]: says 403 to clients that understand it there, and just ends for others, as RabbitMQ does.
    pub fn refuse_login(&mut self, reply: &Reply, now: Instant, out: &mut Vec<u8>) {
        if self.capabilities.authentication_failure_close {
            self.close_connection(reply, MethodId::default(), now, out);
        } else {
            self.phase = Phase::Finished;
        }
    }

    /// Answers [`Event::Open`].
    pub fn accept_open(&mut self, out: &mut Vec<u8>) {
        if self.phase == Phase::Opening {
            encode::method(out, 0, &ConnectionOpenOk::default());
            self.phase = Phase::Running;
            self.deadline = None;
        }
    }

    /// Answers [`Event::UpdateSecret`].
    pub fn accept_secret(&mut self, out: &mut Vec<u8>) {
        encode::method(out, 0, &ConnectionUpdateSecretOk {});
    }

    /// Ends a channel because of an error on it. Further frames of it are discarded until the peer's `close-ok`.
    pub fn close_channel(&mut self, channel: u16, reply: &Reply, cause: MethodId, out: &mut Vec<u8>) {
        if self.is_open(channel) {
            encode::channel_close(out, channel, reply, cause);
            self.channels.insert(channel, Channel::Closing { crossed: false });
        }
    }

    /// Ends the connection; [`Event::Finished`] follows when the peer has answered.
    pub fn close_connection(&mut self, reply: &Reply, cause: MethodId, now: Instant, out: &mut Vec<u8>) {
        if !matches!(self.phase, Phase::Closing { .. } | Phase::Finished) {
            encode::connection_close(out, reply, cause);
            self.begin_closing(false, now);
        }
    }

    fn begin_closing(&mut self, deaf: bool, now: Instant) {
        self.phase = Phase::Closing { deaf };
        self.channels.clear();
        self.deadline = Some(now + self.config.handshake);
    }

    fn fail(&mut self, failure: Failure, now: Instant, out: &mut Vec<u8>) -> Event<'static> {
        if matches!(self.phase, Phase::Closing { .. }) {
            self.phase = Phase::Finished;
            return Event::Finished(Finish::ByUs);
        }
        encode::connection_close(out, &failure.reply, failure.cause);
        self.begin_closing(failure.deaf, now);
        Event::Failed(failure.reply)
    }
}

/// Time.
impl Session {
    /// Tells that something was written to the peer lately: a heartbeat is due only after silence.
    pub fn sent(&mut self, now: Instant) {
        self.sent = now;
    }

    /// Tells that the peer's silence is not its fault: it was not read for a while.
    pub fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// When [`Session::handle_timeout`] has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.phase == Phase::Finished {
            return None;
        }
        [self.heartbeat_due(), self.silence_ends(), self.deadline].into_iter().flatten().min()
    }

    /// Sends a heartbeat, or gives up on a peer that is silent or late. Early calls do no harm.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut Vec<u8>) -> Option<Finish> {
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if self.phase == Phase::Finished {
            return None;
        }
        let finish = if passed(self.deadline) {
            let closing = matches!(self.phase, Phase::Closing { .. });
            if closing { Finish::CloseTimeout } else { Finish::HandshakeTimeout }
        } else if passed(self.silence_ends()) {
            Finish::HeartbeatMissed
        } else {
            if passed(self.heartbeat_due()) {
                out.extend_from_slice(&encode::HEARTBEAT);
                self.sent = now;
            }
            return None;
        };
        self.phase = Phase::Finished;
        Some(finish)
    }

    /// Half an interval after the last write, as RabbitMQ sends it.
    fn heartbeat_due(&self) -> Option<Instant> {
        let interval = self.heartbeat()?;
        Some(self.sent + interval / 2)
    }

    fn silence_ends(&self) -> Option<Instant> {
        let interval = self.heartbeat()?;
        Some(self.heard + interval * 2)
    }

    fn heartbeat(&self) -> Option<Duration> {
        let agreed = matches!(self.phase, Phase::Open | Phase::Opening | Phase::Running);
        (agreed && self.tune.heartbeat > 0).then(|| Duration::from_secs(self.tune.heartbeat.into()))
    }
}
