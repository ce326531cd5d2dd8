//! Frames into events: borders, turn-taking, channel life and the assembly of content.

use super::{Failure, Phase, Session, Step};
use crate::kernel::limit;
use crate::wire::amqp::channel::{Channel, Message};
use crate::wire::amqp::content::{self, Ahead, CLASS_BASIC};
use crate::wire::amqp::encode;
use crate::wire::amqp::event::{Body, Event, Finish, Publish};
use crate::wire::amqp::frame::{
    ContentHeader, FRAME_BODY, FRAME_END, FRAME_HEAD_BYTES, FRAME_HEADER, FRAME_HEARTBEAT, FRAME_METHOD, FRAME_OVERHEAD_BYTES,
    FrameHead, PROTOCOL_HEADER, PROTOCOL_HEADER_0_9,
};
use crate::wire::amqp::handshake;
use crate::wire::amqp::method::{
    self, BasicPublish, ChannelCloseOk, ChannelOpen, ChannelOpenOk, ConnectionCloseOk, Encode, Method, MethodId, Sender,
};
use crate::wire::amqp::primitive::{Malformed, Reader};
use crate::wire::amqp::properties::Properties;
use crate::wire::amqp::reply::{Reply, ReplyCode};
use std::fmt::Write as _;

const NO_HEADER: &str = "expected content header for class 60, got non content header frame instead";
const NO_BODY: &str = "expected content body, got non content body frame instead";

impl Session {
    pub(super) fn protocol_header(&mut self, input: &mut &[u8], out: &mut Vec<u8>) -> Step<'static> {
        let length = input.len().min(PROTOCOL_HEADER.len());
        if ![PROTOCOL_HEADER, PROTOCOL_HEADER_0_9].iter().any(|ours| input[..length] == ours[..length]) {
            out.extend_from_slice(PROTOCOL_HEADER);
            self.phase = Phase::Finished;
            *input = &[];
            return Step::Event(Event::Finished(Finish::ForeignProtocol));
        }
        if length < PROTOCOL_HEADER.len() {
            return self.need(PROTOCOL_HEADER.len());
        }
        *input = &input[length..];
        handshake::write_start(out, &self.config);
        self.phase = Phase::Start;
        Step::Again
    }

    fn need<'i>(&mut self, bytes: usize) -> Step<'i> {
        self.wanted = bytes;
        Step::Need
    }

    fn payload_max(&self) -> usize {
        let frame_max = match self.phase {
            Phase::Header | Phase::Start | Phase::LoggingIn | Phase::Tune => limit::AMQP_FRAME_BYTES_MAX_BEFORE_TUNE,
            Phase::Open | Phase::Opening | Phase::Running | Phase::Closing { .. } | Phase::Finished => self.tune.frame_max,
        };
        // Nearly every client once got the overhead wrong, so RabbitMQ allows for it and so do we.
        frame_max as usize
    }

    /// Takes one frame, or what is here of a large body frame, or a whole message.
    // HOT
    #[inline]
    pub(super) fn step<'i>(&mut self, input: &mut &'i [u8], out: &mut Vec<u8>) -> Step<'i> {
        if let Some((channel, missing)) = self.partial {
            return self.partial_body(channel, missing, input);
        }
        let Some(head) = FrameHead::read(input) else { return self.need(FRAME_HEAD_BYTES) };
        if !matches!(head.kind, FRAME_METHOD | FRAME_HEADER | FRAME_BODY | FRAME_HEARTBEAT) {
            // What follows may not be here yet, and the answer must not depend on that.
            return lost(head, &[], "unknown_frame").into();
        }
        let payload_max = self.payload_max();
        if head.size as usize > payload_max {
            let stated = payload_max - FRAME_OVERHEAD_BYTES;
            return lost(head, &[], format_args!("{{frame_too_large,{},{stated}}}", head.size)).into();
        }
        let frame_bytes = head.frame_bytes();
        if head.kind == FRAME_BODY && frame_bytes > content::WAITED_FOR_BYTES_MAX {
            return self.begin_partial_body(head, input);
        }
        let Some(frame) = input.get(..frame_bytes) else { return self.need(frame_bytes) };
        let Some(payload) = content::payload(frame) else {
            let marker = frame[frame_bytes - 1];
            let start = &frame[FRAME_HEAD_BYTES..frame_bytes - 1];
            return lost(head, start, format_args!("{{invalid_frame_end_marker,{marker}}}")).into();
        };
        if head.kind == FRAME_METHOD && head.channel != 0 && self.phase == Phase::Running {
            return self.channel_method(head, payload, input, out);
        }
        *input = &input[frame_bytes..];
        match (head.kind, head.channel) {
            (FRAME_HEARTBEAT, 0) if payload.is_empty() => Step::Again,
            (FRAME_HEARTBEAT, _) if !payload.is_empty() => broken(head, payload, "unknown_frame").into(),
            (FRAME_METHOD, 0) => self.connection_method(payload, out).unwrap_or_else(Step::Failed),
            _ if matches!(self.phase, Phase::Closing { .. }) => Step::Again,
            (_, 0) | (FRAME_HEARTBEAT, _) => unexpected(head, payload).into(),
            _ if self.phase != Phase::Running => unexpected(head, payload).into(),
            (FRAME_HEADER, channel) => self.header(channel, payload, out).unwrap_or_else(Step::Failed),
            (_, channel) => match self.body_piece(channel, payload) {
                Ok(complete) => self.complete(channel, complete),
                Err(failure) => failure.into(),
            },
        }
    }

    fn out_of_turn(&self) -> Failure {
        Failure::new(ReplyCode::ChannelError, format_args!("unexpected method in connection state {}", self.phase.name()))
    }
}

/// Channel 0.
impl Session {
    fn connection_method<'i>(&mut self, payload: &'i [u8], out: &mut Vec<u8>) -> Result<Step<'i>, Failure> {
        let closing = matches!(self.phase, Phase::Closing { .. });
        let method = match Method::decode(payload) {
            Ok(method) => method,
            Err(_) if closing => return Ok(Step::Again),
            Err(error) => return Err(malformed(payload, error)),
        };
        match method {
            Method::ConnectionCloseOk(_) if closing => {
                self.phase = Phase::Finished;
                Ok(Step::Event(Event::Finished(Finish::ByUs)))
            }
            Method::ConnectionClose(_) if closing => {
                encode::method(out, 0, &ConnectionCloseOk {});
                Ok(Step::Again)
            }
            _ if closing => Ok(Step::Again),
            Method::ConnectionClose(close) => {
                encode::method(out, 0, &ConnectionCloseOk {});
                self.phase = Phase::Finished;
                self.channels.clear();
                let finish = Finish::ByPeer { code: close.reply_code, text: close.reply_text.to_owned() };
                Ok(Step::Event(Event::Finished(finish)))
            }
            Method::ConnectionStartOk(start_ok) if self.phase == Phase::Start => {
                self.capabilities = handshake::capabilities(start_ok.client_properties);
                let login =
                    handshake::login(&start_ok, self.config.external).map_err(|reply| Failure::from_reply(reply, method.id()))?;
                self.phase = Phase::LoggingIn;
                Ok(Step::Event(Event::Login(login)))
            }
            Method::ConnectionTuneOk(answer) if self.phase == Phase::Tune => {
                self.tune = handshake::negotiate(self.tune, &answer).map_err(|reply| Failure::from_reply(reply, method.id()))?;
                self.phase = Phase::Open;
                Ok(Step::Again)
            }
            Method::ConnectionOpen(open) if self.phase == Phase::Open => {
                self.phase = Phase::Opening;
                Ok(Step::Event(Event::Open { vhost: open.virtual_host }))
            }
            Method::ConnectionUpdateSecret(update) if self.phase == Phase::Running => {
                Ok(Step::Event(Event::UpdateSecret { secret: update.new_secret.0, reason: update.reason }))
            }
            other => Err(self.out_of_turn().by(other.id())),
        }
    }
}

/// Methods of channels.
impl Session {
    // HOT
    #[inline]
    fn channel_method<'i>(&mut self, head: FrameHead, payload: &'i [u8], input: &mut &'i [u8], out: &mut Vec<u8>) -> Step<'i> {
        let (number, frame_bytes) = (head.channel, head.frame_bytes());
        match self.channels.get_mut(number) {
            Some(Channel::Open) => {
                if let Some(publish) = method::publish(payload) {
                    return self.publish(number, &publish, input, frame_bytes);
                }
                *input = &input[frame_bytes..];
                if let Some(ack) = method::ack(payload) {
                    return Step::Event(Event::Method { channel: number, method: Method::BasicAck(ack) });
                }
                match Method::decode(payload) {
                    Ok(method) => self.method_while_open(number, method, out).unwrap_or_else(Step::Failed),
                    Err(error) => malformed(payload, error).into(),
                }
            }
            Some(Channel::Closing { crossed }) => {
                let crossed = *crossed;
                *input = &input[frame_bytes..];
                self.method_while_closing(number, crossed, payload, out).unwrap_or_else(Step::Failed)
            }
            Some(Channel::Header(_)) => turn(NO_HEADER).into(),
            Some(Channel::Body(_)) => turn(NO_BODY).into(),
            None => {
                *input = &input[frame_bytes..];
                self.method_while_absent(number, payload, out).unwrap_or_else(Step::Failed)
            }
        }
    }

    fn method_while_open<'i>(&mut self, channel: u16, method: Method<'i>, out: &mut Vec<u8>) -> Result<Step<'i>, Failure> {
        match method {
            Method::ChannelOpen(_) => Err(Failure::new(ReplyCode::ChannelError, "second 'channel.open' seen").by(method.id())),
            Method::ChannelClose(close) => {
                encode::method(out, channel, &ChannelCloseOk {});
                self.channels.remove(channel);
                let (code, text) = (close.reply_code, close.reply_text);
                Ok(Step::Event(Event::ChannelClosed { channel, code, text }))
            }
            // The late answer to a close that crossed the peer's own.
            Method::ChannelCloseOk(_) => Ok(Step::Again),
            _ if method.id().class == MethodId::CONNECTION_CLASS || method.sender() == Sender::Server => {
                Err(Failure::new(ReplyCode::CommandInvalid, "unimplemented method").by(method.id()))
            }
            _ => Ok(Step::Event(Event::Method { channel, method })),
        }
    }

    fn method_while_absent<'i>(&mut self, channel: u16, payload: &'i [u8], out: &mut Vec<u8>) -> Result<Step<'i>, Failure> {
        match Method::decode(payload) {
            Ok(Method::ChannelOpen(_)) => self.open_channel(channel, out),
            // The late answer to a close that crossed the peer's own.
            Ok(Method::ChannelCloseOk(_)) => Ok(Step::Again),
            Ok(method) => Err(Failure::new(ReplyCode::ChannelError, "expected 'channel.open'").by(method.id())),
            Err(error) => Err(malformed(payload, error)),
        }
    }

    fn open_channel<'i>(&mut self, channel: u16, out: &mut Vec<u8>) -> Result<Step<'i>, Failure> {
        let (open, max) = (self.channels.len(), usize::from(self.tune.channel_max));
        if open >= max {
            let text = format!("number of channels opened ({open}) has reached the negotiated channel_max ({max})");
            return Err(Failure::new(ReplyCode::NotAllowed, text).by(ChannelOpen::ID));
        }
        self.channels.insert(channel, Channel::Open);
        encode::method(out, channel, &ChannelOpenOk::default());
        Ok(Step::Event(Event::ChannelOpened { channel }))
    }

    /// After our `channel.close`. Where both sides closed at once, some clients do not answer ours and open the number anew.
    fn method_while_closing<'i>(
        &mut self,
        channel: u16,
        crossed: bool,
        payload: &'i [u8],
        out: &mut Vec<u8>,
    ) -> Result<Step<'i>, Failure> {
        match Method::decode(payload) {
            Ok(Method::ChannelCloseOk(_)) => {
                self.channels.remove(channel);
            }
            Ok(Method::ChannelClose(_)) => {
                encode::method(out, channel, &ChannelCloseOk {});
                self.channels.insert(channel, Channel::Closing { crossed: true });
            }
            Ok(Method::ChannelOpen(_)) if crossed => {
                self.channels.remove(channel);
                return self.open_channel(channel, out);
            }
            _ => {}
        }
        Ok(Step::Again)
    }
}

/// Content.
impl Session {
    // HOT
    #[inline]
    fn publish<'i>(&mut self, channel: u16, publish: &BasicPublish<'i>, input: &mut &'i [u8], method_bytes: usize) -> Step<'i> {
        let all: &'i [u8] = input;
        let ahead = content::look(&all[method_bytes..], channel, self.payload_max(), self.config.body_bytes_max, method_bytes);
        match ahead {
            Ahead::Whole { properties, body, frame_bytes } => {
                *input = &all[method_bytes + frame_bytes..];
                let &BasicPublish { exchange, routing_key, mandatory, immediate, .. } = publish;
                let body = Body::Slice(body);
                Step::Event(Event::Publish(Publish { channel, exchange, routing_key, mandatory, immediate, properties, body }))
            }
            Ahead::Wait { frame_bytes } => self.need(method_bytes + frame_bytes),
            Ahead::Piecewise => {
                *input = &all[method_bytes..];
                self.channels.insert(channel, Channel::Header(Message::begin(channel, publish)));
                Step::Again
            }
        }
    }

    fn header<'i>(&mut self, channel: u16, payload: &[u8], out: &mut Vec<u8>) -> Result<Step<'i>, Failure> {
        let mut message = match self.channels.get_mut(channel) {
            Some(slot @ Channel::Header(_)) => match std::mem::replace(slot, Channel::Open) {
                Channel::Header(message) => message,
                _ => unreachable!("the slot was just seen to hold a message"),
            },
            Some(Channel::Closing { .. }) => return Ok(Step::Again),
            Some(Channel::Open) => return Err(no_content()),
            Some(Channel::Body(_)) => return Err(turn(NO_BODY)),
            None => return Err(Failure::new(ReplyCode::ChannelError, "expected 'channel.open'")),
        };
        let syntax = |error: Malformed| Failure::new(ReplyCode::SyntaxError, error).by(BasicPublish::ID);
        let header = ContentHeader::decode(payload).map_err(syntax)?;
        if header.class != CLASS_BASIC {
            let text = format!("expected content header for class 60, got one for class {} instead", header.class);
            return Err(Failure::new(ReplyCode::UnexpectedFrame, text).by(BasicPublish::ID));
        }
        let properties = Properties::check(header.properties).map_err(syntax)?;
        let max = self.config.body_bytes_max;
        if header.body_size > max {
            let text = format!("message size {} is larger than configured max size {max}", header.body_size);
            let reply = Reply::new(ReplyCode::PreconditionFailed, text);
            self.close_channel(channel, &reply, BasicPublish::ID, out);
            return Ok(Step::Event(Event::ChannelFailed { channel, reply }));
        }
        message.properties = properties.as_bytes().into();
        message.body_size = header.body_size as usize;
        if message.body_size == 0 {
            self.collected = Some(message);
            return Ok(Step::Collected);
        }
        self.channels.insert(channel, Channel::Body(message));
        Ok(Step::Again)
    }

    /// Starts to consume a large body frame as it arrives.
    fn begin_partial_body<'i>(&mut self, head: FrameHead, input: &mut &'i [u8]) -> Step<'i> {
        if !matches!(self.phase, Phase::Closing { .. })
            && let Err(failure) = self.expect_body(head)
        {
            return failure.into();
        }
        *input = &input[FRAME_HEAD_BYTES..];
        self.partial = Some((head.channel, head.size as usize));
        Step::Again
    }

    /// Refuses a body frame before its bytes are here.
    fn expect_body(&mut self, head: FrameHead) -> Result<(), Failure> {
        if head.channel == 0 || self.phase != Phase::Running {
            return Err(unexpected(head, &[]));
        }
        match self.channels.get_mut(head.channel) {
            Some(Channel::Body(message)) if head.size as usize > message.missing() => Err(overflow(message)),
            Some(Channel::Body(_) | Channel::Closing { .. }) => Ok(()),
            Some(Channel::Open) => Err(no_content()),
            Some(Channel::Header(_)) => Err(turn(NO_HEADER)),
            None => Err(Failure::new(ReplyCode::ChannelError, "expected 'channel.open'")),
        }
    }

    /// Goes on with a body frame that is consumed as it arrives. A channel or connection that was closed meanwhile loses it.
    fn partial_body<'i>(&mut self, channel: u16, missing: usize, input: &mut &'i [u8]) -> Step<'i> {
        let all: &'i [u8] = input;
        let (piece, rest) = all.split_at(all.len().min(missing));
        if !piece.is_empty() {
            let missing = missing - piece.len();
            *input = rest;
            self.partial = Some((channel, missing));
            if let Some(Channel::Body(message)) = self.channels.get_mut(channel) {
                let grew = message.push(piece);
                return if grew { self.check_held().map_or_else(Step::Failed, |()| Step::Again) } else { Step::Again };
            }
            return Step::Again;
        }
        if missing > 0 {
            return self.need(1);
        }
        match all.split_first() {
            None => self.need(1),
            Some((&FRAME_END, rest)) => {
                *input = rest;
                self.partial = None;
                let complete = matches!(self.channels.get_mut(channel), Some(Channel::Body(message)) if message.missing() == 0);
                self.complete(channel, complete)
            }
            Some((marker, _)) => {
                let head = FrameHead { kind: FRAME_BODY, channel, size: 0 };
                lost(head, &[], format_args!("{{invalid_frame_end_marker,{marker}}}")).into()
            }
        }
    }

    /// Appends a whole body frame; says whether the message is complete.
    fn body_piece(&mut self, channel: u16, payload: &[u8]) -> Result<bool, Failure> {
        self.expect_body(FrameHead { kind: FRAME_BODY, channel, size: payload.len() as u32 })?;
        let Some(Channel::Body(message)) = self.channels.get_mut(channel) else { return Ok(false) };
        let grew = message.push(payload);
        let complete = message.missing() == 0;
        if grew {
            self.check_held()?;
        }
        Ok(complete)
    }

    fn complete<'i>(&mut self, channel: u16, complete: bool) -> Step<'i> {
        if complete
            && let Some(slot) = self.channels.get_mut(channel)
            && let Channel::Body(message) = std::mem::replace(slot, Channel::Open)
        {
            self.collected = Some(message);
            return Step::Collected;
        }
        Step::Again
    }

    fn check_held(&self) -> Result<(), Failure> {
        let (held, max) = (self.channels.held(), limit::AMQP_UNFINISHED_BYTES_MAX);
        if held > max {
            let text = format!("unfinished messages on this connection take {held} bytes, more than {max}");
            return Err(Failure::new(ReplyCode::ResourceError, text));
        }
        Ok(())
    }
}

/// Content without its method.
fn no_content() -> Failure {
    Failure::new(ReplyCode::UnexpectedFrame, "expected method frame, got non method frame instead")
}

/// Something else where the content of a `basic.publish` should go on.
fn turn(what: &str) -> Failure {
    Failure::new(ReplyCode::UnexpectedFrame, what).by(BasicPublish::ID)
}

fn overflow(message: &Message) -> Failure {
    let text = format!("content body is longer than the {} bytes its header says", message.body_size);
    Failure::new(ReplyCode::FrameError, text).by(BasicPublish::ID)
}

/// A method that cannot be decoded; blames it if its numbers can be read.
fn malformed(payload: &[u8], error: Malformed) -> Failure {
    let mut reader = Reader::new(payload);
    let cause = match (reader.short(), reader.short()) {
        (Ok(class), Ok(method)) => MethodId { class, method },
        _ => MethodId::default(),
    };
    let failure = match error {
        Malformed::UnknownMethod { .. } => Failure::new(ReplyCode::NotImplemented, error),
        Malformed::Truncated | Malformed::Trailing(_) => {
            Failure::new(ReplyCode::FrameError, format_args!("cannot decode <<{}>>: {error}", octets(reader.rest())))
        }
        Malformed::NotUtf8 => Failure::new(ReplyCode::FrameError, "Malformed UTF-8 in shortstr"),
        Malformed::UnknownFieldType(_) | Malformed::TooDeep | Malformed::UnknownProperties(_) => {
            Failure::new(ReplyCode::SyntaxError, error)
        }
    };
    failure.by(cause)
}

fn unexpected(head: FrameHead, payload: &[u8]) -> Failure {
    Failure::new(ReplyCode::UnexpectedFrame, frame_text(head, payload))
}

fn broken(head: FrameHead, payload: &[u8], why: impl std::fmt::Display) -> Failure {
    Failure::new(ReplyCode::FrameError, format_args!("{}: {why}", frame_text(head, payload)))
}

/// A frame whose borders cannot be trusted: nothing behind it can be read.
fn lost(head: FrameHead, payload: &[u8], why: impl std::fmt::Display) -> Failure {
    Failure { deaf: true, ..broken(head, payload, why) }
}

const OCTETS_SHOWN: usize = 16;

/// RabbitMQ's words for a frame: `type 3, first 16 octets = <<…>>`.
fn frame_text(head: FrameHead, payload: &[u8]) -> String {
    let which = if payload.len() > OCTETS_SHOWN { "first 16" } else { "all" };
    format!("type {}, {which} octets = <<{}>>", head.kind, octets(payload))
}

fn octets(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (at, octet) in bytes.iter().take(OCTETS_SHOWN).enumerate() {
        // Writing to a String cannot fail.
        _ = write!(text, "{}{octet}", if at == 0 { "" } else { "," });
    }
    text
}
