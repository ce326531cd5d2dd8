//! Many runs become one line: the median of each figure, with the least and the greatest.

use super::workload::{Row, Unit, Workload};
use crate::cli::print::Cell;
use serde_json::{Value, json};

/// Median, least, greatest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Spread { median: *values.get(values.len() / 2)?, min: *values.first()?, max: *values.last()? })
    }
}

#[derive(Clone, Debug)]
pub struct Measured {
    pub name: &'static str,
    pub unit: Unit,
    pub spread: Spread,
}

/// All runs of one workload against one broker.
#[derive(Clone, Debug)]
pub struct Summary {
    pub workload: Workload,
    pub figures: Vec<Measured>,
    pub lost: u64,
    pub duplicated: u64,
    pub broker_us: Option<f64>,
    pub client_us: f64,
    pub client_cores: f64,
    pub resident_bytes: Option<u64>,
}

impl Summary {
    pub fn of(workload: Workload, runs: &[Row]) -> Option<Summary> {
        let first = runs.first()?;
        let measured = |at: usize| {
            let spread = Spread::of(runs.iter().filter_map(|run| run.figures.get(at)).map(|figure| figure.value))?;
            Some(Measured { name: first.figures[at].name, unit: first.figures[at].unit, spread })
        };
        let median = |value: fn(&Row) -> Option<f64>| Spread::of(runs.iter().filter_map(value)).map(|spread| spread.median);
        Some(Summary {
            workload,
            figures: (0..first.figures.len()).filter_map(measured).collect(),
            lost: runs.iter().map(|run| run.lost).sum(),
            duplicated: runs.iter().map(|run| run.duplicated).sum(),
            broker_us: median(|run| run.broker_us),
            client_us: median(|run| Some(run.client_us)).unwrap_or(0.0),
            client_cores: median(|run| Some(run.client_cores)).unwrap_or(0.0),
            resident_bytes: runs.iter().filter_map(|run| run.resident_bytes).max(),
        })
    }

    /// How many times better the first figure is than a peer's.
    pub fn ratio(&self, peer: &Summary) -> Option<f64> {
        let (own, other) = (self.figures.first()?, peer.figures.first()?);
        let (own_value, other_value) = (own.spread.median, other.spread.median);
        let ratio = if own.unit.more_is_better() { own_value / other_value } else { other_value / own_value };
        ratio.is_finite().then_some(ratio)
    }

    /// A line of the table under [`HEADINGS`].
    pub fn cells(&self) -> Vec<Cell> {
        let figures = self.figures.iter().map(figure_text).collect::<Vec<_>>().join(", ");
        let or_dash = |text: Option<String>| Cell::new(text.unwrap_or_else(|| "-".into()));
        vec![
            Cell::new(self.workload.id),
            Cell::new(figures),
            Cell::new(self.lost.to_string()),
            Cell::new(self.duplicated.to_string()),
            or_dash(self.broker_us.map(|us| format!("{us:.2}"))),
            Cell::new(format!("{:.2}", self.client_us)),
            Cell::new(format!("{:.2}", self.client_cores)),
            or_dash(self.resident_bytes.map(|bytes| format!("{:.0} MB", bytes as f64 / 1e6))),
        ]
    }

    pub fn json(&self, broker: &str) -> Value {
        let figures: serde_json::Map<String, Value> = self
            .figures
            .iter()
            .map(|figure| {
                let unit = match figure.unit {
                    Unit::PerSecond => "per_second",
                    Unit::Micros => "us",
                    Unit::Bytes => "bytes",
                };
                let Spread { median, min, max } = figure.spread;
                (figure.name.replace(' ', "_"), json!({"unit": unit, "median": median, "min": min, "max": max}))
            })
            .collect();
        json!({
            "workload": self.workload.id, "title": self.workload.title, "broker": broker, "figures": figures, "lost": self.lost,
            "duplicated": self.duplicated, "broker_cpu_us": self.broker_us, "client_cpu_us": self.client_us,
            "client_cores": self.client_cores, "resident_bytes": self.resident_bytes,
        })
    }
}

pub const HEADINGS: &[&str] =
    &["WORKLOAD", "MEDIAN (LEAST-GREATEST)", "LOST", "TWICE", "BROKER CPU µs", "CLIENT CPU µs", "CLIENT CORES", "BROKER MEMORY"];

/// `rate 2.47 M/s (1.74-2.80)`.
pub fn figure_text(figure: &Measured) -> String {
    let Spread { median, min, max } = figure.spread;
    let (scale, unit) = match (figure.unit, median) {
        (Unit::PerSecond, value) if value >= 1e6 => (1e6, " M/s"),
        (Unit::PerSecond, value) if value >= 1e4 => (1e3, " k/s"),
        (Unit::PerSecond, _) => (1.0, "/s"),
        (Unit::Micros, value) if value >= 1e4 => (1e3, " ms"),
        (Unit::Micros, _) => (1.0, " µs"),
        (Unit::Bytes, value) if value >= 1e6 => (1e6, " MB"),
        (Unit::Bytes, value) if value >= 1e4 => (1e3, " KB"),
        (Unit::Bytes, _) => (1.0, " B"),
    };
    let number = |value: f64| {
        let value = value / scale;
        if value >= 100.0 || scale == 1.0 { format!("{value:.0}") } else { format!("{value:.2}") }
    };
    match min == max {
        true => format!("{} {}{unit}", figure.name, number(median)),
        false => format!("{} {}{unit} ({}-{})", figure.name, number(median), number(min), number(max)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::workload::Figure;
    use super::*;

    fn runs(unit: Unit, values: &[f64]) -> Summary {
        let workload = Workload::find("W1").expect("W1");
        let row = |value: &f64| Row { figures: vec![Figure { name: "rate", unit, value: *value }], lost: 1, ..Row::default() };
        Summary::of(workload, &values.iter().map(row).collect::<Vec<_>>()).expect("runs")
    }

    #[test]
    fn a_summary_is_the_median_with_its_spread_and_every_loss() {
        let summary = runs(Unit::PerSecond, &[3e6, 1e6, 2e6]);
        assert_eq!(summary.figures[0].spread, Spread { median: 2e6, min: 1e6, max: 3e6 });
        assert_eq!(summary.lost, 3);
        assert_eq!(figure_text(&summary.figures[0]), "rate 2.00 M/s (1.00-3.00)");
    }

    #[test]
    fn a_ratio_says_how_many_times_better_whichever_way_is_better() {
        assert_eq!(runs(Unit::PerSecond, &[30.0]).ratio(&runs(Unit::PerSecond, &[10.0])), Some(3.0));
        assert_eq!(runs(Unit::Micros, &[10.0]).ratio(&runs(Unit::Micros, &[30.0])), Some(3.0));
        assert_eq!(runs(Unit::Micros, &[0.0]).ratio(&runs(Unit::Micros, &[30.0])), None);
    }
}
