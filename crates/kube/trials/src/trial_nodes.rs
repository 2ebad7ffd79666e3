//! Nodes as the patches so far leave them, and which of them pods could use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use dovetail_inventory::reach::{PatchReach, PodGroup, rules};
use dovetail_model::{Event, Node, NodeId, Requirement, Resources, Snapshot};
use dovetail_objects::Pod;
use dovetail_patches::NodeChange;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::engine::probe::PodProbe;
use dovetail_plan::{Batch, Cause, Engine};
use dovetail_translate::pod as requirement_of;

use super::room::{is_left, only_takes, used};

/// The number of what a pod asks of nodes. Pods of equal requirements have the same: large clusters
/// have many owners and few kinds of pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct RequirementId(usize);

/// Nodes that a pod could use.
#[derive(Clone, Copy)]
struct Usable {
    /// One that accepts pods now.
    open: Option<usize>,
    /// Whether there is any.
    any: bool,
}

/// By requirement and amounts of a pod, the node before which none has room for one more.
type FullUpTo = HashMap<(RequirementId, Resources), usize>;

/// Nodes as they were before a change that is taken back.
pub(super) struct KeptNodes {
    nodes: Vec<KeptNode>,
    full_up_to: Rc<FullUpTo>,
}

struct KeptNode {
    place: usize,
    node: Node,
    is_closed: bool,
}

/// What the patches so far have made of nodes, and what is known of that.
pub(super) struct TrialNodes<'r> {
    /// Nodes and pods as they were read.
    pub(super) reach: &'r PatchReach,
    /// `None` where the engine does not take the nodes: then nothing is known to be harmless.
    engine: Option<Engine>,
    /// The engine's number of each node.
    numbers: Vec<Option<NodeId>>,
    ids: HashMap<Arc<Requirement>, RequirementId>,
    /// Each requirement with the engine's questions about it: a pod is held against many nodes.
    requirements: Vec<(Arc<Requirement>, Option<PodProbe>)>,
    /// What is known of a requirement as long as no node changes.
    known: HashMap<RequirementId, Usable>,
    /// Where searches for room begin. Placed pods only take room, and so do most changes of nodes;
    /// it is forgotten when one may open a node.
    full_up_to: Rc<FullUpTo>,
    /// Every node with its present labels and taints.
    pub(super) all: Vec<Node>,
    /// Which of them do not accept pods.
    pub(super) closed: Vec<bool>,
    /// What pods hold of each node.
    pub(super) used: Vec<Resources>,
}

impl<'r> TrialNodes<'r> {
    pub(super) fn new(reach: &'r PatchReach) -> Self {
        let snapshot = Snapshot { nodes: reach.nodes.clone(), ..Snapshot::default() };
        let engine = Engine::new(EngineConfig::default(), &snapshot).ok();
        Self {
            reach,
            numbers: numbers(engine.as_ref(), &reach.nodes),
            engine,
            ids: HashMap::new(),
            requirements: Vec::new(),
            known: HashMap::new(),
            full_up_to: Rc::default(),
            all: reach.nodes.clone(),
            closed: reach.closed.clone(),
            used: used(reach),
        }
    }

    /// For each pod of a group, whether there is a node that it could use: among those that accept
    /// pods now, and among all; and one of those that accept pods now. Of a DaemonSet, and of pods
    /// that some nodes alone can run, only pods of these nodes are asked about.
    pub(super) fn usable(
        &mut self,
        group: &PodGroup,
        requirement: RequirementId,
        among: Option<&BTreeSet<usize>>,
    ) -> (Vec<[bool; 2]>, Option<usize>) {
        if group.is_daemon {
            let is_asked = |node: &usize| among.is_none_or(|among| among.contains(node));
            let own: Vec<Option<usize>> =
                group.pods.iter().map(|(_, node)| node.filter(is_asked)).collect();
            // It tolerates that its node accepts no other pods.
            let fits = own
                .into_iter()
                .map(|node| [node.is_some_and(|node| self.fits(requirement, node)); 2]);
            return (fits.collect(), None);
        }
        let Usable { open, any } = self.known.get(&requirement).copied().unwrap_or_else(|| {
            let usable = self.usable_by(requirement, group);
            self.known.insert(requirement, usable);
            usable
        });
        let mut of_pods = vec![[open.is_some(), any]; group.pods.len()];
        for (place, nodes) in &group.confined {
            let is_asked = among.is_none_or(|among| !among.is_disjoint(nodes));
            of_pods[*place] =
                if is_asked { self.usable_of(requirement, nodes) } else { [false; 2] };
        }
        // A node that others fit on may be none of theirs.
        (of_pods, open.filter(|_| group.confined.is_empty()))
    }

    /// Whether a pod fits on some of these nodes: on one that accepts pods now, and on any.
    fn usable_of(&mut self, requirement: RequirementId, nodes: &BTreeSet<usize>) -> [bool; 2] {
        let mut usable = [false; 2];
        for node in nodes.iter().copied() {
            if self.fits(requirement, node) {
                usable = [usable[0] || !self.closed[node], true];
            }
            if usable[0] {
                break;
            }
        }
        usable
    }

    fn usable_by(&mut self, requirement: RequirementId, group: &PodGroup) -> Usable {
        // Where a pod of it runs is where another one most likely fits.
        let own: BTreeSet<usize> = group.pods.iter().filter_map(|(_, node)| *node).collect();
        let others = (0..self.all.len()).filter(|node| !own.contains(node));
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

    /// The first node that accepts pods and has enough free for one more pod; how many nodes there
    /// are if none has.
    pub(super) fn first_with_room(
        &mut self,
        requirement: RequirementId,
        asked: &Resources,
    ) -> usize {
        let count = self.all.len();
        let key = (requirement, asked.clone());
        let first = self.full_up_to.get(&key).copied().unwrap_or(0);
        let found = (first..count).find(|node| self.has_room(requirement, asked, *node));
        let found = found.unwrap_or(count);
        Rc::make_mut(&mut self.full_up_to).insert(key, found);
        found
    }

    /// Whether any node that accepts pods has enough free for one more pod.
    pub(super) fn has_room_for(&mut self, requirement: RequirementId, asked: &Resources) -> bool {
        self.first_with_room(requirement, asked) < self.all.len()
    }

    /// Whether a node accepts pods and has enough free for one more pod.
    pub(super) fn has_room(
        &mut self,
        requirement: RequirementId,
        asked: &Resources,
        node: usize,
    ) -> bool {
        !self.closed[node]
            && is_left(&self.all[node].allocatable, &self.used[node], asked)
            && self.fits(requirement, node)
    }

    /// Counts a pod on a node.
    pub(super) fn hold(&mut self, node: usize, asked: &Resources) {
        self.used[node].add_times(asked, 1);
        if !only_takes(asked) {
            self.full_up_to = Rc::default();
        }
    }

    /// Counts a pod no longer that was counted in a trial, before its changes are taken back.
    pub(super) fn release(&mut self, node: usize, asked: &Resources) {
        self.used[node].add_times(asked, -1);
    }

    /// The number of what a pod asks of nodes.
    pub(super) fn requirement_of(&mut self, pod: &Pod) -> RequirementId {
        let requirement = self.requirement(pod);
        if let Some(known) = self.ids.get(&requirement) {
            return *known;
        }
        let (requirement, id) = (Arc::new(requirement), RequirementId(self.requirements.len()));
        self.requirements.push((Arc::clone(&requirement), None));
        self.ids.insert(requirement, id);
        id
    }

    /// What a pod asks of nodes, as the engine takes it.
    fn requirement(&self, pod: &Pod) -> Requirement {
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

    /// Whether the engine finds nothing that keeps a pod off a node.
    pub(super) fn fits(&mut self, requirement: RequirementId, node: usize) -> bool {
        let (Some(engine), Some(number)) = (&mut self.engine, self.numbers[node]) else {
            return false;
        };
        let (requirement, probe) = &mut self.requirements[requirement.0];
        let probe = probe.get_or_insert_with(|| {
            let shape = engine.ask().shape_of(requirement);
            PodProbe::new(engine, shape)
        });
        probe.refresh(engine);
        probe.obstacle(engine, number) == Cause::None
    }

    /// Places of the nodes of a change that were read.
    pub(super) fn places_of(&self, change: &NodeChange) -> BTreeSet<usize> {
        change.nodes.iter().filter_map(|name| self.reach.places.get(name).copied()).collect()
    }

    /// These nodes as they are now, for `put_back`.
    pub(super) fn kept(&self, places: &BTreeSet<usize>) -> KeptNodes {
        let kept = |place: &usize| KeptNode {
            place: *place,
            node: self.all[*place].clone(),
            is_closed: self.closed[*place],
        };
        KeptNodes {
            nodes: places.iter().map(kept).collect(),
            full_up_to: Rc::clone(&self.full_up_to),
        }
    }

    /// Takes changes of these nodes back. What was counted on any since is released by then.
    pub(super) fn put_back(&mut self, kept: KeptNodes) {
        for KeptNode { place, node, is_closed } in kept.nodes {
            (self.all[place], self.closed[place]) = (node, is_closed);
            self.tell(place);
        }
        self.full_up_to = kept.full_up_to;
    }

    /// Takes taints and drains of a patch as applied.
    pub(super) fn change(&mut self, change: &NodeChange) {
        if !change.removed.is_empty() {
            self.full_up_to = Rc::default();
        }
        for name in &change.nodes {
            let Some(place) = self.reach.places.get(name).copied() else { continue };
            let node = &mut self.all[place];
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

    /// Tells the engine what a node is like now; what was known before may not hold any more.
    fn tell(&mut self, place: usize) {
        self.known.clear();
        let event = Event::NodeChanged(Box::new(self.all[place].clone()));
        if let Some(engine) = &mut self.engine
            && engine.step(Batch::pending(event), 0).is_err()
        {
            self.engine = None;
        }
    }
}

/// The engine's number of each node.
fn numbers(engine: Option<&Engine>, nodes: &[Node]) -> Vec<Option<NodeId>> {
    let Some(engine) = engine else { return vec![None; nodes.len()] };
    let slots = (0..engine.supply().node_slots()).map(|slot| NodeId(slot as u32));
    let named = slots.filter_map(|slot| Some((&*engine.supply().node(slot)?.name, slot)));
    let named: BTreeMap<&str, NodeId> = named.collect();
    nodes.iter().map(|node| named.get(&*node.name).copied()).collect()
}

#[cfg(test)]
mod tests {
    use dovetail_model::{Taint, TaintEffect};

    use super::*;

    const NODES: usize = 8;

    /// Nodes of three sizes, some of which accept no pods.
    fn some_nodes() -> PatchReach {
        let mut reach = PatchReach::default();
        for place in 0..NODES {
            let (name, cores) = (format!("n{place}"), 1 + place as i64 % 3);
            reach.nodes.push(Node::plain(&name, cores * 1_000, 8 << 30, 0, ""));
            reach.closed.push(place % 4 == 0);
            reach.places.insert(name, place);
        }
        reach
    }

    /// Pods are placed, and nodes get a taint and lose it, for a trial or for good: the search goes
    /// on where it ended.
    #[test]
    fn the_first_node_with_room_is_the_one_that_a_search_of_all_finds() {
        let reach = some_nodes();
        let amounts = [200, 700, -300].map(|cpu_milli| Resources::pod(cpu_milli, 1 << 28));
        let key = "a".to_owned();
        let taint = Taint { key, value: String::new(), effect: TaintEffect::NoSchedule };
        for seed in 0..40 {
            let mut nodes = TrialNodes::new(&reach);
            let pod = Pod { requests: Resources::pod(100, 1 << 28), ..Pod::default() };
            let requirement = nodes.requirement_of(&pod);
            let mut bits: u64 = seed;
            for _ in 0..60 {
                // Knuth's MMIX.
                bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let below = |end: usize| (bits >> 33) as usize % end;
                let node = below(NODES);
                let mut change =
                    NodeChange { nodes: vec![format!("n{node}")], ..NodeChange::default() };
                match below(5) {
                    0 => change.added.push(taint.clone()),
                    1 => change.removed.push(taint.clone()),
                    _ => nodes.hold(node, &amounts[below(3)]),
                }
                let check = |nodes: &mut TrialNodes<'_>| {
                    for asked in &amounts {
                        let all = (0..NODES).find(|node| nodes.has_room(requirement, asked, *node));
                        assert_eq!(nodes.first_with_room(requirement, asked), all.unwrap_or(NODES));
                    }
                };
                if change.added.len() + change.removed.len() > 0 {
                    // It is tried with a pod on a node, taken back, and made.
                    let kept = nodes.kept(&nodes.places_of(&change));
                    nodes.change(&change);
                    nodes.hold(node, &amounts[below(3)]);
                    check(&mut nodes);
                    nodes.release(node, &amounts[below(3)]);
                    nodes.put_back(kept);
                    check(&mut nodes);
                    nodes.change(&change);
                }
                check(&mut nodes);
            }
        }
    }
}
