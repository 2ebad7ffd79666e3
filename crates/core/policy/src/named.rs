//! Policies by name.

use dovetail_model::Snapshot;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Policy;
use crate::best_fit::BestFit;
use crate::dot_product::DotProduct;
use crate::dovetail::Dovetail;
use crate::fgd::Fgd;
use crate::fgd_learnt::FgdLearnt;
use crate::first_fit::{FirstFit, Random};
use crate::gpu_clustering::GpuClustering;
use crate::gpu_packing::GpuPacking;
use crate::kube_default::KubeDefault;
use crate::kube_most_allocated::KubeMostAllocated;
use crate::learn::Learnt;
use crate::target::TargetPod;
use crate::weights::Weights;
use dovetail_state::State;

/// Names of all policies with what they do, the default first.
pub const POLICIES: [(&str, &str); 11] = [
    (
        "dovetail",
        "Least expected waste, given the pods seen so far: GPUs that are too fragmented, on nodes \
         with too little CPU or memory, or of a scarce model",
    ),
    ("fgd", "Smallest increase in fragmentation for a given pod mix (USENIX ATC 2023)"),
    ("fgd-learnt", "FGD with the pod mix that dovetail learns"),
    ("best-fit", "Least CPU and GPU left on the node"),
    ("dot-product", "Smallest dot product of free and requested resources"),
    (
        "gpu-packing",
        "GPUs that are partly allocated, then nodes with allocated GPUs, then empty nodes",
    ),
    ("gpu-clustering", "Nodes that run pods with the same GPU request"),
    ("random", "Any node with room, chosen at random (--seed)"),
    ("first-fit", "The first node with room"),
    (
        "kube-default",
        "kube-scheduler's scoring with LeastAllocated and NodeResourcesBalancedAllocation",
    ),
    ("kube-most-allocated", "kube-scheduler's scoring with MostAllocated for CPU, memory and GPUs"),
];

/// Names of the policies that learn, and so can start from what was learnt ([`Policy::learnt`]).
pub const LEARNING: [&str; 2] = ["dovetail", "fgd-learnt"];

/// A policy with everything it is told once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PolicySpec {
    pub name: String,
    /// Seed of `random`.
    pub seed: u64,
    /// Target mix of `fgd`; empty makes every fragmentation 0.
    pub target_mix: Vec<TargetPod>,
    /// What an earlier run of a learning policy learnt ([`Policy::learnt`]); `None` starts knowing
    /// nothing.
    pub learnt: Option<Learnt>,
    /// Other weights of `dovetail` than the documented ones; for benchmarks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<Weights>,
}

impl Default for PolicySpec {
    fn default() -> Self {
        Self::named(POLICIES[0].0)
    }
}

impl PolicySpec {
    /// A policy by name alone.
    pub fn named(name: &str) -> Self {
        let (target_mix, learnt, weights) = (Vec::new(), None, None);
        Self { name: name.to_owned(), seed: 0, target_mix, learnt, weights }
    }

    /// Whether the policy exists and what it was told makes sense.
    pub fn check(&self) -> Result<(), UnknownPolicy> {
        let mut state = State::default();
        state.load(&Snapshot::default());
        build(self, &mut state, true).map(|_| ())
    }
}

/// A policy that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnknownPolicy {
    /// No policy has the name.
    #[error("unknown policy `{name}`: use one of {known}")]
    Name {
        name: String,
        /// The names there are.
        known: String,
    },
}

/// Builds a policy. `remember` false makes it compute everything anew each time.
pub fn build(
    spec: &PolicySpec,
    state: &mut State,
    remember: bool,
) -> Result<Box<dyn Policy>, UnknownPolicy> {
    let learnt = spec.learnt.as_ref();
    Ok(match spec.name.as_str() {
        "dovetail" => {
            let weights = spec.weights.unwrap_or_default();
            Box::new(Dovetail::new(state, learnt, weights, remember))
        }
        "fgd" => Box::new(Fgd::new(state, &spec.target_mix, remember)),
        "fgd-learnt" => Box::new(FgdLearnt::new(state, learnt, remember)),
        "best-fit" => Box::new(BestFit),
        "dot-product" => Box::new(DotProduct),
        "gpu-packing" => Box::new(GpuPacking),
        "gpu-clustering" => Box::new(GpuClustering),
        "random" => Box::new(Random::new(spec.seed)),
        "first-fit" => Box::new(FirstFit),
        "kube-default" => Box::new(KubeDefault),
        "kube-most-allocated" => Box::new(KubeMostAllocated),
        name => {
            let known: Vec<&str> = POLICIES.iter().map(|(name, _)| *name).collect();
            return Err(UnknownPolicy::Name { name: name.to_owned(), known: known.join(", ") });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_that_learn_are_those_that_are_said_to() {
        let mut state = State::default();
        state.load(&Snapshot::default());
        let mut learns = |name: &str| {
            build(&PolicySpec::named(name), &mut state, true).unwrap().learnt().is_some()
        };
        let learning = POLICIES.iter().map(|(name, _)| *name).filter(|name| learns(name));
        assert_eq!(learning.collect::<Vec<_>>(), LEARNING);
    }
}
