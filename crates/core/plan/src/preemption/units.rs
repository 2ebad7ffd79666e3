//! What can be stopped: whole jobs, or single pods of elastic ones beyond their smallest size.

use std::cmp::Reverse;

use dovetail_model::{HoldingId, JobId, PodId};
use dovetail_order::rates::Given;
use smallvec::SmallVec;

use super::cost::Weighs;
use super::guarantees::Takes;

/// What is given back of each part of a shortage.
pub(super) type Repays = SmallVec<[i64; 2]>;

/// Pods that are stopped together.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) job: JobId,
    /// Nothing of the job is left without it; false is one pod that its job can do without.
    pub(super) is_rest: bool,
    pub(super) pods: Vec<PodId>,
    pub(super) holdings: Vec<HoldingId>,
    pub(super) priority: i32,
    /// When it started; where the newest jobs are victims, when it was submitted.
    pub(super) since_ms: u64,
    pub(super) gpu_milli: u64,
    pub(super) work_lost_gpu_milli_ms: u64,
    /// GPU-time that it is expected to wait until it starts again.
    pub(super) requeue_gpu_milli_ms: u64,
    /// Selectors of the budgets that its pods are in, one for each pod.
    pub(super) budgets: SmallVec<[u32; 2]>,
    /// It is not stopped by priority: no budget may be exceeded for that.
    pub(super) keeps_budgets: bool,
    /// What it counts for, if it makes place for the order alone.
    pub(super) given: Option<Given>,
    /// What its going gives back of each part of the shortage.
    pub(super) repays: Repays,
    /// What its going takes of what queues may lose.
    pub(super) takes: Takes,
}

impl Unit {
    /// The greater is put back earlier: a higher priority, more work that would be lost, an earlier
    /// start, and of pods of one job the first.
    pub(super) fn importance(&self, weighs: Weighs) -> impl Ord + use<> {
        let lost = self.work_lost_gpu_milli_ms.saturating_add(self.requeue_gpu_milli_ms);
        let lost = if weighs == Weighs::Age { 0 } else { lost };
        let age = (Reverse(self.since_ms), Reverse(self.job), self.is_rest);
        (self.priority, lost, age, self.pods.first().copied().map(Reverse))
    }

    /// Adds the pods of another unit of the same job.
    pub(super) fn absorb(&mut self, other: Self) {
        self.is_rest |= other.is_rest;
        self.pods.extend(other.pods);
        self.holdings.extend(other.holdings);
        self.gpu_milli += other.gpu_milli;
        self.work_lost_gpu_milli_ms += other.work_lost_gpu_milli_ms;
        self.requeue_gpu_milli_ms += other.requeue_gpu_milli_ms;
        self.budgets.extend(other.budgets);
        self.given = together(self.given, other.given);
        for (sum, more) in self.repays.iter_mut().zip(other.repays) {
            *sum += more;
        }
        for (number, more) in other.takes {
            match self.takes.iter_mut().find(|(known, _)| *known == number) {
                Some((_, sum)) => *sum += more,
                None => self.takes.push((number, more)),
            }
        }
        let mut both: Vec<(PodId, HoldingId)> =
            self.pods.drain(..).zip(self.holdings.drain(..)).collect();
        both.sort_unstable();
        (self.pods, self.holdings) = both.into_iter().unzip();
    }
}

/// What two count for together.
pub(super) fn together(one: Option<Given>, other: Option<Given>) -> Option<Given> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.and(other)),
        (one, other) => one.or(other),
    }
}
