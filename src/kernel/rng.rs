//! Randomness: unguessable bytes from the operating system, and a small seeded generator for simulations, jitter and sampling.

use ring::rand::{SecureRandom, SystemRandom};

/// `N` bytes that an attacker cannot predict.
pub fn secure<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the operating system provides randomness");
    bytes
}

/// An unguessable token of `N` bytes, as unpadded URL-safe base64.
pub fn token<const N: usize>() -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(secure::<N>())
}

/// SplitMix64: 64 bits of state, one multiply chain a draw. Not for secrets.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub const fn seeded(seed: u64) -> Self {
        Rng(seed)
    }

    /// A generator whose seed nobody chose.
    pub fn unseeded() -> Self {
        Rng(u64::from_le_bytes(secure()))
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..bound`. `bound` must not be zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "a draw needs at least one outcome");
        ((u128::from(self.draw()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let (mut a, mut b) = (Rng::seeded(7), Rng::seeded(7));
        assert!((0..100).all(|_| a.draw() == b.draw()));
        assert!((0..1000).all(|_| a.below(3) < 3));
    }

    #[test]
    fn tokens_differ() {
        assert_ne!(token::<16>(), token::<16>());
        assert_eq!(token::<16>().len(), 22);
    }
}
