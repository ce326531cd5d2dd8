//! A double-ended list of small values in fixed blocks: growing never copies what is there, and a drained list gives its memory
//! back block by block (a `VecDeque` doubles by copying and never shrinks).

use std::collections::VecDeque;

const BLOCK: usize = 512;

#[derive(Debug)]
pub(super) struct Blocks<T> {
    /// All but the last are full; the first is consumed up to `head`.
    blocks: VecDeque<Vec<T>>,
    head: usize,
    len: usize,
    /// One emptied block kept, so that a list that hovers around a border does not allocate.
    spare: Option<Vec<T>>,
}

impl<T: Copy> Blocks<T> {
    pub fn new() -> Self {
        Blocks { blocks: VecDeque::new(), head: 0, len: 0, spare: None }
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn push_back(&mut self, value: T) {
        match self.blocks.back_mut() {
            Some(last) if last.len() < BLOCK => last.push(value),
            _ => {
                // The first block of a short list grows by itself, so that an idle queue stays small.
                let mut block = self.spare.take().unwrap_or_default();
                block.push(value);
                self.blocks.push_back(block);
            }
        }
        self.len += 1;
    }

    pub fn front(&self) -> Option<&T> {
        self.blocks.front()?.get(self.head)
    }

    pub fn pop_front(&mut self) -> Option<T> {
        let first = self.blocks.front()?;
        let value = *first.get(self.head)?;
        self.head += 1;
        self.len -= 1;
        if self.head == first.len() {
            let mut emptied = self.blocks.pop_front().expect("the front block was just read");
            emptied.clear();
            self.head = 0;
            self.spare = (self.len > 0 || emptied.capacity() <= 64).then_some(emptied);
        }
        Some(value)
    }

    fn place(&self, index: usize) -> Option<(usize, usize)> {
        (index < self.len).then(|| ((self.head + index) / BLOCK, (self.head + index) % BLOCK))
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        let (block, at) = self.place(index)?;
        self.blocks.get(block)?.get(at)
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let (block, at) = self.place(index)?;
        self.blocks.get_mut(block)?.get_mut(at)
    }

    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.blocks.iter().flatten().skip(self.head)
    }

    /// The index of the item for which `key` gives `wanted`; items must be sorted by `key`.
    pub fn find<K: Ord>(&self, wanted: K, key: impl Fn(&T) -> K) -> Option<usize> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            match key(self.get(middle)?).cmp(&wanted) {
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_behave_like_a_deque(steps in proptest::collection::vec((any::<bool>(), 1usize..900), 1..40)) {
            let (mut blocks, mut model, mut next) = (Blocks::new(), VecDeque::new(), 0u32);
            for (push, count) in steps {
                for _ in 0..count {
                    if push {
                        blocks.push_back(next);
                        model.push_back(next);
                        next += 1;
                    } else {
                        prop_assert_eq!(blocks.pop_front(), model.pop_front());
                    }
                }
                prop_assert_eq!(blocks.len(), model.len());
                prop_assert_eq!(blocks.front(), model.front());
                prop_assert!(blocks.iter().eq(model.iter()));
                for index in [0, model.len() / 2, model.len()] {
                    prop_assert_eq!(blocks.get(index), model.get(index));
                }
                if let Some(value) = model.get(model.len() / 2) {
                    prop_assert_eq!(blocks.find(*value, |v| *v), Some(model.len() / 2));
                }
                prop_assert_eq!(blocks.find(next, |v| *v), None);
            }
        }
    }
}
