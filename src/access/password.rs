//! Passwords at rest, as RabbitMQ keeps them: base64 of four bytes of salt and the hash of salt and password. Hashes move there
//! and back with definitions.

use super::peer::same_secret;
use crate::kernel::rng;
use crate::model::account::{HashingAlgorithm, User};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest as _, Md5};
use ring::digest;

const SALT_BYTES: usize = 4;

/// A hash for a new password, with a salt of its own.
pub fn hash(password: &str) -> String {
    salted(HashingAlgorithm::default(), rng::secure::<SALT_BYTES>(), password)
}

/// A hash that is the same for the same user and password each time: a configuration that is read again has not changed.
pub fn steady_hash(user: &str, password: &str) -> String {
    let seed = digest::digest(&digest::SHA256, format!("{user}\0{password}").as_bytes());
    let salt = *seed.as_ref().first_chunk().expect("a digest is longer than a salt");
    salted(HashingAlgorithm::default(), salt, password)
}

/// Whether `password` opens the account. An empty one never does, whatever is kept.
pub fn opens(user: &User, password: &str) -> bool {
    let Some(salt) = salt(&user.password_hash, user.hashing_algorithm) else { return false };
    !password.is_empty() && same_secret(&salted(user.hashing_algorithm, salt, password), &user.password_hash)
}

/// Whether a text can be the hash of a password by `algorithm`.
pub fn is_hash(text: &str, algorithm: HashingAlgorithm) -> bool {
    salt(text, algorithm).is_some()
}

fn salt(text: &str, algorithm: HashingAlgorithm) -> Option<[u8; SALT_BYTES]> {
    let bytes = STANDARD.decode(text).ok()?;
    let hash_bytes = match algorithm {
        HashingAlgorithm::Sha256 => 32,
        HashingAlgorithm::Sha512 => 64,
        HashingAlgorithm::Md5 => 16,
    };
    let (salt, hash) = bytes.split_first_chunk()?;
    (hash.len() == hash_bytes).then_some(*salt)
}

fn salted(algorithm: HashingAlgorithm, salt: [u8; SALT_BYTES], password: &str) -> String {
    let text = [&salt, password.as_bytes()].concat();
    let mut bytes = salt.to_vec();
    match algorithm {
        HashingAlgorithm::Sha256 => bytes.extend_from_slice(digest::digest(&digest::SHA256, &text).as_ref()),
        HashingAlgorithm::Sha512 => bytes.extend_from_slice(digest::digest(&digest::SHA512, &text).as_ref()),
        HashingAlgorithm::Md5 => bytes.extend_from_slice(&Md5::digest(&text)),
    }
    STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(password_hash: &str, hashing_algorithm: HashingAlgorithm) -> User {
        User { name: "ann".into(), password_hash: password_hash.into(), hashing_algorithm, ..User::default() }
    }

    #[test]
    fn hashes_that_rabbitmq_made_are_opened_by_their_passwords() {
        // RabbitMQ's documentation: salt 908DC60A, password test12.
        let documented = user("kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR", HashingAlgorithm::Sha256);
        assert!(opens(&documented, "test12"));
        assert!(!opens(&documented, "test13") && !opens(&documented, ""));
    }

    #[test]
    fn every_algorithm_goes_both_ways_and_salts_differ() {
        for algorithm in [HashingAlgorithm::Sha256, HashingAlgorithm::Sha512, HashingAlgorithm::Md5] {
            let made = user(&salted(algorithm, *b"salt", "pässword"), algorithm);
            assert!(is_hash(&made.password_hash, algorithm) && opens(&made, "pässword") && !opens(&made, "password"));
        }
        assert_ne!(hash("same"), hash("same"));
        assert_eq!(steady_hash("ann", "same"), steady_hash("ann", "same"));
        assert!(opens(&user(&steady_hash("ann", "same"), HashingAlgorithm::Sha256), "same"));
    }

    #[test]
    fn what_is_no_hash_opens_nothing() {
        for text in ["", "====", "c2FsdA==", "kI3GCqW5"] {
            assert!(!is_hash(text, HashingAlgorithm::Sha256), "{text}");
            assert!(!opens(&user(text, HashingAlgorithm::Sha256), ""), "{text}");
        }
        assert!(!is_hash(&hash("x"), HashingAlgorithm::Sha512));
    }
}
