//! Pods that hold GPUs and cannot use them.

use super::reach::{IDLE, PROVISIONING};
use super::{Check, FixKind, Layer, Reach, Severity, Worth};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "IDL-01",
        severity: Severity::Warning,
        title: "notebook is idle but still has a GPU",
        explanation: "Nothing has run on the GPU for longer than `idle_notebook_minutes`. Nights \
                      and weekends make up 128 of the 168 hours of a week. A culler stops idle \
                      notebooks and keeps the files on their volumes.",
        evidence: "pods and hours without GPU activity",
        fix: FixKind::OwnerTemplate,
        fix_example: "env: [{name: CULL_IDLE_TIME, value: \"60\"}]  # of the notebook controller",
        layer: Layer::ScaleToZero,
        worth: Worth::Capacity,
        is_inferred: true,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "IDL-02",
        severity: Severity::Error,
        title: "inference server with GPUs is idle",
        explanation: "None of its replicas has been active for longer than `idle_server_minutes`, so it gets no \
                      requests. Scale it to zero; the first request then starts a replica.",
        evidence: "pods and hours without GPU activity",
        fix: FixKind::Autoscaler,
        fix_example: "minReplicas: 0  # of a KServe InferenceService; minReplicaCount: 0 of a KEDA ScaledObject",
        layer: Layer::ScaleToZero,
        worth: Worth::Capacity,
        is_inferred: true,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "IDL-03",
        severity: Severity::Warning,
        title: "GPU workload is scaled by CPU or memory",
        explanation: "CPU and memory use do not show how busy a GPU server is. Scale it by the \
                      length of its request queue or by GPU utilization instead.",
        evidence: "metrics by which it is scaled",
        fix: FixKind::Autoscaler,
        fix_example: "triggers: [{type: prometheus, metadata: {query: sum(vllm:num_requests_waiting), threshold: \"5\"}}]",
        layer: Layer::ScaleToZero,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "IDL-04",
        severity: Severity::Warning,
        title: "pod still has GPUs after its work finished",
        explanation: "Between two restarts of a crashing container, the kubelet waits up to five minutes, and a helper \
                      container that outlives the work keeps the pod running. The GPUs stay allocated meanwhile. A limit \
                      on retries frees those of a Job; other owners restart the container without end, so fix it or \
                      remove the pods. A helper that is an init container with restartPolicy: Always terminates with \
                      the work.",
        evidence: "why the GPUs are still allocated",
        fix: FixKind::OwnerTemplate,
        fix_example: "{backoffLimit: 3, ttlSecondsAfterFinished: 600}",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "IDL-05",
        severity: Severity::Warning,
        title: "pod has had GPUs for a long time but has never been ready",
        explanation: "It was assigned to its node more than `starting_minutes` ago. Large images, \
                      weights from slow storage and long init containers delay every start while \
                      GPUs are allocated. A cache on the node, a volume with the weights or a \
                      smaller image shortens the start.",
        evidence: "pods and minutes since they were assigned to their node",
        fix: FixKind::OwnerTemplate,
        fix_example: "volumes: [{name: weights, persistentVolumeClaim: {claimName: weights, readOnly: true}}]",
        layer: Layer::Schedule,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(PROVISIONING),
    },
    Check {
        id: "IDL-06",
        severity: Severity::Warning,
        title: "pod stuck in Terminating still has GPUs allocated",
        explanation: "Its grace period ended more than `overdue_minutes` ago, and it still exists: its finalizer has no \
                      controller, or its process cannot be killed. No other pod can use its GPUs.",
        evidence: "pods and minutes since their grace period ended",
        fix: FixKind::Pod,
        fix_example: "kubectl get pod POD -n NAMESPACE -o jsonpath={.metadata.finalizers}  # fix the controller \
                      that removes them; without finalizers, check the kubelet of its node",
        layer: Layer::Guard,
        worth: Worth::Capacity,
        is_inferred: false,
        reach: Reach::Held(IDLE),
    },
    Check {
        id: "IDL-07",
        severity: Severity::Info,
        title: "old and new pods have GPUs at the same time",
        explanation: "During a rollout the old pods stay until the new ones are ready. If GPUs are short, the new \
                      pods wait for the old ones, and the rollout hangs.",
        evidence: "revisions that have GPUs",
        fix: FixKind::OwnerTemplate,
        fix_example: "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}",
        layer: Layer::Schedule,
        worth: Worth::Risk,
        is_inferred: false,
        reach: Reach::Nothing,
    },
    Check {
        id: "IDL-08",
        severity: Severity::Error,
        title: "training hangs: its GPUs are busy without progress",
        explanation: "For `hung_minutes` or longer, at least one pod was busy in a kernel and none made progress: no \
                      tensor cores, no memory traffic, power near idle. This is typical of a collective operation that \
                      waits for a missing pod. GPU utilization shows 100%, so nothing else reveals it. The method is \
                      that of `dovetail cost job`, where tensor cores or memory traffic were measured; hosts are not \
                      considered here. The finding has no amount, because the ledger counts this time as active; \
                      `dovetail cost job` shows the cost.",
        evidence: "when and how long, whether it still hangs, GPU-hours, period",
        fix: FixKind::OwnerTemplate,
        fix_example: "a timeout on collectives (PyTorch: init_process_group(timeout=...)), and a restart from the checkpoint",
        layer: Layer::Guard,
        worth: Worth::Risk,
        is_inferred: true,
        reach: Reach::Nothing,
    },
    Check {
        id: "IDL-09",
        severity: Severity::Warning,
        title: "some replicas of a busy server are idle",
        explanation: "Some replicas have been idle for longer than `idle_server_minutes` while others serve requests: \
                      fewer replicas can handle the load. Keep enough replicas for bursts, and let an autoscaler add \
                      more. A StatefulSet removes the replica with the highest ordinal first, so only idle \
                      replicas at its end count.",
        evidence: "idle replicas, and hours without GPU activity",
        fix: FixKind::OwnerTemplate,
        fix_example: "spec: {replicas: 2}  # or minReplicas of its autoscaler",
        layer: Layer::RightSize,
        worth: Worth::Capacity,
        is_inferred: true,
        reach: Reach::Held(IDLE),
    },
];
