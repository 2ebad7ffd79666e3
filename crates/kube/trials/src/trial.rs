//! Patches tried one after the other on the nodes and pods that were read.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::ObjectRef;
use dovetail_inventory::facts::QuotaRoom;
use dovetail_inventory::reach::{PatchReach, PodGroup};
use dovetail_model::Taint;
use dovetail_objects::Pod;
use dovetail_patches::NodeChange;

use super::candidate::PatchCandidate;
use super::company::CompanySeekers;
use super::group_index::GroupIndex;
use super::template::REPLACING;
use super::trial_nodes::{RequirementId, TrialNodes};

/// Pods of one owner that a patch would make unschedulable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Harmed {
    /// The top owner.
    pub(super) owner: ObjectRef,
    pub(super) pods: Vec<ObjectRef>,
    /// There are other nodes that they could use, and these have no room for them.
    pub(super) has_no_room: bool,
}

/// What pods of a group are like.
struct PodVariant {
    pod: Pod,
    /// What it asks of nodes, once somebody wanted to know.
    requirement: Option<RequirementId>,
    /// A node that accepts pods now and that it fits on, where one was found: as long as it does
    /// not change, these pods lose nothing.
    found: Option<usize>,
}

impl PodVariant {
    fn of(pod: Pod) -> Self {
        Self { pod, requirement: None, found: None }
    }
}

/// Nodes and pods with the patches so far.
pub(super) struct Trial<'r> {
    pub(super) nodes: TrialNodes<'r>,
    pub(super) index: GroupIndex<'r>,
    /// What quotas leave, by namespace.
    pub(super) quotas: BTreeMap<String, Vec<QuotaRoom>>,
    pub(super) company_seekers: CompanySeekers<'r>,
    /// For each group what its pods are like: as they are, and as they will be once their owner
    /// makes new ones.
    variants: Vec<Vec<PodVariant>>,
}

impl<'r> Trial<'r> {
    pub(super) fn new(reach: &'r PatchReach) -> Self {
        let variant = |group: &PodGroup| vec![PodVariant::of(group.pod.clone())];
        Self {
            nodes: TrialNodes::new(reach),
            index: GroupIndex::of(&reach.groups),
            quotas: reach.quotas.clone(),
            company_seekers: CompanySeekers::of(reach),
            variants: reach.groups.iter().map(variant).collect(),
        }
    }

    /// Pods that would lose the last node that they could use.
    pub(super) fn harmed_by(&mut self, candidate: &PatchCandidate) -> Vec<Harmed> {
        let of_pods = self.harmed_by_template(candidate);
        match &candidate.patch.nodes {
            Some(change) => of_pods.into_iter().chain(self.harmed_by_nodes(change)).collect(),
            None => of_pods,
        }
    }

    /// Takes a patch as applied.
    pub(super) fn apply(&mut self, candidate: &PatchCandidate) {
        self.move_pods(candidate);
        for (group, change) in candidate.changes() {
            let variants = &mut self.variants[group];
            let changed = |of: &PodVariant| PodVariant::of(change.applied(&of.pod));
            let new: Vec<PodVariant> = variants.iter().map(changed).collect();
            match change.replaces_pods {
                true => *variants = new,
                false => variants.extend(new),
            }
        }
        if let Some(change) = &candidate.patch.nodes {
            let changed = self.nodes.places_of(change);
            for variant in self.variants.iter_mut().flatten() {
                variant.found = variant.found.filter(|node| !changed.contains(node));
            }
            self.nodes.change(change);
        }
    }

    /// What the pods of a group are like once their owner makes new ones.
    pub(super) fn to_come(&self, group: usize) -> &Pod {
        let last = self.variants[group].last();
        last.map_or(&self.nodes.reach.groups[group].pod, |variant| &variant.pod)
    }

    /// What these ask of nodes.
    pub(super) fn requirement_to_come(&mut self, group: usize) -> RequirementId {
        let reach = self.nodes.reach;
        match self.variants[group].len().checked_sub(1) {
            Some(last) => self.requirement(group, last),
            None => self.nodes.requirement_of(&reach.groups[group].pod),
        }
    }

    /// What the pods of a group ask of nodes, as they are or will be.
    fn requirement(&mut self, group: usize, variant: usize) -> RequirementId {
        let PodVariant { pod, requirement, .. } = &mut self.variants[group][variant];
        *requirement.get_or_insert_with(|| self.nodes.requirement_of(pod))
    }

    fn harmed_by_template(&mut self, candidate: &PatchCandidate) -> Vec<Harmed> {
        let reach = self.nodes.reach;
        let mut harmed = Vec::new();
        for (place, change) in candidate.changes() {
            let group = &reach.groups[place];
            let mut all_lost = BTreeSet::new();
            for variant in 0..self.variants[place].len() {
                let requirement = self.requirement(place, variant);
                let before = self.nodes.usable(group, requirement, None).0;
                let changed = change.applied(&self.variants[place][variant].pod);
                let requirement = self.nodes.requirement_of(&changed);
                let after = self.nodes.usable(group, requirement, None).0;
                all_lost.extend(lost(&before, &after));
            }
            harmed.extend(of_group(group, &all_lost));
        }
        harmed
    }

    fn harmed_by_nodes(&mut self, change: &NodeChange) -> Vec<Harmed> {
        let changed = self.nodes.places_of(change);
        let before: Vec<(usize, usize, Vec<[bool; 2]>)> = self.at_stake(&changed);
        let with_gpus = match change.added.is_empty() {
            true => Vec::new(),
            false => self.with_gpus_on(&changed),
        };
        self.with_nodes_changed(change, |trial| trial.now_harmed(&changed, before, with_gpus))
    }

    /// What is found while nodes are changed.
    pub(super) fn with_nodes_changed<T>(
        &mut self,
        change: &NodeChange,
        find: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let kept = self.nodes.kept(&self.nodes.places_of(change));
        self.nodes.change(change);
        let found = find(self);
        self.nodes.put_back(kept);
        found
    }

    /// Pods that lack a node now. `before`: groups and variants with what they could use.
    /// `with_gpus`: those with GPUs, each with a node that it could use.
    fn now_harmed(
        &mut self,
        changed: &BTreeSet<usize>,
        before: Vec<(usize, usize, Vec<[bool; 2]>)>,
        with_gpus: Vec<(usize, usize, usize)>,
    ) -> Vec<Harmed> {
        let reach = self.nodes.reach;
        let mut harmed = Vec::new();
        let mut owners: BTreeSet<&ObjectRef> = BTreeSet::new();
        for (place, variant, before) in before {
            let group = &reach.groups[place];
            let requirement = self.requirement(place, variant);
            let after = self.nodes.usable(group, requirement, Some(changed)).0;
            let lost = of_group(group, &lost(&before, &after));
            owners.extend(lost.is_some().then_some(&group.owner));
            harmed.extend(lost);
        }
        // No taint before every pod with GPUs that can use the node tolerates it.
        for (place, variant, node) in with_gpus {
            let group = &reach.groups[place];
            let requirement = self.requirement(place, variant);
            if owners.contains(&group.owner) || self.nodes.fits(requirement, node) {
                continue;
            }
            let all = of_group(group, &(0..group.pods.len()).collect());
            owners.extend(all.is_some().then_some(&group.owner));
            harmed.extend(all);
        }
        harmed
    }

    /// Groups and variants whose pods have GPUs and can use some of these nodes, with each node.
    fn with_gpus_on(&mut self, nodes: &BTreeSet<usize>) -> Vec<(usize, usize, usize)> {
        let reach = self.nodes.reach;
        let mut fitting: BTreeMap<RequirementId, Vec<usize>> = BTreeMap::new();
        let mut found = Vec::new();
        for (place, group) in reach.groups.iter().enumerate() {
            if group.is_daemon || !group.has_gpus() {
                continue;
            }
            for variant in 0..self.variants[place].len() {
                let requirement = self.requirement(place, variant);
                let fitting = fitting.entry(requirement).or_insert_with(|| {
                    let nodes = nodes.iter().copied();
                    nodes.filter(|node| self.nodes.fits(requirement, *node)).collect()
                });
                found.extend(fitting.iter().map(|node| (place, variant, *node)));
            }
        }
        found
    }

    /// Groups and variants whose pods may depend on some of these nodes, with what they can use.
    fn at_stake(&mut self, changed: &BTreeSet<usize>) -> Vec<(usize, usize, Vec<[bool; 2]>)> {
        let reach = self.nodes.reach;
        let mut at_stake = Vec::new();
        for (place, group) in reach.groups.iter().enumerate() {
            for variant in 0..self.variants[place].len() {
                let found = self.variants[place][variant].found;
                if found.is_some_and(|node| !changed.contains(&node)) {
                    continue;
                }
                let requirement = self.requirement(place, variant);
                let (before, found) = self.nodes.usable(group, requirement, Some(changed));
                self.variants[place][variant].found = found;
                if before.iter().any(|usable| usable.contains(&true)) {
                    at_stake.push((place, variant, before));
                }
            }
        }
        at_stake
    }

    /// Whether a template of an owner names the node of its pods.
    pub(super) fn is_bound_by_name(&self, owner: &ObjectRef) -> bool {
        let mut places = self.index.of_owner(owner).iter();
        places.any(|place| self.index.groups[*place].is_bound_by_name)
    }

    /// Whether what was allocated to claims confines pods of an owner to some nodes.
    pub(super) fn has_allocated_claims(&self, owner: &ObjectRef) -> bool {
        let places = self.index.of_owner(owner).iter();
        let mut groups = places.map(|place| &self.index.groups[*place]);
        groups.any(|group| !group.is_bound_by_name && !group.confined.is_empty())
    }

    /// Whether some pods of an owner tolerate these taints, and its controller replaces the others.
    pub(super) fn rolls_to_tolerate(&self, owner: &ObjectRef, taints: &[Taint]) -> bool {
        let tolerates = |variant: &PodVariant| {
            let tolerations = &variant.pod.tolerations;
            let accepts = |taint: &Taint| tolerations.iter().any(|of| of.accepts(taint));
            taints.iter().all(accepts)
        };
        let places = self.index.of_owner(owner).iter();
        REPLACING.contains(&owner.kind.as_str())
            && places.flat_map(|place| &self.variants[*place]).any(tolerates)
    }
}

/// Pods, by their place in the group, that could use a node and cannot any more.
fn lost(before: &[[bool; 2]], after: &[[bool; 2]]) -> BTreeSet<usize> {
    let is_lost = |(before, after): (&[bool; 2], &[bool; 2])| {
        before.iter().zip(after).any(|(before, after)| *before && !after)
    };
    let pods = before.iter().zip(after).map(is_lost).enumerate();
    pods.filter(|(_, is_lost)| *is_lost).map(|(place, _)| place).collect()
}

pub(super) fn of_group(group: &PodGroup, lost: &BTreeSet<usize>) -> Option<Harmed> {
    let pod = |place: &usize| match group.pods[*place].0.as_str() {
        // Pods to come are named by what makes them.
        "" => group.owner.clone(),
        name => ObjectRef::new("Pod", &group.owner.namespace, name),
    };
    let pods: Vec<ObjectRef> = lost.iter().map(pod).collect();
    let owner = group.owner.clone();
    (!pods.is_empty()).then_some(Harmed { owner, pods, has_no_room: false })
}
