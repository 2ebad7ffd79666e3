//! What pods ask for.

use super::reach::{IDLE, REPEATED, STRANDED};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "REQ-01",
        severity: Severity::Error,
        title: "GPU request and limit differ",
        explanation: "Extended resources cannot be overcommitted: Kubernetes rejects a pod whose GPU request \
                      differs from its limit or has no limit. The workload never starts.",
        evidence: "container, resource, request and limit",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 1}}",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-02",
        severity: Severity::Warning,
        title: "container can use GPUs that it did not request",
        explanation: "With NVIDIA_VISIBLE_DEVICES=all or a mounted device, the container uses GPUs that are \
                      allocated to other pods: these lose memory and GPU time, and no team is charged.",
        evidence: "container and what makes the GPUs visible",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 1}}  # and drop NVIDIA_VISIBLE_DEVICES",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-03",
        severity: Severity::Error,
        title: "pod requests more than any node has",
        explanation: "The pod has been pending for more than `oversized_minutes`, and none of the \
                      nodes that it may use is large enough for it, even if the node is empty. The \
                      pod stays pending until a larger node joins. Split the work over several \
                      pods of one gang.",
        evidence: "resource, request of one pod, most of a node that it may use",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 8}}  # and more replicas in a gang",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-04",
        severity: Severity::Warning,
        title: "pod uses fewer GPUs than it requests",
        explanation: "Some of the GPUs of each pod were never active while they were measured. A \
                      program that cannot use several GPUs does not run faster with more of them; \
                      pending pods could use the idle ones.",
        evidence: "GPUs of one pod, GPUs that were ever active, period",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 4}}  # as many as it uses",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-05",
        severity: Severity::Warning,
        title: "workload never used its GPUs",
        explanation: "None of its GPUs was active while they were measured: the work runs on the CPU, is blocked, or \
                      was forgotten.",
        evidence: "pods whose GPUs were never active, period",
        fix: FixKind::OwnerTemplate,
        fix_example: "kubectl scale --replicas=0 deployment/NAME  # or request no GPU",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-06",
        severity: Severity::Info,
        title: "workload would fit a slice of its GPU",
        explanation: "In 95% of samples, the GPU used at most `slice_busy_percent` of the compute of a MIG slice, and \
                      its memory fits the slice. A MIG slice has its own memory and compute, so neighbors do not slow \
                      each other down. Only idle time is counted, not what a smaller slice saves while the GPU is \
                      active.",
        evidence: "95th percentile of activity, peak memory, smallest slice that fits, period",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/mig-PROFILE: 1}}  # PROFILE: the smallest slice that fits; on nodes with MIG",
        layer: Layer::Share,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-07",
        severity: Severity::Warning,
        title: "CPU or memory request is a round number far above the need",
        explanation: "Requests such as 4 cores or 16Gi are guesses. The container requests more than \
                      `over_request_percent` of what it needs according to a VerticalPodAutoscaler, and the unused part \
                      keeps other pods from the GPUs of its node.",
        evidence: "container, resource, request, the most that is needed and its source",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {cpu: 1450m, memory: 5Gi}}  # a fifth more than is needed",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-08",
        severity: Severity::Error,
        title: "CPU or memory per GPU exceeds the node's share",
        explanation: "Each GPU of a node comes with a share of its CPU and memory. A pod that requests more per GPU \
                      strands GPUs: no other pod fits on the node, and you still pay for them.",
        evidence: "resource, request per GPU, the node's share per GPU",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {cpu: \"23\", memory: 240Gi}}  # at most allocatable / GPUs",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Cluster(STRANDED),
    },
    Check {
        id: "REQ-09",
        severity: Severity::Warning,
        title: "GPU waits because its container has reached its CPU limit",
        explanation: "According to a VerticalPodAutoscaler the container needs more CPU than its limit, and its GPU is active \
                      for less than `starved_active_percent` of the time: loading and preparing data is throttled, and the GPU waits.",
        evidence: "container, limit, what is needed and its source, active share of the time",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {cpu: \"12\"}}  # and no limit on CPU",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-10",
        severity: Severity::Warning,
        title: "GPU workload is OOM-killed repeatedly",
        explanation: "Each kill loses the work since the last checkpoint, while the GPUs stay allocated. Pods without a \
                      memory limit are killed first when their node runs short.",
        evidence: "kills in seven days; containers without a memory limit",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {memory: 70Gi}, limits: {memory: 70Gi}}  # a tenth more than before",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Held(REPEATED),
    },
    Check {
        id: "REQ-11",
        severity: Severity::Info,
        title: "sidecar or init container requests GPUs too",
        explanation: "A sidecar's GPUs are allocated in addition to those of the main container \
                      for the lifetime of the pod; an init container that requests more than the \
                      main container raises the pod's allocation for its lifetime. If GPU use was \
                      measured, the amount is the idle time of the pod's least active GPUs, as \
                      many as the container adds.",
        evidence: "container, GPUs of the container, GPUs of the pod without the container",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {}  # of the sidecar",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-12",
        severity: Severity::Info,
        title: "training pod with little shared memory",
        explanation: "Data loaders pass batches through /dev/shm. With the container runtime's \
                      default of 64 MiB, they fall back to copying, or crash, and the GPU waits \
                      for data.",
        evidence: "size of /dev/shm",
        fix: FixKind::OwnerTemplate,
        fix_example: "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]  # at /dev/shm",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Held(IDLE),
    },
];
