//! Every method of AMQP 0-9-1 and of RabbitMQ's extensions, in one table.
//!
//! From a row come the struct, its decoding, its encoding byte for byte, its name and its trace line. Reserved arguments are kept
//! as fields, so that what was read can be written again unchanged; `..Default::default()` fills them.

use super::primitive::{Argument, LongStr, Malformed, Reader, Writer};
use super::table::RawTable;
use std::fmt;

/// Class and method number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MethodId {
    pub class: u16,
    pub method: u16,
}

impl MethodId {
    pub const CONNECTION_CLASS: u16 = 10;
}

/// Who may send a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    Client,
    Server,
    Both,
}

/// What every row of the table can do.
pub trait Encode {
    fn id(&self) -> MethodId;
    /// Appends class, method and arguments: the payload of a method frame.
    fn write(&self, out: &mut Vec<u8>);
}

/// Reading of one row's arguments.
trait Arguments<'a>: Sized {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed>;
}

/// Decodes the payload of a method frame if it is a `basic.publish`, without the detour over [`Method`].
// HOT
#[inline]
pub(super) fn publish<'a>(payload: &'a [u8]) -> Option<BasicPublish<'a>> {
    let [0, 60, 0, 40, arguments @ ..] = payload else { return None };
    let mut reader = Reader::new(arguments);
    BasicPublish::read(&mut reader).ok().filter(|_| reader.is_empty())
}

/// Decodes the payload of a method frame if it is a `basic.ack`.
// HOT
#[inline]
pub(super) fn ack(payload: &[u8]) -> Option<BasicAck> {
    let &[0, 60, 0, 80, t7, t6, t5, t4, t3, t2, t1, t0, bits] = payload else { return None };
    Some(BasicAck { delivery_tag: u64::from_be_bytes([t7, t6, t5, t4, t3, t2, t1, t0]), multiple: bits & 1 == 1 })
}

macro_rules! methods {
    ($($class:literal $number:literal $spelled:literal $sender:ident $name:ident $(<$life:lifetime>)? { $($field:ident: $type:ty),* })*) => {
        $(
            #[doc = concat!("`", $spelled, "`")]
            #[derive(Clone, Copy, Debug, PartialEq, Default)]
            pub struct $name $(<$life>)? { $(pub $field: $type),* }

            impl $(<$life>)? $name $(<$life>)? {
                pub const ID: MethodId = MethodId { class: $class, method: $number };
            }

            impl<'a> Arguments<'a> for $name $(<$life>)? {
                #[inline]
                #[allow(unused_variables)]
                fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                    Ok($name { $($field: Argument::read(reader)?),* })
                }
            }

            impl $(<$life>)? Encode for $name $(<$life>)? {
                #[inline]
                fn id(&self) -> MethodId {
                    Self::ID
                }
                #[inline]
                #[allow(unused_mut, unused_variables)]
                fn write(&self, out: &mut Vec<u8>) {
                    out.extend_from_slice(&u16::to_be_bytes($class));
                    out.extend_from_slice(&u16::to_be_bytes($number));
                    let mut writer = Writer::new(out);
                    $(Argument::write(&self.$field, &mut writer);)*
                }
            }

            impl<'a> From<$name $(<$life>)?> for Method<'a> {
                fn from(method: $name $(<$life>)?) -> Self {
                    Method::$name(method)
                }
            }
        )*

        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Method<'a> {
            $($name($name $(<$life>)?)),*
        }

        impl<'a> Method<'a> {
            /// Decodes the payload of a method frame. Tables in it are checked; see [`RawTable`].
            // HOT: basic.publish and basic.ack pass here.
            pub fn decode(payload: &'a [u8]) -> Result<Self, Malformed> {
                let mut reader = Reader::new(payload);
                let (class, method) = (reader.short()?, reader.short()?);
                let decoded = match (class, method) {
                    $(($class, $number) => Method::$name($name::read(&mut reader)?),)*
                    _ => return Err(Malformed::UnknownMethod { class, method }),
                };
                match reader.rest().len() {
                    0 => Ok(decoded),
                    count => Err(Malformed::Trailing(count)),
                }
            }

            /// `basic.publish`
            pub fn name(&self) -> &'static str {
                match self {
                    $(Method::$name(_) => $spelled,)*
                }
            }

            pub fn sender(&self) -> Sender {
                match self {
                    $(Method::$name(_) => Sender::$sender,)*
                }
            }

            /// Arguments as ` name=value`, in wire order.
            pub fn show_arguments(&self, f: &mut dyn fmt::Write) -> fmt::Result {
                match self {
                    $(#[allow(unused_variables)] Method::$name(method) => {
                        $(
                            f.write_str(concat!(" ", stringify!($field), "="))?;
                            Argument::show(&method.$field, f)?;
                        )*
                    })*
                }
                Ok(())
            }
        }

        impl Encode for Method<'_> {
            fn id(&self) -> MethodId {
                match self {
                    $(Method::$name(_) => $name::ID,)*
                }
            }
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Method::$name(method) => method.write(out),)*
                }
            }
        }

        /// Name of every known method, for tests of the table.
        pub const METHODS: &[(MethodId, &str)] = &[$(($name::ID, $spelled)),*];
    };
}

methods! {
    10 10 "connection.start" Server ConnectionStart<'a> { version_major: u8, version_minor: u8, server_properties: RawTable<'a>, mechanisms: LongStr<'a>, locales: LongStr<'a> }
    10 11 "connection.start-ok" Client ConnectionStartOk<'a> { client_properties: RawTable<'a>, mechanism: &'a str, response: LongStr<'a>, locale: &'a str }
    10 20 "connection.secure" Server ConnectionSecure<'a> { challenge: LongStr<'a> }
    10 21 "connection.secure-ok" Client ConnectionSecureOk<'a> { response: LongStr<'a> }
    10 30 "connection.tune" Server ConnectionTune { channel_max: u16, frame_max: u32, heartbeat: u16 }
    10 31 "connection.tune-ok" Client ConnectionTuneOk { channel_max: u16, frame_max: u32, heartbeat: u16 }
    10 40 "connection.open" Client ConnectionOpen<'a> { virtual_host: &'a str, reserved_1: &'a str, reserved_2: bool }
    10 41 "connection.open-ok" Server ConnectionOpenOk<'a> { reserved_1: &'a str }
    10 50 "connection.close" Both ConnectionClose<'a> { reply_code: u16, reply_text: &'a str, class_id: u16, method_id: u16 }
    10 51 "connection.close-ok" Both ConnectionCloseOk {}
    10 60 "connection.blocked" Server ConnectionBlocked<'a> { reason: &'a str }
    10 61 "connection.unblocked" Server ConnectionUnblocked {}
    10 70 "connection.update-secret" Client ConnectionUpdateSecret<'a> { new_secret: LongStr<'a>, reason: &'a str }
    10 71 "connection.update-secret-ok" Server ConnectionUpdateSecretOk {}

    20 10 "channel.open" Client ChannelOpen<'a> { reserved_1: &'a str }
    20 11 "channel.open-ok" Server ChannelOpenOk<'a> { reserved_1: LongStr<'a> }
    20 20 "channel.flow" Both ChannelFlow { active: bool }
    20 21 "channel.flow-ok" Both ChannelFlowOk { active: bool }
    20 40 "channel.close" Both ChannelClose<'a> { reply_code: u16, reply_text: &'a str, class_id: u16, method_id: u16 }
    20 41 "channel.close-ok" Both ChannelCloseOk {}

    30 10 "access.request" Client AccessRequest<'a> { realm: &'a str, exclusive: bool, passive: bool, active: bool, write: bool, read: bool }
    30 11 "access.request-ok" Server AccessRequestOk { ticket: u16 }

    40 10 "exchange.declare" Client ExchangeDeclare<'a> { ticket: u16, exchange: &'a str, kind: &'a str, passive: bool, durable: bool, auto_delete: bool, internal: bool, no_wait: bool, arguments: RawTable<'a> }
    40 11 "exchange.declare-ok" Server ExchangeDeclareOk {}
    40 20 "exchange.delete" Client ExchangeDelete<'a> { ticket: u16, exchange: &'a str, if_unused: bool, no_wait: bool }
    40 21 "exchange.delete-ok" Server ExchangeDeleteOk {}
    40 30 "exchange.bind" Client ExchangeBind<'a> { ticket: u16, destination: &'a str, source: &'a str, routing_key: &'a str, no_wait: bool, arguments: RawTable<'a> }
    40 31 "exchange.bind-ok" Server ExchangeBindOk {}
    40 40 "exchange.unbind" Client ExchangeUnbind<'a> { ticket: u16, destination: &'a str, source: &'a str, routing_key: &'a str, no_wait: bool, arguments: RawTable<'a> }
    40 51 "exchange.unbind-ok" Server ExchangeUnbindOk {}

    50 10 "queue.declare" Client QueueDeclare<'a> { ticket: u16, queue: &'a str, passive: bool, durable: bool, exclusive: bool, auto_delete: bool, no_wait: bool, arguments: RawTable<'a> }
    50 11 "queue.declare-ok" Server QueueDeclareOk<'a> { queue: &'a str, message_count: u32, consumer_count: u32 }
    50 20 "queue.bind" Client QueueBind<'a> { ticket: u16, queue: &'a str, exchange: &'a str, routing_key: &'a str, no_wait: bool, arguments: RawTable<'a> }
    50 21 "queue.bind-ok" Server QueueBindOk {}
    50 30 "queue.purge" Client QueuePurge<'a> { ticket: u16, queue: &'a str, no_wait: bool }
    50 31 "queue.purge-ok" Server QueuePurgeOk { message_count: u32 }
    50 40 "queue.delete" Client QueueDelete<'a> { ticket: u16, queue: &'a str, if_unused: bool, if_empty: bool, no_wait: bool }
    50 41 "queue.delete-ok" Server QueueDeleteOk { message_count: u32 }
    50 50 "queue.unbind" Client QueueUnbind<'a> { ticket: u16, queue: &'a str, exchange: &'a str, routing_key: &'a str, arguments: RawTable<'a> }
    50 51 "queue.unbind-ok" Server QueueUnbindOk {}

    60 10 "basic.qos" Client BasicQos { prefetch_size: u32, prefetch_count: u16, global: bool }
    60 11 "basic.qos-ok" Server BasicQosOk {}
    60 20 "basic.consume" Client BasicConsume<'a> { ticket: u16, queue: &'a str, consumer_tag: &'a str, no_local: bool, no_ack: bool, exclusive: bool, no_wait: bool, arguments: RawTable<'a> }
    60 21 "basic.consume-ok" Server BasicConsumeOk<'a> { consumer_tag: &'a str }
    60 30 "basic.cancel" Both BasicCancel<'a> { consumer_tag: &'a str, no_wait: bool }
    60 31 "basic.cancel-ok" Both BasicCancelOk<'a> { consumer_tag: &'a str }
    60 40 "basic.publish" Client BasicPublish<'a> { ticket: u16, exchange: &'a str, routing_key: &'a str, mandatory: bool, immediate: bool }
    60 50 "basic.return" Server BasicReturn<'a> { reply_code: u16, reply_text: &'a str, exchange: &'a str, routing_key: &'a str }
    60 60 "basic.deliver" Server BasicDeliver<'a> { consumer_tag: &'a str, delivery_tag: u64, redelivered: bool, exchange: &'a str, routing_key: &'a str }
    60 70 "basic.get" Client BasicGet<'a> { ticket: u16, queue: &'a str, no_ack: bool }
    60 71 "basic.get-ok" Server BasicGetOk<'a> { delivery_tag: u64, redelivered: bool, exchange: &'a str, routing_key: &'a str, message_count: u32 }
    60 72 "basic.get-empty" Server BasicGetEmpty<'a> { reserved_1: &'a str }
    60 80 "basic.ack" Both BasicAck { delivery_tag: u64, multiple: bool }
    60 90 "basic.reject" Client BasicReject { delivery_tag: u64, requeue: bool }
    60 100 "basic.recover-async" Client BasicRecoverAsync { requeue: bool }
    60 110 "basic.recover" Client BasicRecover { requeue: bool }
    60 111 "basic.recover-ok" Server BasicRecoverOk {}
    60 120 "basic.nack" Both BasicNack { delivery_tag: u64, multiple: bool, requeue: bool }

    85 10 "confirm.select" Client ConfirmSelect { no_wait: bool }
    85 11 "confirm.select-ok" Server ConfirmSelectOk {}

    90 10 "tx.select" Client TxSelect {}
    90 11 "tx.select-ok" Server TxSelectOk {}
    90 20 "tx.commit" Client TxCommit {}
    90 21 "tx.commit-ok" Server TxCommitOk {}
    90 30 "tx.rollback" Client TxRollback {}
    90 31 "tx.rollback-ok" Server TxRollbackOk {}
}

impl Method<'_> {
    /// Whether a header and a body follow.
    pub fn has_content(&self) -> bool {
        matches!(self, Method::BasicPublish(_) | Method::BasicReturn(_) | Method::BasicDeliver(_) | Method::BasicGetOk(_))
    }
}
