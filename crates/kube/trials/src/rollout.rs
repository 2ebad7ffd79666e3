//! Whether a roll-out finds room for the pods that it starts. Where it starts one before it stops
//! an old one, it waits without room, or preempts others if the patch gives the pods a priority.

use std::collections::BTreeSet;

use dovetail_facts::ObjectRef;
use dovetail_inventory::reach::{PatchReach, PodGroup, rules};
use dovetail_model::{Taint, TaintEffect};
use dovetail_objects::Pod;
use dovetail_patches::Patch;
use dovetail_translate::NotYet;

use super::candidate::PatchCandidate;
use super::moves::Moves;
use super::rolling_update::RollingUpdate;
use super::trial::{Harmed, Trial};

/// What keeps a patch from being written, or from being written without a warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RollOut {
    /// Every pod has a place.
    Fits,
    /// Pods can be replaced in place; the extra pod that is started first has none.
    Waits,
    /// Pods have a place on nodes with taints that they tolerate by no key.
    Reserved,
    /// The patch gives the new pods a priority class, by which they preempt others.
    Preempts,
    /// These pods have to move, and have no place.
    NoRoom(Vec<ObjectRef>),
    /// Pods have to move, and these need them beside them.
    LeavesAlone(Vec<Harmed>),
    /// These pods have to move, and this decides where they can run.
    Unchecked(Vec<ObjectRef>, Unchecked),
    /// Present pods keep new ones off their nodes, and none is terminated before new ones run, or
    /// before the pods run that do not run now: there are so many of these.
    Jams(usize),
}

/// What is not known of the nodes that pods would move to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unchecked {
    /// Whether they have room: not all pods were read.
    Room,
    /// Whether the volumes of the pods can be used there: these were not read.
    Volumes,
    /// Whether what is in directories of their nodes is there.
    HostPath,
    /// Whether any node takes a new pod: as their objects are, the engine places none.
    Unplaced,
    /// Whether the pods there let them run beside them.
    Neighbors,
    /// Which devices their claims would get there.
    Claims,
    /// Whether the node takes them that their template names: no other one does.
    OwnNode,
}

impl Unchecked {
    /// What is not known of the nodes that pods of a group could move to.
    pub(super) fn of(reach: &PatchReach, group: &PodGroup) -> Option<Self> {
        let volumes = &reach.volumes;
        match () {
            () if group.is_bound_by_name => Some(Self::OwnNode),
            () if group.has_claims => Some(Self::Claims),
            () if reach.lacks_pods => Some(Self::Room),
            () if group.has_neighbors => Some(Self::Neighbors),
            () if group.has_host_path => Some(Self::HostPath),
            () => match dovetail_translate::pod(&group.pod, volumes, &rules()).err()? {
                // A pod that runs has its claims: they were not read.
                NotYet::ClaimMissing { .. } | NotYet::VolumeMissing { .. } => Some(Self::Volumes),
                _ => Some(Self::Unplaced),
            },
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Room => {
                "some pods were not read, so it is unknown whether other nodes have room. 1. run the audit with all \
                 pods (-A, all readable); 2. apply the patch of that audit"
            }
            Self::Volumes => {
                "their PersistentVolumeClaims were not read. 1. run the audit with persistentvolumeclaims and \
                 persistentvolumes; 2. apply the patch of that audit"
            }
            Self::HostPath => {
                "they use directories of their nodes (hostPath volumes), whose files are on no other node. 1. copy \
                 the files, or use a volume that other nodes can mount; 2. change the manifest manually"
            }
            Self::Unplaced => {
                "the state of their claims or their requests does not let dovetail determine the nodes that accept \
                 new pods. 1. check the claims (kubectl get pvc,resourceclaims) and make sure that the new nodes can \
                 use their volumes; 2. change the manifest manually"
            }
            Self::Neighbors => {
                "they have required pod affinity or anti-affinity, hard spread constraints or host ports, which \
                 dovetail does not check on other nodes. 1. make sure that their new nodes satisfy these rules; 2. \
                 change the manifest manually"
            }
            Self::Claims => {
                "they have ResourceClaims, and dovetail does not check which devices these would get on other nodes. \
                 1. make sure that other nodes have free devices for the claims; 2. change the manifest manually"
            }
            Self::OwnNode => {
                "the kubelet would reject each new pod, because spec.nodeName in the template names that node. \
                 1. remove spec.nodeName from the template; 2. run the audit again to get the patch"
            }
        }
    }
}

/// What to know of a roll-out that finds no room for an extra pod.
const WAITS: &str = "no node has room for the extra pod that the rolling update starts first: set \
                     spec.strategy.rollingUpdate to maxSurge 0 and maxUnavailable 1, or the \
                     rollout waits";

/// What to know of pods that tolerate every taint.
const RESERVED: &str = "its pods tolerate every taint and may move to nodes that a taint reserves \
                        for other work: tolerate only the taints of the nodes that they may use";

impl RollOut {
    /// What to know before a patch is applied that is written.
    pub(super) fn warning(&self) -> Option<&'static str> {
        match self {
            Self::Waits => Some(WAITS),
            Self::Reserved => Some(RESERVED),
            _ => None,
        }
    }

    /// What to do first where the patch is not written, and the pods that it would harm.
    pub(super) fn safe_order(self, patch: &Patch) -> Option<(String, Vec<ObjectRef>)> {
        let ObjectRef { kind, namespace, name } = &patch.object;
        let owner = format!("{kind} {namespace}/{name}");
        match self {
            Self::Fits | Self::Waits | Self::Reserved => None,
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
            Self::LeavesAlone(alone) => {
                let words = |of: &Harmed| {
                    let ObjectRef { kind, namespace, name } = &of.owner;
                    format!("{kind} {namespace}/{name}")
                };
                let others: BTreeSet<String> = alone.iter().map(words).collect();
                let others = others.into_iter().collect::<Vec<_>>().join(", ");
                let order = format!(
                    "pods of {owner} would have to move, and pods of {others} need them on the same node or in the \
                     same domain (required pod affinity): these could not be scheduled again. 1. relax this affinity, \
                     or let both move; 2. run the audit again to get the patch"
                );
                Some((order, alone.into_iter().flat_map(|harmed| harmed.pods).collect()))
            }
            Self::Unchecked(pods, why) => {
                let what = match why {
                    Unchecked::OwnNode => "lack room on their node",
                    _ => "would have to move",
                };
                let order = format!("pods of {owner} {what}, and {}", why.words());
                Some((order, pods))
            }
            Self::Jams(missing) => Some((jams(kind, &owner, missing), Vec::new())),
        }
    }
}

/// What to do before pods are replaced that keep new pods off their nodes, while so many of them do
/// not run.
fn jams(kind: &str, owner: &str, missing: usize) -> String {
    let (why, step) = match kind {
        "StatefulSet" => {
            let pods = if missing == 1 { "pod that does" } else { "pods that do" };
            let why = format!("the rolling update would wait for its {missing} {pods} not run");
            let step = format!(
                "scale {owner} down to the pods that run, or free nodes until all of them run"
            );
            (why, step)
        }
        "Rollout" => {
            let step = format!(
                "set spec.strategy of {owner} to canary with a maxUnavailable greater than \
                 {missing}, without blueGreen and trafficRouting, or add nodes that its pods can use"
            );
            ("its strategy terminates no pod before new pods run".to_owned(), step)
        }
        _ => {
            let unavailable = missing + 1;
            let step = format!(
                "set spec.strategy.rollingUpdate of {owner} to maxSurge 0 and maxUnavailable \
                 {unavailable}, or spec.strategy.type to Recreate, which terminates all pods at once"
            );
            ("the rolling update terminates no pod before a new pod runs".to_owned(), step)
        }
    };
    format!(
        "required anti-affinity or host ports of the current pods of {owner} keep new pods off \
         their nodes, and {why}. 1. {step}; 2. run the audit again to get the patch"
    )
}

/// What to do before pods get a priority, where their roll-out would preempt others.
fn preempts(patch: &Patch, owner: &str) -> String {
    if !RollingUpdate::of(patch).is_some_and(|update| update.surges) {
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

impl Trial<'_> {
    /// How the pods fare that a patch replaces.
    pub(super) fn roll_out(&mut self, candidate: &PatchCandidate) -> RollOut {
        let patch = &candidate.patch;
        let surges = RollingUpdate::of(patch).is_some_and(|update| update.surges);
        let reach = self.nodes.reach;
        let mut fits = RollOut::Fits;
        for (place, change) in candidate.changes().filter(|(_, change)| change.replaces_pods) {
            let group = &reach.groups[place];
            let pod = change.applied(&group.pod);
            let new = (self.nodes.requirement_of(&pod), &pod.requests);
            if !group.is_daemon {
                let Moves { placed, moved } = self.nodes.moves(group, new);
                let pods = || moved.iter().map(|place| named(group, *place)).collect();
                if let Some(why) = Unchecked::of(reach, group).filter(|_| !moved.is_empty()) {
                    return RollOut::Unchecked(pods(), why);
                }
                if placed.len() < moved.len() {
                    return RollOut::NoRoom(pods());
                }
                let moved: BTreeSet<usize> = moved.iter().copied().collect();
                let alone = self.company_seekers.left_alone(place, &moved, &placed);
                if !alone.is_empty() {
                    return RollOut::LeavesAlone(alone);
                }
                if let Some(missing) = self.nodes.jams((patch, &self.index), group, new) {
                    return RollOut::Jams(missing);
                }
                if placed.iter().any(|node| is_reserved(reach, group, (&pod, *node))) {
                    fits = RollOut::Reserved;
                }
            }
            if surges && group.is_bound_by_name && !self.nodes.take_one_more(group, new) {
                let pods = (0..group.pods.len()).map(|place| named(group, place));
                return RollOut::Unchecked(pods.collect(), Unchecked::OwnNode);
            }
            let runs = group.pods.iter().any(|(_, node)| node.is_some());
            let is_lost = |node: &Option<usize>| node.is_none_or(|node| self.nodes.closed[node]);
            let starts = change.prioritises() && group.pods.iter().any(|(_, node)| is_lost(node));
            if (surges && runs || starts) && !self.nodes.has_room_for(new.0, new.1) {
                if change.prioritises() {
                    return RollOut::Preempts;
                }
                if fits == RollOut::Fits {
                    fits = RollOut::Waits;
                }
            }
        }
        fits
    }

    /// Takes the pods as moved that a patch moves.
    pub(super) fn move_pods(&mut self, candidate: &PatchCandidate) {
        let reach = self.nodes.reach;
        for (place, change) in candidate.changes().filter(|(_, change)| change.replaces_pods) {
            let group = &reach.groups[place];
            if !group.is_daemon {
                let pod = change.applied(&group.pod);
                let requirement = self.nodes.requirement_of(&pod);
                for node in self.nodes.moves(group, (requirement, &pod.requests)).placed {
                    self.nodes.hold(node, &pod.requests);
                }
            }
        }
    }
}

/// Whether a node has a taint that a pod tolerates by no key, and that no node of the pods of its
/// group has.
fn is_reserved(reach: &PatchReach, group: &PodGroup, (pod, node): (&Pod, usize)) -> bool {
    let taints = |node: usize| &reach.nodes[node].taints;
    let is_own = |taint: &Taint| {
        let mut own = group.pods.iter().filter_map(|(_, node)| *node);
        own.any(|node| taints(node).contains(taint))
    };
    let is_meant = |taint: &Taint| {
        taint.effect == TaintEffect::PreferNoSchedule
            || pod.tolerations.iter().any(|of| of.names(taint))
            || is_own(taint)
    };
    !taints(node).iter().all(is_meant)
}

/// The reference to a pod of a group.
fn named(group: &PodGroup, place: usize) -> ObjectRef {
    ObjectRef::new("Pod", &group.owner.namespace, &group.pods[place].0)
}
