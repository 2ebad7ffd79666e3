//! What the gang search asks about single pods. The index answers fast, the naive judge answers
//! plainly.

use dovetail_model::NodeId;

use crate::cause::{Cause, CauseCounts};
use crate::policy::Policy;
use crate::state::State;
use crate::state::domains::DomainId;
use crate::state::shapes::ShapeId;

/// Nodes that are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Everywhere,
    /// One domain above the node.
    Domain(DomainId),
    Node(NodeId),
}

/// Answers about single pods.
pub(crate) trait Finder {
    /// The node that the policy picks for one pod; `None` if none fits.
    fn best(
        &mut self,
        state: &mut State,
        policy: &mut dyn Policy,
        shape: ShapeId,
        scope: Scope,
    ) -> Option<NodeId>;

    /// How many pods of the shape the nodes of the scope could take, each node by itself, rules
    /// aside.
    fn room(&mut self, state: &mut State, shape: ShapeId, scope: Scope) -> u64;

    /// Nodes by the first thing that keeps the shape off them.
    fn obstacles(
        &mut self,
        state: &mut State,
        policy: &mut dyn Policy,
        shape: ShapeId,
    ) -> CauseCounts;

    /// Builds what answers about the shape rest on, ahead of the first question; changes no answer.
    fn prepare(&mut self, _state: &mut State, _policy: &mut dyn Policy, _shape: ShapeId) {}

    /// How many random picks were made.
    fn draws(&self) -> u64;

    /// Forgets random picks beyond so many.
    fn set_draws(&mut self, draws: u64);
}

impl State {
    /// Whether one pod fits on a node, rules included, judged from scratch.
    pub(crate) fn fits(&mut self, shape: ShapeId, node: NodeId) -> bool {
        let demand = self.shapes.get(shape).demand.clone();
        self.obstacle(&demand, node) == Cause::None
    }

    pub(crate) fn shape_capacity(&mut self, shape: ShapeId, node: NodeId) -> u64 {
        let demand = self.shapes.get(shape).demand.clone();
        u64::from(self.node_capacity(&demand, node))
    }
}
