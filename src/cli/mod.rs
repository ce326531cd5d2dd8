//! Floor 7: arguments, subcommands, exit codes. The only place that prints.
//!
//! Exit codes: 0 done; 1 failed; 2 wrong arguments or configuration; 3 no reactor answers.

mod args;
mod check;
mod print;
mod up;

pub use args::{Arguments, Command};

use crate::node::GUARD_COMMAND;
use clap::Parser;
use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Failed,
    Misused,
    NobodyThere,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> ExitCode {
        ExitCode::from(match outcome {
            Outcome::Done => 0,
            Outcome::Failed => 1,
            Outcome::Misused => 2,
            Outcome::NobodyThere => 3,
        })
    }
}

/// The whole program.
pub fn run() -> ExitCode {
    // The guard of a supervised process: before arguments are parsed or anything else is set up.
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == GUARD_COMMAND) {
        let code = crate::supervisor::guard_main(&words.collect::<Vec<_>>());
        return ExitCode::from(u8::try_from(code).unwrap_or(1));
    }
    let Arguments { up, command } = Arguments::parse();
    let outcome = match command.unwrap_or(Command::Up(up)) {
        Command::Up(arguments) => up::run(arguments),
        Command::Check { file } => check::run(&file),
    };
    outcome.into()
}
