//! Where a queue's messages lie: small entries that point into segments, which many messages share.
//!
//! A segment is one frozen stretch of records, the work of one publisher's batch. The queue counts how many of its entries still
//! need each segment, under its own lock, so a message costs no atomic operation of its own; one old message keeps its whole
//! segment (at most 32 KB).

use crate::kernel::Instant;
use bytes::Bytes;

/// One message of one queue: 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(in crate::broker) struct Entry {
    /// Position in the queue, for life: a message that comes back goes where it was.
    pub seq: u64,
    pub at: u32,
    pub len: u32,
    pub segment: u32,
    pub key_len: u16,
    pub flags: u8,
    /// In a priority queue.
    pub priority: u8,
}

impl Entry {
    /// Was delivered before.
    pub const REDELIVERED: u8 = 1;
    /// Something rare belongs to it: see [`Extra`](crate::broker::message::Extra).
    pub const EXTRA: u8 = 2;
    /// Removed from the middle of the ready list; only its place is left.
    pub const GONE: u8 = 4;
    /// Of a quorum queue: how often it came back is told with it.
    pub const COUNTED: u8 = 8;

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

#[derive(Debug)]
struct Slot {
    bytes: Bytes,
    live: u32,
    /// When its messages were published, to the batch.
    at: Instant,
}

/// Slots are reused, so that a message that is never acked keeps its own segment and nothing behind it.
#[derive(Debug, Default)]
pub(super) struct Segments {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Segments {
    pub fn insert(&mut self, bytes: Bytes, live: u32, at: Instant) -> u32 {
        let slot = Slot { bytes, live, at };
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = slot;
                id
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("fewer segments than messages, and memory ends long before")
            }
        }
    }

    pub fn record(&self, entry: &Entry) -> &[u8] {
        &self.slots[entry.segment as usize].bytes[entry.at as usize..(entry.at + entry.len) as usize]
    }

    /// The entry's record, kept alive by whoever holds it.
    pub fn share(&self, entry: &Entry) -> Bytes {
        self.slots[entry.segment as usize].bytes.slice(entry.at as usize..(entry.at + entry.len) as usize)
    }

    pub fn at(&self, entry: &Entry) -> Instant {
        self.slots[entry.segment as usize].at
    }

    /// `count` entries no longer need segment `id`.
    pub fn release(&mut self, id: u32, count: u32) {
        let slot = &mut self.slots[id as usize];
        slot.live -= count;
        if slot.live == 0 {
            slot.bytes = Bytes::new();
            self.free.push(id);
            if self.free.len() == self.slots.len() && self.slots.len() > 64 {
                *self = Segments::default();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_goes_with_its_last_entry_and_its_slot_is_reused() {
        let mut segments = Segments::default();
        let first = segments.insert(Bytes::from_static(b"abcdef"), 2, Instant::ZERO);
        let second = segments.insert(Bytes::from_static(b"xyz"), 1, Instant::ZERO);
        let entry = Entry { seq: 0, at: 2, len: 3, segment: first, key_len: 0, flags: 0, priority: 0 };
        assert_eq!(segments.record(&entry), b"cde");
        segments.release(first, 1);
        assert_eq!(segments.record(&entry), b"cde");
        segments.release(first, 1);
        assert_eq!(segments.insert(Bytes::from_static(b"new"), 1, Instant::ZERO), first);
        assert_ne!(first, second);
        assert_eq!(std::mem::size_of::<Entry>(), 24);
    }
}
