//! What pods hold of nodes, and what is left.

use dovetail_inventory::reach::PatchReach;
use dovetail_model::Resources;

/// What pods hold of each node, by its place.
pub(super) fn used(reach: &PatchReach) -> Vec<Resources> {
    let mut used = vec![Resources::default(); reach.nodes.len()];
    for group in &reach.groups {
        for place in group.pods.iter().filter_map(|(_, place)| *place) {
            used[place].add_times(&group.pod.requests, 1);
        }
    }
    used
}

/// Groups of the pods that run on each node, by its place, one for each pod.
pub(super) fn on_node(reach: &PatchReach) -> Vec<Vec<usize>> {
    let mut on_node = vec![Vec::new(); reach.nodes.len()];
    for (place, group) in reach.groups.iter().enumerate() {
        group.pods.iter().filter_map(|(_, node)| *node).for_each(|node| on_node[node].push(place));
    }
    on_node
}

/// Whether a pod that asks for so much leaves no more room than there was: none of the amounts, as
/// computed from the change of a template, is below zero.
pub(super) fn only_takes(asked: &Resources) -> bool {
    let Resources { cpu_milli, memory_bytes, ephemeral_bytes, pod_slots, extended } = asked;
    let amounts = [cpu_milli, memory_bytes, ephemeral_bytes, pod_slots];
    amounts.into_iter().chain(extended.values()).all(|amount| *amount >= 0)
}

/// Whether there is enough beside what is used.
pub(super) fn is_left(all: &Resources, used: &Resources, asked: &Resources) -> bool {
    let amount = |of: &Resources, name: &str| of.extended.get(name).copied().unwrap_or(0);
    let left = |all: i64, used: i64, asked: i64| asked <= 0 || asked <= all.saturating_sub(used);
    left(all.cpu_milli, used.cpu_milli, asked.cpu_milli)
        && left(all.memory_bytes, used.memory_bytes, asked.memory_bytes)
        && left(all.ephemeral_bytes, used.ephemeral_bytes, asked.ephemeral_bytes)
        && left(all.pod_slots, used.pod_slots, asked.pod_slots)
        && asked
            .extended
            .iter()
            .all(|(name, asked)| left(amount(all, name), amount(used, name), *asked))
}
