//! Pods that cannot return to their node once it has another taint: each needs room elsewhere
//! when it is replaced.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_inventory::reach::PatchReach;
use dovetail_patches::{NodeChange, Patch};

use super::candidate::PatchCandidate;
use super::rollout::Unchecked;
use super::room::on_node;
use super::trial::{Harmed, Trial, of_group};
use super::trial_nodes::RequirementId;

/// Where pods go that patches keep from their own nodes.
pub(super) struct Displacements {
    /// Groups of the pods that run on each node, one for each pod.
    on_node: Vec<Vec<usize>>,
    /// Groups of pods that earlier patches sent to a node.
    guests: BTreeMap<usize, Vec<usize>>,
}

/// A pod that runs on a node and could be replaced there.
struct Resident {
    /// The group of the pod.
    group: usize,
    node: usize,
    requirement: RequirementId,
    /// Whether something is not known of the nodes that it could move to.
    is_unchecked: bool,
}

/// What becomes of residents when their nodes have changed.
#[derive(Default)]
struct Displaced {
    /// Groups of those that have room on another node, with that node.
    placed: Vec<(usize, usize)>,
    /// Groups of those that have none.
    without_room: BTreeSet<usize>,
}

/// A change that may keep pods from their nodes.
fn tainting(patch: &Patch) -> Option<&NodeChange> {
    patch.nodes.as_ref().filter(|change| !change.added.is_empty())
}

impl Displacements {
    pub(super) fn new(reach: &PatchReach) -> Self {
        Self { on_node: on_node(reach), guests: BTreeMap::new() }
    }

    /// Pods that have no room on other nodes once a patch keeps them from their own.
    pub(super) fn harmed_by(&self, trial: &mut Trial<'_>, patch: &Patch) -> Vec<Harmed> {
        let Some(change) = tainting(patch) else { return Vec::new() };
        let changed = trial.nodes.places_of(change);
        let residents = self.residents(trial, &changed);
        let without_room = trial.with_nodes_changed(change, |trial| {
            let Displaced { placed, without_room } = displaced(residents, trial);
            // Nobody moves unless the patch is applied.
            for (group, node) in placed {
                let asked = trial.to_come(group).requests.clone();
                trial.nodes.release(node, &asked);
            }
            without_room
        });
        let harmed = without_room.into_iter().filter_map(|place| {
            let group = &trial.nodes.reach.groups[place];
            let on = |node: &Option<usize>| node.is_some_and(|node| changed.contains(&node));
            let pods = group.pods.iter().enumerate().filter(|(_, (_, node))| on(node));
            let here: BTreeSet<usize> = pods.map(|(pod, _)| pod).collect();
            // Those that an earlier patch sent here run elsewhere.
            let all = || (0..group.pods.len()).collect();
            let pods = if here.is_empty() { all() } else { here };
            Some(Harmed { has_no_room: true, ..of_group(group, &pods)? })
        });
        harmed.collect()
    }

    /// Applies a patch; pods that it keeps from their nodes count where they go.
    pub(super) fn apply(&mut self, trial: &mut Trial<'_>, candidate: &PatchCandidate) {
        let Some(change) = tainting(&candidate.patch) else { return trial.apply(candidate) };
        let changed = trial.nodes.places_of(change);
        let residents = self.residents(trial, &changed);
        trial.apply(candidate);
        for (group, node) in displaced(residents, trial).placed {
            self.guests.entry(node).or_default().push(group);
        }
    }

    /// The pods on some nodes that could be replaced there now, those counted that earlier patches
    /// have sent there. Pods of DaemonSets belong to their node, and a pod without an owner is not
    /// replaced.
    fn residents(&self, trial: &mut Trial<'_>, nodes: &BTreeSet<usize>) -> Vec<Resident> {
        let reach = trial.nodes.reach;
        let mut residents: Vec<Resident> = Vec::new();
        for node in nodes.iter().copied() {
            let mut groups = self.on_node[node].clone();
            groups.extend(self.guests.get(&node).into_iter().flatten());
            groups.sort_unstable();
            for group in groups {
                let of = &reach.groups[group];
                if of.is_daemon || of.owner.kind == "Pod" {
                    continue;
                }
                let known = residents.last().filter(|last| last.group == group);
                let (requirement, mut is_unchecked) = match known {
                    Some(known) => (known.requirement, known.is_unchecked),
                    None => (trial.requirement_to_come(group), Unchecked::of(reach, of).is_some()),
                };
                // Others may need it beside them.
                is_unchecked |= trial.company_seekers.need(group, node);
                if trial.nodes.fits(requirement, node) {
                    residents.push(Resident { group, node, requirement, is_unchecked });
                }
            }
        }
        residents
    }
}

/// Where those go that cannot be replaced on their node any more. They are counted there.
fn displaced(residents: Vec<Resident>, trial: &mut Trial<'_>) -> Displaced {
    let mut displaced = Displaced::default();
    for Resident { group, node, requirement, is_unchecked } in residents {
        if trial.nodes.fits(requirement, node) {
            continue;
        }
        if is_unchecked {
            displaced.without_room.insert(group);
            continue;
        }
        let asked = trial.to_come(group).requests.clone();
        let target = trial.nodes.first_with_room(requirement, &asked);
        if target < trial.nodes.all.len() {
            trial.nodes.hold(target, &asked);
            displaced.placed.push((group, target));
        } else {
            displaced.without_room.insert(group);
        }
    }
    displaced
}
