//! When pending jobs are asked why they are.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::JobId;

/// What keeps a pod off the nodes changes without a decision about it: it is asked again after so
/// long.
const AGAIN_MS: u64 = 30_000;
/// An unschedulable job is asked again when pods begin to terminate, but not more often than this.
const SOONER_MS: u64 = 2_000;

/// When to ask which job.
#[derive(Debug, Default)]
pub struct Rechecks {
    jobs: BTreeMap<JobId, u64>,
    due: BTreeSet<(u64, JobId)>,
}

impl Rechecks {
    /// A job is asked then, and not before.
    pub fn at(&mut self, due_ms: u64, job: JobId) {
        if let Some(before_ms) = self.jobs.insert(job, due_ms) {
            self.due.remove(&(before_ms, job));
        }
        self.due.insert((due_ms, job));
    }

    /// A job that was asked a moment ago is asked again after a while.
    pub fn again(&mut self, now_ms: u64, job: JobId) {
        self.at(now_ms + AGAIN_MS, job);
    }

    /// Pods have begun to terminate: unschedulable jobs are asked whether they start then, for
    /// autoscalers not to act.
    pub fn sooner(&mut self, now_ms: u64, is_unschedulable: impl Fn(JobId) -> bool) {
        let all = self.jobs.iter().filter(|(job, _)| is_unschedulable(**job));
        let all: Vec<(JobId, u64)> = all.map(|(job, due_ms)| (*job, *due_ms)).collect();
        for (job, due_ms) in all {
            let soonest_ms = due_ms.saturating_sub(AGAIN_MS - SOONER_MS).max(now_ms);
            // A job that is asked in a moment anyway may be pending only since now, and is let
            // settle.
            if due_ms > now_ms + SOONER_MS {
                self.at(soonest_ms, job);
            }
        }
    }

    /// A job that is due by then.
    pub fn pop_due(&mut self, latest_ms: u64) -> Option<JobId> {
        let (due_ms, job) = self.due.first().copied().filter(|(due_ms, _)| *due_ms <= latest_ms)?;
        self.due.remove(&(due_ms, job));
        self.jobs.remove(&job).map(|_| job)
    }

    /// When the first is due.
    pub fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unschedulable_jobs_are_asked_when_pods_terminate_and_not_too_often() {
        let (one, other) = (JobId(1), JobId(2));
        let is_unschedulable = |job| job == one;
        let mut rechecks = Rechecks::default();
        rechecks.again(100_000, one);
        rechecks.again(100_000, other);
        assert_eq!((rechecks.due_ms(), rechecks.pop_due(129_999)), (Some(130_000), None));
        // A second after it was asked, and much later.
        rechecks.sooner(101_000, is_unschedulable);
        assert_eq!((rechecks.pop_due(101_999), rechecks.due_ms()), (None, Some(102_000)));
        assert_eq!(rechecks.pop_due(102_000), Some(one));
        rechecks.again(102_000, one);
        rechecks.sooner(120_000, is_unschedulable);
        assert_eq!(rechecks.pop_due(120_000), Some(one));
        assert_eq!(rechecks.pop_due(129_999), None, "the other waits for no node");
        assert_eq!(rechecks.pop_due(130_000), Some(other));
        assert_eq!(rechecks.due_ms(), None);
        rechecks.at(140_500, one);
        rechecks.sooner(140_000, is_unschedulable);
        assert_eq!(rechecks.pop_due(140_499), None, "it has not been pending for long");
    }
}
