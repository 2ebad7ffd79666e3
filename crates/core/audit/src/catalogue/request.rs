//! What pods ask for.

use super::{Check, FixKind, Layer, Severity, Worth};

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
    },
    Check {
        id: "REQ-11",
        severity: Severity::Info,
        title: "sidecar or init container asks for GPUs too",
        explanation: "A sidecar's GPUs are held beside those of the work for as long as the pod lives; an init container \
                      that needs more than the work raises what the pod holds all along.",
        evidence: "container, GPUs of it, GPUs the pod would hold without it",
        fix: FixKind::OwnerTemplate,
        fix_example: "resources: {}  # of the sidecar",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
    },
    Check {
        id: "REQ-12",
        severity: Severity::Info,
        title: "training with 64 MiB of shared memory",
        explanation: "Data loaders hand batches over in /dev/shm. With the container runtime's 64 MiB they fall back to \
                      copying, or crash, and the GPU waits for data.",
        evidence: "size of /dev/shm",
        fix: FixKind::OwnerTemplate,
        fix_example: "volumes: [{name: shm, emptyDir: {medium: Memory, sizeLimit: 16Gi}}]  # at /dev/shm",
        layer: Layer::RightSize,
        worth: Worth::Risk,
    },
];
