//! How much each term of the default policy counts, in percent of its documented weight.

use serde::{Deserialize, Serialize};

/// Percent of the documented weights. Everybody uses the default, 100 of each; benchmarks take
/// single terms out, or change them, and look at what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Weights {
    pub fragmentation: i64,
    /// Imbalance of CPU and GPU, where nothing ends.
    pub balance: i64,
    /// The price of opening a node, where nothing ends.
    pub opening: i64,
    /// The price of what is left of a node, where jobs come and go.
    pub left: i64,
    /// The price of GPU models.
    pub scarcity: i64,
    /// The weight of whole pods that nobody asked for yet.
    pub unseen: i64,
    /// How much more a kind counts as fewer GPUs are open to it.
    pub rare_kinds: i64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            fragmentation: 100,
            balance: 100,
            opening: 100,
            left: 100,
            scarcity: 100,
            unseen: 100,
            rare_kinds: 100,
        }
    }
}
