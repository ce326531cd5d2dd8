//! Standard output and error, tables and colours. A reader that has gone away (`reactor logs | head`) is no reason to panic.

use std::io::{self, IsTerminal, Write};

pub fn line(text: &str) {
    raw(&format!("{text}\n"));
}

/// Writes text as it is; false when nobody reads any more.
pub fn raw(text: &str) -> bool {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

pub fn error(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether standard output takes colours: a terminal, and nobody said NO_COLOR.
pub fn colours() -> bool {
    is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Plain,
    Dim,
    Green,
    Yellow,
    Red,
}

/// A text with its colour: a cell of a table, a part of a line.
#[derive(Clone, Debug)]
pub struct Cell {
    text: String,
    colour: Colour,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Self {
        Cell { text: text.into(), colour: Colour::Plain }
    }

    pub fn colour(mut self, colour: Colour) -> Self {
        self.colour = colour;
        self
    }

    /// Padded to `width`, coloured where `colours`.
    pub fn render(&self, width: usize, colours: bool) -> String {
        let text = clean(&self.text);
        let padding = " ".repeat(width.saturating_sub(text.chars().count()));
        let code = match self.colour {
            Colour::Plain => "",
            Colour::Dim => "2",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Red => "31",
        };
        if !colours || code.is_empty() { format!("{text}{padding}") } else { format!("\x1b[{code}m{text}\x1b[0m{padding}") }
    }
}

/// Text of others with what would move the cursor or colour the terminal taken out.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\t' { '·' } else { c }).collect()
}

/// Rows as aligned columns under their headings; the last column is not padded.
pub fn table(headings: &[&str], rows: &[Vec<Cell>], colours: bool) -> String {
    let head: Vec<Cell> = headings.iter().map(|text| Cell::new(*text).colour(Colour::Dim)).collect();
    let all: Vec<&Vec<Cell>> = std::iter::once(&head).chain(rows).collect();
    let width =
        |column: usize| all.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..headings.len()).map(width).collect();
    let mut out = String::new();
    for row in all {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| cell.render(*width, colours)).collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_and_lines_have_no_trailing_blanks() {
        let rows = [vec![Cell::new("a"), Cell::new("x")], vec![Cell::new("longer").colour(Colour::Red), Cell::new("")]];
        assert_eq!(table(&["NAME", "WHY"], &rows, false), "NAME    WHY\na       x\nlonger\n");
        assert!(table(&["NAME", "WHY"], &rows, true).contains("\x1b[31mlonger\x1b[0m"));
    }

    #[test]
    fn escape_sequences_of_others_do_not_reach_the_terminal() {
        assert_eq!(clean("a\x1b[31mb\r\n"), "a·[31mb··");
    }
}
