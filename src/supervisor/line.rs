//! What a line of output means: its severity, and, where a service logs JSON, its message, fields and trace. Pure; every guess
//! here only decides how a line is shown, never whether it is kept.

use crate::model::signal::{Attributes, Severity, SpanId, TraceId, Value};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// `None` when nothing in the line says.
    pub severity: Option<Severity>,
    pub body: Value,
    pub attributes: Attributes,
    pub trace_id: Option<TraceId>,
    pub span_id: Option<SpanId>,
}

/// Reads one line without its colours; see [`without_ansi`].
pub fn read(line: &str) -> Reading {
    if line.starts_with('{')
        && let Ok(serde_json::Value::Object(fields)) = serde_json::from_str(line)
    {
        return read_json(line, fields);
    }
    Reading {
        severity: severity_of_text(line),
        body: Value::from(line),
        attributes: Attributes::new(),
        trace_id: hex_after(line, &["trace_id=", "traceid=", "traceId="]).and_then(TraceId::parse),
        span_id: hex_after(line, &["span_id=", "spanid=", "spanId="]).and_then(SpanId::parse),
    }
}

/// The names loggers use: zerolog, zap, slog, pino, winston, bunyan, structlog, python-json-logger, Serilog, logback, log4j.
fn read_json(line: &str, fields: serde_json::Map<String, serde_json::Value>) -> Reading {
    let mut reading = Reading { severity: None, body: Value::Null, attributes: Attributes::new(), trace_id: None, span_id: None };
    for (name, value) in fields {
        let text = value.as_str();
        match name.as_str() {
            "level" | "severity" | "lvl" | "levelname" | "log.level" | "@l" | "severity_text" if reading.severity.is_none() => {
                reading.severity = severity_of_value(&value);
                if reading.severity.is_none() {
                    reading.attributes.push((name.into(), to_value(value)));
                }
            }
            "msg" | "message" | "event" | "@m" | "body" if reading.body == Value::Null => reading.body = to_value(value),
            "trace_id" | "traceId" | "traceid" | "trace.id" | "otelTraceID" if text.and_then(TraceId::parse).is_some() => {
                reading.trace_id = text.and_then(TraceId::parse);
            }
            "span_id" | "spanId" | "spanid" | "span.id" | "otelSpanID" if text.and_then(SpanId::parse).is_some() => {
                reading.span_id = text.and_then(SpanId::parse);
            }
            _ => reading.attributes.push((Cow::Owned(name), to_value(value))),
        }
    }
    if reading.body == Value::Null {
        reading.body = Value::from(line);
    }
    reading
}

fn to_value(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(value) => Value::Bool(value),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(integer) => Value::Int(integer),
            None => Value::Double(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(items) => Value::Array(items.into_iter().map(to_value).collect()),
        serde_json::Value::Object(fields) => {
            Value::Map(fields.into_iter().map(|(name, value)| (Cow::Owned(name), to_value(value))).collect())
        }
    }
}

/// A level by name, or pino's and bunyan's number.
fn severity_of_value(value: &serde_json::Value) -> Option<Severity> {
    if let Some(number) = value.as_u64() {
        return Some(match number {
            0..=10 => Severity::TRACE,
            11..=20 => Severity::DEBUG,
            21..=30 => Severity::INFO,
            31..=40 => Severity::WARN,
            41..=50 => Severity::ERROR,
            _ => Severity::FATAL,
        });
    }
    severity_of_word(value.as_str()?)
}

fn severity_of_word(word: &str) -> Option<Severity> {
    const WORDS: &[(&str, Severity)] = &[
        ("trace", Severity::TRACE),
        ("verbose", Severity::TRACE),
        ("trc", Severity::TRACE),
        ("debug", Severity::DEBUG),
        ("dbg", Severity::DEBUG),
        ("info", Severity::INFO),
        ("inf", Severity::INFO),
        ("information", Severity::INFO),
        ("notice", Severity::INFO),
        ("warn", Severity::WARN),
        ("wrn", Severity::WARN),
        ("warning", Severity::WARN),
        ("error", Severity::ERROR),
        ("err", Severity::ERROR),
        ("severe", Severity::ERROR),
        ("fatal", Severity::FATAL),
        ("ftl", Severity::FATAL),
        ("critical", Severity::FATAL),
        ("crit", Severity::FATAL),
        ("alert", Severity::FATAL),
        ("emergency", Severity::FATAL),
        ("panic", Severity::FATAL),
    ];
    WORDS.iter().find(|(known, _)| word.eq_ignore_ascii_case(known)).map(|(_, severity)| *severity)
}

/// Levels stand early in a line; further in, such words are prose.
const LEVEL_WITHIN: usize = 120;

fn severity_of_text(line: &str) -> Option<Severity> {
    let head = &line[..line.floor_char_boundary(LEVEL_WITHIN)];
    if let Some(at) = head.find("level=") {
        let word = head[at + 6..].trim_start_matches('"');
        let ends = word.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(word.len());
        if let Some(severity) = severity_of_word(&word[..ends]) {
            return Some(severity);
        }
    }
    severity_of_first_level(head).or_else(|| severity_of_trouble(line))
}

/// The first word that is a level as loggers write it: in capitals, or in brackets, or first and before a colon.
fn severity_of_first_level(head: &str) -> Option<Severity> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let mut rest = head;
    let mut before = None;
    while let Some(start) = rest.find(is_word) {
        let word_on = &rest[start..];
        let length = word_on.find(|c: char| !is_word(c)).unwrap_or(word_on.len());
        let (word, after) = word_on.split_at(length);
        before = rest[..start].chars().next_back().or(before);
        let capitals = word.bytes().all(|byte| byte.is_ascii_uppercase());
        let bracketed = before == Some('[') && after.starts_with(']');
        let leads = head.len() - rest.len() + start == 0 && after.starts_with(':');
        if (capitals || bracketed || leads)
            && let Some(severity) = severity_of_word(word)
        {
            return Some(severity);
        }
        before = word.chars().next_back();
        rest = after;
    }
    None
}

/// How runtimes announce that something broke, without a logger.
fn severity_of_trouble(line: &str) -> Option<Severity> {
    let panics = line.starts_with("panic: ") || (line.starts_with("thread '") && line.contains("panicked at"));
    if panics {
        return Some(Severity::FATAL);
    }
    let announces =
        ["Traceback (most recent call last)", "Unhandled exception", "Uncaught ", "Exception in thread", "Caused by:"];
    let names_error = line.split_once(':').is_some_and(|(name, _)| {
        let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
        plain && (name.ends_with("Error") || name.ends_with("Exception"))
    });
    (names_error || announces.iter().any(|start| line.starts_with(start))).then_some(Severity::ERROR)
}

fn hex_after<'a>(line: &'a str, names: &[&str]) -> Option<&'a str> {
    let start = names.iter().find_map(|name| line.find(name).map(|at| at + name.len()))?;
    let rest = line[start..].trim_start_matches('"');
    let ends = rest.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(rest.len());
    Some(&rest[..ends])
}

/// The text a terminal would show: escape sequences removed (ECMA-48 CSI and OSC), and of a line drawn over and over with
/// carriage returns only the last drawing.
pub fn without_ansi(line: &str) -> Cow<'_, str> {
    let line = line.trim_end_matches('\r');
    let line = line.rsplit_once('\r').map_or(line, |(_, last)| last);
    if !line.contains('\x1b') {
        return Cow::Borrowed(line);
    }
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\x1b') {
        out.push_str(&rest[..at]);
        rest = after_escape(&rest[at + 1..]);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// What follows the escape sequence whose ESC was just taken.
fn after_escape(rest: &str) -> &str {
    let mut chars = rest.chars();
    match chars.next() {
        // CSI: parameters and intermediates up to a final byte.
        Some('[') => match chars.as_str().find(|c: char| ('\x40'..='\x7e').contains(&c)) {
            Some(at) => &chars.as_str()[at + 1..],
            None => "",
        },
        // OSC: up to BEL or ESC \.
        Some(']') => match chars.as_str().find(['\x07', '\x1b']) {
            Some(at) => {
                let tail = &chars.as_str()[at + 1..];
                tail.strip_prefix('\\').unwrap_or(tail)
            }
            None => "",
        },
        Some(_) => chars.as_str(),
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severity(line: &str) -> &'static str {
        read(line).severity.map_or("none", Severity::text)
    }

    #[test]
    fn levels_are_found_where_loggers_write_them() {
        for (line, expected) in [
            ("2026-11-30 12:00:01,200 WARNING greeter: slow", "warn"),
            ("INFO:     Started server process [12]", "info"),
            ("[error] could not connect", "error"),
            ("time=12:00 level=debug msg=\"x\"", "debug"),
            ("level=\"error\" msg=x", "error"),
            ("warning: unused variable", "warn"),
            ("2026-11-30T12:00:00Z ERROR db: lost", "error"),
            ("[12:00:00 INF] hello", "info"),
            ("CRITICAL out of disk", "fatal"),
            ("Traceback (most recent call last):", "error"),
            ("ValueError: bad number", "error"),
            ("java.lang.IllegalStateException: no", "error"),
            ("panic: runtime error: index out of range", "fatal"),
            ("thread 'main' panicked at src/main.rs:1:1:", "fatal"),
            ("listening on 8080", "none"),
            ("there was no error at all", "none"),
            ("the ERRORS table", "none"),
            ("", "none"),
            ("é ERROR ü", "error"),
        ] {
            assert_eq!(severity(line), expected, "{line}");
        }
    }

    #[test]
    fn a_json_line_gives_message_fields_and_trace() {
        let reading = read(
            r#"{"level":"warn","msg":"slow","ms":812,"ok":true,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","span_id":"00f067aa0ba902b7"}"#,
        );
        assert_eq!(reading.severity, Some(Severity::WARN));
        assert_eq!(reading.body, Value::from("slow"));
        assert_eq!(reading.trace_id.expect("given").to_string(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert!(reading.span_id.is_some());
        let mut attributes = reading.attributes;
        attributes.sort_by(|a, b| a.0.cmp(&b.0));
        assert_eq!(attributes, [("ms".into(), Value::Int(812)), ("ok".into(), Value::Bool(true))]);
        assert_eq!(severity(r#"{"level":50,"msg":"pino"}"#), "error");
        assert_eq!(severity(r#"{"severity":"INFO","message":"x"}"#), "info");
    }

    #[test]
    fn json_that_is_no_log_line_is_kept_whole() {
        let line = r#"{"answer":42}"#;
        assert_eq!(read(line).body, Value::from(line));
        assert_eq!(read("{not json").body, Value::from("{not json"));
        let odd = read(r#"{"level":"lukewarm","msg":"x","trace_id":"nonsense"}"#);
        assert_eq!(odd.severity, None);
        assert_eq!(odd.attributes.len(), 2, "what could not be read is not lost");
    }

    #[test]
    fn a_plain_line_may_name_its_trace() {
        let reading = read("INFO [trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7] placed");
        assert!(reading.trace_id.is_some() && reading.span_id.is_some());
        assert_eq!(read("trace_id=0 x").trace_id, None);
    }

    #[test]
    fn colours_and_progress_bars_are_taken_out() {
        assert_eq!(without_ansi("\x1b[1;31mred\x1b[0m plain"), "red plain");
        assert_eq!(without_ansi("\x1b]8;;http://x\x1b\\link\x1b]8;;\x07!"), "link!");
        assert_eq!(without_ansi("10 %\r50 %\r100 %\r"), "100 %");
        assert_eq!(without_ansi("cut \x1b["), "cut ");
        assert_eq!(without_ansi("plain"), "plain");
    }

    proptest::proptest! {
        #[test]
        fn no_line_can_break_the_reader(line in ".*") {
            let plain = without_ansi(&line);
            read(&plain);
        }
    }
}
