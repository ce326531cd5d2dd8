//! `reactor status`: what runs, how it is, how much it does.

use super::print::{self, Cell, Colour};
use super::remote::{Live, Remote};
use crate::kernel::counted;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const HEADINGS: [&str; 8] = ["SERVICE", "STATE", "INSTANCES", "REQ/S", "ERRORS", "P95", "ROUTE", "WHY"];
const CLEAR: &str = "\x1b[H\x1b[J";

/// How to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    Table,
    Json,
}

pub async fn run(remote: &Remote, show: Show) -> anyhow::Result<()> {
    let overview: Value = remote.get("/api/v1/overview").await?;
    let services: Value = remote.get("/api/v1/services").await?;
    match show {
        Show::Json => print::line(&json!({ "overview": overview, "services": services }).to_string()),
        Show::Table => {
            let services: Vec<&Value> = services.as_array().into_iter().flatten().collect();
            print::raw(&page(&remote.authority, &overview, &services, unix_us(), print::colours()));
        }
    }
    Ok(())
}

/// Follows the live feed and shows the page anew whenever something changed, until the feed ends.
pub async fn watch(remote: &Remote) -> anyhow::Result<()> {
    let mut live = remote.live().await?;
    for (id, channel) in [(1, "overview"), (2, "services")] {
        live.send(&json!({ "op": "subscribe", "id": id, "channel": channel })).await?;
    }
    let (mut overview, mut services) = (BTreeMap::new(), BTreeMap::new());
    while let Some(frame) = live.next().await? {
        let Some(state) = (match frame["id"].as_u64() {
            Some(1) => Some(&mut overview),
            Some(2) => Some(&mut services),
            _ => None,
        }) else {
            continue;
        };
        if !take(&mut live, &frame, state).await? || overview.is_empty() || services.is_empty() {
            continue;
        }
        let whole = Value::Object(overview.iter().map(|(key, value): (&String, &Value)| (key.clone(), value.clone())).collect());
        let page = page(&remote.authority, &whole, &services.values().collect::<Vec<_>>(), unix_us(), print::colours());
        let shown = if print::is_terminal() { print::raw(&format!("{CLEAR}{page}")) } else { print::raw(&format!("{page}\n")) };
        if !shown {
            return Ok(());
        }
    }
    print::error("the live feed has ended: reactor has stopped");
    Ok(())
}

/// Takes a state frame in and acknowledges it; false for other frames.
async fn take(live: &mut Live, frame: &Value, state: &mut BTreeMap<String, Value>) -> anyhow::Result<bool> {
    if frame["kind"] != "state" {
        if frame["kind"] == "refused" {
            anyhow::bail!("the live feed refused: {}", frame["problem"]["detail"].as_str().unwrap_or("no reason given"));
        }
        return Ok(false);
    }
    if frame["full"] == true {
        state.clear();
    }
    for (key, value) in frame["set"].as_object().into_iter().flatten() {
        state.insert(key.clone(), value.clone());
    }
    for key in frame["gone"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        state.remove(key);
    }
    live.acknowledge(frame).await?;
    Ok(true)
}

fn page(authority: &str, overview: &Value, services: &[&Value], now_us: u64, colours: bool) -> String {
    let count = |key: &str| overview[key].as_u64().unwrap_or(0);
    let up = now_us.saturating_sub(count("started_us")) / 1_000_000;
    let mut out = format!(
        "reactor {} at http://{authority}, up {}, {} MiB, {:.0} % of a core\n\n",
        overview["version"].as_str().unwrap_or("?"),
        duration(up),
        count("memory_bytes") >> 20,
        overview["cpu_share"].as_f64().unwrap_or(0.0) * 100.0
    );
    let rows: Vec<Vec<Cell>> = services.iter().map(|service| row(service)).collect();
    out.push_str(&print::table(&HEADINGS, &rows, colours));
    let storage = if overview["message_storage"] == "memory" { "messages in memory, not on disk" } else { "messages on disk" };
    let (queues, connections) = (counted(count("queues"), "queue"), counted(count("connections"), "connection"));
    out.push_str(&format!("\n{queues}, {connections}, {storage}\n"));
    out
}

fn row(service: &Value) -> Vec<Cell> {
    let text = |key: &str| service[key].as_str().unwrap_or_default().to_owned();
    let instances = service["instances"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ready = instances.iter().filter(|instance| instance["state"] == "ready").count();
    let state = text("state");
    let colour = match state.as_str() {
        "ready" => Colour::Green,
        "failing" | "degraded" => Colour::Red,
        _ => Colour::Yellow,
    };
    let number = |value: &Value, shown: &dyn Fn(f64) -> String| value.as_f64().map_or_else(|| "-".to_owned(), shown);
    let name = if service["space"] == "/" { text("name") } else { format!("{} ({})", text("name"), text("space")) };
    vec![
        Cell::new(name),
        Cell::new(state).colour(colour),
        Cell::new(if instances.is_empty() { "-".to_owned() } else { format!("{ready}/{}", instances.len()) }),
        Cell::new(number(&service["rate"], &|rate| format!("{rate:.1}"))),
        Cell::new(number(&service["error_share"], &|share| format!("{:.1} %", share * 100.0))),
        Cell::new(number(&service["p95_ns"], &|ns| format!("{:.1} ms", ns / 1e6))),
        Cell::new(service["route"].as_str().unwrap_or("-")),
        Cell::new(text("reason")).colour(Colour::Dim),
    ]
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3_600),
    }
}

fn unix_us() -> u64 {
    crate::kernel::Clock::system().unix_nanos() / 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_shows_every_service_in_one_line() {
        let overview = json!({ "version": "0.1.0", "started_us": 1_000_000, "memory_bytes": 47_185_920, "cpu_share": 0.02,
            "message_storage": "memory", "queues": 4, "connections": 1 });
        let gateway = json!({ "space": "/", "name": "gateway", "state": "ready", "reason": "", "route": null, "rate": 12.25,
            "error_share": 0.0, "p95_ns": 2_100_000, "instances": [{ "state": "ready" }] });
        let orders = json!({ "space": "/", "name": "orders", "state": "failing", "reason": "exited 1; starts again in 4 s",
            "route": "/orders", "rate": null, "error_share": null, "p95_ns": null, "instances": [{ "state": "failing" }] });
        let page = page("localhost:15000", &overview, &[&gateway, &orders], 193_000_000, false);
        assert_eq!(
            page,
            "reactor 0.1.0 at http://localhost:15000, up 3 min 12 s, 45 MiB, 2 % of a core\n\n\
             SERVICE  STATE    INSTANCES  REQ/S  ERRORS  P95     ROUTE    WHY\n\
             gateway  ready    1/1        12.2   0.0 %   2.1 ms  -\n\
             orders   failing  0/1        -      -       -       /orders  exited 1; starts again in 4 s\n\n\
             4 queues, 1 connection, messages in memory, not on disk\n"
        );
    }
}
