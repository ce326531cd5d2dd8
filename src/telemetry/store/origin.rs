//! Who a row is from. Rows point at one [`Origin`] instead of carrying a resource each.

use crate::model::signal::{Resource, Value};
use crate::model::topology::DEFAULT_SPACE;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A resource with what views ask of it most.
#[derive(Debug)]
pub struct Origin {
    pub space: Arc<str>,
    pub resource: Arc<Resource>,
    /// Where the rollups keep this origin's service, so that they look it up once.
    slot: AtomicU32,
}

impl Origin {
    pub fn slot(&self) -> Option<usize> {
        match self.slot.load(Ordering::Relaxed) {
            u32::MAX => None,
            slot => Some(slot as usize),
        }
    }

    pub fn set_slot(&self, slot: usize) {
        self.slot.store(u32::try_from(slot).unwrap_or(u32::MAX), Ordering::Relaxed);
    }

    pub fn service(&self) -> &Arc<str> {
        &self.resource.service
    }

    pub fn instance(&self) -> &Arc<str> {
        &self.resource.instance
    }

    pub fn attribute(&self, key: &str) -> Option<&Value> {
        self.resource.attributes.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}

/// Distinct resources remembered before those that no row uses are forgotten.
const ORIGINS_MAX: usize = 4_096;

/// Finds the one origin of equal resources, however often a sender repeats them.
#[derive(Debug, Default)]
pub struct Origins {
    by_hash: HashMap<u64, Vec<Arc<Origin>>>,
    count: usize,
    /// The last few asked for, by identity: a batch asks for the same one a hundred times.
    recent: Vec<(Arc<Resource>, Arc<Origin>)>,
}

impl Origins {
    pub fn of(&mut self, resource: &Arc<Resource>) -> Arc<Origin> {
        if let Some((_, origin)) = self.recent.iter().find(|(known, _)| Arc::ptr_eq(known, resource)) {
            return origin.clone();
        }
        let origin = self.find_or_add(resource);
        if self.recent.len() >= 8 {
            self.recent.remove(0);
        }
        self.recent.push((resource.clone(), origin.clone()));
        origin
    }

    fn find_or_add(&mut self, resource: &Arc<Resource>) -> Arc<Origin> {
        let key = hash(resource);
        if let Some(known) = self.by_hash.get(&key).into_iter().flatten().find(|known| known.resource == *resource) {
            return known.clone();
        }
        if self.count >= ORIGINS_MAX {
            self.forget_unused();
        }
        let space = match resource.attributes.iter().find(|(key, _)| key == "reactor.space") {
            Some((_, Value::Text(space))) => space.clone(),
            _ => Arc::from(DEFAULT_SPACE),
        };
        let origin = Arc::new(Origin { space, resource: resource.clone(), slot: AtomicU32::new(u32::MAX) });
        // Still full of rows that are kept: this one is used, only not remembered.
        if self.count < ORIGINS_MAX {
            self.by_hash.entry(key).or_default().push(origin.clone());
            self.count += 1;
        }
        origin
    }

    fn forget_unused(&mut self) {
        self.recent.clear();
        self.by_hash.retain(|_, origins| {
            origins.retain(|origin| Arc::strong_count(origin) > 1);
            !origins.is_empty()
        });
        self.count = self.by_hash.values().map(Vec::len).sum();
    }
}

/// Of what tells resources apart in practice; equality decides.
fn hash(resource: &Resource) -> u64 {
    let mut hasher = DefaultHasher::new();
    resource.service.hash(&mut hasher);
    resource.instance.hash(&mut hasher);
    for (key, value) in &resource.attributes {
        key.hash(&mut hasher);
        if let Value::Text(text) = value {
            text.hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(instance: &str) -> Arc<Resource> {
        let attributes = vec![("reactor.space".into(), "blue".into())];
        Arc::new(Resource { service: "orders".into(), instance: instance.into(), attributes })
    }

    #[test]
    fn equal_resources_have_one_origin() {
        let mut origins = Origins::default();
        let first = origins.of(&resource("a"));
        assert!(Arc::ptr_eq(&first, &origins.of(&resource("a"))));
        assert!(!Arc::ptr_eq(&first, &origins.of(&resource("b"))));
        assert_eq!(&*first.space, "blue");
    }

    #[test]
    fn origins_that_no_row_uses_are_forgotten() {
        let mut origins = Origins::default();
        let kept = origins.of(&resource("kept"));
        for n in 0..2 * ORIGINS_MAX {
            origins.of(&resource(&n.to_string()));
        }
        assert!(origins.count <= ORIGINS_MAX);
        assert!(Arc::ptr_eq(&kept, &origins.of(&resource("kept"))));
    }
}
