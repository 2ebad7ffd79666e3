//! Nodes as the patches so far leave them, and which of them pods could use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use dovetail_audit::NodeChange;
use dovetail_model::{Event, Node, NodeId, Requirement, Resources, Snapshot};
use dovetail_objects::Pod;
use dovetail_plan::engine::EngineConfig;
use dovetail_plan::engine::probe::PodProbe;
use dovetail_plan::{Batch, Cause, Engine};
use dovetail_translate::pod as requirement_of;

use super::reach::{PatchReach, PodGroup, rules};
use super::room::{is_left, used};

/// Nodes that a pod could use.
#[derive(Clone, Copy)]
struct Usable {
    /// One that accepts pods now.
    open: Option<usize>,
    /// Whether there is any.
    any: bool,
}

/// A node as it was before a change that is taken back.
pub(super) struct KeptNode {
    place: usize,
    node: Node,
    is_closed: bool,
}

/// The nodes of a trial. What is known of them is forgotten when one changes.
pub(super) struct TrialNodes<'r> {
    /// Nodes and pods as they were read.
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
            probe: None,
            known: HashMap::new(),
            rooms: HashMap::new(),
            all: reach.nodes.clone(),
            closed: reach.closed.clone(),
            used: used(reach),
        }
    }

    /// For each pod of a group, whether there is a node that it could use: among those that accept
    /// pods now, and among all; and one of those that accept pods now. Of a DaemonSet only pods on
    /// these nodes are asked about.
    pub(super) fn usable(
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

    /// Whether a node that accepts pods has enough free for one more pod.
    pub(super) fn has_room_for(&mut self, pod: &Pod) -> bool {
        let key = (Arc::new(self.requirement(pod)), pod.requests.clone());
        if let Some(has_room) = self.rooms.get(&key) {
            return *has_room;
        }
        let (requirement, asked) = &key;
        let has_room = (0..self.all.len()).any(|node| {
            let (all, used) = (&self.all[node].allocatable, &self.used[node]);
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

    /// What a pod asks of nodes, as the engine takes it.
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

    /// Whether the engine finds nothing that keeps a pod off a node. A caller that asks about many
    /// nodes passes the same `Arc` each time: then the engine is prepared for the pod only once.
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

    /// Places of the nodes of a change that were read.
    pub(super) fn places_of(&self, change: &NodeChange) -> BTreeSet<usize> {
        change.nodes.iter().filter_map(|name| self.reach.places.get(name).copied()).collect()
    }

    /// These nodes as they are now, for `put_back`.
    pub(super) fn kept(&self, places: &BTreeSet<usize>) -> Vec<KeptNode> {
        let kept = |place: &usize| KeptNode {
            place: *place,
            node: self.all[*place].clone(),
            is_closed: self.closed[*place],
        };
        places.iter().map(kept).collect()
    }

    /// Takes changes of these nodes back.
    pub(super) fn put_back(&mut self, kept: Vec<KeptNode>) {
        for KeptNode { place, node, is_closed } in kept {
            (self.all[place], self.closed[place]) = (node, is_closed);
            self.tell(place);
        }
    }

    /// Takes taints and drains of a patch as applied.
    pub(super) fn change(&mut self, change: &NodeChange) {
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
        self.rooms.clear();
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
