//! What is kept per pod. A program of its own: its allocator counts behind a lock, which would slow
//! down every other test.

use dovetail_cluster::world::{Change, Settings, World};
use dovetail_objects::{Kind, Object};
use serde_json::{Value, json};

#[global_allocator]
static COUNTED: dhat::Alloc = dhat::Alloc;

const MOST_KEPT_BYTES: usize = 4_000;
const PODS: usize = 500;

/// A GPU pod as a training operator makes them, with what a kubelet adds.
fn large_pod(number: usize) -> Value {
    let variable = |i: usize| json!({"name": format!("NCCL_SETTING_{i}"), "value": "/opt/nccl/plugins/lib:/usr/local/cuda/lib64"});
    let amounts = json!({"cpu": "96", "memory": "1800Gi", "nvidia.com/gpu": "8", "rdma/hca": "8"});
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": metadata(number),
        "spec": {
            "schedulerName": "dovetail", "priority": 1000, "priorityClassName": "training",
            "nodeName": format!("gpu-node-{}", number % 64), "serviceAccountName": "trainer",
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 300,
            "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "topology.kubernetes.io/zone",
                        "operator": "In", "values": ["zone-a", "zone-b"]}]}]}},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels":
                        {"training.kubeflow.org/job-name": "pretraining-large"}}}]}
            },
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute",
                    "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists",
                    "effect": "NoExecute", "tolerationSeconds": 300}
            ],
            "containers": [{
                "name": "worker", "image": "registry.example.com/research/trainer:2026.10",
                "command": ["torchrun"], "args": ["--nnodes=64", "--nproc-per-node=8", "train.py"],
                "env": (0..30).map(variable).collect::<Vec<_>>(),
                "ports": [{"containerPort": 29500, "protocol": "TCP"}],
                "resources": {"requests": amounts, "limits": amounts},
                "volumeMounts": [{"name": "data", "mountPath": "/data"},
                    {"name": "shm", "mountPath": "/dev/shm"}]
            }],
            "volumes": [
                {"name": "data", "persistentVolumeClaim": {"claimName": "dataset"}},
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "256Gi"}},
                {"name": "token", "projected": {"sources": [{"serviceAccountToken":
                    {"expirationSeconds": 3607, "path": "token"}}]}}
            ]
        },
        "status": status(&amounts),
    })
}

fn metadata(number: usize) -> Value {
    let managed: Vec<Value> = (0..4)
        .map(|i| {
            json!({"manager": format!("manager-{i}"), "operation": "Update", "apiVersion": "v1",
                "time": "2026-11-01T10:00:00Z", "fieldsType": "FieldsV1",
                "fieldsV1": {"f:metadata": {"f:labels": {".": {}, "f:app": {}}},
                    "f:spec": {"f:containers": {"k:{\"name\":\"worker\"}": {".": {}, "f:image": {},
                        "f:env": {".": {}}, "f:resources": {".": {}, "f:limits": {".": {}}}}}}}})
        })
        .collect();
    json!({
        "name": format!("pretraining-large-worker-{number}"), "namespace": "research-language",
        "uid": format!("0f6a1c52-5c3e-4d0e-9d7e-{number:012}"), "resourceVersion": "123456789",
        "creationTimestamp": "2026-11-01T10:00:00Z",
        "labels": {
            "app.kubernetes.io/name": "pretraining", "app.kubernetes.io/part-of": "language",
            "training.kubeflow.org/job-name": "pretraining-large",
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": number.to_string(), "team": "language"
        },
        "annotations": {"sidecar.istio.io/inject": "false", "prometheus.io/scrape": "true",
            "dovetail.dev/runtime": "72h", "kubectl.kubernetes.io/default-container": "worker"},
        "ownerReferences": [{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob",
            "name": "pretraining-large", "uid": "9f1f2ad6-08f5-4b10-8f0c-3f0dcb1a0c11",
            "controller": true, "blockOwnerDeletion": true}],
        "managedFields": managed
    })
}

fn status(amounts: &Value) -> Value {
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "lastProbeTime": null,
        "lastTransitionTime": "2026-11-01T10:00:05Z"})
    };
    json!({
        "phase": "Running", "podIP": "10.0.0.7", "hostIP": "10.1.0.7", "qosClass": "Guaranteed",
        "conditions": (["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition)),
        "containerStatuses": [{"name": "worker", "ready": true, "restartCount": 0,
            "image": "registry.example.com/research/trainer:2026.10",
            "imageID": "registry.example.com/research/trainer@sha256:9b0ac4e0f2",
            "state": {"running": {"startedAt": "2026-11-01T10:01:00Z"}},
            "allocatedResources": amounts, "resources": {"requests": amounts}}]
    })
}

/// The allocator counts for the whole process, so each count is made in a process of its own.
fn alone(test: &str) {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", test, "--ignored"];
    let output = std::process::Command::new(program).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn a_pod_of_seven_kilobytes_keeps_less_than_four() {
    alone("count_what_is_kept");
}

#[test]
fn a_relist_takes_little_more_than_what_is_there() {
    alone("count_a_relist");
}

#[test]
fn fifty_images_of_a_node_take_less_than_four_kilobytes() {
    alone("count_images_of_nodes");
}

fn texts() -> Vec<Vec<u8>> {
    (0..PODS).map(|number| serde_json::to_vec(&large_pod(number)).unwrap()).collect()
}

fn live_bytes() -> usize {
    dhat::HeapStats::get().curr_bytes
}

#[test]
#[ignore = "run by a test above, alone in its process"]
fn count_what_is_kept() {
    let texts = texts();
    assert!(texts[0].len() > 7_000, "{}", texts[0].len());
    let mut pods = Vec::with_capacity(PODS);
    let _counting = dhat::Profiler::builder().testing().build();
    let before = live_bytes();
    for text in &texts {
        let object = Object::read(Kind::Pod, text);
        assert!(matches!(object, Object::Pod(_)), "{object:?}");
        pods.push(object);
    }
    let kept = (live_bytes() - before) / PODS + size_of::<Object>();
    assert!(kept <= MOST_KEPT_BYTES, "{kept} bytes are kept of each pod");
    assert!(kept >= 1_000, "{kept} bytes are less than a pod needs: is the allocator counting?");
}

#[test]
#[ignore = "run by a test above, alone in its process"]
fn count_a_relist() {
    let texts = texts();
    let _counting = dhat::Profiler::builder().testing().build();
    let mut world = World::new(Settings::default());
    let list = |world: &mut World| {
        let mut most = 0;
        world.apply(Change::Listing(Kind::Pod));
        for text in &texts {
            world.apply(Change::Applied(Object::read(Kind::Pod, text)));
            most = most.max(live_bytes());
        }
        world.apply(Change::Listed(Kind::Pod));
        most
    };
    list(&mut world);
    for kind in Kind::ALL {
        world.apply(Change::Listed(kind));
    }
    assert!(world.is_ready());
    let before = live_bytes();
    assert!(before / PODS >= 2_000, "{before}");
    let (most, after) = (list(&mut world), live_bytes());
    assert!(most * 10 <= before * 12, "{most} bytes during a relist, {before} before");
    assert!(after * 100 <= before * 101, "{after} bytes after a relist, {before} before");
}

/// A node with as many images as a kubelet reports, each by tag and by digest, two of them its own.
fn node_with_images(number: usize) -> Value {
    let image = |image: usize| {
        let repository = format!("registry.example.com/research/languages/image-{image}");
        let digest = format!("{repository}@sha256:{image:064}");
        json!({"names": [digest, format!("{repository}:2026.10")], "sizeBytes": 1_000_000_000 - image})
    };
    let images: Vec<Value> =
        (0..48).chain([2 * number + 100, 2 * number + 101]).map(image).collect();
    json!({"metadata": {"name": format!("n{number}"), "uid": format!("u{number}"),
        "resourceVersion": "1"}, "status": {"images": images}})
}

#[test]
#[ignore = "run by a test above, alone in its process"]
fn count_images_of_nodes() {
    const NODES: usize = 100;
    let texts = |images: bool, version: usize| -> Vec<Vec<u8>> {
        let node = |number: usize| {
            let mut node = node_with_images(number + if images { version } else { 0 });
            node["metadata"]["name"] = json!(format!("n{number}"));
            node["metadata"]["resourceVersion"] = json!(version.to_string());
            if !images {
                node["status"] = json!({});
            }
            serde_json::to_vec(&node).unwrap()
        };
        (0..NODES).map(node).collect()
    };
    let rounds: Vec<Vec<Vec<u8>>> =
        (1..16).map(|version| texts(version > 1, version * NODES)).collect();
    let _counting = dhat::Profiler::builder().testing().build();
    let mut world = World::new(Settings::default());
    for kind in Kind::ALL {
        world.apply(Change::Listed(kind));
    }
    assert!(world.is_ready());
    let mut bytes = Vec::new();
    for round in &rounds {
        for text in round {
            drop(world.apply(Change::Applied(Object::read(Kind::Node, text))));
        }
        bytes.push(live_bytes());
    }
    let kept = (bytes[1] - bytes[0]) / NODES;
    assert!(kept < 4_000, "{kept} bytes of images are kept of each node");
    assert!(kept >= 2_000, "{kept} bytes are less than the list needs");
    let last = (bytes[bytes.len() - 1] - bytes[0]) / NODES;
    assert!(last < 6_000, "{last} bytes of each node after names came and went, {kept} at first");
}
