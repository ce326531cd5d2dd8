//! `reactor up`: resolve, start, print the start block, run until told to stop.

use super::args::UpArguments;
use super::{Outcome, check, print};
use crate::kernel::Clock;
use crate::node::config::{self, Problem, Resolved};
use crate::node::logs;
use crate::node::{Node, Signals, StartError, Style};

pub fn run(arguments: UpArguments) -> Outcome {
    let resolved = match read(&arguments) {
        Ok(resolved) => resolved,
        Err(problems) => return check::report(&problems),
    };
    let clock = Clock::system();
    logs::install(&resolved.config.log, &clock);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            print::error(&format!("cannot start the runtime: {error}"));
            return Outcome::Failed;
        }
    };
    match runtime.block_on(serve(resolved, clock, &arguments)) {
        Ok(()) => Outcome::Done,
        Err(error) => {
            print::error(&format!("reactor {error}"));
            Outcome::Failed
        }
    }
}

fn read(arguments: &UpArguments) -> Result<Resolved, Vec<Problem>> {
    config::resolve(&config::gather(arguments.config.as_deref(), arguments.flags())?)
}

async fn serve(resolved: Resolved, clock: Clock, arguments: &UpArguments) -> Result<(), StartError> {
    // Before the start block is printed: whoever reads it may send a signal at once.
    let mut signals = Signals::listen().map_err(|error| StartError::Fault(format!("cannot listen for signals: {error}")))?;
    let node = Node::start(resolved, clock).await?;
    let style = if print::colours() { Style::Colour } else { Style::Plain };
    print::raw(&node.start_block(style));
    if arguments.open
        && let Some(url) = node.dashboard_url()
        && let Err(error) = super::open::browse(&url)
    {
        print::error(&error.to_string());
    }
    node.run(&mut signals, || read(arguments)).await;
    Ok(())
}
