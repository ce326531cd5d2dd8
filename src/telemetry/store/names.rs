//! Texts that repeat (attribute keys, span names, scopes) are kept once and written as small numbers.
//!
//! The table only grows, so it is bounded: once full, new texts are written out in place. A producer that makes up keys can
//! therefore cost compactness, never memory.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Names kept at most; 65,536 of 24 bytes are about 4 MiB with the table.
const NAMES_MAX: usize = 65_536;
/// Longer texts are not names.
const NAME_BYTES_MAX: usize = 128;

/// The shared side: number to text, for readers.
#[derive(Debug, Default)]
pub struct Names(RwLock<Vec<Arc<str>>>);

/// A reader's hold on the table; kept for one run of rows, not longer.
pub type NamesGuard<'a> = RwLockReadGuard<'a, Vec<Arc<str>>>;

impl Names {
    pub fn read(&self) -> NamesGuard<'_> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The writing side: text to number. There is one.
#[derive(Debug, Default)]
pub struct NameWriter {
    numbers: HashMap<Arc<str>, u32>,
    shared: Arc<Names>,
}

impl NameWriter {
    pub fn shared(&self) -> &Arc<Names> {
        &self.shared
    }

    /// The number of `text`, given now if there is room.
    pub fn number(&mut self, text: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        if text.len() > NAME_BYTES_MAX || self.numbers.len() >= NAMES_MAX {
            return None;
        }
        let text: Arc<str> = Arc::from(text);
        let number = self.numbers.len() as u32;
        self.shared.0.write().unwrap_or_else(PoisonError::into_inner).push(text.clone());
        self.numbers.insert(text, number);
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_and_long_texts_get_none() {
        let mut writer = NameWriter::default();
        let first = writer.number("http.route");
        assert_eq!(first, Some(0));
        assert_eq!(writer.number("http.method"), Some(1));
        assert_eq!(writer.number("http.route"), first);
        assert_eq!(writer.number(&"x".repeat(NAME_BYTES_MAX + 1)), None);
        assert_eq!(&*writer.shared().read()[1], "http.method");
    }

    #[test]
    fn a_flood_of_made_up_names_stops_at_the_bound() {
        let mut writer = NameWriter::default();
        let given = (0..NAMES_MAX + 10).filter(|n| writer.number(&format!("k{n}")).is_some()).count();
        assert_eq!(given, NAMES_MAX);
        assert_eq!(writer.number("k7"), Some(7), "known names still have their number");
    }
}
