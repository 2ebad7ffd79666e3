//! Which nodes can go: one after the other is closed, and the engine places all its pods on the
//! nodes that are left. Where one of them finds no place, all stand where they stood.
//!
//! The next node is always one that was forgotten when it was cordoned, then one on demand, then
//! the one with the fewest GPUs in use. A node that took pods can still go, with these: each node
//! is asked about once, in one engine, and at most [`MOST_NODES`] of them for each resource.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::Node;
use dovetail_model::{
    Action, Event, HeldDevices, Holding, Job, JobId, Node as WorldNode, NodeAvailability, NodeName,
    Owner, Plan,
};

use super::resource_cluster::ResourceCluster;
use crate::trial::Changing;

/// Nodes that are asked about.
const MOST_NODES: usize = 200;

/// Nodes that can go together.
#[derive(Default)]
pub(super) struct Emptied<'f> {
    pub(super) nodes: Vec<&'f Node>,
    /// The nodes on which their pods are then, by place among all pods.
    pub(super) to: BTreeMap<usize, String>,
}

/// What other resources have decided on.
#[derive(Default)]
pub(super) struct Decided {
    /// Nodes that go.
    pub(super) gone: BTreeSet<String>,
    /// Nodes that pods of those run on.
    pub(super) taken: BTreeSet<String>,
}

/// Empties one node after the other.
pub(super) fn emptied<'f>(cluster: &ResourceCluster<'f>, decided: &Decided) -> Emptied<'f> {
    let mut emptied = Emptied::default();
    let mut sources = cluster.sources();
    let is_decided = |name: &str| decided.gone.contains(name) || decided.taken.contains(name);
    sources.retain(|node| !is_decided(&node.node.name));
    // Stable: what is alike stays in the order in which it was read.
    sources.sort_by_key(|node| order(node, cluster.used_of(&node.node.name), cluster));
    sources.truncate(MOST_NODES);
    let Some(mut emptying) = Emptying::of(cluster, &sources, decided) else { return emptied };
    loop {
        let next = (0..sources.len())
            .min_by_key(|place| order(sources[*place], emptying.used_of(sources[*place]), cluster));
        let Some(next) = next else { break };
        let node = sources.remove(next);
        if emptying.try_to_empty(&node.node.name) {
            emptied.nodes.push(node);
        }
    }
    let moved = emptying.guests.into_iter();
    emptied.to =
        moved.flat_map(|(to, places)| places.into_iter().map(move |of| (of, to.clone()))).collect();
    emptied
}

/// What decides which node is next, with so many GPUs in use.
fn order(node: &Node, used: i64, cluster: &ResourceCluster<'_>) -> (bool, bool, i64, Reverse<i64>) {
    let is_open = node.cordoned_since_ms.is_none();
    (is_open, node.is_spot == Some(true), used, Reverse(cluster.offered(node)))
}

struct Emptying<'c, 'f> {
    cluster: &'c ResourceCluster<'f>,
    engine: Changing,
    /// Nodes that may go, as the engine knows them.
    nodes: BTreeMap<String, WorldNode>,
    /// What the pods hold that are on them at first, by place.
    holdings: BTreeMap<usize, Holding>,
    /// Pods that are on another node than at first, by that node.
    guests: BTreeMap<String, Vec<usize>>,
}

impl<'c, 'f> Emptying<'c, 'f> {
    fn of(
        cluster: &'c ResourceCluster<'f>,
        sources: &[&'f Node],
        decided: &Decided,
    ) -> Option<Self> {
        let names: BTreeSet<&str> = sources.iter().map(|node| &*node.node.name).collect();
        let places: BTreeSet<usize> = names.iter().flat_map(|name| cluster.pods_of(name)).collect();
        if places.is_empty() {
            return None;
        }
        let gone = decided.gone.iter().map(String::as_str).collect();
        let world = cluster.world_without_unused(&gone);
        let jobs: Vec<Job> = places.iter().map(|place| cluster.job(*place, 0)).collect();
        let (engine, first) = Changing::before(&world, &jobs)?;
        let is_source = |node: &&WorldNode| names.contains(&*node.name);
        let nodes = world.nodes.iter().filter(is_source);
        let nodes = nodes.map(|node| (node.name.to_string(), node.clone())).collect();
        let of_source = |holding: Holding| {
            let place = usize::try_from(holding.id.0).ok()?.checked_sub(1)?;
            places.contains(&place).then_some((place, holding))
        };
        let holdings = world.holdings.into_iter().filter_map(of_source).collect();
        let mut emptying = Self { cluster, engine, nodes, holdings, guests: BTreeMap::new() };
        emptying.settle(first);
        Some(emptying)
    }

    /// Pods of the nodes that go anyway stand where the engine has placed them, like every other
    /// pod.
    fn settle(&mut self, first: Plan) {
        let mut events = Vec::new();
        for (place, (node, devices)) in bound(first) {
            let holding = self.cluster.holding(place, node, devices);
            events.push(Event::ended(JobId(place as u64)));
            events.push(Event::ForeignHeld(Box::new(holding.clone())));
            self.guests.entry(holding.node.to_string()).or_default().push(place);
            self.holdings.insert(place, holding);
        }
        if !events.is_empty() {
            self.engine.after(events);
        }
    }

    fn used_of(&self, node: &Node) -> i64 {
        let name = &*node.node.name;
        let guests = self.guests.get(name).into_iter().flatten();
        let of_guests = guests.map(|place| self.holdings[place].devices.len() as i64);
        self.cluster.used_of(name) + of_guests.sum::<i64>()
    }

    /// Moves all pods from a node, or none; answers which.
    fn try_to_empty(&mut self, name: &str) -> bool {
        let Some(open) = self.nodes.get(name).cloned() else { return false };
        let guests = self.guests.get(name).into_iter().flatten().copied();
        let mut places: Vec<usize> = self.cluster.pods_of(name).chain(guests).collect();
        places.retain(|place| self.holdings.contains_key(place));
        // The largest first, as people would pack them.
        let size = |place: &usize| {
            let Holding { devices, resources, .. } = &self.holdings[place];
            (devices.len(), resources.cpu_milli, resources.memory_bytes)
        };
        places.sort_by_key(|place| Reverse(size(place)));
        let mut bound = self.ask(&open, &places);
        let is_empty = places.iter().all(|place| bound.contains_key(place));
        let mut events = Vec::new();
        for place in &places {
            // From now on it stands like every other pod.
            events.push(Event::ended(JobId(*place as u64)));
            let Some(holding) = self.holdings.get_mut(place) else { continue };
            if let Some((node, devices)) = bound.remove(place).filter(|_| is_empty) {
                (holding.node, holding.devices) = (node, devices);
            }
            events.push(Event::ForeignHeld(Box::new(holding.clone())));
        }
        if is_empty {
            self.guests.remove(name);
            for place in places {
                let node = self.holdings[&place].node.to_string();
                self.guests.entry(node).or_default().push(place);
            }
        } else {
            events.push(Event::NodeChanged(Box::new(open)));
        }
        self.engine.after(events);
        is_empty
    }

    /// The nodes and devices that the engine gives to the pods of a node that is closed.
    fn ask(
        &mut self,
        open: &WorldNode,
        places: &[usize],
    ) -> BTreeMap<usize, (NodeName, HeldDevices)> {
        let closed = WorldNode { condition: NodeAvailability::Cordoned, ..open.clone() };
        let mut events = vec![Event::NodeChanged(Box::new(closed))];
        for place in places {
            if let Owner::Foreign(name) = &self.holdings[place].owner {
                events.push(Event::ForeignReleased { name: name.clone() });
            }
        }
        let jobs = places.iter().zip(0..).map(|(place, order)| self.cluster.job(*place, order));
        events.extend(jobs.map(|job| Event::Submitted(Box::new(job))));
        bound(self.engine.after(events))
    }
}

/// The nodes and devices of pods that start, by place.
fn bound(plan: Plan) -> BTreeMap<usize, (NodeName, HeldDevices)> {
    let bound = plan.actions.into_iter().filter_map(|action| match action {
        Action::Bind { pod, node, devices } => Some((pod.job.0 as usize, (node, devices))),
        _ => None,
    });
    bound.collect()
}
