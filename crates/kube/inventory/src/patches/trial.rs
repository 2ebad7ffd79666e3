//! Patches tried one after the other on the nodes and pods that were read.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dovetail_audit::{NodeChange, ObjectRef, Patch};
use dovetail_model::{Event, Node, NodeId, Requirement, Resources, Snapshot, Taint};
use dovetail_objects::Pod;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::engine::probe::PodProbe;
use dovetail_plan::{Batch, Cause, Engine};
use dovetail_translate::pod as requirement_of;

use super::reach::{PatchReach, PodGroup, rules};
use super::room::{is_left, used};
use super::template::{REPLACING, TemplateChange, changes};
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

/// Nodes that a pod could use.
#[derive(Clone, Copy)]
struct Usable {
    /// One that accepts pods now.
    open: Option<usize>,
    /// Whether there is any.
    any: bool,
}

/// Nodes and pods with the patches so far.
pub(super) struct Trial<'r> {
    pub(super) reach: &'r PatchReach,
    /// `None` where the engine does not take the nodes: then nothing is known to be harmless.
    engine: Option<Engine>,
    /// The engine's number of each node.
    numbers: Vec<Option<NodeId>>,
    /// What was asked about last: each pod is held against many nodes.
    probe: Option<(Arc<Requirement>, PodProbe)>,
    /// What is known of pods of equal requirements as long as no node changes: large clusters have
    /// many owners and few kinds of pods.
    known: HashMap<Arc<Requirement>, Usable>,
    /// As long, whether there is room for one more pod that asks for so much.
    rooms: HashMap<(Arc<Requirement>, Resources), bool>,
    /// Groups of pods by their owner.
    pub(super) groups_of: BTreeMap<&'r ObjectRef, Vec<usize>>,
    pub(super) nodes: Vec<Node>,
    pub(super) closed: Vec<bool>,
    /// What pods hold of each node.
    pub(super) used: Vec<Resources>,
    /// What quotas leave, by namespace.
    pub(super) quotas: BTreeMap<String, Vec<QuotaRoom>>,
    /// Groups whose pods run only beside others.
    pub(super) company_seekers: Vec<usize>,
    /// For each group what its pods are like: as they are, and as they will be once their owner
    /// makes new ones.
    variants: Vec<Vec<Pod>>,
    /// For each of these a node that accepts pods now and that they fit on, where one was found: as
    /// long as it does not change, they lose nothing.
    found: Vec<Vec<Option<usize>>>,
}

impl<'r> Trial<'r> {
    pub(super) fn new(reach: &'r PatchReach) -> Self {
        let snapshot = Snapshot { nodes: reach.nodes.clone(), ..Snapshot::default() };
        let engine = Engine::new(EngineConfig::default(), &snapshot).ok();
        let mut groups_of: BTreeMap<&ObjectRef, Vec<usize>> = BTreeMap::new();
        for (place, group) in reach.groups.iter().enumerate() {
            groups_of.entry(&group.owner).or_default().push(place);
        }
        Self {
            reach,
            numbers: numbers(engine.as_ref(), &reach.nodes),
            engine,
            probe: None,
            known: HashMap::new(),
            rooms: HashMap::new(),
            groups_of,
            nodes: reach.nodes.clone(),
            closed: reach.closed.clone(),
            used: used(reach),
            quotas: reach.quotas.clone(),
            company_seekers: company_seekers(reach),
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
            let changed = self.places_of(change);
            let all = self.found.iter_mut().flatten();
            all.filter(|node| node.is_some_and(|node| changed.contains(&node)))
                .for_each(|node| *node = None);
            self.change_nodes(change);
        }
    }

    /// What the pods of a group are like once their owner makes new ones.
    pub(super) fn to_come(&self, group: usize) -> &Pod {
        self.variants[group].last().unwrap_or(&self.reach.groups[group].pod)
    }

    /// What the patch changes of the templates that groups of pods are made from.
    pub(super) fn template_changes(&self, patch: &Patch) -> Vec<(usize, TemplateChange)> {
        let Some(edited) = &patch.edited else { return Vec::new() };
        let places = self.groups_of.get(&patch.object).into_iter().flatten();
        let groups: Vec<(usize, &PodGroup)> =
            places.map(|place| (*place, &self.reach.groups[*place])).collect();
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
        let mut harmed = Vec::new();
        for (place, change) in self.template_changes(patch) {
            let group = &self.reach.groups[place];
            let lost: BTreeSet<usize> = self.variants[place]
                .clone()
                .iter()
                .flat_map(|pod| {
                    let before = self.usable(group, pod, None).0;
                    let after = self.usable(group, &change.applied(pod), None).0;
                    lost(&before, &after)
                })
                .collect();
            harmed.extend(of_group(group, &lost));
        }
        harmed
    }

    fn harmed_by_nodes(&mut self, change: &NodeChange) -> Vec<Harmed> {
        let changed = self.places_of(change);
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
        let as_before = |place: &usize| (*place, self.nodes[*place].clone(), self.closed[*place]);
        let changed = self.places_of(change);
        let as_before: Vec<(usize, Node, bool)> = changed.iter().map(as_before).collect();
        self.change_nodes(change);
        let found = find(self);
        for (place, node, closed) in as_before {
            (self.nodes[place], self.closed[place]) = (node, closed);
            self.tell(place);
        }
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
        let mut harmed = Vec::new();
        for (place, variant, before) in before {
            let group = &self.reach.groups[place];
            let pod = self.variants[place][variant].clone();
            let after = self.usable(group, &pod, Some(changed)).0;
            harmed.extend(of_group(group, &lost(&before, &after)));
        }
        // No taint before every pod with GPUs that can use the node tolerates it.
        for (place, variant, node) in with_gpus {
            let group = &self.reach.groups[place];
            let requirement = Arc::new(self.requirement(&self.variants[place][variant]));
            let is_known = harmed.iter().any(|harmed: &Harmed| harmed.owner == group.owner);
            if !is_known && !self.fits(&requirement, node) {
                harmed.extend(of_group(group, &(0..group.pods.len()).collect()));
            }
        }
        harmed
    }

    /// Groups and variants whose pods have GPUs and can use some of these nodes, with each node.
    fn with_gpus_on(&mut self, nodes: &BTreeSet<usize>) -> Vec<(usize, usize, usize)> {
        let mut found = Vec::new();
        for (place, group) in self.reach.groups.iter().enumerate() {
            if group.is_daemon || !group.has_gpus() {
                continue;
            }
            for variant in 0..self.variants[place].len() {
                let requirement = Arc::new(self.requirement(&self.variants[place][variant]));
                let fit = nodes.iter().filter(|node| self.fits(&requirement, **node));
                found.extend(fit.map(|node| (place, variant, *node)));
            }
        }
        found
    }

    /// Groups and variants whose pods may depend on some of these nodes, with what they can use.
    fn at_stake(&mut self, changed: &BTreeSet<usize>) -> Vec<(usize, usize, Vec<[bool; 2]>)> {
        let mut at_stake = Vec::new();
        for (place, group) in self.reach.groups.iter().enumerate() {
            for variant in 0..self.variants[place].len() {
                if self.found[place][variant].is_some_and(|node| !changed.contains(&node)) {
                    continue;
                }
                let pod = self.variants[place][variant].clone();
                let (before, found) = self.usable(group, &pod, Some(changed));
                self.found[place][variant] = found;
                if before.iter().any(|usable| usable.contains(&true)) {
                    at_stake.push((place, variant, before));
                }
            }
        }
        at_stake
    }

    /// For each pod of a group, whether there is a node that it could use: among those that accept
    /// pods now, and among all; and one of those that accept pods now. Of a DaemonSet only pods on
    /// these nodes are asked about.
    fn usable(
        &mut self,
        group: &PodGroup,
        pod: &Pod,
        among: Option<&BTreeSet<usize>>,
    ) -> (Vec<[bool; 2]>, Option<usize>) {
        let requirement = Arc::new(self.requirement(pod));
        if group.is_daemon {
            let is_asked = |node: &usize| among.is_none_or(|among| among.contains(node));
            let own: Vec<Option<usize>> =
                group.pods.iter().map(|(_, node)| node.filter(is_asked)).collect();
            // It tolerates that its node accepts no other pods.
            let fits = own
                .into_iter()
                .map(|node| [node.is_some_and(|node| self.fits(&requirement, node)); 2]);
            return (fits.collect(), None);
        }
        let Usable { open, any } = self.known.get(&requirement).copied().unwrap_or_else(|| {
            let usable = self.usable_by(&requirement, group);
            self.known.insert(requirement, usable);
            usable
        });
        (vec![[open.is_some(), any]; group.pods.len()], open)
    }

    fn usable_by(&mut self, requirement: &Arc<Requirement>, group: &PodGroup) -> Usable {
        // Where a pod of it runs is where another one most likely fits.
        let own: BTreeSet<usize> = group.pods.iter().filter_map(|(_, node)| *node).collect();
        let others = (0..self.nodes.len()).filter(|node| !own.contains(node));
        let mut usable = Usable { open: None, any: false };
        for node in own.iter().copied().chain(others) {
            if (usable.any && self.closed[node]) || !self.fits(requirement, node) {
                continue;
            }
            usable.any = true;
            if !self.closed[node] {
                usable.open = Some(node);
                break;
            }
        }
        usable
    }

    /// Whether a node that accepts pods has enough free for one more pod.
    pub(super) fn has_room(&mut self, requirement: Arc<Requirement>, asked: Resources) -> bool {
        let key = (requirement, asked);
        if let Some(has_room) = self.rooms.get(&key) {
            return *has_room;
        }
        let (requirement, asked) = &key;
        let has_room = (0..self.nodes.len()).any(|node| {
            let (all, used) = (&self.nodes[node].allocatable, &self.used[node]);
            !self.closed[node] && is_left(all, used, asked) && self.fits(requirement, node)
        });
        self.rooms.insert(key, has_room);
        has_room
    }

    /// Counts a pod on a node.
    pub(super) fn hold(&mut self, node: usize, asked: &Resources) {
        self.used[node].add_times(asked, 1);
        self.rooms.clear();
    }

    pub(super) fn requirement(&self, pod: &Pod) -> Requirement {
        let rules = rules();
        requirement_of(pod, &self.reach.volumes, &rules).unwrap_or_else(|_| {
            // What keeps the pod from being translated, such as a share of a GPU, is no matter of
            // taints and labels.
            let mut plain = Pod {
                node_selector: pod.node_selector.clone(),
                node_affinity: pod.node_affinity.clone(),
                tolerations: Arc::clone(&pod.tolerations),
                requests: pod.requests.clone(),
                ..Pod::default()
            };
            plain.requests.extended.clear();
            requirement_of(&plain, &Default::default(), &rules).unwrap_or_default()
        })
    }

    pub(super) fn fits(&mut self, requirement: &Arc<Requirement>, node: usize) -> bool {
        let (Some(engine), Some(number)) = (&mut self.engine, self.numbers[node]) else {
            return false;
        };
        let known = self.probe.take().filter(|(of, _)| Arc::ptr_eq(of, requirement));
        let (of, mut probe) = known.unwrap_or_else(|| {
            let shape = engine.ask().shape_of(requirement);
            (Arc::clone(requirement), PodProbe::new(engine, shape))
        });
        probe.refresh(engine);
        let obstacle = probe.obstacle(engine, number);
        self.probe = Some((of, probe));
        obstacle == Cause::None
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

    pub(super) fn places_of(&self, change: &NodeChange) -> BTreeSet<usize> {
        change.nodes.iter().filter_map(|name| self.reach.places.get(name).copied()).collect()
    }

    fn change_nodes(&mut self, change: &NodeChange) {
        for name in &change.nodes {
            let Some(place) = self.reach.places.get(name).copied() else { continue };
            let node = &mut self.nodes[place];
            node.taints.retain(|taint| !change.removed.contains(taint));
            for taint in &change.added {
                if !node.taints.contains(taint) {
                    node.taints.push(taint.clone());
                }
            }
            self.closed[place] |= change.drained;
            self.tell(place);
        }
    }

    fn tell(&mut self, place: usize) {
        self.known.clear();
        self.rooms.clear();
        let event = Event::NodeChanged(Box::new(self.nodes[place].clone()));
        if let Some(engine) = &mut self.engine
            && engine.step(Batch::pending(event), 0).is_err()
        {
            self.engine = None;
        }
    }
}

/// Groups whose pods run only beside others.
fn company_seekers(reach: &PatchReach) -> Vec<usize> {
    let groups = reach.groups.iter().enumerate();
    groups.filter(|(_, group)| group.apart.needs_company()).map(|(place, _)| place).collect()
}

/// The engine's number of each node.
fn numbers(engine: Option<&Engine>, nodes: &[Node]) -> Vec<Option<NodeId>> {
    let Some(engine) = engine else { return vec![None; nodes.len()] };
    let slots = (0..engine.supply().node_slots()).map(|slot| NodeId(slot as u32));
    let named = slots.filter_map(|slot| Some((&*engine.supply().node(slot)?.name, slot)));
    let named: BTreeMap<&str, NodeId> = named.collect();
    nodes.iter().map(|node| named.get(&*node.name).copied()).collect()
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
