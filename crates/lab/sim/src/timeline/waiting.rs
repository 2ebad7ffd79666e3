//! What waits, counted from the events and decisions that go by.

use std::collections::BTreeMap;

use dovetail_model::{Action, Event, JobId, Plan};
use serde::{Deserialize, Serialize};

/// Jobs that wait, with the milli-GPU of their smallest size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(JobId, i64)>", into = "Vec<(JobId, i64)>")]
pub(crate) struct PendingJobSizes {
    gpu_milli_of: BTreeMap<JobId, i64>,
    gpu_milli: i64,
}

impl PendingJobSizes {
    pub(crate) fn jobs(&self) -> i64 {
        self.gpu_milli_of.len() as i64
    }

    pub(crate) fn gpu_milli(&self) -> i64 {
        self.gpu_milli
    }

    /// Takes in one instant: first its events, then what was decided.
    pub(crate) fn stepped(&mut self, events: &[Event], plan: &Plan) {
        for event in events {
            match event {
                Event::Submitted(job) if job.start_ms.is_none() => {
                    self.leave(job.id);
                    self.gpu_milli += job.min_gpu_milli();
                    self.gpu_milli_of.insert(job.id, job.min_gpu_milli());
                }
                Event::Ended { job, .. } => self.leave(*job),
                _ => {}
            }
        }
        for action in &plan.actions {
            if let Action::Bind { pod, .. } = action {
                self.leave(pod.job);
            }
        }
    }

    fn leave(&mut self, job: JobId) {
        self.gpu_milli -= self.gpu_milli_of.remove(&job).unwrap_or(0);
    }
}

impl From<Vec<(JobId, i64)>> for PendingJobSizes {
    fn from(jobs: Vec<(JobId, i64)>) -> Self {
        let gpu_milli = jobs.iter().map(|(_, milli)| milli).sum();
        Self { gpu_milli_of: jobs.into_iter().collect(), gpu_milli }
    }
}

impl From<PendingJobSizes> for Vec<(JobId, i64)> {
    fn from(waiting: PendingJobSizes) -> Self {
        waiting.gpu_milli_of.into_iter().collect()
    }
}
