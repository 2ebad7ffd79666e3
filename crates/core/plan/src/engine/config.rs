//! What an engine is told once.

use serde::{Deserialize, Serialize};

use crate::preemption::PreemptionConfig;
use crate::reserve::ReserveConfig;
use dovetail_order::estimate::EstimatesConfig;
use dovetail_order::{ModelWeights, Order, Turns};
use dovetail_policy::named::PolicySpec;

/// Policy, order, and what else decisions follow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineConfig {
    /// How nodes are chosen.
    pub policy: PolicySpec,
    /// How waiting jobs are ordered.
    pub order: Order,
    /// Answer by exhaustive search and remember nothing: slow, for judging the index.
    pub naive: bool,
    /// Keep a record of every placement for [`Engine::decisions`].
    pub record_decisions: bool,
    /// Memory bound of the score trees, in bytes.
    pub max_index_bytes: usize,
    /// Whether jobs stop others of lower priority.
    #[serde(default)]
    pub preemption: PreemptionConfig,
    /// Whether run times are learned.
    #[serde(default, skip_serializing_if = "EstimatesConfig::is_default")]
    pub estimates: EstimatesConfig,
    /// Whether capacity is reserved for the jobs that are next.
    #[serde(default, skip_serializing_if = "ReserveConfig::is_default")]
    pub reserve: ReserveConfig,
    /// Whether a step ends with the first job that it starts whose pods need devices of claims.
    /// Which devices they get is not the engine's to decide: its caller sets them aside and says
    /// what is left before another job is decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_at_claims: bool,
    /// Weights of order `dovetail`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub turns: Turns,
    /// What GPUs of some models count in what queues have used (`queues = "fair-tree"`).
    #[serde(default, skip_serializing_if = "ModelWeights::is_empty")]
    pub model_weights: ModelWeights,
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_default(turns: &Turns) -> bool {
    *turns == Turns::default()
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            policy: PolicySpec::default(),
            order: Order::default(),
            naive: false,
            record_decisions: false,
            max_index_bytes: dovetail_finder::index::DEFAULT_MAX_BYTES,
            preemption: PreemptionConfig::default(),
            ends_at_claims: false,
            turns: Turns::default(),
            model_weights: ModelWeights::default(),
            estimates: EstimatesConfig::default(),
            reserve: ReserveConfig::default(),
        }
    }
}
