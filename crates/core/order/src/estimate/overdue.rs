//! Expected ends that have passed: they are raised, as what is still there has not gone.

use super::RunTimes;
use dovetail_model::Job;

/// Shortest step by which an expected run time is raised where nothing was learned.
const STEP_MS: u64 = 60_000;

/// The expected run time of a job that has run for `age_ms`, longer than was expected: by what was
/// learned the median of those that get there, else half as long again; its time limit, if that
/// comes first.
pub fn raised_ms(run_times: &RunTimes, job: &Job, age_ms: u64) -> u64 {
    let raised_ms = raised_without_limit_ms(run_times, job, age_ms);
    let limit_ms = job.profile.limit_ms.filter(|limit_ms| *limit_ms > age_ms);
    limit_ms.map_or(raised_ms, |limit_ms| raised_ms.min(limit_ms))
}

fn raised_without_limit_ms(run_times: &RunTimes, job: &Job, age_ms: u64) -> u64 {
    if let Some(stated_ms) = job.profile.stated_ms.filter(|_| run_times.learns()) {
        let median_ms = run_times.ratios(job).median_beyond_ms(stated_ms, age_ms);
        return median_ms.max(age_ms.saturating_add(STEP_MS));
    }
    let learned = run_times.survival(job).map(|survival| survival.quantile_ms(0.5, age_ms));
    learned.unwrap_or_else(|| age_ms.saturating_add(STEP_MS).max(age_ms.saturating_add(age_ms / 2)))
}
