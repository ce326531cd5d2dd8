//! Direct exchanges: the key, whole and equal.

use super::{Bound, Found};
use std::collections::HashMap;

#[derive(Debug, Default)]
pub(in crate::broker) struct Direct(HashMap<Box<str>, Vec<Bound>>);

impl Direct {
    pub fn insert(&mut self, key: &str, bound: Bound) {
        self.0.entry(key.into()).or_default().push(bound);
    }

    pub fn remove(&mut self, key: &str, id: u64) {
        if let Some(list) = self.0.get_mut(key) {
            list.retain(|bound| bound.id != id);
            if list.is_empty() {
                self.0.remove(key);
            }
        }
    }

    pub fn route(&self, key: &str, found: &mut Found) {
        found.add_all(self.0.get(key).into_iter().flatten());
    }
}
