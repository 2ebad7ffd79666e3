//! How often a history is rolled back.

use dovetail_guard::{LatencyVerdict, Unknown};

use crate::history::{Case, Latency, play};

const SEEDS: u64 = 1_000;
/// Answers of a chat service: half of them within 6 s, one of a hundred longer than 39 s.
const CHAT: Latency = Latency::LogNormal(6.0, 0.8);

fn verdicts(case: Case, seeds: u64) -> Vec<LatencyVerdict> {
    (0..seeds).map(|seed| play(case, seed).verdict).collect()
}

fn rolled_back(verdicts: &[LatencyVerdict]) -> usize {
    verdicts.iter().filter(|verdict| **verdict == LatencyVerdict::Worse).count()
}

/// 20,000 requests in the two windows together.
const CASE: Case = Case { latency: CHAT, requests: 10_000.0, drift: 0.02, slower: 1.0, load: 1.0 };

#[test]
fn of_1000_histories_without_a_change_at_most_one_of_a_hundred_is_rolled_back() {
    let verdicts = verdicts(CASE, SEEDS);
    let count = rolled_back(&verdicts);
    assert!(count <= 10, "{count}");
    let known =
        verdicts.iter().filter(|verdict| !matches!(verdict, LatencyVerdict::Unknown(_))).count();
    assert!(known >= 900, "{known}");
}

#[test]
fn of_1000_histories_that_are_a_tenth_slower_95_of_a_hundred_are_rolled_back() {
    let count = rolled_back(&verdicts(Case { slower: 1.1, ..CASE }, SEEDS));
    assert!(count >= 950, "{count}");
}

#[test]
fn a_load_of_40_percent_more_is_unknown_and_never_rolled_back() {
    let is_load = |verdict: &LatencyVerdict| {
        matches!(
            verdict,
            LatencyVerdict::Unknown(Unknown::OtherLoad { change }) if *change > 0.25
        )
    };
    assert!(verdicts(Case { load: 1.4, ..CASE }, SEEDS).iter().all(is_load));
}

/// Latencies that no straight line fits take 20,000 requests in each window.
#[test]
fn other_shapes_of_latency_are_told_apart_as_well() {
    for latency in [Latency::Two(0.7, (2.0, 0.4), (15.0, 0.6)), Latency::Exponential(8.0)] {
        let case = Case { latency, requests: 20_000.0, ..CASE };
        let same = rolled_back(&verdicts(case, 300));
        let slower = rolled_back(&verdicts(Case { slower: 1.1, ..case }, 300));
        assert!(same <= 3 && slower >= 285, "{latency:?}: {same}, {slower}");
    }
}
