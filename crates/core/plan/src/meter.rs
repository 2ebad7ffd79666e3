//! Fragmentation as a figure for reports, apart from any policy.

use dovetail_model::NodeName;

use crate::engine::Engine;
use dovetail_policy::fragmentation::Fragmentation;
use dovetail_policy::target::TargetPod;

/// Expected fragmentation of nodes under a fixed mix, as the FGD paper reports it for every policy.
#[derive(Debug)]
pub struct FragmentationMeter {
    fragmentation: Fragmentation,
}

impl FragmentationMeter {
    /// A meter for a target mix; its names are taken over by the engine's state.
    pub fn new(engine: &mut Engine, mix: &[TargetPod]) -> Self {
        Self { fragmentation: Fragmentation::new(&mut engine.books.placement.state, mix, true) }
    }

    /// Expected fragmented milli-GPU of a node; 0 for one that is not there.
    pub fn node_milli(&mut self, engine: &Engine, node: &NodeName) -> f64 {
        let Some(slot) = engine.books.placement.state.nodes.find(node) else { return 0.0 };
        let hot = engine.books.placement.state.nodes.hot(slot);
        let rank = self.fragmentation.cpu_rank(hot.cpu_left_milli);
        self.fragmentation.of(&engine.books.placement.state, hot.set, rank)
    }
}
