//! What is generated: a size, and kinds of objects.

use serde::Serialize;

/// The moment of every generated cluster, in seconds since 1970: 2026-11-20T12:00:00Z.
pub const OBJECTS_AT_S: u64 = 1_795_176_000;

/// Pods of a cluster for each of its nodes.
pub const PODS_PER_NODE: u32 = 20;

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ObjectsConfig {
    /// Start of all randomness.
    pub seed: u64,
    /// Number of nodes, 12 to 20,000; there are [`PODS_PER_NODE`] times as many pods.
    pub nodes: u32,
}

/// A kind of object, and the file that a dump of it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ObjectKind {
    /// DaemonSets: agents on nodes.
    DaemonSet,
    /// Deployments: servers and web services.
    Deployment,
    /// Autoscalers of some Deployments.
    HorizontalPodAutoscaler,
    /// Jobs: batch work.
    Job,
    /// Namespaces, one for each team and two of the system.
    Namespace,
    Node,
    /// Notebooks of Kubeflow, each with a StatefulSet.
    Notebook,
    Pod,
    /// Disruption budgets of some Deployments.
    PodDisruptionBudget,
    /// Training jobs of Kubeflow.
    PyTorchJob,
    /// ReplicaSets, one for each Deployment.
    ReplicaSet,
    /// Quotas of most namespaces.
    ResourceQuota,
    /// StatefulSets: stores, and what notebooks run in.
    StatefulSet,
}

impl ObjectKind {
    /// All kinds, by the names of their files.
    pub const ALL: [Self; 13] = [
        Self::DaemonSet,
        Self::Deployment,
        Self::HorizontalPodAutoscaler,
        Self::Job,
        Self::Namespace,
        Self::Node,
        Self::Notebook,
        Self::PodDisruptionBudget,
        Self::Pod,
        Self::PyTorchJob,
        Self::ReplicaSet,
        Self::ResourceQuota,
        Self::StatefulSet,
    ];

    /// The name of a file with all objects of the kind, such as `pods.json`.
    pub fn file_name(self) -> String {
        format!("{self:?}s.json").to_lowercase()
    }
}
