//! A pod that has to leave so that the layout of its node can change, in the record of the node: it
//! moves, or finishes by itself.

use dovetail_units::time::time;
use serde::{Deserialize, Serialize};

use crate::object_name::ObjectName;

/// What was moved counts for the budget of so long.
const BUDGET_MS: u64 = 3_600_000;

/// A pod that is moved, or waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodMove {
    /// Namespace and name.
    pub pod: String,
    pub uid: String,
    pub owner: ObjectName,
    /// Another pod of its owner must be ready meanwhile.
    pub is_replica: bool,
    /// The node that has room for it now; empty: it waits for the new layout.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// GPU time that it loses.
    pub lost_gpu_ms: u64,
    /// Its Deployment got one replica more before it is evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub adds_replica: bool,
    /// When its eviction was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evicted_ms: Option<u64>,
    /// It is not evicted: until then the node waits for it to finish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_until_ms: Option<u64>,
}

impl PodMove {
    /// What becomes of it, in words.
    pub fn words(&self) -> String {
        match (self.waits_until_ms, &*self.to) {
            (Some(until_ms), _) => {
                format!("{} (expected to finish before {})", self.pod, time(until_ms))
            }
            (None, "") => format!("{} (back, to the new layout)", self.pod),
            (None, node) => format!("{} (to node {node})", self.pod),
        }
    }

    /// Whether it was evicted within the hour that a budget is for.
    pub(crate) fn is_recent(&self, now_ms: u64) -> bool {
        self.evicted_ms.is_some_and(|at_ms| now_ms < at_ms + BUDGET_MS)
    }

    /// Whether a change that began then moves it; earlier ones only count for the budget.
    pub(crate) fn is_since(&self, started_ms: u64) -> bool {
        self.evicted_ms.is_none_or(|at_ms| at_ms >= started_ms)
    }
}

/// What was moved, in words; empty if nothing was.
pub(crate) fn moved_words<'m>(moves: impl Iterator<Item = &'m PodMove>) -> String {
    let moved: Vec<&PodMove> = moves.filter(|one| one.evicted_ms.is_some()).collect();
    if moved.is_empty() {
        return String::new();
    }
    let names: Vec<String> = moved.iter().map(|one| one.words()).collect();
    let lost_ms: u64 = moved.iter().map(|one| one.lost_gpu_ms).sum();
    format!("moved {}: {} GPU-seconds lost", names.join(", "), lost_ms.div_ceil(1_000))
}
