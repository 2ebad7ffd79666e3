//! The world as plain data.

use dovetail_model::{HoldingId, Snapshot};

use super::World;
use super::standing::{Standing, Told};

impl World {
    /// The world as the engine was told it, for an engine or a judge to start from.
    pub fn snapshot(&mut self, now_ms: u64) -> Snapshot {
        let mut snapshot = Snapshot {
            now_ms,
            topology: self.settings.topology.clone(),
            nodes: self.nodes.told().map(|node| (**node).clone()).collect(),
            ..Snapshot::default()
        };
        for slot in self.pods.in_order().collect::<Vec<_>>() {
            let entry = self.pods.get(slot);
            match (&entry.told, entry.job) {
                (Told::Waiting { requirement, .. }, Some(job)) => {
                    let requirement = std::sync::Arc::clone(requirement);
                    snapshot.jobs.push(self.job(slot, job, requirement));
                }
                (Told::Assumed { .. } | Told::Running { .. }, Some(job)) => {
                    let start_ms = entry.pod.meta.created_ms.min(now_ms);
                    snapshot.jobs.push(self.running_job(slot, job, start_ms));
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
        snapshot.holdings.extend(self.attachments.holdings());
        for (number, holding) in snapshot.holdings.iter_mut().enumerate() {
            holding.id = HoldingId(number as u64);
        }
        snapshot.jobs.sort_by_key(|job| job.id);
        snapshot
    }
}
