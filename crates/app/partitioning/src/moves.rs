//! Changes for which pods leave: they finish soon (`waitMinutes`), or they move, where a policy
//! allows it (`moves: restartable`).
//!
//! They are planned once no change without moves is left, for one node at a time: as if its pods
//! were not there, with all other nodes as they are. A pod moves to a node that has room for it
//! now, or waits for the new layout of its own node.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_partition::{Change, Demand, PartitionPlan, Rules, plan};
use dovetail_sharing::{Moves, PodMove, PolicySpec, Record, moved_gpu_ms};

use crate::changes::{NodeChange, changes};
use crate::cluster::Age;
use crate::eligible::holders;
use crate::fleet::{Fleet, bad_world};
use crate::gangs::are_whole;
use crate::movers::{Mover, idle_gpu_ms, movers, place};
use crate::objects::{Objects, SeenNode};
use crate::several::serves_all;
use crate::together::{crowding, free_on};
use crate::waiting::YOUNG_MS;

/// So many nodes are tried, those whose pods lose least first.
const MOST_TRIED: usize = 32;

/// A node whose pods may all move, and these pods.
type Candidate = (String, Vec<Mover>);
/// Why nodes stay as they are.
type Stays = BTreeMap<String, String>;

/// A change of one node for which pods move.
#[derive(Debug)]
pub(crate) struct Moved {
    /// The fleet as if the node had been emptied, and the plan for it.
    pub(crate) fleet: Fleet,
    pub(crate) plan: PartitionPlan,
    pub(crate) change: NodeChange,
    worth_ms: i64,
}

/// What the budget of a policy has left, in GPU-milliseconds.
pub(crate) fn left_of_budget(objects: &Objects, policy: &PolicySpec, now_ms: u64) -> u64 {
    let selected =
        objects.nodes.values().filter(|seen| policy.selects(|key| seen.node.meta.labels.get(key)));
    let records: Vec<Record> = selected.filter_map(SeenNode::record).collect();
    let all_ms = u64::from(policy.budget.moved_gpu_seconds_per_hour) * 1_000;
    all_ms.saturating_sub(moved_gpu_ms(records.iter(), now_ms))
}

/// Whether the budget lets pods move; if not the outcome, and why.
pub(crate) fn held_back(moves: &[PodMove], left_ms: u64) -> Option<String> {
    let lost_ms: u64 = moves.iter().map(|one| one.lost_gpu_ms).sum();
    (lost_ms > left_ms).then(|| {
        let (lost, left) = (lost_ms.div_ceil(1_000), left_ms / 1_000);
        format!(
            "stays: its pods would lose {lost} GPU-seconds, and \
             budget.movedGpuSecondsPerHour has {left} left"
        )
    })
}

/// Whether a policy lets pods leave a node so that it can change.
pub(crate) fn lets_leave(policy: &PolicySpec) -> bool {
    policy.moves == Moves::Restartable || policy.wait_minutes > 0
}

/// The nodes that only their pods keep as they are and whose pods finish soon or may move, those
/// that lose least first; of the others the first pod that does neither, and why.
pub(crate) fn candidates(
    nodes: impl Iterator<Item = String>,
    objects: &Objects,
    policy: &PolicySpec,
    now_ms: u64,
) -> (Vec<Candidate>, Stays) {
    let holders = holders(objects);
    let (mut found, mut stays) = (Vec::new(), BTreeMap::new());
    for node in nodes {
        let Some(seen) = objects.nodes.get(&node) else { continue };
        let pods = holders.get(&*node).map_or(&[][..], Vec::as_slice);
        match movers(seen, pods, (objects, policy), now_ms) {
            Ok(movers) => found.push((node, movers)),
            // Its pods are in the way as before, for the reason that is known.
            Err(_) if policy.moves == Moves::Never => {}
            Err(why) => {
                stays.insert(node, why);
            }
        }
    }
    let lost = |movers: &[Mover]| movers.iter().map(|mover| mover.one.lost_gpu_ms).sum::<u64>();
    found.sort_by_key(|(node, movers)| (lost(movers), node.clone()));
    let left = found.split_off(found.len().min(MOST_TRIED));
    for (node, _) in left {
        stays.insert(node, "its pods may move, but pods that lose less are tried first".into());
    }
    let placed = |(node, mut movers): (String, Vec<Mover>)| match place(
        &mut movers,
        &node,
        objects,
        &holders,
    ) {
        Ok(()) => Some((node, movers)),
        Err(why) => {
            stays.insert(node, why);
            None
        }
    };
    let found = found.into_iter().filter_map(placed).collect();
    (found, stays)
}

/// The best change of a MIG layout for which pods move; `None` if none is worth it. `planned`: the
/// plan without moves. Why nodes stay as they are is added to the fleet.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub(crate) fn with_moves(
    fleet: &mut Fleet,
    planned: &PartitionPlan,
    objects: &Objects,
    policy: &PolicySpec,
    age: Age,
) -> Result<Option<Moved>> {
    let is_settled = !planned.gpus.iter().any(dovetail_partition::GpuPlan::is_changed);
    let served: u32 = planned.accepted.iter().sum();
    let asked: u32 = fleet.world.demand.iter().map(|demand| demand.count).sum();
    if !lets_leave(policy) || !is_settled || served == asked {
        return Ok(None);
    }
    let in_use = fleet.in_use.iter().cloned();
    let (found, stays) = candidates(in_use, objects, policy, age.now_ms);
    fleet.stays.extend(stays);
    let left_ms = left_of_budget(objects, policy, age.now_ms);
    let mut best: Option<Moved> = None;
    for (node, movers) in found {
        let Some(mut moved) = emptied(fleet, planned, (&node, movers), policy, age.now_ms)? else {
            continue;
        };
        let (of, plan) = (&moved.fleet, &moved.plan);
        if !serves_all(of, plan) || !are_whole(of, plan) {
            continue;
        }
        if let Some(why) = crowding(&moved.fleet, &moved.plan, &node) {
            fleet.stays.insert(node, why.to_owned());
            continue;
        }
        moved.change.held_back = held_back(&moved.change.moves, left_ms);
        let key = |moved: &Moved| (moved.change.held_back.is_none(), moved.worth_ms);
        if best.as_ref().is_none_or(|best| key(best) < key(&moved)) {
            best = Some(moved);
        }
    }
    Ok(best)
}

/// What becomes of a node whose pods move, if that is worth it.
fn emptied(
    fleet: &Fleet,
    planned: &PartitionPlan,
    (node, mut movers): (&str, Vec<Mover>),
    policy: &PolicySpec,
    now_ms: u64,
) -> Result<Option<Moved>> {
    let rules = fleet.rules();
    let known = fleet.world.demand.len();
    let mut next = fleet.clone();
    let waiting = empty(&mut next, node, &mut movers, &rules, policy);
    let Some(waiting) = waiting else { return Ok(None) };
    let mut plan = plan(&next.world, &rules).map_err(bad_world)?;
    if (known..known + waiting).any(|entry| plan.accepted[entry] == 0) {
        return Ok(None);
    }
    let slices = |accepted: &[u32]| -> i64 {
        let each = next.world.demand[..known].iter().zip(accepted);
        each.map(|(demand, count)| next.slices(&demand.profile) * i64::from(*count)).sum()
    };
    let won = slices(&plan.accepted) - slices(&planned.accepted);
    let gpus = fleet.names.iter().filter(|(name, _)| name == node).count();
    let lost_ms = movers.iter().map(|mover| mover.one.lost_gpu_ms).sum::<u64>()
        + idle_gpu_ms(gpus, &movers, now_ms);
    let cost_ms = plan.unavailable_gpu_ms() + i64::try_from(lost_ms).unwrap_or(i64::MAX);
    let worth_ms = won * rules.horizon_s * 1_000 / next.slices_of_gpu(node);
    if won <= 0 || worth_ms.saturating_mul(100) < cost_ms.saturating_mul(rules.gain_percent) {
        return Ok(None);
    }
    // The pods that come back are no gain.
    plan.gpus.iter_mut().for_each(|gpu| gpu.served.retain(|(entry, _)| *entry < known));
    plan.accepted.truncate(known);
    plan.accepted_compute_slices = slices(&plan.accepted);
    next.world.demand.truncate(known);
    let Some(mut change) = changes(&next, &plan).into_iter().find(|one| one.node == node) else {
        return Ok(None);
    };
    change.moves = movers.into_iter().map(|mover| mover.one).collect();
    Ok(Some(Moved { fleet: next, plan, change, worth_ms: worth_ms - cost_ms }))
}

/// Empties a node, in a fleet whose other nodes stay as they are; how many of its pods wait for the
/// new layout, each a demand of its own. `None` if one waits for what no layout has.
fn empty(
    fleet: &mut Fleet,
    node: &str,
    movers: &mut [Mover],
    rules: &Rules,
    policy: &PolicySpec,
) -> Option<usize> {
    let mine: Vec<bool> = fleet.names.iter().map(|(name, _)| name == node).collect();
    let last = fleet.world.gpus.iter().map(|gpu| gpu.pool).max()?;
    let (old, own) = (fleet.world.gpus[mine.iter().position(|mine| *mine)?].pool, last + 1);
    let mut kept = fleet.keep_whole;
    for (gpu, is_mine) in fleet.world.gpus.iter_mut().zip(&mine) {
        gpu.change = Change::Never;
        if *is_mine {
            gpu.pool = own;
            gpu.idle = [std::mem::take(&mut gpu.held), std::mem::take(&mut gpu.idle)].concat();
            let is_kept = gpu.is_whole && kept > 0;
            kept -= u32::from(is_kept);
            if !is_kept && (!gpu.is_whole || policy.allow_mode_change) {
                gpu.change = Change::WhenEmpty;
            }
        }
    }
    for pools in fleet.world.demand.iter_mut().filter_map(|demand| demand.pools.as_mut()) {
        if pools.contains(&old) {
            pools.push(own);
        }
    }
    let leave = movers.iter().filter(|mover| !mover.comes_back());
    let freed: Vec<[i64; 4]> = leave.map(Mover::frees).collect();
    free_on(fleet, node, &freed);
    let mut waiting = 0;
    for mover in movers.iter_mut().filter(|mover| mover.one.waits_until_ms.is_none()) {
        if mover.one.to.is_empty() {
            // Only an instance can be planned for.
            let profile = fleet.profile_of(node, &mover.resource).filter(|_| mover.count == 1)?;
            mover.wait(u64::try_from(rules.change_s).unwrap_or(0) * 1_000);
            fleet.world.demand.push(Demand {
                profile,
                count: 1,
                priority: i32::MAX,
                waiting_ms: YOUNG_MS.cast_signed(),
                pools: Some(vec![own]),
            });
            waiting += 1;
        } else if let Some(profile) = fleet.profile_of(&mover.one.to, &mover.resource) {
            fleet.hold(&mover.one.to, &profile);
        }
    }
    Some(waiting)
}
