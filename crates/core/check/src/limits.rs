//! What queues may hold, added up from the jobs below each queue.

use dovetail_model::{Axis, JobId, Queue, Requirement};

use crate::violation::Violation;
use crate::world::{BookedJob, World};

impl World {
    /// Judges the queues of a job that just started: of nothing that it holds may any of them have more than
    /// its limit, nor, unless it borrows, than it is guaranteed.
    pub(crate) fn judge_limits(&self, job: JobId, found: &mut Vec<Violation>) {
        let booked = &self.jobs[&job];
        for queue in self.queue_and_parents(&booked.job.queue) {
            for (axis, most) in bounds(queue) {
                let holds = held(booked, &axis);
                let used = self.used_below(&queue.name, &axis);
                if holds > 0 && used > most {
                    let queue = queue.name.clone();
                    found.push(Violation::Quota { job, queue, axis, used, most });
                }
            }
        }
    }

    fn used_below(&self, queue: &str, axis: &Axis) -> i64 {
        let below = |name: &str| self.queue_and_parents(name).iter().any(|up| up.name == queue);
        let jobs = self.jobs.values().filter(|booked| below(&booked.job.queue));
        jobs.map(|booked| held(booked, axis)).sum()
    }

    /// The queue and those above it; a circle ends where it closes.
    fn queue_and_parents(&self, name: &str) -> Vec<&Queue> {
        let mut chain: Vec<&Queue> = Vec::new();
        let mut next = self.queues.get(name);
        while let Some(queue) = next.filter(|queue| chain.iter().all(|q| q.name != queue.name)) {
            chain.push(queue);
            next = queue.parent.as_ref().and_then(|parent| self.queues.get(parent));
        }
        chain
    }
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
fn held(booked: &BookedJob, axis: &Axis) -> i64 {
    let sets = booked.pods.keys().map(|(set, _)| &booked.job.pod_sets[usize::from(*set)]);
    sets.map(|set| asks(&set.requirement, axis)).sum()
}

fn asks(requirement: &Requirement, axis: &Axis) -> i64 {
    let resources = &requirement.resources;
    match axis {
        Axis::Gpu => requirement.gpu_milli(),
        Axis::Cpu => resources.cpu_milli,
        Axis::Memory => resources.memory_bytes,
        Axis::Extended(name) => resources.extended.get(name).copied().unwrap_or(0),
    }
}
