//! What the command line understands.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Message broker, HTTP gateway, supervisor and live dashboard for services in any language, in one process.
#[derive(Debug, Parser)]
#[command(name = "reactor", version, disable_help_subcommand = true, args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct Arguments {
    #[command(flatten)]
    pub up: UpArguments,
    #[command(subcommand)]
    pub command: Option<Command>,
}

const AFTER_HELP: &str = "Without a command, reactor starts (`reactor up`).\n\
Every setting is also an environment variable: ports.amqp is REACTOR_PORTS_AMQP.\n\
Exit codes: 0 done, 1 failed, 2 wrong arguments or configuration, 3 no reactor answers.";

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start reactor and the services of its configuration (the default).
    Up(UpArguments),
    /// Check a configuration file without starting anything.
    Check {
        /// The file.
        #[arg(default_value = "reactor.toml")]
        file: PathBuf,
    },
    /// Write an annotated reactor.toml and a service that runs.
    Init {
        /// Where to.
        #[arg(default_value = ".")]
        directory: PathBuf,
    },
    /// Show what runs, how it is and how much it does.
    Status {
        #[command(flatten)]
        which: RemoteArguments,
        /// Go on showing it until interrupted.
        #[arg(short, long)]
        watch: bool,
        /// As JSON, for programs.
        #[arg(long, conflicts_with = "watch")]
        json: bool,
        /// Say nothing unless something is wrong: the exit code is 0 once every port is bound. Needs no token.
        #[arg(long, conflicts_with_all = ["watch", "json"])]
        health: bool,
    },
    /// Show log records: of services, of their output and of reactor itself.
    Logs {
        /// Only of this service.
        service: Option<String>,
        #[command(flatten)]
        which: RemoteArguments,
        /// Go on showing new ones until interrupted.
        #[arg(short, long)]
        follow: bool,
        /// Only records that match, in the dashboard's query language: severity>=warn, -healthz, order.id:42.
        #[arg(short, long, value_name = "QUERY", default_value = "")]
        query: String,
        /// How many to begin with.
        #[arg(short = 'n', long, value_name = "N", default_value_t = 100)]
        lines: usize,
        /// One JSON object a line, for programs.
        #[arg(long)]
        json: bool,
    },
    /// Put a broker under load and say what it does: this one or any other that speaks AMQP 0-9-1.
    Bench(super::bench::BenchArguments),
    /// Open the dashboard in the browser.
    Open {
        #[command(flatten)]
        which: RemoteArguments,
    },
}

/// Which running reactor.
#[derive(Clone, Debug, Default, Args)]
pub struct RemoteArguments {
    /// The dashboard's address as the start block shows it, token and all; else what the configuration says.
    #[arg(short, long, value_name = "URL")]
    pub url: Option<String>,
    /// Configuration file of the reactor asked; else ./reactor.toml, else the one in your configuration directory.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// As given to the reactor asked.
    #[arg(long, value_name = "N")]
    pub port_offset: Option<u16>,
}

#[derive(Clone, Debug, Default, Args)]
pub struct UpArguments {
    /// Configuration file; else ./reactor.toml, else the one in your configuration directory.
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where things are kept; else your data directory.
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Keep nothing between runs.
    #[arg(long)]
    pub ephemeral: bool,
    /// Add this to every port.
    #[arg(long, value_name = "N")]
    pub port_offset: Option<u16>,
    /// Open the dashboard in the browser once started.
    #[arg(long)]
    pub open: bool,
    /// How reactor writes its own log lines.
    #[arg(long, value_name = "FORMAT")]
    pub log: Option<LogChoice>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogChoice {
    Text,
    Json,
}

impl UpArguments {
    pub fn flags(&self) -> crate::node::config::Flags {
        crate::node::config::Flags {
            data_dir: self.data_dir.clone(),
            ephemeral: self.ephemeral,
            port_offset: self.port_offset,
            log_format: self.log.map(|format| match format {
                LogChoice::Text => "text".to_owned(),
                LogChoice::Json => "json".to_owned(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn no_command_is_up_with_the_same_flags() {
        let arguments = Arguments::try_parse_from(["reactor", "-c", "x.toml", "--ephemeral"]).expect("parses");
        assert!(arguments.command.is_none());
        assert!(arguments.up.ephemeral);
        assert_eq!(arguments.up.config, Some("x.toml".into()));
    }
}
