//! GPU-time that was reserved and not used, and that queues got back: what GPUs are taken by is
//! added up from one decision to the next.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::queues::shown_name;
use dovetail_model::JobId;
use dovetail_plan::Engine;

/// GPU-time, in milli-GPU times ms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuTime {
    /// Reserved and not used: for jobs that are next, and by reservations from one time to another.
    pub reserved_unused: [u64; 2],
    /// By queue: of jobs that started in room which their queue got back from others.
    pub reclaimed: BTreeMap<String, u64>,
}

/// Adds it up.
#[derive(Debug, Default)]
pub struct GpuMeter {
    /// Since when GPUs are taken as they are; `None` before the first decision.
    since_ms: Option<u64>,
    /// What takes them, in milli-GPU.
    taken: GpuTime,
    /// Jobs that run in room which their queue got back.
    reclaimed: BTreeSet<JobId>,
    sum: GpuTime,
}

impl GpuMeter {
    /// A job runs for whose queue others were preempted.
    pub(super) fn runs_in_reclaimed_room(&mut self, job: JobId) {
        self.reclaimed.insert(job);
    }

    /// Counts the time since the last call; from now on GPUs are taken as the engine says.
    pub(super) fn count(&mut self, engine: Option<&Engine>, now_ms: u64) {
        let past_ms = now_ms.saturating_sub(self.since_ms.replace(now_ms).unwrap_or(now_ms));
        for (sum, gpu_milli) in self.sum.reserved_unused.iter_mut().zip(self.taken.reserved_unused)
        {
            *sum += gpu_milli * past_ms;
        }
        for (queue, gpu_milli) in &self.taken.reclaimed {
            *self.sum.reclaimed.entry(queue.clone()).or_default() += gpu_milli * past_ms;
        }
        let Some(engine) = engine else {
            self.taken = GpuTime::default();
            return;
        };
        let reserved = engine.list().reserved_unused_gpu_milli();
        self.taken.reserved_unused = reserved.map(|gpu_milli| gpu_milli.max(0).unsigned_abs());
        self.taken.reclaimed.clear();
        self.reclaimed.retain(|job| engine.job(*job).is_some());
        for job in self.reclaimed.iter().filter_map(|job| engine.job(*job)) {
            let gpu_milli = job.present_gpu_milli();
            let queue = shown_name(&job.queue).to_owned();
            *self.taken.reclaimed.entry(queue).or_default() += gpu_milli.max(0).unsigned_abs();
        }
    }

    /// What was counted since the last call.
    pub fn take(&mut self) -> GpuTime {
        std::mem::take(&mut self.sum)
    }
}
