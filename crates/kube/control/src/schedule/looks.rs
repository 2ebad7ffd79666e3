//! When jobs that wait are asked why they do.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{JobId, PendingReason};

/// What keeps a pod off the nodes changes without a decision about it: it is asked again after so long.
const AGAIN_MS: u64 = 30_000;
/// Who said that no node takes it is asked again when somebody begins to leave, but not more often than this.
const SOONER_MS: u64 = 2_000;

/// Jobs that wait: when to ask them, and the engine's reason.
#[derive(Debug, Default)]
pub struct Looks {
    jobs: BTreeMap<JobId, (u64, PendingReason)>,
    due: BTreeSet<(u64, JobId)>,
}

impl Looks {
    /// A job is asked then, and not before.
    pub fn at(&mut self, due_ms: u64, job: JobId, reason: PendingReason) {
        if let Some((before_ms, _)) = self.jobs.insert(job, (due_ms, reason)) {
            self.due.remove(&(before_ms, job));
        }
        self.due.insert((due_ms, job));
    }

    /// A job that was asked a moment ago is asked again after a while.
    pub fn again(&mut self, now_ms: u64, job: JobId, reason: PendingReason) {
        self.at(now_ms + AGAIN_MS, job, reason);
    }

    /// Somebody has begun to leave: those that no node takes are asked whether one does then, for autoscalers not to
    /// act.
    pub fn somebody_leaves(&mut self, now_ms: u64) {
        let unschedulable = |(_, (_, reason)): &(&JobId, &(u64, PendingReason))| {
            *reason == PendingReason::Unschedulable
        };
        let all = self.jobs.iter().filter(unschedulable);
        let all: Vec<(JobId, u64)> = all.map(|(job, (due_ms, _))| (*job, *due_ms)).collect();
        for (job, due_ms) in all {
            let soonest_ms = due_ms.saturating_sub(AGAIN_MS - SOONER_MS).max(now_ms);
            // Who is asked in a moment anyway may have begun to wait just now, and is let settle.
            if due_ms > now_ms + SOONER_MS {
                self.at(soonest_ms, job, PendingReason::Unschedulable);
            }
        }
    }

    /// A job that is due by then.
    pub fn pop_due(&mut self, latest_ms: u64) -> Option<(JobId, PendingReason)> {
        let (due_ms, job) = self.due.first().copied().filter(|(due_ms, _)| *due_ms <= latest_ms)?;
        self.due.remove(&(due_ms, job));
        self.jobs.remove(&job).map(|(_, reason)| (job, reason))
    }

    /// When the first is due.
    pub fn due_ms(&self) -> Option<u64> {
        self.due.first().map(|(due_ms, _)| *due_ms)
    }
}

#[cfg(test)]
mod tests {
    use dovetail_model::PendingReason::{Unschedulable, WaitingForQuota};

    use super::*;

    #[test]
    fn who_no_node_takes_is_asked_when_somebody_leaves_and_not_too_often() {
        let (one, other) = (JobId(1), JobId(2));
        let mut looks = Looks::default();
        looks.again(100_000, one, Unschedulable);
        looks.again(100_000, other, WaitingForQuota);
        assert_eq!((looks.due_ms(), looks.pop_due(129_999)), (Some(130_000), None));
        // A second after it was asked, and much later.
        looks.somebody_leaves(101_000);
        assert_eq!((looks.pop_due(101_999), looks.due_ms()), (None, Some(102_000)));
        assert_eq!(looks.pop_due(102_000), Some((one, Unschedulable)));
        looks.again(102_000, one, Unschedulable);
        looks.somebody_leaves(120_000);
        assert_eq!(looks.pop_due(120_000), Some((one, Unschedulable)));
        assert_eq!(looks.pop_due(129_999), None, "the other waits for no node");
        assert_eq!(looks.pop_due(130_000), Some((other, WaitingForQuota)));
        assert_eq!(looks.due_ms(), None);
        looks.at(140_500, one, Unschedulable);
        looks.somebody_leaves(140_000);
        assert_eq!(looks.pop_due(140_499), None, "it has not waited for long");
    }
}
