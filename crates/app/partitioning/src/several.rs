//! Pods that ask for several instances: all of them are on one node, or nothing is planned for the
//! pod.
//!
//! The planner serves one instance at a time. So the instances of such a pod are asked for on one
//! node, as if by as many pods that may go nowhere else, and stay in the plan if all of them are
//! served. Nodes are tried in their order, for pods of higher priority first.

use std::cmp::Reverse;

use anyhow::Result;
use dovetail_partition::PartitionPlan;

use crate::fleet::Fleet;
use crate::together::{plan_together, set_demand};
use crate::waiting::SeveralInstances;

/// So many plans are made to find nodes for all of these pods.
const MOST_PLANS: usize = 32;

const NO_NODE: &str =
    "requests several instances, and none of the nodes that dovetail tried provides all of them";

/// Plans for all pods of a fleet: for those with one instance, and beside them for those with
/// several. Answers with the fleet that the plan is for: the latter are part of its demand.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub(crate) fn plan_with_several(mut fleet: Fleet) -> Result<(Fleet, PartitionPlan)> {
    let mut planned = plan_together(&mut fleet)?;
    let mut several = std::mem::take(&mut fleet.several);
    several.sort_by_key(|pod| Reverse(pod.priority));
    let mut bound = planned.upper_bound_compute_slices;
    let mut plans_left = MOST_PLANS;
    for pod in several {
        // No plan serves more than all of it beside what it serves of the others.
        let slices = |(profile, count): (&String, &u32)| fleet.slices(profile) * i64::from(*count);
        bound += pod.instances.iter().map(slices).sum::<i64>();
        let found = node_for(&fleet, &pod, &mut plans_left)?;
        match found {
            Some((next, plan)) => (fleet, planned) = (next, plan),
            None => *fleet.not_planned.entry(NO_NODE.to_owned()).or_default() += 1,
        }
        planned.upper_bound_compute_slices = bound;
        planned.is_best = false;
    }
    Ok((fleet, planned))
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
        let instances = pod.on(node);
        for (pods, count) in &instances {
            match next.waiting.iter_mut().find(|(known, _)| known == pods) {
                Some((_, known)) => *known = known.saturating_add(*count),
                None => next.waiting.push((pods.clone(), *count)),
            }
        }
        next.pinned.add(instances);
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
    fleet.pinned.needed().into_iter().all(|(pods, needed)| {
        let entry = fleet.waiting.iter().position(|(known, _)| known == pods);
        let accepted = entry.and_then(|entry| planned.accepted.get(entry));
        accepted.is_some_and(|accepted| *accepted >= needed)
    })
}
