//! The results as one page without scripts: a bar chart a workload, and the way a message takes.

use super::report::{Summary, figure_text};
use std::fmt::Write;

const STYLE: &str = "body{font:14px/1.5 system-ui,sans-serif;max-width:960px;margin:2rem auto;padding:0 1rem;color-scheme:light dark;\
background:light-dark(#fff,#14161a);color:light-dark(#1c2026,#e6e9ee)}h2{font-size:15px;margin:2rem 0 .25rem}\
p{margin:.25rem 0;color:light-dark(#5b6470,#9aa4b2)}svg text{font:12px system-ui,sans-serif;fill:currentColor}\
.bar{fill:#4f7cff}.bar.other{fill:#9aa4b2}.box{fill:none;stroke:currentColor}.arrow{stroke:currentColor;fill:none}";
const CHART_WIDTH: f64 = 900.0;
const LABEL_WIDTH: f64 = 170.0;
const VALUE_WIDTH: f64 = 250.0;
const BAR_HEIGHT: f64 = 22.0;

/// `results` are brokers with what was measured of each; the first is the one that is compared with the others.
pub fn page(results: &[(String, Vec<Summary>)]) -> String {
    let mut out = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Bench</title><style>{STYLE}</style><h1>Bench</h1>"
    );
    out.push_str(&path());
    let first = results.first().map(|(_, summaries)| summaries.as_slice()).unwrap_or_default();
    for summary in first {
        let of = |summaries: &'_ [Summary]| summaries.iter().find(|other| other.workload == summary.workload).cloned();
        let bars: Vec<(String, Summary)> =
            results.iter().filter_map(|(broker, summaries)| Some((broker.clone(), of(summaries)?))).collect();
        let _ = write!(out, "<h2>{} · {}</h2>", escape(summary.workload.id), escape(summary.workload.title));
        out.push_str(&chart(&bars));
    }
    out.push_str("</html>");
    out
}

fn chart(bars: &[(String, Summary)]) -> String {
    let value = |summary: &Summary| summary.figures.first().map_or(0.0, |figure| figure.spread.median);
    let greatest = bars.iter().map(|(_, summary)| value(summary)).fold(f64::MIN_POSITIVE, f64::max);
    let height = BAR_HEIGHT * bars.len() as f64 + 4.0;
    let mut out = format!("<svg viewBox=\"0 0 {CHART_WIDTH} {height}\" width=\"100%\" role=\"img\">");
    for (at, (broker, summary)) in bars.iter().enumerate() {
        let top = BAR_HEIGHT * at as f64 + 2.0;
        let width = (CHART_WIDTH - LABEL_WIDTH - VALUE_WIDTH) * value(summary) / greatest;
        let (class, text_at) = (if at == 0 { "bar" } else { "bar other" }, top + BAR_HEIGHT / 2.0 + 3.0);
        let figure = summary.figures.first().map(figure_text).unwrap_or_default();
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{text_at}\">{}</text><rect class=\"{class}\" x=\"{LABEL_WIDTH}\" y=\"{top}\" width=\"{width:.1}\" \
             height=\"{}\" rx=\"3\"/><text x=\"{:.1}\" y=\"{text_at}\">{}</text>",
            escape(broker),
            BAR_HEIGHT - 4.0,
            LABEL_WIDTH + width + 8.0,
            escape(&figure)
        );
    }
    out.push_str("</svg>");
    let rest: Vec<String> = bars
        .iter()
        .map(|(broker, summary)| {
            let cpu = summary.broker_us.map(|us| format!(", broker CPU {us:.2} µs a message")).unwrap_or_default();
            let figures: Vec<String> = summary.figures.iter().skip(1).map(figure_text).collect();
            let figures = if figures.is_empty() { String::new() } else { format!(", {}", figures.join(", ")) };
            format!("{broker}: lost {}, twice {}{cpu}{figures}", summary.lost, summary.duplicated)
        })
        .collect();
    let _ = write!(out, "<p>{}</p>", escape(&rest.join(" · ")));
    out
}

/// Publisher, exchange, queue and consumer, and what goes back.
fn path() -> String {
    let boxes = ["publisher", "exchange", "queue", "consumer"];
    let mut out = String::from("<svg viewBox=\"0 0 900 74\" width=\"100%\" role=\"img\" aria-label=\"the way of a message\">");
    for (at, name) in boxes.iter().enumerate() {
        let x = 10.0 + 230.0 * at as f64;
        let _ = write!(
            out,
            "<rect class=\"box\" x=\"{x}\" y=\"8\" width=\"130\" height=\"32\" rx=\"6\"/><text x=\"{}\" y=\"28\" text-anchor=\"middle\">{name}</text>",
            x + 65.0
        );
        if at + 1 < boxes.len() {
            let _ = write!(out, "<path class=\"arrow\" d=\"M{} 24h100m-6 -5l6 5l-6 5\"/>", x + 130.0);
        }
    }
    out.push_str(
        "<path class=\"arrow\" d=\"M305 40v18H75v-18m-5 6l5 -6l5 6\"/><text x=\"190\" y=\"72\" text-anchor=\"middle\">confirm</text>\
         <path class=\"arrow\" d=\"M765 40v18H535v-18m-5 6l5 -6l5 6\"/><text x=\"650\" y=\"72\" text-anchor=\"middle\">ack</text></svg>",
    );
    out
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::super::workload::{Figure, Row, Unit, Workload};
    use super::*;

    #[test]
    fn a_page_has_a_bar_for_each_broker_and_escapes_their_names() {
        let summary = |value| {
            let row = Row { figures: vec![Figure { name: "rate", unit: Unit::PerSecond, value }], ..Row::default() };
            Summary::of(Workload::find("W1").expect("W1"), &[row]).expect("a run")
        };
        let page = page(&[("ours <1>".into(), vec![summary(2e6)]), ("peer".into(), vec![summary(1e6)])]);
        assert!(page.contains("ours &lt;1&gt;") && page.contains("rate 2.00 M/s") && page.contains("rate 1.00 M/s"), "{page}");
        assert_eq!(page.matches("class=\"bar").count(), 2);
    }
}
