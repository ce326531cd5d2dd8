//! Byte buffers at rest, one small pool a thread: a connection borrows one while bytes flow and holds none while idle.

use std::cell::RefCell;

/// Room of a fresh buffer.
pub const BUFFER_BYTES: usize = 64 * 1024;
/// A buffer that grew beyond this is freed, not kept.
const KEEP_BYTES_MAX: usize = 256 * 1024;
/// Buffers kept per thread.
const KEEP_COUNT_MAX: usize = 16;

thread_local!(static POOL: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) });

/// An empty buffer with room for at least [`BUFFER_BYTES`].
pub fn take() -> Vec<u8> {
    POOL.with_borrow_mut(Vec::pop).unwrap_or_else(|| Vec::with_capacity(BUFFER_BYTES))
}

/// Gives a buffer back; its content is forgotten.
pub fn give(mut buffer: Vec<u8>) {
    if (BUFFER_BYTES..=KEEP_BYTES_MAX).contains(&buffer.capacity()) {
        buffer.clear();
        POOL.with_borrow_mut(|pool| {
            if pool.len() < KEEP_COUNT_MAX {
                pool.push(buffer);
            }
        });
    }
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
}
