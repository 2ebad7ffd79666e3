//! Queues: the tree of teams.

use serde::{Deserialize, Serialize};

use crate::ids::QueueName;

/// One node of the tree of teams.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// Name, unique.
    pub name: QueueName,
    /// Parent; `None` hangs below the root.
    #[serde(default)]
    pub parent: Option<QueueName>,
    /// Quota that is never lent for good, in milli-GPU.
    #[serde(default)]
    pub guaranteed_gpu_milli: i64,
    /// Share of what is over.
    #[serde(default = "one")]
    pub weight: u32,
    /// Never more than this, in milli-GPU; `None` is no limit.
    #[serde(default)]
    pub limit_gpu_milli: Option<i64>,
}

fn one() -> u32 {
    1
}
