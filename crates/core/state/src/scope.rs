//! Parts of the cluster that are searched.

use dovetail_model::NodeId;

use crate::State;
use crate::domains::DomainId;

/// Nodes that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Everywhere,
    /// One domain above the node.
    Domain(DomainId),
    Node(NodeId),
}

impl Scope {
    /// Its depth; `None` is the whole cluster.
    pub fn depth(self, state: &State) -> Option<usize> {
        match self {
            Self::Everywhere => None,
            Self::Domain(domain) => Some(state.domains.name(domain).len() - 1),
            Self::Node(_) => Some(state.topology.levels.len()),
        }
    }

    /// Whether all of it lies in one domain of a level.
    pub fn is_within(self, state: &State, depth: usize) -> bool {
        match self {
            Self::Everywhere => false,
            Self::Domain(domain) => state.domains.name(domain).len() > depth,
            Self::Node(node) => {
                depth == state.topology.levels.len() || state.nodes.cold(node).path.len() > depth
            }
        }
    }

    /// Domains of a level inside it, in no order.
    pub fn domains(self, state: &State, depth: usize) -> Vec<Self> {
        if depth == state.topology.levels.len() {
            return self.nodes(state).into_iter().map(Self::Node).collect();
        }
        let inside = |domain: &DomainId| match self {
            Self::Everywhere => true,
            Self::Domain(outer) => {
                state.domains.name(*domain).starts_with(state.domains.name(outer))
            }
            Self::Node(_) => false,
        };
        let all = state.domains.at_depth(depth).iter().copied();
        all.filter(inside).map(Self::Domain).collect()
    }

    /// Its nodes, in no order.
    pub fn nodes(self, state: &State) -> Vec<NodeId> {
        match self {
            Self::Everywhere => state.nodes.present().map(|(node, _)| node).collect(),
            Self::Domain(domain) => state.domains.nodes(domain).to_vec(),
            Self::Node(node) => vec![node],
        }
    }

    /// Its name, by which ties are broken whatever the order of history: label values, then for a
    /// node its rank.
    pub fn name(self, state: &State) -> Vec<String> {
        match self {
            Self::Everywhere => Vec::new(),
            Self::Domain(domain) => state.domains.name(domain).to_vec(),
            Self::Node(node) => vec![format!("{:010}", state.nodes.hot(node).rank)],
        }
    }
}
