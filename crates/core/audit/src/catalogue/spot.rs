//! Capacity that its provider may take back.

use super::reach::REPEATED;
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "SPT-01",
        severity: Severity::Error,
        title: "training on spot capacity loses its work when its node is reclaimed",
        explanation: "The provider takes the node back with a warning of seconds to two minutes. There is no sign that the job saves its progress: no volume outlives its pods, and no annotation names how often it saves. All \
                      that it computed since its start is then repeated.",
        evidence: "hours it runs, seconds it has to save its work",
        fix: FixKind::OwnerTemplate,
        fix_example: "annotations: {dovetail.dev/checkpoint-interval: 30m}  # and a volume that it saves to",
        layer: Layer::SpotAndRegion,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Held(REPEATED),
    },
    Check {
        id: "SPT-02",
        severity: Severity::Info,
        title: "training that saves its progress runs on on-demand capacity",
        explanation: "A job that saves its progress loses minutes when a node is reclaimed, and pays two to five times the price of \
                      spot capacity for not losing them.",
        evidence: "pods on on-demand capacity",
        fix: FixKind::OwnerTemplate,
        fix_example: "nodeSelector: {karpenter.sh/capacity-type: spot}",
        layer: Layer::SpotAndRegion,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SPT-03",
        severity: Severity::Error,
        title: "inference runs on spot capacity alone",
        explanation: "When the provider takes a kind of node back, it takes many at once: no replica is left to answer. A \
                      base on on-demand capacity, with spot beside it, keeps answering.",
        evidence: "pods, all on spot capacity",
        fix: FixKind::OwnerTemplate,
        fix_example: "topologySpreadConstraints: [{topologyKey: karpenter.sh/capacity-type, maxSkew: 1, whenUnsatisfiable: ScheduleAnyway}]",
        layer: Layer::SpotAndRegion,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SPT-04",
        severity: Severity::Info,
        title: "the same GPUs cost less in another region of their provider",
        explanation: "At list prices the same model with the same purchase option is cheaper there by `cheaper_region_percent` or more. What moves is \
                      data: the evidence says how much of it may be moved so that the difference pays for the \
                      transfer within `transfer_payback_days`. Data that must stay in its region, users nearby, and capacity that \
                      is not available there are reasons to stay. No dollars are claimed: how much data a workload has is unknown.",
        evidence: "price here and where it is cheapest, day of the prices, data that may move",
        fix: FixKind::NodePool,
        fix_example: "topology.kubernetes.io/region of the node pool; move one workload, with its data, and compare",
        layer: Layer::SpotAndRegion,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
];
