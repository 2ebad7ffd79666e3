//! Allocations that outlived their expected end.

use dovetail_model::{HoldingId, HoldingPhase, Job, JobId, Owner};

use super::jobs::Jobs;
use super::placement::Placement;
use dovetail_order::estimate::{RunTimes, raised_ms};

/// Raises every expected end that has passed: nothing that is still there counts as gone. What is
/// not a job's has no run time to judge by; its end is unknown from then on. True if any was
/// raised.
pub(super) fn raise(jobs: &Jobs, run_times: &RunTimes, placement: &mut Placement) -> bool {
    let Placement { state, now_ms, .. } = placement;
    let now_ms = *now_ms;
    let passed = state.holdings.ending_by(now_ms);
    let is_held =
        |id: &HoldingId| matches!(state.holdings.get(*id).phase, HoldingPhase::Held { .. });
    let passed: Vec<HoldingId> = passed.filter(is_held).collect();
    let is_any = !passed.is_empty();
    let mut raised: Option<(JobId, Option<u64>)> = None;
    for id in passed {
        let job = match state.holdings.get(id).owner {
            Owner::Pod(pod) => jobs.records.get(&pod.job).map(|record| &record.job),
            Owner::Foreign(_) | Owner::Reservation => None,
        };
        let end_ms = |job: &Job| {
            let start_ms = job.start_ms?;
            // What earlier attempts saved is done: the estimate is of the whole run.
            let saved_ms = job.history.saved_ms;
            let age_ms = saved_ms.saturating_add(now_ms.saturating_sub(start_ms));
            let left_ms = raised_ms(run_times, job, age_ms).saturating_sub(age_ms);
            Some(now_ms.saturating_add(left_ms.max(1)))
        };
        let expected_end_ms = match (job, raised) {
            (Some(job), Some((of, end_ms))) if of == job.id => end_ms,
            (Some(job), _) => end_ms(job),
            (None, _) => None,
        };
        raised = job.map(|job| (job.id, expected_end_ms));
        state.holdings.set_phase(id, HoldingPhase::Held { expected_end_ms });
    }
    is_any
}
