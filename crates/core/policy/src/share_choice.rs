//! The device choices a pod has on a node, for policies that score them.

use dovetail_model::{HeldDevices, NodeId};
use smallvec::SmallVec;

use crate::default_devices;
use dovetail_state::State;
use dovetail_state::device::choice::{self, LOST};
use dovetail_state::device::need::InternedRequest;
use dovetail_state::shapes::ShapeId;

/// A node's devices after one choice.
#[derive(Clone, Debug)]
pub(crate) struct After {
    /// The multiset after the pod is there.
    pub(crate) set: u32,
    /// Milli-GPU taken by interned model.
    pub(crate) taken: SmallVec<[(u32, i64); 1]>,
}

/// What placing one pod of a need can lead to: one option per distinct device for a share, else
/// one.
pub(crate) fn options_after(state: &mut State, need: u32, set: u32) -> SmallVec<[After; 4]> {
    let cells = state.devices.set(set).clone();
    if let InternedRequest::Share { .. } = state.devices.need(need).request {
        let mut distinct = cells;
        distinct.dedup();
        let options = distinct.into_iter().filter_map(|cell| after_share(state, need, set, cell));
        return options.collect();
    }
    let chosen = choice::choose(state.devices.need(need), &cells, &state.devices);
    let mut after = set;
    let mut taken: SmallVec<[(u32, i64); 1]> = SmallVec::new();
    for (index, amount) in chosen.expect("scored where it fits") {
        let old = cells[usize::from(index)];
        let new = state.devices.cell_after_hold(old, &amount);
        after = state.devices.set_after(after, old, new);
        let model = state.devices.model_of(old);
        match taken.iter_mut().find(|(other, _)| *other == model) {
            Some((_, milli)) => *milli += amount.compute_milli,
            None => taken.push((model, amount.compute_milli)),
        }
    }
    let mut one = SmallVec::new();
    one.push(After { set: after, taken });
    one
}

/// The option of taking a share from a device in the given state; `None` if it does not fit there.
fn after_share(state: &mut State, need: u32, set: u32, cell: u32) -> Option<After> {
    let new = state.devices.cell_after_share(need, cell)?;
    let mut taken = SmallVec::new();
    taken.push((state.devices.model_of(cell), state.devices.need(need).gpu_milli()));
    Some(After { set: state.devices.set_after(set, cell, new), taken })
}

/// The devices a pod gets: for a share the first device whose option has the greatest value, for
/// anything else the common rule.
pub(crate) fn share_on_best<V: PartialOrd>(
    state: &mut State,
    shape: ShapeId,
    node: NodeId,
    mut value: impl FnMut(&mut State, After) -> V,
) -> HeldDevices {
    let need = state.shapes.get(shape).demand.need;
    if !matches!(state.devices.need(need).request, InternedRequest::Share { .. }) {
        return default_devices(state, shape, node);
    }
    let set = state.nodes.hot(node).set;
    let cells: SmallVec<[u32; 8]> = state.nodes.cold(node).cells.iter().copied().collect();
    let mut best: Option<(V, usize)> = None;
    for (index, cell) in cells.iter().enumerate() {
        // An equal device was looked at before, and the first wins.
        if *cell == LOST || cells[..index].contains(cell) {
            continue;
        }
        let Some(after) = after_share(state, need, set, *cell) else { continue };
        let value = value(state, after);
        if best.as_ref().is_none_or(|(highest, _)| value > *highest) {
            best = Some((value, index));
        }
    }
    let (_, index) = best.expect("a share is chosen on a node that fits");
    let kind = state.devices.kind(state.devices.cell(cells[index]).kind);
    vec![(index as u16, state.devices.need(need).amount(kind))]
}
