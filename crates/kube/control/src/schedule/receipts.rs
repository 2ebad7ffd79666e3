//! What preemption costs each object whose pods are preempted: noted when the server has taken an
//! eviction, and written to the object, so that it outlives the pods and the leader.

use std::collections::BTreeSet;

use dovetail_cluster::world::{LastingOwner, PodKey, RememberedBy, RunName};
use dovetail_model::{InterruptionCost, JobId};
use dovetail_translate::Receipt;

use super::known::Known;
use super::news::News;

/// What one pod costs that is to be evicted, as it is when that is ordered.
#[derive(Clone, Debug)]
pub(super) struct VictimUse {
    by: RememberedBy,
    gpu_milli: u64,
    submitted_ms: u64,
    /// How long it had run by then, and how much of that nothing keeps.
    ran_ms: u64,
    unsaved_ms: u64,
    ordered_ms: u64,
    /// What its job declares, and how many milli-GPU that holds.
    declared: InterruptionCost,
    job_gpu_milli: u64,
}

impl VictimUse {
    /// Of a pod that is there.
    pub(super) fn of(known: &Known, pod: &PodKey) -> Self {
        let now_ms = known.now_ms;
        let id = known.world.pods().id_of(pod);
        let job = id.and_then(|id| known.engine()?.job(id.job));
        let set = id.zip(job).and_then(|(id, job)| job.pod_sets.get(usize::from(id.pod_set)));
        let gpu_milli = set.map_or(0, |set| set.requirement.gpu_milli().max(0).unsigned_abs());
        let start_ms = job.and_then(|job| job.start_ms).unwrap_or(now_ms);
        Self {
            by: known.world.preemption().remembered_by(pod),
            gpu_milli,
            submitted_ms: job.map_or(0, |job| job.submit_ms),
            ran_ms: now_ms.saturating_sub(start_ms),
            unsaved_ms: job.map_or(0, |job| job.preempted_at(now_ms).unsaved_ms),
            ordered_ms: now_ms,
            declared: job.map(|job| job.interruption).unwrap_or_default(),
            job_gpu_milli: job.map_or(0, |job| job.min_gpu_milli().max(0).unsigned_abs()),
        }
    }
}

/// Objects that a decision to evict pods is counted for.
#[derive(Debug, Default)]
pub(super) struct ReceiptObjects {
    remembered: BTreeSet<(Option<LastingOwner>, Option<RunName>)>,
    /// It is the rest of what was counted before.
    is_rest: bool,
}

impl ReceiptObjects {
    /// Of a decision that goes on with others.
    pub(super) fn rest() -> Self {
        Self { is_rest: true, ..Self::default() }
    }

    /// The server has taken the eviction of a pod; whether an object remembers that.
    pub(super) fn evicted(&mut self, known: &mut Known, used: &VictimUse) -> bool {
        let RememberedBy { account, run } = &used.by;
        if account.is_none() && run.is_none() {
            return false;
        }
        let since_ms = known.now_ms.saturating_sub(used.ordered_ms);
        let gpu_time = |ms: u64| used.gpu_milli.saturating_mul(ms.saturating_add(since_ms));
        let is_first = self.remembered.insert((account.clone(), run.clone())) && !self.is_rest;
        let one = Receipt {
            preemptions: u32::from(is_first),
            attained_gpu_milli_ms: gpu_time(used.ran_ms),
            lost_gpu_milli_ms: gpu_time(used.unsaved_ms),
            last_ms: known.now_ms,
            first_ms: used.submitted_ms,
        };
        let receipt = say(&used.by, one, known);
        if let (true, Some(receipt), Some(account)) = (is_first, receipt, account) {
            let earlier = receipt.attained_gpu_milli_ms.saturating_sub(one.attained_gpu_milli_ms);
            let earlier_ms = earlier / used.job_gpu_milli.max(1);
            let ran_ms = earlier_ms.saturating_add(used.ran_ms).saturating_add(since_ms);
            let advice = used.declared.interval_advice(ran_ms, receipt.preemptions);
            let account = Box::new(account.clone());
            known.news.extend(advice.map(|advice| News::IntervalFarOff { account, advice }));
        }
        account.is_some()
    }
}

/// A pending job is one more attempt at a run: its object is to say what earlier ones cost, so that
/// the next leader knows it when theirs are gone.
pub(super) fn inherit(job: JobId, known: &mut Known) {
    if let Some(by) = known.world.preemption().inherits(job) {
        say(&by, Receipt::default(), known);
    }
}

/// All of what the object is to say, if that is more than it says.
fn say(by: &RememberedBy, one: Receipt, known: &mut Known) -> Option<Receipt> {
    let receipt = known.world.note_preempted(by, one)?;
    let account = Box::new(by.account.clone()?);
    known.news.push(News::Receipt { account, receipt });
    Some(receipt)
}
