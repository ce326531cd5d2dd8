//! The catalogue's single entries: looked up, put and deleted, each change through plan, check and apply like any other.

use super::apply::Control;
use super::check;
use crate::model::catalog::{Catalog, Entry, EntryKey};
use crate::model::change::Change;
use crate::model::identity::Principal;
use crate::model::refusal::{Refusal, RefusalKind};
use std::sync::Arc;

/// What putting something did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    Created,
    /// It existed and is now as asked, if it was not before.
    Updated,
}

impl Control {
    /// Everything that should exist and is neither queue, exchange nor binding, as it stands.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.published.load_full()
    }

    pub(super) fn put_entry(&self, entry: Entry, by: &Principal) -> Result<Put, Refusal> {
        let mut applied = self.applied();
        let was = applied.catalog.get(&entry.key()).cloned();
        let put = if was.is_some() { Put::Updated } else { Put::Created };
        if was.as_ref() == Some(&entry) {
            return Ok(put);
        }
        let mut after = applied.catalog.clone();
        after.put(entry.clone());
        check::entry(&entry, &after)?;
        let change = Change::entry(was, Some(entry));
        self.run(&mut applied, change.into_iter().collect(), by)?;
        Ok(put)
    }

    /// Deletes an entry and what goes with it (a user's permissions, a space's policies and all it holds).
    pub(super) fn delete_entry(&self, key: &EntryKey, by: &Principal) -> Result<(), Refusal> {
        let mut applied = self.applied();
        let Some(was) = applied.catalog.get(key).cloned() else {
            let what = match key.space().filter(|_| !matches!(key, EntryKey::Space(_))) {
                Some(space) => format!("there is no {} {} in space {space}", key.kind(), key.name()),
                None => format!("there is no {} {}", key.kind(), key.name()),
            };
            return Err(Refusal::new(RefusalKind::NotFound, what));
        };
        let dependents = applied.catalog.dependents(key).into_iter().rev().cloned();
        let changes = dependents.chain([was]).filter_map(|entry| Change::entry(Some(entry), None)).collect();
        self.run(&mut applied, changes, by).map(drop)
    }
}
