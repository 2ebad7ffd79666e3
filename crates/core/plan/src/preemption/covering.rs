//! What victims cost at least for the devices that a pod lacks on a node.

use dovetail_model::{DeviceRequest, HoldingId, NodeId, PreemptionCost};
use smallvec::SmallVec;

use super::units::Unit;
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// What those cost at least who leave the devices that a pod lacks on a node.
pub(super) fn of_devices(state: &State, at: (ShapeId, NodeId), units: &[Unit]) -> PreemptionCost {
    let priority = units.iter().map(|unit| unit.priority).min().unwrap_or(i32::MIN);
    let lost = |unit: &Unit| unit.work_lost_gpu_milli_ms.saturating_add(unit.requeue_gpu_milli_ms);
    let offers = units.iter().map(|unit| (unit, u128::from(lost(unit))));
    cost_of(priority, least(state, at, offers))
}

/// What those cost at least of whom the least priority and the least sum of GPU-time are known.
pub(super) fn cost_of(priority: i32, sum: u128) -> PreemptionCost {
    PreemptionCost {
        highest_priority: i64::from(priority),
        requeue_gpu_milli_ms: u64::try_from(sum).unwrap_or(u64::MAX),
        ..PreemptionCost::default()
    }
}

/// The least sum of the amounts of those who leave the devices that a pod lacks on a node.
pub(super) fn least<'u>(
    state: &State,
    (shape, node): (ShapeId, NodeId),
    offers: impl Iterator<Item = (&'u Unit, u128)>,
) -> u128 {
    let devices = |unit: &Unit| devices_on(state, node, &unit.holdings);
    least_of(state, (shape, node), offers.map(|(unit, amount)| (amount, devices(unit))))
}

/// The same of amounts with how many devices each leaves there, if they could go in part: the
/// linear bound of the covering problem (Dantzig, Discrete-Variable Extremum Problems, 1957). Of
/// those who leave no device on the node nothing is counted.
pub(super) fn least_of(
    state: &State,
    (shape, node): (ShapeId, NodeId),
    offers: impl Iterator<Item = (u128, usize)>,
) -> u128 {
    let asked = match &state.shapes.get(shape).requirement.device {
        DeviceRequest::Whole { count, .. } => usize::from(*count),
        _ => return 0,
    };
    let cold = state.nodes.cold(node);
    let used = devices_on(state, node, &cold.holdings);
    let free = cold.node.devices.len().saturating_sub(used);
    let mut lacking = asked.saturating_sub(free) as u128;
    let mut by_rate: SmallVec<[(u128, u128); 8]> = offers
        .map(|(amount, devices)| (amount, devices as u128))
        .filter(|(_, devices)| *devices > 0)
        .collect();
    by_rate.sort_unstable_by_key(|(amount, devices)| amount / devices);
    let mut sum: u128 = 0;
    for (amount, devices) in by_rate {
        let part = devices.min(lacking);
        // Rounded down: a bound is never above the true sum.
        sum = sum.saturating_add(amount / devices * part);
        lacking -= part;
    }
    sum
}

/// Devices of a node of which these hold anything.
fn devices_on(state: &State, node: NodeId, holdings: &[HoldingId]) -> usize {
    let records = holdings.iter().map(|id| state.holdings.get(*id));
    let here = records.filter(|record| record.node == node);
    let mut devices: SmallVec<[u16; 8]> =
        here.flat_map(|record| &record.devices).map(|(at, _)| *at).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.len()
}
