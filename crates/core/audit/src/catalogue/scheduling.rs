//! Where pods may go.

use super::reach::{FRAGMENTED, GANG_SHORT, GANG_WAIT, MISMATCHED, TAINTED};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "SCH-01",
        severity: Severity::Error,
        title: "GPU nodes without a taint",
        explanation: "Without a NoSchedule taint, any pod can be scheduled on a GPU node, use the \
                      CPU and memory that pods with GPUs need, and prevent the removal of the \
                      node.",
        evidence: "nodes without a taint that keeps pods away",
        fix: FixKind::NodePool,
        fix_example: "taints: [{key: nvidia.com/gpu, value: \"true\", effect: NoSchedule}]",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-02",
        severity: Severity::Warning,
        title: "pods that need no GPU run on GPU nodes",
        explanation: "They use CPU and memory next to GPUs that you pay for, and block the removal of empty nodes. \
                      DaemonSets are ignored: they are meant to run on every node.",
        evidence: "pods on GPU nodes",
        fix: FixKind::OwnerTemplate,
        fix_example: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
                      [{matchExpressions: [{key: nvidia.com/gpu.present, operator: DoesNotExist}]}]}}}",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-03",
        severity: Severity::Warning,
        title: "workload without GPUs tolerates the taint of GPU nodes",
        explanation: "The taint does not keep its pods away. A toleration without a key tolerates \
                      every taint.",
        evidence: "toleration and taint",
        fix: FixKind::OwnerTemplate,
        fix_example: "tolerations: []  # without the one for GPU nodes",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-04",
        severity: Severity::Error,
        title: "pod can never schedule: it does not tolerate the taint of any node with its GPUs",
        explanation: "The taints of every node with the resource repel the pod: it is pending while GPUs are free. If a \
                      taint's key is the resource name, the cluster may add the toleration \
                      (ExtendedResourceToleration); such taints are not counted.",
        evidence: "resource, a taint that is not tolerated",
        fix: FixKind::OwnerTemplate,
        fix_example: "tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Cluster(TAINTED),
    },
    Check {
        id: "SCH-05",
        severity: Severity::Warning,
        title: "workload accepts any GPU model",
        explanation: "The cluster has several models at very different prices, and the workload does not specify which \
                      one it needs: small work may run on the most expensive GPUs.",
        evidence: "models it may use",
        fix: FixKind::OwnerTemplate,
        fix_example: "nodeSelector: {nvidia.com/gpu.product: NVIDIA-L4}",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-06",
        severity: Severity::Warning,
        title: "taint key of GPU nodes differs from the resource name",
        explanation: "If the key is the resource name, Kubernetes adds the toleration to pods that request the resource \
                      (admission plugin ExtendedResourceToleration). With another key, each workload needs the \
                      toleration in its manifest, and may keep it after it no longer uses GPUs.",
        evidence: "taint and resource",
        fix: FixKind::NodePool,
        fix_example: "taints: [{key: nvidia.com/gpu, effect: NoSchedule}]",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-07",
        severity: Severity::Warning,
        title: "GPU pods are spread over empty nodes",
        explanation: "LeastAllocated, the scheduler's default, prefers the emptiest node. Each GPU node ends up partly \
                      used, and pods with many GPUs fit on no node.",
        evidence: "scoring strategy",
        fix: FixKind::Scheduler,
        fix_example: "scoringStrategy: {type: MostAllocated, resources: [{name: nvidia.com/gpu, weight: 10}]}",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-08",
        severity: Severity::Warning,
        title: "enough GPUs are free, but on different nodes",
        explanation: "A pod needs all its GPUs on one node. Enough GPUs are free in total, but not on one node. Packing \
                      pods onto few nodes keeps other nodes empty; a job with more, smaller pods would fit the free \
                      GPUs.",
        evidence: "GPUs that one pod requests, free GPUs in total and on one node",
        fix: FixKind::Scheduler,
        fix_example: "schedulerName: dovetail",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Cluster(FRAGMENTED),
    },
    Check {
        id: "SCH-09",
        severity: Severity::Warning,
        title: "training with several pods is not scheduled as a gang",
        explanation: "Pods start one by one. If not all pods fit, the pods that fit get GPUs and \
                      wait for the rest. Two such jobs can wait for each other forever.",
        evidence: "pods wanted, pods placed",
        fix: FixKind::OwnerTemplate,
        fix_example: "labels: {dovetail.dev/gang: my-run}  # or a Kueue queue, or a PodGroup",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: true,
        reach: Reach::Held(GANG_WAIT),
    },
    Check {
        id: "SCH-10",
        severity: Severity::Info,
        title: "scheduling rule allows one GPU pod per node",
        explanation: "A required anti-affinity or topology spread over hostnames puts each replica on its own node, although \
                      nodes have room for several: the other GPUs of each node stay free.",
        evidence: "rule, GPUs of one pod, most GPUs of a node",
        fix: FixKind::OwnerTemplate,
        fix_example: "whenUnsatisfiable: ScheduleAnyway",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-11",
        severity: Severity::Warning,
        title: "inference has no higher priority than training",
        explanation: "When GPUs are scarce, the scheduler cannot tell inference that users wait for from training that can wait, \
                      and may preempt the wrong pods.",
        evidence: "priority class, and the training that shares it",
        fix: FixKind::OwnerTemplate,
        fix_example: "priorityClassName: gpu-inference",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-12",
        severity: Severity::Info,
        title: "pods with several GPUs may get GPUs on different CPU sockets",
        explanation: "The kubelet's topologyManagerPolicy is none: a pod that requests some of the GPUs of a node may \
                      get any of them, with CPUs and network cards of another socket. Their traffic crosses the link \
                      between the sockets.",
        evidence: "nodes with the policy none, and pods with several of their GPUs",
        fix: FixKind::NodePool,
        fix_example: "topologyManagerPolicy: single-numa-node  # of the kubelet, with cpuManagerPolicy: static",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "SCH-13",
        severity: Severity::Warning,
        title: "gang is pending: free GPUs stay unused until nodes are added",
        explanation: "Some pods of the gang would fit on free GPUs, but not the whole gang, so \
                      those GPUs stay free until it starts. The gang would start if you added the \
                      nodes that the evidence lists. A gang that can run with fewer pods can lower \
                      its minimum instead.",
        evidence: "number and kind of nodes with which the gang would start",
        fix: FixKind::NodePool,
        fix_example: "add nodes to the pool, or let the gang start with fewer pods",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Cluster(GANG_SHORT),
    },
    Check {
        id: "SCH-14",
        severity: Severity::Info,
        title: "pending pods exclude the nodes with free GPUs",
        explanation: "A node selector, an affinity or a GPU model excludes the nodes with free GPUs. Without it, the \
                      pods would start there now. Ask their owner whether the program runs on these GPUs: memory and \
                      speed differ between models.",
        evidence: "GPU models that the pods accept",
        fix: FixKind::OwnerTemplate,
        fix_example: "nodeSelector: {}  # without nvidia.com/gpu.product, if the program also runs \
                      on other models",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: true,
        reach: Reach::Cluster(MISMATCHED),
    },
    Check {
        id: "SCH-15",
        severity: Severity::Warning,
        title: "gang is only partially scheduled",
        explanation: "Fewer of its pods have a node than must start together according to its \
                      PodGroup, its Kueue pod group or its LeaderWorkerSet. The running pods have \
                      GPUs but cannot work without the others. Free GPUs for the pending pods, or \
                      delete the job until all of its pods fit. If the program runs with fewer \
                      pods, lower that number (minMember of a PodGroup).",
        evidence: "pods with a node, pods that the gang needs, pending pods",
        fix: FixKind::OwnerTemplate,
        fix_example: "minMember: 2  # of the PodGroup, if the program can run with fewer pods",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(GANG_WAIT),
    },
];
