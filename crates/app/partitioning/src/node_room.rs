//! Which nodes could have all instances of a pod that requests several, before any plan is made.

use std::collections::BTreeMap;

use dovetail_model::Layout;
use dovetail_partition::{Change, Instance, least_gpus};

use crate::fleet::Fleet;
use crate::profile_names::{IdleOn, are_idle, idle_on};
use crate::together::node_of_gpu;
use crate::waiting::SeveralInstances;

/// What the GPUs of each node of a fleet can provide.
pub(crate) struct NodeRoom {
    idle: IdleOn,
    /// Compute slices.
    slices: Vec<i64>,
    may_change: Vec<bool>,
    /// Idle instances of all profiles.
    idle_there: Vec<usize>,
    /// Instances of the pods with several that the plan serves on each node, by profile.
    pub(crate) pinned: Vec<BTreeMap<String, u32>>,
    /// The table of the GPUs of each node, and how many of them may change as a whole.
    pub(crate) changing: Vec<(usize, usize)>,
}

impl NodeRoom {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let places = node_of_gpu(fleet);
        let nodes = fleet.free.len();
        let mut room = Self {
            idle: idle_on(fleet, &places),
            slices: vec![0; nodes],
            may_change: vec![false; nodes],
            idle_there: vec![0; nodes],
            pinned: fleet.pinned.by_node(nodes),
            changing: vec![(0, 0); nodes],
        };
        for (gpu, node) in fleet.world.gpus.iter().zip(&places) {
            let table = &fleet.world.tables[gpu.table];
            let of = |one: &Instance| i64::from(table.profiles[one.profile].compute_slices);
            room.slices[*node] += match gpu.change {
                Change::Never => gpu.idle.iter().map(of).sum::<i64>(),
                Change::Idle | Change::WhenEmpty => {
                    i64::from(table.compute_slices) - gpu.held.iter().map(of).sum::<i64>()
                }
            };
            room.may_change[*node] |= gpu.change != Change::Never;
            room.idle_there[*node] += gpu.idle.len();
            let is_changing = gpu.change != Change::Never && gpu.held.is_empty();
            room.changing[*node] = (gpu.table, room.changing[*node].1 + usize::from(is_changing));
        }
        room
    }

    /// The nodes that could provide all instances of a pod beside those of the pods before it:
    /// those that have them idle, then those that lack the fewest and have the fewest idle ones to
    /// lose.
    pub(crate) fn candidates(&self, fleet: &Fleet, pod: &SeveralInstances) -> Vec<usize> {
        self.candidates_of(fleet, pod, self.pinned.iter().enumerate())
    }

    /// The same of some nodes, each beside the instances that are given with it.
    pub(crate) fn candidates_of<'n>(
        &self,
        fleet: &Fleet,
        pod: &SeveralInstances,
        nodes: impl Iterator<Item = (usize, &'n BTreeMap<String, u32>)>,
    ) -> Vec<usize> {
        let needed = slices_of(fleet, pod);
        let mut found: Vec<(u32, usize, usize)> = Vec::new();
        for (node, before) in nodes.filter(|(node, _)| pod.nodes[*node]) {
            let taken =
                before.iter().map(|(profile, count)| fleet.slices(profile) * i64::from(*count));
            let missing = pod.instances.iter().fold(0, |missing: u32, (profile, count)| {
                let idle = self.idle.get(profile).and_then(|on| on.get(&node));
                let used = before.get(profile).copied().unwrap_or(0);
                let there = idle.copied().unwrap_or(0).saturating_sub(used);
                missing.saturating_add(count.saturating_sub(there))
            });
            let has_room = needed <= self.slices[node] - taken.sum::<i64>();
            if has_room && (missing == 0 || self.may_change[node]) {
                found.push((missing, self.idle_there[node], node));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(.., node)| node).collect()
    }

    /// Whether a node has all of these instances idle.
    pub(crate) fn has_idle(&self, node: usize, instances: &BTreeMap<String, u32>) -> bool {
        let mut instances = instances.iter();
        instances.all(|(profile, count)| are_idle(&self.idle, node, profile, *count))
    }
}

/// Takes nodes from pods whose instances the GPUs of the node cannot all have, whatever their
/// layouts are: no plan is needed to find that.
pub(crate) fn rule_out(fleet: &Fleet, pods: &mut [SeveralInstances]) {
    let mut of_nodes = vec![(0, 0); fleet.free.len()];
    for (gpu, node) in fleet.world.gpus.iter().zip(node_of_gpu(fleet)) {
        let (_, gpus) = of_nodes[node];
        of_nodes[node] = (gpu.table, gpus + 1);
    }
    let mut least = LeastGpus { fleet, full: BTreeMap::new(), known: BTreeMap::new() };
    for pod in pods {
        let mut tables: BTreeMap<usize, u64> = BTreeMap::new();
        for (may_go, (table, gpus)) in pod.nodes.iter_mut().zip(&of_nodes).filter(|(may, _)| **may)
        {
            let needed = *tables.entry(*table).or_insert_with(|| least.of(*table, &pod.instances));
            *may_go = needed <= *gpus;
        }
    }
}

/// The fewest GPUs that can have some instances, by table and instances.
struct LeastGpus<'f> {
    fleet: &'f Fleet,
    full: BTreeMap<usize, Vec<Layout>>,
    known: BTreeMap<(usize, BTreeMap<String, u32>), u64>,
}

impl LeastGpus<'_> {
    /// 0 where the table does not say it.
    fn of(&mut self, table: usize, instances: &BTreeMap<String, u32>) -> u64 {
        let key = (table, instances.clone());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let of_gpus = &self.fleet.world.tables[table];
        let full = self.full.entry(table).or_insert_with(|| of_gpus.fullest_layouts());
        let list = instances.iter().map(|(profile, count)| (profile.clone(), u64::from(*count)));
        let list: Vec<(String, u64)> = list.collect();
        let least = least_gpus(of_gpus, full, &list).unwrap_or(0);
        self.known.insert(key, least);
        least
    }
}

/// Compute slices of all instances of a pod.
pub(crate) fn slices_of(fleet: &Fleet, pod: &SeveralInstances) -> i64 {
    let slices = |(profile, count): (&String, &u32)| fleet.slices(profile) * i64::from(*count);
    pod.instances.iter().map(slices).sum()
}
