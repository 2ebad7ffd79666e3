//! What keeps nodes from going.

use super::reach::{DRAINING, NO_DEMAND, UNWANTED};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "AUT-01",
        severity: Severity::Warning,
        title: "pods that must not be evicted block the removal of half-empty GPU nodes",
        explanation: "The annotation prevents the autoscaler from draining a node with less than \
                      `half_empty_percent` of its GPUs requested. Set it only while the work cannot be \
                      moved.",
        evidence: "annotation, node, requested and installed GPUs",
        fix: FixKind::OwnerTemplate,
        fix_example: "annotations: {}  # without safe-to-evict: \"false\" or do-not-disrupt",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "AUT-02",
        severity: Severity::Warning,
        title: "disruption budget allows no eviction of GPU pods",
        explanation: "A budget that needs all replicas, or allows none to be missing, blocks every drain: nodes cannot be \
                      repaired, upgraded or removed. So do several budgets that select the same pod: the eviction \
                      API does not evict such a pod.",
        evidence: "limit and replicas",
        fix: FixKind::Budget,
        fix_example: "spec: {maxUnavailable: 1}",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "AUT-03",
        severity: Severity::Warning,
        title: "GPU nodes without a GPU pod are not removed",
        explanation: "No pod on the node has used a GPU for longer than `empty_node_minutes`, no pending pod needs it, and you still pay for it. System pods, pods without a controller, or a disruption budget can prevent the autoscaler from removing \
                      it.",
        evidence: "nodes and hours",
        fix: FixKind::NodePool,
        fix_example: "disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 5m}",
        layer: Layer::ScaleToZero,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNWANTED),
    },
    Check {
        id: "AUT-04",
        severity: Severity::Info,
        title: "scale-down of GPU nodes is disabled",
        explanation: "An annotation on the node prevents the autoscaler from removing it, even when no pod needs it.",
        evidence: "nodes and annotation",
        fix: FixKind::NodePool,
        fix_example: "annotations: {}  # without scale-down-disabled or do-not-disrupt",
        layer: Layer::ScaleToZero,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nodes(NO_DEMAND),
    },
    Check {
        id: "AUT-05",
        severity: Severity::Warning,
        title: "pod without a controller on a GPU node",
        explanation: "No controller would recreate the pod on another node, so the cluster autoscaler does not remove its \
                      node. A pod with local data (emptyDir or hostPath) cannot be moved at all.",
        evidence: "node, local data",
        fix: FixKind::OwnerTemplate,
        fix_example: "kind: Job  # around the pod",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "AUT-06",
        severity: Severity::Warning,
        title: "GPU nodes stay cordoned",
        explanation: "A cordoned node accepts no new pods, and you still pay for it. After more than `cordoned_minutes` the repair or the \
                      upgrade is probably over. Uncordon the node if pending pods need it; if none does and no pod with GPUs \
                      runs on it, only its removal lowers the bill. Drain the node if all its pods fit on other nodes. A node \
                      that a taint, a condition or an annotation marks for a repair is not uncordoned before it.",
        evidence: "nodes and hours, the probable reason, nodes without GPU pods, the moves",
        fix: FixKind::NodePool,
        fix_example: "kubectl uncordon NODES  # or remove each node from its pool",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(DRAINING),
    },
    Check {
        id: "AUT-07",
        severity: Severity::Warning,
        title: "pods of nearly empty nodes fit elsewhere",
        explanation: "Less than `half_empty_percent` of the GPUs of a node is requested, and all its pods fit on the \
                      remaining nodes, so the node can be removed. Only pods that restart without loss are moved: no \
                      training without checkpoints, no pods with data on the node, and no pods that an annotation \
                      protects from eviction.",
        evidence: "GPUs requested on each node, the moves",
        fix: FixKind::NodePool,
        fix_example: "kubectl drain NODES --ignore-daemonsets  # the pods move as listed; then remove each node",
        layer: Layer::Schedule,
        worth: Worth::Returned,
        is_inferred: true,
        reach: Reach::Cluster(UNWANTED),
    },
];
