//! Capacity that its provider may take back.

use super::reach::REPEATED;
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "SPT-01",
        severity: Severity::Error,
        title: "training on spot capacity loses its work when its node is reclaimed",
        explanation: "The provider reclaims the node with a warning of seconds to two minutes. Nothing shows that the \
                      job saves its progress: no volume outlives its pods, and no annotation sets a checkpoint \
                      interval. All work since its start is then repeated.",
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
        explanation: "A job that saves its progress loses only minutes when a node is reclaimed. On-demand capacity \
                      costs two to five times as much as spot capacity.",
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
        explanation: "Providers often reclaim many nodes of one kind at once, which can leave no replica to serve \
                      requests. Run some of the replicas on on-demand capacity.",
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
        explanation: "At list prices, the same model with the same purchase option costs less in \
                      another region, by `cheaper_region_percent` or more. Moving the workload \
                      means moving its data: the evidence shows how much data you can move at most \
                      if the savings are to pay for the transfer within `transfer_payback_days`. \
                      Data that must stay in its region, users nearby, and missing capacity are \
                      reasons to stay. The finding has no amount, because the amount of data is \
                      unknown.",
        evidence: "price here and where it is cheapest, day of the prices, data that may move",
        fix: FixKind::NodePool,
        fix_example: "topology.kubernetes.io/region of the node pool; move one workload, with its data, and compare",
        layer: Layer::SpotAndRegion,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
];
