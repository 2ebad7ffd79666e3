//! What pods prefer: points of a node, judged once per (list of preferences, node) until the node
//! changes, and points that go with the number of counted pods.

use dovetail_model::preference::MOST_POINTS;
use dovetail_model::{Node, NodeId, Preferred, Requirement, SelectorTerm, TaintEffect, Toleration};
use smallvec::SmallVec;

use crate::counters::Counters;
use crate::intern::Interner;
use crate::nodes::Nodes;
use crate::scopes::Scope;

/// What a demand prefers. Nothing, mostly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Liking {
    /// Number of what depends on the node alone.
    pub node: Option<u32>,
    /// Counters with the points of each pod they count.
    pub counted: SmallVec<[(u32, i64); 1]>,
}

/// The part of a requirement's preferences that reads only a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct OfNode {
    terms: Vec<(i64, Vec<SelectorTerm>)>,
    soft_taints: i64,
    /// Kept only where soft taints matter.
    tolerations: Vec<Toleration>,
}

/// Interned preferences.
#[derive(Clone, Debug, Default)]
pub struct Preferences {
    of_node: Interner<OfNode>,
    /// Per list and node slot: version of the node's static part (0: not judged) and points.
    known: Vec<Vec<(u64, i64)>>,
}

impl Liking {
    /// Whether all nodes are alike.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.node.is_none() && self.counted.is_empty()
    }
}

impl Preferences {
    /// Interns what a requirement prefers.
    pub fn liking_of(
        &mut self,
        requirement: &Requirement,
        counters: &mut Counters,
        nodes: &Nodes,
    ) -> Liking {
        let mut of_node = OfNode::default();
        let mut counted: SmallVec<[(u32, i64); 1]> = SmallVec::new();
        for preference in &requirement.preferences {
            let points = preference.points.clamp(-MOST_POINTS, MOST_POINTS);
            match &preference.to {
                Preferred::Nodes(terms) => of_node.terms.push((points, terms.clone())),
                Preferred::SoftTaints => of_node.soft_taints += points,
                Preferred::Counted { selector, label, scope } => {
                    let scope = Scope::of(requirement, *scope);
                    let counter = counters.intern(nodes, selector, label, scope.as_ref(), false);
                    counted.push((counter, points));
                }
                Preferred::Images(_) => {}
            }
        }
        if of_node.soft_taints != 0 {
            of_node.tolerations.clone_from(&requirement.tolerations);
        }
        let node = (of_node != OfNode::default()).then(|| {
            let (number, new) = self.of_node.intern(&of_node);
            if new {
                self.known.push(Vec::new());
            }
            number
        });
        Liking { node, counted }
    }

    /// Points of a node for a list of what depends on the node alone.
    pub fn points(&mut self, list: u32, node: NodeId, nodes: &Nodes) -> i64 {
        let version = nodes.hot(node).static_version;
        let known = &mut self.known[list as usize];
        if let Some((judged_at, points)) = known.get(node.index())
            && *judged_at == version
        {
            return *points;
        }
        if known.len() <= node.index() {
            known.resize(node.index() + 1, (0, 0));
        }
        let points = self.of_node.get(list).judge(&nodes.cold(node).node);
        known[node.index()] = (version, points);
        points
    }
}

impl OfNode {
    fn judge(&self, node: &Node) -> i64 {
        let hold = |terms: &[SelectorTerm]| terms.iter().all(|t| t.accepts(node.label(&t.key)));
        let likes = self.terms.iter().filter(|(_, terms)| hold(terms)).map(|(points, _)| points);
        let soft = node.taints.iter().filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
        let open = soft.filter(|taint| !self.tolerations.iter().any(|t| t.accepts(taint)));
        likes.sum::<i64>() + self.soft_taints * open.count() as i64
    }
}
