//! Kills for memory of pods that are over: they belong to what their owner runs still. Of an owner
//! that runs nothing there is no workload to tell of.

use std::collections::BTreeMap;

use dovetail_facts::{MemoryKills, ObjectRef, Workload};

use super::inventory::Inventory;
use super::life::LifeRecord;
use super::pods::REVISION_LABELS;

/// Adds them to the workloads of the owner: of several to one whose pods ask for the same.
/// `of_group` has the number of the workload of each group of pods.
pub(super) fn add(inventory: &Inventory, workloads: &mut [Workload], of_group: &[usize]) {
    let pods = &inventory.pods;
    let is_ended = |record: &&LifeRecord| {
        let meta = &record.pod.meta;
        record.memory_kills != MemoryKills::default()
            && record.pod.is_over()
            && pods.number_of(&meta.namespace, &meta.name).is_none()
    };
    let ended = pods.lives.values().chain(pods.lives_by_claims.values()).filter(is_ended);
    let mut groups: BTreeMap<ObjectRef, Vec<usize>> = BTreeMap::new();
    for record in ended {
        let Some((nearest, _)) = &record.owner else { continue };
        if groups.is_empty() {
            for (group, workload) in of_group.iter().enumerate() {
                groups.entry(workloads[*workload].owner.clone()).or_default().push(group);
            }
        }
        let hash = REVISION_LABELS.iter().find_map(|key| record.pod.meta.labels.get(key));
        let chain = inventory.owners.chain(nearest, hash);
        let of_owner = chain.last().and_then(|top| groups.get(top)).map_or(&[][..], Vec::as_slice);
        let requests = |group: usize| &pods.list[pods.groups[group].first].pod.requests;
        let asks_alike = |group: &&usize| *requests(**group) == record.pod.requests;
        let group = of_owner.iter().find(asks_alike).or(of_owner.first());
        if let Some(group) = group {
            let workload = &mut workloads[of_group[*group]];
            let known = workload.memory_kills.unwrap_or_default();
            workload.memory_kills = Some(known.and(record.memory_kills));
        }
    }
}
