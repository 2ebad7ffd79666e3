//! Several pods on one GPU.

use super::reach::{IDLE, LAYOUT_REST, NOT_APPLIED, UNAVAILABLE, UNWANTED};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "SHR-01",
        severity: Severity::Error,
        title: "inference shares a GPU by time-slicing",
        explanation: "Time-slicing isolates neither memory nor time: a long kernel of another pod \
                      delays every response, and the memory use of that pod can crash the server. \
                      MIG slices are isolated.",
        evidence: "node and replicas of each GPU",
        fix: FixKind::NodePool,
        fix_example: "labels: {nvidia.com/mig.config: all-1g.10gb}  # GPUs with MIG; on others MPS, or whole GPUs",
        layer: Layer::Share,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SHR-02",
        severity: Severity::Warning,
        title: "notebook uses a whole large GPU",
        explanation: "Interactive work uses a GPU only for a small part of the time. A slice, a \
                      replica or a small GPU costs a fraction of a whole large GPU.",
        evidence: "model",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu.shared: 1}}  # SharingPolicy: {mode: time-slicing, replicas: 4}",
        layer: Layer::Share,
        worth: Worth::Capacity,
        is_inferred: true,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "SHR-03",
        severity: Severity::Warning,
        title: "replicas of a GPU are advertised as whole GPUs",
        explanation: "Time-slicing advertises several nvidia.com/gpu for each GPU. A pod that \
                      requests one gets a part of a GPU, and tools that count or price GPUs find \
                      more GPUs than exist. With renameByDefault, the replicas are \
                      nvidia.com/gpu.shared.",
        evidence: "node, GPUs offered, replicas of each",
        fix: FixKind::NodePool,
        fix_example: "sharing: {timeSlicing: {renameByDefault: true}}",
        layer: Layer::Share,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SHR-04",
        severity: Severity::Warning,
        title: "MIG layout of a node is not the requested one",
        explanation: "The MIG manager could not apply the layout, often because pods use slices of the old one. Until \
                      then the planned slices are not available. A node on which a change by `dovetail partition` \
                      is stuck stays tainted until you repair it.",
        evidence: "node, requested layout, state, since when a change is stuck",
        fix: FixKind::NodePool,
        fix_example: "kubectl drain NODE --ignore-daemonsets  # then dovetail partition rollback, or label it with \
                      nvidia.com/mig.config again",
        layer: Layer::Share,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(NOT_APPLIED),
    },
    Check {
        id: "SHR-05",
        severity: Severity::Warning,
        title: "pods that share a GPU fill its memory",
        explanation: "Time-slicing does not divide the memory. Together the pods have used more than `full_memory_percent` of it: the \
                      next burst of one pod can crash another.",
        evidence: "most memory of its pods together, GPU and node, period",
        fix: FixKind::NodePool,
        fix_example: "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}  # fewer",
        layer: Layer::Share,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SHR-06",
        severity: Severity::Info,
        title: "training with several GPUs runs on parts of GPUs",
        explanation: "Slices and replicas have no direct path to each other: collective operations \
                      go through the host, and the pods wait for the slowest of them.",
        evidence: "resource and amount that one pod requests",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 1}}  # whole GPUs, on nodes without sharing",
        layer: Layer::Share,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SHR-07",
        severity: Severity::Info,
        title: "MIG layout leaves part of its GPUs unusable",
        explanation: "The MIG instances of a GPU do not use all of it, and no pod can request the rest. Another layout \
                      has room for more or larger instances.",
        evidence: "GPUs left over on each node",
        fix: FixKind::NodePool,
        fix_example: "labels: {nvidia.com/mig.config: all-PROFILE}  # a profile that the GPUs have, on nodes without GPU pods",
        layer: Layer::Share,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(LAYOUT_REST),
    },
    Check {
        id: "SHR-08",
        severity: Severity::Warning,
        title: "pending pods request MIG instances that no layout provides",
        explanation: "Too few instances of this profile are free on the nodes that the pods may use: free GPUs there \
                      are partitioned into other profiles, or not partitioned. GPUs of this model can provide the \
                      profile; `dovetail partition plan` computes which GPUs to repartition, for all pending pods \
                      together. It changes only nodes without pods that use GPUs.",
        evidence: "profile and free instances, a node that could provide them, the layout of one of its GPUs",
        fix: FixKind::NodePool,
        fix_example: "dovetail partition plan  # then dovetail partition apply, or the label nvidia.com/mig.config",
        layer: Layer::Share,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Cluster(UNWANTED),
    },
    Check {
        id: "SHR-09",
        severity: Severity::Error,
        title: "GPUs in MIG mode have no instances",
        explanation: "The node has a MIG layout, or other GPUs of the node are partitioned into MIG instances. These \
                      GPUs have no instances, or the device plugin does not report them, so they provide neither a \
                      whole GPU nor a slice. You pay for them, but no pod can request them.",
        evidence: "GPUs without instances on each node, requested layout",
        fix: FixKind::NodePool,
        fix_example: "labels: {nvidia.com/mig.config: all-PROFILE}  # a profile that the GPUs have, on nodes without GPU pods; or dovetail partition plan",
        layer: Layer::Share,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "SHR-10",
        severity: Severity::Info,
        title: "different kinds of work share GPUs by time-slicing",
        explanation: "Time-slicing gives each pod the whole GPU in turn. A notebook that shares a GPU with training \
                      waits for each training step, and each cell that it runs slows training down. Put only one kind \
                      of work on a node.",
        evidence: "kinds of work, with an owner of each, and their node",
        fix: FixKind::NodePool,
        fix_example: "kind: SharingPolicy  # one for each kind of work, with spec.classes: [interactive]",
        layer: Layer::Share,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Nothing,
    },
    Check {
        id: "SHR-11",
        severity: Severity::Info,
        title: "MIG instances of a profile are not used",
        explanation: "Other pods use the GPUs of the node, but none of the pods that the API \
                      server lists has used an instance of this profile for \
                      `unused_profile_hours`. Other profiles could serve other pods.",
        evidence: "profile, its instances and their node",
        fix: FixKind::NodePool,
        fix_example: "dovetail partition plan  # once pods request other profiles; or the label nvidia.com/mig.config",
        layer: Layer::Share,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNWANTED),
    },
];
