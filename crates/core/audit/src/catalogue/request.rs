//! What pods ask for.

use super::reach::{IDLE, REPEATED, STRANDED};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "REQ-01",
        severity: Severity::Error,
        title: "GPU request and limit differ",
        explanation: "Extended resources cannot be overcommitted: Kubernetes refuses a pod whose request for GPUs \
                      is not its limit, and a request without a limit. The workload never starts.",
        evidence: "container, resource, request and limit",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 1}}",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-02",
        severity: Severity::Warning,
        title: "container sees GPUs it did not ask for",
        explanation: "With NVIDIA_VISIBLE_DEVICES=all or a mounted device the container uses GPUs that the scheduler \
                      gives to others: their memory and time shrink, and nobody is charged.",
        evidence: "container and what makes the GPUs visible",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 1}}  # and drop NVIDIA_VISIBLE_DEVICES",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-03",
        severity: Severity::Error,
        title: "pod asks for more GPUs than any node has",
        explanation: "No node can ever take the pod. It waits for good, and an autoscaler may add nodes in vain. Split \
                      the work over several pods of one gang.",
        evidence: "resource, GPUs of one pod, most GPUs of a node",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 8}}  # and more replicas in a gang",
        layer: Layer::Guard,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-04",
        severity: Severity::Warning,
        title: "pod uses fewer GPUs than it holds",
        explanation: "Some of the GPUs of each pod never computed while they were measured. What cannot use several \
                      GPUs gets no faster with them; whoever waits could have them.",
        evidence: "GPUs of one pod, GPUs of it that ever computed, period",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/gpu: 4}}  # as many as it uses",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-05",
        severity: Severity::Warning,
        title: "workload holds GPUs and never used them",
        explanation: "No GPU of its pods computed for as long as they were measured: the work runs on the CPU, waits \
                      for something that does not come, or is forgotten.",
        evidence: "pods whose GPUs never computed, period",
        fix: FixKind::OwnerTemplate,
        fix_example: "kubectl scale --replicas=0 deployment/NAME  # or ask for no GPU",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-06",
        severity: Severity::Info,
        title: "workload would fit a slice of its GPU",
        explanation: "At 95 of 100 moments the GPU is no busier than `slice_busy_percent` of what a MIG slice could be, and its \
                      memory fits the slice. A slice is separate in memory and time, so neighbours do not slow each \
                      other down. Only idle time is counted: what is saved while it computes is not.",
        evidence: "busy at 95 of 100 moments, most memory, smallest slice that fits, period",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {limits: {nvidia.com/mig-1g.10gb: 1}}  # on nodes with MIG",
        layer: Layer::Share,
        worth: Worth::Capacity,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-07",
        severity: Severity::Warning,
        title: "request is a round number and far more than is needed",
        explanation: "Requests of 4 cores or 16Gi are guesses. A VerticalPodAutoscaler has seen what the container needs, and \
                      it asks for more than `over_request_percent` of that: what is reserved for it keeps other pods from the GPUs of its node.",
        evidence: "container, resource, request, what is needed at most and who says so",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {cpu: 1450m, memory: 5Gi}}  # a fifth more than is needed",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        reach: Reach::Nothing,
    },
    Check {
        id: "REQ-08",
        severity: Severity::Error,
        title: "CPU or memory per GPU exceeds the node's share",
        explanation: "Each GPU of a node comes with a share of its CPU and memory. A pod that takes more per GPU leaves \
                      GPUs behind that nothing can be put beside: they are paid and stranded.",
        evidence: "resource, request per GPU, the node's share per GPU",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {cpu: \"23\", memory: 240Gi}}  # at most allocatable / GPUs",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
        reach: Reach::Cluster(STRANDED),
    },
    Check {
        id: "REQ-09",
        severity: Severity::Warning,
        title: "GPU waits for CPU that its container may not use",
        explanation: "The container needs more CPU than its limit, by what a VerticalPodAutoscaler has seen, and its GPU computes \
                      for less than `starved_active_percent` of the time: whoever loads and prepares data is throttled, and the GPU waits.",
        evidence: "container, limit, what is needed and who says so, active part of the time",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {cpu: \"12\"}}  # and no limit on CPU",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-10",
        severity: Severity::Warning,
        title: "GPU workload is killed for memory again and again",
        explanation: "Each kill loses what was computed since the last checkpoint, while the GPUs stay held. Pods without a \
                      memory limit are killed first when their node runs short.",
        evidence: "kills in seven days; containers without a memory limit",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {requests: {memory: 70Gi}, limits: {memory: 70Gi}}  # a tenth more than before",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        reach: Reach::Held(REPEATED),
    },
    Check {
        id: "REQ-11",
        severity: Severity::Info,
        title: "sidecar or init container asks for GPUs too",
        explanation: "A sidecar's GPUs are held beside those of the work for as long as the pod lives; an init container \
                      that needs more than the work raises what the pod holds all along. Its dollars are the idle time of as \
                      many GPUs of the pod as it adds, those that computed least, where they were measured.",
        evidence: "container, GPUs of it, GPUs the pod would hold without it",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {}  # of the sidecar",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "REQ-12",
        severity: Severity::Info,
        title: "training with little shared memory",
        explanation: "Data loaders hand batches over in /dev/shm. With the container runtime's 64 MiB they fall back to \
                      copying, or crash, and the GPU waits for data.",
        evidence: "size of /dev/shm",
        fix: FixKind::OwnerTemplate,
        fix_example: "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]  # at /dev/shm",
        layer: Layer::RightSize,
        worth: Worth::Risk,
        reach: Reach::Held(IDLE),
    },
];
