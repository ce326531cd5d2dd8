//! What a [`Session`](super::Session) tells its caller. Everything borrowed lives as long as the read buffer and the session are
//! left alone.

use super::method::Method;
use super::properties::Properties;
use super::reply::Reply;
use super::table::RawTable;
use bytes::Bytes;
use std::fmt;

#[derive(Debug)]
pub enum Event<'a> {
    /// Answer with [`Session::accept_login`](super::Session::accept_login) or `refuse_login`; nothing more is read until then.
    Login(Login<'a>),
    /// The peer opens a virtual host. Answer with `accept_open` or `close_connection`; nothing more is read until then.
    Open { vhost: &'a str },
    /// `channel.open-ok` is in `out`.
    ChannelOpened { channel: u16 },
    /// The peer closed a channel; `channel.close-ok` is in `out`.
    ChannelClosed { channel: u16, code: u16, text: &'a str },
    /// The session closed a channel because of what the peer did on it; `channel.close` is in `out`.
    ChannelFailed { channel: u16, reply: Reply },
    /// A whole message.
    Publish(Publish<'a>),
    /// Any other method that a client may send on an open channel. Never one of the class `connection`, `channel.open`,
    /// `channel.close` or `basic.publish`.
    Method { channel: u16, method: Method<'a> },
    /// The peer renews its credentials. Answer with `accept_secret` or `close_connection`.
    UpdateSecret { secret: &'a [u8], reason: &'a str },
    /// The peer broke the protocol; `connection.close` is in `out`. Let go of its channels now; [`Event::Finished`] follows.
    Failed(Reply),
    /// Nothing more will come: send `out`, then close the socket.
    Finished(Finish),
}

#[derive(Clone, Copy)]
pub struct Login<'a> {
    /// `PLAIN`, `AMQPLAIN`, or `EXTERNAL` with neither user nor password.
    pub mechanism: &'a str,
    pub user: &'a str,
    pub password: &'a str,
    pub client_properties: RawTable<'a>,
}

impl fmt::Debug for Login<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({} {:?} {})", self.mechanism, self.user, self.client_properties)
    }
}

#[derive(Debug)]
pub struct Publish<'a> {
    pub channel: u16,
    pub exchange: &'a str,
    pub routing_key: &'a str,
    pub mandatory: bool,
    pub immediate: bool,
    pub properties: Properties<'a>,
    pub body: Body<'a>,
}

/// A message body: in the read buffer if it came in one piece, else collected.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    Slice(&'a [u8]),
    Collected(Bytes),
}

impl Body<'_> {
    /// Owned, without a copy if the body was collected.
    pub fn into_bytes(self) -> Bytes {
        match self {
            Body::Slice(slice) => Bytes::copy_from_slice(slice),
            Body::Collected(bytes) => bytes,
        }
    }
}

impl std::ops::Deref for Body<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Body::Slice(slice) => slice,
            Body::Collected(bytes) => bytes,
        }
    }
}

/// Why a connection is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The first eight bytes were not `AMQP 0 0 9 1`; ours are in `out`.
    ForeignProtocol,
    LoginRefused,
    /// The peer did not come to `connection.open` in time.
    HandshakeTimeout,
    /// Nothing was heard for two heartbeat intervals.
    HeartbeatMissed,
    /// The peer said `connection.close`; `close-ok` is in `out`.
    ByPeer {
        code: u16,
        text: String,
    },
    /// The peer answered our `connection.close`.
    ByUs,
    /// The peer did not answer our `connection.close` in time.
    CloseTimeout,
}
