//! Pods that ask for several instances: all of them are on one node, or nothing is planned for the
//! pod.
//!
//! The planner serves one instance at a time. So the instances of such a pod are asked for on one
//! node, as if by as many pods that may go nowhere else, and stay in the plan if all of them are
//! served. Nodes are tried in their order, for pods of higher priority first.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_partition::PartitionPlan;

use crate::fleet::Fleet;
use crate::together::{WaitingPods, plan_together, set_demand};

/// So many plans are made to find nodes for all of these pods.
const MOST_PLANS: usize = 32;

const NO_NODE: &str =
    "requests several instances, and none of the nodes that dovetail tried provides all of them";

/// A pending pod that asks for instances.
#[derive(Clone, Debug)]
pub(crate) struct SeveralInstances {
    /// For each node with GPUs whether it may go there.
    pub(crate) nodes: Vec<bool>,
    /// How many of each profile.
    pub(crate) instances: BTreeMap<String, u32>,
    pub(crate) priority: i32,
    /// CPU, memory, disk and pod slots that it needs.
    pub(crate) each: [i64; 4],
}

/// Pods with several instances that a plan serves, each on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct PinnedPods {
    pods: u64,
    /// Their instances, as demand of the plan.
    instances: Vec<(WaitingPods, u32)>,
}

impl SeveralInstances {
    /// The profile, if it asks for one instance.
    pub(crate) fn only_instance(&self) -> Option<String> {
        let (profile, count) = self.instances.first_key_value()?;
        (*count == 1 && self.instances.len() == 1).then(|| profile.clone())
    }

    fn count(&self) -> i64 {
        self.instances.values().map(|count| i64::from(*count)).sum()
    }

    /// Its instances on a node, as demand: each needs the same part of the rest, rounded up.
    fn on(&self, node: usize) -> Vec<(WaitingPods, u32)> {
        let parts = self.count().max(1);
        let each = self.each.map(|amount| amount.saturating_add(parts - 1).div_euclid(parts));
        let mut nodes = vec![false; self.nodes.len()];
        nodes[node] = true;
        let of_profile = |(profile, count): (&String, &u32)| {
            let (nodes, profile, priority) = (nodes.clone(), profile.clone(), self.priority);
            (WaitingPods { nodes, profile, priority, is_due: true, each }, *count)
        };
        self.instances.iter().map(of_profile).collect()
    }
}

impl PinnedPods {
    /// Instances of all of them, without one for each pod.
    pub(crate) fn instances_beyond_first(&self) -> u64 {
        let all: u64 = self.instances.iter().map(|(_, count)| u64::from(*count)).sum();
        all.saturating_sub(self.pods)
    }
}

/// Plans for all pods of a fleet: for those with one instance, and beside them for those with
/// several.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub(crate) fn plan_with_several(fleet: &mut Fleet) -> Result<PartitionPlan> {
    let mut planned = plan_together(fleet)?;
    let mut several = std::mem::take(&mut fleet.several);
    several.sort_by_key(|pod| Reverse(pod.priority));
    let mut bound = planned.upper_bound_compute_slices;
    let mut plans_left = MOST_PLANS;
    for pod in several {
        // No plan serves more than all of it beside what it serves of the others.
        let slices = |(profile, count): (&String, &u32)| fleet.slices(profile) * i64::from(*count);
        bound += pod.instances.iter().map(slices).sum::<i64>();
        let found = node_for(fleet, &pod, &mut plans_left)?;
        match found {
            Some((next, plan)) => (*fleet, planned) = (next, plan),
            None => *fleet.not_planned.entry(NO_NODE.to_owned()).or_default() += 1,
        }
        planned.upper_bound_compute_slices = bound;
        planned.is_best = false;
    }
    Ok(planned)
}

/// The fleet and the plan in which a pod has all its instances on the first node that allows it,
/// and all pods before it still have theirs.
fn node_for(
    fleet: &Fleet,
    pod: &SeveralInstances,
    plans_left: &mut usize,
) -> Result<Option<(Fleet, PartitionPlan)>> {
    for node in (0..pod.nodes.len()).filter(|node| pod.nodes[*node]) {
        let Some(left) = plans_left.checked_sub(1) else { return Ok(None) };
        *plans_left = left;
        let mut next = fleet.clone();
        for (pods, count) in pod.on(node) {
            match next.waiting.iter_mut().find(|(known, _)| *known == pods) {
                Some((_, known)) => *known = known.saturating_add(count),
                None => next.waiting.push((pods.clone(), count)),
            }
            next.pinned.instances.push((pods, count));
        }
        next.pinned.pods += 1;
        next.waiting.sort();
        set_demand(&mut next);
        let plan = plan_together(&mut next)?;
        if serves_all(&next, &plan) {
            return Ok(Some((next, plan)));
        }
    }
    Ok(None)
}

/// Whether the pods with several instances that are in a plan have all of them.
pub(crate) fn serves_all(fleet: &Fleet, planned: &PartitionPlan) -> bool {
    let mut needed: BTreeMap<&WaitingPods, u32> = BTreeMap::new();
    for (pods, count) in &fleet.pinned.instances {
        let known = needed.entry(pods).or_default();
        *known = known.saturating_add(*count);
    }
    needed.into_iter().all(|(pods, needed)| {
        let entry = fleet.waiting.iter().position(|(known, _)| known == pods);
        let accepted = entry.and_then(|entry| planned.accepted.get(entry));
        accepted.is_some_and(|accepted| *accepted >= needed)
    })
}
