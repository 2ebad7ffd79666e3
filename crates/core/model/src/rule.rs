//! Rules over the pods that are already there.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A rule over the number of counted pods in the domain of a node.
///
/// A counter is a selector (by name) × a node label × a scope: it holds, for each value of the
/// label, how many pods that the selector counts run there on nodes of the scope, each as often as
/// it counts them ([`crate::Selectors`]). Anti-affinity of
/// running pods against newcomers is the same rule with a selector that counts the pods which carry
/// the term. Host ports, disks and claims of one pod only are rules as well: a selector such as
/// `port:TCP/80` counts the pods that use the port, and the label is [`crate::node::NAME_LABEL`] or
/// [`crate::node::CLUSTER_LABEL`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CounterRule {
    pub selector: String,
    /// Node label that names the domain.
    pub label: String,
    /// What is asked of the counter.
    pub kind: RuleKind,
    /// Which nodes count.
    #[serde(default)]
    pub scope: CounterScope,
    pub cause: RuleCause,
}

/// What a [`CounterRule`] asks.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// With the pod placed, the domain holds at most `max_skew` more than the emptiest domain of
    /// the scope. A node without the label is not allowed.
    Spread {
        /// Largest allowed difference.
        max_skew: u32,
        /// If the scope has fewer domains than this, the emptiest counts as 0; `None` is 1.
        #[serde(default)]
        min_domains: Option<u32>,
    },
    /// The domain holds at least one. If nothing is counted by any affinity rule of the pod and the
    /// pod counts itself into all of them, it goes anywhere. A node without the label is not
    /// allowed.
    Affinity,
    /// The domain holds none. A node without the label is allowed.
    AntiAffinity,
    /// With the pod placed, the domain holds at most as many as are named for its label value; one
    /// that is not named, none. A node without the label is not allowed.
    AtMost {
        /// The largest count by label value.
        most: Arc<BTreeMap<String, u32>>,
    },
}

/// Which nodes count for a [`CounterRule`], with their pods and as domains.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum CounterScope {
    #[default]
    AllNodes,
    /// Those that have the labels of all spread rules of the requirement, and that the pod may use.
    Eligible {
        /// Leave out nodes that its names or its conditions of cause
        /// [`crate::requirement::ConditionCause::NodeAffinity`] exclude.
        honor_affinity: bool,
        /// Leave out nodes with a hard taint that it does not tolerate.
        honor_taints: bool,
    },
}

/// What a [`CounterRule`] comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleCause {
    /// A topology spread constraint.
    Spread,
    /// A required affinity term of the pod.
    Affinity,
    /// A required anti-affinity term of the pod.
    AntiAffinity,
    /// A required anti-affinity term of a pod that is already there.
    ExistingAntiAffinity,
    HostPort,
    /// A disk that only one pod, or only readers, may use at a time on a node.
    DiskConflict,
    /// A claim that only one pod of the cluster may use.
    ReadWriteOncePod,
    /// What a node has for the claims of pods that are decided together.
    DeviceClaims,
    /// Pods of another class or namespace that would share GPUs with it.
    SharedGpus,
}
