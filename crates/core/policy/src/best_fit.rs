//! `best-fit`: the node that is left with the least CPU and GPU.
//!
//! Score = trunc(100 · (1 − ½·CPU left after / 128 cores − ½·GPU left after / 8 GPUs)), as
//! published with FGD.

use dovetail_model::NodeId;

use crate::{Policy, Term};
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// CPU of the largest node of the published experiments, in thousandths of a core.
pub(crate) const CPU_SCALE_MILLI: f64 = 128_000.0;
/// GPUs of the largest node of the published experiments, in thousandths.
pub(crate) const GPU_SCALE_MILLI: f64 = 8_000.0;

#[derive(Debug, Default)]
pub(crate) struct BestFit;

impl Policy for BestFit {
    fn name(&self) -> &'static str {
        "best-fit"
    }

    #[inline]
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64 {
        let shape = state.shapes.get(shape);
        let hot = state.nodes.hot(node);
        let gpu_left = state.devices.facts(hot.set).gpu_left_milli;
        let cpu = (hot.cpu_left_milli - shape.demand.amounts.cpu_milli) as f64 / CPU_SCALE_MILLI;
        let gpu = (gpu_left - shape.gpu_milli) as f64 / GPU_SCALE_MILLI;
        (100.0 * (1.0 - (0.5 * cpu + 0.5 * gpu))) as i64
    }

    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term> {
        vec![Term { name: "residual", points: self.score(state, shape, node) }]
    }
}
