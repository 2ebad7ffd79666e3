//! The sign test and spreads against counting by hand.

use dovetail_replays::statistics::{Paired, Spread};

/// By counting all outcomes.
fn by_counting(higher: usize, lower: usize) -> f64 {
    let count = higher + lower;
    let extreme = higher.min(lower);
    let uneven = |outcome: &u32| {
        let ones = outcome.count_ones() as usize;
        ones.min(count - ones) <= extreme
    };
    (0..1_u32 << count).filter(uneven).count() as f64 / f64::from(1_u32 << count)
}

/// By the library, of so many pairs in which a policy is ahead or behind.
fn sign_test(higher: usize, lower: usize) -> f64 {
    let mut pairs = vec![(2.0, 1.0); higher];
    pairs.extend(vec![(1.0, 2.0); lower]);
    // Equal pairs say nothing.
    pairs.push((1.0, 1.0));
    Paired::of(&pairs).expect("pairs").sign_test_p
}

#[test]
fn the_sign_test_counts_the_outcomes_at_least_as_uneven() {
    for higher in 0..9 {
        for lower in 0..9 {
            let (ours, counted) = (sign_test(higher, lower), by_counting(higher, lower));
            assert!((ours - counted).abs() < 1e-12, "{higher} {lower}: {ours} {counted}");
        }
    }
    assert!(sign_test(4_000, 4_100) > 0.2 && sign_test(5_000, 0) < 1e-300);
}

#[test]
fn a_spread_says_nothing_about_deviation_for_one_run() {
    let one = Spread::of(&[3.0]).unwrap();
    assert_eq!((one.runs, one.mean, one.standard_deviation), (1, 3.0, None));
    let two = Spread::of(&[1.0, 3.0]).unwrap();
    assert_eq!((two.min, two.max, two.standard_deviation), (1.0, 3.0, Some(2f64.sqrt())));
    assert_eq!(Spread::of(&[]), None);
}
