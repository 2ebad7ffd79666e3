//! Drain windows of nodes: open for a time, cordoned meanwhile.

use std::collections::BTreeMap;

use dovetail_model::node::DrainWindow;
use dovetail_model::{Node, NodeAvailability, NodeName};

use dovetail_state::State;

/// Windows that are open or still to come, by node.
#[derive(Debug, Default)]
pub(super) struct Drains(BTreeMap<NodeName, Drain>);

/// A drain window with the condition its node has apart from it.
#[derive(Clone, Copy, Debug)]
struct Drain {
    window: DrainWindow,
    told: NodeAvailability,
}

impl Drain {
    fn condition(&self, now_ms: u64) -> NodeAvailability {
        let open = (self.window.from_ms..self.window.to_ms).contains(&now_ms);
        match self.told {
            NodeAvailability::Ready if open => NodeAvailability::Cordoned,
            told => told,
        }
    }
}

impl Drains {
    /// Notes the window of a node, or that it has none; the condition of the node now.
    pub(super) fn note(&mut self, node: &Node, now_ms: u64) -> NodeAvailability {
        match node.drain_window.filter(|window| now_ms < window.to_ms) {
            Some(window) => {
                let drain = Drain { window, told: node.condition };
                self.0.insert(node.name.clone(), drain);
                drain.condition(now_ms)
            }
            None => {
                self.0.remove(&node.name);
                node.condition
            }
        }
    }

    /// A node has another condition apart from its window; the one it has now.
    pub(super) fn tell(
        &mut self,
        node: &NodeName,
        told: NodeAvailability,
        now_ms: u64,
    ) -> NodeAvailability {
        let Some(drain) = self.0.get_mut(node) else { return told };
        drain.told = told;
        drain.condition(now_ms)
    }

    pub(super) fn forget(&mut self, node: &NodeName) {
        self.0.remove(node);
    }

    /// Opens and closes windows whose time has come.
    pub(super) fn advance(&mut self, state: &mut State, now_ms: u64) {
        if self.0.is_empty() {
            return;
        }
        let due = self.0.iter().filter_map(|(name, drain)| {
            let slot = state.nodes.find(name)?;
            let wanted = drain.condition(now_ms);
            let have = state.nodes.cold(slot).node.condition;
            (have != wanted).then(|| (name.clone(), wanted))
        });
        for (name, condition) in due.collect::<Vec<_>>() {
            state.set_condition(&name, condition);
        }
        self.0.retain(|_, drain| now_ms < drain.window.to_ms);
    }

    /// The node with the condition it has apart from its window.
    pub(super) fn as_told(&self, node: &Node) -> Node {
        let mut node = node.clone();
        if let Some(drain) = self.0.get(&node.name) {
            node.condition = drain.told;
        }
        node
    }
}
