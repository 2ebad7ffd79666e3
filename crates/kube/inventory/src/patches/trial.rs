//! Patches tried one after the other on the nodes and pods that were read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_audit::{NodeChange, ObjectRef, Patch};
use dovetail_model::Taint;
use dovetail_objects::Pod;

use super::company::CompanySeekers;
use super::reach::{PatchReach, PodGroup};
use super::template::{REPLACING, TemplateChange, changes};
use super::trial_nodes::TrialNodes;
use crate::facts::unmade::quota::QuotaRoom;

/// Pods of one owner that a patch would make unschedulable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Harmed {
    /// The top owner.
    pub(super) owner: ObjectRef,
    pub(super) pods: Vec<ObjectRef>,
    /// There are other nodes that they could use, and these have no room for them.
    pub(super) has_no_room: bool,
}

/// Nodes and pods with the patches so far.
pub(super) struct Trial<'r> {
    pub(super) nodes: TrialNodes<'r>,
    /// Groups of pods by their owner.
    groups_of: BTreeMap<&'r ObjectRef, Vec<usize>>,
    /// What quotas leave, by namespace.
    pub(super) quotas: BTreeMap<String, Vec<QuotaRoom>>,
    pub(super) company_seekers: CompanySeekers<'r>,
    /// For each group what its pods are like: as they are, and as they will be once their owner
    /// makes new ones.
    variants: Vec<Vec<Pod>>,
    /// For each of these a node that accepts pods now and that they fit on, where one was found: as
    /// long as it does not change, they lose nothing.
    found: Vec<Vec<Option<usize>>>,
}

impl<'r> Trial<'r> {
    pub(super) fn new(reach: &'r PatchReach) -> Self {
        let mut groups_of: BTreeMap<&ObjectRef, Vec<usize>> = BTreeMap::new();
        for (place, group) in reach.groups.iter().enumerate() {
            groups_of.entry(&group.owner).or_default().push(place);
        }
        Self {
            nodes: TrialNodes::new(reach),
            groups_of,
            quotas: reach.quotas.clone(),
            company_seekers: CompanySeekers::of(reach),
            variants: reach.groups.iter().map(|group| vec![group.pod.clone()]).collect(),
            found: vec![vec![None]; reach.groups.len()],
        }
    }

    /// Pods that would lose the last node that they could use.
    pub(super) fn harmed_by(&mut self, patch: &Patch) -> Vec<Harmed> {
        let of_pods = self.harmed_by_template(patch);
        match &patch.nodes {
            Some(change) => of_pods.into_iter().chain(self.harmed_by_nodes(change)).collect(),
            None => of_pods,
        }
    }

    /// Takes a patch as applied.
    pub(super) fn apply(&mut self, patch: &Patch) {
        self.move_pods(patch);
        for (group, change) in self.template_changes(patch) {
            let variants = &mut self.variants[group];
            let new: Vec<Pod> = variants.iter().map(|pod| change.applied(pod)).collect();
            match change.replaces_pods {
                true => *variants = new,
                false => variants.extend(new),
            }
            self.found[group] = vec![None; self.variants[group].len()];
        }
        if let Some(change) = &patch.nodes {
            let changed = self.nodes.places_of(change);
            let all = self.found.iter_mut().flatten();
            all.filter(|node| node.is_some_and(|node| changed.contains(&node)))
                .for_each(|node| *node = None);
            self.nodes.change(change);
        }
    }

    /// What the pods of a group are like once their owner makes new ones.
    pub(super) fn to_come(&self, group: usize) -> &Pod {
        self.variants[group].last().unwrap_or(&self.nodes.reach.groups[group].pod)
    }

    /// What the patch changes of the templates that groups of pods are made from.
    pub(super) fn template_changes(&self, patch: &Patch) -> Vec<(usize, TemplateChange)> {
        let Some(edited) = &patch.edited else { return Vec::new() };
        let reach = self.nodes.reach;
        let places = self.groups_of.get(&patch.object).into_iter().flatten();
        let groups: Vec<(usize, &PodGroup)> =
            places.map(|place| (*place, &reach.groups[*place])).collect();
        let found = changes(patch, edited).into_iter().flat_map(|change| {
            let is_made_from = |(_, group): &&(usize, &PodGroup)| {
                change.containers.iter().all(|name| group.containers.contains(name))
            };
            let places = groups.iter().filter(is_made_from).map(|(place, _)| *place);
            places.map(|place| (place, change.clone())).collect::<Vec<_>>()
        });
        found.collect()
    }

    fn harmed_by_template(&mut self, patch: &Patch) -> Vec<Harmed> {
        let reach = self.nodes.reach;
        let mut harmed = Vec::new();
        for (place, change) in self.template_changes(patch) {
            let group = &reach.groups[place];
            let lost: BTreeSet<usize> = self.variants[place]
                .iter()
                .flat_map(|pod| {
                    let before = self.nodes.usable(group, pod, None).0;
                    let after = self.nodes.usable(group, &change.applied(pod), None).0;
                    lost(&before, &after)
                })
                .collect();
            harmed.extend(of_group(group, &lost));
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
        for (place, variant, before) in before {
            let group = &reach.groups[place];
            let pod = &self.variants[place][variant];
            let after = self.nodes.usable(group, pod, Some(changed)).0;
            harmed.extend(of_group(group, &lost(&before, &after)));
        }
        // No taint before every pod with GPUs that can use the node tolerates it.
        for (place, variant, node) in with_gpus {
            let group = &reach.groups[place];
            let pod = &self.variants[place][variant];
            let requirement = Arc::new(self.nodes.requirement(pod));
            let is_known = harmed.iter().any(|harmed: &Harmed| harmed.owner == group.owner);
            if !is_known && !self.nodes.fits(&requirement, node) {
                harmed.extend(of_group(group, &(0..group.pods.len()).collect()));
            }
        }
        harmed
    }

    /// Groups and variants whose pods have GPUs and can use some of these nodes, with each node.
    fn with_gpus_on(&mut self, nodes: &BTreeSet<usize>) -> Vec<(usize, usize, usize)> {
        let reach = self.nodes.reach;
        let mut found = Vec::new();
        for (place, group) in reach.groups.iter().enumerate() {
            if group.is_daemon || !group.has_gpus() {
                continue;
            }
            for (variant, pod) in self.variants[place].iter().enumerate() {
                let requirement = Arc::new(self.nodes.requirement(pod));
                let fit = nodes.iter().filter(|node| self.nodes.fits(&requirement, **node));
                found.extend(fit.map(|node| (place, variant, *node)));
            }
        }
        found
    }

    /// Groups and variants whose pods may depend on some of these nodes, with what they can use.
    fn at_stake(&mut self, changed: &BTreeSet<usize>) -> Vec<(usize, usize, Vec<[bool; 2]>)> {
        let reach = self.nodes.reach;
        let mut at_stake = Vec::new();
        for (place, group) in reach.groups.iter().enumerate() {
            for (variant, pod) in self.variants[place].iter().enumerate() {
                if self.found[place][variant].is_some_and(|node| !changed.contains(&node)) {
                    continue;
                }
                let (before, found) = self.nodes.usable(group, pod, Some(changed));
                self.found[place][variant] = found;
                if before.iter().any(|usable| usable.contains(&true)) {
                    at_stake.push((place, variant, before));
                }
            }
        }
        at_stake
    }

    /// Whether some pods of an owner tolerate these taints, and its controller replaces the others.
    pub(super) fn rolls_to_tolerate(&self, owner: &ObjectRef, taints: &[Taint]) -> bool {
        let tolerates = |pod: &Pod| {
            let accepts = |taint: &Taint| pod.tolerations.iter().any(|of| of.accepts(taint));
            taints.iter().all(accepts)
        };
        let places = self.groups_of.get(owner).into_iter().flatten();
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
