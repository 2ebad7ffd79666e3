//! What a check would change, in the words of the thing itself.

use dovetail_facts::{Container, Workload};
use dovetail_model::{SelectorTerm, Taint};

/// A change that mends a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remedy {
    /// Containers of the pods that it is about; none where it is about something else.
    pub containers: Vec<Container>,
    pub change: PatchChange,
}

impl Remedy {
    /// A change of what the pods of a workload are made from.
    pub(crate) fn of_pods(workload: &Workload, change: PatchChange) -> Self {
        Self { containers: workload.template.containers.clone(), change }
    }

    /// A change of something else.
    pub(crate) fn of_object(change: PatchChange) -> Self {
        Self { containers: Vec::new(), change }
    }
}

/// A single change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PatchChange {
    /// So many GPUs for a container; 0 is none.
    Gpus { container: String, resource: String, count: i64 },
    /// So much CPU in thousandths, or memory in bytes, for a container.
    Amount { container: String, resource: &'static str, request: i64, limit: LimitChange },
    /// No GPUs for a container that sees them without asking.
    HideGpus { container: String },
    /// So much memory at `/dev/shm` of a container.
    SharedMemory { container: String, bytes: i64 },
    /// Taints that pods accept too.
    Tolerate { taints: Vec<Taint> },
    /// A taint that pods accept no longer.
    Respect { taint: Taint },
    /// Something that nodes must satisfy.
    AskOfNodes { term: SelectorTerm },
    /// A label that nodes must have, with its value.
    SelectNodes { label: String, value: String },
    /// Pods that start together: the name of their gang, and how many there are.
    Gang { name: String, members: u32 },
    /// An annotation that pods no longer have.
    DropAnnotation { key: String },
    /// Pods may share a node with their like.
    ShareNodes,
    /// A new priority class for pods that have none.
    Prioritise { class: &'static str, value: i64 },
    /// No pods at all.
    Stop,
    /// Few tries, and an end that clears up.
    LimitRetries,
    /// New pods only in the place of old ones.
    RollInPlace,
    /// One pod may be missing.
    LetOneGo,
    /// As much as is held, and no more.
    Quota { resource: String, units: i64 },
    /// A policy that warns of pods with more GPUs than a node has.
    WarnOfLargePods { resource: String, most: i64 },
    /// A taint of all nodes of a pool.
    TaintNodes { taint: Taint },
    /// A taint of all nodes of a pool under another key.
    RenameTaint { taint: Taint, key: String },
    /// Empty nodes of a pool go.
    RemoveEmptyNodes,
    /// An annotation of nodes goes.
    LetNodesGo { annotation: String },
    /// These nodes of a pool accept pods again.
    Uncordon { nodes: Vec<String> },
    /// Nodes are emptied for a repair.
    Drain,
}

/// What becomes of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitChange {
    Stays,
    Is(i64),
    /// There is none.
    Goes,
}
