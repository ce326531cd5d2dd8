//! Standard output and error. A reader that has gone away (`reactor logs | head`) is no reason to panic.

use std::io::{self, IsTerminal, Write};

pub fn line(text: &str) {
    raw(&format!("{text}\n"));
}

pub fn raw(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether standard output takes colours: a terminal, and nobody said NO_COLOR.
pub fn colours() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
