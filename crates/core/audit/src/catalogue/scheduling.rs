//! Where pods may go.

use super::reach::{FRAGMENTED, GANG_WAIT, TAINTED};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "SCH-01",
        severity: Severity::Error,
        title: "GPU nodes without a taint",
        explanation: "Without a NoSchedule taint any pod may land on a GPU node, take the CPU and memory that its GPUs \
                      need, and keep the node from being removed.",
        evidence: "nodes without a taint that keeps pods away",
        fix: FixKind::NodePool,
        fix_example: "taints: [{key: nvidia.com/gpu, value: \"true\", effect: NoSchedule}]",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-02",
        severity: Severity::Warning,
        title: "pods that need no GPU run on GPU nodes",
        explanation: "They take CPU and memory beside paid GPUs and block the removal of empty nodes. DaemonSets are left \
                      out: they run everywhere by intent.",
        evidence: "pods on GPU nodes",
        fix: FixKind::OwnerTemplate,
        fix_example: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
                      [{matchExpressions: [{key: nvidia.com/gpu.present, operator: DoesNotExist}]}]}}}",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-03",
        severity: Severity::Warning,
        title: "workload without GPUs tolerates the taint of GPU nodes",
        explanation: "The taint no longer keeps it away. Tolerations without a key accept every taint.",
        evidence: "toleration and taint",
        fix: FixKind::OwnerTemplate,
        fix_example: "tolerations: []  # without the one for GPU nodes",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-04",
        severity: Severity::Error,
        title: "GPU workload tolerates the taints of no node that has its GPUs",
        explanation: "Every node with the resource turns the pod away: it waits while GPUs are free. The cluster may add \
                      the toleration itself where a taint's key is the resource name (ExtendedResourceToleration); such \
                      taints are not counted.",
        evidence: "resource, a taint that is not tolerated",
        fix: FixKind::OwnerTemplate,
        fix_example: "tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        reach: Reach::Cluster(TAINTED),
    },
    Check {
        id: "SCH-05",
        severity: Severity::Warning,
        title: "workload takes any GPU model",
        explanation: "The cluster has several models at very different prices, and nothing says which one the workload \
                      needs: small work lands on the most expensive.",
        evidence: "models it may use",
        fix: FixKind::OwnerTemplate,
        fix_example: "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-06",
        severity: Severity::Warning,
        title: "taint of GPU nodes has another key than the resource",
        explanation: "Where the key is the resource name, Kubernetes adds the toleration to pods that ask for the resource \
                      (admission plugin ExtendedResourceToleration). With another key each workload carries it by hand, \
                      also after it stopped using GPUs.",
        evidence: "taint and resource",
        fix: FixKind::NodePool,
        fix_example: "taints: [{key: nvidia.com/gpu, effect: NoSchedule}]",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-07",
        severity: Severity::Warning,
        title: "GPU pods are spread over empty nodes",
        explanation: "LeastAllocated, the scheduler's default, prefers the emptiest node. Each GPU node ends up partly used, \
                      and pods with many GPUs find no node.",
        evidence: "scoring strategy",
        fix: FixKind::Scheduler,
        fix_example: "scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 10}]}",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-08",
        severity: Severity::Warning,
        title: "enough GPUs are free, but in pieces",
        explanation: "A pod needs all its GPUs on one node. Together the nodes have them, no single one has. Packing keeps \
                      nodes whole; a job of more and smaller pods fits the pieces there are.",
        evidence: "GPUs that one pod asks for, GPUs free together and on one node",
        fix: FixKind::Scheduler,
        fix_example: "schedulerName: dovetail",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        reach: Reach::Cluster(FRAGMENTED),
    },
    Check {
        id: "SCH-09",
        severity: Severity::Warning,
        title: "training with several pods is not scheduled as a gang",
        explanation: "Pods start one by one. Where not all fit, those that do hold GPUs and wait for the rest, two such jobs \
                      for each other.",
        evidence: "pods wanted, pods placed",
        fix: FixKind::OwnerTemplate,
        fix_example: "labels: {dovetail.dev/gang: my-run}  # or a Kueue queue, a PodGroup",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        reach: Reach::Held(GANG_WAIT),
    },
    Check {
        id: "SCH-10",
        severity: Severity::Info,
        title: "rule allows one GPU pod per node",
        explanation: "A required anti-affinity or spread over hostnames puts each replica on a node of its own, although \
                      nodes have room for several: the GPUs beside it stay free.",
        evidence: "rule, GPUs of one pod, most GPUs of a node",
        fix: FixKind::OwnerTemplate,
        fix_example: "whenUnsatisfiable: ScheduleAnyway",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-11",
        severity: Severity::Warning,
        title: "inference has no higher priority than training",
        explanation: "When GPUs run short, the scheduler cannot tell answers people wait for from work that can wait, and may \
                      preempt the wrong one.",
        evidence: "priority class, and the training that shares it",
        fix: FixKind::OwnerTemplate,
        fix_example: "priorityClassName: gpu-inference",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-12",
        severity: Severity::Info,
        title: "pods with several GPUs may get them across sockets",
        explanation: "The kubelet's topologyManagerPolicy is none: a pod that asks for some of the GPUs of a node gets any of them, and \
                      CPUs and network cards of the other socket. What goes between them goes over the link between the sockets.",
        evidence: "nodes with the policy none, and pods with several of their GPUs",
        fix: FixKind::NodePool,
        fix_example: "topologyManagerPolicy: single-numa-node  # of the kubelet, with cpuManagerPolicy: static",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
];
