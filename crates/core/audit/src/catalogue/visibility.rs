//! What nobody sees.

use super::{Check, FixKind, Layer, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[Check {
    id: "VIS-01",
    severity: Severity::Error,
    title: "nobody measures what the GPUs of a node do",
    explanation: "No pod of dcgm-exporter, AMD's device-metrics-exporter or Intel's XPU Manager runs on the node. \
                      Whether its GPUs compute is unknown, and every question about idle GPUs stays without an answer.",
    evidence: "nodes without an exporter",
    fix: FixKind::NodePool,
    fix_example: "env: [{name: DCGM_EXPORTER_KUBERNETES, value: \"true\"}]  # of dcgm-exporter, with a toleration for these nodes",
    layer: Layer::Guard,
    worth: Worth::Risk,
}];
