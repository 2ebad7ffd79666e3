//! Nodes, as the scheduler asks about them.

use std::collections::BTreeMap;

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

    /// What decides the price of a node: its labels and its `spec.providerID`; both are empty if
    /// there is no such node.
    pub fn price_facts(self, node: &str) -> (BTreeMap<String, String>, String) {
        let Some(node) = self.nodes.get(node) else { return Default::default() };
        let labels = node.meta.labels.iter();
        let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        (labels, node.provider_id.to_string())
    }

    /// Names of the nodes that the engine knows.
    pub fn names(self) -> Vec<NodeName> {
        self.nodes.reported().map(|node| node.name.clone()).collect()
    }
}
