//! Whether a roll-out finds room for the pods that it starts before it stops old ones. Without room
//! it waits, or, where the patch gives the pods a priority, preempts others.

use std::sync::Arc;

use dovetail_audit::{Edited, Json, Patch};
use dovetail_model::Resources;

use super::reach::PatchReach;
use super::template::TemplateChange;
use super::trial::Trial;

/// What a roll-out lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoRoom {
    /// The patch gives the new pods a priority class, by which they preempt others.
    pub(super) preempts: bool,
}

/// What to know of a roll-out that finds no room.
pub(super) const WAITS: &str = "no node has room for the extra pod that the rolling update starts first: set \
                                spec.strategy.rollingUpdate to maxSurge 0 and maxUnavailable 1, or the \
                                rollout waits";

/// What to do before pods get a priority, where their roll-out would preempt others.
pub(super) fn safe_order(patch: &Patch) -> String {
    if !patch.edited.as_ref().is_some_and(|edited| surges(patch, edited)) {
        return format!(
            "a pod of {} {}/{} has no node that accepts it or has room for it, and with the new priority it would \
             preempt running pods. 1. free or add GPUs until all its pods run; 2. run the audit again to get the \
             patch",
            patch.object.kind, patch.object.namespace, patch.object.name
        );
    }
    format!(
        "the rolling update starts a pod before it terminates one, no node has room for it, and with the new \
         priority it would preempt running pods. 1. set spec.strategy.rollingUpdate of {} {}/{} to maxSurge 0 and \
         maxUnavailable 1; 2. run the audit again to get the patch",
        patch.object.kind, patch.object.namespace, patch.object.name
    )
}

/// Whether pods of a Deployment are replaced one more than there are: Kubernetes rounds a
/// percentage of `maxSurge` up, and its default is 25%.
pub(super) fn surges(patch: &Patch, edited: &Edited) -> bool {
    let strategy = |path: &[&str]| edited.after.at(path);
    let is_recreated =
        strategy(&["spec", "strategy", "type"]).and_then(Json::text) == Some("Recreate");
    let none = match strategy(&["spec", "strategy", "rollingUpdate", "maxSurge"]) {
        Some(Json::Integer(0)) => true,
        Some(Json::Text(text)) => text.trim_end_matches('%') == "0",
        _ => false,
    };
    patch.object.kind == "Deployment" && !is_recreated && !none
}

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

impl Trial<'_> {
    /// What the roll-out of a patch lacks, if it starts pods before it stops others, or pods that
    /// have no node that takes them.
    pub(super) fn lacks_room(&mut self, patch: &Patch) -> Option<NoRoom> {
        let surges = patch.edited.as_ref().is_some_and(|edited| surges(patch, edited));
        let changes = self.template_changes(patch);
        let (place, change) = changes.into_iter().find(|(_, change)| change.replaces_pods)?;
        let group = &self.reach.groups[place];
        let runs = group.pods.iter().any(|(_, node)| node.is_some());
        let is_lost = |node: &Option<usize>| node.is_none_or(|node| self.closed[node]);
        let starts = change.prioritises() && group.pods.iter().any(|(_, node)| is_lost(node));
        ((surges && runs || starts) && !self.has_room_for(place, &change))
            .then(|| NoRoom { preempts: change.prioritises() })
    }

    /// Whether there is room for one more pod of a group, as changed.
    fn has_room_for(&mut self, place: usize, change: &TemplateChange) -> bool {
        let pod = change.applied(&self.reach.groups[place].pod);
        let requirement = Arc::new(self.requirement(&pod));
        self.has_room(requirement, pod.requests)
    }
}

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
