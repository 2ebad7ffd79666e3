//! GPUs that are paid and cannot be used.

use super::reach::{NO_DEMAND, UNAVAILABLE};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "CAP-01",
        severity: Severity::Error,
        title: "GPUs of a node are not allocatable",
        explanation: "The node has more GPUs than pods can request: the device plugin found some of them unhealthy (XID \
                      errors, failed row remapping) or did not detect them. You pay for them, but they do no work.",
        evidence: "resource, GPUs offered, GPUs installed",
        fix: FixKind::NodePool,
        fix_example: "kubectl drain NODE --ignore-daemonsets  # then restart the device plugin, reset or replace the GPU",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "CAP-02",
        severity: Severity::Error,
        title: "GPU node is not ready",
        explanation: "No pod can start on the node, its pods are lost or unreachable, and you still pay for it. \
                      Starting nodes are ignored.",
        evidence: "nodes",
        fix: FixKind::NodePool,
        fix_example: "kubectl describe node NODES  # then repair or delete each node",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "CAP-05",
        severity: Severity::Error,
        title: "device plugin reports fewer GPUs than the node has",
        explanation: "The label that GPU Feature Discovery sets shows more GPUs than the device \
                      plugin reports: the plugin did not detect them or marked them unhealthy. You \
                      pay for them, but no pod can request them.",
        evidence: "GPUs in the label that no plugin reports",
        fix: FixKind::NodePool,
        fix_example: "kubectl delete pod -l app=nvidia-device-plugin-daemonset  # on that node; if \
                      this does not help, replace the node",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "CAP-06",
        severity: Severity::Info,
        title: "free GPUs that no pending pod needs, on nodes that are in use",
        explanation: "Pods use other GPUs of the node, so it cannot be removed. The free GPUs are usable: a pod with a \
                      proportional share of the node's CPU and memory would fit. Smaller instances with the same GPUs \
                      cost less, and preemptible work can use the free GPUs. Free GPUs without enough CPU or memory are \
                      not counted.",
        evidence: "free and usable GPUs of each node",
        fix: FixKind::NodePool,
        fix_example: "instance types with fewer GPUs per node; or a queue of preemptible work for these nodes",
        layer: Layer::ScaleToZero,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(NO_DEMAND),
    },
];
