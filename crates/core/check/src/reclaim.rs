//! Whether a job may be preempted because its queue holds what another queue is guaranteed.

use std::collections::BTreeSet;

use dovetail_model::{Axis, JobId, PodId, Queue};

use crate::limits::{
    exceeds_quota, held_by_pod, held_within_quota, kept_below, queue_and_parents, smallest,
    used_below,
};
use crate::world::{BookedJob, ClusterBooks};

/// Whether the queue of `job`, or one above it, holds no more than its quota even with the job, and
/// that of the victim no less than its own without these victims, of which those do not count that
/// exceed it alone. It counts which queues stand right below the lowest one above both. The victim
/// must be open to it.
pub(crate) fn gives_back(
    world: &ClusterBooks,
    job: JobId,
    victim: &BookedJob,
    victims: &BTreeSet<PodId>,
) -> bool {
    if world.is_divided {
        return is_open(world, victim);
    }
    let booked = &world.jobs[&job];
    let ours = queue_and_parents(world, &booked.job.queue);
    let theirs = queue_and_parents(world, &victim.job.queue);
    let is_shared =
        |queue: &&&Queue, others: &[&Queue]| others.iter().any(|other| other.name == queue.name);
    let ours_below = ours.iter().rfind(|queue| !is_shared(queue, &theirs));
    let theirs_below = theirs.iter().rfind(|queue| !is_shared(queue, &ours));
    let asks = |axis: &Axis| smallest(booked, axis);
    let is_within = |queue: &&Queue| {
        let mut asked = queue.guaranteed.iter().filter(|(axis, _)| asks(axis) > 0).peekable();
        asked.peek().is_some()
            && asked.all(|(axis, quota)| {
                let used = used_below(world, &queue.name, &axis);
                let kept = kept_below(world, &queue.name, &axis, job).max(0);
                used + kept + asks(&axis) <= quota
            })
    };
    let keeps_own = |queue: &&Queue| {
        queue.guaranteed.iter().all(|(axis, quota)| {
            let counts =
                |pod: &&PodId| world.jobs.get(&pod.job).is_some_and(|of| !exceeds_quota(of, queue));
            let goes = victims.iter().filter(counts);
            let goes: i64 = goes.map(|pod| held_by_pod(world, *pod, &queue.name, &axis)).sum();
            goes == 0 || held_within_quota(world, queue, &axis) - goes >= quota
        })
    };
    is_open(world, victim)
        && ours_below.is_some_and(is_within)
        && theirs_below.is_none_or(keeps_own)
}

/// Whether the respite of a job is over: it was never preempted and has run as long as it must, or
/// will have lost a tenth of what it held at most, or has run for as long as any respite.
fn is_open(world: &ClusterBooks, booked: &BookedJob) -> bool {
    let (job, rules, history) = (&booked.job, booked.job.preemption, booked.job.history);
    let (Some(respite_ms), Some(start_ms)) = (world.respite_ms, job.start_ms) else { return true };
    let ran_ms = world.now_ms.saturating_sub(start_ms);
    if ran_ms >= respite_ms {
        return true;
    }
    let is_spent = rules.max_preemptions.is_some_and(|most| history.preemptions >= most);
    if is_spent || ran_ms < rules.min_run_ms.unwrap_or(0) {
        return false;
    }
    let cost = job.interruption;
    let gpu_milli = u128::from(job.min_gpu_milli().unsigned_abs().max(1));
    let before_ms = u128::from(history.attained_gpu_milli_ms) / gpu_milli;
    let saved_ms = u128::from(history.saved_ms);
    let writing_ms = match cost.checkpoint_interval_ms {
        Some(interval_ms) if interval_ms > 0 => {
            saved_ms * u128::from(cost.checkpoint_cost_ms.unwrap_or(0)) / u128::from(interval_ms)
        }
        _ => 0,
    };
    let did = cost.stopped_after(ran_ms, history.is_empty());
    let unsaved_ms = match cost.save_on_notice_ms {
        Some(save_ms) if save_ms < did.unsaved_ms => save_ms,
        _ => did.unsaved_ms,
    };
    let lost_ms = before_ms.saturating_sub(saved_ms + writing_ms)
        + u128::from(unsaved_ms + did.restart_ms + cost.restart_ms(false));
    history.preemptions == 0 || lost_ms * 10 <= before_ms + u128::from(ran_ms)
}
