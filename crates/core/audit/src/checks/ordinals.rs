//! Replicas with ordinals: a StatefulSet that gets fewer replicas loses those with the highest
//! ordinals, whichever of them are idle, and a LeaderWorkerSet its last groups.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Facts, Workload};

/// The kind whose replicas are groups of pods.
pub(super) const GROUPS: &str = "LeaderWorkerSet";

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
    for of in facts.workloads.iter().filter(|of| of.owner == workload.owner) {
        for name in of.pods.iter().map(|pod| pod.name.as_str()) {
            if let Some((set, ordinal)) = ordinal(of, name) {
                sets.entry(set).or_default().entry(ordinal).or_default().push(name);
            } else if idle.contains(name) {
                last.insert(name);
            }
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
    // The StatefulSets of its groups number the pods within one, which do not go alone.
    let owners = workload.made_by.iter().chain([&workload.owner]);
    let mut of_groups = owners.filter(|of| of.kind == GROUPS);
    if let Some(found) = of_groups.find_map(|of| group(&of.name, pod)) {
        return Some(found);
    }
    if !has_ordinals(workload) {
        return None;
    }
    let (set, ordinal) = pod.rsplit_once('-')?;
    Some((set, ordinal.parse().ok()?))
}

/// The group of a pod of a LeaderWorkerSet: `SET-GROUP`, or `SET-GROUP-WORKER`.
fn group<'n>(set: &str, pod: &'n str) -> Option<(&'n str, u64)> {
    let rest = pod.strip_prefix(set)?.strip_prefix('-')?;
    Some((&pod[..set.len()], rest.split('-').next()?.parse().ok()?))
}
