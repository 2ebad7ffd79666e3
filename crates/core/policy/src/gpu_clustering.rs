//! `gpu-clustering`: pods of one GPU size together, fuller nodes first, as published with FGD.

use dovetail_model::NodeId;

use crate::{Policy, Term};
use dovetail_state::State;
use dovetail_state::device::need::InternedRequest;
use dovetail_state::shapes::ShapeId;

#[derive(Debug, Default)]
pub(crate) struct GpuClustering;

/// Size class of a pod: 0 is a share, otherwise the number of whole devices.
type Size = usize;

impl Policy for GpuClustering {
    fn name(&self) -> &'static str {
        "gpu-clustering"
    }

    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let need = state.devices.need(state.shapes.get(shape).demand.need);
        let size: Size = match need.request {
            InternedRequest::Whole { count, .. } => usize::from(count),
            InternedRequest::Share { .. } => 0,
            _ => return 0,
        };
        let gpu_left = state.devices.facts(state.nodes.hot(node).set).gpu_left_milli;
        let fullness = 25 * (8000 - gpu_left) / 8000;
        let (mut same, mut other) = (false, false);
        for id in &state.nodes.cold(node).holdings {
            match state.holdings.get(*id).devices.as_slice() {
                [] => {}
                [(_, amount)] if amount.compute_milli < 1000 => {
                    same |= size == 0;
                    other |= size != 0;
                }
                devices => {
                    same |= size == devices.len();
                    other |= size != devices.len();
                }
            }
        }
        fullness
            + match (same, other) {
                (true, false) => 75,
                (true, true) => 50,
                (false, false) => 25,
                (false, true) => 0,
            }
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        vec![Term { name: "clustering", points: self.score(state, shape, node) }]
    }
}
