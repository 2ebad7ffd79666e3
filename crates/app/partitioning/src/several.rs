//! Pods that ask for several instances: all of them are on one node, or nothing is planned for the
//! pod.
//!
//! The planner serves one instance at a time. So the instances of such a pod are asked for on one
//! node, as if by as many pods that may go nowhere else and are served before all others. They stay
//! in the plan if all of them are served, and if that is worth more than what the plan served
//! without them: a planner that may serve a part of them would prefer that to all. Nodes on which
//! they are idle are tried first, for pods of higher priority first, and of the plans that serve a
//! pod the best is kept.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_partition::{Change, Instance, PartitionPlan};

use crate::fleet::Fleet;
use crate::profile_names::idle_on;
use crate::together::{node_of_gpu, plan_together, set_demand};
use crate::waiting::SeveralInstances;

/// So many plans are made to find nodes for all of these pods.
const MOST_PLANS: usize = 32;

/// So many plans of one pod are compared, if there are plans enough for the other pods.
const MOST_COMPARED: usize = 4;

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
    let pods = several.len();
    for (place, pod) in several.into_iter().enumerate() {
        // No plan serves more than all of it beside what it serves of the others.
        bound += slices_of(&fleet, &pod);
        let compared = (plans_left / (pods - place)).clamp(1, MOST_COMPARED);
        let found = node_for((&fleet, &planned), &pod, compared, &mut plans_left)?;
        match found {
            Some((next, plan)) => (fleet, planned) = (next, plan),
            None => *fleet.not_planned.entry(NO_NODE.to_owned()).or_default() += 1,
        }
        planned.upper_bound_compute_slices = bound;
        planned.is_best = false;
    }
    Ok((fleet, planned))
}

fn slices_of(fleet: &Fleet, pod: &SeveralInstances) -> i64 {
    let slices = |(profile, count): (&String, &u32)| fleet.slices(profile) * i64::from(*count);
    pod.instances.iter().map(slices).sum()
}

/// How good a plan is, by the order of the planner: the greater is better.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Worth {
    /// Compute slices of the pods that it serves, by priority, the highest first.
    served: Vec<(i32, i64)>,
    /// Idle instances of GPUs that change, time for which GPUs are unavailable, and idle instances
    /// removed.
    cost: Reverse<(usize, i64, usize)>,
}

impl Worth {
    fn of(fleet: &Fleet, plan: &PartitionPlan) -> Self {
        let mut served: BTreeMap<i32, i64> = BTreeMap::new();
        for ((pods, _), count) in fleet.waiting.iter().zip(&plan.accepted) {
            if *count > 0 {
                let slices = fleet.slices(&pods.profile) * i64::from(*count);
                *served.entry(pods.priority).or_default() += slices;
            }
        }
        let changed = plan.gpus.iter().filter(|gpu| gpu.is_changed());
        let cleared: usize = changed.map(|gpu| gpu.kept.len() + gpu.removed.len()).sum();
        let cost = Reverse((cleared, plan.unavailable_gpu_ms(), plan.removed()));
        Self { served: served.into_iter().rev().collect(), cost }
    }
}

/// The nodes that could provide all instances of a pod beside those of the pods before it: those
/// that have them idle, then those that lack the fewest and have the fewest idle ones to lose.
fn candidates(fleet: &Fleet, pod: &SeveralInstances) -> Vec<usize> {
    let nodes = node_of_gpu(fleet);
    let idle = idle_on(fleet, &nodes);
    let mut room = vec![0i64; pod.nodes.len()];
    let mut may_change = vec![false; pod.nodes.len()];
    let mut idle_there = vec![0usize; pod.nodes.len()];
    for (gpu, node) in fleet.world.gpus.iter().zip(&nodes) {
        let table = &fleet.world.tables[gpu.table];
        let of = |one: &Instance| i64::from(table.profiles[one.profile].compute_slices);
        room[*node] += match gpu.change {
            Change::Never => gpu.idle.iter().map(of).sum::<i64>(),
            Change::Idle | Change::WhenEmpty => {
                i64::from(table.compute_slices) - gpu.held.iter().map(of).sum::<i64>()
            }
        };
        may_change[*node] |= gpu.change != Change::Never;
        idle_there[*node] += gpu.idle.len();
    }
    let needed = slices_of(fleet, pod);
    let mut found: Vec<(u32, usize, usize)> = Vec::new();
    for node in (0..pod.nodes.len()).filter(|node| pod.nodes[*node]) {
        let before = fleet.pinned.on(node);
        let taken = before.iter().map(|(profile, count)| fleet.slices(profile) * i64::from(*count));
        let missing = pod.instances.iter().fold(0, |missing: u32, (profile, count)| {
            let there = idle.get(profile).and_then(|on| on.get(&node)).copied().unwrap_or(0);
            let used = before.get(profile.as_str()).copied().unwrap_or(0);
            missing.saturating_add(count.saturating_sub(there.saturating_sub(used)))
        });
        let has_room = needed <= room[node] - taken.sum::<i64>();
        if has_room && (missing == 0 || may_change[node]) {
            found.push((missing, idle_there[node], node));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|(.., node)| node).collect()
}

/// The fleet and the plan in which a pod has all its instances on one node, and all pods before it
/// with several still have theirs: the best of the plans that were made, if it is worth more than
/// the one without the pod. `compared`: how many of them are made if one serves the pod. `before`:
/// the fleet and the plan without the pod.
fn node_for(
    before: (&Fleet, &PartitionPlan),
    pod: &SeveralInstances,
    compared: usize,
    plans_left: &mut usize,
) -> Result<Option<(Fleet, PartitionPlan)>> {
    let (fleet, planned) = before;
    let worth_before = Worth::of(fleet, planned);
    let all_slices = planned.accepted_compute_slices + slices_of(fleet, pod);
    let mut best: Option<(Worth, (Fleet, PartitionPlan))> = None;
    for (tried, node) in candidates(fleet, pod).into_iter().enumerate() {
        let Some(left) = plans_left.checked_sub(1) else { break };
        if best.is_some() && tried >= compared {
            break;
        }
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
        if !serves_all(&next, &plan) {
            continue;
        }
        let worth = Worth::of(&next, &plan);
        if worth <= worth_before {
            continue;
        }
        // It starts beside all others, and nothing changes for it.
        let is_free = worth.cost >= worth_before.cost && plan.accepted_compute_slices >= all_slices;
        if best.as_ref().is_none_or(|(best, _)| *best < worth) {
            best = Some((worth, (next, plan)));
        }
        if is_free {
            break;
        }
    }
    Ok(best.map(|(_, found)| found))
}

/// Whether the pods with several instances that are in a plan have all of them.
pub(crate) fn serves_all(fleet: &Fleet, planned: &PartitionPlan) -> bool {
    fleet.pinned.needed().into_iter().all(|(pods, needed)| {
        let entry = fleet.waiting.iter().position(|(known, _)| known == pods);
        let accepted = entry.and_then(|entry| planned.accepted.get(entry));
        accepted.is_some_and(|accepted| *accepted >= needed)
    })
}
