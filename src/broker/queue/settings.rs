//! What a queue was asked to be: its arguments, checked in RabbitMQ's words, and what a policy adds to them.

use crate::broker::refused::Refused;
use crate::kernel::limit::LIFETIME_MS_MAX;
use crate::model::policy::{DeadLetterStrategy, Overflow, QueueKind, QueuePolicy, lowest};
use crate::model::table::{Field, Table};
use crate::model::topology::QUEUE_TYPE;
use std::sync::Arc;
use std::time::Duration;

const DEAD_LETTER_EXCHANGE: &str = "x-dead-letter-exchange";
const STRATEGY: &str = "x-dead-letter-strategy";

/// Arguments with a meaning for classic queues; any other is refused if another type knows it, else ignored.
const CLASSIC: &[&str] = &[
    QUEUE_TYPE,
    "x-expires",
    "x-message-ttl",
    DEAD_LETTER_EXCHANGE,
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-single-active-consumer",
    "x-queue-mode",
    "x-queue-version",
    "x-queue-master-locator",
    "x-queue-leader-locator",
];
const QUORUM: &[&str] = &[
    QUEUE_TYPE,
    "x-expires",
    "x-message-ttl",
    DEAD_LETTER_EXCHANGE,
    "x-dead-letter-routing-key",
    STRATEGY,
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-overflow",
    "x-single-active-consumer",
    "x-delivery-limit",
    "x-quorum-initial-group-size",
    "x-queue-leader-locator",
];
/// Those of streams that no other type knows.
const STREAM_ONLY: &[&str] =
    &["x-max-age", "x-stream-max-segment-size-bytes", "x-stream-filter-size-bytes", "x-initial-cluster-size"];

/// Everything at rest is a plain classic queue.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::broker) struct QueueSettings {
    pub kind: QueueKind,
    pub message_ttl: Option<Duration>,
    pub expires: Option<Duration>,
    pub max_length: Option<u64>,
    /// Of bodies.
    pub max_length_bytes: Option<u64>,
    pub overflow: Option<Overflow>,
    pub dead_letter_exchange: Option<Arc<str>>,
    pub dead_letter_routing_key: Option<Arc<str>>,
    pub dead_letter_strategy: Option<DeadLetterStrategy>,
    pub max_priority: Option<u8>,
    pub single_active_consumer: bool,
    /// Returns after which a quorum queue gives a message up.
    pub delivery_limit: Option<u64>,
    pub consumer_timeout: Option<Duration>,
}

/// One argument being read: of which queue, for the words of a refusal.
#[derive(Clone, Copy)]
struct Argument<'a> {
    arguments: &'a Table,
    queue: &'a str,
    space: &'a str,
}

impl QueueSettings {
    /// Reads a declaration's arguments.
    pub fn parse(queue: &str, arguments: &Table, space: &str) -> Result<Self, Refused> {
        let read = Argument { arguments, queue, space };
        let kind = read.kind()?;
        let settings = QueueSettings {
            kind,
            expires: read.millis("x-expires", 1)?,
            message_ttl: read.millis("x-message-ttl", 0)?,
            max_length: read.count("x-max-length")?,
            max_length_bytes: read.count("x-max-length-bytes")?,
            overflow: read.one_of("x-overflow", Overflow::parse, "invalid_overflow")?,
            dead_letter_exchange: read.dead_letter_exchange()?,
            dead_letter_routing_key: read.dead_letter_routing_key()?,
            dead_letter_strategy: match kind {
                QueueKind::Classic => None,
                QueueKind::Quorum => read.one_of(STRATEGY, DeadLetterStrategy::parse, "invalid_dlx_strategy")?,
            },
            max_priority: if kind == QueueKind::Classic { read.max_priority()? } else { None },
            single_active_consumer: read.flag("x-single-active-consumer")?,
            delivery_limit: if kind == QueueKind::Quorum { read.count("x-delivery-limit")? } else { None },
            consumer_timeout: read.count("x-consumer-timeout")?.map(Duration::from_millis),
        };
        read.without_effect(kind)?;
        read.known(kind)?;
        Ok(settings)
    }

    /// What holds once a policy has its say: of two numbers the lower, of anything else the argument.
    pub fn under(&self, policy: &QueuePolicy) -> QueueSettings {
        let millis = |own: Option<Duration>, said: Option<u64>| match (own, said.map(Duration::from_millis)) {
            (Some(own), Some(said)) => Some(own.min(said)),
            (own, said) => own.or(said),
        };
        QueueSettings {
            kind: self.kind,
            message_ttl: millis(self.message_ttl, policy.message_ttl_ms),
            expires: millis(self.expires, policy.expires_ms),
            max_length: lowest(self.max_length, policy.max_length),
            max_length_bytes: lowest(self.max_length_bytes, policy.max_length_bytes),
            overflow: self.overflow.or(policy.overflow),
            dead_letter_exchange: self.dead_letter_exchange.clone().or_else(|| policy.dead_letter_exchange.clone()),
            dead_letter_routing_key: self.dead_letter_routing_key.clone().or_else(|| policy.dead_letter_routing_key.clone()),
            dead_letter_strategy: match self.kind {
                QueueKind::Classic => None,
                QueueKind::Quorum => self.dead_letter_strategy.or(policy.dead_letter_strategy),
            },
            max_priority: self.max_priority,
            single_active_consumer: self.single_active_consumer,
            delivery_limit: match self.kind {
                QueueKind::Classic => None,
                QueueKind::Quorum => lowest(self.delivery_limit, policy.delivery_limit),
            },
            consumer_timeout: millis(self.consumer_timeout, policy.consumer_timeout_ms),
        }
    }

    /// Nothing is asked of it beyond keeping messages in order.
    pub fn is_plain(&self) -> bool {
        *self == QueueSettings::default()
    }

    /// A full queue refuses what is published to it, instead of dropping its oldest message. A quorum queue knows only one way to.
    pub fn refuses(&self) -> bool {
        let limited = self.max_length.is_some() || self.max_length_bytes.is_some();
        limited
            && match self.overflow.unwrap_or_default() {
                Overflow::DropHead => false,
                Overflow::RejectPublish => true,
                Overflow::RejectPublishDlx => self.kind == QueueKind::Classic,
            }
    }

    /// Dead letters that are refused stay with the queue, for only one that refuses what is too much cannot lose its own by it.
    pub fn keeps_letters(&self) -> bool {
        self.wants_to_keep_letters() && self.overflow == Some(Overflow::RejectPublish)
    }

    /// As asked; see [`QueueSettings::keeps_letters`] for whether it can be.
    pub fn wants_to_keep_letters(&self) -> bool {
        self.dead_letter_exchange.is_some() && self.dead_letter_strategy == Some(DeadLetterStrategy::AtLeastOnce)
    }

    /// Arguments that a second declaration must repeat.
    pub fn compared(kind: QueueKind) -> &'static [&'static str] {
        match kind {
            QueueKind::Classic => CLASSIC,
            QueueKind::Quorum => QUORUM,
        }
    }
}

impl Argument<'_> {
    fn refuse(&self, name: &str, why: &str) -> Refused {
        let Argument { queue, space, .. } = self;
        Refused::Precondition(format!("invalid arg '{name}' for queue '{queue}' in vhost '{space}': {why}"))
    }

    fn unacceptable(&self, name: &str, field: &Field) -> Refused {
        self.refuse(name, &format!("{{unacceptable_type,{}}}", field.spelled().1))
    }

    fn kind(&self) -> Result<QueueKind, Refused> {
        let Some(field) = self.arguments.get(QUEUE_TYPE) else { return Ok(QueueKind::Classic) };
        match field.as_str() {
            Some("classic") => Ok(QueueKind::Classic),
            Some("quorum") => Ok(QueueKind::Quorum),
            Some("stream") => Err(Refused::NotImplemented(format!(
                "queue type 'stream' of queue '{}' in vhost '{}' is not available yet in this version of reactor",
                self.queue, self.space
            ))),
            Some(other) => Err(self.refuse(QUEUE_TYPE, &format!("\"unsupported queue type '{other}'\""))),
            None => Err(self.unacceptable(QUEUE_TYPE, field)),
        }
    }

    fn integer(&self, name: &str) -> Result<Option<i64>, Refused> {
        let Some(field) = self.arguments.get(name) else { return Ok(None) };
        match field.as_integer() {
            Some(value) => Ok(Some(value)),
            None => Err(self.refuse(name, &format!("\"expected integer, got {}\"", field.spelled().1))),
        }
    }

    fn count(&self, name: &str) -> Result<Option<u64>, Refused> {
        let Some(value) = self.integer(name)? else { return Ok(None) };
        u64::try_from(value).map(Some).map_err(|_| self.refuse(name, &format!("{{value_negative,{value}}}")))
    }

    fn millis(&self, name: &str, min: i64) -> Result<Option<Duration>, Refused> {
        let Some(value) = self.integer(name)? else { return Ok(None) };
        match u64::try_from(value) {
            Ok(0) if min > 0 => Err(self.refuse(name, "{value_zero,0}")),
            Ok(millis) if millis <= LIFETIME_MS_MAX => Ok(Some(Duration::from_millis(millis))),
            Ok(_) => Err(self.refuse(name, &format!("{{value_too_large,{value}}}"))),
            Err(_) => Err(self.refuse(name, &format!("{{value_negative,{value}}}"))),
        }
    }

    fn max_priority(&self) -> Result<Option<u8>, Refused> {
        let name = "x-max-priority";
        let Some(value) = self.count(name)? else { return Ok(None) };
        u8::try_from(value).map(Some).map_err(|_| self.refuse(name, &format!("{{max_value_exceeded,{value}}}")))
    }

    fn flag(&self, name: &str) -> Result<bool, Refused> {
        match self.arguments.get(name) {
            None => Ok(false),
            Some(Field::Bool(value)) => Ok(*value),
            Some(other) => Err(self.unacceptable(name, other)),
        }
    }

    fn text(&self, name: &str) -> Result<Option<Arc<str>>, Refused> {
        let Some(field) = self.arguments.get(name) else { return Ok(None) };
        match field.as_str().filter(|text| text.len() <= 255) {
            Some(text) => Ok(Some(text.into())),
            None => Err(self.unacceptable(name, field)),
        }
    }

    /// Refused in other words than the rest, since RabbitMQ's channels look at it before its queues do.
    fn dead_letter_exchange(&self) -> Result<Option<Arc<str>>, Refused> {
        let Some(field) = self.arguments.get(DEAD_LETTER_EXCHANGE) else { return Ok(None) };
        match field.as_str().filter(|text| text.len() <= 255) {
            Some(text) => Ok(Some(text.into())),
            None => {
                let Argument { queue, space, .. } = self;
                let (kind, name) = (field.spelled().1, DEAD_LETTER_EXCHANGE);
                let text = format!("invalid type '{kind}' for arg '{name}' in queue '{queue}' in vhost '{space}'");
                Err(Refused::Precondition(text))
            }
        }
    }

    fn dead_letter_routing_key(&self) -> Result<Option<Arc<str>>, Refused> {
        let name = "x-dead-letter-routing-key";
        let key = self.text(name)?;
        match key.is_some() && self.arguments.get(DEAD_LETTER_EXCHANGE).is_none() {
            true => Err(self.refuse(name, "routing_key_but_no_dlx_defined")),
            false => Ok(key),
        }
    }

    fn one_of<T>(&self, name: &str, parse: impl FnOnce(&str) -> Option<T>, wrong: &str) -> Result<Option<T>, Refused> {
        let Some(field) = self.arguments.get(name) else { return Ok(None) };
        let Some(text) = field.as_str() else { return Err(self.unacceptable(name, field)) };
        parse(text).map(Some).ok_or_else(|| self.refuse(name, wrong))
    }

    /// Arguments that are checked and change nothing: where messages lie and on how many machines is not for a client to say here.
    fn without_effect(&self, kind: QueueKind) -> Result<(), Refused> {
        let among = |names: &'static [&'static str]| move |text: &str| names.contains(&text).then_some(());
        self.one_of("x-queue-leader-locator", among(&["client-local", "balanced"]), "invalid_queue_locator_arg")?;
        if kind == QueueKind::Quorum {
            self.count("x-max-in-memory-length")?;
            self.count("x-max-in-memory-bytes")?;
            let name = "x-quorum-initial-group-size";
            return match self.count(name)? {
                Some(0) => Err(self.refuse(name, "{value_zero,0}")),
                _ => Ok(()),
            };
        }
        let mode = self.arguments.get("x-queue-mode").and_then(Field::as_str).unwrap_or_default();
        let wrong = format!("\"unsupported queue mode '{mode}'\"");
        self.one_of("x-queue-mode", among(&["default", "lazy"]), &wrong)?;
        match self.count("x-queue-version")? {
            None | Some(1 | 2) => Ok(()),
            Some(other) => Err(self.refuse("x-queue-version", &format!("\"unsupported queue version '{other}'\""))),
        }
    }

    /// An argument that only another type of queue understands would be a promise nobody keeps.
    fn known(&self, kind: QueueKind) -> Result<(), Refused> {
        let (known, others, kind) = match kind {
            QueueKind::Classic => (CLASSIC, QUORUM, "rabbit_classic_queue"),
            QueueKind::Quorum => (QUORUM, CLASSIC, "rabbit_quorum_queue"),
        };
        let foreign = |name: &&str| !known.contains(name) && (others.contains(name) || STREAM_ONLY.contains(name));
        match self.arguments.iter().map(|(name, _)| name).find(foreign) {
            None => Ok(()),
            Some(name) => {
                let Argument { queue, space, .. } = self;
                let text = format!("invalid arg '{name}' for queue '{queue}' in vhost '{space}' of queue type {kind}");
                Err(Refused::Precondition(text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[(&str, Field)]) -> Result<QueueSettings, String> {
        let table = arguments.iter().fold(Table::new(), |table, (name, field)| table.with(name, field.clone()));
        QueueSettings::parse("q", &table, "/").map_err(|refused| refused.text().to_owned())
    }

    fn refused(name: &str, field: Field) -> String {
        parse(&[(name, field)]).expect_err("refused")
    }

    #[test]
    fn what_is_wrong_with_an_argument_is_said_in_rabbitmqs_words() {
        let said = |name: &str, why: &str| format!("invalid arg '{name}' for queue 'q' in vhost '/': {why}");
        let cases = [
            ("x-expires", Field::I32(0), "{value_zero,0}"),
            ("x-expires", Field::I64(315_360_000_001), "{value_too_large,315360000001}"),
            ("x-message-ttl", Field::I32(-1), "{value_negative,-1}"),
            ("x-message-ttl", Field::text("5"), "\"expected integer, got longstr\""),
            ("x-max-length", Field::I8(-5), "{value_negative,-5}"),
            ("x-max-length-bytes", Field::F64(1.0), "\"expected integer, got double\""),
            ("x-overflow", Field::text("spill"), "invalid_overflow"),
            ("x-overflow", Field::Bool(true), "{unacceptable_type,bool}"),
            ("x-max-priority", Field::I32(256), "{max_value_exceeded,256}"),
            ("x-single-active-consumer", Field::text("true"), "{unacceptable_type,longstr}"),
            ("x-dead-letter-routing-key", Field::text("k"), "routing_key_but_no_dlx_defined"),
            ("x-queue-mode", Field::text("eager"), "\"unsupported queue mode 'eager'\""),
            ("x-queue-version", Field::I32(3), "\"unsupported queue version '3'\""),
            ("x-queue-type", Field::text("nonsense"), "\"unsupported queue type 'nonsense'\""),
            ("x-queue-leader-locator", Field::text("moon"), "invalid_queue_locator_arg"),
        ];
        for (name, field, why) in cases {
            assert_eq!(refused(name, field), said(name, why));
        }
        let text = "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'";
        assert_eq!(refused(DEAD_LETTER_EXCHANGE, Field::I32(1)), text);
    }

    #[test]
    fn a_lifetime_may_be_ten_years() {
        // Celery's delayed delivery declares queues up to 2^27 s.
        for millis in [134_217_728_000, 315_360_000_000] {
            let lifetime = Some(Duration::from_millis(millis));
            let asked = [("x-message-ttl", Field::I64(millis as i64)), ("x-expires", Field::I64(millis as i64))];
            let settings = parse(&asked).expect("accepted");
            assert_eq!((settings.message_ttl, settings.expires), (lifetime, lifetime));
        }
    }

    #[test]
    fn an_argument_of_another_type_is_refused_and_an_unknown_one_is_not() {
        let text = "invalid arg 'x-delivery-limit' for queue 'q' in vhost '/' of queue type rabbit_classic_queue";
        assert_eq!(refused("x-delivery-limit", Field::I32(1)), text);
        let quorum = [("x-queue-type", Field::text("quorum")), ("x-max-priority", Field::I32(1))];
        let text = "invalid arg 'x-max-priority' for queue 'q' in vhost '/' of queue type rabbit_quorum_queue";
        assert_eq!(parse(&quorum), Err(text.into()));
        let ignored = [("x-no-such-thing", Field::I32(1)), ("app", Field::text("mine")), ("x-queue-mode", Field::text("lazy"))];
        assert!(parse(&ignored).expect("ignored").is_plain());
        let group = [("x-queue-type", Field::text("quorum")), ("x-quorum-initial-group-size", Field::I32(3))];
        assert_eq!(parse(&group).expect("accepted").kind, QueueKind::Quorum);
    }

    #[test]
    fn of_argument_and_policy_the_lower_number_holds_and_else_the_argument() {
        let own = parse(&[
            ("x-max-length", Field::I32(10)),
            ("x-message-ttl", Field::I32(100)),
            ("x-overflow", Field::text("reject-publish")),
            (DEAD_LETTER_EXCHANGE, Field::text("mine")),
        ])
        .expect("good");
        let policy = QueuePolicy {
            max_length: Some(5),
            message_ttl_ms: Some(500),
            expires_ms: Some(7),
            overflow: Some(Overflow::DropHead),
            dead_letter_exchange: Some("theirs".into()),
            dead_letter_routing_key: Some("key".into()),
            delivery_limit: Some(3),
            ..QueuePolicy::default()
        };
        let both = own.under(&policy);
        assert_eq!((both.max_length, both.message_ttl), (Some(5), Some(Duration::from_millis(100))));
        assert_eq!(both.expires, Some(Duration::from_millis(7)));
        assert!(both.refuses(), "the argument's overflow holds");
        assert_eq!(both.dead_letter_exchange.as_deref(), Some("mine"));
        assert_eq!(both.dead_letter_routing_key.as_deref(), Some("key"));
        assert_eq!(both.delivery_limit, None, "only a quorum queue has one");
    }
}
