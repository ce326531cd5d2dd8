//! `reactor check FILE`: the very code that `up` runs, without binding anything.

use super::Outcome;
use crate::kernel::counted;
use crate::node::config::{self, Flags, Problem};
use std::path::Path;

pub fn run(file: &Path) -> Outcome {
    let inputs = match config::gather(Some(file), Flags::default()) {
        Ok(inputs) => inputs,
        Err(problems) => return report(&problems),
    };
    match config::resolve(&inputs) {
        Ok(resolved) => {
            for warning in &resolved.warnings {
                super::print::line(&format!("warning: {warning}"));
            }
            super::print::line(&format!("{} is fine", file.display()));
            Outcome::Done
        }
        Err(problems) => report(&problems),
    }
}

/// Prints every problem and what the count is.
pub fn report(problems: &[Problem]) -> Outcome {
    for problem in problems {
        super::print::error(&problem.to_string());
    }
    super::print::error(&counted(problems.len(), "problem"));
    Outcome::Misused
}
