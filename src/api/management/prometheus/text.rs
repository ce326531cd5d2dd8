//! The text exposition format: families with their kind, samples with labels.

use std::fmt::Write as _;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Counter,
    Gauge,
}

#[derive(Debug, Default)]
pub struct Text(String);

impl Text {
    pub fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = if kind == Kind::Counter { "counter" } else { "gauge" };
        let _ = writeln!(self.0, "# TYPE {name} {kind}\n# HELP {name} {help}");
    }

    pub fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        self.0.push_str(name);
        for (at, (label, value)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"");
            self.escaped(value);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
    }

    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_whole_numbers_have_no_point() {
        let mut text = Text::default();
        text.family("a_total", Kind::Counter, "What it is");
        text.sample("a_total", &[("q", "x\"\\\n")], 3.0);
        text.sample("b", &[], 0.5);
        assert_eq!(text.finish(), "# TYPE a_total counter\n# HELP a_total What it is\na_total{q=\"x\\\"\\\\\\n\"} 3\nb 0.5\n");
    }
}
