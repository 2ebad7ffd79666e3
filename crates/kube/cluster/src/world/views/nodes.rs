//! Nodes, as the scheduler asks about them.

use dovetail_model::NodeName;

use crate::world::objects::nodes::Nodes;

/// Questions about nodes.
#[derive(Clone, Copy, Debug)]
pub struct NodeView<'w> {
    pub(crate) nodes: &'w Nodes,
}

impl<'w> NodeView<'w> {
    /// Model of a node's GPUs; empty if it has none, or if it does not say.
    pub fn gpu_model(self, node: &str) -> &'w str {
        self.nodes.device_model(node)
    }

    /// Names of the nodes that the engine knows.
    pub fn names(self) -> Vec<NodeName> {
        self.nodes.reported().map(|node| node.name.clone()).collect()
    }
}
