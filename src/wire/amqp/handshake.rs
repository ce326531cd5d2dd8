//! From the protocol header to `connection.open`: what the server says it is, who the client says it is, and the numbers both
//! agree on. Pure functions; [`Session`](super::Session) keeps the state.

use super::event::Login;
use super::frame::FRAME_BYTES_MIN;
use super::method::{ConnectionStart, ConnectionStartOk, ConnectionTuneOk};
use super::primitive::LongStr;
use super::reply::{Reply, ReplyCode};
use super::table::{self, RawField, RawTable};
use super::{encode, session::SessionConfig};
use crate::model::space::RABBITMQ_VERSION;
use crate::model::table::{Field, Table};

/// What a client can be told; from `client_properties.capabilities`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// A refused login is said with `connection.close` 403 instead of a closed socket.
    pub authentication_failure_close: bool,
    pub basic_nack: bool,
    pub connection_blocked: bool,
    pub consumer_cancel_notify: bool,
    pub exchange_exchange_bindings: bool,
    pub publisher_confirms: bool,
}

/// What `connection.tune` and `tune-ok` settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tune {
    pub channel_max: u16,
    pub frame_max: u32,
    /// Seconds; 0 is none.
    pub heartbeat: u16,
}

const MECHANISMS: &str = "PLAIN AMQPLAIN";
const MECHANISMS_WITH_EXTERNAL: &str = "PLAIN AMQPLAIN EXTERNAL";
const LOCALES: &str = "en_US";

pub(super) fn write_start(out: &mut Vec<u8>, config: &SessionConfig) {
    let properties = table::encoded(&server_properties(config));
    let server_properties = RawTable::check(&properties).expect("a table we encoded is well-formed");
    let mechanisms = if config.external { MECHANISMS_WITH_EXTERNAL } else { MECHANISMS };
    let (mechanisms, locales) = (LongStr::from(mechanisms), LongStr::from(LOCALES));
    encode::method(out, 0, &ConnectionStart { version_major: 0, version_minor: 9, server_properties, mechanisms, locales });
}

/// RabbitMQ 3.13's properties and capabilities, with our name as the platform.
pub fn server_properties(config: &SessionConfig) -> Table {
    let capabilities = [
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ];
    let capabilities = Table(capabilities.map(|name| (name.to_owned(), Field::Bool(true))).to_vec());
    Table::new()
        .with("capabilities", Field::Table(capabilities))
        .with("cluster_name", Field::text(&*config.cluster_name))
        .with("platform", Field::text(concat!("reactor ", env!("CARGO_PKG_VERSION"))))
        .with("product", Field::text("RabbitMQ"))
        .with("version", Field::text(RABBITMQ_VERSION))
}

pub(super) fn capabilities(client_properties: RawTable<'_>) -> Capabilities {
    let Some(RawField::Table(table)) = client_properties.get("capabilities") else { return Capabilities::default() };
    let has = |name: &str| table.get(name) == Some(RawField::Bool(true));
    Capabilities {
        authentication_failure_close: has("authentication_failure_close"),
        basic_nack: has("basic.nack"),
        connection_blocked: has("connection.blocked"),
        consumer_cancel_notify: has("consumer_cancel_notify"),
        exchange_exchange_bindings: has("exchange_exchange_bindings"),
        publisher_confirms: has("publisher_confirms"),
    }
}

/// Who logs in, out of the SASL response.
pub(super) fn login<'a>(start_ok: &ConnectionStartOk<'a>, external: bool) -> Result<Login<'a>, Reply> {
    let (user, password) = match start_ok.mechanism {
        "PLAIN" => plain(start_ok.response.0),
        "AMQPLAIN" => amqplain(start_ok.response.0),
        // Whom the certificate names is the door's to know; what the response says does not count.
        "EXTERNAL" if external => Some(("", "")),
        other => return Err(Reply::new(ReplyCode::CommandInvalid, format_args!("unknown authentication mechanism '{other}'"))),
    }
    .ok_or_else(|| Reply::new(ReplyCode::SyntaxError, format_args!("invalid {} response", start_ok.mechanism)))?;
    Ok(Login { mechanism: start_ok.mechanism, user, password, client_properties: start_ok.client_properties })
}

/// `[authzid] NUL user NUL password` (RFC 4616); the authorisation id is not used.
fn plain(response: &[u8]) -> Option<(&str, &str)> {
    let mut parts = std::str::from_utf8(response).ok()?.splitn(3, '\0').skip(1);
    let pair = (parts.next()?, parts.next()?);
    (!pair.1.contains('\0')).then_some(pair)
}

/// The contents of a table with `LOGIN` and `PASSWORD`.
fn amqplain(response: &[u8]) -> Option<(&str, &str)> {
    let table = RawTable::check(response).ok()?;
    Some((table.get("LOGIN")?.as_str()?, table.get("PASSWORD")?.as_str()?))
}

/// A client may lower what was offered. "No limit" is above every limit.
pub(super) fn negotiate(offered: Tune, answer: &ConnectionTuneOk) -> Result<Tune, Reply> {
    let ConnectionTuneOk { channel_max, frame_max, heartbeat } = *answer;
    within("channel_max", channel_max.into(), 1, offered.channel_max.into())?;
    within("frame_max", frame_max, FRAME_BYTES_MIN, offered.frame_max)?;
    Ok(Tune { channel_max, frame_max, heartbeat })
}

fn within(name: &str, value: u32, min: u32, max: u32) -> Result<(), Reply> {
    let refuse = |detail: &str, relation: &str, kind: &str, bound: u32| {
        let text = format!("negotiated {name} = {value}{detail} is {relation} than the {kind} allowed value ({bound})");
        Err(Reply::new(ReplyCode::NotAllowed, text))
    };
    match value {
        0 => refuse(" (no limit)", "higher", "maximum", max),
        low if low < min => refuse("", "lower", "minimum", min),
        high if high > max => refuse("", "higher", "maximum", max),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sasl_responses_are_read_or_refused() {
        assert_eq!(plain(b"\0guest\0guest"), Some(("guest", "guest")));
        assert_eq!(plain(b"admin\0ann\0p\xc3\xa4ss"), Some(("ann", "päss")));
        assert_eq!(plain(b"\0guest\0"), Some(("guest", "")));
        for bad in [&b"guest"[..], b"\0guest", b"", b"\0a\0b\0c", b"\0\xff\0x"] {
            assert_eq!(plain(bad), None, "{bad:?}");
        }
        let table = table::encoded(&Table::new().with("LOGIN", Field::text("ann")).with("PASSWORD", Field::text("x")));
        assert_eq!(amqplain(&table), Some(("ann", "x")));
        assert_eq!(amqplain(&table[..table.len() - 1]), None);
    }

    #[test]
    fn no_limit_and_too_much_are_refused_with_the_bound() {
        let offered = Tune { channel_max: 2047, frame_max: 131_072, heartbeat: 60 };
        let text = |channel_max, frame_max| {
            negotiate(offered, &ConnectionTuneOk { channel_max, frame_max, heartbeat: 0 }).map_err(|reply| reply.to_string())
        };
        assert_eq!(text(5, 4096), Ok(Tune { channel_max: 5, frame_max: 4096, heartbeat: 0 }));
        assert_eq!(
            text(0, 131_072),
            Err("530 NOT_ALLOWED - negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"
                .to_owned())
        );
        assert!(text(2047, 0).unwrap_err().contains("frame_max = 0 (no limit)"));
        assert!(text(2047, 4095).unwrap_err().contains("lower than the minimum allowed value (4096)"));
        assert!(text(2048, 4096).unwrap_err().contains("channel_max = 2048 is higher"));
    }
}
