//! Rooms that are kept for others: how important each is, and whether it can be held again.

use dovetail_model::{HoldingPhase, Knowledge};

use dovetail_state::State;
use dovetail_state::device::cell;
use dovetail_state::fit::times_left;
use dovetail_state::holdings::HoldingRecord;

/// The greater is kept rather: by priority, then by how much it is.
pub(super) fn importance(room: &HoldingRecord) -> (i32, i64, i64) {
    let priority = match room.phase {
        HoldingPhase::Kept { priority } => priority,
        _ => i32::MAX,
    };
    let gpu_milli = room.devices.iter().map(|(_, amount)| amount.compute_milli).sum();
    (priority, gpu_milli, room.amounts.cpu_milli)
}

/// Whether what was held before can be held again, beside all that is held now.
pub(crate) fn has_room_for(state: &State, record: &HoldingRecord) -> bool {
    let is_counted = state.nodes.cold(record.node).node.knowledge == Knowledge::Counted;
    let mut cells = state.cells(record.node);
    times_left(&state.nodes, &record.amounts, record.node) >= 1
        && record.devices.iter().all(|(index, amount)| {
            cell::add(&mut cells, *index, amount)
                || (is_counted && cell::give(&mut cells, amount).is_some())
        })
}
