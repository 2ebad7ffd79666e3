//! GPUs that are paid and cannot be used.

use super::reach::{NO_DEMAND, UNAVAILABLE};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "CAP-01",
        severity: Severity::Error,
        title: "GPUs of a node are not offered",
        explanation: "The node has more GPUs than pods can ask for: the device plugin found some of them unhealthy (XID \
                      errors, failed row remapping) or does not see them. You pay for them and they do no work.",
        evidence: "resource, GPUs offered, GPUs installed",
        fix: FixKind::NodePool,
        fix_example: "kubectl drain NODE  # then restart the device plugin, reset or replace the GPU",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "CAP-02",
        severity: Severity::Error,
        title: "GPU node is not ready",
        explanation: "No pod can start on the node, and its pods are lost or unreachable, and you still pay for it. Nodes \
                      that are starting are ignored.",
        evidence: "nodes",
        fix: FixKind::NodePool,
        fix_example: "kubectl describe node NODE  # then repair the node or delete it",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "CAP-05",
        severity: Severity::Error,
        title: "device plugin reports fewer GPUs than the node has",
        explanation: "The label of GPU discovery counts more GPUs than the device plugin does: it does not see them, \
                      or gave up on them. You pay for them and no pod can request them.",
        evidence: "GPUs that the label counts and no plugin does",
        fix: FixKind::NodePool,
        fix_example: "kubectl delete pod -l app=nvidia-device-plugin-daemonset  # on that node; else replace it",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "CAP-06",
        severity: Severity::Info,
        title: "free GPUs on nodes that are in use, and no pending pod needs them",
        explanation: "Pods use other GPUs of the node, so it cannot be removed. The scheduling engine places a pod on the free \
                      ones with a proportional share of the node's CPU and memory, so they are usable: smaller instances \
                      with the same GPUs cost less, and preemptible work can use what is left. Free GPUs without enough CPU \
                      or memory are not claimed.",
        evidence: "free and usable GPUs of each node",
        fix: FixKind::NodePool,
        fix_example: "instance types with fewer GPUs per node; or a queue of preemptible work for these nodes",
        layer: Layer::ScaleToZero,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(NO_DEMAND),
    },
];
