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

impl State {
    /// Depth of a scope; `None` is the whole cluster.
    pub fn depth_of(&self, scope: Scope) -> Option<usize> {
        match scope {
            Scope::Everywhere => None,
            Scope::Domain(domain) => Some(self.domains.name(domain).len() - 1),
            Scope::Node(_) => Some(self.topology.levels.len()),
        }
    }

    /// Whether all of a scope lies in one domain of a level.
    pub fn is_within(&self, scope: Scope, depth: usize) -> bool {
        match scope {
            Scope::Everywhere => false,
            Scope::Domain(domain) => self.domains.name(domain).len() > depth,
            Scope::Node(node) => {
                depth == self.topology.levels.len() || self.nodes.cold(node).path.len() > depth
            }
        }
    }

    /// Domains of a level inside a scope, in no order.
    pub fn domains_in(&self, scope: Scope, depth: usize) -> Vec<Scope> {
        if depth == self.topology.levels.len() {
            return self.nodes_in(scope).into_iter().map(Scope::Node).collect();
        }
        let inside = |domain: &DomainId| match scope {
            Scope::Everywhere => true,
            Scope::Domain(outer) => {
                self.domains.name(*domain).starts_with(self.domains.name(outer))
            }
            Scope::Node(_) => false,
        };
        let all = self.domains.at_depth(depth).iter().copied();
        all.filter(inside).map(Scope::Domain).collect()
    }

    fn nodes_in(&self, scope: Scope) -> Vec<NodeId> {
        match scope {
            Scope::Everywhere => self.nodes.present().map(|(node, _)| node).collect(),
            Scope::Domain(domain) => self.domains.nodes(domain).to_vec(),
            Scope::Node(node) => vec![node],
        }
    }

    /// Name of a scope, by which ties are broken whatever the order of history: label values, then
    /// for a node its rank.
    pub fn scope_name(&self, scope: Scope) -> Vec<String> {
        match scope {
            Scope::Everywhere => Vec::new(),
            Scope::Domain(domain) => self.domains.name(domain).to_vec(),
            Scope::Node(node) => vec![format!("{:010}", self.nodes.hot(node).rank)],
        }
    }
}
