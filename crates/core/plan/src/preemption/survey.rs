//! What was found out about nodes for one more pod of a kind. Jobs that ask for the same come one
//! after the other in a cycle, and each stops others on few nodes: of the rest everything is known
//! already.

use dovetail_model::{NodeId, PreemptionCost};

use super::relation::Preemptor;
use super::units::Unit;
use dovetail_state::shapes::ShapeId;

/// What is known of a node for one more pod.
#[derive(Clone, Debug)]
pub(super) enum Outlook {
    /// There is no room, whoever goes.
    Hopeless,
    /// If there is room at all, it costs no less.
    AtLeast(PreemptionCost),
    /// The cheapest way.
    Way(NodePlan),
}

/// Who goes from a node, and what that costs beyond what was decided before.
#[derive(Clone, Debug)]
pub(super) struct NodePlan {
    pub(super) cost: PreemptionCost,
    pub(super) units: Vec<Unit>,
}

/// Outlooks for pods of one shape, of jobs that may preempt the same others.
#[derive(Debug, Default)]
pub(crate) struct OutlookSurvey {
    about: Option<(ShapeId, Preemptor)>,
    pub(super) nodes: Outlooks,
}

/// Outlooks by node.
#[derive(Debug, Default)]
pub(super) struct Outlooks(Vec<Option<Outlook>>);

impl Outlooks {
    pub(super) fn get(&self, node: NodeId) -> Option<&Outlook> {
        self.0.get(node.index())?.as_ref()
    }

    pub(super) fn insert(&mut self, node: NodeId, outlook: Outlook) {
        if self.0.len() <= node.index() {
            self.0.resize(node.index() + 1, None);
        }
        self.0[node.index()] = Some(outlook);
    }

    pub(super) fn remove(&mut self, node: NodeId) {
        if let Some(known) = self.0.get_mut(node.index()) {
            *known = None;
        }
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

impl OutlookSurvey {
    /// Everything may be different.
    pub(crate) fn clear(&mut self) {
        self.about = None;
        self.nodes.clear();
    }

    /// Something is different on a node.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.nodes.remove(node);
    }

    /// Starts anew, unless it is about the same pods.
    pub(super) fn turn_to(&mut self, shape: ShapeId, preemptor: &Preemptor) {
        let is_same = |(of, by): &(ShapeId, Preemptor)| *of == shape && by == preemptor;
        if !self.about.as_ref().is_some_and(is_same) {
            self.about = Some((shape, preemptor.clone()));
            self.nodes.clear();
        }
    }
}
