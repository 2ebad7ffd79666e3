//! Queue limits, added up from the jobs below each queue.

use dovetail_model::{JobId, Queue};

use crate::violation::Violation;
use crate::world::World;

impl World {
    /// Judges the queues of a job that just started.
    pub(crate) fn judge_limits(&self, job: JobId, found: &mut Vec<Violation>) {
        let booked = &self.jobs[&job];
        let gpu_milli = |set: u16| booked.job.pod_sets[usize::from(set)].requirement.gpu_milli();
        if booked.pods.keys().all(|(set, _)| gpu_milli(*set) == 0) {
            return;
        }
        for queue in self.queue_and_parents(&booked.job.queue) {
            let Some(limit_milli) = queue.limit_gpu_milli else { continue };
            let below = |name: &str| {
                self.queue_and_parents(name).iter().any(|above| above.name == queue.name)
            };
            let used = self.used_milli.iter().filter(|(name, _)| below(name));
            let used_milli = used.map(|(_, milli)| milli).sum();
            if used_milli > limit_milli {
                let queue = queue.name.clone();
                found.push(Violation::Quota { job, queue, used_milli, limit_milli });
            }
        }
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
