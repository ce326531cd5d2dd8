//! Which of several instances gets a request: the less busy of two drawn at random ("power of two choices"). It needs no
//! coordination, avoids the busiest without herding onto the idlest, and a slow instance sheds load by being busy longer.

use super::upstream::Endpoint;
use crate::kernel::Instant;
use std::sync::Arc;

/// Picks from `candidates` those that were not `tried`. Instances that refused a connection a moment ago come last.
/// `draw(n)` gives a number below `n`.
pub(super) fn pick(
    candidates: &[Arc<Endpoint>],
    tried: &[Arc<Endpoint>],
    now: Instant,
    mut draw: impl FnMut(usize) -> usize,
) -> Option<Arc<Endpoint>> {
    if let ([only], []) = (candidates, tried) {
        return Some(only.clone());
    }
    let mut left: Vec<&Arc<Endpoint>> =
        candidates.iter().filter(|endpoint| !tried.iter().any(|tried| Arc::ptr_eq(tried, endpoint))).collect();
    if left.iter().any(|endpoint| !endpoint.is_suspect(now)) {
        left.retain(|endpoint| !endpoint.is_suspect(now));
    }
    match left.len() {
        0 => None,
        1 => Some(left[0].clone()),
        count => {
            let first = draw(count);
            let second = (first + 1 + draw(count - 1)) % count;
            let (first, second) = (left[first], left[second]);
            let chosen = if second.in_flight() < first.in_flight() { second } else { first };
            Some(chosen.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::rng::Rng;
    use crate::registry::InstanceId;
    use proptest::prelude::*;

    fn endpoints(count: usize) -> Vec<Arc<Endpoint>> {
        let endpoint =
            |n: usize| Endpoint::new(InstanceId(n as u64), Arc::from(format!("a-{n}")), ([127, 0, 0, 1], n as u16).into());
        (0..count).map(|n| Arc::new(endpoint(n))).collect()
    }

    fn draws(seed: u64) -> impl FnMut(usize) -> usize {
        let mut rng = Rng::seeded(seed);
        move |bound| rng.below(bound as u64) as usize
    }

    #[test]
    fn the_less_busy_of_two_is_taken() {
        let two = endpoints(2);
        let busy = two[0].begin();
        for seed in 0..20 {
            assert!(Arc::ptr_eq(&pick(&two, &[], Instant::ZERO, draws(seed)).expect("one"), &two[1]));
        }
        drop(busy);
    }

    #[test]
    fn load_spreads_over_all() {
        let four = endpoints(4);
        let mut draw = draws(7);
        let mut counts = [0; 4];
        for _ in 0..4_000 {
            counts[pick(&four, &[], Instant::ZERO, &mut draw).expect("one").id.0 as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn an_instance_that_refused_comes_last_for_a_while() {
        let two = endpoints(2);
        two[0].suspect(Instant::ZERO);
        for seed in 0..20 {
            assert!(Arc::ptr_eq(&pick(&two, &[], Instant::ZERO, draws(seed)).expect("one"), &two[1]));
        }
        let last = pick(&two, &two[1..], Instant::ZERO, draws(1)).expect("better than nobody");
        assert!(Arc::ptr_eq(&last, &two[0]));
    }

    proptest! {
        #[test]
        fn whoever_was_tried_is_never_picked_again(count in 0usize..6, tried in 0usize..6, seed in any::<u64>()) {
            let all = endpoints(count);
            let tried = &all[..tried.min(count)];
            let picked = pick(&all, tried, Instant::ZERO, draws(seed));
            prop_assert_eq!(picked.is_none(), tried.len() == count);
            prop_assert!(picked.is_none_or(|picked| !tried.iter().any(|tried| Arc::ptr_eq(tried, &picked))));
        }
    }
}
