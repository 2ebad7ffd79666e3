//! Pods of one node that fit there together. The planner knows GPUs only, and each pod alone fits
//! the CPU, memory and disk of every node it may go to; where all that a plan serves on a node do
//! not, some of them may not go there, and it is planned again.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_partition::{Change, Demand, PartitionPlan, plan};

use crate::fleet::{Fleet, bad_world};
use crate::waiting::{WaitingPods, YOUNG_MS};
use crate::worth::Worth;

/// For so many nodes it is decided which pods may go there; each is a pool of its own, and a plan
/// takes longer the more there are. Others do not change.
const MOST_NARROWED: usize = 16;

const CROWDED: &str =
    "the pods planned for the node request more CPU, memory or disk together than it has free";
const NO_ROOM_BESIDE: &str =
    "the nodes have too little CPU, memory or disk for the pod and the other pods of the plan";

/// Which pods stay on a node that too many are planned for, of those with one priority.
#[derive(Clone, Copy)]
enum FirstToStay {
    /// Those with more compute slices.
    Largest,
    /// Those that may go to the fewest nodes, then those with more compute slices.
    FewestNodes,
}

/// How many pods a plan serves on a node, by the place of their demand: of few of many kinds.
type ServedPods = BTreeMap<usize, u32>;

/// Plans so that all pods that a node serves fit there together. Where that serves less than the
/// GPUs could, it is planned in two ways, and the better plan counts.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub(crate) fn plan_together(fleet: &mut Fleet) -> Result<PartitionPlan> {
    let of_gpus = plan(&fleet.world, &fleet.rules()).map_err(bad_world)?;
    if crowded(fleet, &of_gpus).is_empty() {
        return Ok(of_gpus);
    }
    let mut other = fleet.clone();
    let planned = narrowed(fleet, of_gpus.clone(), FirstToStay::Largest)?;
    if planned.accepted_compute_slices >= of_gpus.accepted_compute_slices {
        return Ok(planned);
    }
    let otherwise = narrowed(&mut other, of_gpus, FirstToStay::FewestNodes)?;
    if Worth::of(&other, &otherwise) > Worth::of(fleet, &planned) {
        *fleet = other;
        return Ok(otherwise);
    }
    Ok(planned)
}

/// The same in one way: larger pods stay on a node before others.
///
/// # Errors
/// A world whose instances cannot be on its GPUs.
pub(crate) fn plan_largest_first(fleet: &mut Fleet) -> Result<PartitionPlan> {
    let of_gpus = plan(&fleet.world, &fleet.rules()).map_err(bad_world)?;
    narrowed(fleet, of_gpus, FirstToStay::Largest)
}

/// Plans again until all pods that a node serves fit there together.
fn narrowed(
    fleet: &mut Fleet,
    mut planned: PartitionPlan,
    first: FirstToStay,
) -> Result<PartitionPlan> {
    let rules = fleet.rules();
    let bound = planned.upper_bound_compute_slices;
    let mut nodes = 0;
    loop {
        let mut crowded = crowded(fleet, &planned);
        if nodes < MOST_NARROWED {
            let Some((node, served)) = crowded.pop_first() else { return Ok(planned) };
            narrow(fleet, node, &served, first);
            nodes += 1;
        } else if !keep_as_they_are(fleet, &planned, &crowded) {
            return Ok(planned);
        }
        planned = plan(&fleet.world, &rules).map_err(bad_world)?;
        planned.upper_bound_compute_slices = bound;
        planned.is_best = false;
    }
}

/// Why a node stays as it is for which a plan serves more pods than fit there; `None` if they fit.
pub(crate) fn crowding(fleet: &Fleet, planned: &PartitionPlan, node: &str) -> Option<&'static str> {
    let place = place_of(fleet, node)?;
    crowded(fleet, planned).contains_key(&place).then_some(CROWDED)
}

/// Pods leave a node: what each of them requested is free there.
pub(crate) fn free_on(fleet: &mut Fleet, node: &str, freed: &[[i64; 4]]) {
    let place = place_of(fleet, node);
    let Some(free) = place.and_then(|place| fleet.free.get_mut(place)) else { return };
    for amounts in freed {
        free.iter_mut().zip(amounts).for_each(|(free, amount)| *free += amount);
    }
}

fn place_of(fleet: &Fleet, node: &str) -> Option<usize> {
    let gpu = fleet.names.iter().position(|(name, _)| name == node)?;
    node_of_gpu(fleet).get(gpu).copied()
}

/// Puts the demand of a fleet into its world. Nodes that the same pods may go to are one pool.
pub(crate) fn set_demand(fleet: &mut Fleet) {
    let waiting = &fleet.waiting;
    let signature =
        |node: usize| -> Vec<bool> { waiting.iter().map(|(pods, _)| pods.nodes[node]).collect() };
    let mut numbers: BTreeMap<Vec<bool>, u16> = BTreeMap::new();
    let mut pools = Vec::new();
    for node in 0..fleet.free.len() {
        let next = u16::try_from(numbers.len()).unwrap_or(u16::MAX);
        pools.push(*numbers.entry(signature(node)).or_insert(next));
    }
    let demand = waiting.iter().map(|(pods, count)| {
        let allowed = (0..pools.len()).filter(|node| pods.nodes[*node]).map(|node| pools[node]);
        Demand {
            profile: pods.profile.clone(),
            count: *count,
            priority: pods.planned_priority(),
            waiting_ms: if pods.is_due { YOUNG_MS.cast_signed() } else { 0 },
            pools: Some(allowed.collect()),
        }
    });
    fleet.world.demand = demand.collect();
    let nodes = node_of_gpu(fleet);
    for (gpu, node) in fleet.world.gpus.iter_mut().zip(nodes) {
        gpu.pool = pools[node];
    }
}

/// The node of each GPU, by its place among the nodes with GPUs, whose GPUs follow each other.
pub(crate) fn node_of_gpu(fleet: &Fleet) -> Vec<usize> {
    let mut places = Vec::new();
    let groups = fleet.names.chunk_by(|(one, _), (other, _)| one == other);
    for (place, gpus) in groups.enumerate() {
        places.extend(std::iter::repeat_n(place, gpus.len()));
    }
    places
}

/// The nodes on which more is served than fits there, each with how many pods of which demand.
fn crowded(fleet: &Fleet, planned: &PartitionPlan) -> BTreeMap<usize, ServedPods> {
    let mut served: BTreeMap<usize, ServedPods> = BTreeMap::new();
    for (node, gpu) in node_of_gpu(fleet).into_iter().zip(&planned.gpus) {
        for (entry, count) in gpu.served.iter().filter(|(entry, _)| *entry < fleet.waiting.len()) {
            *served.entry(node).or_default().entry(*entry).or_default() += count;
        }
    }
    served.retain(|node, served| {
        let Some(mut left) = fleet.free.get(*node).cloned() else { return false };
        served
            .iter()
            .any(|(entry, count)| take(&mut left, &fleet.waiting[*entry].0.each, *count) < *count)
    });
    served
}

/// Takes up to so many equal pods from what is free; how many fit.
fn take(free: &mut [i64], each: &[i64], most: u32) -> u32 {
    let fits = |(free, each): (&i64, &i64)| match *each {
        ..=0 => i64::from(most),
        each => (free / each).max(0),
    };
    let fitting = free.iter().zip(each).map(fits).min().unwrap_or(0);
    let taken = u32::try_from(fitting).unwrap_or(u32::MAX).min(most);
    free.iter_mut().zip(each).for_each(|(free, each)| *free -= each * i64::from(taken));
    taken
}

/// From now on only pods that fit there together may go to a node: first those that the plan serves
/// there, of these first those of higher priority.
fn narrow(fleet: &mut Fleet, node: usize, served: &ServedPods, first: FirstToStay) {
    let before = std::mem::take(&mut fleet.waiting);
    let mut order: Vec<usize> = (0..before.len()).collect();
    order.retain(|entry| before[*entry].0.is_due && before[*entry].0.nodes[node]);
    order.sort_by_key(|entry| {
        let pods = &before[*entry].0;
        let nodes = match first {
            FirstToStay::Largest => 0,
            FirstToStay::FewestNodes => pods.nodes.iter().filter(|may_go| **may_go).count(),
        };
        let slices = fleet.slices(&pods.profile);
        (Reverse(pods.planned_priority()), nodes, Reverse(slices), *entry)
    });
    let mut free = fleet.free[node].clone();
    let mut allowed = vec![0; before.len()];
    for is_of_plan in [true, false] {
        for entry in &order {
            let (pods, count) = &before[*entry];
            let of_plan = served.get(entry).copied().unwrap_or(0);
            let most = if is_of_plan { of_plan } else { count - allowed[*entry] };
            allowed[*entry] += take(&mut free, &pods.each, most);
        }
    }
    let mut is_decided = vec![false; before.len()];
    order.iter().for_each(|entry| is_decided[*entry] = true);
    let mut after: BTreeMap<WaitingPods, u32> = BTreeMap::new();
    for (entry, (pods, count)) in before.into_iter().enumerate() {
        let stays = if is_decided[entry] { allowed[entry] } else { count };
        let mut others = pods.clone();
        others.nodes[node] = false;
        if stays > 0 {
            *after.entry(pods).or_default() += stays;
        }
        if stays == count {
            continue;
        }
        if others.nodes.contains(&true) {
            *after.entry(others).or_default() += count - stays;
        } else {
            let known = fleet.not_planned.entry(NO_ROOM_BESIDE.to_owned()).or_default();
            *known += (count - stays) as usize;
        }
    }
    fleet.waiting = after.into_iter().collect();
    set_demand(fleet);
}

/// Keeps crowded nodes that a plan would change as they are; false if it changes none of them.
fn keep_as_they_are(
    fleet: &mut Fleet,
    planned: &PartitionPlan,
    crowded: &BTreeMap<usize, ServedPods>,
) -> bool {
    let nodes = node_of_gpu(fleet);
    let changed = nodes.iter().zip(&planned.gpus).filter(|(_, gpu)| gpu.is_changed());
    let changed: Vec<usize> =
        changed.map(|(node, _)| *node).filter(|node| crowded.contains_key(node)).collect();
    for (number, _) in nodes.iter().enumerate().filter(|(_, node)| changed.contains(node)) {
        fleet.world.gpus[number].change = Change::Never;
        let name = fleet.names[number].0.clone();
        fleet.stays.entry(name).or_insert_with(|| CROWDED.to_owned());
        *fleet.left_alone.entry(CROWDED.to_owned()).or_default() += 1;
    }
    !changed.is_empty()
}
