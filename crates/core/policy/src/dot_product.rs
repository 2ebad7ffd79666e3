//! `dot-product`: the node whose free vector is least aligned with the pod, as published with FGD.
//!
//! Score = trunc(100 · (1 − ½·(CPU free · CPU asked / 128² + GPU free · GPU asked / 8²))), in cores
//! and GPUs.

use dovetail_model::NodeId;

use crate::best_fit::{CPU_SCALE_MILLI, GPU_SCALE_MILLI};
use crate::{Policy, Term};
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

#[derive(Debug, Default)]
pub(crate) struct DotProduct;

impl Policy for DotProduct {
    fn name(&self) -> &'static str {
        "dot-product"
    }

    #[inline]
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let shape = state.shapes.get(shape);
        let hot = state.nodes.hot(node);
        let gpu_left = state.devices.facts(hot.set).gpu_left_milli as f64 / GPU_SCALE_MILLI;
        let cpu_left = hot.cpu_left_milli as f64 / CPU_SCALE_MILLI;
        let cpu = cpu_left * (shape.demand.amounts.cpu_milli as f64 / CPU_SCALE_MILLI);
        let gpu = gpu_left * (shape.gpu_milli as f64 / GPU_SCALE_MILLI);
        (100.0 * (1.0 - (cpu + gpu) / 2.0)) as i64
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        vec![Term { name: "alignment", points: self.score(state, shape, node) }]
    }
}
