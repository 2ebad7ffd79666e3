//! Whether work that waits would start where findings free GPUs: the engine is asked, with and without what
//! would leave.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Owner, Plan, Snapshot};
use dovetail_plan::Engine;
use dovetail_plan::engine::EngineConfig;

use crate::facts::Facts;
use crate::moment::{Held, MONTH_MS, Moment, Started, Units, devices_by_node};

/// Time that holders would leave, in milli-GPU × ms of a month, by holder and place of the node.
pub(super) type Freed = BTreeMap<(Option<u32>, usize), i128>;

/// How much of what is freed on each node waiting work would take, in milli-GPU × ms of a month. `started` is what it
/// would get now.
pub(super) fn waiting_work_takes(
    facts: &Facts,
    moment: &Moment,
    started: &Started,
    freed: &Freed,
) -> BTreeMap<usize, i128> {
    let mut room: BTreeMap<usize, i128> = BTreeMap::new();
    for demand in moment.demand.iter().filter(|demand| !demand.world.jobs.is_empty()) {
        let leaving = leaving(facts, moment, freed, &demand.resource);
        if leaving.is_empty() {
            continue;
        }
        // The engine took this world when it was asked why GPUs are free.
        let Some(before) = started.get(&demand.resource) else { continue };
        let after = started_in(&without(&demand.world, &leaving));
        for (number, node) in moment.nodes.iter().enumerate() {
            let units =
                |started: &BTreeMap<String, i64>| started.get(&node.node).copied().unwrap_or(0);
            let more = (units(&after) - units(before)).max(0);
            let of = node.units.iter().find(|units| units.resource == demand.resource);
            let freed = freed.iter().filter(|((_, place), _)| *place == number);
            let freed: i128 = freed.map(|(_, time)| time).sum();
            let taken =
                of.map_or(0, |units| i128::from(units.slice.milli(more)) * i128::from(MONTH_MS));
            *room.entry(number).or_default() += taken.min(freed);
        }
    }
    room
}

/// Units of a resource that each pod, by its full name and node, would leave.
fn leaving(
    facts: &Facts,
    moment: &Moment,
    freed: &Freed,
    resource: &str,
) -> BTreeMap<(String, String), i64> {
    let places: BTreeMap<&str, usize> =
        moment.nodes.iter().enumerate().map(|(place, node)| (&*node.node, place)).collect();
    let mut left = freed.clone();
    let mut leaving = BTreeMap::new();
    for Held { node, workload, pod, units, .. } in
        moment.held.iter().filter(|held| held.resource == resource)
    {
        let Some(place) = places.get(&**node).copied() else { continue };
        let Some(left) = left.get_mut(&(u32::try_from(*workload).ok(), place)) else { continue };
        let of_node = moment.nodes[place].units.iter().find(|units| units.resource == *resource);
        let each = of_node.map_or(0, |Units { slice, .. }| i128::from(slice.milli(1)));
        let each = (each * i128::from(MONTH_MS)).max(1);
        let count = (*left / each).min(i128::from(*units)).max(0);
        *left -= count * each;
        if count > 0 {
            let namespace = &facts.workloads[*workload].owner.namespace;
            leaving.insert((format!("{namespace}/{pod}"), node.clone()), count as i64);
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
fn started_in(world: &Snapshot) -> BTreeMap<String, i64> {
    // Who leaves makes no world that the engine does not take.
    let Ok(mut engine) = Engine::new(EngineConfig::default(), world) else {
        return BTreeMap::new();
    };
    let mut plan = Plan::default();
    engine.cycle(&mut plan);
    devices_by_node(&plan)
}
