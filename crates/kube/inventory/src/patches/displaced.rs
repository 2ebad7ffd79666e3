//! Pods that cannot return to their node once it has another taint: each needs room elsewhere
//! when it is replaced.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use dovetail_audit::{NodeChange, Patch};
use dovetail_model::{Resources, Taint};

use super::candidate::PatchCandidate;
use super::reach::PatchReach;
use super::rollout::Unchecked;
use super::room::{is_left, on_node};
use super::trial::{Harmed, Trial, of_group};
use super::trial_nodes::{RequirementId, TrialNodes};

/// Where pods go that patches keep from their own nodes.
pub(super) struct Displacements {
    /// Groups of the pods that run on each node, one for each pod.
    on_node: Vec<Vec<usize>>,
    /// Groups of pods that earlier patches sent to a node.
    guests: BTreeMap<usize, Vec<usize>>,
    full_up_to: FullUpTo,
}

/// Nodes before this one have no room for a pod that asks for so much. Rooms only become fewer
/// while no patch opens a node: the search goes on where the last one for equal pods ended.
#[derive(Default)]
struct FullUpTo(HashMap<(RequirementId, Resources), usize>);

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
        Self { on_node: on_node(reach), guests: BTreeMap::new(), full_up_to: FullUpTo::default() }
    }

    /// Pods that have no room on other nodes once a patch keeps them from their own.
    pub(super) fn harmed_by(&mut self, trial: &mut Trial<'_>, patch: &Patch) -> Vec<Harmed> {
        let Some(change) = tainting(patch) else { return Vec::new() };
        let changed = trial.nodes.places_of(change);
        let residents = self.residents(trial, &changed);
        // Nobody moves unless the patch is applied: what is found while it is tried is forgotten.
        let mut searched = self.starts(trial, change, &residents);
        let Displaced { without_room, .. } =
            trial.with_nodes_changed(change, |trial| searched.displaced(trial, residents));
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
        let Some(change) = tainting(&candidate.patch) else {
            // It may open nodes.
            if candidate.patch.nodes.is_some() {
                self.full_up_to = FullUpTo::default();
            }
            return trial.apply(candidate);
        };
        let changed = trial.nodes.places_of(change);
        let residents = self.residents(trial, &changed);
        trial.apply(candidate);
        if !change.removed.is_empty() {
            self.full_up_to = FullUpTo::default();
        }
        for (group, node) in self.full_up_to.displaced(trial, residents).placed {
            let asked = trial.to_come(group).requests.clone();
            trial.nodes.hold(node, &asked);
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

    /// Where to search for pods that a change may keep from their nodes: nodes that have no room
    /// before it have none after it, unless it opens some.
    fn starts(
        &mut self,
        trial: &mut Trial<'_>,
        change: &NodeChange,
        residents: &[Resident],
    ) -> FullUpTo {
        let mut starts = FullUpTo::default();
        let residents = residents.iter().filter(|of| !of.is_unchecked && change.removed.is_empty());
        for Resident { group, requirement, .. } in residents {
            let pod = trial.to_come(*group);
            let tolerates = |taint: &Taint| pod.tolerations.iter().any(|of| of.accepts(taint));
            let key = (*requirement, pod.requests.clone());
            if starts.0.contains_key(&key) || change.added.iter().all(tolerates) {
                continue;
            }
            let nodes = &mut trial.nodes;
            let start = self.full_up_to.next_with_room(nodes, key.clone(), &BTreeMap::new());
            starts.0.insert(key, start.unwrap_or(nodes.all.len()));
        }
        starts
    }
}

impl FullUpTo {
    /// Where those go that cannot be replaced on their node any more.
    fn displaced(&mut self, trial: &mut Trial<'_>, residents: Vec<Resident>) -> Displaced {
        let mut displaced = Displaced::default();
        let mut more: BTreeMap<usize, Resources> = BTreeMap::new();
        for Resident { group, node, requirement, is_unchecked } in residents {
            if trial.nodes.fits(requirement, node) {
                continue;
            }
            if is_unchecked {
                displaced.without_room.insert(group);
                continue;
            }
            let asked = trial.to_come(group).requests.clone();
            match self.next_with_room(&mut trial.nodes, (requirement, asked.clone()), &more) {
                Some(target) => {
                    more.entry(target).or_default().add_times(&asked, 1);
                    displaced.placed.push((group, target));
                }
                None => drop(displaced.without_room.insert(group)),
            }
        }
        displaced
    }

    /// The first node that accepts pods and has room for one more.
    fn next_with_room(
        &mut self,
        nodes: &mut TrialNodes<'_>,
        key: (RequirementId, Resources),
        more: &BTreeMap<usize, Resources>,
    ) -> Option<usize> {
        let (requirement, asked) = &key;
        let count = nodes.all.len();
        let first = self.0.get(&key).copied().unwrap_or(0);
        let mut has_room = |node: usize| {
            let mut used = Cow::Borrowed(&nodes.used[node]);
            if let Some(more) = more.get(&node) {
                used.to_mut().add_times(more, 1);
            }
            !nodes.closed[node]
                && is_left(&nodes.all[node].allocatable, &used, asked)
                && nodes.fits(*requirement, node)
        };
        let found = (first..count).find(|node| has_room(*node));
        self.0.insert(key, found.unwrap_or(count));
        found
    }
}
