//! Topology domains and the nodes in them.

use dovetail_model::{Node, NodeId, Topology};
use smallvec::SmallVec;

use crate::intern::Interner;

/// Number of a domain.
pub type DomainId = u32;

/// Domains of one node, widest first; shorter than the topology where a label is missing.
pub type Path = SmallVec<[DomainId; 4]>;

/// The tree of domains above the nodes.
#[derive(Clone, Debug, Default)]
pub struct Domains {
    /// A domain is known by the label values on the way to it.
    names: Interner<Vec<String>>,
    nodes: Vec<Vec<NodeId>>,
    by_depth: Vec<Vec<DomainId>>,
}

impl Domains {
    /// The label values on the way to the domain: its name, and the order of domains in a tie.
    pub fn name(&self, domain: DomainId) -> &[String] {
        self.names.get(domain)
    }

    /// Nodes in the domain, in no order.
    pub fn nodes(&self, domain: DomainId) -> &[NodeId] {
        &self.nodes[domain as usize]
    }

    /// All domains ever seen at a depth; some may be empty now.
    pub fn at_depth(&self, depth: usize) -> &[DomainId] {
        self.by_depth.get(depth).map_or(&[], Vec::as_slice)
    }

    /// How many domains were ever seen.
    pub fn count(&self) -> usize {
        self.names.count()
    }

    /// Puts a node where its labels say.
    pub fn enter(&mut self, slot: NodeId, node: &Node, topology: &Topology) -> Path {
        let mut path = Path::new();
        let mut name = Vec::new();
        for (depth, level) in topology.levels.iter().enumerate() {
            let Some(value) = node.labels.get(&level.label) else { break };
            name.push(value.clone());
            let (domain, new) = self.names.intern(&name);
            if new {
                self.nodes.push(Vec::new());
                self.by_depth.resize(self.by_depth.len().max(depth + 1), Vec::new());
                self.by_depth[depth].push(domain);
            }
            self.nodes[domain as usize].push(slot);
            path.push(domain);
        }
        path
    }

    /// Takes a node out.
    pub fn leave(&mut self, slot: NodeId, path: &Path) {
        for domain in path {
            self.nodes[*domain as usize].retain(|other| *other != slot);
        }
    }
}
