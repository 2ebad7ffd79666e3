//! Policies: which of the nodes that fit is best.
//!
//! A policy is a sum of weighted terms. Its score reads the node's own state, the shape and an
//! immutable policy version, never the clock and never another node; that is what lets an index
//! keep scores between decisions. Higher is better; equal scores go to the node with the lowest
//! rank.

mod balance;
mod best_fit;
mod depth;
mod dot_product;
mod dovetail;
mod fgd;
mod fgd_learnt;
pub mod first_fit;
pub mod fragmentation;
mod gpu_clustering;
mod gpu_packing;
mod kube_default;
mod kube_most_allocated;
pub mod learn;
pub mod named;
mod opening;
mod other_resources;
pub mod random;
mod residual;
mod scarcity;
mod share_choice;
mod slice_room;
mod steps;
pub mod target;
pub mod weights;

use dovetail_model::{HeldDevices, NodeId};
use serde::Serialize;

use dovetail_state::State;
use dovetail_state::device::choice;
use dovetail_state::shapes::ShapeId;
use learn::Learnt;

/// Scores lie between −`SCORE_LIMIT` and `SCORE_LIMIT`, both excluded: so many bits an index keeps.
pub const SCORE_LIMIT: i64 = 1 << 39;

/// One weighted part of a score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// Name, as the documentation explains it.
    pub name: &'static str,
    /// What it adds to the score, weight included.
    pub points: i64,
}

/// How a node is picked among those that fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The highest score, then the lowest rank.
    Best,
    /// Any, with equal chances; the number makes the sequence.
    Random {
        /// Seed of the sequence.
        seed: u64,
    },
}

/// Chooses among nodes that fit.
pub trait Policy: Send {
    /// Name by which it is chosen.
    fn name(&self) -> &'static str;

    /// Version of what the scores read besides the state; a new version makes kept scores void.
    fn version(&self) -> u64 {
        0
    }

    /// How a node is picked.
    fn pick(&self) -> Pick {
        Pick::Best
    }

    /// Score of placing one pod of the shape on a node that can take it, within [`SCORE_LIMIT`].
    fn score(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> i64;

    /// What one point of a pod's preferences is worth in scores of this policy. Policies whose
    /// scores are percents take kube-scheduler's points as they are.
    fn point(&self) -> i64 {
        1
    }

    /// The parts of [`Policy::score`], whose points add up to it unless it was cut at the limit.
    fn terms(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> Vec<Term>;

    /// The devices a pod gets on a node that can take it.
    fn devices(&mut self, state: &mut State, shape: ShapeId, node: NodeId) -> HeldDevices {
        default_devices(state, shape, node)
    }

    /// Tells a learning policy that pods of this shape arrived, whether they start or not.
    fn observe_arrival(&mut self, _state: &State, _shape: ShapeId, _pods: u32) {}

    /// Tells a learning policy that a pod of this shape ended after it had run for so long.
    fn observe_end(&mut self, _state: &State, _shape: ShapeId, _ran_ms: u64) {}

    /// Publishes a new version if it is time to; true if one was published. Called between
    /// decisions.
    fn publish(&mut self, _state: &mut State) -> bool {
        false
    }

    /// The published version as named integers; empty if the policy does not learn.
    fn published_values(&self) -> Vec<(String, i64)> {
        Vec::new()
    }

    /// How many random numbers were drawn, so that a question can be taken back.
    fn draws(&self) -> u64 {
        0
    }

    /// Forgets random numbers beyond so many.
    fn set_draws(&mut self, _draws: u64) {}

    /// What a learning policy has learnt; `None` if it does not learn.
    fn learnt(&self) -> Option<&Learnt> {
        None
    }
}

/// The score of a policy and of what the pod prefers, within [`SCORE_LIMIT`].
#[inline]
pub fn whole_score(
    policy: &mut dyn Policy,
    state: &mut State,
    shape: ShapeId,
    points: i64,
    node: NodeId,
) -> i64 {
    let score = policy.score(state, shape, node);
    match points {
        0 => score,
        points => (score + points * policy.point()).clamp(1 - SCORE_LIMIT, SCORE_LIMIT - 1),
    }
}

/// Devices by the common rule: tightest fit for a share, lowest indices otherwise.
pub(crate) fn default_devices(state: &State, shape: ShapeId, node: NodeId) -> HeldDevices {
    let need = state.devices.need(state.shapes.get(shape).demand.need);
    let cells = &state.nodes.cold(node).cells;
    choice::choose(need, cells, &state.devices).expect("devices are chosen on a node that fits")
}
