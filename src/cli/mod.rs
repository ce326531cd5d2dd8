//! Floor 7: arguments, subcommands, exit codes. The only place that prints.
//!
//! Exit codes: 0 done; 1 failed; 2 wrong arguments or configuration; 3 no reactor answers.

mod args;
pub mod bench;
mod check;
mod init;
mod logs;
mod open;
mod print;
mod remote;
mod status;
mod up;

pub use args::{Arguments, Command, RemoteArguments, UpArguments};

use crate::node::GUARD_COMMAND;
use anyhow::Context;
use clap::Parser;
use remote::{NobodyThere, Remote};
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
        Command::Init { directory } => init::run(&directory),
        Command::Status { which, watch: true, .. } => ask(which, async |remote| status::watch(&remote).await),
        Command::Status { which, health: true, .. } => ask(which, async |remote| remote.health().await),
        Command::Status { which, json, .. } => {
            let show = if json { status::Show::Json } else { status::Show::Table };
            ask(which, async move |remote| status::run(&remote, show).await)
        }
        Command::Logs { service, which, follow, query, lines, json } => {
            let wish = logs::Wish { service, query, lines, json };
            ask(which, async move |remote| match follow {
                true => logs::follow(&remote, &wish).await,
                false => logs::run(&remote, &wish).await,
            })
        }
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Open { which } => ask(which, async |remote| open::run(&remote).await),
    };
    outcome.into()
}

/// Finds the running reactor and asks it something; says in words what went wrong.
fn ask(which: RemoteArguments, question: impl AsyncFnOnce(Remote) -> anyhow::Result<()>) -> Outcome {
    let answered = runtime().and_then(|runtime| {
        let remote = Remote::find(which.url.as_deref(), which.config.as_deref(), which.port_offset)?;
        runtime.block_on(async {
            tokio::select! {
                answered = question(remote) => answered,
                // An interrupted `--watch` or `-f` has done what it was asked.
                _ = tokio::signal::ctrl_c() => Ok(()),
            }
        })
    });
    match answered {
        Ok(()) => Outcome::Done,
        Err(error) => {
            print::error(&format!("{error:#}"));
            if error.is::<NobodyThere>() { Outcome::NobodyThere } else { Outcome::Failed }
        }
    }
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start the runtime")
}
