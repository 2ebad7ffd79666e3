//! Whether work that waits would start where findings free GPUs: the engine is asked, with and
//! without what would leave.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Owner, Slice, Snapshot};

use crate::facts::Facts;
use crate::moment::{MONTH_MS, Moment, NodeGpus, devices_by_node};
use crate::trial::plan;

/// Time that holders would leave, in milli-GPU × ms of a month, by holder and place of the node.
pub(super) type Freed = BTreeMap<(Option<u32>, usize), i128>;

/// How much of what is freed on each node waiting work would take, in milli-GPU × ms of a month.
pub(super) fn waiting_work_takes(
    facts: &Facts,
    moment: &Moment,
    freed: &Freed,
) -> BTreeMap<usize, i128> {
    let mut room: BTreeMap<usize, i128> = BTreeMap::new();
    for demand in moment.demand.iter().filter(|demand| !demand.world.jobs.is_empty()) {
        let leaving = leaving(facts, moment, freed, &demand.world);
        if leaving.is_empty() {
            continue;
        }
        let before = started_in(&demand.world);
        let after = started_in(&without(&demand.world, &leaving));
        for (number, node) in moment.nodes.iter().enumerate() {
            let units =
                |started: &BTreeMap<String, i64>| started.get(&node.node).copied().unwrap_or(0);
            let more = units(&after) - units(&before);
            if more <= 0 {
                continue;
            }
            let freed = freed.iter().filter(|((_, place), _)| *place == number);
            let freed: i128 = freed.map(|(_, time)| time).sum();
            let taken_milli = units_milli(facts, node, &demand.resource, more);
            let taken = i128::from(taken_milli) * i128::from(MONTH_MS);
            *room.entry(number).or_default() += taken.min(freed);
        }
    }
    room
}

/// How much of a node's GPUs so many units of a resource are, in milli-GPU; of one that is counted
/// under another name (cores of Neuron chips) its part of all of them.
fn units_milli(facts: &Facts, node: &NodeGpus, resource: &str, count: i64) -> i64 {
    if let Some(units) = node.units.iter().find(|units| units.resource == resource) {
        return units.parts.milli(0, count);
    }
    let known = facts.nodes.iter().find(|known| *known.node.name == *node.node);
    let all = known.and_then(|known| known.gpus.get(resource)).map_or(0, |gpus| gpus.built_in);
    Slice { part: node.gpus, of: all }.milli(if all > 0 { count } else { 0 })
}

/// Units of a resource that each pod, by its full name and node, would leave: as many of those it
/// holds in the world as it leaves of its share of the GPUs, whatever part of a GPU a unit is
/// elsewhere.
fn leaving(
    facts: &Facts,
    moment: &Moment,
    freed: &Freed,
    world: &Snapshot,
) -> BTreeMap<(String, String), i64> {
    let places: BTreeMap<&str, usize> =
        moment.nodes.iter().enumerate().map(|(place, node)| (&*node.node, place)).collect();
    let mut stands: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for holding in &world.holdings {
        if let Owner::Foreign(name) = &holding.owner {
            *stands.entry((name.as_str(), &*holding.node)).or_default() +=
                holding.devices.len() as i64;
        }
    }
    let mut left = freed.clone();
    let mut leaving = BTreeMap::new();
    for held in &moment.held {
        let Some(place) = places.get(&*held.node).copied() else { continue };
        let holder = u32::try_from(held.workload).ok();
        let Some(left) = left.get_mut(&(holder, place)) else { continue };
        let pod = format!("{}/{}", facts.workloads[held.workload].owner.namespace, held.pod);
        let units = stands.get(&(&*pod, &*held.node)).copied().unwrap_or(0);
        if units == 0 {
            continue;
        }
        let all_milli = held.gpu_milli.unwrap_or_else(|| {
            units_milli(facts, &moment.nodes[place], &held.resource, held.units)
        });
        let each = i128::from((all_milli / units).max(1)) * i128::from(MONTH_MS);
        let count = (*left / each).min(i128::from(units)).max(0);
        *left -= count * each;
        if count > 0 {
            leaving.entry((pod, held.node.clone())).or_insert(count as i64);
        }
    }
    leaving
}

/// The world once pods have left so many devices; a pod that leaves all of them is gone.
fn without(world: &Snapshot, leaving: &BTreeMap<(String, String), i64>) -> Snapshot {
    let mut world = world.clone();
    let mut gone = BTreeSet::new();
    for holding in &mut world.holdings {
        let Owner::Foreign(name) = &holding.owner else { continue };
        let Some(units) = leaving.get(&(name.clone(), holding.node.to_string())) else { continue };
        let units = usize::try_from(*units).unwrap_or(0);
        match units < holding.devices.len() {
            true => holding.devices.truncate(holding.devices.len() - units),
            false => drop(gone.insert(holding.id)),
        }
    }
    world.holdings.retain(|holding| !gone.contains(&holding.id));
    world
}

/// Devices that waiting work would get in a world, by node.
pub(super) fn started_in(world: &Snapshot) -> BTreeMap<String, i64> {
    devices_by_node(&plan(world))
}
