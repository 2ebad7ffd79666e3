//! Clusters of other providers, vendors and schedulers, by hand as those beside them. More prices a
//! GPU-hour: Standard_NC96ads_A100_v4 in eastus 3.673, g5.48xlarge in us-east-1 2.036.

use serde_json::{Value, json};

use super::{AT, Dump, LONG_AGO, USAGE_HEADER, audit, audit_with, finding, near, node, pod, state};
use crate::cost::ended_pod;

/// 2026-11-20T12:00:00Z.
const AT_S: u64 = 1_795_176_000;
const GPU: &str = "nvidia.com/gpu";

/// Samples of so many GPUs of a pod, every five minutes for the last 24 hours.
fn samples(pod: &str, gpus: u32, on: &str, percent: u32) -> String {
    let mut rows = String::new();
    for step in 1..=288_u64 {
        for gpu in 0..gpus {
            rows += &format!("{},{pod},{gpu},{percent},ml,{on}\n", AT_S - 300 * step);
        }
    }
    rows
}

fn image(mut pod: Value, image: &str) -> Value {
    pod["spec"]["containers"][0]["image"] = json!(image);
    pod
}

/// AKS without GPU Feature Discovery: three nodes of four A100s. Four servers of one GPU each fill
/// the first, two of them without a request for a day; a training computes on the second; nothing
/// ever ran on the third.
fn aks() -> (Vec<Value>, String) {
    let gpus = (GPU, 4);
    let labels = [
        ("kubernetes.azure.com/agentpool", "a100"),
        ("topology.kubernetes.io/region", "eastus"),
        ("node.kubernetes.io/instance-type", "Standard_NC96ads_A100_v4"),
    ];
    let mut objects: Vec<Value> = (0..3)
        .map(|number| {
            let name = format!("aks-a100-{number}");
            let id = format!("azure:///subscriptions/s/{name}");
            node(&name, &id, &[gpus], &labels)
        })
        .collect();
    let mut usage = String::new();
    for number in 0..4 {
        let name = format!("serve-{number}");
        let serve = pod(&name, ("ReplicaSet", "serve-1"), (GPU, 1), "aks-a100-0", LONG_AGO);
        objects.push(image(serve, "vllm/vllm-openai:v0.11.0"));
        usage += &samples(&name, 1, "aks-a100-0", if number < 2 { 70 } else { 0 });
    }
    objects.push(pod("train-0", ("PyTorchJob", "train"), gpus, "aks-a100-1", LONG_AGO));
    usage += &samples("train-0", 4, "aks-a100-1", 95);
    (objects, usage)
}

#[test]
fn idle_replicas_and_an_empty_node_on_aks() {
    let (objects, usage) = aks();
    let found = audit_with(&objects, Some(&usage), "");
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 12.0);
    let month = 720.0 * 3.673;
    near(head["bill_usd_micros_per_month"].as_f64().unwrap() / 1e6, 12.0 * month);
    let (active, _, _) = state(&found, "active_not_separable");
    let (idle, idle_usd, _) = state(&found, "idle");
    let (free, free_usd, _) = state(&found, "free_no_demand");
    assert_eq!((active, idle, free), (6.0, 2.0, 4.0), "{:#}", found["states"]);
    near(idle_usd.unwrap(), 2.0 * month);
    near(free_usd.unwrap(), 4.0 * month);
    near(head["waste_usd_micros_per_month"].as_f64().unwrap() / 1e6, 6.0 * month);
    near(finding(&found, "IDL-09")["usd_micros_per_month"].as_f64().unwrap() / 1e6, 2.0 * month);
    near(finding(&found, "AUT-03")["usd_micros_per_month"].as_f64().unwrap() / 1e6, 4.0 * month);
    // The node can go; the replicas leave a node on which others stay.
    let returned = &head["returned"];
    near(returned["usd_micros_per_month"].as_f64().unwrap() / 1e6, 4.0 * month);
}

/// Owned machines of two vendors, one price by resource each: a pod has two of eight MI300X, the
/// other node, of four Intel GPUs, is cordoned for ten days and empty.
fn two_vendors() -> Vec<Value> {
    let mut intel = node("intel-1", "", &[("gpu.intel.com/i915", 4)], &[]);
    intel["spec"]["unschedulable"] = json!(true);
    intel["spec"]["taints"] = json!([{"key": "node.kubernetes.io/unschedulable",
        "effect": "NoSchedule", "timeAdded": "2026-11-10T12:00:00Z"}]);
    let amd = [("amd.com/gpu.product-name", "MI300X")];
    vec![
        node("amd-1", "", &[("amd.com/gpu", 8)], &amd),
        intel,
        pod("serve-1-a", ("ReplicaSet", "serve-1"), ("amd.com/gpu", 2), "amd-1", LONG_AGO),
    ]
}

const OWNED: &str = "--gpu-price amd.com/gpu=2.10 --gpu-price gpu.intel.com/i915=1.50";

#[test]
fn owned_nodes_of_two_vendors_have_a_price_by_resource() {
    let found = audit(&two_vendors(), OWNED);
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 12.0);
    // 720 · (8 · 2.10 + 4 · 1.50).
    assert_eq!(head["bill_usd_micros_per_month"], 16_416_000_000_i64);
    assert_eq!(state(&found, "unknown"), (2.0, Some(3024.0), None));
    assert_eq!(state(&found, "free_no_demand"), (6.0, Some(9072.0), None));
    assert_eq!(state(&found, "free_draining_or_cordoned"), (4.0, Some(4320.0), None));
    let cordoned = finding(&found, "AUT-06");
    assert_eq!(cordoned["usd_micros_per_month"], 4_320_000_000_i64);
    assert_eq!(cordoned["since"], "2026-11-10T12:00:00Z");
}

/// Time-slicing as GPU Feature Discovery reports it: eight A10Gs, each offered ten times under the
/// name of shared GPUs. Twenty pods have a slice each, that is two GPUs.
fn time_slicing() -> Vec<Value> {
    let shared = ("nvidia.com/gpu.shared", 80);
    let labels = [
        ("topology.kubernetes.io/region", "us-east-1"),
        ("node.kubernetes.io/instance-type", "g5.48xlarge"),
        ("nvidia.com/gpu.product", "NVIDIA-A10G-SHARED"),
        ("nvidia.com/gpu.count", "8"),
        ("nvidia.com/gpu.replicas", "10"),
        ("nvidia.com/gpu.sharing-strategy", "time-slicing"),
    ];
    let mut objects = vec![node("ts-1", "aws:///us-east-1a/i-9", &[shared], &labels)];
    for number in 0..20 {
        let owner = ("StatefulSet", "notebooks");
        let name = format!("notebooks-{number}");
        objects.push(pod(&name, owner, ("nvidia.com/gpu.shared", 1), "ts-1", LONG_AGO));
    }
    objects
}

#[test]
fn slices_in_time_are_parts_of_their_gpus() {
    let found = audit(&time_slicing(), "");
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 8.0);
    let month = 720.0 * 2.036;
    near(head["bill_usd_micros_per_month"].as_f64().unwrap() / 1e6, 8.0 * month);
    assert_eq!(state(&found, "unavailable").0, 0.0);
    let (held, _, _) = state(&found, "unknown");
    let (free, usd, _) = state(&found, "free_no_demand");
    assert_eq!((held, free), (2.0, 6.0), "{:#}", found["states"]);
    near(usd.unwrap(), 6.0 * month);
}

fn h100(name: &str, gpus: u32) -> Value {
    let labels = [
        ("topology.kubernetes.io/region", "us-east-1"),
        ("node.kubernetes.io/instance-type", "p5.48xlarge"),
        ("nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3"),
        ("nvidia.com/gpu.count", "8"),
    ];
    node(name, "aws:///us-east-1a/i-0", &[(GPU, gpus)], &labels)
}

/// Volcano: a group of three pods with eight GPUs each, of which all must start together, is
/// pending for two days; two nodes are free. One GPU of a third node is lost.
fn volcano() -> Vec<Value> {
    let since = "2026-11-18T12:00:00Z";
    let mut objects = vec![h100("v1", 8), h100("v2", 8), h100("v3", 8)];
    objects[2]["status"]["allocatable"][GPU] = json!("7");
    objects.push(json!({"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "run", "namespace": "ml", "uid": "run", "creationTimestamp": since},
        "spec": {"minMember": 3}}));
    for number in 0..3 {
        let name = format!("run-{number}");
        let mut waits = pod(&name, ("Job", "run"), (GPU, 8), "", since);
        waits["metadata"]["annotations"] = json!({"scheduling.k8s.io/group-name": "run"});
        waits["metadata"]["ownerReferences"][0]["apiVersion"] = json!("batch.volcano.sh/v1alpha1");
        waits["spec"]["schedulerName"] = json!("volcano");
        objects.push(waits);
    }
    objects.push(pod("serve-1-a", ("ReplicaSet", "serve-1"), (GPU, 7), "v3", LONG_AGO));
    objects
}

#[test]
fn a_group_of_volcano_that_lacks_one_node_leaves_two_free() {
    let found = audit(&volcano(), "");
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 24.0);
    let month = 720.0 * 6.88;
    near(head["bill_usd_micros_per_month"].as_f64().unwrap() / 1e6, 24.0 * month);
    assert_eq!(state(&found, "unknown").0, 7.0);
    let (lost, usd, _) = state(&found, "unavailable");
    assert_eq!(lost, 1.0);
    near(usd.unwrap(), month);
    // 16 GPUs wait for the third member.
    let (short, usd, _) = state(&found, "free_gang_short");
    assert_eq!(short, 16.0, "{:#}", found["states"]);
    near(usd.unwrap(), 16.0 * month);
}

/// Kueue: a training of two pods with eight GPUs each has no quota for three days, and two nodes
/// are free.
fn kueue() -> Vec<Value> {
    let since = "2026-11-17T12:00:00Z";
    let template = json!({"spec": {"containers": [{"name": "main", "image": "python:3.13",
        "resources": {"limits": {GPU: "8"}, "requests": {GPU: "8"}}}]}});
    vec![
        h100("q1", 8),
        h100("q2", 8),
        ended_pod(),
        json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "run", "namespace": "ml", "uid": "run", "creationTimestamp": since,
                "labels": {"kueue.x-k8s.io/queue-name": "research"}},
            "spec": {"suspend": true, "parallelism": 2, "completions": 2, "template": template},
            "status": {}}),
        json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
            "metadata": {"name": "job-run", "namespace": "ml", "uid": "w", "creationTimestamp": since,
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "run",
                    "uid": "run", "controller": true}]},
            "spec": {"queueName": "research",
                "podSets": [{"name": "main", "count": 2, "template": template}]},
            "status": {"conditions": [{"type": "QuotaReserved", "status": "False",
                "reason": "Pending", "lastTransitionTime": since,
                "message": "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu in flavor h100, request > maximum capacity (16 > 8)"}]}}),
    ]
}

#[test]
fn what_waits_for_quota_of_kueue_leaves_gpus_free_for_that_cause() {
    let found = audit(&kueue(), "");
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 16.0);
    let (free, usd, _) = state(&found, "free_quota");
    assert_eq!(free, 16.0, "{:#}", found["states"]);
    near(usd.unwrap(), 16.0 * 720.0 * 6.88);
}

/// Dynamic resource allocation: a driver offers four H100s of a node and a claim gives two away.
fn claims() -> Vec<Value> {
    let mut without = h100("d1", 0);
    without["metadata"]["labels"].as_object_mut().unwrap().remove("nvidia.com/gpu.count");
    without["metadata"]["labels"]["node.kubernetes.io/instance-type"] = json!("p5.48xlarge");
    let device = |place: u32| {
        json!({"name": format!("gpu-{place}"), "attributes": {
            "type": {"string": "gpu"}, "uuid": {"string": format!("GPU-{place}")},
            "productName": {"string": "NVIDIA H100 80GB HBM3"}}})
    };
    let devices: Vec<Value> = (0..8).map(device).collect();
    let given = |place: u32| {
        json!({"request": "r", "driver": "gpu.nvidia.com", "pool": "d1",
        "device": format!("gpu-{place}")})
    };
    let mut holder = pod("train-0", ("PyTorchJob", "train"), (GPU, 0), "d1", LONG_AGO);
    holder["spec"]["containers"][0]["resources"] = json!({"claims": [{"name": "gpus"}]});
    holder["spec"]["resourceClaims"] = json!([{"name": "gpus", "resourceClaimName": "two"}]);
    vec![
        without,
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice",
            "metadata": {"name": "d1-gpus"},
            "spec": {"driver": "gpu.nvidia.com", "nodeName": "d1", "devices": devices,
                "pool": {"name": "d1", "generation": 1, "resourceSliceCount": 1}}}),
        json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": "two", "namespace": "ml", "uid": "two"},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": {
                "deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2}}]}},
            "status": {"allocation": {"devices": {"results": [given(0), given(1)]}},
                "reservedFor": [{"resource": "pods", "name": "train-0", "uid": "train-0"}]}}),
        holder,
    ]
}

#[test]
fn devices_of_claims_count_as_gpus_with_their_price() {
    let found = audit(&claims(), "");
    let head = &found["headline"];
    assert_eq!(head["installed_gpus"], 8.0, "{:#}", found["states"]);
    near(head["bill_usd_micros_per_month"].as_f64().unwrap() / 1e6, 8.0 * 720.0 * 6.88);
    let (held, _, _) = state(&found, "unknown");
    let (free, usd, _) = state(&found, "free_no_demand");
    assert_eq!((held, free), (2.0, 6.0), "{:#}", found["states"]);
    near(usd.unwrap(), 6.0 * 720.0 * 6.88);
}

/// A server instead of the training could start elsewhere, but for its claim.
#[test]
fn a_nearly_empty_node_whose_pod_has_a_claim_is_missing_data() {
    let mut objects = claims();
    let told = |objects: &[Value]| {
        let found = audit(objects, "");
        let unseen = found["unseen"].as_array().unwrap().iter();
        let what = unseen.filter_map(|unseen| unseen["what"].as_str());
        what.filter(|what| what.starts_with("not judged")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(told(&objects), [""; 0]);
    let server = objects.last_mut().unwrap();
    server["metadata"]["ownerReferences"][0]["kind"] = json!("ReplicaSet");
    assert_eq!(
        told(&objects),
        ["not judged: whether 1 node can be removed, because of pods with ResourceClaims (for \
          example node d1, pod ml/train-0: ResourceClaim two)"]
    );
}

#[test]
fn a_cluster_without_gpus_has_nothing_to_audit() {
    let found = audit(&[node("c1", "", &[], &[])], "");
    assert_eq!(found["headline"]["installed_gpus"], 0.0);
    assert_eq!(found["headline"]["waste_usd_micros_so_far"], 0);
    assert!(found["findings"].as_array().unwrap().is_empty(), "{:#}", found["findings"]);
}

/// The clusters of this file that have GPUs.
pub(super) fn all() -> Vec<Dump> {
    let (of_aks, usage) = aks();
    let plain = |(name, objects)| Dump { name, objects, at: AT, flags: "", usage: None };
    let made = [
        ("AKS", of_aks),
        ("AMD, Intel", two_vendors()),
        ("time-slicing", time_slicing()),
        ("Volcano", volcano()),
        ("Kueue", kueue()),
        ("DRA", claims()),
    ];
    let mut all: Vec<Dump> = made.into_iter().map(plain).collect();
    all[0].usage = Some(format!("{USAGE_HEADER}{usage}"));
    all[1].flags = OWNED;
    all
}
