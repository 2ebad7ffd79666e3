//! The world as plain data.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{HoldingId, Job, JobId, PodId, Snapshot};

use super::World;
use super::pods::Slot;
use super::standing::{Standing, Told};

impl World {
    /// The world as the engine was told it, for an engine or a judge to start from.
    pub fn snapshot(&mut self, now_ms: u64) -> Snapshot {
        let rest = self.without_nodes(now_ms);
        Snapshot { nodes: self.nodes.told().map(|node| (**node).clone()).collect(), ..rest }
    }

    /// As [`Self::snapshot`], for whoever needs the world no more: its nodes are not copied.
    pub fn into_snapshot(mut self, now_ms: u64) -> Snapshot {
        let rest = self.without_nodes(now_ms);
        let nodes = self.nodes.into_told().map(Arc::unwrap_or_clone);
        Snapshot { nodes: nodes.collect(), ..rest }
    }

    fn without_nodes(&mut self, now_ms: u64) -> Snapshot {
        let mut snapshot = Snapshot {
            now_ms,
            topology: self.network.topology.clone(),
            queues: self.queues.told().cloned().collect(),
            ..Snapshot::default()
        };
        let mut in_jobs: BTreeMap<JobId, BTreeMap<PodId, Slot>> = BTreeMap::new();
        for slot in self.pods.in_order().collect::<Vec<_>>() {
            let entry = self.pods.get(slot);
            match (&entry.told, entry.id) {
                (Told::Waiting { requirement, .. }, Some(pod)) => {
                    let requirement = Arc::clone(requirement);
                    snapshot.jobs.push(self.job(slot, pod.job, requirement));
                }
                (Told::Assumed { .. } | Told::Running { .. }, Some(pod)) => {
                    let start_ms = entry.pod.meta.created_ms.min(now_ms);
                    match entry.is_in_job {
                        true => {
                            in_jobs.entry(pod.job).or_default().insert(pod, slot);
                        }
                        false => {
                            let job = self.running_job(slot, pod.job, start_ms);
                            let queue = self.queues.counted_for(pod.job).to_owned();
                            snapshot.jobs.push(Job { queue, ..job });
                        }
                    }
                }
                _ => {}
            }
            match self.standing(slot) {
                Standing::Assumed(holding)
                | Standing::Running(holding)
                | Standing::Foreign(holding) => snapshot.holdings.push(*holding),
                Standing::Nothing | Standing::Refused(_) | Standing::Waiting(_) => {}
            }
        }
        snapshot.jobs.extend(self.gangs.waiting_jobs().cloned());
        for (job, pods) in in_jobs {
            let job = self.running_gang(job, &pods, now_ms);
            snapshot.jobs.push(job);
        }
        snapshot.holdings.extend(self.attachments.holdings());
        snapshot.holdings.extend(self.kept_holdings());
        for (number, holding) in snapshot.holdings.iter_mut().enumerate() {
            holding.id = HoldingId(number as u64);
        }
        snapshot.jobs.sort_by_key(|job| job.id);
        snapshot.budgets = self.told_budgets();
        self.restore_claims(&mut snapshot);
        snapshot
    }
}
