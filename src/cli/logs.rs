//! `reactor logs`: log records of services, of their output and of reactor itself.

use super::print::{self, Cell, Colour};
use super::remote::Remote;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

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
    for row in page["rows"].as_array().into_iter().flatten() {
        if !show(row, wish.json) {
            break;
        }
    }
    Ok(())
}

/// Follows until the feed or the reader ends. What could not be followed is said with its exact count.
pub async fn follow(remote: &Remote, wish: &Wish) -> anyhow::Result<()> {
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

fn tell_gap(frame: &Value) {
    let count = |key: &str| frame[key].as_u64().unwrap_or(0);
    if count("skipped") > 0 {
        print::error(&format!("… {} records came faster than they could be shown; they are kept", count("skipped")));
    }
    if count("evicted") > 0 {
        print::error(&format!("… {} records were evicted before they could be shown", count("evicted")));
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
        "{}  {}  {}  {}\n",
        Cell::new(time(row["at_us"].as_u64().unwrap_or(0))).colour(Colour::Dim).render(0, colours),
        Cell::new(text("level").to_uppercase()).colour(colour).render(5, colours),
        Cell::new(who).render(12, colours),
        body
    )
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
    fn a_service_narrows_the_query() {
        let wish = Wish { service: Some("orders".into()), query: "severity>=warn".into(), ..Wish::default() };
        assert_eq!(wish.query(), "service:orders severity>=warn");
    }
}
