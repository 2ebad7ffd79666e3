//! Whether it pays to wait until those who give back a quota have written their next checkpoint.
//!
//! What is lost is the work since the last checkpoint of each; what waiting costs is the time of
//! the GPUs that the waiting job would use meanwhile. Of the times at which a victim writes its
//! next checkpoint the one is chosen that costs least in sum, if that is less than now.

use std::collections::BTreeMap;

use dovetail_model::{Job, JobId};

use super::units::Unit;
use crate::engine::Books;

/// Until when to wait instead of preempting these; `None` if it does not pay.
pub(super) fn worth_waiting_for(books: &Books, job: JobId, units: &[Unit]) -> Option<u64> {
    let record = &books.jobs.records[&job];
    let relation = books.relation(record);
    let now_ms = books.placement.now_ms;
    let latest_ms = books.turns.as_ref()?.reclaims_by_ms(&record.job);
    if latest_ms <= now_ms || !relation.preemptor.may_reclaim() {
        return None;
    }
    let mut victims: BTreeMap<JobId, (&Job, u128)> = BTreeMap::new();
    for unit in units {
        let victim = books.jobs.records.get(&unit.job)?;
        if relation.outranks(victim) {
            // Whoever is more important does not wait.
            return None;
        }
        victims.entry(unit.job).or_insert((&victim.job, 0)).1 += u128::from(unit.gpu_milli);
    }
    let asked = u128::from(record.job.min_gpu_milli().unsigned_abs());
    let cost = |at_ms: u64| -> u128 {
        let lost = |(job, gpu_milli): &(&Job, u128)| {
            gpu_milli * u128::from(job.preempted_at(at_ms).unsaved_ms)
        };
        victims.values().map(lost).sum::<u128>() + asked * u128::from(at_ms - now_ms)
    };
    let times = victims.values().filter_map(|(job, _)| next_checkpoint_ms(job, now_ms));
    let times = times.filter(|at_ms| (now_ms + 1..=latest_ms).contains(at_ms));
    let best = times.map(|at_ms| (cost(at_ms), at_ms)).min()?;
    (best.0 < cost(now_ms)).then_some(best.1)
}

fn next_checkpoint_ms(job: &Job, now_ms: u64) -> Option<u64> {
    let start_ms = job.start_ms?;
    let ran_ms = now_ms.saturating_sub(start_ms);
    let in_ms = job.interruption.next_checkpoint_ms(ran_ms, job.history.is_empty())?;
    start_ms.checked_add(in_ms)
}
