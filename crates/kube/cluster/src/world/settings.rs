//! Settings of a world.

use serde::{Deserialize, Serialize};

use dovetail_translate::Rules;
use dovetail_translate::levels::TopologyLevels;

/// How long gangs are waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// A gang that has its smallest size, but not all pods that are expected, starts when none has
    /// appeared for so long.
    pub quiet_ms: u64,
    /// When a gang of which some pods have nodes, fewer than its smallest size, is given up.
    pub complete_within_ms: u64,
    /// For how long room is kept for a member that was lost while others of its gang have nodes.
    pub keep_for_ms: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { quiet_ms: 2_000, complete_within_ms: 60_000, keep_for_ms: 30_000 }
    }
}

/// How long the volumes of a pod's claims are waited for once its node is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumePatience {
    /// Then the decision is undone, in milliseconds.
    pub wait_ms: u64,
}

impl Default for VolumePatience {
    /// As long as kube-scheduler waits (`bindTimeoutSeconds`).
    fn default() -> Self {
        Self { wait_ms: 600_000 }
    }
}

/// Settings of a world.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// Pods that name this scheduler are placed; all others are foreign.
    pub scheduler: String,
    /// How objects are translated.
    pub rules: Rules,
    /// The topology levels above the node.
    pub levels: TopologyLevels,
    /// How gangs are waited for.
    pub patience: Patience,
    /// Pods that other schedulers placed may be preempted, too.
    pub preempt_foreign: bool,
    /// Jobs and JobSets that choose to be suspended are not: their pods are evicted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub never_suspends: bool,
    /// GPUs that HAMi or Volcano allocates are as any others: for whoever asks why GPUs are free
    /// and places nothing there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignores_vgpus: bool,
    /// Of pods of the first lists that were created at the same time the first in the list is
    /// first, else the first by name. A server lists them by name; names that were anonymized would
    /// give another order.
    pub keeps_list_order: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheduler: "dovetail".to_owned(),
            rules: Rules::default(),
            levels: TopologyLevels::default(),
            patience: Patience::default(),
            preempt_foreign: false,
            never_suspends: false,
            ignores_vgpus: false,
            keeps_list_order: false,
        }
    }
}
