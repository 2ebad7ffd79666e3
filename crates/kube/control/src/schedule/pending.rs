//! Book of the jobs that wait: since when, why, and how many pods they are.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Job, JobId, PendingReason};

/// A job that has been seen waiting, until all is said and done about it.
#[derive(Clone, Copy, Debug)]
struct PendingJob {
    since_ms: u64,
    reason: Option<PendingReason>,
    /// Pods that wait now.
    pods: usize,
}

/// Jobs that wait.
#[derive(Debug, Default)]
pub(super) struct PendingJobs {
    jobs: BTreeMap<JobId, PendingJob>,
    /// Jobs that wait and about which nothing was said.
    unreported: BTreeSet<JobId>,
    pods: usize,
    unschedulable_pods: usize,
}

impl PendingJobs {
    /// A job waits.
    pub(super) fn begin(&mut self, job: &Job, now_ms: u64) {
        let wait = PendingJob { since_ms: now_ms, reason: None, pods: 0 };
        self.jobs.entry(job.id).or_insert(wait);
        self.unreported.insert(job.id);
        self.describe(job);
    }

    /// A job that waits has other pods than before.
    pub(super) fn describe(&mut self, job: &Job) {
        let pods = job.pod_sets.iter().map(|set| set.max.saturating_sub(set.present) as usize);
        let pods = pods.sum();
        self.change(job.id, |wait| wait.pods = pods);
    }

    /// Jobs that wait and about which nothing was said, since the last call.
    pub(super) fn unreported(&mut self) -> BTreeSet<JobId> {
        std::mem::take(&mut self.unreported)
    }

    /// Jobs that wait and about which it was said why.
    pub(super) fn reasons(&self) -> impl Iterator<Item = (JobId, PendingReason)> {
        self.jobs.iter().filter_map(|(job, wait)| Some((*job, wait.reason?)))
    }

    /// One pod of a job waits again.
    pub(super) fn add_pod(&mut self, job: JobId) {
        self.change(job, |wait| wait.pods += 1);
    }

    /// Why a job waits.
    pub(super) fn set_reason(&mut self, job: JobId, reason: PendingReason) {
        self.unreported.remove(&job);
        self.change(job, |wait| wait.reason = Some(reason));
    }

    /// A job is not pending for the moment; since when it was is kept.
    pub(super) fn pause(&mut self, job: JobId) {
        self.unreported.remove(&job);
        self.change(job, |wait| (wait.reason, wait.pods) = (None, 0));
    }

    /// Nothing more will be said about a job.
    pub(super) fn forget(&mut self, job: JobId) {
        self.pause(job);
        self.jobs.remove(&job);
    }

    /// Pauses all jobs, and forgets those that are gone.
    pub(super) fn restart(&mut self, is_kept: impl Fn(JobId) -> bool) {
        self.jobs.retain(|job, _| is_kept(*job));
        self.jobs.values_mut().for_each(|wait| (wait.reason, wait.pods) = (None, 0));
        (self.pods, self.unschedulable_pods) = (0, 0);
    }

    /// Since when a job has been seen waiting.
    pub(super) fn since_ms(&self, job: JobId) -> Option<u64> {
        self.jobs.get(&job).map(|wait| wait.since_ms)
    }

    /// How many pods wait.
    pub(super) fn pods(&self) -> usize {
        self.pods
    }

    /// How many of these no present node can take.
    pub(super) fn unschedulable_pods(&self) -> usize {
        self.unschedulable_pods
    }

    fn change(&mut self, job: JobId, change: impl FnOnce(&mut PendingJob)) {
        let Some(wait) = self.jobs.get_mut(&job) else { return };
        let unschedulable = |wait: &PendingJob| match wait.reason {
            Some(PendingReason::Unschedulable) => wait.pods,
            _ => 0,
        };
        self.pods -= wait.pods;
        self.unschedulable_pods -= unschedulable(wait);
        change(wait);
        self.pods += wait.pods;
        self.unschedulable_pods += unschedulable(wait);
    }
}
