//! Floor 7: arguments, subcommands, exit codes.
