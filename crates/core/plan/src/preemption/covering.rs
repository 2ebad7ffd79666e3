//! What victims cost at least for the devices that a pod lacks on a node.

use std::collections::BTreeSet;

use dovetail_model::{DeviceRequest, HoldingId, NodeId, PreemptionCost};

use super::units::Unit;
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// What those cost at least who leave the devices that a pod lacks on a node, if they could go in
/// part: the linear bound of the covering problem (Dantzig, Discrete-Variable Extremum Problems,
/// 1957).
pub(super) fn of_devices(
    state: &State,
    (shape, node): (ShapeId, NodeId),
    units: &[Unit],
) -> PreemptionCost {
    let priority = units.iter().map(|unit| unit.priority).min().unwrap_or(i32::MIN);
    let mut bound =
        PreemptionCost { highest_priority: i64::from(priority), ..PreemptionCost::default() };
    let asked = match &state.shapes.get(shape).requirement.device {
        DeviceRequest::Whole { count, .. } => usize::from(*count),
        _ => return bound,
    };
    let cold = state.nodes.cold(node);
    let used = devices_on(state, node, &cold.holdings);
    let free = cold.node.devices.len().saturating_sub(used);
    let mut lacking = asked.saturating_sub(free) as u64;
    let lost = |unit: &Unit| unit.work_lost_gpu_milli_ms.saturating_add(unit.requeue_gpu_milli_ms);
    let mut by_loss: Vec<(u64, u64)> = units
        .iter()
        .map(|unit| (lost(unit), devices_on(state, node, &unit.holdings) as u64))
        .filter(|(_, devices)| *devices > 0)
        .collect();
    by_loss.sort_by_key(|(lost, devices)| lost / devices);
    for (lost, devices) in by_loss {
        let part = devices.min(lacking);
        // Rounded down: a bound is never above the true cost.
        bound.requeue_gpu_milli_ms =
            bound.requeue_gpu_milli_ms.saturating_add(lost / devices * part);
        lacking -= part;
    }
    bound
}

/// Devices of a node of which these hold anything.
fn devices_on(state: &State, node: NodeId, holdings: &[HoldingId]) -> usize {
    let records = holdings.iter().map(|id| state.holdings.get(*id));
    let here = records.filter(|record| record.node == node);
    here.flat_map(|record| &record.devices).map(|(at, _)| *at).collect::<BTreeSet<_>>().len()
}
