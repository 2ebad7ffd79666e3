//! What is learned, held against what was put in.

use std::sync::Arc;

use dovetail_model::job::EstimateSource;
use dovetail_model::{Estimate, InterruptionCost, Job, JobId, RunProfile};

use super::{EstimatesConfig, RunTimes, raised_ms};

const SECOND_MS: u64 = 1_000;

fn job(owner: &str, number: u64) -> Job {
    let profile = RunProfile { owner: owner.to_owned(), ..RunProfile::default() };
    Job { profile, ..Job::single(JobId(number), &format!("job-{number}"), 0, Arc::default()) }
}

/// What is learned from runs of a job: how long each took, and whether it completed.
fn learned(runs: impl IntoIterator<Item = (Job, u64, bool)>) -> RunTimes {
    let mut times =
        RunTimes::new(EstimatesConfig { learn: true, ..EstimatesConfig::default() }, None);
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

/// A job that states an hour.
fn stated(owner: &str, number: u64) -> Job {
    let mut job = job(owner, number);
    job.profile.stated_ms = Some(3_600 * SECOND_MS);
    job
}

#[test]
fn stated_run_times_are_believed_as_far_as_those_of_their_owner_came_true() {
    let expected = |runs: Vec<(Job, u64, bool)>, owner: &str| {
        let estimate = learned(runs).expected(&stated(owner, 99), None).expect("it is stated");
        assert_eq!(estimate.source, EstimateSource::User);
        [estimate.p50_ms / SECOND_MS, estimate.p90_ms / SECOND_MS]
    };
    assert_eq!(expected(Vec::new(), "a"), [3_600, 3_600]);
    let exact = (0..20).map(|number| (stated("a", number), 3_600 * SECOND_MS, true));
    assert_eq!(expected(exact.clone().collect(), "a"), [3_600, 3_600]);
    // Owner b states four times what it needs, and now and then too little.
    let padded = (0..20).map(|at| (stated("b", at), if at % 5 == 0 { 7_200 } else { 900 }));
    let padded = padded.map(|(job, seconds)| (job, seconds * SECOND_MS, true));
    let both: Vec<_> = exact.chain(padded).collect();
    assert_eq!(expected(both.clone(), "b"), [900, 7_200]);
    let of_a = expected(both.clone(), "a");
    assert_eq!(of_a[0], 3_600, "{of_a:?}");
    let weighed = |owner: &str, declared_s: Option<u64>| {
        let restart_cost_ms = declared_s.map(|seconds| seconds * SECOND_MS);
        let interruption = InterruptionCost { restart_cost_ms, ..InterruptionCost::default() };
        let mut of = Job { interruption, ..stated(owner, 99) };
        learned(both.clone()).assess(&mut of, None);
        of.interruption.restart_weighs_ms() / SECOND_MS
    };
    assert_eq!(
        [weighed("a", Some(600)), weighed("b", Some(600)), weighed("b", None)],
        [600, 150, 0]
    );
    // Runs that were stopped shorten nothing.
    let stopped = (0..50).map(|number| (stated("a", number), SECOND_MS, false));
    assert_eq!(expected(stopped.collect(), "a"), [3_600, 3_600]);
}

#[test]
fn only_what_was_learned_is_expected_where_guesses_are_not_wanted() {
    let config = EstimatesConfig { learn: true, only_learned: true };
    let mut times = RunTimes::new(config, None);
    for number in 0..8 {
        assert_eq!(times.expected(&job("a", 9), None), None, "{number}");
        times.observe(&job("a", number), 600 * SECOND_MS, true);
        times.publish(0, std::iter::empty());
    }
    let estimate = times.expected(&job("a", 9), None).expect("it is learned");
    assert_eq!(estimate.source, EstimateSource::History);
    let mut described = Job { estimate: Some(estimate), ..job("a", 9) };
    (8..99).for_each(|number| times.observe(&job("a", number), 9_000 * SECOND_MS, true));
    times.publish(0, std::iter::empty());
    assert_ne!(times.expected(&job("a", 9), None), Some(estimate));
    assert_eq!(times.expected(&job("a", 9), Some(&described)), Some(estimate));
    described.profile.stated_ms = Some(SECOND_MS);
    assert_ne!(times.expected(&job("a", 9), Some(&described)), Some(estimate));
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

#[test]
fn a_time_limit_bounds_what_is_expected_and_stands_in_for_what_is_not_learned() {
    let minutes = |minutes: u64| minutes * 60 * SECOND_MS;
    let limited = |limit: Option<u64>| {
        let mut job = job("a", 9);
        job.profile.limit_ms = limit;
        job
    };
    let times = |estimate: Option<Estimate>| {
        estimate.map(|Estimate { p50_ms, p90_ms, source }| (p50_ms, p90_ms, source))
    };
    let config = EstimatesConfig { learn: true, only_learned: true };
    let nothing = RunTimes::new(config, None);
    assert_eq!(nothing.expected(&limited(None), None), None);
    let at_limit =
        Estimate { p50_ms: minutes(90), p90_ms: minutes(90), source: EstimateSource::Limit };
    assert_eq!(nothing.expected(&limited(Some(minutes(90))), None), Some(at_limit));
    // Runs of an hour: a limit beyond them says nothing, one below them cuts them off.
    let mut learned = RunTimes::new(config, None);
    (0..100).for_each(|number| learned.observe(&job("a", number), minutes(60), true));
    learned.publish(0, std::iter::empty());
    let of_learned = times(learned.expected(&limited(None), None));
    assert_eq!(of_learned.map(|(.., source)| source), Some(EstimateSource::History));
    assert_eq!(times(learned.expected(&limited(Some(minutes(24 * 60))), None)), of_learned);
    let cut = learned.expected(&limited(Some(minutes(10))), None);
    assert_eq!(times(cut), Some((minutes(10), minutes(10), EstimateSource::History)));
    // What stood in for it gives way once something is learned.
    let before = Job { estimate: Some(at_limit), ..limited(Some(minutes(90))) };
    let after = learned.expected(&limited(Some(minutes(90))), Some(&before));
    assert_eq!(after.map(|estimate| estimate.source), Some(EstimateSource::History));
    // A run that outlives what was expected is raised to the limit at most.
    let raised = |limit| raised_ms(&learned, &limited(limit), minutes(80));
    assert!(raised(None) > minutes(81), "{}", raised(None));
    assert_eq!(raised(Some(minutes(81))), minutes(81));
}
