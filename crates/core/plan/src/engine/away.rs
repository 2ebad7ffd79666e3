//! What is kept of jobs between a preemption, or the loss of a node, and their next attempt.

use std::collections::BTreeMap;

use dovetail_model::{History, HowEnded, Job, JobId};

/// Whoever has not come back by then is forgotten: a week.
const KEPT_MS: u64 = 7 * 24 * 3_600_000;

/// Histories of jobs that are to run again and have not been submitted again yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Away(BTreeMap<JobId, History>);

impl Away {
    pub(crate) fn of(histories: &[(JobId, History)]) -> Self {
        Self(histories.iter().copied().collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (JobId, History)> {
        self.0.iter().map(|(job, history)| (*job, *history))
    }

    /// Keeps what a job has behind it that ends and is to run again. It held so much while it ran.
    /// Returns who has been away for too long and is forgotten.
    pub(crate) fn leave(
        &mut self,
        job: &Job,
        gpu_milli: i64,
        how: HowEnded,
        now_ms: u64,
    ) -> Vec<JobId> {
        let is_late = |history: &History| history.last_end_ms.saturating_add(KEPT_MS) <= now_ms;
        let late = self.0.iter().filter(|(_, history)| is_late(history));
        let late: Vec<JobId> = late.map(|(job, _)| *job).collect();
        self.0.retain(|_, history| !is_late(history));
        let mut history = job.history;
        if let Some(start_ms) = job.start_ms {
            let held_ms = now_ms.saturating_sub(start_ms);
            let held = gpu_milli.unsigned_abs().saturating_mul(held_ms);
            history.attained_gpu_milli_ms = history.attained_gpu_milli_ms.saturating_add(held);
            let did = match how {
                HowEnded::Preempted => job.preempted_at(now_ms),
                _ => job.attempt_at(now_ms),
            };
            history.saved_ms = history.saved_ms.saturating_add(did.saved_ms);
            history.attempts += 1;
            history.preemptions += u32::from(how == HowEnded::Preempted);
            history.last_end_ms = now_ms;
        }
        if !history.is_empty() {
            self.0.insert(job.id, history);
        }
        late
    }

    /// Gives a job back what was kept of it, unless it brings its own history.
    pub(crate) fn rejoin(&mut self, job: &mut Job) {
        if let Some(history) = self.0.remove(&job.id)
            && job.history.is_empty()
        {
            job.history = history;
        }
    }
}
