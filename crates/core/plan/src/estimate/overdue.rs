//! Expected ends that have passed: they are raised, as what is still there has not gone.

use super::RunTimes;
use dovetail_model::Job;

/// Shortest step by which an expected run time is raised where nothing was learned.
const STEP_MS: u64 = 60_000;

/// A run time that was stated is believed until it was outlived so many times: what goes on for
/// longer was not meant to end then, and nobody waits for it.
const BELIEVED_TIMES: u64 = 8;

/// The expected run time of a job that has run for `age_ms`, longer than was expected: by what was
/// learned the median of those that get there, else half as long again. `None` once what was stated
/// is not believed any more.
pub(crate) fn raised_ms(run_times: &RunTimes, job: &Job, age_ms: u64) -> Option<u64> {
    if let Some(survival) = run_times.survival(job) {
        return Some(survival.quantile_ms(0.5, age_ms));
    }
    let believed_ms = job.estimate.map(|stated| stated.p90_ms.saturating_mul(BELIEVED_TIMES));
    let is_believed = believed_ms.is_none_or(|until_ms| age_ms <= until_ms);
    is_believed.then(|| age_ms.saturating_add(STEP_MS).max(age_ms.saturating_add(age_ms / 2)))
}
