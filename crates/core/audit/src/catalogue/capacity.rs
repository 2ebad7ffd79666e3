//! GPUs that are paid and cannot be used.

use super::reach::UNAVAILABLE;
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "CAP-01",
        severity: Severity::Error,
        title: "GPUs of a node are not offered",
        explanation: "The node has more GPUs than pods can ask for: the device plugin found some of them unhealthy (XID \
                      errors, failed row remapping) or does not see them. They are paid and compute nothing.",
        evidence: "resource, GPUs offered and there",
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
        explanation: "Nothing can start on the node, and what ran there is lost or out of reach, while it is paid. Nodes \
                      that are coming up are left out.",
        evidence: "nodes",
        fix: FixKind::NodePool,
        fix_example: "kubectl describe node NODE  # repair it, or delete it",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
    Check {
        id: "CAP-05",
        severity: Severity::Error,
        title: "GPUs of a node are not even counted",
        explanation: "The label of GPU discovery counts more GPUs than the device plugin does: it does not see them, \
                      or gave up on them. They are paid and no pod can request them.",
        evidence: "GPUs that the label counts and no plugin does",
        fix: FixKind::NodePool,
        fix_example: "kubectl delete pod -l app=nvidia-device-plugin-daemonset  # on that node; else replace it",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Nodes(UNAVAILABLE),
    },
];
