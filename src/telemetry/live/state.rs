//! Last values of keys, each with the version of its last change.

use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Removed keys remembered, so that they can be said; a reader from before them gets everything.
const GONE_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub struct StateMap {
    version: u64,
    values: BTreeMap<Arc<str>, (u64, Arc<RawValue>)>,
    gone: BTreeMap<Arc<str>, u64>,
    /// The newest removal that is no longer remembered.
    forgotten: u64,
    watchers: usize,
    /// All values were set since the first of the watchers came.
    filled: bool,
}

pub struct Changes {
    pub version: u64,
    pub full: bool,
    pub set: BTreeMap<Arc<str>, Arc<RawValue>>,
    pub gone: Vec<Arc<str>>,
}

impl StateMap {
    pub fn is_watched(&self) -> bool {
        self.watchers > 0
    }

    pub fn is_blank(&self) -> bool {
        !self.filled
    }

    pub fn watch(&mut self) {
        self.watchers += 1;
    }

    /// When the last watcher leaves the values go, and with them what a later reader could be told as a difference.
    pub fn unwatch(&mut self) {
        self.watchers -= 1;
        if self.watchers == 0 {
            self.version += 1;
            let (version, forgotten) = (self.version, self.version);
            *self = StateMap { version, forgotten, ..StateMap::default() };
        }
    }

    /// Whether anything changed.
    pub fn set(&mut self, key: &str, value: Arc<RawValue>) -> bool {
        if self.values.get(key).is_some_and(|(_, known)| known.get() == value.get()) {
            return false;
        }
        self.version += 1;
        self.gone.remove(key);
        match self.values.get_mut(key) {
            Some(slot) => *slot = (self.version, value),
            None => _ = self.values.insert(Arc::from(key), (self.version, value)),
        }
        true
    }

    pub fn remove(&mut self, key: &str) -> bool {
        let Some((key, _)) = self.values.remove_entry(key) else { return false };
        self.version += 1;
        self.gone.insert(key, self.version);
        if self.gone.len() > GONE_MAX
            && let Some((key, version)) = self.gone.iter().min_by_key(|(_, version)| **version)
        {
            self.forgotten = *version;
            let key = key.clone();
            self.gone.remove(&key);
        }
        true
    }

    pub fn replace(&mut self, values: BTreeMap<Arc<str>, Arc<RawValue>>) -> bool {
        let before = self.version;
        let stale: Vec<_> = self.values.keys().filter(|key| !values.contains_key(*key)).cloned().collect();
        for key in stale {
            self.remove(&key);
        }
        for (key, value) in values {
            self.set(&key, value);
        }
        self.filled = true;
        self.version != before
    }

    /// What changed after `cursor` among the keys that `wanted` takes; everything if the reader has nothing yet.
    pub fn since(&self, cursor: Option<u64>, wanted: &dyn Fn(&str) -> bool) -> Changes {
        let known = cursor.filter(|cursor| (self.forgotten..=self.version).contains(cursor));
        let from = known.unwrap_or(0);
        let set = self.values.iter().filter(|(key, (version, _))| *version > from && wanted(key));
        let gone = self.gone.iter().filter(|(key, version)| known.is_some() && **version > from && wanted(key));
        Changes {
            version: self.version,
            full: known.is_none(),
            set: set.map(|(key, (_, value))| (key.clone(), value.clone())).collect(),
            gone: gone.map(|(key, _)| key.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json(number: u32) -> Arc<RawValue> {
        RawValue::from_string(number.to_string()).expect("a number").into()
    }

    #[test]
    fn an_equal_value_is_no_change() {
        let mut map = StateMap::default();
        assert!(map.set("a", json(1)));
        assert!(!map.set("a", json(1)));
        assert!(map.set("a", json(2)));
        assert!(!map.remove("b"));
    }

    #[test]
    fn the_values_go_with_the_last_watcher_and_a_later_reader_gets_everything() {
        let mut map = StateMap::default();
        map.watch();
        map.watch();
        assert!(map.is_blank());
        map.replace([("a".into(), json(1)), ("b".into(), json(1))].into());
        assert!(!map.is_blank());
        let seen = map.since(None, &|_| true).version;
        map.unwatch();
        assert!(map.is_watched() && map.values.len() == 2);
        map.unwatch();
        assert!(!map.is_watched() && map.is_blank() && map.values.is_empty());
        map.watch();
        map.replace([("a".into(), json(1))].into());
        let changes = map.since(Some(seen), &|_| true);
        assert!(changes.full && changes.set.len() == 1, "`b` went unseen");
    }

    #[test]
    fn a_reader_from_before_forgotten_removals_gets_everything() {
        let mut map = StateMap::default();
        map.set("kept", json(1));
        let early = map.since(None, &|_| true).version;
        for n in 0..GONE_MAX + 1 {
            map.set(&format!("k{n}"), json(1));
            map.remove(&format!("k{n}"));
        }
        assert!(map.gone.len() <= GONE_MAX);
        let changes = map.since(Some(early), &|_| true);
        assert!(changes.full);
        assert_eq!(changes.set.len(), 1);
    }

    proptest! {
        /// Whatever happens and however rarely it looks, a reader that applies what it gets has what the server has.
        #[test]
        fn a_reader_converges_whenever_it_looks(steps in prop::collection::vec((0..5u8, 0..4u32, 0..4u8), 1..200)) {
            let mut map = StateMap::default();
            let mut copy: BTreeMap<Arc<str>, String> = BTreeMap::new();
            let mut cursor = None;
            for (key, value, what) in steps {
                match what {
                    0 => _ = map.remove(&key.to_string()),
                    1 => {
                        let changes = map.since(cursor, &|_| true);
                        if changes.full {
                            copy.clear();
                        }
                        copy.extend(changes.set.iter().map(|(key, value)| (key.clone(), value.get().to_owned())));
                        changes.gone.iter().for_each(|key| _ = copy.remove(key));
                        prop_assert!(changes.gone.iter().all(|key| !changes.set.contains_key(key)));
                        cursor = Some(changes.version);
                        let truth: BTreeMap<_, _> =
                            map.values.iter().map(|(key, (_, value))| (key.clone(), value.get().to_owned())).collect();
                        prop_assert_eq!(&copy, &truth);
                    }
                    _ => _ = map.set(&key.to_string(), json(value)),
                }
            }
        }
    }
}
