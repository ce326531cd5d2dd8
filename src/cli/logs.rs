//! `reactor logs`: log records of services, of their output and of reactor itself.

use super::print::{self, Cell, Colour};
use super::remote::Remote;
use crate::kernel::counted;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// reactor's own records; no service, but a name to ask for.
const ITSELF: &str = "reactor";
/// What tells of a request: the word shown, and the attributes it is taken from, OpenTelemetry's names among them.
const REQUEST: &[(&str, &[&str])] = &[
    ("method", &["method", "http.request.method", "http.method"]),
    ("path", &["path", "url.path", "http.target", "http.route"]),
    ("status", &["status", "http.response.status_code", "http.status_code"]),
    ("duration_ms", &["duration_ms"]),
    ("error", &["error", "exception.message"]),
];
const NOISE: &[&str] = &["code.", "thread.", "process.", "telemetry.", "log.", "exception.", "reactor."];
/// Facts shown beside one record at most.
const FACTS_MAX: usize = 8;
const FACT_BYTES_MAX: usize = 120;

/// Which records.
#[derive(Clone, Debug, Default)]
pub struct Wish {
    pub service: Option<String>,
    pub query: String,
    /// How many before the live end.
    pub lines: usize,
    pub json: bool,
}

impl Wish {
    /// In the query language of the dashboard.
    fn query(&self) -> String {
        match &self.service {
            Some(service) if self.query.is_empty() => format!("service:{service}"),
            Some(service) => format!("service:{service} {}", self.query),
            None => self.query.clone(),
        }
    }
}

pub async fn run(remote: &Remote, wish: &Wish) -> anyhow::Result<()> {
    let query = utf8_percent_encode(&wish.query(), NON_ALPHANUMERIC).to_string();
    let page: Value = remote.get(&format!("/api/v1/logs?query={query}&limit={}", wish.lines)).await?;
    let rows = page["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty()
        && let Some(stranger) = stranger(remote, wish).await?
    {
        anyhow::bail!("{stranger}");
    }
    for row in rows {
        if !show(row, wish.json) {
            break;
        }
    }
    Ok(())
}

/// Follows until the feed or the reader ends. What could not be followed is said with its exact count.
pub async fn follow(remote: &Remote, wish: &Wish) -> anyhow::Result<()> {
    if let Some(stranger) = stranger(remote, wish).await? {
        print::error(&format!("{stranger} Its records are shown once it is here."));
    }
    let mut live = remote.live().await?;
    let subscribe = json!({ "op": "subscribe", "id": 1, "channel": "logs", "query": wish.query(), "backfill": wish.lines });
    live.send(&subscribe).await?;
    while let Some(frame) = live.next().await? {
        match frame["kind"].as_str() {
            Some("rows") => {
                tell_gap(&frame);
                for row in frame["rows"].as_array().into_iter().flatten() {
                    if !show(row, wish.json) {
                        return Ok(());
                    }
                }
                live.acknowledge(&frame).await?;
            }
            Some("refused") => {
                anyhow::bail!("{}", frame["problem"]["detail"].as_str().unwrap_or("the live feed refused"));
            }
            _ => {}
        }
    }
    print::error("the live feed has ended: reactor has stopped");
    Ok(())
}

/// What to say where records of a service are wished that nobody knows.
async fn stranger(remote: &Remote, wish: &Wish) -> anyhow::Result<Option<String>> {
    let Some(name) = wish.service.as_deref().filter(|name| !name.contains('*')) else { return Ok(None) };
    let services: Value = remote.get("/api/v1/services").await?;
    let known = services.as_array().into_iter().flatten().filter_map(|service| service["name"].as_str());
    Ok(unknown(name, known))
}

fn unknown<'a>(name: &str, services: impl Iterator<Item = &'a str>) -> Option<String> {
    let known: BTreeSet<&str> = services.chain([ITSELF]).collect();
    let list = || known.iter().copied().collect::<Vec<_>>().join(", ");
    (!known.contains(name)).then(|| format!("no service '{name}' is known here; known are {}.", list()))
}

fn tell_gap(frame: &Value) {
    let count = |key: &str| frame[key].as_u64().filter(|count| *count > 0).map(|count| counted(count, "record"));
    if let Some(records) = count("skipped") {
        print::error(&format!("… {records} came faster than could be shown; kept"));
    }
    if let Some(records) = count("evicted") {
        print::error(&format!("… {records} evicted before being shown"));
    }
}

/// False when nobody reads any more.
fn show(row: &Value, json: bool) -> bool {
    if json { print::raw(&format!("{row}\n")) } else { print::raw(&line(row, print::colours())) }
}

fn line(row: &Value, colours: bool) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default();
    let colour = match text("level") {
        "error" | "fatal" => Colour::Red,
        "warn" => Colour::Yellow,
        "debug" | "trace" => Colour::Dim,
        _ => Colour::Plain,
    };
    let who = if text("instance").is_empty() { text("service") } else { text("instance") };
    let body = text("body").lines().map(print::clean).collect::<Vec<_>>().join("\n    ");
    format!(
        "{}  {}  {}  {}{}\n",
        Cell::new(time(row["at_us"].as_u64().unwrap_or(0))).colour(Colour::Dim).render(0, colours),
        Cell::new(text("level").to_uppercase()).colour(colour).render(5, colours),
        Cell::new(who).render(12, colours),
        body,
        Cell::new(facts(&row["attributes"])).colour(Colour::Dim).render(0, colours)
    )
}

/// What a record says besides its text, `  method=GET path=/orders status=502`: first what tells of a request, then what else fits.
fn facts(attributes: &Value) -> String {
    let of_request =
        REQUEST.iter().filter_map(|(short, names)| Some((*short, names.iter().find_map(|name| fact(&attributes[*name]))?)));
    let mut facts: Vec<(&str, String)> = of_request.collect();
    let is_shown = |name: &str| REQUEST.iter().any(|(_, names)| names.contains(&name));
    let rest = attributes.as_object().into_iter().flatten().filter(|(name, _)| !is_shown(name) && !is_noise(name));
    facts.extend(rest.filter_map(|(name, value)| Some((name.as_str(), fact(value)?))));
    facts.iter().take(FACTS_MAX).map(|(name, value)| format!("  {name}={value}")).collect()
}

/// A value that fits in a line; none for nothing and for lists.
fn fact(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) if text.is_empty() => return None,
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    let cut = text.floor_char_boundary(FACT_BYTES_MAX);
    let dots = if cut < text.len() { "…" } else { "" };
    Some(format!("{}{dots}", &text[..cut]))
}

/// Where in the program a record was written, and what ties it to a trace: for machines, `--json` has it.
fn is_noise(name: &str) -> bool {
    matches!(name, "trace_id" | "span_id" | "peer") || NOISE.iter().any(|prefix| name.starts_with(prefix))
}

/// Time of day in UTC.
fn time(at_us: u64) -> String {
    let (seconds, millis) = (at_us / 1_000_000 % 86_400, at_us / 1_000 % 1_000);
    format!("{:02}:{:02}:{:02}.{millis:03}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_with_time_level_and_instance() {
        let row = json!({ "at_us": 1_732_978_000_123_000_u64, "level": "warn", "service": "orders", "instance": "orders-1", "body": "slow\nvery" });
        assert_eq!(line(&row, false), "14:46:40.123Z  WARN   orders-1      slow\n    very\n");
    }

    #[test]
    fn a_failed_request_says_which_and_how_it_ended() {
        let attributes = json!({ "trace_id": "4bf9", "method": "GET", "path": "/orders/42", "status": 502, "duration_ms": 12,
            "peer": "127.0.0.1:5", "error": "connection refused", "order.id": 7, "code.lineno": 3,
            "reactor.space": "/", "tags": ["a"] });
        assert_eq!(
            facts(&attributes),
            "  method=GET  path=/orders/42  status=502  duration_ms=12  error=connection refused  order.id=7"
        );
        assert_eq!(
            facts(&json!({ "http.request.method": "PUT", "url.path": "/x", "http.route": "/{y}" })),
            "  method=PUT  path=/x"
        );
        assert_eq!(facts(&json!({})), "");
    }

    #[test]
    fn a_service_that_nobody_knows_is_said_with_those_that_are_known() {
        let said = unknown("nosuch", ["gateway", "orders"].into_iter());
        assert_eq!(said.as_deref(), Some("no service 'nosuch' is known here; known are gateway, orders, reactor."));
        assert_eq!(unknown("orders", ["orders"].into_iter()), None);
        assert_eq!(unknown("reactor", [].into_iter()), None);
    }

    #[test]
    fn a_service_narrows_the_query() {
        let wish = Wish { service: Some("orders".into()), query: "severity>=warn".into(), ..Wish::default() };
        assert_eq!(wish.query(), "service:orders severity>=warn");
    }
}
