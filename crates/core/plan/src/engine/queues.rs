//! What the whole cluster has, what queues hold of that, and who waits in them.

use std::collections::BTreeMap;

use dovetail_model::{Charge, JobId, Queue, QueueName};

use super::Engine;
use crate::queue::quota::{QueueUse, QuotaBlock};
use crate::state::State;

/// The sum over all nodes, added up when any of them changed.
#[derive(Debug, Default)]
pub(crate) struct Capacity {
    seen: Option<u64>,
    total: Charge,
}

impl Capacity {
    /// Adds up again if there is reason to.
    pub(crate) fn refresh(&mut self, state: &State) {
        let versions = state.nodes.static_versions();
        if self.seen.replace(versions) != Some(versions) {
            self.total = sum(state);
        }
    }

    pub(crate) fn total(&self) -> &Charge {
        &self.total
    }
}

/// Nodes that take nothing at the moment count as well: shares do not jump when a node is drained.
fn sum(state: &State) -> Charge {
    let mut total = Charge::default();
    for (_, node) in state.nodes.present() {
        let all = &node.allocatable;
        let each = Charge {
            gpu_milli: node.devices.len() as i64 * 1_000,
            cpu_milli: all.cpu_milli,
            memory_bytes: all.memory_bytes,
            extended: all.extended.clone(),
        };
        total.add_times(&each, 1);
    }
    total
}

/// What waits in a queue and everything below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingBelow {
    /// Jobs.
    pub jobs: u64,
    /// Their pods, at the smallest size of each.
    pub pods: u64,
}

impl Engine {
    /// The queues as they were told, by name.
    pub fn queues(&self) -> impl Iterator<Item = &Queue> {
        self.quota.queues()
    }

    /// What a queue and everything below it hold, and which share of the cluster that is.
    pub fn queue_use(&mut self, queue: &str) -> QueueUse {
        self.capacity.refresh(&self.state);
        self.quota.use_of(queue, self.capacity.total())
    }

    /// The bound of a queue that keeps a waiting job from starting, if one does.
    pub fn quota_block(&self, job: JobId) -> Option<QuotaBlock> {
        let record = self.jobs.get(&job).filter(|record| record.place.is_some())?;
        let asked = record.gang.smallest(&self.state);
        self.quota.blocked_by(&record.job.queue, &asked, &self.quota_kept(job))
    }

    /// What waits in each queue that somebody described, with everything below it.
    pub fn waiting_below(&self) -> BTreeMap<QueueName, WaitingBelow> {
        let mut all: BTreeMap<QueueName, WaitingBelow> = BTreeMap::new();
        for (key, jobs) in self.pending.counts() {
            let pods: u64 = key.gang.sets.iter().map(|set| u64::from(set.min)).sum();
            for queue in self.quota.way_up(&key.queue) {
                let below = all.entry(queue.name.clone()).or_default();
                below.jobs += jobs;
                below.pods += jobs * pods;
            }
        }
        all
    }

    /// The jobs that wait, each with its queue, in the order in which they are tried within it.
    pub fn waiting_by_queue(&self) -> impl Iterator<Item = (&str, JobId)> {
        self.pending.places().map(|(queue, place)| (queue, place.2))
    }
}
