//! A fair share of memory per service: whoever holds the most gives first.
//!
//! A service that stays below an equal share (budget ÷ services) therefore never loses a row to another's flood.

use std::collections::HashMap;
use std::sync::Arc;

/// Services with a share of their own; later ones have the last share together.
const SHARES_MAX: usize = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ShareId(u32);

impl ShareId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default)]
pub struct Shares {
    by_service: HashMap<Arc<str>, ShareId>,
    bytes: Vec<usize>,
    total: usize,
}

impl Shares {
    pub fn of(&mut self, service: &Arc<str>) -> ShareId {
        if let Some(id) = self.by_service.get(service) {
            return *id;
        }
        if self.bytes.len() >= SHARES_MAX {
            return ShareId(SHARES_MAX as u32 - 1);
        }
        let id = ShareId(self.bytes.len() as u32);
        self.bytes.push(0);
        self.by_service.insert(service.clone(), id);
        id
    }

    pub fn grow(&mut self, id: ShareId, bytes: usize) {
        self.bytes[id.index()] += bytes;
        self.total += bytes;
    }

    pub fn shrink(&mut self, id: ShareId, bytes: usize) {
        self.bytes[id.index()] -= bytes;
        self.total -= bytes;
    }

    /// Bytes kept over all services.
    pub fn total(&self) -> usize {
        self.total
    }

    /// The one that gives next.
    pub fn largest(&self) -> Option<ShareId> {
        let (index, _) = self.bytes.iter().enumerate().max_by_key(|(_, bytes)| **bytes)?;
        Some(ShareId(index as u32))
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}
