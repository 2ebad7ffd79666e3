//! What holders would leave of their GPUs once findings are fixed.

use std::collections::BTreeMap;

use dovetail_facts::{Facts, MONTH_MS, Moment, NodeGpus};
use dovetail_model::{GpuFraction, Owner, Snapshot};

/// Time that holders would leave, in milli-GPU × ms of a month, by holder and place of the node.
pub(super) type Freed = BTreeMap<(Option<u32>, usize), i128>;

/// How much of a node's GPUs so many units of a resource are, in milli-GPU; of one that is counted
/// under another name (cores of Neuron chips) its part of all of them.
pub(super) fn units_milli(facts: &Facts, node: &NodeGpus, resource: &str, count: i64) -> i64 {
    if let Some(units) = node.units.iter().find(|units| units.resource == resource) {
        return units.parts.milli(0, count);
    }
    let known = facts.nodes.iter().find(|known| *known.node.name == *node.node);
    let all = known.and_then(|known| known.gpus.get(resource)).map_or(0, |gpus| gpus.built_in);
    GpuFraction { part: node.gpus, of: all }.milli(if all > 0 { count } else { 0 })
}

/// Units of a resource that each pod, by its full name and node, would leave: as many of those it
/// holds in the world as it leaves of its share of the GPUs, whatever part of a GPU a unit is
/// elsewhere.
pub(super) fn leaving(
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
