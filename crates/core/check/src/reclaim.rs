//! Whether a job may be preempted because its queue holds what another queue is guaranteed.

use std::collections::BTreeSet;

use dovetail_model::{Axis, JobId, PodId, Queue};

use crate::limits::{
    ending_below, held_by_pod, kept_below, queue_and_parents, smallest, used_below,
};
use crate::world::{BookedJob, World};

/// Whether the queue of `job`, or one above it, holds no more than its quota even with the job, and
/// that of the victim no less than its own without these victims. It counts which queues stand
/// right below the lowest one above both.
pub(crate) fn gives_back(
    world: &World,
    job: JobId,
    victim: &BookedJob,
    victims: &BTreeSet<PodId>,
) -> bool {
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
            let used = used_below(world, &queue.name, &axis);
            let gone = ending_below(world, &queue.name, &axis);
            let goes = victims.iter().map(|pod| held_by_pod(world, *pod, &queue.name, &axis));
            let goes: i64 = goes.sum();
            goes == 0 || used - gone - goes >= quota
        })
    };
    ours_below.is_some_and(is_within) && theirs_below.is_none_or(keeps_own)
}
