//! A plan as layouts of nodes: mig-manager changes a node at a time.

use std::collections::BTreeMap;

use dovetail_partition::{Instance, PartitionPlan};
use dovetail_sharing::{Component, GpuLayout, NodeLayout, PodMove, Side};

use crate::fleet::Fleet;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeChange {
    pub(crate) node: String,
    /// The component that makes the change.
    pub(crate) by: Component,
    pub(crate) from: Side,
    pub(crate) to: Side,
    /// Pods that its new instances serve, by profile.
    pub(crate) served: BTreeMap<String, u64>,
    /// Pods that move off the node first.
    pub(crate) moves: Vec<PodMove>,
    /// Why the budget for moves does not allow it now, after the outcome.
    pub(crate) held_back: Option<String>,
}

/// Why a change does not begin, without the outcome before it.
pub(crate) fn reason(held_back: &str) -> &str {
    let outcomes = ["planned: ", "stays: "];
    outcomes.iter().find_map(|outcome| held_back.strip_prefix(outcome)).unwrap_or(held_back)
}

pub(crate) fn present(fleet: &Fleet) -> BTreeMap<String, NodeLayout> {
    let mut nodes: BTreeMap<String, NodeLayout> = BTreeMap::new();
    for (number, (node, _)) in fleet.names.iter().enumerate() {
        let gpu = &fleet.world.gpus[number];
        let layout = layout(fleet, number, &[&gpu.held, &gpu.idle]);
        nodes.entry(node.clone()).or_default().0.push(layout);
    }
    nodes
}

/// The nodes that a plan changes, in the order of their names.
pub(crate) fn changes(fleet: &Fleet, planned: &PartitionPlan) -> Vec<NodeChange> {
    let mut next: BTreeMap<String, NodeLayout> = BTreeMap::new();
    let mut served: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for (number, (node, _)) in fleet.names.iter().enumerate() {
        let (gpu, plan) = (&fleet.world.gpus[number], &planned.gpus[number]);
        let layout = layout(fleet, number, &[&gpu.held, &plan.kept, &plan.created]);
        next.entry(node.clone()).or_default().0.push(layout);
        for (entry, count) in &plan.served {
            let profile = fleet.world.demand[*entry].profile.clone();
            *served.entry(node.clone()).or_default().entry(profile).or_default() +=
                u64::from(*count);
        }
    }
    let present = present(fleet).into_iter().zip(next);
    let changed = present.filter(|((_, from), (_, to))| from != to);
    let change = |((node, from), (_, to))| {
        let served = served.remove(&node).unwrap_or_default();
        let (by, from, to) = (Component::MigManager, Side::of(from), Side::of(to));
        let (moves, held_back) = (Vec::new(), None);
        NodeChange { node, by, from, to, served, moves, held_back }
    };
    changed.map(change).collect()
}

fn layout(fleet: &Fleet, number: usize, instances: &[&[Instance]]) -> GpuLayout {
    let gpu = &fleet.world.gpus[number];
    let table = fleet.layout_table(number);
    let mut all: BTreeMap<String, u32> = BTreeMap::new();
    for instance in instances.iter().copied().flatten() {
        *all.entry(table.profiles[instance.profile].name.clone()).or_default() += 1;
    }
    (!gpu.is_whole || !all.is_empty()).then_some(all)
}
