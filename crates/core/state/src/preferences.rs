//! What pods prefer: points of a node, judged once per (list of preferences, node) until the node
//! changes, and points that go with the number of counted pods.

use dovetail_model::preference::MOST_POINTS;
use dovetail_model::{Node, NodeId, Preferred, Requirement, SelectorTerm, TaintEffect, Toleration};
use smallvec::SmallVec;

use crate::State;
use crate::intern::Interner;
use crate::scopes::Scope;
use crate::shapes::{Demand, ShapeId};

/// What a demand prefers. Nothing, mostly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Liking {
    /// Number of what depends on the node alone.
    node: Option<u32>,
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

impl State {
    /// Interns what a requirement prefers.
    pub fn liking_of(&mut self, requirement: &Requirement) -> Liking {
        let mut of_node = OfNode::default();
        let mut counted: SmallVec<[(u32, i64); 1]> = SmallVec::new();
        for preference in &requirement.preferences {
            let points = preference.points.clamp(-MOST_POINTS, MOST_POINTS);
            match &preference.to {
                Preferred::Nodes(terms) => of_node.terms.push((points, terms.clone())),
                Preferred::SoftTaints => of_node.soft_taints += points,
                Preferred::Counted { selector, label, scope } => {
                    let scope = Scope::of(requirement, *scope);
                    let counter = self.intern_counter(selector, label, scope.as_ref(), false);
                    counted.push((counter, points));
                }
                Preferred::Images(_) => {}
            }
        }
        if of_node.soft_taints != 0 {
            of_node.tolerations.clone_from(&requirement.tolerations);
        }
        let node = (of_node != OfNode::default()).then(|| {
            let (number, new) = self.preferences.of_node.intern(&of_node);
            if new {
                self.preferences.known.push(Vec::new());
            }
            number
        });
        Liking { node, counted }
    }

    /// Points of a node for a demand and a list of images, within [`MOST_POINTS`].
    #[inline]
    pub fn points(&mut self, demand: &Demand, images: Option<u32>, node: NodeId) -> i64 {
        match demand.liking.is_none() && images.is_none() {
            true => 0,
            false => self.judge_points(&demand.liking, images, node),
        }
    }

    /// The list of images that make a difference for a shape at this moment.
    #[inline]
    pub fn images_in_force(&self, shape: ShapeId) -> Option<u32> {
        self.shapes.get(shape).images.filter(|list| !self.images.is_idle(*list))
    }

    fn judge_points(&mut self, liking: &Liking, images: Option<u32>, node: NodeId) -> i64 {
        let mut points = liking.node.map_or(0, |list| self.node_points(list, node));
        for (counter, each) in &liking.counted {
            let value = self.counters.key_of(*counter).value(node);
            let pods = value.map_or(0, |value| self.counters.get(*counter).count(value));
            points += each * pods.min(MOST_POINTS);
        }
        points += images.map_or(0, |list| self.images.points(list, node));
        points.clamp(-MOST_POINTS, MOST_POINTS)
    }

    fn node_points(&mut self, list: u32, node: NodeId) -> i64 {
        let version = self.nodes.hot(node).static_version;
        let known = &mut self.preferences.known[list as usize];
        if let Some((judged_at, points)) = known.get(node.index())
            && *judged_at == version
        {
            return *points;
        }
        if known.len() <= node.index() {
            known.resize(node.index() + 1, (0, 0));
        }
        let points = self.preferences.of_node.get(list).judge(&self.nodes.cold(node).node);
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
