//! `gpu-packing`: used devices first, then used nodes, then idle nodes, as published with FGD.

use dovetail_model::{Mode, NodeId};

use crate::{Policy, Term, default_devices};
use dovetail_state::State;
use dovetail_state::device::need::InternedRequest;
use dovetail_state::shapes::ShapeId;

#[derive(Debug, Default)]
pub(crate) struct GpuPacking;

impl Policy for GpuPacking {
    fn name(&self) -> &'static str {
        "gpu-packing"
    }

    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let need = state.devices.need(state.shapes.get(shape).demand.need);
        let share = match need.request {
            InternedRequest::Whole { .. } => false,
            InternedRequest::Share { .. } => true,
            _ => return 0,
        };
        let facts = state.devices.facts(state.nodes.hot(node).set);
        let devices = i64::from(facts.devices);
        if facts.gpu_left_milli == i64::from(facts.devices) * 1000 {
            return (33 - devices).max(devices);
        }
        let chosen = default_devices(state, shape, node);
        let cells = &state.nodes.cold(node).cells;
        let mut free_used = 0;
        let mut percent_left = 0;
        for (index, _) in &chosen {
            let cell = state.devices.cell(cells[usize::from(*index)]);
            free_used += i64::from(cell.mode == Mode::Empty);
            percent_left += cell.compute_left_milli * 100 / 1000;
        }
        match share && free_used == 0 {
            true => (100 - percent_left / 10).max(50),
            false => (50 - free_used).max(33),
        }
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        vec![Term { name: "packing", points: self.score(state, shape, node) }]
    }
}
