//! Objects of a history as owners and administrators write them.

use serde_json::{Value, json};

use crate::kubelets::RUN_MS;
use crate::scene::{NodeSpec, QueueSpec, SceneWorkload};

/// Where all pods are.
pub(crate) const NAMESPACE: &str = "default";
/// The scheduler that pods ask for.
pub(crate) const SCHEDULER: &str = "dovetail";
/// What owners count their pods by.
pub(crate) const OWNER: &str = "owner";
pub(crate) const ORDINAL: &str = "ordinal";
/// How long a pod runs, as its owner says.
const RUNTIME: &str = "dovetail.dev/runtime";
/// The queue of a pod.
pub(crate) const QUEUE: &str = "dovetail.dev/queue";

pub(crate) fn node_name(at: usize) -> String {
    format!("n{at}")
}

pub(crate) fn node(at: usize, spec: NodeSpec) -> Value {
    let amounts = json!({"cpu": "64", "memory": "512Gi", "pods": "20",
        "nvidia.com/gpu": spec.gpus.to_string()});
    let name = node_name(at);
    json!({"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": amounts, "capacity": amounts}})
}

pub(crate) fn group(workload: &SceneWorkload) -> Value {
    json!({"metadata": {"name": workload.name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": workload.min}}}})
}

/// A queue that takes pods of every namespace.
pub(crate) fn queue(spec: &QueueSpec) -> Value {
    let gpus = |count: u64| json!({"nvidia.com/gpu": count.to_string()});
    json!({"metadata": {"name": spec.name}, "spec": {
        "parent": spec.parent, "guaranteed": gpus(spec.guaranteed),
        "limit": spec.limit.map(gpus), "namespaceSelector": {},
        "borrowing": if spec.borrows { "WhenFree" } else { "Never" }}})
}

/// A disruption budget of all pods of a workload.
pub(crate) fn budget(workload: &SceneWorkload) -> Value {
    json!({"metadata": {"name": workload.name}, "spec": {
        "minAvailable": workload.available,
        "selector": {"matchLabels": {OWNER: workload.name}}}})
}

pub(crate) fn pod(workload: &SceneWorkload, ordinal: u64, name: &str) -> Value {
    let mut pod = container(name, workload.gpus, SCHEDULER);
    pod["metadata"]["labels"] = json!({OWNER: workload.name, ORDINAL: ordinal.to_string()});
    if let Some(queue) = &workload.queue {
        pod["metadata"]["labels"][QUEUE] = json!(queue);
    }
    let spec = &mut pod["spec"];
    spec["priority"] = json!(workload.priority);
    spec["restartPolicy"] = json!("Never");
    spec["terminationGracePeriodSeconds"] = json!(workload.grace_s);
    if workload.min > 0 && workload.is_native {
        spec["schedulingGroup"] = json!({"podGroupName": workload.name});
    }
    let mut annotations = json!({});
    if workload.min > 0 && !workload.is_native {
        pod["metadata"]["labels"]["dovetail.dev/gang"] = json!(workload.name);
        annotations["dovetail.dev/min-members"] = json!(workload.min.to_string());
        annotations["dovetail.dev/max-members"] = json!(workload.pods.to_string());
    }
    if let Some(run_ms) = workload.run_ms {
        annotations[RUN_MS] = json!(run_ms.to_string());
    }
    if let Some(says_ms) = workload.says_ms {
        annotations[RUNTIME] = json!(format!("{says_ms}ms"));
    }
    pod["metadata"]["annotations"] = annotations;
    pod
}

/// A pod of another scheduler, on its node.
pub(crate) fn foreign(name: &str, gpus: u64) -> Value {
    container(name, gpus, "other")
}

fn container(name: &str, gpus: u64, scheduler: &str) -> Value {
    let limits = json!({"nvidia.com/gpu": gpus.to_string()});
    json!({"metadata": {"name": name}, "spec": {"schedulerName": scheduler,
        "containers": [{"name": "c", "image": "i:1", "resources": {"limits": limits}}]}})
}
