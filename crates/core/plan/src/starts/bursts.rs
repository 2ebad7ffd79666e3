//! Which jobs share the numbers that are drawn for their run times.
//!
//! Users submit in bursts: jobs of one owner and size that come one after the other mostly run for
//! about as long. If each of them got a number of its own, long and short runs would cancel each
//! other out, and the starts of the plays would differ too little. So all jobs of a burst get the
//! number of its first job.

use std::collections::BTreeMap;

use dovetail_model::{Job, JobId, RunTimeGroup};
use dovetail_order::estimate::{COHORT_GAP_MS, of_owner_and_size};

/// The first job of the burst of each job: jobs of one owner and size, each submitted within
/// [`COHORT_GAP_MS`] of the one before.
pub(super) fn first_of_burst(jobs: &[Job]) -> BTreeMap<JobId, &Job> {
    let mut by_group: BTreeMap<RunTimeGroup, Vec<&Job>> = BTreeMap::new();
    for job in jobs {
        by_group.entry(of_owner_and_size(job)).or_default().push(job);
    }
    let mut first_of = BTreeMap::new();
    for mut jobs in by_group.into_values() {
        // By name before the number: the next leader knows the same jobs by other numbers.
        jobs.sort_unstable_by_key(|job| (job.submit_ms, job.name.as_str(), job.id));
        let goes_on =
            |one: &&Job, next: &&Job| next.submit_ms < one.submit_ms.saturating_add(COHORT_GAP_MS);
        for burst in jobs.chunk_by(goes_on) {
            first_of.extend(burst.iter().map(|job| (job.id, burst[0])));
        }
    }
    first_of
}
