//! What one pod needs from its node.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::holding::Attachment;
use crate::node::{Node, Taint, TaintEffect};
use crate::preference::Preference;
use crate::resources::Resources;
use crate::rule::CounterRule;
use crate::selectors::Selectors;

/// Everything that decides where a pod can run. Equal requirements form one shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Requirement {
    /// CPU, memory, storage, pod slots, extended resources.
    pub resources: Resources,
    /// What it needs of devices.
    pub device: DeviceRequest,
    /// GPU models it may use; empty is any.
    pub gpu_models: BTreeSet<String>,
    /// Least memory a device must have, in bytes; 0 is any.
    pub min_device_memory_bytes: i64,
    /// What the node's labels and name must satisfy: every condition holds.
    pub node_conditions: Vec<NodeCondition>,
    /// Nodes it may use by name; empty is any.
    pub node_names: BTreeSet<String>,
    /// Taints it accepts.
    pub tolerations: Vec<Toleration>,
    /// Selectors that count this pod (see [`CounterRule`]).
    pub counts_into: Selectors,
    /// Spread, affinity, and whatever else depends on the pods that are already there.
    pub rules: Vec<CounterRule>,
    /// Volumes that are attached to its node.
    pub attachments: BTreeSet<Attachment>,
    /// What makes one node better than another.
    pub preferences: Vec<Preference>,
}

impl Requirement {
    /// Milli-GPU that one such pod holds in full-GPU equivalents; replicas, slices and counters are
    /// weighed by their device and give 0 here.
    pub fn gpu_milli(&self) -> i64 {
        match self.device {
            DeviceRequest::Whole { count, .. } => i64::from(count) * 1000,
            DeviceRequest::Share { compute_milli, .. } => compute_milli,
            _ => 0,
        }
    }
}

/// What a pod needs of the devices of its node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceRequest {
    #[default]
    None,
    Whole {
        /// How many, at least 1.
        count: u16,
        #[serde(default)]
        same_island: bool,
    },
    Share {
        /// Compute in thousandths, 1 to 999.
        compute_milli: i64,
        /// Device memory in bytes; 0 asks for none.
        #[serde(default)]
        memory_bytes: i64,
    },
    /// Replica slots of one device.
    Replicas {
        /// How many, at least 1.
        count: u16,
    },
    Slice {
        /// Profile name, for example `1g.5gb`.
        profile: String,
    },
    /// Named counters of one device.
    Counters {
        /// Amount per counter name.
        amounts: Vec<(String, i64)>,
    },
}

/// A condition on a node's labels and name, known by what it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeCondition {
    /// Alternatives, each a list of terms that hold together; without an alternative no node
    /// satisfies it.
    pub any_of: Vec<Vec<SelectorTerm>>,
    #[serde(default)]
    pub cause: ConditionCause,
}

impl NodeCondition {
    /// What a pod's node selector and its node affinity ask for.
    pub fn node_affinity(any_of: Vec<Vec<SelectorTerm>>) -> Self {
        Self { any_of, cause: ConditionCause::NodeAffinity }
    }

    /// Whether the node satisfies it.
    pub fn accepts(&self, node: &Node) -> bool {
        let holds = |term: &SelectorTerm| term.accepts(node.label(&term.key));
        self.any_of.iter().any(|terms| terms.iter().all(holds))
    }
}

/// What a [`NodeCondition`] comes from.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum ConditionCause {
    /// The pod's node selector or required node affinity.
    #[default]
    NodeAffinity,
    /// The node affinity of a persistent volume that the pod's claim is bound to.
    VolumeNodeAffinity,
    /// The zone or region labels of such a volume.
    VolumeZone,
    /// Where a volume's driver must be installed and is.
    VolumeDriver,
    /// Where the storage class of an unbound claim may provision.
    StorageTopology,
    /// Where a storage class has capacity left for an unbound claim.
    StorageCapacity,
    /// Where the devices are that the pod's resource claims ask for, or have.
    DeviceClaims,
    /// Features that the node must declare.
    DeclaredFeatures,
    /// Where shared GPUs admit pods of its class.
    SharedGpus,
}

/// One term of a [`NodeCondition`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SelectorTerm {
    /// Label key, also [`crate::node::NAME_LABEL`] and [`crate::node::CLUSTER_LABEL`].
    pub key: String,
    pub operator: Operator,
    /// Values to compare with; one integer for `Gt` and `Lt`.
    #[serde(default)]
    pub values: Vec<String>,
}

/// Comparisons of node selectors, as in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
    /// The label is an integer greater than the value.
    Gt,
    /// The label is an integer smaller than the value.
    Lt,
}

impl Operator {
    const NAMES: [(&str, Self); 6] = [
        ("In", Self::In),
        ("NotIn", Self::NotIn),
        ("Exists", Self::Exists),
        ("DoesNotExist", Self::DoesNotExist),
        ("Gt", Self::Gt),
        ("Lt", Self::Lt),
    ];

    /// Its name in Kubernetes.
    pub fn name(self) -> &'static str {
        crate::named::name_of(&Self::NAMES, self)
    }

    /// The comparison of this name; `None` where there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        crate::named::by_name(&Self::NAMES, name)
    }
}

impl SelectorTerm {
    /// Whether a node with this value of [`SelectorTerm::key`] (`None`: without it) satisfies the
    /// term.
    pub fn accepts(&self, label: Option<&str>) -> bool {
        let listed = || label.is_some_and(|value| self.values.iter().any(|v| v == value));
        let compare = |test: fn(&i64, &i64) -> bool| {
            let have = label.and_then(|value| value.parse::<i64>().ok());
            let want = self.values.first().and_then(|value| value.parse::<i64>().ok());
            have.zip(want).is_some_and(|(have, want)| test(&have, &want))
        };
        match self.operator {
            Operator::In => listed(),
            Operator::NotIn => !listed(),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::Gt => compare(i64::gt),
            Operator::Lt => compare(i64::lt),
        }
    }
}

/// Acceptance of a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// Key; empty accepts every key (with `any_value`).
    pub key: String,
    /// Accept every value (`operator: Exists`).
    pub any_value: bool,
    /// Value, when not every value is accepted.
    pub value: String,
    /// Effect; `None` accepts every effect.
    pub effect: Option<TaintEffect>,
}

impl Toleration {
    /// Whether the taint is accepted, by Kubernetes' rules.
    pub fn accepts(&self, taint: &Taint) -> bool {
        let effect = self.effect.is_none_or(|effect| effect == taint.effect);
        let key = if self.key.is_empty() { self.any_value } else { self.key == taint.key };
        effect && key && (self.any_value || self.value == taint.value)
    }

    /// Whether the taint is accepted by its key. Without a key its pods can run on nodes that are
    /// dedicated to others, which does not mean that they should.
    pub fn names(&self, taint: &Taint) -> bool {
        !self.key.is_empty() && self.accepts(taint)
    }
}
