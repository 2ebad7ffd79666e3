//! How many pods of a shape one node could take, by giving them out one by one on paper.

use dovetail_model::NodeId;

use crate::naive::{FreeOnNode, beyond, early_obstacle, volumes};
use dovetail_state::State;
use dovetail_state::device::choice;
use dovetail_state::device::need::InternedRequest;
use dovetail_state::shapes::ShapeId;

/// Where neither amounts nor devices set a bound, room is counted up to so many pods.
const MOST_PODS: i64 = 65_533;

/// Pods that fit on the node one after another, rules aside.
pub(super) fn of(state: &State, shape: ShapeId, slot: NodeId) -> u64 {
    let info = state.shapes.get(shape);
    let free = FreeOnNode::of(state, slot);
    let closed = early_obstacle(&info.requirement, free.node).is_some()
        || info.requirement.node_conditions.iter().any(|condition| !condition.accepts(free.node))
        || volumes::exceed(state, &info.requirement, slot);
    let asked = &info.demand.amounts;
    let need = state.devices.need(info.demand.need);
    let blocked = free.devices_overcommitted && need.request != InternedRequest::None;
    if closed || blocked {
        return 0;
    }
    let mut table = state.devices.clone();
    let mut cells = free.cells.clone();
    let mut count: i64 = 0;
    loop {
        let next = count + 1;
        let enough = !(beyond(asked.cpu_milli * next, free.cpu_milli)
            || beyond(asked.memory_bytes * next, free.memory_bytes)
            || beyond(asked.ephemeral_bytes * next, free.ephemeral_bytes)
            || beyond(asked.pod_slots * next, free.pod_slots)
            || asked.extended.iter().any(|(name, amount)| {
                beyond(amount * next, free.extended.get(name).copied().unwrap_or(0))
            }));
        let more = enough && count < MOST_PODS;
        let Some(chosen) = choice::choose(need, &cells, &table).filter(|_| more) else {
            return count as u64;
        };
        for (index, amount) in &chosen {
            let place = usize::from(*index);
            cells[place] = table.cell_after_hold(cells[place], amount);
        }
        count = next;
    }
}
