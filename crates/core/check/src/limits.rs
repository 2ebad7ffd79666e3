//! What queues may hold, added up from the jobs below each queue.

use dovetail_model::{Axis, JobId, Place, PodId, Queue, Requirement};

use crate::node_books::Holder;
use crate::violation::Violation;
use crate::world::{BookedJob, ClusterBooks};

/// Judges the queues of a job that just started: of nothing that it holds may any of them have
/// more than its limit, nor, unless it borrows, than it is guaranteed.
pub(crate) fn judge_limits(world: &ClusterBooks, job: JobId, found: &mut Vec<Violation>) {
    let booked = &world.jobs[&job];
    for queue in queue_and_parents(world, &booked.job.queue) {
        for (axis, most) in bounds(queue) {
            let holds = held(world, booked, &axis);
            let used = used_below(world, &queue.name, &axis);
            if holds > 0 && used > most {
                let queue = queue.name.clone();
                found.push(Violation::Quota { job, queue, axis, used, most });
            }
        }
    }
}

/// Judges whether the queues of a job that stops others may hold it at these places when all that
/// ends has gone, beside those that go before it and have room kept.
pub(crate) fn judge_limits_later(
    world: &ClusterBooks,
    job: JobId,
    places: &[Place],
    found: &mut Vec<Violation>,
) {
    let booked = &world.jobs[&job];
    for queue in queue_and_parents(world, &booked.job.queue) {
        for (axis, most) in bounds(queue) {
            let asked = asked_at(world, booked, places, &axis);
            let after = used_below(world, &queue.name, &axis)
                + kept_below(world, &queue.name, &axis, job)
                + asked;
            if asked > 0 && after > most {
                let problem = format!("queue {} would use {after} {axis} of {most}", queue.name);
                found.push(Violation::InVain { job, problem });
            }
        }
    }
}

/// Judges whether a job that is starting takes of its queues what is kept for those that go
/// before it.
pub(crate) fn judge_kept_quota(world: &ClusterBooks, job: JobId, found: &mut Vec<Violation>) {
    let booked = &world.jobs[&job];
    for queue in queue_and_parents(world, &booked.job.queue) {
        for (axis, most) in bounds(queue) {
            let used = used_below(world, &queue.name, &axis);
            let kept = kept_below(world, &queue.name, &axis, job);
            if held(world, booked, &axis) > 0 && kept > 0 && used + kept > most {
                let queue = queue.name.clone();
                found.push(Violation::TakesKeptQuota { job, queue, axis, used, kept, most });
            }
        }
    }
}

pub(crate) fn used_below(world: &ClusterBooks, queue: &str, axis: &Axis) -> i64 {
    let jobs = world.jobs.values().filter(|booked| is_below(world, booked, queue));
    jobs.map(|booked| held(world, booked, axis)).sum()
}

/// What those need at least that room is kept for and that go before a job, less what ends.
pub(crate) fn kept_below(world: &ClusterBooks, queue: &str, axis: &Axis, job: JobId) -> i64 {
    let priority = world.jobs[&job].job.priority;
    let others = world.claims.iter().filter(|(other, _)| **other != job);
    let before = others
        .filter_map(|(other, places)| Some((world.jobs.get(other)?, places)))
        .filter(|(booked, _)| booked.job.priority >= priority && is_below(world, booked, queue));
    let needed: i64 = before.map(|(booked, places)| asked_at(world, booked, places, axis)).sum();
    needed - ending_below(world, queue, axis)
}

/// What pods of a queue hold that were told to leave.
pub(crate) fn ending_below(world: &ClusterBooks, queue: &str, axis: &Axis) -> i64 {
    let ends = world.ending.keys().map(|holder| match holder {
        Holder::Pod(pod) => held_by_pod(world, *pod, queue, axis),
        Holder::Foreign(_) | Holder::Reserved(..) => 0,
    });
    ends.sum()
}

pub(crate) fn held_by_pod(world: &ClusterBooks, pod: PodId, queue: &str, axis: &Axis) -> i64 {
    let booked = world.jobs.get(&pod.job).filter(|booked| is_below(world, booked, queue));
    let place = booked.and_then(|booked| booked.pods.get_key_value(&(pod.pod_set, pod.ordinal)));
    booked.zip(place).map_or(0, |(booked, ((set, _), node))| there(world, booked, *set, node, axis))
}

/// What a pod of a set counts on its node. Where it could have had several models, it counts for
/// the one of the node.
fn there(world: &ClusterBooks, booked: &BookedJob, set: u16, node: &str, axis: &Axis) -> i64 {
    let requirement = &booked.job.pod_sets[usize::from(set)].requirement;
    match axis {
        Axis::GpuModel(name) if requirement.gpu_models.len() != 1 => {
            let device = world.nodes.get(node).and_then(|books| books.node.devices.first());
            let is_it = device.is_some_and(|device| device.model == *name);
            if is_it { requirement.gpu_milli() } else { 0 }
        }
        _ => asks(requirement, axis),
    }
}

fn is_below(world: &ClusterBooks, booked: &BookedJob, queue: &str) -> bool {
    queue_and_parents(world, &booked.job.queue).iter().any(|up| up.name == queue)
}

/// The queue and those above it; a circle ends where it closes.
pub(crate) fn queue_and_parents<'w>(world: &'w ClusterBooks, name: &str) -> Vec<&'w Queue> {
    let mut chain: Vec<&Queue> = Vec::new();
    let mut next = world.queues.get(name);
    while let Some(queue) = next.filter(|queue| chain.iter().all(|q| q.name != queue.name)) {
        chain.push(queue);
        next = queue.parent.as_ref().and_then(|parent| world.queues.get(parent));
    }
    chain
}

/// Whether a job alone exceeds what a queue is guaranteed, at its smallest size.
pub(crate) fn exceeds_quota(booked: &BookedJob, queue: &Queue) -> bool {
    queue.guaranteed.iter().any(|(axis, quota)| {
        let sets = booked.job.pod_sets.iter();
        let asked = sets.map(|set| i64::from(set.min) * asks(&set.requirement, &axis));
        asked.sum::<i64>() > quota
    })
}

/// What jobs below a queue hold, and do not give back already, that do not exceed its quota alone.
pub(crate) fn held_within_quota(world: &ClusterBooks, queue: &Queue, axis: &Axis) -> i64 {
    let jobs = world
        .jobs
        .values()
        .filter(|booked| is_below(world, booked, &queue.name) && !exceeds_quota(booked, queue));
    let pods = jobs.flat_map(|booked| {
        let of = |(pod_set, ordinal): &(u16, u32)| PodId {
            job: booked.job.id,
            pod_set: *pod_set,
            ordinal: *ordinal,
        };
        booked.pods.keys().map(of)
    });
    let stay = pods.filter(|pod| !world.ending.contains_key(&Holder::Pod(*pod)));
    stay.map(|pod| held_by_pod(world, pod, &queue.name, axis)).sum()
}

/// Everything that is bounded, each bound by itself.
fn bounds(queue: &Queue) -> Vec<(Axis, i64)> {
    let mut bounds: Vec<(Axis, i64)> = queue.limit.iter().collect();
    if !queue.borrows {
        bounds.extend(queue.guaranteed.iter());
    }
    bounds
}

/// What the pods of a job that have a node count.
fn held(world: &ClusterBooks, booked: &BookedJob, axis: &Axis) -> i64 {
    let pods = booked.pods.iter();
    pods.map(|((set, _), node)| there(world, booked, *set, node, axis)).sum()
}

/// What a job that waits is to count at its smallest size.
pub(crate) fn smallest(booked: &BookedJob, axis: &Axis) -> i64 {
    let sets = booked.job.pod_sets.iter();
    sets.map(|set| i64::from(set.min.saturating_sub(set.present)) * asks(&set.requirement, axis))
        .sum()
}

/// The same at its places: pods that may have several models count for the one of their node.
fn asked_at(world: &ClusterBooks, booked: &BookedJob, places: &[Place], axis: &Axis) -> i64 {
    let asked = smallest(booked, axis);
    if !matches!(axis, Axis::GpuModel(_)) {
        return asked;
    }
    let sets = &booked.job.pod_sets;
    let is_open = |place: &&Place| {
        let set = sets.get(usize::from(place.pod.pod_set));
        set.is_some_and(|set| set.requirement.gpu_models.len() != 1)
    };
    let open = places.iter().filter(is_open);
    let open = open.map(|place| there(world, booked, place.pod.pod_set, &place.node, axis));
    asked + open.sum::<i64>()
}

fn asks(requirement: &Requirement, axis: &Axis) -> i64 {
    let resources = &requirement.resources;
    match axis {
        Axis::Gpu => requirement.gpu_milli(),
        Axis::Cpu => resources.cpu_milli,
        Axis::Memory => resources.memory_bytes,
        Axis::Extended(name) => resources.extended.get(name).copied().unwrap_or(0),
        // Of several models it is not known yet which one the pod gets.
        Axis::GpuModel(name) => {
            let is_it = requirement.gpu_models.iter().eq([name]);
            if is_it { requirement.gpu_milli() } else { 0 }
        }
    }
}
