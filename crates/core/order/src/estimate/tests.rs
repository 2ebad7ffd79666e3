//! What is learned, held against what was put in.

use std::sync::Arc;

use dovetail_model::{Job, JobId, RunProfile};

use super::{EstimatesConfig, RunTimes, raised_ms};

const SECOND_MS: u64 = 1_000;

fn job(owner: &str, number: u64) -> Job {
    let profile = RunProfile { owner: owner.to_owned(), image: String::new() };
    Job { profile, ..Job::single(JobId(number), &format!("job-{number}"), 0, Arc::default()) }
}

/// What is learned from runs of a job: how long each took, and whether it completed.
fn learned(runs: impl IntoIterator<Item = (Job, u64, bool)>) -> RunTimes {
    let mut times = RunTimes::new(EstimatesConfig { learn: true }, None);
    for (job, ran_ms, completed) in runs {
        times.observe(&job, ran_ms, completed);
    }
    times.publish(0, std::iter::empty());
    times
}

#[test]
fn quantiles_are_those_of_the_runs() {
    // Every second from 1 to 400, as often as each other.
    let runs = (1..=400).map(|seconds| (job("a", seconds), seconds * SECOND_MS, true));
    let estimate = learned(runs).estimate(&job("a", 9)).unwrap();
    // A bucket is a fifth wide.
    assert!((180_000..=250_000).contains(&estimate.p50_ms), "{estimate:?}");
    assert!((320_000..=450_000).contains(&estimate.p90_ms), "{estimate:?}");
}

#[test]
fn runs_that_did_not_complete_do_not_shorten_what_is_expected() {
    let completed = (0..50).map(|number| (job("a", number), 1_000 * SECOND_MS, true));
    let killed = (50..150).map(|number| (job("a", number), 10 * SECOND_MS, false));
    let alone = learned(completed.clone()).estimate(&job("a", 9)).unwrap();
    let beside = learned(completed.chain(killed)).estimate(&job("a", 9)).unwrap();
    assert!(beside.p50_ms >= alone.p50_ms, "{beside:?} {alone:?}");
    assert!(beside.p50_ms < 2_000 * SECOND_MS, "{beside:?}");
}

#[test]
fn an_owner_with_few_runs_is_expected_to_be_like_the_others() {
    let others = (0..200).map(|number| (job("a", number), 600 * SECOND_MS, true));
    let others: Vec<_> = others.collect();
    let p50_after = |own_runs: u64| {
        let own = (0..own_runs).map(|number| (job("b", number), 7_200 * SECOND_MS, true));
        learned(others.iter().cloned().chain(own)).estimate(&job("b", 9)).unwrap().p50_ms
    };
    assert!(p50_after(0) < 900 * SECOND_MS);
    assert!(p50_after(1) < 900 * SECOND_MS);
    assert!((7_000 * SECOND_MS..9_000 * SECOND_MS).contains(&p50_after(20)), "{}", p50_after(20));
}

#[test]
fn what_outlives_its_expected_end_is_expected_to_end_later() {
    let nothing = RunTimes::default();
    for age_ms in [0, 1, 59_000, 3_600_000, u64::MAX - 1] {
        assert!(raised_ms(&nothing, &job("a", 0), age_ms) > age_ms);
    }
    // Few steps: from a minute to a year.
    let (mut age_ms, mut steps) = (60_000, 0);
    while age_ms < 365 * 24 * 3_600_000 {
        age_ms = raised_ms(&nothing, &job("a", 0), age_ms);
        steps += 1;
    }
    assert!(steps < 40, "{steps}");
    let runs = (1..=400).map(|seconds| (job("a", seconds), seconds * SECOND_MS, true));
    let learned = learned(runs);
    let raised = raised_ms(&learned, &job("a", 9), 300 * SECOND_MS);
    // Of those that get to 300 s, half end by 350 s.
    assert!((300_001..=430_000).contains(&raised), "{raised}");
}
