//! Whether a roll-out finds room for the pods that it starts. Where it starts one before it stops
//! an old one, it waits without room, or preempts others if the patch gives the pods a priority.

use std::sync::Arc;

use dovetail_audit::{Edited, Json, ObjectRef, Patch};
use dovetail_model::Resources;
use dovetail_objects::Pod;

use super::reach::{PatchReach, PodGroup};
use super::trial::Trial;

/// What keeps a patch from being written, or from being written without a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RollOut {
    /// Every pod has a place.
    Fits,
    /// Pods can be replaced in place; the extra pod that is started first has none.
    Waits,
    /// The patch gives the new pods a priority class, by which they preempt others.
    Preempts,
    /// These pods have to move, and have no place.
    NoRoom(Vec<ObjectRef>),
    /// These pods have to move, and other pods decide where they can run.
    Unchecked(Vec<ObjectRef>),
}

/// What to know of a roll-out that finds no room for an extra pod.
pub(super) const WAITS: &str = "no node has room for the extra pod that the rolling update starts first: set \
                                spec.strategy.rollingUpdate to maxSurge 0 and maxUnavailable 1, or the \
                                rollout waits";

impl RollOut {
    /// What to do first where the patch is not written, and the pods that it would harm.
    pub(super) fn safe_order(self, patch: &Patch) -> Option<(String, Vec<ObjectRef>)> {
        let ObjectRef { kind, namespace, name } = &patch.object;
        let owner = format!("{kind} {namespace}/{name}");
        match self {
            Self::Fits | Self::Waits => None,
            Self::Preempts => Some((preempts(patch, &owner), Vec::new())),
            Self::NoRoom(pods) => {
                let count = pods.len();
                let these = if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") };
                let order = format!(
                    "{these} of {owner} would have to move, and no other node has room for them. 1. add nodes that \
                     they can use, or free capacity there; 2. run the audit again to get the patch"
                );
                Some((order, pods))
            }
            Self::Unchecked(pods) => {
                let order = format!(
                    "pods of {owner} would have to move, and they have required pod affinity or anti-affinity, hard \
                     spread constraints or host ports, which dovetail does not check on other nodes. 1. make sure \
                     that their new nodes satisfy these rules; 2. change the manifest manually"
                );
                Some((order, pods))
            }
        }
    }
}

/// What to do before pods get a priority, where their roll-out would preempt others.
fn preempts(patch: &Patch, owner: &str) -> String {
    if !patch.edited.as_ref().is_some_and(|edited| surges(patch, edited)) {
        return format!(
            "a pod of {owner} has no node that accepts it or has room for it, and with the new priority it would \
             preempt running pods. 1. free or add GPUs until all its pods run; 2. run the audit again to get the \
             patch"
        );
    }
    format!(
        "the rolling update starts a pod before it terminates one, no node has room for it, and with the new \
         priority it would preempt running pods. 1. set spec.strategy.rollingUpdate of {owner} to maxSurge 0 and \
         maxUnavailable 1; 2. run the audit again to get the patch"
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

/// Where the pods of a group go that cannot be replaced on their own nodes.
struct Moves {
    /// Nodes of those that have a place.
    placed: Vec<usize>,
    /// Places in the group of all that move.
    moved: Vec<usize>,
}

impl Trial<'_> {
    /// How the pods fare that a patch replaces.
    pub(super) fn roll_out(&mut self, patch: &Patch) -> RollOut {
        let surges = patch.edited.as_ref().is_some_and(|edited| surges(patch, edited));
        let changes = self.template_changes(patch);
        let mut waits = false;
        for (place, change) in changes.into_iter().filter(|(_, change)| change.replaces_pods) {
            let group = &self.reach.groups[place];
            let pod = change.applied(&group.pod);
            if !group.is_daemon {
                let Moves { placed, moved } = self.moves(group, &pod);
                let pods = || moved.iter().map(|place| named(group, *place)).collect();
                if group.has_neighbors && !moved.is_empty() {
                    return RollOut::Unchecked(pods());
                }
                if placed.len() < moved.len() {
                    return RollOut::NoRoom(pods());
                }
            }
            let runs = group.pods.iter().any(|(_, node)| node.is_some());
            let is_lost = |node: &Option<usize>| node.is_none_or(|node| self.closed[node]);
            let starts = change.prioritises() && group.pods.iter().any(|(_, node)| is_lost(node));
            if (surges && runs || starts) && !self.has_room_for(&pod) {
                match change.prioritises() {
                    true => return RollOut::Preempts,
                    false => waits = true,
                }
            }
        }
        if waits { RollOut::Waits } else { RollOut::Fits }
    }

    /// Takes the pods as moved that a patch moves.
    pub(super) fn move_pods(&mut self, patch: &Patch) {
        let changes = self.template_changes(patch);
        for (place, change) in changes.into_iter().filter(|(_, change)| change.replaces_pods) {
            let group = &self.reach.groups[place];
            if !group.is_daemon {
                let pod = change.applied(&group.pod);
                for node in self.moves(group, &pod).placed {
                    self.hold(node, &pod.requests);
                }
            }
        }
    }

    /// The pods that run and whose replacements cannot, or have to, run on another node.
    fn moves(&mut self, group: &PodGroup, pod: &Pod) -> Moves {
        let requirement = Arc::new(self.requirement(pod));
        let mut moves = Moves { placed: Vec::new(), moved: Vec::new() };
        let on_nodes = group.pods.iter().enumerate();
        for (place, node) in on_nodes.filter_map(|(place, (_, node))| Some((place, (*node)?))) {
            if !self.stays(&requirement, node, (&group.pod.requests, &pod.requests)) {
                moves.moved.push(place);
            }
        }
        let mut used = self.used.clone();
        for (node, used) in used.iter_mut().enumerate() {
            if moves.placed.len() == moves.moved.len() {
                break;
            }
            if self.closed[node] || !self.fits(&requirement, node) {
                continue;
            }
            while moves.placed.len() < moves.moved.len()
                && is_left(&self.nodes[node].allocatable, used, &pod.requests)
            {
                used.add_times(&pod.requests, 1);
                moves.placed.push(node);
            }
        }
        moves
    }

    /// Whether a pod that runs on a node can be replaced there by one that asks for something else.
    fn stays(
        &mut self,
        requirement: &Arc<dovetail_model::Requirement>,
        node: usize,
        (old, new): (&Resources, &Resources),
    ) -> bool {
        if self.closed[node] || !self.fits(requirement, node) {
            return false;
        }
        let mut used = self.used[node].clone();
        used.add_times(old, -1);
        // What is overbooked already is no matter of the patch.
        is_left(&self.nodes[node].allocatable, &used, new) || is_within(new, old)
    }

    /// Whether there is room for one more pod.
    fn has_room_for(&mut self, pod: &Pod) -> bool {
        let requirement = Arc::new(self.requirement(pod));
        self.has_room(requirement, pod.requests.clone())
    }
}

/// The reference to a pod of a group.
fn named(group: &PodGroup, place: usize) -> ObjectRef {
    ObjectRef::new("Pod", &group.owner.namespace, &group.pods[place].0)
}

/// Whether nothing is asked for beyond what was.
fn is_within(new: &Resources, old: &Resources) -> bool {
    is_left(old, &Resources::default(), new)
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
