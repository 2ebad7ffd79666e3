//! The record of a placement: chosen, runner-up, margin and every term.

use dovetail_model::{HeldDevices, JobId, NodeId, NodeName, PodId};
use serde::Serialize;

use crate::engine::{NodeSearch, Placement};
use crate::gang::{Gang, PlacedPod};
use dovetail_policy::{Term, whole_score};
use dovetail_state::scope::Scope;

/// Why one pod went where it went, at the moment of the decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionRecord {
    pub job: JobId,
    /// The pod the scores speak of: the first of the job.
    pub pod: PodId,
    pub node: NodeName,
    pub devices: HeldDevices,
    /// The kubelet chooses the devices: the indices above mean nothing.
    pub devices_chosen_by_kubelet: bool,
    pub policy_version: u64,
    /// The best nodes for the pod in order, the chosen one first unless the topology wanted
    /// another.
    pub alternatives: Vec<Alternative>,
    /// Points by which the best is ahead of the second; 0 is a tie that rank decided.
    pub margin: Option<i64>,
}

/// A node that could have taken the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alternative {
    pub node: NodeName,
    /// Sum of the terms.
    pub score: i64,
    /// The parts of the score.
    pub terms: Vec<Term>,
}

impl Placement {
    /// The best two nodes for the first pod of a gang, before anything is placed.
    pub(crate) fn record_alternatives(&mut self, gang: &Gang) -> Vec<Alternative> {
        let Some(set) = gang.sets.iter().find(|set| set.min > 0) else { return Vec::new() };
        let (state, policy) = (&mut self.state, &mut *self.policy);
        let finder = self.finder.finder();
        let best = finder.best(state, policy, set.shape, Scope::Everywhere);
        let second = match &mut self.finder {
            NodeSearch::Indexed(index) => index.runner_up(state, policy, set.shape),
            NodeSearch::Exhaustive(_) => None,
        };
        let nodes: Vec<NodeId> = best.into_iter().chain(second).collect();
        nodes.into_iter().map(|node| self.alternative(set.shape, node)).collect()
    }

    fn alternative(&mut self, shape: crate::ShapeId, node: NodeId) -> Alternative {
        let mut terms = self.policy.terms(&mut self.state, shape, node);
        let demand = self.state.shapes.get(shape).demand.clone();
        let images = self.state.shapes.get(shape).images;
        let points = demand.points(&mut self.state, images, node);
        let besides = demand.points(&mut self.state, None, node);
        let score = whole_score(&mut *self.policy, &mut self.state, shape, points, node);
        if !demand.liking.is_none() {
            terms.push(Term { name: "preferences", points: besides * self.policy.point() });
        }
        if images.is_some() {
            let points = (points - besides) * self.policy.point();
            terms.push(Term { name: "images", points });
        }
        Alternative { node: self.state.nodes.cold(node).node.name.clone(), score, terms }
    }
}

impl DecisionRecord {
    pub(crate) fn of(
        placement: &Placement,
        job: JobId,
        placed: &[PlacedPod],
        alternatives: Vec<Alternative>,
    ) -> Self {
        let first = placed.first().expect("a placed job has a pod");
        let node = &placement.state.nodes.cold(first.node).node;
        Self {
            job,
            pod: first.pod,
            node: node.name.clone(),
            devices: first.devices.clone(),
            devices_chosen_by_kubelet: node.knowledge == dovetail_model::Knowledge::Counted,
            policy_version: placement.policy.version(),
            margin: match alternatives.as_slice() {
                [best, second, ..] => Some(best.score - second.score),
                _ => None,
            },
            alternatives,
        }
    }
}
