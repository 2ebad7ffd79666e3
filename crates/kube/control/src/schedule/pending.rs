//! The book of pending jobs: since when, why, and how many pods they are.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Job, JobId, PendingReason};

/// A job that has been seen pending, until all is said and done about it.
#[derive(Clone, Copy, Debug)]
struct PendingJob {
    since_ms: u64,
    reason: Option<PendingReason>,
    /// Pods that are pending now.
    pods: usize,
}

#[derive(Debug, Default)]
pub(super) struct PendingJobs {
    jobs: BTreeMap<JobId, PendingJob>,
    /// Pending jobs about which nothing was reported.
    unreported: BTreeSet<JobId>,
    pods: usize,
    unschedulable_pods: usize,
}

impl PendingJobs {
    pub(super) fn begin(&mut self, job: &Job, now_ms: u64) {
        let pending = PendingJob { since_ms: now_ms, reason: None, pods: 0 };
        self.jobs.entry(job.id).or_insert(pending);
        self.unreported.insert(job.id);
        self.describe(job);
    }

    /// A pending job has other pods than before.
    pub(super) fn describe(&mut self, job: &Job) {
        let pods = job.pod_sets.iter().map(|set| set.max.saturating_sub(set.present) as usize);
        let pods = pods.sum();
        self.change(job.id, |pending| pending.pods = pods);
    }

    /// Pending jobs about which nothing was reported, since the last call.
    pub(super) fn unreported(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.unreported)
    }

    /// Pending jobs of which it is known why they are.
    pub(super) fn with_reason(&self) -> impl Iterator<Item = JobId> {
        self.jobs.iter().filter(|(_, pending)| pending.reason.is_some()).map(|(job, _)| *job)
    }

    /// Why a job is pending: the engine's word, stored here alone.
    pub(super) fn reason(&self, job: JobId) -> Option<PendingReason> {
        self.jobs.get(&job)?.reason
    }

    /// One pod of a job is pending again.
    pub(super) fn add_pod(&mut self, job: JobId) {
        self.change(job, |pending| pending.pods += 1);
    }

    pub(super) fn set_reason(&mut self, job: JobId, reason: PendingReason) {
        self.unreported.remove(&job);
        self.change(job, |pending| pending.reason = Some(reason));
    }

    /// A job is not pending for the moment; since when it was is kept.
    pub(super) fn pause(&mut self, job: JobId) {
        self.unreported.remove(&job);
        self.change(job, |pending| (pending.reason, pending.pods) = (None, 0));
    }

    /// Nothing more will be reported about a job.
    pub(super) fn forget(&mut self, job: JobId) {
        self.pause(job);
        self.jobs.remove(&job);
    }

    /// Pauses all jobs, and forgets those that are gone.
    pub(super) fn restart(&mut self, is_kept: impl Fn(JobId) -> bool) {
        self.jobs.retain(|job, _| is_kept(*job));
        self.jobs.values_mut().for_each(|pending| (pending.reason, pending.pods) = (None, 0));
        (self.pods, self.unschedulable_pods) = (0, 0);
    }

    /// Since when a job has been seen pending.
    pub(super) fn since_ms(&self, job: JobId) -> Option<u64> {
        self.jobs.get(&job).map(|pending| pending.since_ms)
    }

    pub(super) fn pods(&self) -> usize {
        self.pods
    }

    /// How many of these no present node can take.
    pub(super) fn unschedulable_pods(&self) -> usize {
        self.unschedulable_pods
    }

    fn change(&mut self, job: JobId, change: impl FnOnce(&mut PendingJob)) {
        let Some(pending) = self.jobs.get_mut(&job) else { return };
        let unschedulable = |pending: &PendingJob| match pending.reason {
            Some(PendingReason::Unschedulable) => pending.pods,
            _ => 0,
        };
        self.pods -= pending.pods;
        self.unschedulable_pods -= unschedulable(pending);
        change(pending);
        self.pods += pending.pods;
        self.unschedulable_pods += unschedulable(pending);
    }
}
