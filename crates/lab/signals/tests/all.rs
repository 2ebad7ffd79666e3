//! Phases are told from signals on ranges that nothing was tuned on.

use dovetail_phases::job_phases::{Phase, PhaseRule, job_phases};
use dovetail_signals::{Case, Collected, Confusion, Half, JobBehavior};

/// Seeds of the sample; the benchmark has twice as many.
const SEEDS: std::ops::Range<u64> = 0..12;
const STEPS_MS: [u64; 3] = [15_000, 30_000, 60_000];
/// Least precision and recall by step. Over all seeds of the benchmark both are 0.9 at each; at 60
/// s a single checkpoint that falls into a missing sample moves this sample by several points.
const LEAST: [f64; 3] = [0.9, 0.9, 0.8];

/// By step.
fn judged(collected: Collected) -> [Confusion; STEPS_MS.len()] {
    let mut sums = [(); STEPS_MS.len()].map(|()| Confusion::default());
    for kind in JobBehavior::ALL {
        for seed in SEEDS {
            let case = Case::run(kind, seed, Half::HeldOut);
            for (sum, step_ms) in sums.iter_mut().zip(STEPS_MS) {
                let record = case.record(step_ms, collected);
                let said = job_phases(&record, &PhaseRule::default()).expect("it can be split");
                sum.add(&case.confusion(&record, &said, collected));
            }
        }
    }
    sums
}

/// Every phase with one percent of the seconds or more has that precision and recall.
fn assert_told(collected: Collected) {
    let mut bad = Vec::new();
    for ((sum, step_ms), least) in judged(collected).iter().zip(STEPS_MS).zip(LEAST) {
        for phase in Phase::ALL.into_iter().filter(|phase| sum.share(*phase) >= 0.01) {
            let (precision, recall) = (sum.precision(phase), sum.recall(phase));
            if precision < least || recall < least {
                let name = phase.name();
                bad.push(format!("{name} at {step_ms} ms: {precision:.3}, {recall:.3}"));
            }
        }
    }
    assert_eq!(bad, Vec::<String>::new(), "{collected:?}");
}

#[test]
fn every_phase_is_told_with_all_signals() {
    assert_told(Collected::All);
}

#[test]
fn every_phase_is_told_with_what_a_stock_exporter_gives() {
    assert_told(Collected::Stock);
}

#[test]
fn what_utilisation_alone_cannot_separate_is_said_to_be_unknown() {
    assert_told(Collected::UtilOnly);
}

#[test]
fn the_same_seed_gives_the_same_record_and_labels_fill_the_time() {
    for kind in JobBehavior::ALL {
        let record = || Case::run(kind, 7, Half::Tuning).record(30_000, Collected::All);
        assert_eq!(record(), record());
        let case = Case::run(kind, 7, Half::Tuning);
        let said = job_phases(&record(), &PhaseRule::default()).unwrap();
        let sum = case.confusion(&record(), &said, Collected::All);
        let labelled: u64 = sum.time_ms.iter().flatten().sum();
        let held =
            record().members.iter().map(|member| member.held.to_ms - member.held.from_ms).sum();
        // Labels are kept by the second at the ends of members.
        assert!(labelled.abs_diff(held) * 1000 < held, "{kind:?}: {labelled} of {held}");
    }
}
