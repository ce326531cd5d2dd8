//! The one table of settings: path, kind, default and meaning. The file, the environment, `reactor check`, the annotated
//! `assets/reactor.toml` and its test all follow from it. Adding a setting is adding a row here and a line in `resolve`.

use crate::kernel::size;
use crate::model::config::{PortName, PortSetting};
use std::net::IpAddr;
use std::time::Duration;

/// One row: where it stands, what it takes, what it is when nobody says.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// `limits.handshake`: section and key, as in the file.
    pub path: &'static str,
    pub kind: Kind,
    /// As it would be written in the environment.
    pub default: &'static str,
    pub help: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Text,
    Flag,
    Port,
    Bind,
    /// A whole number within bounds, both included.
    Count(u64, u64),
    /// `16MiB`, within bounds.
    Bytes(u64, u64),
    /// `30s`, at most this many seconds.
    Duration(u64),
    Choice(&'static [&'static str]),
}

/// A value as it came: typed by TOML, or bare text from the environment and flags.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    Text(String),
    Integer(i64),
    Bool(bool),
    List(Vec<String>),
    /// A TOML type no setting takes, by name.
    Other(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    Text(String),
    Flag(bool),
    Port(PortSetting),
    Addresses(Option<Vec<IpAddr>>),
    Number(u64),
    Duration(Duration),
}

const fn row(path: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Setting {
    Setting { path, kind, default, help }
}

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Every setting, in the order of the annotated file.
pub const SETTINGS: &[Setting] = &[
    row("bind", Kind::Bind, "localhost", "addresses to listen on: \"localhost\", \"all\", or a list of addresses"),
    row("port_offset", Kind::Count(0, 50_000), "0", "added to every fixed port"),
    row("ports.http", Kind::Port, "80", "gateway, HTTP/1.1 and h2c"),
    row("ports.https", Kind::Port, "443", "gateway over TLS"),
    row("ports.ingress", Kind::Port, "16000", "gateway again, needs no privilege"),
    row("ports.control", Kind::Port, "15000", "dashboard, REST API, live feed"),
    row("ports.bus", Kind::Port, "15010", "AMQP and OTLP on one port"),
    row("ports.amqp", Kind::Port, "5672", "AMQP 0-9-1"),
    row("ports.amqps", Kind::Port, "5671", "AMQP 0-9-1 over TLS"),
    row("ports.stream", Kind::Port, "5552", "reserved for the RabbitMQ stream protocol"),
    row("ports.stream_tls", Kind::Port, "5551", "reserved for the RabbitMQ stream protocol over TLS"),
    row("ports.management", Kind::Port, "15672", "RabbitMQ management API"),
    row("ports.prometheus", Kind::Port, "15692", "metrics for Prometheus, with RabbitMQ's names"),
    row("ports.otlp_grpc", Kind::Port, "4317", "OpenTelemetry in, gRPC"),
    row("ports.otlp_http", Kind::Port, "4318", "OpenTelemetry in, HTTP"),
    row("ports.redis", Kind::Port, "6379", "reserved for RESP"),
    row("data.dir", Kind::Text, "", "where things are kept; empty: the user's data directory"),
    row("data.ephemeral", Kind::Flag, "false", "keep nothing between runs"),
    row(
        "auth.mode",
        Kind::Choice(&["dev", "required"]),
        "dev",
        "\"dev\": no login from this machine; \"required\": accounts or the token everywhere",
    ),
    row("auth.token", Kind::Text, "", "control token; empty: a new one at each start"),
    row("auth.loopback_users", Kind::Text, "guest", "users that only this machine may log in as, with commas between"),
    row(
        "auth.client_certificates",
        Kind::Choice(&["none", "optional", "required"]),
        "none",
        "certificates of clients on amqps: not asked for, checked when shown, or demanded",
    ),
    row("auth.client_authorities", Kind::Text, "", "PEM file of the authorities that sign clients' certificates"),
    row(
        "auth.certificate_login",
        Kind::Choice(&["distinguished_name", "common_name"]),
        "distinguished_name",
        "what of a client's certificate is its user (SASL EXTERNAL)",
    ),
    row("proxy.ports", Kind::Text, "", "ports that take a PROXY header (amqp, amqps, bus, …), with commas between"),
    row("proxy.trusted", Kind::Text, "", "load balancers whose PROXY headers count: addresses and networks, with commas between"),
    row("limits.connections_max", Kind::Count(1, 10_000_000), "65536", "open sockets over all ports; further ones are closed"),
    row("limits.handshake", Kind::Duration(600), "10s", "time a peer has to finish its protocol handshake"),
    row("limits.drain", Kind::Duration(3_600), "10s", "time work in flight has to finish at shutdown"),
    row("limits.amqp_frame_bytes_max", Kind::Bytes(4_096, 16 * MIB), "128KiB", "largest AMQP frame, offered in connection.tune"),
    row("limits.amqp_channels_max", Kind::Count(1, 65_535), "2047", "channels per AMQP connection"),
    row("limits.amqp_heartbeat", Kind::Duration(3_600), "60s", "AMQP heartbeat offered; 0s offers none"),
    row("limits.message_bytes_max", Kind::Bytes(1, 512 * MIB), "128MiB", "largest AMQP message body"),
    row("limits.queue_bytes_max", Kind::Bytes(MIB, 1_024 * GIB), "1GiB", "messages in all queues; publishers wait beyond"),
    row("limits.consumer_timeout", Kind::Duration(2_592_000), "1800s", "time a consumer may keep a delivery unacked; then 406"),
    row("limits.call_body_bytes_max", Kind::Bytes(1, GIB), "16MiB", "body of one call through the gateway; 413 beyond"),
    row("limits.call_bodies_bytes_max", Kind::Bytes(1, 64 * GIB), "256MiB", "bodies of all calls in flight; 503 beyond"),
    row("gateway.call_timeout", Kind::Duration(86_400), "30s", "time a caller waits for the first reply; 504 beyond"),
    row("gateway.hold_ms", Kind::Count(0, 60_000), "2000", "how long a call waits for a service that has just left"),
    row("gateway.tls_certificate", Kind::Text, "", "PEM certificate chain; empty: a self-signed one is made"),
    row("gateway.tls_key", Kind::Text, "", "PEM private key of the certificate"),
    row("telemetry.spans_bytes_max", Kind::Bytes(MIB, 64 * GIB), "256MiB", "memory for spans; the oldest go first"),
    row("telemetry.logs_bytes_max", Kind::Bytes(MIB, 64 * GIB), "128MiB", "memory for log records"),
    row("telemetry.metrics_bytes_max", Kind::Bytes(MIB, 64 * GIB), "64MiB", "memory for metric points"),
    row(
        "telemetry.spans_per_second_max",
        Kind::Count(0, 10_000_000),
        "5000",
        "own spans a second above which whole traces are sampled",
    ),
    row("telemetry.infer_parents", Kind::Flag, "true", "join the traces of programs that send no traceparent"),
    row("log.format", Kind::Choice(&["text", "json"]), "text", "reactor's own log lines on stderr"),
    row("log.filter", Kind::Text, "info", "which of them: \"info\", \"debug\", \"reactor::broker=trace,info\""),
    row(
        "log.trace",
        Kind::Choice(&["off", "amqp"]),
        "off",
        "a protocol whose every frame is logged as one line; also REACTOR_TRACE",
    ),
];

impl Setting {
    pub fn find(path: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.path == path)
    }

    /// `REACTOR_LIMITS_HANDSHAKE`.
    pub fn variable(&self) -> String {
        format!("REACTOR_{}", self.path.to_ascii_uppercase().replace('.', "_"))
    }

    /// Reads a value of this setting's kind; the error says what it takes.
    pub fn read(&self, raw: &Raw) -> Result<Parsed, String> {
        let wrong = || Err(format!("must be {}, not {}", self.kind.takes(), raw.shown()));
        match (self.kind, raw) {
            (Kind::Text, Raw::Text(text)) => Ok(Parsed::Text(text.clone())),
            (Kind::Choice(choices), Raw::Text(text)) if choices.contains(&text.as_str()) => Ok(Parsed::Text(text.clone())),
            (Kind::Flag, Raw::Bool(flag)) => Ok(Parsed::Flag(*flag)),
            (Kind::Flag, Raw::Text(text)) => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Ok(Parsed::Flag(true)),
                "false" | "0" | "no" | "off" => Ok(Parsed::Flag(false)),
                _ => wrong(),
            },
            (Kind::Port, Raw::Bool(false)) => Ok(Parsed::Port(PortSetting::Off)),
            (Kind::Port, Raw::Integer(_) | Raw::Text(_)) => read_port(raw).map_or_else(wrong, |port| Ok(Parsed::Port(port))),
            (Kind::Bind, Raw::Text(_) | Raw::List(_)) => read_bind(raw).map_or_else(wrong, |bind| Ok(Parsed::Addresses(bind))),
            (Kind::Count(low, high), _) => match number(raw) {
                Some(count) if (low..=high).contains(&count) => Ok(Parsed::Number(count)),
                _ => wrong(),
            },
            (Kind::Bytes(low, high), Raw::Text(text)) => match size::parse_bytes(text) {
                Some(bytes) if (low..=high).contains(&bytes) => Ok(Parsed::Number(bytes)),
                _ => wrong(),
            },
            (Kind::Bytes(low, high), Raw::Integer(_)) => match number(raw) {
                Some(bytes) if (low..=high).contains(&bytes) => Ok(Parsed::Number(bytes)),
                _ => wrong(),
            },
            (Kind::Duration(high), Raw::Text(text)) => match size::parse_duration(text) {
                Some(duration) if duration <= Duration::from_secs(high) => Ok(Parsed::Duration(duration)),
                _ => wrong(),
            },
            _ => wrong(),
        }
    }

    /// The value when nobody says anything.
    pub fn default_value(&self) -> Parsed {
        self.read(&Raw::Text(self.default.to_owned())).expect("a default is a value of its own setting; tested")
    }
}

fn number(raw: &Raw) -> Option<u64> {
    match raw {
        Raw::Integer(number) => u64::try_from(*number).ok(),
        Raw::Text(text) => text.trim().parse().ok(),
        Raw::Bool(_) | Raw::List(_) | Raw::Other(_) => None,
    }
}

fn read_port(raw: &Raw) -> Option<PortSetting> {
    if let Raw::Text(text) = raw
        && matches!(text.to_ascii_lowercase().as_str(), "false" | "off" | "no")
    {
        return Some(PortSetting::Off);
    }
    match number(raw)? {
        0 => Some(PortSetting::Ephemeral),
        port => u16::try_from(port).ok().map(PortSetting::Fixed),
    }
}

/// `Some(None)` is localhost; an unspecified address list stands for every interface.
fn read_bind(raw: &Raw) -> Option<Option<Vec<IpAddr>>> {
    let words: Vec<&str> = match raw {
        Raw::Text(text) => text.split(',').map(str::trim).filter(|word| !word.is_empty()).collect(),
        Raw::List(words) => words.iter().map(String::as_str).collect(),
        Raw::Integer(_) | Raw::Bool(_) | Raw::Other(_) => return None,
    };
    match words.as_slice() {
        [] => None,
        ["localhost"] => Some(None),
        ["all" | "*"] => Some(Some(Vec::new())),
        words => words.iter().map(|word| word.trim_matches(['[', ']']).parse().ok()).collect::<Option<Vec<IpAddr>>>().map(Some),
    }
}

impl Kind {
    /// What the setting takes, for people.
    pub fn takes(self) -> String {
        match self {
            Kind::Text => "text in quotes".into(),
            Kind::Flag => "true or false".into(),
            Kind::Port => "a port (1 to 65535), 0 for any free one, or false for off".into(),
            Kind::Bind => "\"localhost\", \"all\", an address, or a list of addresses".into(),
            Kind::Count(low, high) => format!("a whole number from {low} to {high}"),
            Kind::Bytes(low, high) => format!("a size such as \"16MiB\", from {} to {}", shown_bytes(low), shown_bytes(high)),
            Kind::Duration(high) => format!("a duration such as \"500ms\", \"30s\" or \"5m\", at most {high}s"),
            Kind::Choice(choices) => choices.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(" or "),
        }
    }
}

impl Raw {
    pub fn shown(&self) -> String {
        match self {
            Raw::Text(text) => format!("\"{text}\""),
            Raw::Integer(number) => number.to_string(),
            Raw::Bool(flag) => flag.to_string(),
            Raw::List(words) => format!("{words:?}"),
            Raw::Other(kind) => (*kind).to_owned(),
        }
    }
}

/// `16MiB` rather than 16777216, where it is exact.
pub fn shown_bytes(bytes: u64) -> String {
    for (unit, factor) in [("GiB", GIB), ("MiB", MIB), ("KiB", 1_024)] {
        if bytes >= factor && bytes.is_multiple_of(factor) {
            return format!("{}{unit}", bytes / factor);
        }
    }
    format!("{bytes} bytes")
}

/// The setting that moves a port.
pub fn port_path(name: PortName) -> String {
    format!("ports.{}", name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_own_setting() {
        for setting in SETTINGS {
            assert!(setting.read(&Raw::Text(setting.default.into())).is_ok(), "{}", setting.path);
        }
    }

    #[test]
    fn every_port_name_has_its_row_with_its_default() {
        for name in PortName::ALL {
            let setting = Setting::find(&port_path(name)).expect("a row");
            assert_eq!(setting.default_value(), Parsed::Port(PortSetting::Fixed(name.default_port())));
        }
    }

    #[test]
    fn variables_are_unique() {
        let mut variables: Vec<_> = SETTINGS.iter().map(Setting::variable).collect();
        variables.sort();
        variables.dedup();
        assert_eq!(variables.len(), SETTINGS.len());
    }

    /// `section.key` and default of every setting line of the annotated file, commented out or not.
    fn annotated() -> Vec<(String, String)> {
        let (mut section, mut found) = (String::new(), Vec::new());
        for line in include_str!("../../../assets/reactor.toml").lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                section = format!("{name}.");
            }
            let line = line.trim_start_matches("# ");
            if let Some((key, rest)) = line.split_once(" = ")
                && key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
            {
                let value = rest.split(" #").next().unwrap_or(rest).trim();
                found.push((format!("{section}{key}"), value.trim_matches('"').to_owned()));
            }
        }
        found
    }

    #[test]
    fn the_annotated_file_shows_every_setting_with_its_default_and_nothing_else() {
        let annotated = annotated();
        for setting in SETTINGS {
            let shown = annotated.iter().find(|(path, _)| path == setting.path).map(|(_, value)| value.as_str());
            assert_eq!(shown, Some(setting.default), "{}", setting.path);
        }
        for (path, _) in annotated.iter().filter(|(path, _)| !path.starts_with("services.")) {
            let is_definition =
                ["source", "queue", "routing_key", "arguments", "type"].iter().any(|key| path.ends_with(&format!(".{key}")));
            assert!(Setting::find(path).is_some() || is_definition, "{path} is no setting");
        }
    }

    #[test]
    fn a_wrong_value_is_told_what_the_setting_takes() {
        let setting = Setting::find("ports.amqp").expect("a row");
        assert_eq!(
            setting.read(&Raw::Integer(70_000)),
            Err("must be a port (1 to 65535), 0 for any free one, or false for off, not 70000".into())
        );
        assert_eq!(setting.read(&Raw::Bool(false)), Ok(Parsed::Port(PortSetting::Off)));
        assert_eq!(setting.read(&Raw::Text("0".into())), Ok(Parsed::Port(PortSetting::Ephemeral)));
        assert!(setting.read(&Raw::Bool(true)).is_err());
        let handshake = Setting::find("limits.handshake").expect("a row");
        assert!(handshake.read(&Raw::Integer(5)).unwrap_err().contains("a duration such as"));
    }
}
