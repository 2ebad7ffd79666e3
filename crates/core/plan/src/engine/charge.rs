//! What a pod counts for its queue where it stands.

use dovetail_model::{Charge, NodeId, Requirement};

use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// What a pod of a shape counts on a node beyond what it counts anywhere.
pub(crate) fn charge_there(state: &State, shape: ShapeId, node: NodeId) -> Charge {
    let shape = state.shapes.get(shape);
    let mut charge = Charge::default();
    let device = state.nodes.cold(node).node.devices.first();
    if let Some(device) = device.filter(|_| shape.gpu_milli != 0 && is_open(&shape.requirement)) {
        charge.by_model.insert(device.model.clone(), shape.gpu_milli);
    }
    charge
}

/// Whether a pod may have any of several models.
pub(super) fn is_open(requirement: &Requirement) -> bool {
    requirement.gpu_models.len() != 1
}
