//! Every bounded thing has its number here, with the answer given when it is full. Settings under `[limits]` may lower or raise
//! the ones that users meet; the rest protect the process.

/// Longest AMQP short string, in bytes (AMQP 0-9-1 §4.2.5.3). Refused with 501/406 where a peer exceeds it.
pub const SHORT_STRING_BYTES_MAX: usize = 255;
/// Largest AMQP frame offered in `connection.tune`, in bytes; RabbitMQ's default. A larger frame closes the connection with 501.
pub const AMQP_FRAME_BYTES_MAX: u32 = 131_072;
/// Channels offered per connection in `connection.tune`; RabbitMQ's default. The next one closes the connection with 530.
pub const AMQP_CHANNELS_MAX: u16 = 2_047;
/// Heartbeat offered in `connection.tune`, in seconds.
pub const AMQP_HEARTBEAT_SECONDS: u16 = 60;
/// Nesting of AMQP field tables and arrays; deeper ones are a syntax error (502).
pub const TABLE_DEPTH_MAX: usize = 32;
/// Largest AMQP message body, in bytes; RabbitMQ 3.13's default. A larger one closes the channel with 311/406.
pub const MESSAGE_BODY_BYTES_MAX: u64 = 134_217_728;
/// Largest AMQP frame before `connection.tune-ok`, in bytes: room for a long token as password. Beyond it 501.
pub const AMQP_FRAME_BYTES_MAX_BEFORE_TUNE: u32 = 16_384;
/// Unfinished message bodies over all channels of one AMQP connection, in bytes; the connection is closed with 506 beyond.
pub const AMQP_UNFINISHED_BYTES_MAX: usize = 268_435_456;
/// Time a peer has to finish its protocol handshake, or to answer a close, in ms, before its socket is closed.
pub const HANDSHAKE_MS_MAX: u64 = 10_000;
/// Longest lifetime of a message or an unused queue, in ms: ten years, as RabbitMQ has it. A longer one is refused with 406.
pub const LIFETIME_MS_MAX: u64 = 315_360_000_000;
/// Queues of one space; the next declaration is refused with 406.
pub const QUEUES_MAX: usize = 100_000;
/// Exchanges of one space; the next declaration is refused with 406.
pub const EXCHANGES_MAX: usize = 100_000;
/// Bindings of one space; the next one is refused with 406.
pub const BINDINGS_MAX: usize = 1_000_000;
/// Messages that one channel's transaction holds until its commit, in bytes; the next publish is refused with 406.
pub const TRANSACTION_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Messages of one space that wait in delaying exchanges; the next one is refused with 406.
pub const DELAYED_MESSAGES_MAX: usize = 1_000_000;
/// Consumers of one channel; the next one closes the connection with 530.
pub const CONSUMERS_PER_CHANNEL_MAX: usize = 32_768;
/// Time a consumer may keep a delivery unacked, in ms, before its channel is closed with 406 (`limits.consumer_timeout`);
/// RabbitMQ's default.
pub const CONSUMER_TIMEOUT_MS: u64 = 1_800_000;
/// Open sockets over all listeners. Beyond it new sockets are closed at once and counted.
pub const CONNECTIONS_MAX: usize = 65_536;

/// Body of one call through the gateway, in bytes; 413 beyond (`limits.call_body_bytes_max`).
pub const CALL_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bodies of all calls in flight, in bytes; 503 with Retry-After beyond.
pub const CALL_BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;
/// HTTP field section carried by a call, in bytes; 431 beyond.
pub const CALL_HEADERS_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a streamed reply that wait for a slow HTTP client before the replying connection is paused.
pub const REPLY_BUFFER_BYTES_MAX: usize = 1024 * 1024;

/// Time that a replying connection is not read because its caller is slow, in ms; then a streamed reply is aborted.
pub const REPLY_PAUSE_MS_MAX: u64 = 10_000;

/// Longest line of service output kept as one log record, in bytes; the rest of the line is cut and the record says so.
pub const OUTPUT_LINE_BYTES_MAX: usize = 64 * 1024;
/// Output kept of one instance, in bytes a second (a line costs 64 beside its text), after a burst of four times that. What is
/// beyond is read, so that the service never waits, dropped and counted.
pub const OUTPUT_BYTES_PER_SECOND_MAX: u32 = 2 * 1024 * 1024;
/// Console lines kept of one instance, in bytes; older ones are evicted.
pub const CONSOLE_BYTES_MAX: usize = 1024 * 1024;

/// Request line and fields of one request on `control` and where OTLP is taken, in bytes; 431 beyond (somewhere below twice this: a
/// read that began may end).
pub const HTTP_HEADER_BYTES_MAX: usize = 64 * 1024;
/// Fields of one request there; 431 beyond.
pub const HTTP_HEADERS_MAX: usize = 100;
/// Bodies of all requests in flight on `control` and `management` together, in bytes, and again of those where OTLP is taken; 503
/// with Retry-After beyond.
pub const HTTP_BODIES_BYTES_MAX: usize = 128 * 1024 * 1024;
/// Time that a request's body may take there, in ms; 408 beyond.
pub const HTTP_BODY_MS_MAX: u64 = 60_000;
/// What an HTTP client may still send after its last answer, in time (ms) and bytes, before the connection is closed under it.
pub const HTTP_LINGER_MS_MAX: u64 = 2_000;
pub const HTTP_LINGER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Body of one request on `control`, in bytes; 413 beyond.
pub const CONTROL_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
