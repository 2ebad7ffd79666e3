//! How long preempted jobs wait until they start again.

use std::collections::BTreeMap;

use dovetail_model::{Job, QueueName};

/// A new wait counts for one part in so many of the mean.
const NEWEST: u64 = 8;

/// The mean wait between a preemption and the next start, by queue, newer ones counting more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequeueWaits(BTreeMap<QueueName, u64>);

impl RequeueWaits {
    pub(crate) fn of(plain: &[(QueueName, u64)]) -> Self {
        Self(plain.iter().cloned().collect())
    }

    pub(crate) fn plain(&self) -> Vec<(QueueName, u64)> {
        self.0.iter().map(|(queue, mean_ms)| (queue.clone(), *mean_ms)).collect()
    }

    /// A job has started: if it was preempted before, it has waited since.
    pub(crate) fn note_start(&mut self, job: &Job) {
        let Some(start_ms) = job.start_ms.filter(|_| job.history.preemptions > 0) else { return };
        let waited_ms = start_ms.saturating_sub(job.history.last_end_ms);
        match self.0.get_mut(&job.queue) {
            None => drop(self.0.insert(job.queue.clone(), waited_ms)),
            Some(mean_ms) => *mean_ms = *mean_ms - *mean_ms / NEWEST + waited_ms / NEWEST,
        }
    }

    /// The wait in ms that a job of a queue is expected to have: the mean of all queues where its
    /// own had none yet, 0 where none had.
    pub(crate) fn expected_ms(&self, queue: &QueueName) -> u64 {
        let of_all = || self.0.values().map(|mean_ms| mean_ms / self.0.len() as u64).sum();
        self.0.get(queue).copied().unwrap_or_else(of_all)
    }
}
