//! Replicas with ordinals: a StatefulSet that gets fewer replicas loses those with the highest
//! ordinals, whichever of them are idle, and a LeaderWorkerSet its last groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Facts, Workload};

const GROUPS: &str = "LeaderWorkerSet";

/// Whether fewer replicas are those without the highest ordinals.
pub(super) fn has_ordinals(workload: &Workload) -> bool {
    let made_by = workload.made_by.iter().chain([&workload.owner]);
    made_by.map(|of| of.kind.as_str()).any(|kind| kind == "StatefulSet" || kind == GROUPS)
}

/// Of these pods of an owner those that go first: with the highest ordinals, as far as no other pod
/// is between them. Pods without ordinals (of another object of the same owner) have no order.
pub(super) fn last_of<'f>(
    facts: &'f Facts,
    workload: &Workload,
    idle: &BTreeSet<&str>,
) -> BTreeSet<&'f str> {
    let mut last = BTreeSet::new();
    let mut sets: BTreeMap<&str, BTreeMap<u64, Vec<&str>>> = BTreeMap::new();
    // Pods of two templates, while a rollout goes on, are replicas of one object.
    let of_owner = facts.workloads.iter().filter(|of| of.owner == workload.owner);
    for pod in of_owner.flat_map(|of| &of.pods) {
        let name = pod.name.as_str();
        if let Some((set, ordinal)) = ordinal(workload, name) {
            sets.entry(set).or_default().entry(ordinal).or_default().push(name);
        } else if idle.contains(name) {
            last.insert(name);
        }
    }
    for pods_of in sets.into_values() {
        let from_the_end = pods_of.into_values().rev();
        let idle = from_the_end.take_while(|pods| pods.iter().all(|name| idle.contains(*name)));
        last.extend(idle.flatten());
    }
    last
}

/// What numbers a pod, and its ordinal there: that of its group where a replica is a group of pods.
fn ordinal<'n>(workload: &Workload, pod: &'n str) -> Option<(&'n str, u64)> {
    let owner = &workload.owner;
    if owner.kind == GROUPS {
        let rest = pod.strip_prefix(owner.name.as_str())?.strip_prefix('-')?;
        return Some((&pod[..owner.name.len()], rest.split('-').next()?.parse().ok()?));
    }
    let (set, ordinal) = pod.rsplit_once('-')?;
    Some((set, ordinal.parse().ok()?))
}
