//! What the gang search asks about single pods. The index answers fast, the naive judge answers
//! plainly.

use dovetail_model::NodeId;

use dovetail_policy::Policy;
use dovetail_state::State;
use dovetail_state::cause::CauseCounts;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// Answers about single pods.
pub trait Finder {
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
