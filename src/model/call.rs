//! A call: one request to a service over the bus and what comes back. The gateway makes calls and the broker carries them;
//! they meet in these types (service contract §2, §4, §5).

use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;

/// One request as the bus carries it.
#[derive(Clone, Debug)]
pub struct Call {
    pub space: Arc<str>,
    /// The whole key of the request's path, not yet cut to 255 bytes: `greeter.say.hello`. Empty for `/`.
    pub key: String,
    /// Fields in HTTP/2 form, pseudo-fields first, names in lower case, values as received.
    pub fields: Vec<(String, Bytes)>,
    pub body: Bytes,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    /// Shown as `message_id`.
    pub request_id: String,
    /// Time the caller still waits for the first (or only) reply.
    pub deadline: Duration,
}

/// What the worker's messages become, in order. `Part` with `last` ends a good reply.
#[derive(Clone, Debug)]
pub enum CallEvent {
    /// Handed to a consumer of this service instance.
    Delivered { service: Arc<str>, instance: Arc<str> },
    /// One message sent to `reply_to`. Status and fields count on the first part only.
    Part(ReplyPart),
    /// No (further) reply will come.
    Failed(CallFailure),
}

#[derive(Clone, Debug)]
pub struct ReplyPart {
    /// The reply's properties and headers, as the broker read them.
    pub headers: super::table::Table,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    pub body: Bytes,
    /// False while `:more` is true.
    pub last: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallFailure {
    /// No binding matches. Lists the attached services.
    Unbound { attached: Vec<String> },
    /// The service exists, the requested version does not. Lists those that do.
    NoSuchVersion { service: String, version: u32, attached: Vec<u32> },
    /// Bound, but nobody consumes. `last_seen` is how long ago a consumer left, if one ever was there.
    NoConsumer { service: String, last_seen: Option<Duration> },
    /// The worker's channel or connection closed before its reply was complete.
    WorkerGone { service: String, instance: String },
    /// Rejected without requeue.
    Rejected { service: String },
    /// The queue is full, or an alarm stops publishing.
    Full { queue: String },
    /// The field section does not fit the consumer's negotiated frame size.
    FrameTooSmall { frame_max: u32 },
    /// The caller's side took no bytes of a streamed reply for 10 s: the stream is ended, never cleanly.
    Stalled { service: String },
}

/// Receives what becomes of a call, from the broker's side of the wall.
pub trait CallObserver: Send + Sync {
    /// Takes the next event. Called without any broker lock held; must not block.
    fn on(&self, event: CallEvent) -> Pressure;
}

/// What the observer wants the replying connection to do next.
#[derive(Clone, Debug)]
pub enum Pressure {
    Continue,
    /// The response's buffer is full: stop reading from the replying connection until notified, at most 10 s.
    Pause(Arc<tokio::sync::Notify>),
    /// Nobody waits any more: drop this and further replies.
    Gone,
}

/// Carries calls to services; the broker's side is wired in by `node`. Dropping the guard cancels the call: a queued message is
/// removed, a delivered one has its reply address die.
pub trait CallBus: Send + Sync {
    fn call(&self, call: Call, observer: Arc<dyn CallObserver>) -> Result<CallGuard, CallFailure>;
    /// Names of services with at least one binding on `reactor.call` in `space`, for 404 answers and views.
    fn attached(&self, space: &str) -> Vec<String>;
}

/// Keeps a call alive.
pub type CallGuard = Box<dyn std::any::Any + Send + Sync>;
