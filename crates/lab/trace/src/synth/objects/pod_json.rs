//! Pods.

use serde_json::{Value, json};

use super::metadata::{ago, controlled_by, nearest_owner, of_namespace};
use super::noise::{ending, mixed};
use super::plan::{ClusterPlan, PlannedPod};
use super::template::{annotations, image, labels, spec};
use super::work::{Family, OwnedWork, Slip};

pub(super) fn pods(plan: &ClusterPlan) -> impl Iterator<Item = Value> + '_ {
    plan.pods.iter().map(move |pod| {
        let work = &plan.work[pod.work as usize];
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata(plan, work, pod),
            "spec": pod_spec(plan, work, pod),
            "status": status(plan, work, pod)
        })
    })
}

/// The name of a pod, as its controller gives it.
pub(super) fn name(work: &OwnedWork, pod: &PlannedPod) -> String {
    let ending = ending(work.first_pod + pod.ordinal);
    match work.family {
        Family::Bare => work.name.clone(),
        Family::Train => format!("{}-worker-{}", work.name, pod.ordinal),
        Family::Notebook | Family::Store => format!("{}-{}", work.name, pod.ordinal),
        Family::Serve | Family::Web => format!("{}-{}-{ending}", work.name, work.hash(10)),
        Family::Batch | Family::Agent => format!("{}-{ending}", work.name),
    }
}

fn metadata(plan: &ClusterPlan, work: &OwnedWork, pod: &PlannedPod) -> Value {
    let (namespace, name) = (plan.namespace(work.namespace), name(work, pod));
    let key = (&*namespace, &*name);
    let mut metadata = of_namespace(plan, "Pod", key, work.age_minutes, labels(work));
    if let Some(annotations) = annotations(work) {
        metadata.insert("annotations".to_owned(), annotations);
    }
    if let Some((kind, owner)) = nearest_owner(work) {
        metadata.insert("generateName".to_owned(), json!(format!("{owner}-")));
        let owners = controlled_by(plan, kind, &namespace, &owner);
        metadata.insert("ownerReferences".to_owned(), owners);
    }
    if work.has(Slip::Stuck) && pod.node.is_some() {
        metadata.insert("deletionTimestamp".to_owned(), json!(ago(60)));
        metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(30));
        metadata.insert("finalizers".to_owned(), json!(["example.com/upload-results"]));
    }
    Value::Object(metadata)
}

fn pod_spec(plan: &ClusterPlan, work: &OwnedWork, pod: &PlannedPod) -> Value {
    let mut spec = spec(plan, work);
    if let Some(node) = pod.node {
        let name = plan.nodes[node as usize].name(node as usize);
        spec.insert("nodeName".to_owned(), json!(name));
    }
    if let Some(Value::Array(tolerations)) = spec.get_mut("tolerations") {
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            tolerations.push(json!({
                "effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300
            }));
        }
    }
    if let Some(Value::Array(volumes)) = spec.get_mut("volumes") {
        volumes.push(json!({
            "name": "kube-api-access",
            "projected": {
                "defaultMode": 420,
                "sources": [
                    {"serviceAccountToken": {"expirationSeconds": 3_607, "path": "token"}},
                    {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
                    {"downwardAPI": {"items": [{
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        "path": "namespace"
                    }]}}
                ]
            }
        }));
    }
    Value::Object(spec)
}

fn status(plan: &ClusterPlan, work: &OwnedWork, pod: &PlannedPod) -> Value {
    let class = "Burstable";
    let Some(node) = pod.node else {
        let condition = json!({
            "lastTransitionTime": ago(work.age_minutes),
            "message": format!("0/{} nodes are available: no node has room.", plan.nodes.len()),
            "reason": "Unschedulable",
            "status": "False",
            "type": "PodScheduled"
        });
        return json!({"conditions": [condition], "phase": "Pending", "qosClass": class});
    };
    let is_ready = !matches!(
        work.slip,
        Some(Slip::SlowStart | Slip::CrashLoop | Slip::HelperRunsOn | Slip::Stuck)
    );
    // What never was ready has been so since it got its node.
    let since = if work.has(Slip::SlowStart) { work.age_minutes } else { work.age_minutes - 3 };
    let condition = |kind: &str, is_true: bool, minutes: u64| {
        json!({
            "lastProbeTime": null,
            "lastTransitionTime": ago(minutes),
            "status": if is_true { "True" } else { "False" },
            "type": kind
        })
    };
    let (age, starts) = (work.age_minutes, !work.has(Slip::SlowStart));
    let octets = [node >> 16 & 255, node >> 8 & 255, node & 255];
    let address = format!("10.{}.{}.{}", octets[0], octets[1], octets[2]);
    json!({
        "conditions": [
            condition("PodReadyToStartContainers", true, age),
            condition("Initialized", true, age),
            condition("Ready", is_ready, since),
            condition("ContainersReady", is_ready, since),
            condition("PodScheduled", true, age)
        ],
        "containerStatuses": container_statuses(work, pod),
        "hostIP": address,
        "hostIPs": [{"ip": address}],
        "phase": if starts { "Running" } else { "Pending" },
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": class,
        "startTime": ago(age)
    })
}

fn container_statuses(work: &OwnedWork, pod: &PlannedPod) -> Value {
    let identity = mixed(u64::from(work.first_pod + pod.ordinal));
    let id = format!("containerd://{identity:016x}{identity:016x}{identity:016x}{identity:016x}");
    let running = || json!({"running": {"startedAt": ago(work.age_minutes - 2)}});
    let ended = |reason: &str, code: u32, minutes: u64| {
        json!({"terminated": {
            "containerID": id,
            "exitCode": code,
            "finishedAt": ago(minutes),
            "reason": reason,
            "startedAt": ago(work.age_minutes - 2)
        }})
    };
    let (state, last, restarts) = match work.slip {
        Some(Slip::CrashLoop) => {
            (json!({"waiting": {"reason": "CrashLoopBackOff"}}), ended("Error", 1, 4), 11)
        }
        Some(Slip::HelperRunsOn) => (ended("Completed", 0, 600), json!({}), 0),
        Some(Slip::KilledForMemory) => (running(), ended("OOMKilled", 137, 200), 1),
        Some(Slip::SlowStart) => {
            (json!({"waiting": {"reason": "ContainerCreating"}}), json!({}), 0)
        }
        _ => (running(), json!({}), 0),
    };
    let runs = state.get("running").is_some();
    let one = |name: &str, image: String, state: Value, last: Value, restarts: u32, runs: bool| {
        json!({
            "containerID": id,
            "image": image,
            "imageID": format!("{image}@sha256:{identity:016x}{identity:016x}"),
            "lastState": last,
            "name": name,
            "ready": runs,
            "restartCount": restarts,
            "started": runs,
            "state": state
        })
    };
    let mut statuses = vec![one("main", image(work), state, last, restarts, runs)];
    if work.has(Slip::HelperRunsOn) {
        let image = "registry.example.com/log-shipper:2.4".to_owned();
        statuses.push(one("log-shipper", image, running(), json!({}), 0, true));
    }
    Value::Array(statuses)
}
