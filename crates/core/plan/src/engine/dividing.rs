//! What follows where the order divides the whole cluster over queues, as KAI Scheduler does.

use std::collections::BTreeMap;

use dovetail_model::{Charge, JobId, QueueName};

use super::books::Books;
use super::jobs::Jobs;
use super::queues::Capacity;
use dovetail_order::queues::kai::FairShares;
use dovetail_order::queues::quota::Quota;
use dovetail_state::State;

/// Divides the cluster anew over what queues hold and wait for.
pub(super) fn divide(quota: &mut Quota, capacity: &mut Capacity, jobs: &Jobs, state: &State) {
    if quota.shares.is_none() {
        return;
    }
    capacity.refresh(state);
    let mut waiting: BTreeMap<QueueName, Charge> = BTreeMap::new();
    for (key, jobs) in jobs.pending.counts().filter(|(_, jobs)| *jobs > 0) {
        let times = i64::try_from(jobs).unwrap_or(i64::MAX);
        let asked = key.gang.largest(state);
        waiting.entry(key.queue.clone()).or_default().add_times(&asked, times);
    }
    quota.shares = Some(FairShares::of(quota, capacity.total(), &waiting));
}

/// Whether a job that may not be preempted would bring one of its queues beyond its quota, with all
/// others like it.
pub(crate) fn is_beyond_firm_quota(job: JobId, books: &Books) -> bool {
    let (quota, record) = (&books.quota, &books.jobs.records[&job]);
    if quota.shares.is_none() || !record.job.preemption.is_protected {
        return false;
    }
    let asked = record.gang.smallest(&books.placement.state);
    quota.way_up(&record.job.queue).any(|queue| {
        let mut firm = asked.clone();
        // order-free: sums.
        for other in books.jobs.records.values() {
            let is_below = || quota.way_up(&other.job.queue).any(|up| up.name == queue.name);
            if other.place.is_none() && other.job.preemption.is_protected && is_below() {
                firm.add_times(&other.counted, 1);
            }
        }
        let mut quotas = queue.guaranteed.iter();
        quotas.any(|(axis, most)| asked.get(&axis) > 0 && firm.get(&axis) > most)
    })
}
