//! Recorded conversations with seeded damage: never a panic, never memory or answers out of proportion to what came in.
//! `tests/fuzz` looks deeper; this runs with every test run.

use super::conversations;
use super::replay::Peer;
use reactor::kernel::rng::Rng;
use reactor::wire::trace;

const SEEDS: u64 = 4_000;

#[test]
fn damaged_conversations_are_refused_not_feared() {
    let recorded: Vec<Vec<u8>> = conversations().iter().map(|(_, lines)| said_by_client(lines)).collect();
    for seed in 0..SEEDS {
        let mut rng = Rng::seeded(seed);
        let mut bytes = recorded[rng.below(recorded.len() as u64) as usize].clone();
        bytes.truncate(1 + rng.below(16_384) as usize);
        // Most damage lies behind the handshake, else little but that is tried.
        let from = if seed % 4 == 0 { 0 } else { (bytes.len() / 2).min(700) };
        (0..1 + rng.below(4)).for_each(|_| damage(&mut bytes, from, &mut rng));
        run(seed, &bytes, &mut rng);
    }
}

#[test]
fn random_bytes_are_refused_not_feared() {
    for seed in 0..SEEDS {
        let mut rng = Rng::seeded(!seed);
        let mut bytes = b"AMQP\x00\x00\x09\x01".to_vec();
        (0..rng.below(600)).for_each(|_| bytes.push(rng.draw() as u8));
        run(seed, &bytes, &mut rng);
    }
}

fn said_by_client(lines: &[super::Line]) -> Vec<u8> {
    lines.iter().filter(|line| line.by_client).flat_map(|line| line.bytes.iter().copied()).collect()
}

fn damage(bytes: &mut Vec<u8>, from: usize, rng: &mut Rng) {
    let at = from + rng.below((bytes.len() - from).max(1) as u64) as usize;
    if at >= bytes.len() {
        return;
    }
    match rng.below(5) {
        0 => bytes[at] = rng.draw() as u8,
        1 => bytes[at] ^= 1 << rng.below(8),
        2 => _ = bytes.remove(at),
        3 => bytes.insert(at, rng.draw() as u8),
        _ => {
            let end = bytes.len().min(at + 4);
            bytes[at..end].fill(0xff);
        }
    }
}

fn run(seed: u64, bytes: &[u8], rng: &mut Rng) {
    let mut peer = Peer::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let piece = rest.len().min(1 + rng.below(2_000) as usize);
        peer.receive(&rest[..piece]);
        rest = &rest[piece..];
    }
    assert!(peer.out.len() <= 2_000 + 4 * bytes.len(), "seed {seed}: {} bytes answered to {}", peer.out.len(), bytes.len());
    let (held, room) = (peer.session.unfinished_bytes(), 64 * 1024 * (1 + peer.session.channel_count()) + 2 * bytes.len());
    assert!(held <= room, "seed {seed}: {held} bytes held for {} received", bytes.len());
    let mut lines = bytes;
    while trace::next_line(&mut lines).is_some() {}
}
