//! A bounded ring whose items keep their sequence number when older ones are evicted.
//!
//! ```text
//!   evicted (counted)      kept                        next
//!   0 … first_seq-1   [first_seq … next_seq-1]      next_seq
//! ```
//!
//! Readers hold a sequence number, not an index: what they missed is the exact difference between their cursor and
//! [`Ring::first_seq`].

use std::collections::VecDeque;

#[derive(Debug)]
pub struct Ring<T> {
    items: VecDeque<T>,
    first_seq: u64,
    bytes: usize,
    bytes_max: usize,
    size_of: fn(&T) -> usize,
}

impl<T> Ring<T> {
    /// A ring that keeps at most `bytes_max` bytes, as measured by `size_of`, and always at least the newest item.
    pub fn new(bytes_max: usize, size_of: fn(&T) -> usize) -> Self {
        Ring { items: VecDeque::new(), first_seq: 0, bytes: 0, bytes_max, size_of }
    }

    /// Appends and returns the item's sequence number together with what had to go.
    pub fn push(&mut self, item: T) -> u64 {
        let seq = self.next_seq();
        self.bytes += (self.size_of)(&item);
        self.items.push_back(item);
        while self.bytes > self.bytes_max && self.items.len() > 1 {
            self.pop_front();
        }
        seq
    }

    /// Evicts the oldest item.
    pub fn pop_front(&mut self) -> Option<T> {
        let item = self.items.pop_front()?;
        self.bytes -= (self.size_of)(&item);
        self.first_seq += 1;
        Some(item)
    }

    pub fn get(&self, seq: u64) -> Option<&T> {
        self.items.get(usize::try_from(seq.checked_sub(self.first_seq)?).ok()?)
    }

    /// Items from `seq` on, oldest first, with their numbers; starts at the oldest kept one if `seq` was evicted.
    pub fn iter_from(&self, seq: u64) -> impl DoubleEndedIterator<Item = (u64, &T)> {
        let skip = usize::try_from(seq.saturating_sub(self.first_seq)).unwrap_or(usize::MAX).min(self.items.len());
        self.items.range(skip..).enumerate().map(move |(at, item)| (self.first_seq + (skip + at) as u64, item))
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Bytes kept, as measured by `size_of`.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The oldest kept sequence number; equal to the count of evicted items.
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// The number the next item will get; equal to the count of items ever pushed.
    pub fn next_seq(&self) -> u64 {
        self.first_seq + self.items.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eviction_keeps_numbers_and_counts_exact() {
        let mut ring = Ring::new(10, |_: &u8| 4);
        for n in 0..5 {
            assert_eq!(ring.push(n), u64::from(n));
        }
        assert_eq!((ring.len(), ring.bytes(), ring.first_seq(), ring.next_seq()), (2, 8, 3, 5));
        assert_eq!(ring.get(2), None);
        assert_eq!(ring.get(3), Some(&3));
        assert_eq!(ring.iter_from(0).collect::<Vec<_>>(), [(3, &3), (4, &4)]);
        assert_eq!(ring.iter_from(4).collect::<Vec<_>>(), [(4, &4)]);
        assert_eq!(ring.iter_from(99).count(), 0);
    }

    #[test]
    fn one_oversized_item_is_still_kept() {
        let mut ring = Ring::new(1, |_: &u8| 100);
        ring.push(1);
        ring.push(2);
        assert_eq!(ring.iter_from(0).collect::<Vec<_>>(), [(1, &2)]);
    }
}
