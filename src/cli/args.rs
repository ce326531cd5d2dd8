//! What the command line understands.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Message broker, HTTP gateway, supervisor and live dashboard for services in any language, in one process.
#[derive(Debug, Parser)]
#[command(name = "reactor", version, disable_help_subcommand = true, after_help = AFTER_HELP)]
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
