//! Who may use how much, and who pays.

use super::reach::{IDLE, QUOTA};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "GOV-01",
        severity: Severity::Warning,
        title: "namespace without a quota for GPUs",
        explanation: "One team can use every GPU of the cluster, on purpose or through a faulty script.",
        evidence: "resource, workloads that use it",
        fix: FixKind::Namespace,
        fix_example: "hard: {requests.nvidia.com/gpu: \"8\"}",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "GOV-02",
        severity: Severity::Warning,
        title: "GPU workload has no team label",
        explanation: "Its cost has no owner: neither its pods nor their namespace has a label that \
                      names the team. AWS exports only the first fifty labels of a pod, in \
                      alphabetical order; later labels are lost.",
        evidence: "labels searched for; position of the label among the pod's labels",
        fix: FixKind::OwnerTemplate,
        fix_example: "labels: {team: search, cost-center: \"4711\"}",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "GOV-03",
        severity: Severity::Info,
        title: "team leaves GPUs of its quota idle",
        explanation: "A quota reserves GPUs for one team. Unused GPUs could be lent to other teams and reclaimed when \
                      needed. The amount is the measured idle time beyond `lent_idle_percent` of the GPU time \
                      allocated to its pods, without idle time that other findings explain.",
        evidence: "quota, idle share of its allocated GPU time, period",
        fix: FixKind::Namespace,
        fix_example: "a lower ResourceQuota; or, with Kueue, cohort: shared-gpus in its ClusterQueue",
        layer: Layer::ScaleToZero,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "GOV-04",
        severity: Severity::Info,
        title: "no admission policy checks GPU requests",
        explanation: "Fixed problems come back: nothing prevents the next workload from causing \
                      them again.",
        evidence: "policies about GPU resources",
        fix: FixKind::ClusterPolicy,
        fix_example: "a ValidatingAdmissionPolicy with validationActions: [Warn, Audit] first",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "GOV-05",
        severity: Severity::Warning,
        title: "pending jobs lack quota while GPUs are free",
        explanation: "With more quota, the jobs would start on free GPUs now. Raise the quota. A Kueue ClusterQueue can \
                      also borrow unused quota, but only from its cohort: without a cohort, borrowingLimit has no effect.",
        evidence: "jobs that would start",
        fix: FixKind::Namespace,
        fix_example: "nominalQuota: 16  # of the Kueue ClusterQueue, or a higher borrowingLimit if its cohort has unused quota; or a higher requests.nvidia.com/gpu of the ResourceQuota",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Cluster(QUOTA),
    },
];
