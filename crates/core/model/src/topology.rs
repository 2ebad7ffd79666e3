//! The topology tree: which nodes are near each other.

use serde::{Deserialize, Serialize};

/// Name of the finest level, which every topology has: one node.
pub const NODE_LEVEL: &str = "node";

/// The levels of a cluster above the node, from the widest to the narrowest.
///
/// A domain of a level is the set of nodes that agree in the labels of this level and of every
/// wider one. A node without the label of a level belongs to no domain of it, nor of a narrower
/// level.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Topology {
    /// The levels, widest first, without the node itself.
    pub levels: Vec<Level>,
}

/// One level of the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// Name by which jobs ask for it, for example `rack`.
    pub name: String,
    /// Node label whose value names the domain.
    pub label: String,
}

impl Topology {
    /// Depth of a level: 0 is the widest, `levels.len()` is the node; `None` if there is no such
    /// name.
    pub fn depth(&self, name: &str) -> Option<usize> {
        if name == NODE_LEVEL {
            return Some(self.levels.len());
        }
        self.levels.iter().position(|level| level.name == name)
    }

    /// Name of the level at a depth, as [`Topology::depth`] counts.
    pub fn name_at(&self, depth: usize) -> &str {
        self.levels.get(depth).map_or(NODE_LEVEL, |level| &level.name)
    }
}
