//! Byte buffers at rest: a connection borrows one while bytes flow and holds none while idle.
//!
//! One small pool a thread, without a lock. What one thread gives and another takes goes through a shared pool, many at a time.

use std::cell::RefCell;
use std::sync::{Mutex, PoisonError};

/// Room of a fresh buffer.
pub const BUFFER_BYTES: usize = 64 * 1024;
/// A buffer that grew beyond this is freed, not kept.
pub const KEEP_BYTES_MAX: usize = 256 * 1024;
/// Buffers kept per thread.
const KEEP_COUNT_MAX: usize = 16;
/// Buffers that move between a thread's pool and the shared one at a time.
const MOVE_COUNT: usize = 8;
/// Buffers in the shared pool; beyond it they are freed.
const SHARED_COUNT_MAX: usize = 32;

thread_local!(static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) });
static SHARED: Shared = Mutex::new(Vec::new());

type Shared = Mutex<Vec<Vec<u8>>>;

/// An empty buffer with room for at least [`BUFFER_BYTES`].
pub fn take() -> Vec<u8> {
    let mut taken = POOL.with_borrow_mut(Vec::pop);
    if taken.is_none() {
        taken = POOL.with_borrow_mut(|pool| refill(pool, &SHARED));
    }
    taken.unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
}

/// Gives a buffer back; its content is forgotten.
pub fn give(mut buffer: Vec<u8>) {
    if (BUFFER_BYTES..=KEEP_BYTES_MAX).contains(&buffer.capacity()) {
        buffer.clear();
        POOL.with_borrow_mut(|pool| {
            if pool.len() >= KEEP_COUNT_MAX {
                spill(pool, &SHARED);
            }
            pool.push(buffer);
        });
    }
}

#[cold]
fn refill(pool: &mut Vec<Vec<u8>>, shared: &Shared) -> Option<Vec<u8>> {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let from = shared.len().saturating_sub(MOVE_COUNT);
    pool.extend(shared.drain(from..));
    pool.pop()
}

#[cold]
fn spill(pool: &mut Vec<Vec<u8>>, shared: &Shared) {
    let spilt = pool.drain(pool.len() - MOVE_COUNT..);
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    let room = SHARED_COUNT_MAX - shared.len();
    shared.extend(spilt.take(room));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_empty_and_an_outgrown_one_does_not() {
        let mut buffer = take();
        buffer.extend_from_slice(&[1; 10]);
        let place = buffer.as_ptr();
        give(buffer);
        let again = take();
        assert!(again.is_empty() && again.as_ptr() == place);
        give(Vec::with_capacity(KEEP_BYTES_MAX * 2));
        assert!(take().capacity() <= KEEP_BYTES_MAX);
    }

    #[test]
    fn what_one_thread_has_too_much_of_another_finds_in_the_shared_pool() {
        let shared = Shared::default();
        let mut giving: Vec<Vec<u8>> = Vec::new();
        for _ in 0..10 {
            giving.resize_with(KEEP_COUNT_MAX, || Vec::with_capacity(BUFFER_BYTES));
            spill(&mut giving, &shared);
            assert_eq!(giving.len(), KEEP_COUNT_MAX - MOVE_COUNT);
        }
        assert_eq!(shared.lock().expect("free").len(), SHARED_COUNT_MAX);
        let mut taking = Vec::new();
        assert!(refill(&mut taking, &shared).is_some());
        assert_eq!((taking.len(), shared.lock().expect("free").len()), (MOVE_COUNT - 1, SHARED_COUNT_MAX - MOVE_COUNT));
        assert!(refill(&mut taking, &Shared::default()).is_some(), "what it has already");
    }
}
